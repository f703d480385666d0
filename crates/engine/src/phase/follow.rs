//! The sparse pass over decoded lists: signal and fold in one walk over the active vertices, then apply.
//!
//! Sources are walked in ascending order and a list holds its destinations in ascending order, so each destination
//! folds in the order of the graph. The cost is one look-up an active vertex and two small random accesses an edge,
//! whatever the size of the graph; that needs an accumulator for every vertex, `IDENTITY` between passes.

use graphmill_raw::prefetch;

use crate::accumulators::Accumulators;
use crate::active::{BatchSet, lock};
use crate::adjacency::Adjacency;
use crate::error::EngineError;
use crate::machine::Machine;
use crate::phase::{Done, Pass, apply_reached};
use crate::program::{EdgeProgram, EdgeValue, edge_value};
use crate::rows::Rows;

/// What sparse passes over decoded lists keep from one to the next.
pub(crate) struct FollowRoom<P: EdgeProgram> {
    adjacency: Adjacency,
    /// By place; `IDENTITY` everywhere between passes.
    accumulators: Accumulators<P::Accumulator>,
    reached: BatchSet,
}

impl<P: EdgeProgram> FollowRoom<P> {
    /// Bytes of the budget that the room takes besides the lists of a graph of so many vertices, at most.
    pub(crate) fn memory(vertices: u64) -> u64 {
        let places = 2 * vertices + (1 << 17);
        Accumulators::<P::Accumulator>::bytes(places as usize) + places / 7
    }

    pub(crate) fn new(machine: &Machine, adjacency: Adjacency) -> Result<Self, EngineError> {
        let places = adjacency.places();
        let mut reached = BatchSet::default();
        reached.reserve(places, &machine.budget)?;
        Ok(FollowRoom {
            adjacency,
            accumulators: Accumulators::new(&machine.budget, places, P::IDENTITY)?,
            reached,
        })
    }
}

/// Both phases of a sparse pass over decoded lists.
pub(crate) fn edges<P: EdgeProgram>(
    pass: Pass<'_, P>,
    room: &mut FollowRoom<P>,
    done: &mut Done<P::Sum>,
) -> Result<(), EngineError> {
    let Pass {
        machine, program, ..
    } = pass;
    let Some(io) = machine.row_io.first() else {
        return Ok(());
    };
    let io = &mut *lock(io);
    let FollowRoom {
        adjacency,
        accumulators,
        reached,
    } = room;
    let report = &mut done.report;
    let kind = machine.graph.edge_kind();
    let edge_bytes = if P::Edge::WEIGHTED { kind.bytes() } else { 0 };
    for batch in pass.active.batches() {
        machine.check_stop()?;
        let set = pass.active.batch(batch)?;
        let start = machine.batches.start(batch);
        let mut open = machine.arrays.open(batch, pass.signal, io)?;
        {
            let mut rows = P::SignalRows::slices(&mut open.guards);
            let mut several = Several::new();
            let mut follow = |several: &mut Several<P::Message>| {
                several.prefetch(adjacency, accumulators, reached);
                for (v, message) in several.drain() {
                    let list = adjacency.list(v, edge_bytes);
                    report.messages += 1;
                    report.edges += list.places.len() as u64;
                    for (edge, &place) in list.places.iter().enumerate() {
                        let place = place as usize;
                        reached.insert(place);
                        let value = edge_value::<P::Edge>(kind, list.weights, edge);
                        program.fold(&mut accumulators[place], program.along(message, value));
                    }
                }
            };
            set.for_each(|i| {
                let v = start + i as u64;
                adjacency.prefetch_begin(v);
                if let Some(message) = program.signal(v, P::SignalRows::row(&mut rows, i))
                    && several.push(v, message)
                {
                    follow(&mut several);
                }
            });
            follow(&mut several);
        }
        machine.arrays.close(open, pass.signal, Some(&set), io)?;
    }
    machine.arrays.end_phase();
    for batch in 0..machine.batches.len() {
        let places = adjacency.places_of(batch);
        if reached.has_in(places.clone()) {
            let accumulators = &mut accumulators[places.clone()];
            apply_reached(pass, batch, accumulators, reached, places, io, done)?;
        }
    }
    Ok(())
}

/// Sources whose lists are looked at together.
const SEVERAL: usize = 64;
/// Edges of one source whose accumulators are on their way before any is followed.
const EDGES_AHEAD: usize = 8;

/// A few sources and their messages. Lists, and the accumulators they lead to, lie anywhere in memory, and waiting for
/// one after the other would take longer than all the rest. So the waits overlap: for all sources the beginnings of
/// the lists, then the lists, then the accumulators.
struct Several<M> {
    sources: [(u64, Option<M>); SEVERAL],
    count: usize,
}

impl<M: Copy> Several<M> {
    fn new() -> Self {
        Several {
            sources: [(0, None); SEVERAL],
            count: 0,
        }
    }
    /// Takes one more; whether it was the last that has room.
    #[inline(always)]
    fn push(&mut self, v: u64, message: M) -> bool {
        self.sources[self.count] = (v, Some(message));
        self.count += 1;
        self.count == SEVERAL
    }
    /// Has what following the sources will want on its way into the cache.
    #[inline(always)]
    fn prefetch<A>(&self, adjacency: &Adjacency, accumulators: &[A], reached: &BatchSet) {
        let sources = &self.sources[..self.count];
        for (v, _) in sources {
            adjacency.prefetch_list(*v);
        }
        for (v, _) in sources {
            let list = adjacency.list(*v, 0);
            for &place in list.places.iter().take(EDGES_AHEAD) {
                prefetch(accumulators, place as usize);
                reached.prefetch(place as usize);
            }
        }
    }
    /// The sources and their messages, in order.
    #[inline(always)]
    fn drain(&mut self) -> impl Iterator<Item = (u64, M)> {
        let sources = &self.sources[..std::mem::take(&mut self.count)];
        sources
            .iter()
            .filter_map(|(v, message)| Some((*v, (*message)?)))
    }
}
