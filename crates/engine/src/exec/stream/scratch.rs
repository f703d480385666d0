//! Buffers that the passes of one kind of program keep from one to the next.

use graphmill_graph::ChunkSet;
use graphmill_storage::Buffer;

use crate::config::UpdateResidency;
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::pass::Pass;
use crate::exec::stream::bins::{AccumulatorSet, Bins};
use crate::exec::stream::peers::Peers;
use crate::exec::stream::service::{QUEUE_DEPTH, ServiceState};
use crate::exec::stream::storage_engine::{ChunkPlacement, StorageEngine};
use crate::exec::stream::updates::UpdateFile;
use crate::memory::stream::{SERVED, StreamMemory};
use crate::program::edge::EdgeProgram;
use crate::program::footprint::ProgramFootprint;
use crate::value::EdgeValue;

/// What a pass works with.
pub(crate) struct PassBuffers {
    pub(crate) service: ServiceState,
    pub(crate) bins: Bins,
    /// For the messages of batches.
    pub(crate) messages: Vec<Buffer>,
    /// Accumulators for gather, at `IDENTITY`.
    pub(crate) sets: Vec<AccumulatorSet>,
    /// Workers read the data of edges.
    pub(crate) reads_data: bool,
    pub(crate) memory: StreamMemory,
}

impl PassBuffers {
    /// True if no update is written.
    pub(crate) fn is_resident(&self) -> bool {
        self.memory.resident >= self.bins.len()
    }

    /// Allocates the buffers, which the first pass of a kind of program does for all passes.
    pub(crate) fn new<P: EdgeProgram>(
        pass: &Pass<'_, P>,
        chunks: &ChunkSet,
    ) -> Result<Self, EngineError> {
        let context = pass.context;
        let reads_data = P::Edge::WEIGHTED && context.graph.edge_kind().bytes() > 0;
        let memory = Self::plan(pass, reads_data)?;
        let budget = &context.budget;
        let buffers = |what: &'static str, count: usize, bytes: usize| {
            let buffers = (0..count).map(|_| budget.buffer(what, bytes));
            buffers.collect::<Result<Vec<_>, _>>()
        };
        let mut bins = Bins::new(context, &memory, size_of::<P::Accumulator>())?;
        for batch in most_reached(context, chunks, memory.resident)? {
            let entries = 1 << context.batches.bits(batch);
            let accumulators = Accumulators::new(context, entries, pass.program.identity())?;
            bins.keep(batch, accumulators.into_buffer());
        }
        let peers = match context.fabric.clone().filter(|_| !context.ranks.alone()) {
            None => None,
            Some(fabric) => Some(Peers::new(
                fabric,
                buffers("chunks for other ranks", SERVED, memory.slot_bytes)?,
                buffers("updates of other ranks", SERVED, memory.bin_bytes)?,
            )),
        };
        let updates = match memory.resident < bins.len() {
            true => Some(UpdateFile::create(context, memory.bin_bytes)?),
            false => None,
        };
        let set = |_| {
            let set = Accumulators::new(context, context.shape.entries, pass.program.identity());
            Ok::<_, EngineError>(AccumulatorSet::passing(set?.into_buffer()))
        };
        Ok(PassBuffers {
            service: ServiceState::new(
                context.disk.queue(QUEUE_DEPTH)?,
                StorageEngine::new(bins.len(), updates),
                buffers("chunks on their way", memory.window, memory.slot_bytes)?,
                buffers("bins of updates", memory.spare_bins, memory.bin_bytes)?,
                peers,
            ),
            bins,
            messages: buffers("messages of batches", memory.open, memory.message_bytes)?,
            sets: (0..memory.sets).map(set).collect::<Result<_, _>>()?,
            reads_data,
            memory,
        })
    }

    /// Divides the memory that vertex rows leave.
    fn plan<P: EdgeProgram>(
        pass: &Pass<'_, P>,
        reads_data: bool,
    ) -> Result<StreamMemory, EngineError> {
        let context = pass.context;
        let sizes = ProgramFootprint {
            rows: pass.staged_bytes(),
            weighted: reads_data,
            ..ProgramFootprint::of::<P>()
        };
        let (budget, shape) = (&context.budget, &context.shape);
        let besides = shape.beside_chunks(sizes).max(pass.borrowed);
        let free = context.message_memory(0).saturating_sub(besides);
        let choice = context.options.updates;
        let most = match choice {
            UpdateResidency::Disk => 0,
            UpdateResidency::Auto | UpdateResidency::Memory => usize::MAX,
        };
        let all = context.batches.len();
        let chunks = shape.chunks();
        let memory = chunks.and_then(|chunks| chunks.plan(sizes, free, most));
        let is_enough =
            |memory: &StreamMemory| choice != UpdateResidency::Memory || memory.resident == all;
        let memory = memory.filter(is_enough).ok_or_else(|| {
            let with_all = choice == UpdateResidency::Memory;
            let least = chunks.map_or(0, |chunks| chunks.least(sizes, with_all));
            EngineError::TooSmall {
                what: "an edge pass",
                least: budget.total() - budget.available() + besides + least,
                budget: budget.total(),
            }
        })?;
        // All ranks have bins of one size, and the accumulators of the same batches in memory.
        let bin_bytes = context.ranks.least(memory.bin_bytes as u64)? as usize;
        let resident = context.ranks.least(memory.resident as u64)? as usize;
        let chunks = chunks.ok_or(EngineError::Broken)?;
        Ok(chunks.reduced(sizes, memory, (bin_bytes, resident)))
    }
}

/// Which chunks of a graph are at which rank.
pub(crate) fn placement(context: &ExecContext, chunks: &ChunkSet) -> ChunkPlacement {
    ChunkPlacement {
        engines: context.ranks.count(),
        own: context.ranks.rank(),
        // Of a copy in scratch each rank has its own file.
        by_file: !chunks.is_stored() || context.chunks_by_file,
    }
}

/// The batches with most arcs into them, as many as `count`.
fn most_reached(
    context: &ExecContext,
    chunks: &ChunkSet,
    count: usize,
) -> Result<Vec<usize>, EngineError> {
    let mut all: Vec<usize> = (0..context.batches.len()).collect();
    let mut arcs: Vec<u64> = all.iter().map(|batch| chunks.arcs_into(*batch)).collect();
    if !chunks.is_stored() {
        // Of a copy in scratch each rank knows its own file.
        context.ranks.add_up(&mut arcs)?;
    }
    all.sort_by_key(|batch| (std::cmp::Reverse(arcs[*batch]), *batch));
    all.truncate(count);
    Ok(all)
}
