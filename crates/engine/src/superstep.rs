//! The order of the phases of an edge pass, and the choices between ways to do them.
//!
//! ```text
//! choose    seek | scatter | gather, by cost                        choice.rs
//! prepare   room for messages, accumulators, streams; pinned cells  workspace.rs
//! signal    active sources -> messages                              phase/signal.rs
//! slot      messages, cells -> accumulators -> rows, active set     phase/slot.rs
//! ```
//!
//! A pass with few active vertices goes to their edges only and needs neither messages by source nor sweeps:
//! phase/seek.rs does both phases for it, or phase/follow.rs when the lists of all vertices are decoded.

use crate::choice::{Choice, choose};
use crate::engine::superstep;
use crate::error::EngineError;
use crate::machine::run;
use crate::metrics::Mode;
use crate::phase::signal::Signal;
use crate::phase::slot::{Kernel, Slot};
use crate::phase::{Done, Pass, follow, seek};
use crate::program::{Direction, EdgeProgram, Sum};
use crate::workspace::{Kept, Ways, Workspace};

/// One edge pass; see the module's page. `pass` is over the graph as stored; nothing is `done` of it.
pub(crate) fn edges<P: EdgeProgram>(
    pass: Pass<'_, P>,
    mut ways: Ways<'_>,
    direction: Direction,
    workspace: &mut Workspace<P>,
    done: &mut Done<P::Sum>,
) -> Result<(), EngineError> {
    ways.turned = ways
        .turned
        .filter(|_| Workspace::<P>::seekable(&ways.stored));
    let facts = workspace.facts(&pass, ways, direction)?;
    let Choice { mut mode, turned } = choose(&facts);
    let machine = &ways.way(turned);
    let pass = Pass { machine, ..pass };
    workspace.pin(ways, turned)?;
    // A sparse pass whose queues might not fit is a dense one.
    if mode == Mode::Seek && !workspace.sparse(&pass, ways, turned, facts.edges)? {
        mode = Mode::Scatter;
    }
    done.report = superstep(mode);
    done.report.active = pass.active.len();
    let kept = &mut workspace.kept[usize::from(turned)];
    let (
        Some(messages),
        Kept {
            pins: Some(pins),
            follow,
            ..
        },
    ) = (&mut workspace.messages, kept)
    else {
        return Err(EngineError::ForeignArray);
    };
    let slot = &mut workspace.slot;
    let kernel = match (mode, follow) {
        (Mode::Gather, _) => Kernel::Gather,
        (Mode::Scatter, _) => Kernel::Scatter,
        (Mode::Seek | Mode::Vertices, Some(follow)) => return follow::edges(pass, follow, done),
        (Mode::Seek | Mode::Vertices, None) => {
            return seek::edges(pass, &mut workspace.seek, pins, &mut slot.readers, done);
        }
    };
    messages.clear();
    run(machine, &Signal::new(pass, messages))?;
    messages.seal()?;
    machine.arrays.end_phase();
    let phase = Slot::new(pass, kernel, messages, pins, slot, &done.activated);
    let outcome = run(machine, &phase);
    let (sum, edges, bytes_read) = phase.finish(slot);
    outcome?;
    done.sum.add(sum);
    done.activated.recount_all();
    let (read, written) = messages.take_traffic();
    done.report.messages = messages.total();
    done.report.edges = edges;
    done.report.bytes_read = bytes_read + read;
    done.report.bytes_written = written;
    Ok(())
}
