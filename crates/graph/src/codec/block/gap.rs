//! The gap codec as its reader sees it: the first destination of each group relative to its source, then gaps.

use crate::codec::block::layout::{BLOCK_EDGES_MAX, FIRSTS_BYTES};
use crate::codec::block::view::BlockView;
use crate::codec::pfor::{MINI, PforBlocks};

impl<'a> BlockView<'a> {
    /// The edges of one group: `f(destination, edge)` for each.
    #[inline]
    pub(super) fn gap_edges(
        &self,
        group: usize,
        source: u32,
        range: std::ops::Range<usize>,
        mut f: impl FnMut(u32, usize),
    ) {
        let [firsts, rests] = self.gap_parts();
        let mut destination = 0;
        let mut edge = range.start;
        firsts.for_each(group..group + 1, |first| {
            destination = self.first_destination(first, source);
        });
        if range.is_empty() {
            return;
        }
        f(destination, edge);
        let before = range.start - group.min(range.start);
        rests.for_each(before..before + range.len() - 1, |gap| {
            destination = destination.wrapping_add(gap) & self.dst_mask();
            edge += 1;
            f(destination, edge);
        });
    }

    fn dst_mask(&self) -> u32 {
        ((1u64 << self.dst_bits) - 1) as u32
    }

    /// The first destination of a group out of its field.
    #[inline(always)]
    fn first_destination(&self, zigzag: u32, source: u32) -> u32 {
        let relative = (i64::from(zigzag) >> 1) ^ -(i64::from(zigzag) & 1);
        // Batches may lie so far apart that the offset is beyond any 64-bit difference: only the low bits count.
        let destination = (relative + i64::from(source)).wrapping_sub(self.global_offset);
        destination as u32 & self.dst_mask()
    }

    fn gap_parts(&self) -> [PforBlocks<'a>; 2] {
        let area = self.body.get(self.destinations_at..).unwrap_or(&[]);
        let (bytes, area) = area.split_at(area.len().min(FIRSTS_BYTES));
        let firsts_bytes = bytes.try_into().map_or(0, u32::from_le_bytes) as usize;
        let firsts = self.groups.div_ceil(MINI);
        let rests = (self.edges - self.groups).div_ceil(MINI);
        let (heads, bodies) = area.split_at(area.len().min(firsts + rests));
        let (first_heads, rest_heads) = heads.split_at(heads.len().min(firsts));
        let rest_bodies = bodies.get(firsts_bytes..).unwrap_or(&[]);
        [(first_heads, bodies), (rest_heads, rest_bodies)]
            .map(|(heads, bodies)| PforBlocks { heads, bodies })
    }

    #[inline(never)]
    pub(super) fn gap_destinations(&self, out: &mut [u32; BLOCK_EDGES_MAX]) {
        let mut sources = [0; BLOCK_EDGES_MAX];
        self.sources(&mut sources);
        let [first_parts, rest_parts] = self.gap_parts();
        let mut firsts = [0; BLOCK_EDGES_MAX];
        first_parts.unpack(&mut firsts[..self.groups]);
        let mut rests = [0; BLOCK_EDGES_MAX];
        rest_parts.unpack(&mut rests[..self.edges - self.groups]);
        let mask = self.dst_mask();
        let mut begins = self.first_edges();
        // The first group begins with the first edge, whatever the bitmap says.
        begins.next();
        let (mut from, mut rest) = (0, 0);
        for (first, source) in firsts[..self.groups].iter().zip(&sources) {
            let to = begins.next().unwrap_or(self.edges).min(self.edges);
            let mut destination = self.first_destination(*first, *source);
            for (i, slot) in out
                .get_mut(from..to)
                .unwrap_or(&mut [])
                .iter_mut()
                .enumerate()
            {
                if i > 0 {
                    destination =
                        destination.wrapping_add(rests[rest & (BLOCK_EDGES_MAX - 1)]) & mask;
                    rest += 1;
                }
                *slot = destination;
            }
            from = to;
        }
        // Edges of groups that there are not; what was in `out` is of another block.
        out[from..self.edges].fill(0);
    }
}
