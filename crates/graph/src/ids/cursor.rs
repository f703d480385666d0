//! The ids of a graph in ascending order, a page in memory at a time and the next ones read ahead.

use std::sync::Arc;

use graphmill_storage::Budget;

use super::page::Walk;
use super::{IDS, Id};
use crate::error::FormatError;
use crate::frame_reader::FrameReader;
use crate::meta::IdKind;
use crate::stored::StoredGraph;

/// Gives the ids of a graph in ascending order: by rank.
pub struct IdCursor {
    graph: Arc<StoredGraph>,
    reader: FrameReader,
    next: u64,
    /// The page that the walk is in.
    page: Vec<u8>,
    number: u64,
    left: u32,
    walk: Walk,
}

impl IdCursor {
    /// A cursor whose first id is that of rank `from`.
    ///
    /// # Errors
    /// The budget has no room (about 1 MiB), or reading fails.
    pub fn new(graph: &Arc<StoredGraph>, budget: &Budget, from: u64) -> Result<Self, FormatError> {
        let frames = if graph.ids().kind == IdKind::Dense {
            1
        } else {
            8
        };
        let reader = FrameReader::new(graph, budget, frames)?;
        let mut cursor = IdCursor {
            graph: Arc::clone(graph),
            reader,
            next: from,
            page: Vec::new(),
            number: 0,
            left: 0,
            walk: Walk::default(),
        };
        let ids = graph.ids();
        if ids.kind != IdKind::Dense && from < graph.vertices() {
            let page = ids.starts.partition_point(|&start| start <= from) - 1;
            cursor.number = page as u64;
            cursor.next = ids.starts[page];
            while cursor.next < from {
                cursor.next()?;
            }
        }
        Ok(cursor)
    }
    /// The id of the next vertex; `None` behind the last.
    ///
    /// # Errors
    /// Reading fails.
    #[expect(
        clippy::should_implement_trait,
        reason = "the id is borrowed from the cursor"
    )]
    pub fn next(&mut self) -> Result<Option<Id<'_>>, FormatError> {
        if self.next >= self.graph.vertices() {
            return Ok(None);
        }
        let kind = self.graph.ids().kind;
        self.next += 1;
        if kind == IdKind::Dense {
            return Ok(Some(Id::Integer(self.next - 1)));
        }
        if self.left == 0 {
            self.load()?;
        }
        self.left -= 1;
        if self.walk.step(&self.page, kind).is_none() {
            return Err(self.graph.broken_page(self.number - 1));
        }
        Ok(Some(self.walk.id(kind)))
    }
    fn load(&mut self) -> Result<(), FormatError> {
        let graph = Arc::clone(&self.graph);
        let number = self.number;
        let last = (graph.ids().pages() as u64).saturating_sub(1);
        self.page.clear();
        self.page.extend_from_slice(self.reader.frame_ahead(
            IDS,
            number,
            (number + 7).min(last),
        )?);
        let page = graph.ids().page(number as usize, &self.page);
        let page = page.ok_or_else(|| graph.broken_page(number))?;
        self.walk = page.walk(0).ok_or_else(|| graph.broken_page(number))?;
        self.left = page.count;
        self.number = number + 1;
        Ok(())
    }
}
