//! What the passes of one kind of program keep from one to the next, and what is found out before each.

use std::sync::Arc;

use graphmill_graph::EdgeKind;

use crate::adjacency::Adjacency;
use crate::choice::Facts;
use crate::degree_classes::DegreeClasses;
use crate::error::EngineError;
use crate::machine::Machine;
use crate::message::{Messages, OnDisk};
use crate::phase::Pass;
use crate::phase::follow::FollowRoom;
use crate::phase::seek::SeekRoom;
use crate::phase::slot::SlotRoom;
use crate::pins::Pins;
use crate::program::{Direction, EdgeProgram, EdgeValue, Reach};
use crate::room::{Room, Sizes};

/// Degrees are looked at when their classes take at most one part in so many of the free budget.
const CLASSES_SHARE: u64 = 16;

/// Sparse passes before the lists of all vertices are decoded, where the budget has room for that.
const SEEKS_BEFORE_LISTS: u32 = 16;

/// What the passes of one kind of program keep from one to the next.
pub(crate) struct Workspace<P: EdgeProgram> {
    pub(crate) messages: Option<Messages<P::Message>>,
    pub(crate) slot: SlotRoom<P::Accumulator, P::Message>,
    pub(crate) seek: SeekRoom<P>,
    /// Of the graph as stored, then with its arcs turned.
    pub(crate) kept: [Kept<P>; 2],
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
            kept: Default::default(),
            room: None,
            keep: 0,
            weighted: false,
        }
    }
}

/// What passes keep of a graph one way round.
pub(crate) struct Kept<P: EdgeProgram> {
    pub(crate) pins: Option<Pins>,
    degrees: Option<DegreeClasses>,
    /// Sparse passes so far.
    seeks: u32,
    pub(crate) follow: Option<FollowRoom<P>>,
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

/// The graph as it is stored, and with every arc turned round where it is there so and both ways fold alike.
#[derive(Clone, Copy)]
pub(crate) struct Ways<'e> {
    pub(crate) stored: Machine<'e>,
    pub(crate) turned: Option<Machine<'e>>,
}

impl<'e> Ways<'e> {
    /// One of the two.
    pub(crate) fn way(self, turned: bool) -> Machine<'e> {
        self.turned.filter(|_| turned).unwrap_or(self.stored)
    }
    /// Both, or the one.
    fn each(self) -> impl Iterator<Item = Machine<'e>> {
        [Some(self.stored), self.turned].into_iter().flatten()
    }
}

impl<P: EdgeProgram> Workspace<P> {
    pub(crate) fn pinned_bytes(&self) -> u64 {
        let pins = self.kept.iter().filter_map(|kept| kept.pins.as_ref());
        pins.map(Pins::bytes).sum()
    }
    pub(crate) fn messages_resident(&self) -> bool {
        self.messages.as_ref().is_none_or(Messages::in_memory)
    }

    /// What the choice of a pass's mode depends on; before the first pass, room is made for all.
    pub(crate) fn facts(
        &mut self,
        pass: &Pass<'_, P>,
        ways: Ways<'_>,
        direction: Direction,
    ) -> Result<Facts, EngineError> {
        let symmetric = ways.stored.graph.symmetric();
        // A seek goes along arcs, from those who call.
        let seeks_turned = direction == Direction::Backward && !symmetric && ways.turned.is_some();
        if self.messages.is_none() {
            self.prepare(pass, ways)?;
            self.pin(ways, seeks_turned)?;
        }
        let [all_stored, all_turned] =
            [0, 1].map(|way: usize| self.kept[way].pins.as_ref().map(Pins::all));
        let both_resident = all_stored.or(all_turned) == Some(true) && all_turned != Some(false);
        let kept = &self.kept[usize::from(seeks_turned)];
        let machine = &ways.way(seeks_turned);
        let all = if seeks_turned { all_turned } else { all_stored };
        let mut facts = Facts {
            direction,
            symmetric,
            turned: ways.turned.is_some(),
            pulls: P::PULLS,
            every: P::REACH == Reach::Every,
            active: pass.active.len(),
            edges: 0,
            vertices: machine.batches.vertices(),
            arcs: machine.graph.arcs(),
            columns: machine.batches.len() as u64,
            workers: machine.workers.count() as u64,
            seekable: Self::seekable(&ways.stored),
            resident: all.unwrap_or(both_resident),
            both_resident,
            decoded: kept.follow.is_some(),
            gamma: machine.gamma,
            kernel: machine.kernel,
            seek: machine.seek,
        };
        facts.edges = match &kept.degrees {
            Some(degrees) if facts.active < facts.vertices => {
                degrees.edges(machine, pass.active, facts.edges_enough())?
            }
            _ => {
                let mean = facts.arcs.div_ceil(facts.vertices.max(1));
                facts.active.saturating_mul(mean)
            }
        }
        .min(facts.arcs);
        Ok(facts)
    }

    /// Whether a sparse pass folds as a dense one does.
    pub(crate) fn seekable(stored: &Machine) -> bool {
        P::EXACT || stored.shape.strips <= 1
    }

    /// Makes room for a sparse pass over that way round, of vertices with so many edges as far as is known; `false` when its
    /// queues might not fit.
    pub(crate) fn sparse(
        &mut self,
        pass: &Pass<'_, P>,
        ways: Ways<'_>,
        turned: bool,
        edges: u64,
    ) -> Result<bool, EngineError> {
        let mut leave = pass.machine.shape.sparse(pass.staged_bytes());
        if ways.turned.is_some() && self.slot.readers.is_empty() {
            // The other way round may still need streams.
            let streams = |room: Room| room.readers as u64 * room.stream.bytes();
            leave += self.room.map_or(0, streams);
        }
        self.decode(pass.machine, turned, leave)?;
        let kept = &self.kept[usize::from(turned)];
        let Some(pins) = kept.pins.as_ref().filter(|_| kept.follow.is_none()) else {
            return Ok(true);
        };
        let edges = kept.degrees.as_ref().map_or(u64::MAX, |_| edges);
        let streams = self.slot.readers.len();
        Ok(self.seek.reserve(pass, pins, edges, streams, leave))
    }

    /// Counts a sparse pass, and decodes the lists of all vertices when there were many, all cells are in memory and there
    /// is room to spare.
    fn decode(&mut self, machine: &Machine, turned: bool, leave: u64) -> Result<(), EngineError> {
        let kept = &mut self.kept[usize::from(turned)];
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
    fn prepare(&mut self, pass: &Pass<'_, P>, ways: Ways<'_>) -> Result<(), EngineError> {
        let machine = &ways.stored;
        let shape = machine.shape;
        self.weighted = P::Edge::WEIGHTED && machine.graph.edge_kind() != EdgeKind::None;
        let sizes = Sizes {
            message: size_of::<P::Message>(),
            accumulator: size_of::<P::Accumulator>(),
            rows: pass.staged_bytes(),
            weighted: self.weighted,
            pulls: P::PULLS,
        };
        // Degrees are looked at where they take little, and leave enough.
        let classes = DegreeClasses::memory(machine) * ways.each().count() as u64;
        let free = machine.budget.available();
        let without = free.checked_sub(classes);
        if P::REACH == Reach::Reached
            && classes <= free / CLASSES_SHARE
            && without.is_some_and(|free| shape.share(sizes, free).is_some())
        {
            for (way, kept) in ways.each().zip(&mut self.kept) {
                kept.degrees = Some(DegreeClasses::load(&way)?);
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
    pub(crate) fn pin(&mut self, ways: Ways<'_>, turned: bool) -> Result<(), EngineError> {
        let machine = &ways.way(turned);
        let kept = &mut self.kept[usize::from(turned)];
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
