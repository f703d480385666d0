//! What an open graph says of its vertices, page by page: out-degrees, and the destination batches of each.

use std::ops::Range;

use crate::error::FormatError;
use crate::file::page::DISK_PAGE_BYTES;
use crate::open::column_set::ColumnSet;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::vertex::degree_pages::DegreePage;
use crate::vertex::fanout_pages::{
    CHUNKS_AT, FanoutChunk, chunk_place, each_batch, each_chunk, each_in_chunk,
};
use crate::vertex::packed::{PAGE_VERTICES, pages_of};

impl StoredGraph {
    /// Out-degrees in `set` of the vertices of a batch, in order; `out` has one place for each.
    ///
    /// # Errors
    /// Reading fails; a degree does not fit a `T`.
    pub fn degrees<T: TryFrom<u64>>(
        &self,
        set: &ColumnSet,
        reader: &mut PageCache,
        batch: usize,
        out: &mut [T],
    ) -> Result<(), FormatError> {
        self.degrees_in(set, reader, self.batches().range(batch), out)
    }
    /// The same of a range of vertex indices, which is not empty.
    ///
    /// # Errors
    /// Reading fails; a degree does not fit a `T`; the graph has no such vertices.
    pub fn degrees_in<T: TryFrom<u64>>(
        &self,
        set: &ColumnSet,
        reader: &mut PageCache,
        range: Range<u64>,
        out: &mut [T],
    ) -> Result<(), FormatError> {
        if range.is_empty()
            || range.end > self.vertices()
            || out.len() as u64 != range.end - range.start
        {
            let places = out.len();
            let what = format!("degrees of vertices {range:?} into {places} places");
            return Err(FormatError::misuse(what));
        }
        let file = set.degrees.id;
        let mut next = range.start;
        let put = |vertex: u64, degree: u64, out: &mut [T]| {
            let put =
                T::try_from(degree).map(|degree| out[(vertex - range.start) as usize] = degree);
            put.map_err(|_| FormatError::DegreeTooLarge { vertex, degree })
        };
        let mut bytes = Vec::new();
        for at in set.degree_pages.positions(pages_of(&range)) {
            let (number, place) = set.degree_pages.at(at);
            bytes.clear();
            reader.read(file, place.clone(), &mut bytes)?;
            let page = DegreePage::parse(&bytes).ok_or_else(|| {
                self.corrupt(file, place.start, "a page of degrees makes no sense")
            })?;
            let first = number * PAGE_VERTICES;
            for v in next..first.max(next) {
                put(v, 0, out)?;
            }
            for v in first.max(range.start)..(first + PAGE_VERTICES).min(range.end) {
                put(v, page.get((v - first) as usize), out)?;
            }
            next = (first + PAGE_VERTICES).clamp(range.start, range.end);
        }
        (next..range.end).try_for_each(|v| put(v, 0, out))
    }
    /// Calls `f(vertex, chunk)` for each chunk of 64 vertices with a vertex in a range of indices.
    ///
    /// `vertex` is the first of the chunk. It skips chunks that no edge of `set` leaves.
    ///
    /// # Errors
    /// Reading fails, or `f` says (`None`) that a chunk makes no sense.
    pub fn fanouts_in(
        &self,
        set: &ColumnSet,
        reader: &mut PageCache,
        range: Range<u64>,
        mut f: impl FnMut(u64, &FanoutChunk<'_>) -> Option<()>,
    ) -> Result<(), FormatError> {
        let (file, mut bytes) = (set.fanout_id(), Vec::new());
        for position in set.fanout_pages.positions(pages_of(&range)) {
            let (number, place) = set.fanout_pages.at(position);
            bytes.clear();
            reader.read(file, place.clone(), &mut bytes)?;
            let first = number * PAGE_VERTICES;
            each_chunk(&bytes, self.batches().len(), |local, chunk| {
                let v = first + local as u64;
                match v < range.end && v + FanoutChunk::VERTICES as u64 > range.start {
                    true => f(v, chunk),
                    false => Some(()),
                }
            })
            .ok_or_else(|| self.broken_fanout(set, place.start))?;
        }
        Ok(())
    }
    /// Calls `f` with each destination batch, ascending, that vertex `v` has an edge to in `set`.
    ///
    /// # Errors
    /// Reading fails.
    pub fn destination_batches(
        &self,
        set: &ColumnSet,
        reader: &mut PageCache,
        v: u64,
        f: impl FnMut(usize),
    ) -> Result<(), FormatError> {
        let Some(place) = set.fanout_pages.find(v / PAGE_VERTICES) else {
            return Ok(());
        };
        let (local, batches) = ((v % PAGE_VERTICES) as usize, self.batches().len());
        let file = set.fanout_id();
        let from = (place.start % DISK_PAGE_BYTES) as usize;
        let bytes = (place.end - place.start) as usize;
        let done = if from + bytes <= DISK_PAGE_BYTES as usize {
            let whole = reader.page(file, place.start / DISK_PAGE_BYTES)?;
            let page = whole.get(from..from + bytes);
            page.and_then(|page| each_batch(page, local, batches, f))
        } else {
            // The page reaches into the next disk page, as the chunk may too.
            let mut part = Vec::new();
            let at = |byte: usize| place.start + byte as u64;
            reader.read(file, at(0)..at(CHUNKS_AT.min(bytes)), &mut part)?;
            let chunk = chunk_place(&part, local);
            let chunk = chunk.filter(|chunk| chunk.start <= chunk.end && chunk.end <= bytes);
            let chunk = chunk.ok_or_else(|| self.broken_fanout(set, place.start))?;
            part.clear();
            reader.read(file, at(chunk.start)..at(chunk.end), &mut part)?;
            each_in_chunk(&part, local, batches, f)
        };
        done.ok_or_else(|| self.broken_fanout(set, place.start))
    }
    pub(crate) fn broken_fanout(&self, set: &ColumnSet, at: u64) -> FormatError {
        let what = "a page of the fan-out makes no sense";
        self.corrupt(set.fanout_id(), at, what)
    }
}
