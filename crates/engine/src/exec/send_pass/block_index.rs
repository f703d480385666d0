//! The blocks that have messages for each batch of a rank.

use std::ops::Range;

use crate::exec::send_pass::block::SortedBlock;

/// For each batch of a rank, its parts of blocks: the number of the block, and the part of it.
///
/// An entry is paid for with the part ([`PART_BYTES`](crate::memory::plan::PART_BYTES)).
#[derive(Default)]
pub(crate) struct BlockIndex {
    own: Range<usize>,
    /// Where the entries of each batch begin, and where the last ones end.
    begins: Vec<usize>,
    entries: Vec<(u32, u32)>,
}

impl BlockIndex {
    /// Returns the bytes of an index for `batches` batches, without its entries.
    pub(crate) fn bytes(batches: usize) -> u64 {
        ((batches + 1) * size_of::<usize>()) as u64
    }

    /// Lists the parts of some blocks for the batches of a rank, in order of the blocks.
    pub(crate) fn new(posts: &[SortedBlock], own: Range<usize>) -> Self {
        let parts = || {
            posts.iter().enumerate().flat_map(|(post, block)| {
                let parts = block.parts.iter().enumerate();
                parts.map(move |(part, (batch, _))| (*batch as usize, (post as u32, part as u32)))
            })
        };
        let own_parts = || parts().filter(|(batch, _)| own.contains(batch));
        let mut begins = vec![0; own.len() + 1];
        for (batch, _) in own_parts() {
            begins[batch - own.start + 1] += 1;
        }
        for at in 0..own.len() {
            begins[at + 1] += begins[at];
        }
        let mut entries = vec![(0, 0); begins[own.len()]];
        for (batch, entry) in own_parts() {
            let next = &mut begins[batch - own.start];
            entries[*next] = entry;
            *next += 1;
        }
        // Each begin is now where the batch ends.
        begins.rotate_right(1);
        begins[0] = 0;
        BlockIndex {
            own,
            begins,
            entries,
        }
    }

    /// Returns the blocks with messages for a batch of the rank, and the part of each.
    pub(crate) fn of(&self, batch: usize) -> &[(u32, u32)] {
        let at = batch - self.own.start;
        match self.begins.get(at..at + 2) {
            Some([begin, end]) => &self.entries[*begin..*end],
            _ => &[],
        }
    }
}
