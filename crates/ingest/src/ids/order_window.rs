//! The indices of a range of vertices, for graphs in order of degree.

use std::ops::Range;

use graphmill_raw::AlignedBuffer;
use graphmill_storage::Buffer;

/// The index of a number without a vertex.
pub(crate) const NO_INDEX: u64 = u64::MAX;

/// True if indices need more than 32 bits.
pub(crate) fn is_wide(vertices: u64) -> bool {
    vertices > 1 << 32
}

/// The indices of the vertices of some numbers.
#[derive(Debug)]
pub(crate) struct OrderWindow {
    pub(crate) numbers: Range<u64>,
    pub(crate) wide: bool,
    pub(crate) entries: Buffer,
}

impl OrderWindow {
    /// Returns the leased bytes for `numbers` numbers of a graph of `vertices` vertices.
    pub(crate) fn bytes(vertices: u64, numbers: u64) -> u64 {
        let bytes = if is_wide(vertices) { 8 } else { 4 };
        AlignedBuffer::footprint((numbers * bytes) as usize)
    }

    /// The index of the vertex of a rank; of one that is not among these some number that is no index.
    #[inline(always)]
    pub(crate) fn index(&self, rank: u64) -> u64 {
        let at = rank.wrapping_sub(self.numbers.start) as usize;
        if self.wide {
            self.entries.typed::<u64>().get(at).copied()
        } else {
            self.entries
                .typed::<u32>()
                .get(at)
                .map(|index| (*index).into())
        }
        .unwrap_or(NO_INDEX)
    }
}
