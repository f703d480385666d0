//! Checks that both lists of the order are permutations of the vertices, each the inverse of the other.
//!
//! A window of the indices by rank is in memory while all ranks by index go by: where each rank leads back to the index that
//! it stands for, no two are the same. The less memory, the more windows, and the more often the ranks are read.

use std::sync::Arc;

use graphmill_storage::{CancelToken, MemoryBudget};

use crate::error::FormatError;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::vertex::order::{ORDER, Order, entry_bytes};

/// Pages that are read ahead.
const PAGES: usize = 4;
/// Vertices of a window at least, and vertices between two looks at who wants to stop.
const WINDOW_MIN: u64 = 1 << 13;
const RUN: u64 = 1 << 20;

/// Checks the order of a graph; ends early when `stop` is requested.
pub(crate) fn verify(
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
    stop: &CancelToken,
) -> Result<(), FormatError> {
    if graph.order() == Order::Id {
        return Ok(());
    }
    let mut reader = PageCache::new(graph, budget, PAGES)?;
    let vertices = graph.vertices();
    let window = (budget.available() / 2 / size_of::<u64>() as u64).max(WINDOW_MIN);
    let window = window.min(vertices);
    let bytes = window as usize * size_of::<u64>();
    let mut list = budget.buffer("the order of vertices", bytes)?;
    let mut first = 0;
    while first < vertices {
        let ranks = first..vertices.min(first + window);
        let indices = &mut list.typed_mut::<u64>()[..(ranks.end - first) as usize];
        let mut places = indices.iter_mut();
        graph.entries(&mut reader, vertices, ranks, |index| {
            if let Some(place) = places.next() {
                *place = index;
            }
        })?;
        for from in (0..vertices).step_by(RUN as usize) {
            if stop.is_cancelled() {
                return Ok(());
            }
            let (mut v, mut broken) = (from, None);
            graph.each_rank(&mut reader, from..vertices.min(from + RUN), |rank| {
                let index = rank
                    .checked_sub(first)
                    .and_then(|at| indices.get(at as usize));
                if index.is_some_and(|index| *index != v) {
                    broken = broken.or(Some(v));
                }
                v += 1;
            })?;
            if let Some(v) = broken {
                let what = format!("vertex index {v} has a rank that is another vertex's");
                return Err(graph.corrupt(ORDER, v * entry_bytes(vertices), what));
            }
        }
        first += window;
    }
    Ok(())
}
