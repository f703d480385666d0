//! Buffers that slot phases keep from one pass to the next.

use crate::context::Machine;
use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::SpareSets;
use crate::exec::column::kernel::cell_stream::Readers;
use crate::exec::column::kernel::fold::Scratch;
use crate::memory::plan::Stream;
use crate::value::Accumulator;

/// What slot phases keep from one pass to the next.
pub(crate) struct SlotRoom<A, M> {
    pub(crate) free: SpareSets<A>,
    pub(crate) readers: Vec<Readers>,
    pub(crate) scratch: Vec<Scratch<M>>,
    /// Targets of one run.
    pub(crate) group: usize,
}

impl<A, M> Default for SlotRoom<A, M> {
    fn default() -> Self {
        SlotRoom {
            free: SpareSets::default(),
            readers: Vec::new(),
            scratch: Vec::new(),
            group: 0,
        }
    }
}

impl<A: Accumulator, M> SlotRoom<A, M> {
    /// Makes `count` sets of `entries` accumulators each.
    pub(crate) fn sets(
        &mut self,
        machine: &Machine,
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
        machine: &Machine,
        count: usize,
        stream: Stream,
    ) -> Result<(), EngineError> {
        while self.readers.len() < count {
            self.readers.push(Readers::new(machine, stream)?);
        }
        Ok(())
    }
}
