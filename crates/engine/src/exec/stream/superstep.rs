//! A superstep of the stream executor, in the order of Fig. 4 of Chaos (Roy et al., SOSP 2015).
//!
//! ```text
//! scatter    for each of my batches: signal; for each unprocessed chunk: arcs -> updates    scatter.rs
//!            when done with my batches, help others                                         help.rs
//! barrier
//! hand over  accumulators of batches of other ranks -> their owners                         hand_over.rs
//! gather     for each of my batches: for each unprocessed update chunk: fold                gather.rs
//!            get the accumulators of helpers, apply
//!            when done with my batches, help others
//! barrier
//! ```
//!
//! Chunks come from any storage engine (`storage_engine.rs`) by requests on their way (`service.rs`).

use crate::context::run;
use crate::error::EngineError;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::stream::gather::GatherPhase;
use crate::exec::stream::hand_over::hand_over;
use crate::exec::stream::kernel::ProgramKernel;
use crate::exec::stream::scatter::ScatterPhase;
use crate::exec::stream::scratch::{PassBuffers, placement};
use crate::exec::stream::service::ChunkService;
use crate::exec::stream::storage_engine::PhaseKind;
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::edge::{ApplyTo, Direction, EdgeProgram};

/// Runs one edge pass over chunks of arcs; `output` is empty.
///
/// `number` is that of the superstep: no other one of the run has it.
pub(crate) fn edges<P: EdgeProgram>(
    pass: Pass<'_, P>,
    number: u64,
    scratch: &mut Option<PassBuffers>,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    // Chunks have the batch of the sender.
    let is_against = pass.direction == Direction::Backward && !pass.context.graph.symmetric();
    let context = &pass.orientations.orientation(is_against);
    let pass = Pass { context, ..pass };
    let chunks = context.graph.chunks().ok_or(EngineError::Broken)?;
    context.ranks.check_stop()?;
    output.report = PassMetrics::new(Mode::Stream);
    output.report.active = match pass.program.apply_to() {
        ApplyTo::Touched => pass.active.len(),
        ApplyTo::All => context.batches.vertices(),
    };
    // All ranks allocate together, since they agree on the memory.
    let [lacks] = context.ranks.total([u64::from(scratch.is_none())])?;
    scratch.take_if(|_| lacks > 0);
    let ready = match scratch {
        Some(ready) => ready,
        none => none.insert(PassBuffers::new(&pass, chunks)?),
    };
    let kernel = ProgramKernel::new(pass, &output.activated);
    ready.service.engine.begin(placement(context, chunks));

    // Scatter.
    let messages = std::mem::take(&mut ready.messages);
    let phase = (PhaseKind::Scatter, number);
    let service = ChunkService::new(context, chunks, phase, ready.reads_data, &mut ready.service);
    service.begin()?;
    let scatter = ScatterPhase::new(&kernel, &service, &ready.bins, pass.active, messages);
    run(context, &scatter)?;
    // The barrier.
    service.end()?;
    let (messages, counts) = scatter.into_parts();
    ready.messages = messages;
    context.arrays.end_phase();
    hand_over(&pass, &ready.bins)?;

    // Gather and apply.
    let sets = std::mem::take(&mut ready.sets);
    let phase = (PhaseKind::Gather, number);
    let service = ChunkService::new(context, chunks, phase, false, &mut ready.service);
    service.begin()?;
    let gather = GatherPhase::new(&kernel, &service, &ready.bins, sets);
    let outcome = run(context, &gather).and_then(|()| service.end());
    ready.sets = gather.into_idle();
    outcome?;
    output.sums = kernel.sums();
    output.activated.refresh_counts();

    let report = &mut output.report;
    [report.bytes_read, report.bytes_written] = ready.service.take_traffic();
    [report.messages_sent, report.bytes_sent] = context.take_sent();
    report.bytes_sent += ready.service.take_sent();
    (report.messages, report.edges) = (counts.messages, counts.edges);
    report.chunks = counts.chunks;
    Ok(())
}
