//! A block as its reader sees it: what every codec shares, and the packed one.

use crate::codec::bitpack::{field, packed_bytes, unpack};
use crate::codec::block::group::{Group, group_of_sample};
use crate::codec::block::layout::{BLOCK_EDGES_MAX, Codec, FIRSTS_BYTES, HEADER, PADDING};
use crate::codec::pfor::MINI;
use crate::error::FormatError;

/// A block whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    pub(super) edges: usize,
    pub(super) groups: usize,
    first_source: u32,
    pub(super) codec: Codec,
    pub(super) dst_bits: u32,
    src_bits: u32,
    /// Everything after the header.
    pub(super) body: &'a [u8],
    firsts_at: usize,
    pub(super) destinations_at: usize,
    /// Destination minus source of the two batches' first vertices.
    pub(super) global_offset: i64,
}

/// How far the groups of a block were walked over.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupWalk {
    passed: usize,
    /// Of the last group passed.
    source: u32,
    looked: u64,
}

impl GroupWalk {
    /// To be at the start of another block.
    pub fn restart(&mut self) {
        self.passed = 0;
    }
    /// Groups that were looked at in all blocks.
    pub fn looked(&self) -> u64 {
        self.looked
    }
}

impl<'a> BlockView<'a> {
    /// Returns the block at the start of `bytes` and its length; `None` if `bytes` holds only a part.
    ///
    /// `global_offset` is the first vertex of the destination batch minus that of the source batch.
    ///
    /// # Errors
    /// The header contradicts itself.
    #[inline]
    pub fn parse(
        bytes: &'a [u8],
        global_offset: i64,
    ) -> Result<Option<(Self, usize)>, FormatError> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [
            codec,
            dst_bits,
            src_bits,
            _,
            e0,
            e1,
            g0,
            g1,
            s0,
            s1,
            s2,
            s3,
            b0,
            b1,
            b2,
            b3,
        ] = *header;
        let edges = usize::from(u16::from_le_bytes([e0, e1]));
        let groups = usize::from(u16::from_le_bytes([g0, g1]));
        let block_bytes = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
        let (dst_bits, src_bits) = (u32::from(dst_bits), u32::from(src_bits));
        let codec = match codec {
            0 => Codec::Packed,
            1 => Codec::Gap,
            codec => {
                return Err(FormatError::cell("an unknown codec", 0, 1, codec.into()));
            }
        };
        if edges == 0
            || edges > BLOCK_EDGES_MAX
            || groups == 0
            || groups > edges
            || dst_bits > 32
            || src_bits > 32
        {
            let what = "counts or widths out of range";
            return Err(FormatError::cell(what, 4, BLOCK_EDGES_MAX, edges));
        }
        let firsts_at = packed_bytes(groups - 1, src_bits);
        let destinations_at = firsts_at + edges.div_ceil(64) * 8;
        let least = destinations_at
            + match codec {
                Codec::Packed => packed_bytes(edges, dst_bits),
                Codec::Gap => {
                    FIRSTS_BYTES + groups.div_ceil(MINI) + (edges - groups).div_ceil(MINI)
                }
            }
            + PADDING;
        let body_bytes = block_bytes.wrapping_sub(HEADER);
        // A mini-block of the gap codec takes at most a byte and 32 fields of 32 bits.
        if body_bytes < least || body_bytes > least + (2 * BLOCK_EDGES_MAX + 2 * MINI) * 8 {
            let what = "a length that its counts contradict";
            return Err(FormatError::cell(what, 12, HEADER + least, block_bytes));
        }
        let Some(body) = rest.get(..body_bytes) else {
            return Ok(None);
        };
        let first_source = u32::from_le_bytes([s0, s1, s2, s3]);
        let view = BlockView {
            edges,
            groups,
            first_source,
            codec,
            dst_bits,
            src_bits,
            body,
            firsts_at,
            destinations_at,
            global_offset,
        };
        Ok(Some((view, block_bytes)))
    }

    /// Number of edges, 1 to 4,096.
    #[inline(always)]
    pub fn edges(&self) -> usize {
        self.edges
    }
    /// Number of groups, 1 to the number of edges.
    #[inline(always)]
    pub fn groups(&self) -> usize {
        self.groups
    }
    /// The source of the first group.
    #[inline(always)]
    pub fn first_source(&self) -> u32 {
        self.first_source
    }
    /// No source of the block is greater.
    #[inline]
    pub fn last_source_max(&self) -> u32 {
        let steps = (self.groups as u64 - 1) << self.src_bits;
        u32::try_from(u64::from(self.first_source) + steps).unwrap_or(u32::MAX)
    }
    /// How the destinations are kept.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The source of each group, ascending; returns how many.
    #[inline(always)]
    pub fn sources(&self, out: &mut [u32; BLOCK_EDGES_MAX]) -> usize {
        out[0] = self.first_source;
        unpack(self.body, self.src_bits, &mut out[1..self.groups]);
        // A sum of 4,096 gaps fits in 64 bits, so that only the additions depend on each other.
        let mut source = u64::from(self.first_source);
        for slot in &mut out[1..self.groups] {
            source += u64::from(*slot) + 1;
            *slot = u32::try_from(source).unwrap_or(u32::MAX);
        }
        self.groups
    }

    /// Words of the bitmap whose bit i is set when edge i is the first of its group.
    #[inline(always)]
    fn firsts(&self) -> &'a [[u8; 8]] {
        self.body
            .get(self.firsts_at..self.destinations_at)
            .unwrap_or(&[])
            .as_chunks()
            .0
    }

    /// The first edge of each group, in order.
    #[inline(always)]
    pub(super) fn first_edges(&self) -> FirstEdges<'a> {
        FirstEdges {
            firsts: self.firsts(),
            word: 0,
            bits: 0,
            next: 0,
        }
    }

    /// Calls `f(group, destination, edge)` for each edge, in order, without a branch between groups.
    #[inline(always)]
    pub fn for_each_edge(
        &self,
        scratch: &mut [u32; BLOCK_EDGES_MAX],
        mut f: impl FnMut(usize, u32, usize),
    ) {
        self.destinations(scratch);
        let (words, rest) = scratch[..self.edges].as_chunks::<64>();
        let firsts = self.firsts();
        // The first edge is the first of group 0, whatever its bit says.
        let bit = firsts.first().map_or(0, |word| word[0] & 1);
        let mut group = 0usize.wrapping_sub(usize::from(bit));
        for (w, destinations) in words.iter().enumerate() {
            let mut first = u64::from_le_bytes(firsts.get(w).copied().unwrap_or_default());
            for (i, destination) in destinations.iter().enumerate() {
                group = group.wrapping_add((first & 1) as usize);
                first >>= 1;
                f(group, *destination, 64 * w + i);
            }
        }
        let mut first = u64::from_le_bytes(firsts.get(words.len()).copied().unwrap_or_default());
        for (i, destination) in rest.iter().enumerate() {
            group = group.wrapping_add((first & 1) as usize);
            first >>= 1;
            f(group, *destination, 64 * words.len() + i);
        }
    }

    /// Calls `f(group, destinations, first edge)` for each group of a wanted source, in order.
    ///
    /// `sources` are the sources of the block.
    #[inline(always)]
    pub fn for_each_group(
        &self,
        scratch: &mut [u32; BLOCK_EDGES_MAX],
        sources: &[u32],
        mut wanted: impl FnMut(u32) -> bool,
        mut f: impl FnMut(usize, &[u32], usize),
    ) {
        self.destinations(scratch);
        let scratch = &scratch[..self.edges];
        let mut begins = self.first_edges();
        let mut from = begins.next().unwrap_or(self.edges).min(self.edges);
        for (group, source) in sources.iter().enumerate() {
            let to = begins.next().unwrap_or(self.edges).min(self.edges);
            if wanted(*source) {
                f(group, scratch.get(from..to).unwrap_or(&[]), from);
            }
            from = to;
        }
    }

    /// All destinations, in the order of edges.
    #[inline(always)]
    fn destinations(&self, out: &mut [u32; BLOCK_EDGES_MAX]) {
        match self.codec {
            Codec::Packed => unpack(
                self.body.get(self.destinations_at..).unwrap_or(&[]),
                self.dst_bits,
                &mut out[..self.edges],
            ),
            Codec::Gap => self.gap_destinations(out),
        }
    }

    /// Returns the group of a source from its index entry, if the source has edges in this block.
    ///
    /// If the caller asks for sources in ascending order, `walk` scans no group twice.
    #[inline]
    pub fn group_by(&self, walk: &mut GroupWalk, known: Group, source: u32) -> Option<usize> {
        match known {
            Group::Number(group) => {
                walk.looked += 1;
                return Some(group);
            }
            Group::From(sample, at) => {
                let group = group_of_sample(sample, self.groups);
                if group >= walk.passed {
                    walk.looked += 1;
                    (walk.passed, walk.source) = (group + 1, at);
                }
            }
            Group::Unknown => {}
        }
        if walk.passed == 0 {
            walk.looked += 1;
            (walk.passed, walk.source) = (1, self.first_source);
        }
        while walk.source < source && walk.passed < self.groups {
            let gap = field(self.body, walk.passed - 1, self.src_bits);
            walk.source = walk.source.saturating_add(gap).saturating_add(1);
            walk.passed += 1;
            walk.looked += 1;
        }
        (walk.source == source).then_some(walk.passed - 1)
    }

    /// The edges of a group.
    #[inline]
    pub fn group_range(&self, group: usize) -> std::ops::Range<usize> {
        let firsts = self.firsts();
        let mut before = group;
        let mut from = self.edges;
        let mut word = 0;
        let mut bits = 0;
        while let Some(next) = firsts.get(word) {
            bits = u64::from_le_bytes(*next);
            let ones = bits.count_ones() as usize;
            if before < ones {
                for _ in 0..before {
                    bits &= bits - 1;
                }
                from = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                break;
            }
            before -= ones;
            word += 1;
        }
        while bits == 0 {
            word += 1;
            match firsts.get(word) {
                Some(next) => bits = u64::from_le_bytes(*next),
                None => return from.min(self.edges)..self.edges,
            }
        }
        let to = 64 * word + bits.trailing_zeros() as usize;
        from.min(self.edges)..to.min(self.edges)
    }

    /// Calls `f(destination, edge)` for each edge of a group whose source is `source`.
    ///
    /// It does not decode the rest of the block.
    #[inline]
    pub fn edges_of(&self, group: usize, source: u32, mut f: impl FnMut(u32, usize)) {
        let range = self.group_range(group);
        match self.codec {
            Codec::Packed => {
                let area = self.body.get(self.destinations_at..).unwrap_or(&[]);
                range.for_each(|edge| f(field(area, edge, self.dst_bits), edge));
            }
            Codec::Gap => self.gap_edges(group, source, range, f),
        }
    }
}

/// The positions of the set bits of a block's bitmap.
pub(super) struct FirstEdges<'a> {
    firsts: &'a [[u8; 8]],
    word: usize,
    bits: u64,
    next: usize,
}

impl Iterator for FirstEdges<'_> {
    type Item = usize;
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            self.bits = u64::from_le_bytes(*self.firsts.get(self.next)?);
            self.word = self.next;
            self.next += 1;
        }
        let at = 64 * self.word + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(at)
    }
}
