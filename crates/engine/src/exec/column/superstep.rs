//! The order of the phases of an edge pass, and the choices between ways to do them.
//!
//! ```text
//! choose    sparse | scatter | gather, by cost                      planner/kernel.rs
//! prepare   memory of messages, accumulators, streams; cached cells prepare.rs, cache/graph_cache.rs
//! signal    active sources -> messages                              phase/signal.rs
//! exchange  messages -> the ranks that need them                    phase/exchange.rs
//! routing   messages on disk -> the column groups that need them    planner/routing.rs, messages/router.rs
//! slot      messages, cells -> accumulators -> rows, active set     phase/slot/
//! ```
//!
//! A pass with few active vertices goes to their edges only and needs neither messages by source nor sweeps:
//! phase/sparse/index_lookup.rs does both phases for it, or phase/sparse/adjacency.rs when the lists of all vertices are in memory.

use crate::cache::graph_cache::GraphCache;
use crate::context::run;
use crate::error::EngineError;
use crate::exchange::filter::MessageFilter;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::column::phase::exchange::MessageExchange;
use crate::exec::column::phase::signal::SignalPhase;
use crate::exec::column::phase::slot::phase::SlotPhase;
use crate::exec::column::phase::sparse::{adjacency, index_lookup};
use crate::exec::column::scratch::ColumnScratch;
use crate::metrics::run::{Mode, PassMetrics};
use crate::planner::kernel::KernelPlan;
use crate::planner::routing::RoutingDecision;
use crate::program::edge::{ApplyTo, EdgeProgram};
use crate::schedule::tasks::FoldSide;

/// One edge pass; see the module's page. `pass` is over the graph as stored; nothing is `done` of it.
pub(crate) fn edges<P: EdgeProgram>(
    mut pass: Pass<'_, P>,
    workspace: &mut ColumnScratch<P>,
    cache: &mut GraphCache,
    done: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    pass.context.ranks.check_stop()?;
    if !ColumnScratch::<P>::seekable(pass.context) {
        pass.orientations.transposed = None;
    }
    let KernelPlan { mode, transposed } = workspace.choose(&pass, cache)?;
    let context = &pass.orientations.orientation(transposed);
    let pass = Pass { context, ..pass };
    done.report = PassMetrics::new(mode);
    done.report.active = match P::APPLY_TO {
        ApplyTo::Touched => pass.active.len(),
        // Whether or not they have something to say, all are worked on.
        ApplyTo::All => context.batches.vertices(),
    };
    match mode {
        Mode::Gather => dense(pass, FoldSide::Gather, transposed, workspace, cache, done)?,
        Mode::Scatter => dense(pass, FoldSide::Scatter, transposed, workspace, cache, done)?,
        _ => {
            let cached = cache.orientation(transposed);
            let follows = workspace.follows(context, cached);
            let (cell_cache, readers) = (&cached.cell_cache, &mut workspace.slot.readers);
            match (&cached.lists, &mut workspace.follow) {
                (Some(lists), Some(room)) if follows => adjacency::edges(pass, lists, room, done)?,
                _ => index_lookup::edges(pass, &mut workspace.seek, cell_cache, readers, done)?,
            }
            cache.record_sparse_read(transposed, done.report.bytes_read);
        }
    }
    let [read, written] = cache.take_traffic();
    done.report.bytes_read += read;
    done.report.bytes_written += written;
    Ok(())
}

/// A pass over all cells that carry messages.
fn dense<P: EdgeProgram>(
    pass: Pass<'_, P>,
    kernel: FoldSide,
    transposed: bool,
    workspace: &mut ColumnScratch<P>,
    cache: &GraphCache,
    done: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    let context = pass.context;
    // Lists say who needs messages along the arcs.
    let along = kernel == FoldSide::Scatter || context.graph.symmetric();
    let cached = cache.orientation(transposed);
    let (dispatch, graph, made) = match along {
        true => workspace.dispatch(&pass, transposed, cached.filter.is_some())?,
        false => RoutingDecision::default(),
    };
    done.report.bytes_read += made[0];
    done.report.bytes_written += made[1];
    let cell_cache = &cached.cell_cache;
    let slot = &mut workspace.slot;
    let Some(messages) = &mut workspace.messages else {
        return Err(EngineError::ForeignArray);
    };
    messages.reset(dispatch, graph)?;
    let messages = &*messages;
    let filter = cached.filter.as_ref().filter(|_| along);
    let exchange = MessageExchange::start(context, messages, filter, pass.active);
    run(context, &SignalPhase::new(pass, messages, &exchange))?;
    context.arrays.end_phase();
    done.report.messages = messages.total(context.ranks.own());
    if !pass.has_many_active() {
        exchange.drain()?;
    }
    let phase = SlotPhase::new(pass, kernel, messages, &exchange, cell_cache, slot, done);
    let outcome = run(context, &phase);
    done.sums = phase.into_output(slot);
    outcome?;
    let [sent, bytes] = context.take_sent();
    done.report.messages_sent += sent;
    done.report.bytes_sent += bytes;
    done.report.filtered_peers = exchange.filtered_peers;
    done.report.bytes_read += filter.map_or(0, MessageFilter::take_bytes_read);
    done.activated.refresh_counts();
    let (read, written) = messages.take_traffic();
    done.report.bytes_read += read;
    done.report.bytes_written += written;
    let [pushed, pulled, scanned] = messages.take_dispatched();
    done.report.messages_pushed += pushed;
    done.report.messages_pulled += pulled;
    done.report.elements_scanned += scanned;
    Ok(())
}
