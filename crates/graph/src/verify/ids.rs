//! Checks that ids ascend, and that each page and the list of first ids say where they are.

use std::sync::Arc;

use graphmill_storage::{CancelToken, MemoryBudget};

use crate::error::FormatError;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::vertex::ids::id::{IDS, Id, SIGN};

/// Pages that are read ahead.
const PAGES: usize = 4;

/// Puts an id of bytes in the place of the one before it; false if it is not greater.
fn ascends(last: &mut Option<Vec<u8>>, id: &[u8]) -> bool {
    let ascends = last.as_ref().is_none_or(|last| &last[..] < id);
    let last = last.get_or_insert_default();
    last.clear();
    last.extend_from_slice(id);
    ascends
}

/// Checks the ids of a graph; ends early when `stop` is requested.
pub(crate) fn verify(
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
    stop: &CancelToken,
) -> Result<(), FormatError> {
    let (ids, pages) = (graph.ids(), graph.ids().pages() as u64);
    let mut reader = PageCache::new(graph, budget, PAGES)?;
    let (mut integer, mut text) = (None, None::<Vec<u8>>);
    for number in 0..pages {
        if stop.is_cancelled() {
            return Ok(());
        }
        let bytes = reader.page_ahead(IDS, number, pages - 1)?;
        let mut is_first = true;
        let read = ids.page(number as usize, bytes).and_then(|page| {
            page.each(|id| {
                let is_at_home =
                    !std::mem::take(&mut is_first) || ids.is_first(number as usize, id);
                is_at_home
                    && match id {
                        Id::Integer(id) => integer.replace(id).is_none_or(|last| last < id),
                        Id::Signed(id) => {
                            let id = id as u64 ^ SIGN;
                            integer.replace(id).is_none_or(|last| last < id)
                        }
                        Id::Text(id) => ascends(&mut text, id),
                        Id::Uuid(id) => ascends(&mut text, &id),
                    }
            })
        });
        read.ok_or_else(|| graph.broken_page(number))?;
    }
    Ok(())
}
