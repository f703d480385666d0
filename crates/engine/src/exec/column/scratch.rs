//! Buffers that the passes of one kind of program keep from one to the next.

use crate::cache::graph_cache::{GraphCache, OrientationCache};
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::phase::slot::scratch::SlotScratch;
use crate::exec::column::phase::sparse::adjacency::AdjacencyScratch;
use crate::exec::column::phase::sparse::index_lookup::SparseScratch;
use crate::memory::plan::PassMemory;
use crate::messages::buffer::MessageBuffer;
use crate::planner::routing::RoutingPlanner;
use crate::program::edge::EdgeProgram;

/// The scratch memory that the passes of one kind of program reuse.
pub(crate) struct ColumnScratch<P: EdgeProgram> {
    pub(crate) messages: Option<MessageBuffer<P::Message>>,
    /// The routing planners of the stored graph and of the transposed one.
    pub(crate) routing_planners: [Option<RoutingPlanner>; 2],
    pub(crate) slot: SlotScratch<P::Accumulator, P::Message>,
    pub(crate) sparse: SparseScratch<P>,
    /// For sparse passes over lists.
    pub(crate) adjacency: Option<AdjacencyScratch<P>>,
    /// Sparse passes that might have used adjacency lists, of the stored and the transposed graph.
    pub(crate) sparse_passes: [u32; 2],
    pub(crate) memory: Option<PassMemory>,
    /// Bytes of `keep` for routing tables.
    pub(crate) table_budget: u64,
    /// True if column groups have fewer strips for that.
    pub(crate) has_fewer_strips: bool,
    /// Bytes of the budget that passes still take when they need them: no cells are cached there.
    pub(crate) keep: u64,
    pub(crate) weighted: bool,
}

impl<P: EdgeProgram> Default for ColumnScratch<P> {
    fn default() -> Self {
        ColumnScratch {
            messages: None,
            routing_planners: [None, None],
            slot: SlotScratch::default(),
            sparse: SparseScratch::default(),
            adjacency: None,
            sparse_passes: [0; 2],
            memory: None,
            table_budget: 0,
            has_fewer_strips: false,
            keep: 0,
            weighted: false,
        }
    }
}

impl<P: EdgeProgram> ColumnScratch<P> {
    pub(crate) fn messages_resident(&self) -> bool {
        self.messages.as_ref().is_none_or(MessageBuffer::in_memory)
    }

    /// True if a sparse pass folds as a dense one does.
    pub(crate) fn allows_sparse(program: &P, stored: &ExecContext) -> bool {
        program.is_exact() || stored.shape.strips <= 1
    }

    /// True if sparse passes go over lists.
    pub(crate) fn follows(&self, context: &ExecContext, cached: &OrientationCache) -> bool {
        self.adjacency.is_some() && cached.has_lists(context, self.weighted)
    }

    /// Makes the streams that cells are read by.
    pub(crate) fn streams(&mut self, context: &ExecContext) -> Result<(), EngineError> {
        let Some(memory) = self.memory else {
            return Ok(());
        };
        let before = context.budget.available();
        while self.slot.streams.len() < memory.readers {
            let streams = CellStreams::new(context, memory.stream)?;
            self.slot.streams.push(streams);
        }
        let taken = before - context.budget.available();
        self.keep = self.keep.saturating_sub(taken);
        Ok(())
    }

    /// Makes what a dense pass works with.
    pub(crate) fn dense(
        &mut self,
        context: &ExecContext,
        transposed: bool,
        cache: &GraphCache,
    ) -> Result<(), EngineError> {
        if cache.orientation(transposed).is_fully_cached() != Some(true) {
            self.streams(context)?;
        }
        let Some(memory) = self.memory else {
            return Ok(());
        };
        let before = context.budget.available();
        while self.slot.idle_accumulators.len() < memory.sets {
            let set = Accumulators::unfilled(context, context.shape.entries)?;
            self.slot.idle_accumulators.push(set);
        }
        let taken = before - context.budget.available();
        self.keep = self.keep.saturating_sub(taken);
        Ok(())
    }
}
