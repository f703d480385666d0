//! The start of the bucket executor: rows of cells in memory, and the data plane of all ranks.

use graphmill_graph::Layout;

use crate::cache::cells::{CellCache, sums};
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
        for transposed in [false, true]
            .into_iter()
            .take(1 + usize::from(self.transposed.is_some()))
        {
            self.hold_rows(transposed)?;
        }
        self.take_loading();
        self.buckets = Some(BucketPlane::join(&self.common, self.graph(), options)?);
        Ok(self)
    }

    /// Loads the rows of this rank again if another pass freed some of their memory.
    pub(crate) fn hold_rows(&mut self, transposed: bool) -> Result<(), EngineError> {
        let weighted = self.common.sizes.weighted;
        let view = self.transposed.as_ref().filter(|_| transposed);
        let context = ExecContext::new(&self.common, view.unwrap_or(&self.stored));
        let [data, ..] = sums(&context, weighted);
        if data == 0 || self.cache.orientation(transposed).has_all(weighted) {
            return Ok(());
        }
        self.cache.pin_again(&context, transposed, weighted)?;
        let room = context.budget.available() + self.cache.leased_bytes();
        let is_whole = self.cache.orientation(transposed).has_all(weighted);
        ensure(is_whole, || EngineError::TooSmall {
            what: "the rows of edges of this rank",
            least: (context.budget.total().saturating_sub(room))
                .saturating_add(CellCache::memory(&context, weighted)),
            budget: context.budget.total(),
        })
    }
}
