//! Values that are vertices: from indices to the ordinals of their ids, which the names of a result are looked up by.

use std::sync::Arc;

use graphmill_graph::{DISK_PAGE_BYTES, GraphDims, Order, PageCache, StoredGraph};
use graphmill_storage::{Lease, MemoryBudget};

use crate::error::Error;
use crate::result::values::ValueColumn;
use crate::result_error::ResultError;

/// Pages of the order that are kept.
const PAGES: u64 = 2;
/// Values that are looked up at a time, at least and at most.
const ROWS_LEAST: u64 = 1 << 14;
const ROWS_MAX: u64 = 1 << 22;
/// Bytes of a value while it is looked up: its index and its ordinal.
const ROW_BYTES: u64 = 16;

/// Replaces indices by ordinals.
///
/// It looks up many values at a time, in ascending order of index, so that a page of the order is read once for them.
pub(super) struct OrdinalLookup {
    graph: Arc<StoredGraph>,
    /// In order of ids an ordinal is the index, and nothing is looked up.
    order: Option<PageCache>,
    rows: usize,
    indices: Vec<u64>,
    ordinals: Vec<u64>,
    _lease: Lease,
}

impl OrdinalLookup {
    /// Bytes of the budget that it takes of a graph at least.
    pub(super) fn bytes_least(graph: &GraphDims) -> u64 {
        let rows = graph.batches.vertices().min(ROWS_LEAST);
        match graph.order {
            Order::Id => 0,
            Order::Degree => PAGES * DISK_PAGE_BYTES + rows * ROW_BYTES,
        }
    }

    /// It leaves `leave` bytes of the free memory, and most of the rest.
    ///
    /// # Errors
    /// The budget has no room for the least.
    pub(super) fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        leave: u64,
    ) -> Result<OrdinalLookup, Error> {
        let is_ordered = graph.order() == Order::Id;
        let free = budget.available().saturating_sub(leave) / 4;
        let rows = (free / ROW_BYTES).clamp(ROWS_LEAST, ROWS_MAX);
        let rows = rows.min(graph.vertices());
        let bytes = if is_ordered { 0 } else { rows * ROW_BYTES };
        Ok(OrdinalLookup {
            graph: Arc::clone(graph),
            order: (!is_ordered)
                .then(|| PageCache::new(graph, budget, PAGES as usize))
                .transpose()?,
            rows: rows.max(1) as usize,
            indices: Vec::new(),
            ordinals: Vec::new(),
            _lease: budget.lease("the order of vertices that are values", bytes)?,
        })
    }

    /// Replaces the index in each row that has a vertex by the ordinal of its id.
    ///
    /// # Errors
    /// A value of `column` is no index of the graph; the order cannot be read.
    pub(super) fn replace(
        &mut self,
        values: &mut ValueColumn,
        column: &'static str,
        has_vertex: impl Fn(&ValueColumn, usize) -> bool,
    ) -> Result<(), Error> {
        let vertices = self.graph.named_vertices();
        for start in (0..values.len()).step_by(self.rows) {
            let rows = start..values.len().min(start + self.rows);
            self.indices.clear();
            for row in rows.clone().filter(|row| has_vertex(values, *row)) {
                let index = values.integer(row);
                if index >= vertices {
                    return Err(Error::Result(ResultError::NoVertex {
                        column,
                        index,
                        vertices,
                    }));
                }
                if self.order.is_some() {
                    self.indices.push(index);
                }
            }
            let Some(order) = &mut self.order else {
                continue;
            };
            self.indices.sort_unstable();
            self.indices.dedup();
            self.ordinals.clear();
            for index in &self.indices {
                self.ordinals.push(self.graph.rank_of(order, *index)?);
            }
            for row in rows {
                if has_vertex(values, row)
                    && let Ok(at) = self.indices.binary_search(&values.integer(row))
                {
                    values.set_integer(row, self.ordinals[at]);
                }
            }
        }
        Ok(())
    }
}
