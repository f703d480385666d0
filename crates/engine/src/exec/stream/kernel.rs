//! The steps of a superstep that know the program. All else of the executor is compiled once for all programs.

use std::sync::Mutex;

use graphmill_graph::{ChunkRun, ChunkView};
use graphmill_raw::{lock, simd};
use graphmill_storage::Buffer;
use zerocopy::FromBytes;

use crate::error::EngineError;
use crate::exec::column::kernel::apply_batch::BatchApply;
use crate::exec::column::kernel::fold_block::{BlockWeights, with_edges};
use crate::exec::column::kernel::pass::Pass;
use crate::exec::column::kernel::signal_batch::signal_batch;
use crate::exec::stream::bins::{AccumulatorSet, Bin, parts_mut};
use crate::frontier::active_set::ActiveSet;
use crate::memory::run_bytes;
use crate::messages::batch::SignalledMessages;
use crate::messages::run_codec;
use crate::program::current_call::CurrentCall;
use crate::program::edge::{ApplyTo, EdgeProgram};
use crate::value::{Accumulator, EdgeValue, Reduce};

/// Arcs that are decoded before the first of them is worked on.
const DECODED: usize = 1024;

/// A part of a run of a chunk, the messages of its sources, and the data of the arcs of the chunk.
pub(crate) struct ArcRun<'r> {
    pub(crate) view: &'r ChunkView<'r>,
    pub(crate) run: ChunkRun,
    pub(crate) source_batch: usize,
    pub(crate) messages: &'r SignalledMessages,
    pub(crate) data: &'r [u8],
}

/// A program, over the bytes of its messages and accumulators.
pub(crate) trait StreamKernel: Sync {
    /// Bytes of the messages of a batch of `span` vertices.
    fn message_bytes(&self, span: usize) -> usize;
    /// True if `apply` is called for all vertices.
    fn applies_all(&self) -> bool;
    /// Signals the active vertices of a batch; returns the number of messages.
    fn signal(&self, batch: usize, buffer: &mut Buffer, worker: usize) -> Result<u64, EngineError>;
    /// Appends an update to a bin for each arc whose source emitted a message.
    fn append(&self, input: &ArcRun<'_>, bin: &mut Bin, capacity: usize);
    /// Folds updates, which are indices and accumulators, into a set of a batch.
    fn fold(
        &self,
        batch: usize,
        updates: (&[u32], &[u8]),
        set: &mut AccumulatorSet,
    ) -> Result<(), EngineError>;
    /// Merges a set of a batch into another one, and clears it.
    fn merge(&self, batch: usize, total: &mut AccumulatorSet, later: &mut AccumulatorSet);
    /// Sets all accumulators to the identity.
    fn clear(&self, set: &mut AccumulatorSet);
    /// Applies a batch whose accumulators are complete, and clears them.
    fn apply(
        &self,
        batch: usize,
        set: &mut AccumulatorSet,
        worker: usize,
    ) -> Result<(), EngineError>;
}

/// A program during one superstep.
pub(crate) struct ProgramKernel<'p, P: EdgeProgram> {
    pass: Pass<'p, P>,
    activated: &'p ActiveSet,
    /// Of each batch, what `apply` returned.
    sums: Vec<Mutex<P::Sum>>,
}

impl<'p, P: EdgeProgram> ProgramKernel<'p, P> {
    pub(crate) fn new(pass: Pass<'p, P>, activated: &'p ActiveSet) -> Self {
        let batches = pass.context.batches.len();
        ProgramKernel {
            pass,
            activated,
            sums: (0..batches).map(|_| Mutex::new(P::Sum::ZERO)).collect(),
        }
    }

    /// The sums of this rank's batches, in order.
    pub(crate) fn sums(&self) -> Vec<P::Sum> {
        let own = self.pass.context.ranks.own();
        own.map(|batch| *lock(&self.sums[batch])).collect()
    }
}

impl<P: EdgeProgram> StreamKernel for ProgramKernel<'_, P> {
    fn message_bytes(&self, span: usize) -> usize {
        run_bytes::bytes_max(span, size_of::<P::Message>())
    }

    fn applies_all(&self) -> bool {
        self.pass.program.apply_to() == ApplyTo::All
    }

    fn signal(&self, batch: usize, buffer: &mut Buffer, worker: usize) -> Result<u64, EngineError> {
        let span = self.pass.context.batches.span(batch) as usize;
        let (values, present) = run_codec::parts_mut(buffer, span);
        present.fill(0);
        signal_batch(&self.pass, batch, (values, present), worker)
    }

    fn append(&self, input: &ArcRun<'_>, bin: &mut Bin, capacity: usize) {
        simd::dispatch(
            #[inline(always)]
            || append(&self.pass, input, bin, capacity),
        );
    }

    fn fold(
        &self,
        batch: usize,
        (indices, values): (&[u32], &[u8]),
        set: &mut AccumulatorSet,
    ) -> Result<(), EngineError> {
        let values = <[P::Accumulator]>::ref_from_bytes(values);
        let values = values.map_err(|_| EngineError::Broken)?;
        let start = self.pass.context.batches.start(batch);
        let accumulators = set.memory.typed_mut::<P::Accumulator>();
        set.is_touched = true;
        simd::dispatch(
            #[inline(always)]
            || {
                // Their number is a power of two, so that a mask replaces the bounds check.
                let mask = accumulators.len() - 1;
                let current = CurrentCall::new();
                for (index, value) in indices.iter().zip(values) {
                    let local = *index as usize & mask;
                    current.at(start + local as u64);
                    self.pass.program.merge(&mut accumulators[local], *value);
                }
            },
        );
        Ok(())
    }

    fn merge(&self, batch: usize, total: &mut AccumulatorSet, later: &mut AccumulatorSet) {
        total.is_touched |= later.is_touched;
        let identity = self.pass.program.identity();
        let current = CurrentCall::new();
        let start = self.pass.context.batches.start(batch);
        let totals = total.memory.typed_mut::<P::Accumulator>();
        let pairs = totals
            .iter_mut()
            .zip(later.memory.typed_mut::<P::Accumulator>());
        for (i, (total, later)) in pairs.enumerate() {
            if !later.bit_eq(&identity) {
                current.at(start + i as u64);
                self.pass.program.merge(total, *later);
                *later = identity;
            }
        }
    }

    fn clear(&self, set: &mut AccumulatorSet) {
        set.memory.typed_mut().fill(self.pass.program.identity());
    }

    fn apply(
        &self,
        batch: usize,
        set: &mut AccumulatorSet,
        worker: usize,
    ) -> Result<(), EngineError> {
        let of_batch = BatchApply {
            context: self.pass.context,
            program: self.pass.program,
            needs: self.pass.apply,
            activated: self.activated,
        };
        let sum = of_batch.apply(batch, set.memory.typed_mut(), None, worker)?;
        *lock(&self.sums[batch]) = sum;
        Ok(())
    }
}

#[inline(always)]
fn append<P: EdgeProgram>(pass: &Pass<'_, P>, input: &ArcRun<'_>, bin: &mut Bin, capacity: usize) {
    let (program, batches) = (pass.program, &pass.context.batches);
    let starts = [input.source_batch, input.run.destination_batch].map(|of| batches.start(of));
    let messages = input.messages.slice::<P::Message>();
    let weights = BlockWeights::of::<P::Edge>(pass.context.graph.edge_kind(), input.data);
    let (indices, values) = parts_mut::<P::Accumulator>(&mut bin.buffer, capacity);
    let end = bin.count + input.run.count;
    let (indices, values) = (&mut indices[bin.count..end], &mut values[bin.count..end]);
    let current = CurrentCall::new();
    let (mut sources, mut destinations) = ([0; DECODED], [0; DECODED]);
    let mut to = 0;
    let (first, end) = (input.run.first, input.run.first + input.run.count);
    for first in (first..end).step_by(DECODED) {
        let arcs = DECODED.min(end - first);
        let (sources, destinations) = (&mut sources[..arcs], &mut destinations[..arcs]);
        input.view.decode(first, sources, destinations);
        with_edges!(P, weights, |edge| {
            for (i, (source, destination)) in sources.iter().zip(&*destinations).enumerate() {
                let local = *source as usize;
                if !messages.full && !messages.has(local) {
                    continue;
                }
                let from = starts[0] + u64::from(*source);
                let receiver = starts[1] + u64::from(*destination);
                current.on(from, receiver);
                let message = messages.values[local];
                let carried = program.on_arc(from, receiver, message, edge(first + i));
                let mut value = program.identity();
                program.fold(&mut value, carried);
                (indices[to], values[to]) = (*destination, value);
                to += 1;
            }
        });
    }
    bin.count += to;
}
