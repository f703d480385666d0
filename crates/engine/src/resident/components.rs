//! Connected components over lists (Afforest; Sutton, Ben-Nun and Barak, IPDPS 2018).
//!
//! Two neighbours of each vertex make most of the largest component already. It is found by a sample, and its vertices need not be
//! looked at again where each edge is also an edge of its other end. The first neighbour is the least one of a list, so pointing
//! at it, where it is less than the vertex itself, makes a forest without looking at any other vertex.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use graphmill_graph::Cell;
use graphmill_raw::{AtomicWord, Forest, Word};
use graphmill_storage::Step;

use super::lists::Lists;
use super::round::{Round, go};
use crate::engine::superstep;
use crate::error::EngineError;
use crate::machine::Machine;
use crate::metrics::{Mode, Superstep};
use crate::phase::arcs;
use crate::pins::Pins;

/// Vertices of the sample.
const SAMPLE: usize = 1024;
/// Vertices that a worker takes at a time.
const AT_ONCE: usize = 4096;
/// Vertices whose neighbours are on their way.
const AHEAD: usize = 16;

/// Unites the ends of all edges; flat at the end. `against` are the edges the other way round where the graph has them apart.
/// `tell` hears of each step.
pub(crate) fn unite<I: Word, A: AtomicWord<I>, const WORDS: usize>(
    machine: &Machine,
    lists: &Lists,
    against: Option<&Lists>,
    forest: Forest<'_, I, A>,
    mut tell: impl FnMut(Superstep),
) -> Result<(), EngineError> {
    let vertices = forest.len();
    let pass = |messages: usize, edges: u64| Superstep {
        active: messages as u64,
        messages: messages as u64,
        edges,
        ..superstep(Mode::Push)
    };
    let neighbour = |v: usize, number: usize| {
        let record = lists.of::<WORDS>(v).get(number)?;
        Some(I::of_index(u64::from(record[0])))
    };
    all(machine, vertices, |v| {
        let own = I::of_index(v as u64);
        forest.point(v, neighbour(v, 0).map_or(own, |first| first.min(own)));
    })?;
    all(machine, vertices, |v| forest.flatten(v))?;
    tell(pass(vertices, vertices as u64));
    all(machine, vertices, |v| {
        // What is wanted a little later is on its way while this is worked on.
        if let Some(later) = neighbour(v + AHEAD, 1) {
            forest.prefetch(later);
        }
        if let Some(second) = neighbour(v, 1) {
            forest.unite(I::of_index(v as u64), second);
        }
    })?;
    all(machine, vertices, |v| forest.flatten(v))?;
    tell(pass(vertices, vertices as u64));
    let largest = match machine.graph.symmetric() || against.is_some() {
        true => most_frequent(forest),
        false => None,
    };
    let (left, edges) = (AtomicUsize::new(0), AtomicU64::new(0));
    all(machine, vertices, |v| {
        let own = I::of_index(v as u64);
        if largest == Some(forest.pointer(own)) {
            return;
        }
        let mut looked_at = 0;
        for lists in [lists].into_iter().chain(against) {
            lists.each_neighbour(v, |other| {
                looked_at += 1;
                forest.unite(own, I::of_index(other.into()));
            });
        }
        left.fetch_add(1, Ordering::Relaxed);
        edges.fetch_add(looked_at, Ordering::Relaxed);
    })?;
    all(machine, vertices, |v| forest.flatten(v))?;
    tell(pass(left.into_inner(), edges.into_inner()));
    Ok(())
}

/// Unites the ends of all arcs, cell by cell as they are stored; flat at the end.
pub(crate) fn unite_cells<I: Word, A: AtomicWord<I>>(
    machine: &Machine,
    pins: &Pins,
    forest: Forest<'_, I, A>,
    mut tell: impl FnMut(Superstep),
) -> Result<(), EngineError> {
    let vertices = forest.len();
    all(machine, vertices, |v| {
        forest.point(v, I::of_index(v as u64))
    })?;
    // Where each arc has its opposite, one of the two is enough.
    let symmetric = machine.graph.symmetric();
    let wanted = |column: usize, cell: &Cell| !symmetric || cell.source_batch() <= column;
    let pass = arcs::visit(machine, pins, wanted, |list| {
        let source = I::of_index(list.source);
        for local in list.destinations {
            let destination = list.first_destination + u64::from(*local);
            forest.unite(source, I::of_index(destination));
        }
    })?;
    all(machine, vertices, |v| forest.flatten(v))?;
    tell(pass);
    Ok(())
}

/// The root that most vertices of a sample have.
fn most_frequent<I: Word, A: AtomicWord<I>>(forest: Forest<'_, I, A>) -> Option<I> {
    let stride = forest.len().div_ceil(SAMPLE).max(1);
    let sampled = (0..forest.len()).step_by(stride);
    let mut roots: Vec<I> = sampled
        .map(|v| forest.pointer(I::of_index(v as u64)))
        .collect();
    roots.sort_unstable();
    let longest = roots.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?;
    longest.first().copied()
}

/// Does some work for every vertex.
fn all(machine: &Machine, vertices: usize, work: impl Fn(usize) + Sync) -> Result<(), EngineError> {
    let every = Every {
        vertices,
        work,
        next: AtomicUsize::new(0),
    };
    go(machine, &every, vertices as u64)
}

/// Every vertex once.
struct Every<F> {
    vertices: usize,
    work: F,
    next: AtomicUsize,
}

impl<F: Fn(usize) + Sync> Round for Every<F> {
    fn part(&self, _: usize) -> Step {
        let from = self.next.fetch_add(AT_ONCE, Ordering::Relaxed);
        if from >= self.vertices {
            return Step::Finished;
        }
        (from..(from + AT_ONCE).min(self.vertices)).for_each(&self.work);
        Step::Worked
    }
}
