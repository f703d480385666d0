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
use crate::program::edge::{EdgeProgram, Reach};
use crate::schedule::tasks::FoldSide;

/// One edge pass; see the module's page. `pass` is over the graph as stored; nothing is `done` of it.
pub(crate) fn edges<P: EdgeProgram>(
    mut pass: Pass<'_, P>,
    workspace: &mut ColumnScratch<P>,
    held: &mut GraphCache,
    done: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    pass.machine.ranks.check_stop()?;
    if !ColumnScratch::<P>::seekable(pass.machine) {
        pass.ways.turned = None;
    }
    let KernelPlan { mode, turned } = workspace.choose(&pass, held)?;
    let machine = &pass.ways.orientation(turned);
    let pass = Pass { machine, ..pass };
    done.report = PassMetrics::new(mode);
    done.report.active = match P::REACH {
        Reach::Reached => pass.active.len(),
        // Whether or not they have something to say, all are worked on.
        Reach::Every => machine.batches.vertices(),
    };
    match mode {
        Mode::Gather => dense(pass, FoldSide::Gather, turned, workspace, held, done)?,
        Mode::Scatter => dense(pass, FoldSide::Scatter, turned, workspace, held, done)?,
        _ => {
            let of_way = held.orientation(turned);
            let follows = workspace.follows(machine, of_way);
            let (pins, readers) = (&of_way.pins, &mut workspace.slot.readers);
            match (&of_way.lists, &mut workspace.follow) {
                (Some(lists), Some(room)) if follows => adjacency::edges(pass, lists, room, done)?,
                _ => index_lookup::edges(pass, &mut workspace.seek, pins, readers, done)?,
            }
            held.record_sparse_read(turned, done.report.bytes_read);
        }
    }
    let [read, written] = held.take_traffic();
    done.report.bytes_read += read;
    done.report.bytes_written += written;
    Ok(())
}

/// A pass over all cells that carry messages.
fn dense<P: EdgeProgram>(
    pass: Pass<'_, P>,
    kernel: FoldSide,
    turned: bool,
    workspace: &mut ColumnScratch<P>,
    held: &GraphCache,
    done: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    let machine = pass.machine;
    // Lists say who needs messages along the arcs.
    let along = kernel == FoldSide::Scatter || machine.graph.symmetric();
    let of_way = held.orientation(turned);
    let (dispatch, graph, made) = match along {
        true => workspace.dispatch(&pass, turned, of_way.needs.is_some())?,
        false => RoutingDecision::default(),
    };
    done.report.bytes_read += made[0];
    done.report.bytes_written += made[1];
    let pins = &of_way.pins;
    let slot = &mut workspace.slot;
    let Some(messages) = &mut workspace.messages else {
        return Err(EngineError::ForeignArray);
    };
    messages.reset(dispatch, graph)?;
    let messages = &*messages;
    let needs = of_way.needs.as_ref().filter(|_| along);
    let passing = MessageExchange::start(machine, messages, needs, pass.active);
    run(machine, &SignalPhase::new(pass, messages, &passing))?;
    machine.arrays.end_phase();
    done.report.messages = messages.total(machine.ranks.own());
    if !pass.is_dense() {
        passing.drain()?;
    }
    let phase = SlotPhase::new(pass, kernel, messages, &passing, pins, slot, done);
    let outcome = run(machine, &phase);
    done.sums = phase.into_output(slot);
    outcome?;
    let [sent, bytes] = machine.take_sent();
    done.report.messages_sent += sent;
    done.report.bytes_sent += bytes;
    done.report.filtered_peers = passing.filtered_peers;
    done.report.bytes_read += needs.map_or(0, MessageFilter::take_bytes_read);
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
