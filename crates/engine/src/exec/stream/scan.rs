//! A scan of all chunks at this rank's storage engine, in any order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_graph::ChunkView;
use graphmill_raw::lock;
use graphmill_storage::{Step, Worker};

use crate::context::{ExecContext, run};
use crate::error::EngineError;
use crate::exec::stream::scratch::placement;
use crate::exec::stream::service::{ChunkService, QUEUE_DEPTH, ServiceState};
use crate::exec::stream::storage_engine::{PhaseKind, StorageEngine};
use crate::metrics::run::{Mode, PassMetrics};

/// Calls `visit` with each chunk, its batch and the data of its edges if `reads_data`.
pub(crate) fn visit(
    context: &ExecContext,
    reads_data: bool,
    visit: impl Fn(&mut Worker, usize, &ChunkView<'_>, &[u8]) -> Result<(), EngineError> + Sync,
) -> Result<PassMetrics, EngineError> {
    let chunks = context.graph.chunks().ok_or(EngineError::Broken)?;
    let shape = context.shape.chunks().ok_or(EngineError::Broken)?;
    let slots = 2 * context.workers.count();
    let slot_bytes = shape.slot_bytes(reads_data);
    let buffer = |_| context.budget.buffer("chunks on their way", slot_bytes);
    let mut engine = StorageEngine::new(context.batches.len(), None);
    engine.begin(placement(context, chunks));
    let mut state = ServiceState::new(
        context.disk.queue(QUEUE_DEPTH)?,
        engine,
        (0..slots).map(buffer).collect::<Result<_, _>>()?,
        Vec::new(),
        None,
    );
    let phase = (PhaseKind::Scatter, 0);
    let service = ChunkService::new(context, chunks, phase, reads_data, &mut state);
    // The next batch to ask for.
    let next = Mutex::new(0);
    let (edges, processed) = (AtomicU64::new(0), AtomicU64::new(0));
    let open_next = || {
        let mut next = lock(&next);
        let mut left = *next..context.batches.len();
        let batch = left.find(|batch| !chunks.of_batch(*batch).is_empty());
        *next = left.start;
        batch.map(|batch| service.open(batch))
    };
    run(context, &|worker: &mut Worker| {
        context.ranks.check_stop()?;
        let Some(arrived) = service.take(None)? else {
            // The chunks of the next batch are asked for while the last ones of this batch are processed.
            if service.are_all_dry() && open_next().is_some() {
                return Ok(Step::Worked);
            }
            return Ok(match service.all_done() {
                true => Step::Finished,
                false => service.idle()?,
            });
        };
        let (view, data) = service.arcs(&arrived)?;
        visit(worker, arrived.batch, &view, data)?;
        edges.fetch_add(view.edges() as u64, Ordering::Relaxed);
        processed.fetch_add(1, Ordering::Relaxed);
        service.release(arrived);
        Ok(Step::Worked)
    })?;
    let mut report = PassMetrics::new(Mode::Stream);
    let own = context.ranks.own();
    report.active = context.batches.vertices();
    // Ranks add up their messages, so each counts the vertices that it owns.
    report.messages = context.batches.cut(own.end) - context.batches.cut(own.start);
    report.edges = edges.into_inner();
    report.chunks = processed.into_inner();
    service.end()?;
    [report.bytes_read, report.bytes_written] = state.take_traffic();
    Ok(report)
}
