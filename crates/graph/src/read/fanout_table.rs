//! The fan-out of a range of vertices, in memory: for each, the destination batches its edges go to.

use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::{Buffer, DataKind, MemoryBudget, Tiers};

use crate::error::FormatError;
use crate::file::page::FileSide;
use crate::open::column_set::ColumnSet;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::vertex::fanout_pages::each_batch;
use crate::vertex::packed::{PAGE_VERTICES, pages_of};

/// The stored fan-out lists of a range of vertices, resident: a list is found by two look-ups.
#[derive(Debug)]
pub struct FanoutTable {
    graph: Arc<StoredGraph>,
    side: FileSide,
    pages: Range<u64>,
    /// Where in the file the bytes begin.
    start: u64,
    bytes: Option<Buffer>,
}

impl FanoutTable {
    /// Bytes of the budget that the table of vertices `range` would take.
    pub fn memory(set: &ColumnSet, range: &Range<u64>) -> u64 {
        let place = Self::place(set, range);
        (place.end - place.start).next_multiple_of(4096)
    }
    fn place(set: &ColumnSet, range: &Range<u64>) -> Range<u64> {
        let index = &set.fanout_pages;
        let positions = index.positions(pages_of(range));
        if positions.is_empty() {
            return 0..0;
        }
        index.at(positions.start).1.start..index.at(positions.end - 1).1.end
    }
    /// Reads the lists of vertices `range` of one side of the graph.
    ///
    /// # Errors
    /// The graph has no such side, reading fails, or the budget has no room.
    pub fn load(
        graph: &Arc<StoredGraph>,
        side: FileSide,
        reader: &mut PageCache,
        (tiers, budget): (&Tiers, &MemoryBudget),
        range: Range<u64>,
    ) -> Result<Self, FormatError> {
        let set = graph.side(side)?;
        let place = Self::place(set, &range);
        let length = (place.end - place.start) as usize;
        let mut bytes = None;
        if length > 0 {
            let mut buffer = tiers.buffer(DataKind::Index, budget, "fan-out lists", length)?;
            let (mut at, mut part) = (0, Vec::new());
            while at < length {
                part.clear();
                let now = (length - at).min(1 << 18);
                let from = place.start + at as u64;
                reader.read(set.fanout_id(), from..from + now as u64, &mut part)?;
                buffer[at..at + now].copy_from_slice(&part);
                at += now;
            }
            bytes = Some(buffer);
        }
        Ok(FanoutTable {
            graph: Arc::clone(graph),
            side,
            pages: pages_of(&range),
            start: place.start,
            bytes,
        })
    }
    /// Calls `f` with each destination batch, ascending, that vertex `v` of the range has an edge to.
    ///
    /// # Errors
    /// The vertex is not in the range, or its list makes no sense.
    #[inline]
    pub fn each(&self, v: u64, f: impl FnMut(usize)) -> Result<(), FormatError> {
        let set = self.graph.side(self.side)?;
        let number = v / PAGE_VERTICES;
        if !self.pages.contains(&number) {
            let what = format!("vertex {v} is not in the fan-out table");
            return Err(FormatError::misuse(what));
        }
        let Some(place) = set.fanout_pages.find(number) else {
            return Ok(());
        };
        let range = (place.start - self.start) as usize..(place.end - self.start) as usize;
        let page = self.bytes.as_ref().and_then(|bytes| bytes.get(range));
        let (local, batches) = ((v % PAGE_VERTICES) as usize, self.graph.batches().len());
        page.and_then(|page| each_batch(page, local, batches, f))
            .ok_or_else(|| self.graph.broken_fanout(set, place.start))
    }
}
