//! The order of the phases of an edge pass, and the choices between ways to do them.
//!
//! ```text
//! choose    seek | scatter | gather, by cost                        choice.rs
//! prepare   room for messages, accumulators, streams; pinned cells  [`Workspace::prepare`]
//! signal    active sources -> messages                              phase/signal.rs
//! slot      messages, cells -> accumulators -> rows, active set     phase/slot.rs
//! ```
//!
//! A pass with few active vertices goes to their edges only and needs neither messages by source nor sweeps:
//! phase/seek.rs does both phases for it, or phase/follow.rs when the lists of all vertices are decoded.

use std::sync::Arc;

use graphmill_graph::EdgeKind;

use crate::active::{ActivePool, ActiveSet};
use crate::adjacency::Adjacency;
use crate::choice::{Facts, choose};
use crate::degree_classes::DegreeClasses;
use crate::engine::superstep;
use crate::error::EngineError;
use crate::machine::{Machine, run};
use crate::message::{Messages, OnDisk};
use crate::metrics::{Mode, Superstep};
use crate::phase::follow::{self, FollowRoom};
use crate::phase::seek::{self, SeekRoom};
use crate::phase::signal::Signal;
use crate::phase::slot::{Kernel, Slot, SlotRoom};
use crate::pins::Pins;
use crate::program::{Direction, EdgeProgram, EdgeValue, Reach};
use crate::room::{Room, Sizes};
use crate::rows::{Need, Rows};

/// Degrees are looked at when their classes take at most one part in so many of the free budget.
const CLASSES_SHARE: u64 = 16;

/// Sparse passes before the lists of all vertices are decoded, where the budget has room for that.
const SEEKS_BEFORE_LISTS: u32 = 16;

/// What the passes of one kind of program keep from one to the next.
pub(crate) struct Workspace<P: EdgeProgram> {
    messages: Option<Messages<P::Message>>,
    slot: SlotRoom<P::Accumulator, P::Message>,
    seek: SeekRoom<P>,
    stored: Kept<P>,
    turned: Kept<P>,
    room: Option<Room>,
    /// Bytes of the budget that passes still take when they need them: no cells are pinned there.
    keep: u64,
    weighted: bool,
}

impl<P: EdgeProgram> Default for Workspace<P> {
    fn default() -> Self {
        Workspace {
            messages: None,
            slot: SlotRoom::default(),
            seek: SeekRoom::default(),
            stored: Kept::default(),
            turned: Kept::default(),
            room: None,
            keep: 0,
            weighted: false,
        }
    }
}

/// What passes keep of a graph one way round.
struct Kept<P: EdgeProgram> {
    pins: Option<Pins>,
    degrees: Option<DegreeClasses>,
    /// Sparse passes so far.
    seeks: u32,
    follow: Option<FollowRoom<P>>,
}

impl<P: EdgeProgram> Default for Kept<P> {
    fn default() -> Self {
        Kept {
            pins: None,
            degrees: None,
            seeks: 0,
            follow: None,
        }
    }
}

/// One edge pass; see the module's page.
#[expect(
    clippy::too_many_arguments,
    reason = "a pass names all that it reads and writes"
)]
pub(crate) fn edges<P: EdgeProgram>(
    stored: &Machine,
    turned: Option<&Machine>,
    pool: &Arc<ActivePool>,
    workspace: &mut Workspace<P>,
    program: &P,
    signal_rows: P::SignalRows,
    apply_rows: P::ApplyRows,
    active: &ActiveSet,
    direction: Direction,
) -> Result<(P::Sum, ActiveSet, Superstep), EngineError> {
    let mut signal_needs = Vec::new();
    signal_rows.needs(&mut signal_needs);
    let mut apply_needs = Vec::new();
    apply_rows.needs(&mut apply_needs);
    let symmetric = stored.graph.symmetric();
    let seekable = P::EXACT || stored.shape.strips <= 1;
    let turned = turned.filter(|_| seekable);
    // A seek goes along arcs, from those who call.
    let (machine, seeks_turned) = match turned {
        Some(turned) if direction == Direction::Backward && !symmetric => (turned, true),
        _ => (stored, false),
    };
    if workspace.messages.is_none() {
        workspace.prepare(stored, turned, &signal_needs, &apply_needs)?;
        workspace.pin(machine, seeks_turned)?;
    }
    let row_bytes = [&signal_needs, &apply_needs].map(|needs| stored.arrays.staged_bytes(needs));
    let mut leave = stored.shape.sparse(row_bytes[0].max(row_bytes[1]));
    if turned.is_some() && workspace.slot.readers.is_empty() {
        // The other way round may still need streams.
        let streams = |room: Room| room.readers as u64 * room.stream.bytes();
        leave += workspace.room.map_or(0, streams);
    }
    let all = |kept: &Kept<P>| kept.pins.as_ref().map(Pins::all);
    let (all_stored, all_turned) = (all(&workspace.stored), all(&workspace.turned));
    let both_resident = all_stored.or(all_turned) == Some(true) && all_turned != Some(false);
    let kept = workspace.kept(seeks_turned);
    let mut facts = Facts {
        direction,
        symmetric,
        turned: turned.is_some(),
        pulls: P::PULLS,
        every: P::REACH == Reach::Every,
        active: active.len(),
        edges: 0,
        vertices: machine.batches.vertices(),
        arcs: machine.graph.arcs(),
        columns: machine.batches.len() as u64,
        workers: machine.workers.count() as u64,
        seekable,
        resident: all(kept).unwrap_or(both_resident),
        both_resident,
        decoded: kept.follow.is_some(),
        gamma: machine.gamma,
        kernel: machine.kernel,
        seek: machine.seek,
    };
    facts.edges = match &kept.degrees {
        Some(degrees) if facts.active < facts.vertices => {
            degrees.edges(machine, active, facts.edges_enough())?
        }
        _ => {
            let mean = facts.arcs.div_ceil(facts.vertices.max(1));
            facts.active.saturating_mul(mean)
        }
    }
    .min(facts.arcs);
    let choice = choose(&facts);
    let mut mode = choice.mode;
    let machine = match turned {
        Some(turned) if choice.turned => turned,
        _ => stored,
    };
    workspace.pin(machine, choice.turned)?;
    if mode == Mode::Seek {
        workspace.decode(machine, choice.turned, leave)?;
    }
    let Workspace {
        messages: Some(messages),
        slot,
        seek,
        stored,
        turned,
        ..
    } = workspace
    else {
        return Err(EngineError::ForeignArray);
    };
    let Kept {
        pins: Some(pins),
        degrees,
        follow,
        ..
    } = (if choice.turned { turned } else { stored })
    else {
        return Err(EngineError::ForeignArray);
    };
    // A sparse pass whose queues might not fit is a dense one. Their lease is held until the pass is over.
    let mut _queues = None;
    if mode == Mode::Seek && follow.is_none() {
        let edges = if degrees.is_some() {
            facts.edges
        } else {
            u64::MAX
        };
        _queues = seek::room(
            machine,
            seek,
            pins,
            active,
            edges,
            slot.readers.len(),
            leave,
        );
        if _queues.is_none() {
            mode = Mode::Scatter;
        }
    }
    let mut activated = pool.empty();
    let mut report = Superstep {
        active: active.len(),
        ..superstep(mode)
    };
    let kernel = match mode {
        Mode::Gather => Kernel::Gather,
        Mode::Scatter => Kernel::Scatter,
        Mode::Seek | Mode::Vertices => {
            let sum = match follow {
                Some(follow) => follow::edges(
                    machine,
                    follow,
                    program,
                    &signal_needs,
                    &apply_needs,
                    active,
                    &mut activated,
                    &mut report,
                ),
                None => seek::edges(
                    machine,
                    seek,
                    pins,
                    &mut slot.readers,
                    program,
                    &signal_needs,
                    &apply_needs,
                    active,
                    &mut activated,
                    &mut report,
                ),
            }?;
            return Ok((sum, activated, report));
        }
    };
    messages.clear();
    run(
        machine,
        &Signal::new(machine, program, signal_needs, active, messages),
    )?;
    messages.seal()?;
    machine.arrays.end_phase();
    let phase = Slot::new(
        machine,
        program,
        kernel,
        apply_needs,
        messages,
        pins,
        slot,
        &activated,
    );
    let done = run(machine, &phase);
    let (sum, edges, bytes_read) = phase.finish(slot);
    done?;
    activated.recount_all();
    report.messages = messages.total();
    report.edges = edges;
    let (read, written) = messages.take_traffic();
    report.bytes_read = bytes_read + read;
    report.bytes_written = written;
    Ok((sum, activated, report))
}

impl<P: EdgeProgram> Workspace<P> {
    pub(crate) fn pinned_bytes(&self) -> u64 {
        let kept = [&self.stored, &self.turned];
        kept.iter()
            .filter_map(|kept| kept.pins.as_ref())
            .map(Pins::bytes)
            .sum()
    }
    pub(crate) fn messages_resident(&self) -> bool {
        self.messages.as_ref().is_none_or(Messages::in_memory)
    }

    fn kept(&mut self, turned: bool) -> &mut Kept<P> {
        if turned {
            &mut self.turned
        } else {
            &mut self.stored
        }
    }

    /// Counts a sparse pass, and decodes the lists of all vertices when there were many, all cells are in memory and there
    /// is room to spare.
    fn decode(&mut self, machine: &Machine, turned: bool, leave: u64) -> Result<(), EngineError> {
        let kept = if turned {
            &mut self.turned
        } else {
            &mut self.stored
        };
        kept.seeks += 1;
        let Some(pins) = kept.pins.as_ref().filter(|pins| pins.all()) else {
            return Ok(());
        };
        if kept.seeks != SEEKS_BEFORE_LISTS {
            return Ok(());
        }
        let spare = machine.budget.available().saturating_sub(leave) / 2;
        let besides = FollowRoom::<P>::memory(machine.batches.vertices());
        if let Some(left) = spare.checked_sub(besides)
            && let Some(lists) = Adjacency::decode(machine, pins, self.weighted, left)?
        {
            kept.follow = Some(FollowRoom::new(machine, lists)?);
        }
        Ok(())
    }

    /// Shares out what the budget has left after the vertex rows: accumulators and streams to work with, then
    /// messages; what is left after these is for cells.
    fn prepare(
        &mut self,
        stored: &Machine,
        turned: Option<&Machine>,
        signal: &[Need],
        apply: &[Need],
    ) -> Result<(), EngineError> {
        let machine = stored;
        let shape = machine.shape;
        self.weighted = P::Edge::WEIGHTED && machine.graph.edge_kind() != EdgeKind::None;
        let sizes = Sizes {
            message: size_of::<P::Message>(),
            accumulator: size_of::<P::Accumulator>(),
            rows: machine
                .arrays
                .staged_bytes(signal)
                .max(machine.arrays.staged_bytes(apply)),
            weighted: self.weighted,
            pulls: P::PULLS,
        };
        // Degrees are looked at where they take little, and leave enough.
        let ways = || [Some(stored), turned].into_iter().flatten();
        let classes = DegreeClasses::memory(machine) * ways().count() as u64;
        let free = machine.budget.available();
        let without = free.checked_sub(classes);
        if P::REACH == Reach::Reached
            && classes <= free / CLASSES_SHARE
            && without.is_some_and(|free| shape.share(sizes, free).is_some())
        {
            for (way, kept) in ways().zip([&mut self.stored, &mut self.turned]) {
                kept.degrees = Some(DegreeClasses::load(way)?);
            }
        }
        let free = machine.budget.available();
        let Some(room) = shape.share(sizes, free) else {
            let budget = machine.budget.total();
            return Err(EngineError::TooSmall {
                what: "an edge pass",
                least: budget - free + shape.least(sizes),
                budget,
            });
        };
        let to_disk = room.held.map(|held| OnDisk {
            disk: Arc::clone(machine.graph.disk()),
            path: machine.arrays.pages().path().with_file_name("messages"),
            workers: machine.workers.count(),
            held,
        });
        self.messages = Some(Messages::new(&machine.batches, &machine.budget, to_disk)?);
        self.keep = room.besides;
        self.room = Some(room);
        Ok(())
    }

    /// Fills what is left of the budget with cells of the graph that way round, and makes the streams by which the others
    /// are read, unless both was done before.
    fn pin(&mut self, machine: &Machine, turned: bool) -> Result<(), EngineError> {
        let kept = if turned {
            &mut self.turned
        } else {
            &mut self.stored
        };
        let (None, Some(room)) = (&kept.pins, self.room) else {
            return Ok(());
        };
        let left = machine.budget.available().saturating_sub(self.keep);
        let pins = Pins::fill(machine, self.weighted, left)?;
        let free = machine.budget.available();
        self.slot.group = room.group;
        self.slot.fill(
            machine,
            P::IDENTITY,
            room.sets,
            machine.shape.entries,
            if pins.all() { 0 } else { room.readers },
            room.stream,
        )?;
        self.keep = self.keep.saturating_sub(free - machine.budget.available());
        kept.pins = Some(pins);
        Ok(())
    }
}
