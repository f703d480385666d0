//! A pass of the bucket executor (BlitzG, section III).
//!
//! ```text
//! signal    rows of own vertices -> messages
//! job       emit, send, fold          job.rs
//! apply     accumulators -> rows, next active set
//! ```

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use graphmill_fabric::bucket::{BUCKET_BYTES, message_parts};
use graphmill_raw::lock;
use graphmill_storage::{Buffer, Lease, Worker};

use crate::cache::cells::CellCache;
use crate::cache::graph_cache::GraphCache;
use crate::config::CombineChoice;
use crate::context::{ExecContext, each_batch};
use crate::error::{EngineError, ensure};
use crate::exec::bucket::emit::{CellTasks, Emitter};
use crate::exec::bucket::job::BucketJob;
use crate::exec::bucket::kernel::{BucketKernel, LaneAccumulators, MessageKernel};
use crate::exec::bucket::plane::BucketPlane;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::apply_batch::BatchApply;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::column::kernel::signal_batch::signal_batch;
use crate::memory::run_bytes;
use crate::messages::batch::SignalledMessages;
use crate::messages::run_codec;
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::edge::{ApplyTo, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::value::Reduce;

/// Memory that the passes of one kind of program keep from one to the next.
pub(crate) struct BucketBuffers {
    /// The messages of each own batch.
    messages: Vec<SignalledMessages>,
    pub(crate) lanes: Vec<Mutex<LaneAccumulators>>,
    /// Of each worker, accumulators for combined messages, at the identity.
    combined: Vec<Option<Buffer>>,
    /// For messages of blocks, and parts of jumbo messages.
    _waiting_messages: Lease,
}

impl BucketBuffers {
    /// Returns buffers for a program whose messages go into lists. The lanes have no memory yet.
    pub(crate) fn of_lists<P: EdgeProgram>(
        context: &ExecContext,
        plane: &BucketPlane,
    ) -> Result<Self, EngineError> {
        let (ranks, batches) = (&context.ranks, &context.batches);
        let messages = ranks.own().map(|batch| {
            let span = batches.span(batch) as usize;
            let bytes = run_bytes::bytes_max(span, size_of::<P::Message>());
            let buffer = context.budget.buffer("messages of batches", bytes)?;
            Ok(SignalledMessages {
                buffer,
                span,
                count: 0,
            })
        });
        let lane = |_| {
            let memory = context.budget.buffer("lists", 1)?;
            Ok(Mutex::new(LaneAccumulators::new(0, 0, memory)))
        };
        let lanes = (0..plane.exchange.lanes.len()).map(lane);
        let waiting = context.shape.waiting_messages(ProgramFootprint::of::<P>());
        Ok(BucketBuffers {
            messages: messages.collect::<Result<_, EngineError>>()?,
            lanes: lanes.collect::<Result<_, EngineError>>()?,
            combined: (0..plane.roles.counts[0]).map(|_| None).collect(),
            _waiting_messages: context.budget.lease("messages of blocks", waiting)?,
        })
    }

    fn new<P: EdgeProgram>(pass: &Pass<'_, P>, plane: &BucketPlane) -> Result<Self, EngineError> {
        let context = pass.context;
        let (ranks, batches) = (&context.ranks, &context.batches);
        let mut buffers = Self::of_lists::<P>(context, plane)?;
        for (lane, accumulators) in buffers.lanes.iter_mut().enumerate() {
            let batches_of = plane.lanes.batches(ranks.rank(), lane);
            let first = batches.cut(batches_of.start);
            let vertices = (batches.cut(batches_of.end) - first) as usize;
            let memory =
                Accumulators::new(context, vertices, pass.program.identity())?.into_buffer();
            *accumulators = Mutex::new(LaneAccumulators::new(first, vertices, memory));
        }
        if plane.combine != CombineChoice::Never {
            for combined in &mut buffers.combined {
                let accumulators =
                    Accumulators::new(context, batches.widest() as usize, pass.program.identity())?;
                *combined = Some(accumulators.into_buffer());
            }
        }
        Ok(buffers)
    }
}

/// Signals the active vertices; their messages are sent, and folded by `kernel`.
///
/// `pass` goes along the arcs of its context, whose cells are in `cells`.
pub(crate) fn exchange<P: EdgeProgram>(
    pass: &Pass<'_, P>,
    number: u64,
    (plane, cells): (&BucketPlane, &CellCache),
    kernel: &dyn BucketKernel,
    ready: &mut BucketBuffers,
    report: &mut PassMetrics,
) -> Result<(), EngineError> {
    let context = pass.context;
    context.ranks.check_stop()?;
    let bytes = size_of::<u32>() + kernel.width();
    let parts = message_parts(bytes, BUCKET_BYTES);
    ensure(parts <= plane.exchange.state.shape().of_worker(), || {
        EngineError::LongMessage { bytes }
    })?;
    signal(pass, &mut ready.messages)?;
    let tasks = CellTasks::new(context, plane, cells, kernel, &ready.messages);
    let emitter = |(worker, combined): (usize, &mut Option<Buffer>)| {
        let emitter = Emitter::new(worker, kernel, combined.take())?;
        Ok(Mutex::new(emitter))
    };
    let emitters = ready.combined.iter_mut().enumerate().map(emitter);
    let emitters = emitters.collect::<Result<_, EngineError>>()?;
    let job = BucketJob::new(number as u32, plane, kernel, tasks, emitters, &ready.lanes);
    job.run()?;
    for (emitter, combined) in job.emitters.into_iter().zip(&mut ready.combined) {
        let emitter = emitter.into_inner().map_err(|_| EngineError::Broken)?;
        report.edges += emitter.edges;
        report.cells += emitter.cells;
        report.elements_scanned += emitter.looked_up;
        *combined = emitter.into_combined();
    }
    let counters = &plane.exchange.state.counters;
    report.messages += ready.messages.iter().map(|of| of.count).sum::<u64>();
    report.messages_sent += counters.messages_sent.swap(0, Ordering::Relaxed);
    let [_, sent] = context.take_sent();
    report.bytes_sent += counters.bytes_sent.swap(0, Ordering::Relaxed) + sent;
    Ok(())
}

/// Runs one edge pass; `output` is empty.
///
/// `number` is that of the superstep: no other one of the run has it.
pub(crate) fn edges<P: EdgeProgram>(
    pass: Pass<'_, P>,
    number: u64,
    (plane, cache): (&BucketPlane, &GraphCache),
    scratch: &mut Option<BucketBuffers>,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    let is_against = pass.direction == Direction::Backward && !pass.context.graph.symmetric();
    ensure(
        !is_against || pass.orientations.transposed.is_some(),
        || EngineError::NeedsReverse {
            path: pass.context.graph.path().to_path_buf(),
        },
    )?;
    let context = &pass.orientations.orientation(is_against);
    let pass = Pass { context, ..pass };
    output.report = PassMetrics::new(Mode::Buckets);
    output.report.active = match pass.program.apply_to() {
        ApplyTo::Touched => pass.active.len(),
        ApplyTo::All => context.batches.vertices(),
    };
    let ready = match scratch {
        Some(ready) => ready,
        none => none.insert(BucketBuffers::new(&pass, plane)?),
    };
    let kernel = MessageKernel {
        program: pass.program,
        edge: context.graph.edge_kind(),
    };
    let cells = &cache.orientation(is_against).cell_cache;
    let report = &mut output.report;
    exchange(&pass, number, (plane, cells), &kernel, ready, report)?;

    // Apply.
    let apply = BatchApply {
        context,
        program: pass.program,
        needs: pass.apply,
        activated: &output.activated,
    };
    let mut parts: Vec<Mutex<Option<&mut [P::Accumulator]>>> = Vec::new();
    for (lane, accumulators) in ready.lanes.iter_mut().enumerate() {
        let accumulators = accumulators.get_mut().map_err(|_| EngineError::Broken)?;
        let batches = plane.lanes.batches(context.ranks.rank(), lane);
        let is_applied = |batch: usize| {
            let vertices = context.batches.cut(batch)..context.batches.cut(batch + 1);
            pass.program.apply_to() == ApplyTo::All || accumulators.is_touched(vertices)
        };
        let are_applied: Vec<bool> = batches.clone().map(is_applied).collect();
        accumulators.clear();
        let mut rest = accumulators.memory.typed_mut::<P::Accumulator>();
        for (batch, is_applied) in batches.zip(are_applied) {
            let (part, later) = rest.split_at_mut(context.batches.span(batch) as usize);
            parts.push(Mutex::new(is_applied.then_some(part)));
            rest = later;
        }
    }
    let own: Vec<usize> = context.ranks.own().collect();
    output.sums = each_batch(context, &own, |i, worker: &mut Worker| {
        match &mut *lock(&parts[i]) {
            Some(part) => apply.apply(own[i], part, None, worker.index),
            None => Ok(P::Sum::ZERO),
        }
    })?;
    output.activated.refresh_counts();
    let [_, sent] = context.take_sent();
    output.report.bytes_sent += sent;
    Ok(())
}

/// Signals the active vertices of this rank.
fn signal<P: EdgeProgram>(
    pass: &Pass<'_, P>,
    messages: &mut [SignalledMessages],
) -> Result<(), EngineError> {
    let context = pass.context;
    let own: Vec<usize> = context.ranks.own().collect();
    let messages: Vec<_> = messages.iter_mut().map(Mutex::new).collect();
    each_batch(context, &own, |i, worker: &mut Worker| {
        let of_batch = &mut **lock(&messages[i]);
        of_batch.count = match pass.active.count_in(own[i]) {
            0 => 0,
            _ => {
                let (values, present) = run_codec::parts_mut(&mut of_batch.buffer, of_batch.span);
                present.fill(0);
                signal_batch(pass, own[i], (values, present), worker.index)?
            }
        };
        Ok(())
    })?;
    context.arrays.end_phase();
    Ok(())
}
