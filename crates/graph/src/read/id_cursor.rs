//! The ids of a graph by rank, cheap where ranks ascend: a page in memory at a time, and the next ones read ahead while every page is
//! asked for.

use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::MemoryBudget;

use crate::error::FormatError;
use crate::file::page::DISK_PAGE_BYTES;
use crate::manifest::IdKind;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::vertex::ids::id::{IDS, Id, RESTART};
use crate::vertex::ids::page::IdPageCursor;

/// Pages that are read at a time.
const PAGES: usize = 8;

/// Gives the ids of a graph in ascending order of ranks.
pub struct IdCursor {
    graph: Arc<StoredGraph>,
    reader: PageCache,
    /// Rank of the next id.
    next: u64,
    /// The page that the walk is in, its number, and the ranks of its ids.
    page: Vec<u8>,
    number: u64,
    ranks: Range<u64>,
    walk: IdPageCursor,
}

impl IdCursor {
    /// Bytes of the budget that one takes.
    pub const BYTES: u64 = (PAGES as u64 + 1) * DISK_PAGE_BYTES;

    /// A cursor whose first id is that of rank `from`.
    ///
    /// # Errors
    /// The budget has no room for [`IdCursor::BYTES`].
    pub fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        from: u64,
    ) -> Result<Self, FormatError> {
        let pages = match graph.ids().kind {
            IdKind::Dense => 1,
            _ => PAGES,
        };
        Ok(IdCursor {
            reader: PageCache::new(graph, budget, pages)?,
            graph: Arc::clone(graph),
            next: from,
            page: Vec::new(),
            number: 0,
            ranks: 0..0,
            walk: IdPageCursor::default(),
        })
    }
    /// The next id will be that of rank `rank`.
    #[inline]
    pub fn seek(&mut self, rank: u64) {
        self.next = rank;
    }
    /// The id of the next vertex; `None` behind the last.
    ///
    /// # Errors
    /// Reading fails.
    #[expect(
        clippy::should_implement_trait,
        reason = "the id is borrowed from the cursor"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Id<'_>>, FormatError> {
        let rank = self.next;
        if rank >= self.graph.named_vertices() {
            return Ok(None);
        }
        let kind = self.graph.ids().kind;
        self.next += 1;
        if kind == IdKind::Dense {
            return Ok(Some(Id::Integer(rank)));
        }
        if !self.ranks.contains(&rank) {
            self.load(rank)?;
        }
        let local = (rank - self.ranks.start) as u32;
        if local < self.walk.next() || local / RESTART > self.walk.next() / RESTART {
            self.restart(local / RESTART)?;
        }
        while self.walk.next() <= local {
            if self.walk.step(&self.page, kind).is_none() {
                return Err(self.graph.broken_page(self.number));
            }
        }
        Ok(Some(self.walk.id(kind)))
    }
    /// Reads the page that has the id of that rank, and those after it where it follows the last one.
    fn load(&mut self, rank: u64) -> Result<(), FormatError> {
        let ids = self.graph.ids();
        let number = (ids.starts.partition_point(|&start| start <= rank) as u64).saturating_sub(1);
        let ahead = match number == self.number + 1 {
            true => (number + PAGES as u64 - 1).min((ids.pages() as u64).saturating_sub(1)),
            false => number,
        };
        self.ranks = 0..0;
        self.page.clear();
        let page = self.reader.page_ahead(IDS, number, ahead)?;
        self.page.extend_from_slice(page);
        let ranks = ids.starts[number as usize]..ids.starts[number as usize + 1];
        self.number = number;
        self.restart(0)?;
        self.ranks = ranks;
        Ok(())
    }
    /// Goes to an id of the page that is stored whole.
    fn restart(&mut self, restart: u32) -> Result<(), FormatError> {
        let page = self.graph.ids().page(self.number as usize, &self.page);
        let there = page.and_then(|page| page.restart(&mut self.walk, restart as usize));
        there.ok_or_else(|| self.graph.broken_page(self.number))
    }
}

impl StoredGraph {
    /// Returns the rank after the ids of the page of `rank` and of the `more` pages after it.
    ///
    /// Returns the number of vertices with ids if there are no pages.
    pub fn rank_after_pages(&self, rank: u64, more: usize) -> u64 {
        let starts = &self.ids().starts;
        let next = starts.partition_point(|&start| start <= rank);
        let after = starts.get(next + more).copied();
        after.unwrap_or(self.named_vertices())
    }
}
