//! The order of the phases of an edge pass, and the choices between ways to do them.
//!
//! ```text
//! choose    seek | scatter | gather, by cost                        [`choose`]
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
use crate::degree_classes::DegreeClasses;
use crate::engine::{KernelChoice, Machine, SeekChoice, run, superstep};
use crate::error::EngineError;
use crate::message::{Messages, OnDisk};
use crate::metrics::{Mode, Superstep};
use crate::phase::follow::{self, FollowRoom};
use crate::phase::seek::{self, SeekRoom};
use crate::phase::signal::Signal;
use crate::phase::slot::{Kernel, Slot, SlotRoom};
use crate::pins::Pins;
use crate::program::{Direction, EdgeProgram, EdgeValue, Reach};
use crate::room::Sizes;
use crate::rows::{Need, Rows};

/// A seek into cells that are in memory costs one part in so many of a seek on disk.
const MEMORY_SEEK: u64 = 32;
/// What a sparse pass pays for one edge, in elements scanned: it lands anywhere in memory.
const EDGE_SOUGHT: u64 = 8;
/// What following the decoded list of a vertex costs, in elements scanned.
const LIST: u64 = 16;
/// Degrees are looked at when their classes take at most one part in so many of the free budget.
const CLASSES_SHARE: u64 = 16;

/// Sparse passes before the lists of all vertices are decoded, where the budget has room for that.
const SEEKS_BEFORE_LISTS: u32 = 16;

/// What the passes of one kind of program keep from one to the next.
pub(crate) struct Workspace<P: EdgeProgram> {
    messages: Option<Messages<P::Message>>,
    slot: SlotRoom<P::Accumulator, P::Message>,
    seek: SeekRoom<P>,
    pins: Option<Pins>,
    /// Strips of the column that has most.
    strips_max: usize,
    /// Sparse passes so far.
    seeks: u32,
    follow: Option<FollowRoom<P>>,
    degrees: Option<DegreeClasses>,
    weighted: bool,
}

impl<P: EdgeProgram> Default for Workspace<P> {
    fn default() -> Self {
        Workspace {
            messages: None,
            slot: SlotRoom::default(),
            seek: SeekRoom::default(),
            pins: None,
            strips_max: 0,
            seeks: 0,
            follow: None,
            degrees: None,
            weighted: false,
        }
    }
}

/// What the choice of a pass's mode depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) direction: Direction,
    pub(crate) symmetric: bool,
    /// The program can say that a destination needs no message.
    pub(crate) pulls: bool,
    /// Every row changes, whether or not a message reached it.
    pub(crate) every: bool,
    pub(crate) active: u64,
    /// Edges of the active vertices, as far as is known.
    pub(crate) edges: u64,
    pub(crate) vertices: u64,
    pub(crate) arcs: u64,
    pub(crate) columns: u64,
    pub(crate) workers: u64,
    /// A seek folds as a scan does: the fold is exact, or no column has strips to merge.
    pub(crate) seekable: bool,
    /// All cells are in memory.
    pub(crate) resident: bool,
    /// The lists of all vertices are decoded.
    pub(crate) decoded: bool,
    pub(crate) gamma: u64,
    pub(crate) kernel: KernelChoice,
    pub(crate) seek: SeekChoice,
}

impl Facts {
    /// What a scan of the graph costs: one for each source and edge (DFOGraph, section 4.1), shared by the workers.
    fn scan(&self) -> u64 {
        self.arcs.saturating_add(self.vertices)
    }
    /// What a sparse pass costs, on one worker, in the same unit: each active vertex is sought in the columns that hold
    /// its edges, for gamma each, and then its edges are gone to one by one.
    fn sparse(&self) -> u64 {
        let lookups = if self.decoded {
            self.active.saturating_mul(LIST)
        } else {
            let gamma = if self.resident {
                self.gamma.div_ceil(MEMORY_SEEK)
            } else {
                self.gamma
            };
            let cells = self.active.saturating_mul(self.columns).min(self.edges);
            cells.saturating_mul(gamma.max(1))
        };
        let edges = self.edges.saturating_mul(EDGE_SOUGHT);
        lookups.saturating_add(edges).saturating_mul(self.workers)
    }
    /// So few edges that a sparse pass is right whatever the rest says.
    fn edges_enough(&self) -> u64 {
        self.scan() / (self.workers * (self.gamma + EDGE_SOUGHT)).max(1)
    }
}

/// Chooses the mode of a pass.
pub(crate) fn choose(facts: &Facts) -> Mode {
    // Backward messages gather over the stored arcs, unless each arc has its opposite.
    let can_scatter = facts.direction == Direction::Forward || facts.symmetric;
    let can_gather = facts.direction == Direction::Backward || facts.symmetric;
    let seeks = match facts.seek {
        SeekChoice::Never => false,
        SeekChoice::Always => true,
        SeekChoice::Auto => facts.sparse() < facts.scan(),
    };
    if seeks && can_scatter && facts.seekable && !facts.every {
        return Mode::Seek;
    }
    match facts.kernel {
        KernelChoice::Scatter if can_scatter => Mode::Scatter,
        KernelChoice::Gather if can_gather => Mode::Gather,
        _ if !can_scatter => Mode::Gather,
        // Pulling saves work when most destinations stop early, and when most need no message any more: then a scatter
        // decodes nearly every block for its active sources, a gather hardly any.
        KernelChoice::Auto
            if can_gather
                && facts.pulls
                && (facts.edges > facts.arcs / 8 || facts.active > facts.vertices / 16) =>
        {
            Mode::Gather
        }
        _ => Mode::Scatter,
    }
}

/// One edge pass; see the module's page.
#[expect(
    clippy::too_many_arguments,
    reason = "a pass names all that it reads and writes"
)]
pub(crate) fn edges<P: EdgeProgram>(
    machine: &Machine,
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
    if workspace.pins.is_none() {
        workspace.prepare(machine, &signal_needs, &apply_needs)?;
    }
    let mut facts = Facts {
        direction,
        symmetric: machine.graph.symmetric(),
        pulls: P::PULLS,
        every: P::REACH == Reach::Every,
        active: active.len(),
        edges: 0,
        vertices: machine.batches.vertices(),
        arcs: machine.graph.arcs(),
        columns: machine.batches.len() as u64,
        workers: machine.workers.count() as u64,
        seekable: P::EXACT || workspace.strips_max <= 1,
        resident: workspace.pins.as_ref().is_some_and(Pins::all),
        decoded: workspace.follow.is_some(),
        gamma: machine.gamma,
        kernel: machine.kernel,
        seek: machine.seek,
    };
    facts.edges = match &workspace.degrees {
        Some(degrees) if facts.active < facts.vertices => {
            degrees.edges(machine, active, facts.edges_enough())?
        }
        _ => {
            let mean = facts.arcs.div_ceil(facts.vertices.max(1));
            facts.active.saturating_mul(mean)
        }
    }
    .min(facts.arcs);
    let mut mode = choose(&facts);
    // Decoding every list is worth it on a graph that takes many sparse passes.
    if mode == Mode::Seek {
        workspace.seeks += 1;
        if workspace.seeks == SEEKS_BEFORE_LISTS {
            workspace.decode(machine)?;
        }
    }
    let Workspace {
        messages: Some(messages),
        slot,
        seek,
        pins: Some(pins),
        degrees,
        follow,
        ..
    } = workspace
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
        _queues = seek::room(machine, seek, pins, active, edges, slot.readers.len());
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
        self.pins.as_ref().map_or(0, Pins::bytes)
    }
    pub(crate) fn messages_resident(&self) -> bool {
        self.messages.as_ref().is_none_or(Messages::in_memory)
    }

    /// Decodes the lists of all vertices, when all cells are in memory and there is room to spare.
    fn decode(&mut self, machine: &Machine) -> Result<(), EngineError> {
        let Some(pins) = self.pins.as_ref().filter(|pins| pins.all()) else {
            return Ok(());
        };
        let spare = machine.budget.available() / 2;
        let besides = FollowRoom::<P>::memory(machine.batches.vertices());
        if let Some(left) = spare.checked_sub(besides)
            && let Some(lists) = Adjacency::decode(machine, pins, self.weighted, left)?
        {
            self.follow = Some(FollowRoom::new(machine, lists)?);
        }
        Ok(())
    }

    /// Shares out what the budget has left after the vertex rows: accumulators and streams to work with, then
    /// messages, then as many cells as fit.
    fn prepare(
        &mut self,
        machine: &Machine,
        signal: &[Need],
        apply: &[Need],
    ) -> Result<(), EngineError> {
        let batches = &machine.batches;
        let shape = machine.shape;
        let weighted = P::Edge::WEIGHTED && machine.graph.edge_kind() != EdgeKind::None;
        self.strips_max = shape.strips;
        self.weighted = weighted;
        if P::REACH == Reach::Reached
            && DegreeClasses::memory(machine) <= machine.budget.available() / CLASSES_SHARE
        {
            self.degrees = Some(DegreeClasses::load(machine)?);
        }
        let free = machine.budget.available();
        let sizes = Sizes {
            message: size_of::<P::Message>(),
            accumulator: size_of::<P::Accumulator>(),
            rows: machine
                .arrays
                .staged_bytes(signal)
                .max(machine.arrays.staged_bytes(apply)),
            weighted,
            pulls: P::PULLS,
        };
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
        self.messages = Some(Messages::new(batches, &machine.budget, to_disk)?);
        let left = machine.budget.available().saturating_sub(room.besides);
        self.pins = Some(Pins::fill(machine, weighted, left)?);
        let all = self.pins.as_ref().is_some_and(Pins::all);
        self.slot.group = room.group;
        self.slot.fill(
            machine,
            P::IDENTITY,
            room.sets,
            shape.entries,
            if all { 0 } else { room.readers },
            room.stream,
        )
    }
}
