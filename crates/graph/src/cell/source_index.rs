//! The index of a cell: in which block, and where in it, a source's edges are.
//!
//! Of a cell with more than a few edges always a list of its blocks (DCSR: found by bisection), each with some of its sources, so that
//! only a few of the block's own list of sources are walked over. Where the cell is dense enough (CSR, by the inflate ratio of DFOGraph
//! section 4.1), also a bitmap of the sources with the number of sources before each line of it, so that one cache line answers where
//! a source is. Each can be read without the other: lists of blocks are 64 bytes for thousands of edges, and are read from disk where
//! they are not in memory; bitmaps may take more than the blocks, and are for memory only.

use crate::codec::block::group::{GROUP_SAMPLES, Group, group_of_sample};
use crate::codec::block::layout::BLOCK_EDGES_MAX;
use crate::error::FormatError;

/// Bytes of the entry of one block.
///
/// An entry holds the first source, the number of sources before it, the offset and the samples. The
/// high bit of the number of sources says that the block continues the source before.
const ENTRY: usize = 16 + 4 * GROUP_SAMPLES;
/// Bytes of a line of the bitmap.
///
/// A line holds the number of sources before it (u32), the block in which its first source begins (u32),
/// then the bits.
const LINE: usize = 64;
/// Sources of a line.
const LINE_SOURCES: u32 = 448;
const CONTINUES: u32 = 1 << 31;
/// Lines of a bitmap at most: a batch has no more than 2^31 vertices.
pub(crate) const BITMAP_LINES_MAX: u64 = (1u64 << 31).div_ceil(LINE_SOURCES as u64);

/// Where the edges of a source begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgePosition {
    /// Number of the block in the cell.
    pub block: usize,
    /// Where the block begins, in bytes from the cell's first.
    pub offset: u64,
    /// A bound on the group's position in the block.
    pub group: Group,
}

/// Cells with fewer edges are one block, whose own list of sources says it all.
const LISTED_EDGES_MIN: u64 = 512;

/// Returns the bytes of the block list of a cell with `edges` edges.
pub(crate) fn block_list_bytes(edges: u64) -> u64 {
    match edges {
        ..LISTED_EDGES_MIN => 0,
        _ => edges.div_ceil(BLOCK_EDGES_MAX as u64) * ENTRY as u64,
    }
}

/// Returns the bytes of a bitmap of `lines` lines.
pub(crate) fn bitmap_bytes(lines: u64) -> u64 {
    lines * LINE as u64
}

/// Returns the bytes of memory that building the bitmap of a cell takes at most.
///
/// The cell has `edges` edges, and its source batch spans `span` vertices.
pub(crate) fn bitmap_memory(span: u64, edges: u64, csr_ratio: u32) -> u64 {
    let lines = span.div_ceil(LINE_SOURCES.into());
    let is_dense = span <= edges.saturating_mul(u64::from(csr_ratio));
    let filled = lines.min(edges) * (LINE + size_of::<u32>()) as u64;
    filled + if is_dense { bitmap_bytes(lines) } else { 0 }
}

/// Returns the lines of a bitmap of `bitmap_bytes` bytes.
pub(crate) fn lines_of(bitmap_bytes: u64) -> u32 {
    (bitmap_bytes / LINE as u64).min(BITMAP_LINES_MAX) as u32
}

/// The index of one cell, its lengths checked.
#[derive(Clone, Copy, Debug)]
pub struct SourceIndex<'a> {
    entries: &'a [[u8; ENTRY]],
    lines: &'a [[u8; LINE]],
}

impl<'a> SourceIndex<'a> {
    /// Returns the index over a list of blocks and a bitmap.
    ///
    /// Either may be empty, if the cell has none or it was not read.
    ///
    /// # Errors
    /// One of them ends amid an entry or a line.
    #[inline]
    pub fn parse(blocks: &'a [u8], bitmap: &'a [u8]) -> Result<Self, FormatError> {
        let ((entries, over), (lines, beyond)) = (blocks.as_chunks(), bitmap.as_chunks());
        if over.is_empty() && beyond.is_empty() {
            return Ok(SourceIndex { entries, lines });
        }
        let whole = ENTRY * entries.len() + LINE * lines.len();
        let (what, found) = (
            "an index that ends amid an entry",
            blocks.len() + bitmap.len(),
        );
        Err(FormatError::cell(what, 0, whole, found))
    }

    /// Number of blocks of the cell.
    pub fn blocks(&self) -> usize {
        self.entries.len().max(1)
    }
    /// Whether there is a bitmap.
    pub fn has_bitmap(&self) -> bool {
        !self.lines.is_empty()
    }

    #[inline(always)]
    fn entry(&self, block: usize) -> Option<(u32, u32, u64)> {
        if self.entries.is_empty() && block == 0 {
            return Some((0, 0, 0));
        }
        let words = self.entries.get(block)?.as_chunks::<4>().0;
        let word = |i: usize| u32::from_le_bytes(words[i]);
        let offset = u64::from(word(2)) | u64::from(word(3)) << 32;
        Some((word(0), word(1), offset))
    }

    /// The last sample of a block that is no later than a source.
    #[inline]
    fn sample(&self, block: usize, source: u32) -> Group {
        let Some(entry) = self.entries.get(block) else {
            return Group::Unknown;
        };
        let samples = &entry.as_chunks::<4>().0[4..];
        let sample = |i: usize| u32::from_le_bytes(samples[i]);
        let passed = (0..GROUP_SAMPLES).take_while(|i| sample(*i) <= source);
        (passed.last()).map_or(Group::Unknown, |last| Group::From(last, sample(last)))
    }

    /// Where block `block` begins, in bytes from the cell's first.
    pub fn offset(&self, block: usize) -> Option<u64> {
        self.entry(block).map(|(_, _, offset)| offset)
    }

    /// Whether block `block` begins with further edges of `source`.
    pub fn goes_on(&self, block: usize, source: u32) -> bool {
        self.entry(block)
            .is_some_and(|(first, before, _)| before & CONTINUES != 0 && first == source)
    }

    /// Whether block `block` begins with further edges of the last source of the block before.
    pub fn continues(&self, block: usize) -> bool {
        self.entry(block)
            .is_some_and(|(_, before, _)| before & CONTINUES != 0)
    }

    /// Returns where the edges of a source begin; `None` if it has none in this cell.
    ///
    /// Without a bitmap the block may hold no edge of the source.
    #[inline]
    pub fn seek(&self, source: u32) -> Option<EdgePosition> {
        if !self.has_bitmap() {
            return match self.entries.is_empty() {
                // One block of few edges.
                true => Some(EdgePosition::default()),
                false => self.bisect(source),
            };
        }
        let (rank, mut block) = self.look_up(source)?;
        let (mut before, mut offset) = self
            .entry(block)
            .map(|(_, before, offset)| (before & !CONTINUES, offset))?;
        // The block of the line's first source is known; the source lies in it or shortly after. A block that goes
        // on with the same source has as many sources before it, less the one.
        while let Some((_, next, at)) = self.entry(block + 1) {
            if next & CONTINUES != 0 && (next & !CONTINUES) == rank || next & !CONTINUES > rank {
                break;
            }
            (block, before, offset) = (block + 1, next & !CONTINUES, at);
        }
        Some(EdgePosition {
            block,
            offset,
            group: Group::Number(rank.wrapping_sub(before) as usize),
        })
    }

    /// The rank of a source, and the block in which the first source of its line begins.
    #[inline(always)]
    fn look_up(&self, source: u32) -> Option<(u32, usize)> {
        let line = self.lines.get((source / LINE_SOURCES) as usize)?;
        let words = line.as_chunks::<8>().0;
        let within = (source % LINE_SOURCES) as usize;
        let word = |i: usize| u64::from_le_bytes(words[1 + i]);
        if word(within / 64) >> (within % 64) & 1 == 0 {
            return None;
        }
        let head = u64::from_le_bytes(words[0]);
        let mut rank = head as u32;
        for i in 0..within / 64 {
            rank = rank.wrapping_add(word(i).count_ones());
        }
        let below = word(within / 64) & ((1 << (within % 64)) - 1);
        rank = rank.wrapping_add(below.count_ones());
        Some((rank, (head >> 32) as usize))
    }

    fn bisect(&self, source: u32) -> Option<EdgePosition> {
        let first = |entry: &[u8; ENTRY]| u32::from_le_bytes(entry.as_chunks().0[0]);
        let after = self.entries.partition_point(|entry| first(entry) <= source);
        let mut block = after.checked_sub(1)?;
        while block > 0 && self.continues(block) && self.entry(block)?.0 == source {
            block -= 1;
        }
        Some(EdgePosition {
            block,
            offset: self.offset(block)?,
            group: self.sample(block, source),
        })
    }
}

/// Builds the index of a cell as its blocks are written.
#[derive(Debug, Default)]
pub struct SourceIndexBuilder {
    blocks: u64,
    /// The sources of a block.
    of_block: Vec<u32>,
    /// The lines that have sources, and their numbers: a cell of few sources takes little memory.
    lines: Vec<[u64; LINE / 8]>,
    numbers: Vec<u32>,
    sources: u32,
    last: Option<u32>,
    edges: u64,
}

impl SourceIndexBuilder {
    /// Notes a block that begins at byte `offset` of the cell, and appends its entry in the list of blocks.
    pub fn block(&mut self, keys: &[u64], offset: u64, list: &mut Vec<u8>) {
        let Some(first) = keys.first().map(|key| (key >> 32) as u32) else {
            return;
        };
        let continues = self.last == Some(first);
        let before = self.sources - u32::from(continues);
        self.of_block.clear();
        if continues {
            self.of_block.push(first);
        }
        for key in keys {
            let source = (key >> 32) as u32;
            if self.last == Some(source) {
                continue;
            }
            let number = source / LINE_SOURCES;
            if self.numbers.last() != Some(&number) {
                self.numbers.push(number);
                let head = u64::from(self.sources) | self.blocks << 32;
                self.lines.push([head, 0, 0, 0, 0, 0, 0, 0]);
            }
            let within = (source % LINE_SOURCES) as usize;
            if let Some(line) = self.lines.last_mut() {
                line[1 + within / 64] |= 1 << (within % 64);
            }
            self.of_block.push(source);
            self.sources += 1;
            self.last = Some(source);
        }
        let mut entry = [0; ENTRY];
        let (words, _) = entry.as_chunks_mut::<4>();
        let head = [
            first,
            before | if continues { CONTINUES } else { 0 },
            offset as u32,
            (offset >> 32) as u32,
        ];
        let groups = self.of_block.len();
        let samples = (0..GROUP_SAMPLES).map(|i| self.of_block[group_of_sample(i, groups)]);
        for (word, number) in words.iter_mut().zip(head.into_iter().chain(samples)) {
            *word = number.to_le_bytes();
        }
        if self.blocks > 0 || keys.len() as u64 >= LISTED_EDGES_MIN {
            list.extend_from_slice(&entry);
        }
        self.blocks += 1;
        self.edges += keys.len() as u64;
    }

    /// Appends the bitmap of a cell, resets the builder and returns the number of lines.
    ///
    /// The cell has `data_bytes` bytes, and its source batch spans `span` vertices. It gets a bitmap if span
    /// over edges is at most `csr_ratio`, unless the cell is one block that takes fewer bytes.
    pub fn finish(
        &mut self,
        (span, csr_ratio, data_bytes): (u64, u32, u64),
        bitmap: &mut Vec<u8>,
    ) -> u32 {
        let lines = self.numbers.last().map_or(0, |last| u64::from(*last) + 1);
        let is_worth_it = self.blocks > 1 || bitmap_bytes(lines) <= data_bytes;
        let has_bitmap = is_worth_it && span <= self.edges.saturating_mul(u64::from(csr_ratio));
        let mut next = 0;
        for (line, number) in (self.lines.iter().zip(&self.numbers)).filter(|_| has_bitmap) {
            // The lines passed over are empty, and begin where this one does.
            for _ in next..*number {
                bitmap.extend_from_slice(&line[0].to_le_bytes());
                bitmap.resize(bitmap.len() + LINE - 8, 0);
            }
            for word in line {
                bitmap.extend_from_slice(&word.to_le_bytes());
            }
            next = number + 1;
        }
        self.blocks = 0;
        self.lines.clear();
        self.numbers.clear();
        self.sources = 0;
        self.last = None;
        self.edges = 0;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::block::encode::BlockEncoder;
    use crate::codec::block::layout::BLOCK_EDGES_MAX;
    use crate::codec::block::view::{BlockView, GroupWalk};
    use graphmill_storage::SplitMix64;

    #[test]
    fn source_index_finds_what_a_scan_finds() {
        let mut random = SplitMix64::new(3);
        for round in 0..60u64 {
            let span = 1 + random.below([10, 1000, 100_000][round as usize % 3]);
            let edges = [1, 100, 5000, 20_000][round as usize % 4];
            // A hub now and then, whose edges span blocks.
            let mut keys: Vec<u64> = (0..edges)
                .map(|i| {
                    let source = if i % 3 == 0 && round % 2 == 0 {
                        span / 2
                    } else {
                        random.below(span)
                    };
                    source << 32 | random.below(1 << 16)
                })
                .collect();
            keys.sort_unstable();
            let (mut data, mut encoder) = (Vec::new(), BlockEncoder::default());
            for block in keys.chunks(BLOCK_EDGES_MAX) {
                encoder.encode(block, 16, 0, &mut data);
            }
            let blocks = keys.len().div_ceil(BLOCK_EDGES_MAX);
            for ratio in [32, 0] {
                let (mut list, mut bitmap) = (Vec::new(), Vec::new());
                let mut builder = SourceIndexBuilder::default();
                let (mut at, mut looked) = (0, 0);
                for block in keys.chunks(BLOCK_EDGES_MAX) {
                    builder.block(block, at, &mut list);
                    let (_, used) = BlockView::parse(&data[at as usize..], 0).unwrap().unwrap();
                    at += used as u64;
                }
                let lines = builder.finish((span, ratio, at), &mut bitmap);
                assert_eq!(list.len() as u64, block_list_bytes(edges as u64));
                assert_eq!(bitmap.len() as u64, bitmap_bytes(lines.into()));
                let index = SourceIndex::parse(&list, &bitmap).unwrap();
                assert_eq!(index.blocks(), blocks);
                let is_dense = span <= edges as u64 * u64::from(ratio);
                let is_small = span.div_ceil(448) * 64 <= at;
                assert!(index.has_bitmap() || !is_dense || blocks == 1 && !is_small);
                assert!(!index.has_bitmap() || is_dense);
                for bytes in [&list, &bitmap].map(|bytes| bytes.len().saturating_sub(1)) {
                    let cut = |of: &Vec<u8>| of.len().min(bytes);
                    let (list, bitmap) = (&list[..cut(&list)], &bitmap[..cut(&bitmap)]);
                    let is_cut = list.len() % ENTRY + bitmap.len() % LINE > 0;
                    assert_eq!(SourceIndex::parse(list, bitmap).is_err(), is_cut);
                }
                let (mut walk, mut last) = (GroupWalk::default(), 0);
                for source in (0..span as u32 + 500)
                    .step_by(1 + span as usize / 300)
                    .chain([span as u32 / 2])
                {
                    // What was walked over for the sources before is not walked over again, but for the last one.
                    if source == span as u32 / 2 {
                        (walk, looked) = (GroupWalk::default(), 0);
                    }
                    let expected: Vec<u64> = keys
                        .iter()
                        .copied()
                        .filter(|k| (k >> 32) as u32 == source)
                        .collect();
                    let mut found = Vec::new();
                    let mut place = index.seek(source);
                    while let Some(EdgePosition {
                        block,
                        offset,
                        group,
                    }) = place
                    {
                        place = None;
                        if block != last {
                            (last, looked) = (block, walk.looked());
                            walk.restart();
                        }
                        let (view, _) = BlockView::parse(&data[offset as usize..], 0)
                            .unwrap()
                            .unwrap();
                        let before = walk.looked();
                        let Some(number) = view.group_by(&mut walk, group, source) else {
                            break;
                        };
                        assert!(walk.looked() - looked <= 2 * view.groups() as u64);
                        let most = match group {
                            Group::Unknown if list.is_empty() => view.groups(),
                            _ => view.groups() / GROUP_SAMPLES + 2,
                        };
                        assert!(walk.looked() - before <= most as u64);
                        view.edges_of(number, source, |d, _| {
                            found.push(u64::from(source) << 32 | u64::from(d))
                        });
                        if number + 1 == view.groups() && index.continues(block + 1) {
                            place = index.offset(block + 1).map(|offset| EdgePosition {
                                block: block + 1,
                                offset,
                                group: Group::Number(0),
                            });
                        }
                    }
                    assert_eq!(found, expected, "source {source} of {span}, ratio {ratio}");
                }
            }
        }
    }
}
