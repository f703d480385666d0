//! The index of a cell: in which block, and where in it, a source's edges are.
//!
//! Always a directory of the cell's blocks (DCSR: found by bisection, then by the block's own list of sources).
//! Where the cell is dense enough (CSR, by the inflate ratio of DFOGraph section 4.1), also a bitmap of the sources
//! with the number of sources before each line of it, so that one cache line answers where a source is.

use crate::error::FormatError;

/// Bytes before the directory.
const HEADER: usize = 16;
/// Bytes of one block's entry: first source, sources before (the high bit: continues the source before), offset.
const ENTRY: usize = 16;
/// Bytes of a line of the bitmap: sources before it (u32), the block they end in (u32), then the bits.
const LINE: usize = 64;
/// Sources of a line.
const LINE_SOURCES: u32 = 448;
const CONTINUES: u32 = 1 << 31;

/// Where the edges of a source begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the block in the cell.
    pub block: usize,
    /// Where the block begins, in bytes from the cell's first.
    pub offset: u64,
    /// Number of the group in the block; `None` when only the block's own list can tell.
    pub group: Option<usize>,
}

/// The index of one cell, its lengths checked.
#[derive(Clone, Copy, Debug)]
pub struct SourceIndex<'a> {
    entries: &'a [[u8; ENTRY]],
    lines: &'a [[u8; LINE]],
}

impl<'a> SourceIndex<'a> {
    /// The index that `bytes` holds.
    ///
    /// # Errors
    /// Its length and its counts differ.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        if bytes.is_empty() {
            // One block, whose own list of sources says it all.
            return Ok(SourceIndex {
                entries: &[],
                lines: &[],
            });
        }
        let short = || {
            FormatError::cell(
                "an index whose length its counts contradict",
                0,
                HEADER as u64,
                bytes.len() as u64,
            )
        };
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or_else(short)?;
        let number = |i: usize| u64::from_le_bytes(header.as_chunks::<8>().0[i]);
        let blocks = usize::try_from(number(0)).map_err(|_| short())?;
        let (entries, lines) = rest
            .split_at_checked(blocks.checked_mul(ENTRY).ok_or_else(short)?)
            .ok_or_else(short)?;
        let (lines, over) = lines.as_chunks();
        if blocks == 0 || !over.is_empty() || lines.len() as u64 != number(1) {
            return Err(short());
        }
        Ok(SourceIndex {
            entries: entries.as_chunks().0,
            lines,
        })
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
        let entry = self.entries.get(block)?;
        let [a0, a1, a2, a3, b0, b1, b2, b3, offset @ ..] = *entry;
        Some((
            u32::from_le_bytes([a0, a1, a2, a3]),
            u32::from_le_bytes([b0, b1, b2, b3]),
            u64::from_le_bytes(offset),
        ))
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

    /// Where a source's edges begin; `None` when it has none in this cell. Without a bitmap the block may turn out
    /// to hold none.
    #[inline]
    pub fn seek(&self, source: u32) -> Option<Place> {
        if !self.has_bitmap() {
            return match self.entries.is_empty() {
                true => Some(Place {
                    block: 0,
                    offset: 0,
                    group: None,
                }),
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
        Some(Place {
            block,
            offset,
            group: Some(rank.wrapping_sub(before) as usize),
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

    fn bisect(&self, source: u32) -> Option<Place> {
        let first =
            |entry: &[u8; ENTRY]| u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        let mut block = self
            .entries
            .partition_point(|entry| first(entry) <= source)
            .checked_sub(1)?;
        while block > 0 && self.continues(block) && self.entry(block)?.0 == source {
            block -= 1;
        }
        Some(Place {
            block,
            offset: self.offset(block)?,
            group: None,
        })
    }
}

/// Builds the index of a cell as its blocks are written.
#[derive(Debug, Default)]
pub struct SourceIndexBuilder {
    entries: Vec<(u32, u32, u64)>,
    /// The lines with sources in them, and their numbers: a cell of few sources in a large batch takes little room.
    lines: Vec<[u64; LINE / 8]>,
    numbers: Vec<u32>,
    sources: u32,
    last: Option<u32>,
    edges: u64,
}

impl SourceIndexBuilder {
    /// Notes a block that begins at byte `offset` of the cell.
    pub fn block(&mut self, keys: &[u64], offset: u64) {
        let Some(first) = keys.first().map(|key| (key >> 32) as u32) else {
            return;
        };
        let continues = self.last == Some(first);
        let before = self.sources - u32::from(continues);
        let block = self.entries.len() as u64;
        self.entries.push((
            first,
            before | if continues { CONTINUES } else { 0 },
            offset,
        ));
        for key in keys {
            let source = (key >> 32) as u32;
            if self.last == Some(source) {
                continue;
            }
            let number = source / LINE_SOURCES;
            if self.numbers.last() != Some(&number) {
                self.numbers.push(number);
                self.lines
                    .push([u64::from(self.sources) | block << 32, 0, 0, 0, 0, 0, 0, 0]);
            }
            let within = (source % LINE_SOURCES) as usize;
            if let Some(line) = self.lines.last_mut() {
                line[1 + within / 64] |= 1 << (within % 64);
            }
            self.sources += 1;
            self.last = Some(source);
        }
        self.edges += keys.len() as u64;
    }

    /// Appends the index of a cell whose source batch spans `span` vertices, with a bitmap if span over edges is at
    /// most `csr_ratio`, and starts anew.
    pub fn finish(&mut self, span: u64, csr_ratio: u32, out: &mut Vec<u8>) {
        let bitmap = span <= self.edges.saturating_mul(u64::from(csr_ratio));
        let lines = self
            .numbers
            .last()
            .filter(|_| bitmap)
            .map_or(0, |number| u64::from(*number) + 1);
        out.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        out.extend_from_slice(&lines.to_le_bytes());
        for (first, before, offset) in &self.entries {
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&before.to_le_bytes());
            out.extend_from_slice(&offset.to_le_bytes());
        }
        let mut next = 0;
        for (line, number) in self.lines.iter().zip(&self.numbers).filter(|_| bitmap) {
            // The lines passed over are empty, and begin where this one does.
            for _ in next..*number {
                out.extend_from_slice(&line[0].to_le_bytes());
                out.resize(out.len() + LINE - 8, 0);
            }
            for word in line {
                out.extend_from_slice(&word.to_le_bytes());
            }
            next = number + 1;
        }
        self.entries.clear();
        self.lines.clear();
        self.numbers.clear();
        self.sources = 0;
        self.last = None;
        self.edges = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BLOCK_EDGES_MAX, BlockEncoder, BlockView};
    use graphmill_storage::Random;

    #[test]
    fn seeks_find_the_edges_that_a_scan_finds() {
        let mut random = Random::new(3);
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
                let mut bytes = Vec::new();
                let mut builder = SourceIndexBuilder::default();
                let mut at = 0;
                for block in keys.chunks(BLOCK_EDGES_MAX) {
                    builder.block(block, at);
                    let (_, used) = BlockView::parse(&data[at as usize..], 0).unwrap().unwrap();
                    at += used as u64;
                }
                builder.finish(span, ratio, &mut bytes);
                let index = SourceIndex::parse(&bytes).unwrap();
                assert_eq!(index.blocks(), blocks);
                assert_eq!(index.has_bitmap(), span <= edges as u64 * u64::from(ratio));
                for source in (0..span as u32 + 500)
                    .step_by(1 + span as usize / 300)
                    .chain([span as u32 / 2])
                {
                    let expected: Vec<u64> = keys
                        .iter()
                        .copied()
                        .filter(|k| (k >> 32) as u32 == source)
                        .collect();
                    let mut found = Vec::new();
                    let mut place = index.seek(source);
                    while let Some(Place {
                        block,
                        offset,
                        group,
                    }) = place
                    {
                        place = None;
                        let (view, _) = BlockView::parse(&data[offset as usize..], 0)
                            .unwrap()
                            .unwrap();
                        let Some(group) = group.or_else(|| view.group_of(source)) else {
                            break;
                        };
                        view.edges_of(group, source, |d, _| {
                            found.push(u64::from(source) << 32 | u64::from(d))
                        });
                        if group + 1 == view.groups() && index.continues(block + 1) {
                            place = index.offset(block + 1).map(|offset| Place {
                                block: block + 1,
                                offset,
                                group: Some(0),
                            });
                        }
                    }
                    assert_eq!(found, expected, "source {source} of {span}, ratio {ratio}");
                }
            }
        }
    }
}
