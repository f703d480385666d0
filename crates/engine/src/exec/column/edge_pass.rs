//! An edge pass: the order of its phases, and the choices between ways to do them.
//!
//! ```text
//! prepare   memory of messages, accumulators and streams, once       prepare.rs
//! choose    sparse | scatter | gather, by cost; cells to cache       planner/kernel.rs, cache/graph_cache.rs
//! routing   messages on disk: push | pull | none                     planner/routing.rs
//! signal    active sources -> messages                               phase/signal.rs
//!           a push writes them for column groups, as part of         messages/router.rs
//!           `MessageBuffer::commit`
//! slot      messages, cells -> accumulators -> rows, active set      phase/slot/
//!           a pull selects what a column group needs                 messages/router.rs
//! exchange  messages -> the ranks that need them                     phase/message_exchange.rs
//! ```
//!
//! The exchange is no step of its own: the workers of signal and slot move it forward. If few vertices are active, it ends
//! before slot begins.
//!
//! A sparse pass looks up only the edges of its active vertices, and needs no messages by source. It signals, exchanges and folds in
//! phase/sparse/index_lookup.rs, or in phase/sparse/adjacency.rs if the lists of all vertices are in memory.

use crate::cache::graph_cache::GraphCache;
use crate::context::run;
use crate::error::EngineError;
use crate::exchange::filter::MessageFilter;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::column::phase::message_exchange::MessageExchange;
use crate::exec::column::phase::signal::SignalPhase;
use crate::exec::column::phase::slot::phase::SlotPhase;
use crate::exec::column::phase::sparse::{adjacency, index_lookup};
use crate::exec::column::scratch::ColumnScratch;
use crate::messages::routing::Routing;
use crate::metrics::run::{Mode, PassMetrics};
use crate::planner::kernel::KernelPlan;
use crate::planner::routing::RoutingDecision;
use crate::program::edge::{ApplyTo, EdgeProgram};
use crate::schedule::tasks::FoldSide;

/// Runs one edge pass. `pass` is over the graph as stored; `output` is empty.
pub(crate) fn edges<P: EdgeProgram>(
    mut pass: Pass<'_, P>,
    scratch: &mut ColumnScratch<P>,
    cache: &mut GraphCache,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    pass.context.ranks.check_stop()?;
    if !ColumnScratch::<P>::allows_sparse(pass.program, pass.context) {
        pass.orientations.transposed = None;
    }
    let KernelPlan { mode, transposed } = scratch.choose(&pass, cache)?;
    let context = &pass.orientations.orientation(transposed);
    let pass = Pass { context, ..pass };
    output.report = PassMetrics::new(mode);
    output.report.active = match pass.program.apply_to() {
        ApplyTo::Touched => pass.active.len(),
        // Whether or not they have something to say, all are worked on.
        ApplyTo::All => context.batches.vertices(),
    };
    match mode {
        Mode::Gather => dense(pass, FoldSide::Gather, transposed, scratch, cache, output)?,
        Mode::Scatter => dense(pass, FoldSide::Scatter, transposed, scratch, cache, output)?,
        _ => {
            let cached = cache.orientation(transposed);
            let follows = scratch.follows(context, cached);
            let (cell_cache, streams) = (&cached.cell_cache, &mut scratch.slot.streams);
            match (&cached.lists, &mut scratch.adjacency) {
                (Some(lists), Some(adjacency_scratch)) if follows => {
                    adjacency::edges(pass, lists, adjacency_scratch, output)?
                }
                _ => index_lookup::edges(pass, &mut scratch.sparse, cell_cache, streams, output)?,
            }
            cache.record_sparse_read(transposed, output.report.bytes_read);
        }
    }
    output.report.add_traffic(cache.take_traffic());
    Ok(())
}

/// Sends the messages of the vertices of all ranks to all ranks, and folds none.
///
/// A rank gets those that it needs along the arcs if the graph is symmetric, otherwise all.
pub(crate) fn send<P: EdgeProgram>(
    pass: Pass<'_, P>,
    scratch: &mut ColumnScratch<P>,
    cache: &mut GraphCache,
    report: &mut PassMetrics,
) -> Result<(), EngineError> {
    let context = pass.context;
    context.ranks.check_stop()?;
    if scratch.messages.is_none() {
        scratch.prepare(&pass, cache)?;
    }
    let Some(messages) = &mut scratch.messages else {
        return Err(EngineError::ForeignArray);
    };
    messages.reset(Routing::default(), None)?;
    let of_cache = cache.take_traffic();
    let filter = cache.orientation(false).filter.as_ref();
    let filter = filter.filter(|_| context.graph.symmetric());
    let exchange = MessageExchange::prepare(context, messages, filter, pass.active);
    run(context, &SignalPhase::new(pass, messages, &exchange))?;
    context.arrays.end_phase();
    exchange.drain()?;
    report.messages = messages.total(context.ranks.own());
    [report.messages_sent, report.bytes_sent] = context.take_sent();
    report.filtered_peers = exchange.filtered_peers;
    report.bytes_read += of_cache[0] + filter.map_or(0, MessageFilter::take_bytes_read);
    report.bytes_written += of_cache[1];
    Ok(())
}

/// A pass over all cells that carry messages.
fn dense<P: EdgeProgram>(
    pass: Pass<'_, P>,
    side: FoldSide,
    transposed: bool,
    scratch: &mut ColumnScratch<P>,
    cache: &GraphCache,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    let context = pass.context;
    // Lists say who needs messages along the arcs.
    let along = side == FoldSide::Scatter || context.graph.symmetric();
    let cached = cache.orientation(transposed);
    let (routing, table, table_bytes) = match along {
        true => scratch.plan_routing(&pass, transposed, cached.filter.is_some())?,
        false => RoutingDecision::default(),
    };
    output.report.bytes_read += table_bytes[0];
    output.report.bytes_written += table_bytes[1];
    let cell_cache = &cached.cell_cache;
    let slot_scratch = &mut scratch.slot;
    let Some(messages) = &mut scratch.messages else {
        return Err(EngineError::ForeignArray);
    };
    messages.reset(routing, table)?;
    let messages = &*messages;
    let filter = cached.filter.as_ref().filter(|_| along);
    let exchange = MessageExchange::prepare(context, messages, filter, pass.active);
    run(context, &SignalPhase::new(pass, messages, &exchange))?;
    context.arrays.end_phase();
    output.report.messages = messages.total(context.ranks.own());
    if !pass.has_many_active() {
        exchange.drain()?;
    }
    let slot_phase = SlotPhase::new(
        pass,
        side,
        messages,
        &exchange,
        cell_cache,
        slot_scratch,
        output,
    );
    let outcome = run(context, &slot_phase);
    output.sums = slot_phase.into_output(slot_scratch);
    outcome?;
    let [sent, bytes] = context.take_sent();
    output.report.messages_sent += sent;
    output.report.bytes_sent += bytes;
    output.report.filtered_peers = exchange.filtered_peers;
    output.report.bytes_read += filter.map_or(0, MessageFilter::take_bytes_read);
    output.activated.refresh_counts();
    output.report.add_traffic(messages.take_traffic());
    let [pushed, pulled, scanned] = messages.take_dispatched();
    output.report.messages_pushed += pushed;
    output.report.messages_pulled += pulled;
    output.report.elements_scanned += scanned;
    Ok(())
}
