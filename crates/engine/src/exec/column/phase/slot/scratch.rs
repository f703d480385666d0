//! Buffers that slot phases keep from one pass to the next.

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::AccumulatorPool;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::kernel::fold::DecodeScratch;
use crate::memory::plan::StreamBuffers;
use crate::value::Accumulator;

/// The scratch memory that slot phases reuse.
pub(crate) struct SlotScratch<A, M> {
    pub(crate) free: AccumulatorPool<A>,
    pub(crate) readers: Vec<CellStreams>,
    pub(crate) scratch: Vec<DecodeScratch<M>>,
    /// Targets of one group.
    pub(crate) group: usize,
}

impl<A, M> Default for SlotScratch<A, M> {
    fn default() -> Self {
        SlotScratch {
            free: AccumulatorPool::default(),
            readers: Vec::new(),
            scratch: Vec::new(),
            group: 0,
        }
    }
}

impl<A: Accumulator, M> SlotScratch<A, M> {
    /// Makes `count` sets of `entries` accumulators each.
    pub(crate) fn sets(
        &mut self,
        machine: &ExecContext,
        count: usize,
        entries: usize,
    ) -> Result<(), EngineError> {
        self.free.reserve(machine, count, entries)
    }
    /// Sets of accumulators that were made.
    pub(crate) fn sets_made(&self) -> usize {
        self.free.len()
    }
    /// Makes `count` pairs of streams.
    pub(crate) fn streams(
        &mut self,
        machine: &ExecContext,
        count: usize,
        stream: StreamBuffers,
    ) -> Result<(), EngineError> {
        while self.readers.len() < count {
            self.readers.push(CellStreams::new(machine, stream)?);
        }
        Ok(())
    }
}
