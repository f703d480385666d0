//! Pages of the fan-out: the destination batches of every vertex.

use crate::codec::bitpack::pack_mixed;
use crate::vertex::packed::{PAGE_VERTICES, field, width};

/// Vertices of a chunk of the fan-out.
const CHUNK_VERTICES: usize = 64;
/// Bytes of a fan-out page before its first chunk.
pub(crate) const CHUNKS_AT: usize = PAGE_VERTICES as usize / CHUNK_VERTICES * 4;

/// Returns the bytes of a page of the fan-out at most.
///
/// At most each chunk has all batches, four bytes each, and a row of eight for each.
pub(crate) fn fanout_page_bytes_max(batches: usize) -> u64 {
    (CHUNKS_AT as u64) + (CHUNKS_AT as u64 / 4) * (8 + 12 * batches as u64)
}

/// Collects one page of the fan-out.
#[derive(Default)]
pub(crate) struct FanoutPage {
    /// (vertex of the page, destination batch), in order of batch for each vertex.
    pub(crate) pairs: Vec<(u16, u32)>,
    sorted: Vec<(u16, u32)>,
    union: Union,
}

/// The batches of one chunk, and where each is among them.
#[derive(Default)]
struct Union {
    batches: Vec<u32>,
    /// For each batch of the graph: the chunk that last had it, and its position there.
    places: Vec<(u32, u32)>,
    chunk: u32,
}

impl Union {
    fn set(&mut self, pairs: &[(u16, u32)], batches: usize) {
        if self.chunk == u32::MAX || self.places.len() != batches {
            self.chunk = 0;
            self.places.clear();
            self.places.resize(batches, (0, 0));
        }
        self.chunk += 1;
        self.batches.clear();
        for &(_, batch) in pairs {
            let place = &mut self.places[batch as usize];
            if place.0 != self.chunk {
                place.0 = self.chunk;
                self.batches.push(batch);
            }
        }
        self.batches.sort_unstable();
        for (position, &batch) in self.batches.iter().enumerate() {
            self.places[batch as usize].1 = position as u32;
        }
    }
    #[inline]
    fn position(&self, batch: u32) -> usize {
        self.places[batch as usize].1 as usize
    }
}

impl FanoutPage {
    /// Appends the page and forgets its pairs. `batches`: of the graph.
    pub(crate) fn put(&mut self, out: &mut Vec<u8>, batches: usize) {
        self.sort();
        let start = out.len();
        out.resize(start + CHUNKS_AT, 0);
        let mut rest = &self.sorted[..];
        for chunk in 0..CHUNKS_AT / 4 {
            let end = (chunk + 1) * CHUNK_VERTICES;
            let count = rest.partition_point(|&(v, _)| usize::from(v) < end);
            let (now, later) = rest.split_at(count);
            rest = later;
            put_chunk(out, now, &mut self.union, batches);
            let end = (out.len() - start) as u32;
            out[start + 4 * chunk..start + 4 * chunk + 4].copy_from_slice(&end.to_le_bytes());
        }
        self.pairs.clear();
    }
    /// Orders the pairs by vertex, keeping the order of batches: a counting sort.
    fn sort(&mut self) {
        let mut starts = [0u32; PAGE_VERTICES as usize + 1];
        let vertices = self.pairs.iter().map(|pair| usize::from(pair.0));
        vertices.for_each(|v| starts[v + 1] += 1);
        for v in 0..PAGE_VERTICES as usize {
            starts[v + 1] += starts[v];
        }
        self.sorted.clear();
        self.sorted.resize(self.pairs.len(), (0, 0));
        for &pair in &self.pairs {
            let slot = &mut starts[usize::from(pair.0)];
            self.sorted[*slot as usize] = pair;
            *slot += 1;
        }
    }
}

fn put_chunk(out: &mut Vec<u8>, pairs: &[(u16, u32)], union: &mut Union, batches: usize) {
    if pairs.is_empty() {
        return;
    }
    union.set(pairs, batches);
    let count = union.batches.len();
    let total = pairs.len() as u64;
    let (of_total, of_entry) = (width(total), width(count as u64 - 1));
    let lists_bits =
        (CHUNK_VERTICES as u64 + 1) * u64::from(of_total) + total * u64::from(of_entry);
    let lists = lists_bits < (CHUNK_VERTICES * count) as u64;
    out.extend((count as u32).to_le_bytes());
    out.extend((if lists { total as u32 } else { 0 }).to_le_bytes());
    let of_batch = width(batches as u64 - 1);
    pack_mixed(
        union.batches.iter().map(|&batch| (batch.into(), of_batch)),
        out,
    );
    let local = |v: u16| usize::from(v) % CHUNK_VERTICES;
    if lists {
        let starts = (0..=CHUNK_VERTICES).scan(0, |next, v| {
            while pairs.get(*next).is_some_and(|&pair| local(pair.0) < v) {
                *next += 1;
            }
            Some((*next as u64, of_total))
        });
        let entries = pairs
            .iter()
            .map(|pair| (union.position(pair.1) as u64, of_entry));
        pack_mixed(starts.chain(entries), out);
    } else {
        let from = out.len();
        out.resize(from + CHUNK_VERTICES / 8 * count, 0);
        for &(v, batch) in pairs {
            let bit = local(v) * count + union.position(batch);
            out[from + bit / 8] |= 1 << (bit % 8);
        }
    }
}

/// Bytes of memory of a vertex and a batch of the fan-out.
pub(crate) const PAIR_BYTES: u64 = size_of::<(u16, u32)>() as u64;

/// Reads pages of the fan-out and encodes their chunks again.
pub(crate) struct ChunkEncoder {
    batches: usize,
    pairs: Vec<(u16, u32)>,
    union: Union,
    again: Vec<u8>,
}

impl ChunkEncoder {
    pub(crate) fn new(batches: usize) -> Self {
        ChunkEncoder {
            batches,
            pairs: Vec::new(),
            union: Union::default(),
            again: Vec::new(),
        }
    }
    /// Returns the bytes of memory that it takes at most, without the bytes of a page.
    pub(crate) fn memory(&self) -> u64 {
        let pairs = (CHUNK_VERTICES * self.batches) as u64;
        pairs.saturating_mul(PAIR_BYTES) + self.batches as u64 * 2 * PAIR_BYTES
    }
    /// Calls `f` with each vertex of the page and each of its destination batches, ascending.
    ///
    /// Returns `None` if the writer would encode the page differently.
    pub(crate) fn each_pair(&mut self, page: &[u8], mut f: impl FnMut(usize, usize)) -> Option<()> {
        let mut end = CHUNKS_AT;
        for first in (0..PAGE_VERTICES as usize).step_by(CHUNK_VERTICES) {
            let place = chunk_place(page, first)?;
            end = place.end;
            let bytes = page.get(place)?;
            self.pairs.clear();
            for v in 0..CHUNK_VERTICES {
                let push = |batch| self.pairs.push((v as u16, batch as u32));
                each_in_chunk(bytes, v, self.batches, push)?;
            }
            if !self.pairs.is_sorted_by(|one, next| one < next) {
                return None;
            }
            self.again.clear();
            put_chunk(&mut self.again, &self.pairs, &mut self.union, self.batches);
            if self.again != bytes {
                return None;
            }
            for (v, batch) in &self.pairs {
                f(first + usize::from(*v), *batch as usize);
            }
        }
        (end == page.len()).then_some(())
    }
}

/// Returns where in a page the chunk with vertex `i` is.
///
/// It reads the first bytes of the page, as many as [`CHUNKS_AT`] counts.
#[inline]
pub(crate) fn chunk_place(heads: &[u8], i: usize) -> Option<std::ops::Range<usize>> {
    let end_of = |chunk: usize| {
        let end = heads.get(4 * chunk..4 * chunk + 4)?;
        Some(u32::from_le_bytes(end.try_into().ok()?) as usize)
    };
    let chunk = i / CHUNK_VERTICES;
    let start = match chunk {
        0 => CHUNKS_AT,
        _ => end_of(chunk - 1)?.max(CHUNKS_AT),
    };
    Some(start..end_of(chunk)?)
}

/// Calls `f` with each destination batch, ascending, of vertex `i` of the page.
///
/// Returns `None` if the page is corrupt.
#[inline]
pub(crate) fn each_batch(
    page: &[u8],
    i: usize,
    batches: usize,
    f: impl FnMut(usize),
) -> Option<()> {
    each_in_chunk(page.get(chunk_place(page, i)?)?, i, batches, f)
}

/// As [`each_batch`], given the chunk alone.
#[inline]
pub(crate) fn each_in_chunk(
    bytes: &[u8],
    i: usize,
    batches: usize,
    mut f: impl FnMut(usize),
) -> Option<()> {
    let Some(chunk) = FanoutChunk::parse(bytes, batches)? else {
        return Some(());
    };
    // Batches ascend; one that the graph has not makes the chunk no sense.
    let mut sound = true;
    chunk.each(i % CHUNK_VERTICES, |position| match chunk.batch(position) {
        Some(batch) => f(batch),
        None => sound = false,
    })?;
    sound.then_some(())
}

/// Calls `f(first vertex of the page, chunk)` for each chunk of a page whose vertices have edges.
pub(crate) fn each_chunk(
    page: &[u8],
    batches: usize,
    mut f: impl FnMut(usize, &FanoutChunk<'_>) -> Option<()>,
) -> Option<()> {
    for first in (0..PAGE_VERTICES as usize).step_by(CHUNK_VERTICES) {
        let bytes = page.get(chunk_place(page, first)?)?;
        if let Some(chunk) = FanoutChunk::parse(bytes, batches)? {
            f(first, &chunk)?;
        }
    }
    Some(())
}

/// The destination batches of 64 vertices: those that any of them has, and which of these each has.
#[derive(Clone, Copy, Debug)]
pub struct FanoutChunk<'c> {
    heads: &'c [u8],
    body: &'c [u8],
    union: usize,
    /// Entries of the lists; 0: a bitmap.
    total: usize,
    batches: usize,
}

impl<'c> FanoutChunk<'c> {
    /// Vertices of a chunk.
    pub const VERTICES: usize = CHUNK_VERTICES;

    /// `None` inside: no vertex of the chunk has an edge. `None`: it makes no sense.
    #[inline]
    fn parse(bytes: &'c [u8], batches: usize) -> Option<Option<Self>> {
        if bytes.is_empty() {
            return Some(None);
        }
        let number =
            |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (union, total) = (number(0)?, number(4)?);
        if union == 0 || union > batches {
            return None;
        }
        let body_at = 8 + (union * width(batches as u64 - 1) as usize).div_ceil(8);
        let (heads, body) = (bytes.get(8..body_at)?, bytes.get(body_at..)?);
        let chunk = FanoutChunk {
            heads,
            body,
            union,
            total,
            batches,
        };
        let (of_total, of_entry) = chunk.widths();
        let bytes = match total {
            0 => CHUNK_VERTICES / 8 * union,
            _ => ((CHUNK_VERTICES + 1) * of_total + total * of_entry).div_ceil(8),
        };
        (chunk.body.len() == bytes).then_some(Some(chunk))
    }
    /// Bits of where a list begins, and of an entry.
    #[inline]
    fn widths(&self) -> (usize, usize) {
        let (of_total, of_entry) = (width(self.total as u64), width(self.union as u64 - 1));
        (of_total as usize, of_entry as usize)
    }
    /// Batches that any of its vertices has an edge to.
    #[inline]
    pub fn union(&self) -> usize {
        self.union
    }
    /// One of these; they ascend. `None`: the graph has no such batch.
    #[inline]
    pub fn batch(&self, position: usize) -> Option<usize> {
        let bits = width(self.batches as u64 - 1);
        let batch = field(self.heads, position * bits as usize, bits) as usize;
        (batch < self.batches).then_some(batch)
    }
    /// Calls `f` with the position of each destination batch of vertex `v` of the chunk, ascending.
    ///
    /// Returns `None` if the chunk is corrupt.
    #[inline]
    pub fn each(&self, v: usize, mut f: impl FnMut(usize)) -> Option<()> {
        if self.total == 0 {
            for j in (0..self.union).step_by(56) {
                let bits = (self.union - j).min(56) as u32;
                let mut bits = field(self.body, v * self.union + j, bits);
                while bits != 0 {
                    f(j + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
            return Some(());
        }
        let (of_total, of_entry) = self.widths();
        let entries_at = (CHUNK_VERTICES + 1) * of_total;
        let offset = |v: usize| field(self.body, v * of_total, of_total as u32) as usize;
        let (from, to) = (offset(v), offset(v + 1));
        if to > self.total {
            return None;
        }
        for entry in from..to {
            let at = entries_at + entry * of_entry;
            let position = field(self.body, at, of_entry as u32) as usize;
            if position >= self.union {
                return None;
            }
            f(position);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::SplitMix64;

    #[test]
    fn fanout_pages_round_trip_in_both_forms() {
        let mut random = SplitMix64::new(1);
        for (batches, pairs) in [
            (1, 100),
            (2, 5000),
            (40, 90_000),
            (4096, 300),
            (4096, 200_000),
            (70_000, 5000),
        ] {
            let mut want: Vec<Vec<usize>> = vec![Vec::new(); 4096];
            let mut page = FanoutPage::default();
            for _ in 0..pairs {
                want[random.below(4096) as usize].push(random.below(batches as u64) as usize);
            }
            want[100..300].iter_mut().for_each(Vec::clear);
            want[4095].extend(0..batches.min(500));
            for list in &mut want {
                list.sort_unstable();
                list.dedup();
            }
            for batch in 0..batches {
                for (v, list) in want.iter().enumerate() {
                    if list.binary_search(&batch).is_ok() {
                        page.pairs.push((v as u16, batch as u32));
                    }
                }
            }
            let mut bytes = Vec::new();
            page.put(&mut bytes, batches);
            for (v, list) in want.iter().enumerate() {
                let mut got = Vec::new();
                each_batch(&bytes, v, batches, |batch| got.push(batch)).unwrap();
                assert_eq!(&got, list, "vertex {v} of {batches} batches");
            }
        }
    }

    #[test]
    fn fanout_page_damage_is_refused_or_harmless() {
        let mut page = FanoutPage {
            pairs: (0..4000).map(|i| (i, u32::from(i % 30))).collect(),
            ..Default::default()
        };
        page.pairs.sort_by_key(|&(_, batch)| batch);
        let mut bytes = Vec::new();
        page.put(&mut bytes, 30);
        let mut random = SplitMix64::new(2);
        for _ in 0..3000 {
            let mut bad = bytes.clone();
            let at = random.below(bad.len() as u64) as usize;
            bad[at] ^= 1 << random.below(8);
            bad.truncate(bad.len() - random.below(3) as usize);
            for v in (0..4096).step_by(37) {
                let _ = each_batch(&bad, v, 30, |batch| assert!(batch < 30));
            }
        }
    }
}
