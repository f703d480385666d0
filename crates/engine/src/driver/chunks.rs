//! Graphs of unsorted chunks: what needs columns, and the transposed chunks, which the first pass against the arcs makes.

use std::sync::Arc;

use graphmill_graph::Layout;

use crate::context::ExecContext;
use crate::engine::Engine;
use crate::error::{EngineError, ensure};
use crate::exec::stream::transpose::transpose;
use crate::graph_view::GraphView;

impl Engine {
    /// Fails if the graph has no columns, in which edges of single vertices are found.
    pub(crate) fn needs_columns(&self, what: &'static str) -> Result<(), EngineError> {
        let graph = self.graph();
        ensure(self.buckets.is_none(), || EngineError::NotInBuckets {
            what,
        })?;
        ensure(graph.layout() == Layout::Column, || {
            let path = graph.path().to_path_buf();
            EngineError::NeedsColumns { what, path }
        })
    }

    /// Makes the transposed chunks, unless the graph has them.
    pub(crate) fn transpose_chunks(&mut self) -> Result<(), EngineError> {
        if self.graph().symmetric() || self.transposed.is_some() {
            return Ok(());
        }
        let began = self.common.clock.now();
        self.release();
        self.use_workers_that_fit(|engine| {
            let chunks = engine.common.shape.chunks();
            chunks.map_or(0, |chunks| chunks.transposing_bytes(chunks.transposed))
        });
        let context = ExecContext::new(&self.common, &self.stored);
        let made = transpose(&context).map_err(|error| self.too_small(error));
        self.broken = made.is_err();
        let (graph, report) = made?;
        self.transposed = Some(GraphView::new(Arc::new(graph), &self.common.budget)?);
        self.end_pass(began, report);
        Ok(())
    }
}
