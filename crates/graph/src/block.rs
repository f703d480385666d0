//! Blocks: up to 4,096 consecutive edges of one cell, the unit of the codec and of the kernels.
//!
//! A block says all about itself. Its edges are in *groups*, one a source; one bit an edge says whether it is the
//! first of its group, so a kernel goes from group to group without a branch. Whatever bytes a block is made of,
//! [`BlockView`] never reads outside them, and hands out no group number of 4,096 or more and no destination of
//! `1 << dst_bits` or more.

use graphmill_raw::simd;

use crate::bits::{field, pack, packed_bytes, unpack, width_of};
use crate::error::FormatError;
use crate::minis::{MINI, Minis, MinisWriter};

/// Edges of a block at most.
pub const BLOCK_EDGES_MAX: usize = 4096;
/// Bytes of a block's header.
const HEADER: usize = 16;
/// Zero bytes at the end of a block, so that wide loads of its last fields stay inside.
const PADDING: usize = 8;
/// Bytes that say how long the bodies of the firsts are, in the gap codec.
const FIRSTS_BYTES: usize = 4;
/// The gap codec is taken when it needs at most so many hundredths of the packed one's bytes: it is slower.
const GAP_PERCENT_MAX: usize = 80;

/// How the destinations of a block are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Each in the bits of the batch's span.
    Packed,
    /// The first of each group relative to its source, the others as the gap to the one before.
    Gap,
}

/// A block whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    edges: usize,
    groups: usize,
    first_source: u32,
    codec: Codec,
    dst_bits: u32,
    src_bits: u32,
    /// Everything after the header.
    body: &'a [u8],
    firsts_at: usize,
    destinations_at: usize,
    /// Destination minus source of the two batches' first vertices.
    global_offset: i64,
}

impl<'a> BlockView<'a> {
    /// The block at the start of `bytes` and its length in bytes; `None` when `bytes` holds only a part of it.
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
                return Err(FormatError::cell(
                    "an unknown codec",
                    0,
                    1,
                    u64::from(codec),
                ));
            }
        };
        if edges == 0
            || edges > BLOCK_EDGES_MAX
            || groups == 0
            || groups > edges
            || dst_bits > 32
            || src_bits > 32
        {
            return Err(FormatError::cell(
                "counts or widths out of range",
                4,
                BLOCK_EDGES_MAX as u64,
                edges as u64,
            ));
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
            return Err(FormatError::cell(
                "a length that its counts contradict",
                12,
                (HEADER + least) as u64,
                block_bytes as u64,
            ));
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
        let mut source = self.first_source;
        for slot in &mut out[1..self.groups] {
            source = source.saturating_add(*slot).saturating_add(1);
            *slot = source;
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

    /// Calls `f(group, destinations, first edge)` for each group whose source is wanted, in order; `sources` are
    /// those of the block.
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
        let mut begins = FirstEdges {
            firsts: self.firsts(),
            word: 0,
            bits: 0,
            next: 0,
        };
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

    /// The group of a source, if it has edges in this block.
    pub fn group_of(&self, source: u32) -> Option<usize> {
        let mut at = self.first_source;
        for group in 0..self.groups {
            if group > 0 {
                at = at
                    .saturating_add(field(self.body, group - 1, self.src_bits))
                    .saturating_add(1);
            }
            if at >= source {
                return (at == source).then_some(group);
            }
        }
        None
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

    /// Calls `f(destination, edge)` for each edge of a group whose source is `source`, without decoding the rest of
    /// the block.
    #[inline]
    pub fn edges_of(&self, group: usize, source: u32, mut f: impl FnMut(u32, usize)) {
        let range = self.group_range(group);
        match self.codec {
            Codec::Packed => {
                let area = self.body.get(self.destinations_at..).unwrap_or(&[]);
                range.for_each(|edge| f(field(area, edge, self.dst_bits), edge));
            }
            Codec::Gap => {
                let parts = self.gap_parts();
                let mut destination = 0;
                let mut edge = range.start;
                parts.firsts.for_each(group..group + 1, |first| {
                    destination = self.first_destination(first, source);
                });
                if range.is_empty() {
                    return;
                }
                f(destination, edge);
                let before = range.start - group.min(range.start);
                parts
                    .rests
                    .for_each(before..before + range.len() - 1, |gap| {
                        destination = destination.wrapping_add(gap) & self.dst_mask();
                        edge += 1;
                        f(destination, edge);
                    });
            }
        }
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

    fn gap_parts(&self) -> GapParts<'a> {
        let area = self.body.get(self.destinations_at..).unwrap_or(&[]);
        let (bytes, area) = area.split_at(area.len().min(FIRSTS_BYTES));
        let firsts_bytes = bytes.try_into().map_or(0, u32::from_le_bytes) as usize;
        let firsts = self.groups.div_ceil(MINI);
        let rests = (self.edges - self.groups).div_ceil(MINI);
        let (heads, bodies) = area.split_at(area.len().min(firsts + rests));
        let (first_heads, rest_heads) = heads.split_at(heads.len().min(firsts));
        GapParts {
            firsts: Minis {
                heads: first_heads,
                bodies,
            },
            rests: Minis {
                heads: rest_heads,
                bodies: bodies.get(firsts_bytes..).unwrap_or(&[]),
            },
        }
    }

    #[inline(never)]
    fn gap_destinations(&self, out: &mut [u32; BLOCK_EDGES_MAX]) {
        let mut sources = [0; BLOCK_EDGES_MAX];
        self.sources(&mut sources);
        let parts = self.gap_parts();
        let mut firsts = [0; BLOCK_EDGES_MAX];
        parts.firsts.unpack(&mut firsts[..self.groups]);
        let mut rests = [0; BLOCK_EDGES_MAX];
        parts.rests.unpack(&mut rests[..self.edges - self.groups]);
        let mask = self.dst_mask();
        let mut begins = FirstEdges {
            firsts: self.firsts(),
            word: 0,
            bits: 0,
            next: 0,
        };
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

/// The two streams of the gap codec.
struct GapParts<'a> {
    firsts: Minis<'a>,
    rests: Minis<'a>,
}

/// The positions of the set bits of a block's bitmap.
struct FirstEdges<'a> {
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

/// Room for encoding one block.
#[derive(Debug, Default)]
pub struct BlockEncoder {
    deltas: Vec<u32>,
    firsts: Vec<u32>,
    rests: Vec<u32>,
    /// How firsts and rests are written.
    plans: [MinisWriter; 2],
}

impl BlockEncoder {
    /// Appends the block of 1 to 4,096 edges, `keys` being source << 32 | destination in ascending order, every
    /// destination less than `1 << dst_bits`. Returns its number of groups.
    pub fn encode(
        &mut self,
        keys: &[u64],
        dst_bits: u32,
        global_offset: i64,
        out: &mut Vec<u8>,
    ) -> usize {
        let source = |key: u64| (key >> 32) as u32;
        let destination = |key: u64| key as u32;
        let zigzag = |key: u64| {
            let relative = i64::from(destination(key)) + global_offset - i64::from(source(key));
            ((relative << 1) ^ (relative >> 63)) as u64
        };
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        for room in [&mut self.deltas, &mut self.firsts, &mut self.rests] {
            room.resize(keys.len(), 0);
        }
        // Each edge is written down both as the first of a group and as a further one, and one of the two is
        // overwritten by the next edge: that is faster than a branch that nobody can predict.
        let mut bitmap = [0u64; BLOCK_EDGES_MAX / 64];
        let (mut groups, mut rests) = (0, 0);
        let (mut deltas, mut zigzags) = (0, 0);
        let mut last = keys.first().map_or(0, |&key| !key);
        for (i, &key) in keys.iter().enumerate() {
            let first = (key ^ last) >> 32 != 0;
            bitmap[i / 64] |= u64::from(first) << (i % 64);
            let delta = source(key).wrapping_sub(source(last)).wrapping_sub(1);
            let mask = u64::from(first).wrapping_neg();
            deltas |= if i == 0 { 0 } else { delta & mask as u32 };
            zigzags |= zigzag(key) & mask;
            // There are at most i groups and rests before edge i, so both are in range.
            self.deltas[groups] = delta;
            self.firsts[groups] = zigzag(key) as u32;
            self.rests[rests] = destination(key).wrapping_sub(destination(last));
            groups += usize::from(first);
            rests += usize::from(!first);
            last = key;
        }
        let src_bits = width_of(u64::from(deltas));
        pack(self.deltas[..groups].iter().skip(1).copied(), src_bits, out);
        for word in &bitmap[..keys.len().div_ceil(64)] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let parts = [&self.firsts[..groups], &self.rests[..rests]];
        let most = GAP_PERCENT_MAX * packed_bytes(keys.len(), dst_bits) / 100;
        // Planning takes time, and no plan takes fewer bits than the numbers themselves.
        let bits = simd::dispatch(|| {
            let numbers = parts.iter().flat_map(|part| part.iter());
            numbers
                .map(|number| 32 - number.leading_zeros())
                .sum::<u32>()
        });
        let gap = zigzags <= u64::from(u32::MAX)
            && bits as usize <= 8 * most
            && FIRSTS_BYTES
                + parts
                    .iter()
                    .zip(&mut self.plans)
                    .map(|(part, plan)| plan.plan(part))
                    .sum::<usize>()
                <= most;
        if gap {
            let at = out.len();
            out.extend_from_slice(&[0; FIRSTS_BYTES]);
            for plan in &self.plans {
                plan.put_heads(out);
            }
            let from = out.len();
            self.plans[0].put_bodies(parts[0], out);
            let firsts_bytes = (out.len() - from) as u32;
            out[at..at + FIRSTS_BYTES].copy_from_slice(&firsts_bytes.to_le_bytes());
            self.plans[1].put_bodies(parts[1], out);
        } else {
            pack(keys.iter().map(|&key| destination(key)), dst_bits, out);
        }
        out.extend_from_slice(&[0; PADDING]);
        let bytes = (out.len() - start) as u32;
        let header = &mut out[start..start + HEADER];
        header[0] = u8::from(gap);
        header[1] = dst_bits as u8;
        header[2] = src_bits as u8;
        header[4..6].copy_from_slice(&(keys.len() as u16).to_le_bytes());
        header[6..8].copy_from_slice(&(groups as u16).to_le_bytes());
        header[8..12].copy_from_slice(&keys.first().map_or(0, |key| source(*key)).to_le_bytes());
        header[12..16].copy_from_slice(&bytes.to_le_bytes());
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::Random;

    /// Sorted keys of one block: `sources` source groups of about `edges / sources` edges.
    fn keys(
        random: &mut Random,
        edges: usize,
        sources: u64,
        src_span: u64,
        dst_span: u64,
        local: bool,
    ) -> Vec<u64> {
        let sources: Vec<u64> = (0..sources).map(|_| random.below(src_span)).collect();
        let mut keys: Vec<u64> = (0..edges)
            .map(|_| {
                let source = sources[random.below(sources.len() as u64) as usize];
                let near = (source + random.below(20)) % dst_span;
                source << 32 | if local { near } else { random.below(dst_span) }
            })
            .collect();
        keys.sort_unstable();
        keys
    }

    fn decode(view: &BlockView<'_>) -> Vec<u64> {
        let mut scratch = [0; BLOCK_EDGES_MAX];
        let mut sources = [0; BLOCK_EDGES_MAX];
        let groups = view.sources(&mut sources);
        assert_eq!(groups, view.groups());
        let mut found = Vec::new();
        view.for_each_edge(&mut scratch, |group, destination, edge| {
            assert_eq!(edge, found.len());
            found.push(u64::from(sources[group]) << 32 | u64::from(destination));
        });
        let mut by_group = Vec::new();
        view.for_each_group(
            &mut scratch,
            &sources[..groups],
            |_| true,
            |group, destinations, first| {
                assert_eq!(first, by_group.len());
                by_group.extend(
                    destinations
                        .iter()
                        .map(|d| u64::from(sources[group]) << 32 | u64::from(*d)),
                );
            },
        );
        assert_eq!(found, by_group);
        let mut sought = Vec::new();
        for (group, &source) in sources[..groups].iter().enumerate() {
            assert_eq!(view.group_of(source), Some(group));
            assert_eq!(view.group_range(group).start, sought.len());
            view.edges_of(group, source, |destination, edge| {
                assert_eq!(edge, sought.len());
                sought.push(u64::from(source) << 32 | u64::from(destination));
            });
        }
        assert_eq!(found, sought);
        found
    }

    #[test]
    fn every_way_to_read_a_block_gives_what_was_written() {
        let mut random = Random::new(1);
        let mut encoder = BlockEncoder::default();
        let mut seen = [false; 2];
        for round in 0..400u64 {
            let edges = [1, 2, 63, 64, 65, 100, 1000, 4095, 4096][round as usize % 9];
            let dst_bits = (round % 33) as u32;
            let src_bits = random.below(32);
            let src_span = 1 + random.below(1 << src_bits);
            let sources = 1 + random.below(edges as u64);
            let keys = keys(
                &mut random,
                edges,
                sources,
                src_span,
                1 << dst_bits,
                round % 2 == 0,
            );
            let offset = [0, 12_345, -77, 1 << 40, -(1 << 40)][round as usize % 5];
            let mut bytes = vec![9; 3];
            encoder.encode(&keys, dst_bits, offset, &mut bytes);
            let whole = bytes.len();
            bytes.extend_from_slice(&[0xff; 5]);
            for cut in [3, 18, whole - 1] {
                assert!(BlockView::parse(&bytes[3..cut], offset).unwrap().is_none());
            }
            let (view, used) = BlockView::parse(&bytes[3..], offset).unwrap().unwrap();
            assert_eq!(used, whole - 3);
            seen[usize::from(view.codec() == Codec::Gap)] = true;
            assert_eq!(decode(&view), keys, "round {round}");
        }
        assert_eq!(seen, [true, true], "both codecs are tried");
    }

    #[test]
    fn the_first_edge_is_in_the_first_group_though_its_bit_is_not_set() {
        let mut bytes = Vec::new();
        let keys: Vec<u64> = (0..70).map(|destination| 3 << 32 | destination).collect();
        BlockEncoder::default().encode(&keys, 9, 0, &mut bytes);
        bytes[HEADER] = 0;
        let (view, _) = BlockView::parse(&bytes, 0).unwrap().unwrap();
        assert_eq!(view.codec(), Codec::Gap);
        let mut scratch = [u32::MAX; BLOCK_EDGES_MAX];
        view.for_each_edge(&mut scratch, |group, destination, edge| {
            assert_eq!((group, destination), (0, edge as u32));
        });
    }

    #[test]
    fn a_group_that_begins_beyond_the_last_edge_is_empty_and_ends_the_block() {
        let mut bytes = Vec::new();
        BlockEncoder::default().encode(&[5, 6, 7], 9, 0, &mut bytes);
        // One group and three edges: no sources, then the bitmap.
        bytes[HEADER..HEADER + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
        let (view, _) = BlockView::parse(&bytes, 0).unwrap().unwrap();
        let mut scratch = [0; BLOCK_EDGES_MAX];
        view.for_each_group(
            &mut scratch,
            &[0],
            |_| true,
            |_, destinations, first| assert_eq!((destinations.len(), first), (0, 3)),
        );
    }

    #[test]
    fn batches_at_both_ends_of_the_numbers_do_not_overflow() {
        let mut random = Random::new(4);
        let keys = keys(&mut random, 500, 90, 1000, 1 << 10, true);
        let mut bytes = Vec::new();
        BlockEncoder::default().encode(&keys, 10, 0, &mut bytes);
        for offset in [i64::MIN, i64::MAX] {
            let (view, _) = BlockView::parse(&bytes, offset).unwrap().unwrap();
            assert_eq!(view.codec(), Codec::Gap);
            let mut scratch = [0; BLOCK_EDGES_MAX];
            view.for_each_edge(&mut scratch, |_, destination, _| {
                assert!(destination < 1 << 10)
            });
        }
    }

    #[test]
    fn whatever_the_bytes_nothing_is_read_outside_and_numbers_stay_in_range() {
        let mut random = Random::new(2);
        let mut encoder = BlockEncoder::default();
        for round in 0..3000 {
            let keys = keys(
                &mut random,
                1 + round % 300,
                40,
                1000,
                1 << 12,
                round % 2 == 0,
            );
            let mut bytes = Vec::new();
            encoder.encode(&keys, 12, 5, &mut bytes);
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            let Ok(Some((view, used))) = BlockView::parse(&bytes, 5) else {
                continue;
            };
            assert!(used <= bytes.len());
            // What another block left there.
            let mut scratch = [u32::MAX; BLOCK_EDGES_MAX];
            let mut sources = [0; BLOCK_EDGES_MAX];
            let groups = view.sources(&mut sources);
            let bound = 1u64 << view.dst_bits;
            let mut edges = 0;
            view.for_each_edge(&mut scratch, |group, destination, _| {
                assert!(group < BLOCK_EDGES_MAX && u64::from(destination) < bound);
                edges += 1;
            });
            assert!(edges <= BLOCK_EDGES_MAX);
            view.for_each_group(&mut scratch, &sources[..groups], |_| true, |_, _, _| ());
            for group in [0, groups / 2, groups - 1] {
                view.edges_of(group, sources[group], |destination, edge| {
                    assert!(u64::from(destination) < bound && edge < BLOCK_EDGES_MAX);
                });
            }
        }
    }
}
