//! The start of the bucket executor: rows of cells in memory, and the data plane of all ranks.

use graphmill_graph::Layout;

use crate::cache::cells::sums;
use crate::context::ExecContext;
use crate::engine::Engine;
use crate::error::{EngineError, ensure};
use crate::exec::bucket::plane::BucketPlane;

impl Engine {
    /// Loads the rows of this rank and joins the data planes, if the run is by the bucket executor.
    pub(crate) fn with_buckets(mut self) -> Result<Self, EngineError> {
        let Some(options) = self.common.options.buckets else {
            return Ok(self);
        };
        let graph = self.graph();
        ensure(graph.layout() == Layout::Column, || {
            EngineError::NeedsColumns {
                what: "a pass by buckets",
                path: graph.path().to_path_buf(),
            }
        })?;
        let weighted = self.common.sizes.weighted;
        let transposed = [false, true]
            .into_iter()
            .take(1 + usize::from(self.transposed.is_some()));
        for transposed in transposed {
            let view = self.transposed.as_ref().filter(|_| transposed);
            let view = view.unwrap_or(&self.stored);
            let context = ExecContext::new(&self.common, view);
            let room = context.budget.available();
            self.cache.pin(&context, transposed, weighted, room)?;
            let [data, lists, _] = sums(&context, weighted);
            let is_whole = data == 0 || self.cache.orientation(transposed).has_all(weighted);
            ensure(is_whole, || EngineError::TooSmall {
                what: "the rows of edges of this rank",
                least: context.budget.total() - room + data + lists,
                budget: context.budget.total(),
            })?;
        }
        self.take_loading();
        self.buckets = Some(BucketPlane::join(&self.common, self.graph(), options)?);
        Ok(self)
    }
}
