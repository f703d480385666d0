//! Connected components over lists (Afforest; Sutton, Ben-Nun and Barak, IPDPS 2018).
//!
//! Two neighbours of each vertex make most of the largest component already. It is found by a sample, and its vertices need not be
//! looked at again where each edge is also an edge of its other end. The first neighbour is the least one of a list, so pointing
//! at it, where it is less than the vertex itself, makes a forest without looking at any other vertex.
//!
//! Each of several ranks does so with the arcs into its own vertices. Between the two steps the forests of all ranks are united.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use graphmill_graph::Cell;
use graphmill_raw::{AtomicBitmap, AtomicCell, AtomicScalar, UnionFind};

use crate::cache::adjacency::AdjacencyLists;
use crate::cache::cells::CellCache;
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::in_memory::edge_scan::{self, SourceEdges};
use crate::exec::in_memory::round::each_part;
use crate::metrics::run::{Mode, PassMetrics};

/// Vertices of the sample.
const SAMPLE: usize = 1024;
/// Vertices that a worker takes at a time.
const AT_ONCE: usize = 4096;
/// Batches from which on a scan of cells looks for the largest component on its way.
pub(crate) const BATCHES_MIN: usize = 4;
/// Vertices whose neighbours are on their way.
const AHEAD: usize = 16;

/// The report of a step that found `messages` labels by `edges` edges.
fn step(messages: usize, edges: u64) -> PassMetrics {
    PassMetrics::in_memory(Mode::Push, [messages as u64, messages as u64, edges])
}

/// Unites each vertex with two of its neighbours; the forest is flat at the end.
///
/// Only vertices of `own` have lists. `tell` receives the metrics of each step.
pub(crate) fn unite_neighbours<I: AtomicScalar, A: AtomicCell<I>, const WORDS: usize>(
    context: &ExecContext,
    lists: &AdjacencyLists,
    own: Range<usize>,
    forest: UnionFind<'_, I, A>,
    tell: &mut impl FnMut(PassMetrics),
) -> Result<(), EngineError> {
    let vertices = forest.len();
    // Who has no such neighbour is his own. How many one has is not to be foreseen: it is read before it is known whether it counts.
    let first = |v: usize| {
        let first = lists.from::<WORDS, 1>(v)[0][0];
        if lists.degree(v) > 0 { first } else { v as u32 }
    };
    let second = |v: usize| {
        let next = lists.from::<WORDS, 2>(v)[1][0];
        if lists.degree(v) > 1 { next } else { v as u32 }
    };
    let index = |v: u32| I::of_index(v.into());
    all(context, vertices, |v| {
        lists.prefetch_list::<WORDS>(v + AHEAD);
        forest.set_parent(v, index(first(v).min(v as u32)));
    })?;
    flatten(context, forest)?;
    tell(step(own.len(), own.len() as u64));
    each_of(context, own.clone(), |v| {
        // Prefetch the data of later vertices: a list, and the target of its second record.
        lists.prefetch_list::<WORDS>(v + 2 * AHEAD);
        forest.prefetch(index(second(v + AHEAD)));
        forest.union(index(v as u32), index(second(v)));
    })?;
    flatten(context, forest)?;
    tell(step(own.len(), own.len() as u64));
    Ok(())
}

/// Unites the ends of all other edges; the forest is flat before and after.
///
/// Only vertices of `own` have lists. `against` are the edges of the other orientation, if the graph stores them apart.
pub(crate) fn unite_rest<I: AtomicScalar, A: AtomicCell<I>, const WORDS: usize>(
    context: &ExecContext,
    lists: &AdjacencyLists,
    against: Option<&AdjacencyLists>,
    own: Range<usize>,
    forest: UnionFind<'_, I, A>,
    tell: &mut impl FnMut(PassMetrics),
) -> Result<(), EngineError> {
    let index = |v: u32| I::of_index(v.into());
    let has_both_ends = context.graph.symmetric() || against.is_some();
    let largest = has_both_ends.then(|| most_frequent(forest)).flatten();
    let degree = |v: usize| lists.degree(v) + against.map_or(0, |against| against.degree(v));
    let (left, edges) = (AtomicUsize::new(0), AtomicU64::new(0));
    parts(context, own, |part| {
        // Vertices of other trees, and among them those with neighbours: neither branch is predictable.
        let (mut of_part, mut with_edges) = (0, 0);
        let mut chosen = [0; AT_ONCE];
        for v in part {
            let is_left = largest != Some(forest.parent(index(v as u32)));
            of_part += usize::from(is_left);
            if let Some(place) = chosen.get_mut(with_edges) {
                *place = v as u32;
            }
            with_edges += usize::from(is_left & (degree(v) > 0));
        }
        let chosen = &chosen[..with_edges];
        let mut looked_at = 0;
        for (i, v) in chosen.iter().enumerate() {
            if let Some(later) = chosen.get(i + 2 * AHEAD) {
                lists.prefetch_list::<WORDS>(*later as usize);
            }
            if let Some(later) = chosen.get(i + AHEAD) {
                forest.prefetch(index(lists.from::<WORDS, 1>(*later as usize)[0][0]));
            }
            let mut unite = |other| {
                looked_at += 1;
                forest.union(index(*v), index(other));
            };
            lists.each_neighbour(*v as usize, &mut unite);
            if let Some(against) = against {
                against.each_neighbour(*v as usize, unite);
            }
        }
        left.fetch_add(of_part, Ordering::Relaxed);
        edges.fetch_add(looked_at, Ordering::Relaxed);
    })?;
    flatten(context, forest)?;
    tell(step(left.into_inner(), edges.into_inner()));
    Ok(())
}

/// Has every vertex point at its root.
pub(crate) fn flatten<I: AtomicScalar, A: AtomicCell<I>>(
    context: &ExecContext,
    forest: UnionFind<'_, I, A>,
) -> Result<(), EngineError> {
    all(context, forest.len(), |v| {
        let later = forest.parent(I::of_index((v + AHEAD) as u64));
        forest.prefetch(later);
        forest.compress(v);
    })
}

/// Returns the bytes that [`unite_cells`] takes, without the forest and the cells in memory.
pub(crate) fn cells_reserve(workers: usize, vertices: u64) -> u64 {
    edge_scan::least(workers) + AtomicBitmap::bytes(vertices)
}

/// Unites the ends of all arcs, cell by cell as they are stored; flat at the end.
///
/// The cells within a batch and those out of the first batch go first. They make most of the largest component, so of the
/// arcs that are left few have an end outside of it, which a bit for each vertex says.
pub(crate) fn unite_cells<I: AtomicScalar, A: AtomicCell<I>>(
    context: &ExecContext,
    cell_cache: &CellCache,
    forest: UnionFind<'_, I, A>,
    mut tell: impl FnMut(PassMetrics),
) -> Result<(), EngineError> {
    let vertices = forest.len();
    all(context, vertices, |v| {
        forest.set_parent(v, I::of_index(v as u64))
    })?;
    // Where each arc has its opposite, one of the two is enough.
    let symmetric = context.graph.symmetric();
    let wanted = |column: usize, cell: &Cell| !symmetric || cell.source_batch() <= column;
    let unite = |source: u64, destination: u64| {
        forest.union(I::of_index(source), I::of_index(destination));
    };
    let unite_list = |list: SourceEdges<'_>| {
        (list.destinations()).for_each(|destination| unite(list.source, destination));
    };
    let lease = context.budget.lease(
        "the largest component",
        AtomicBitmap::bytes(vertices as u64),
    );
    let (Ok(_lease), true) = (lease, context.batches.len() >= BATCHES_MIN) else {
        let pass = edge_scan::visit(context, cell_cache, wanted, |_| true, unite_list)?;
        flatten(context, forest)?;
        tell(pass);
        return Ok(());
    };
    let is_early = |column: usize, cell: &Cell| [0, column].contains(&cell.source_batch());
    let early = |column: usize, cell: &Cell| wanted(column, cell) && is_early(column, cell);
    let mut pass = edge_scan::visit(context, cell_cache, early, |_| true, unite_list)?;
    flatten(context, forest)?;
    let largest = Members::of_largest(context, forest)?;
    let late = |column: usize, cell: &Cell| wanted(column, cell) && !is_early(column, cell);
    let unite_outside = |list: SourceEdges<'_>| {
        if !largest.has(list.source) {
            return unite_list(list);
        }
        let outside = list.destinations().filter(|v| !largest.has(*v));
        outside.for_each(|destination| unite(list.source, destination));
    };
    let rest = edge_scan::visit(context, cell_cache, late, |_| true, unite_outside)?;
    flatten(context, forest)?;
    pass.edges += rest.edges;
    pass.cells += rest.cells;
    pass.bytes_read += rest.bytes_read;
    tell(pass);
    Ok(())
}

/// The vertices of the largest component, as a bit for each.
struct Members(AtomicBitmap);

impl Members {
    fn of_largest<I: AtomicScalar, A: AtomicCell<I>>(
        context: &ExecContext,
        forest: UnionFind<'_, I, A>,
    ) -> Result<Members, EngineError> {
        let vertices = forest.len();
        let members = AtomicBitmap::new(vertices as u64);
        let largest = most_frequent(forest);
        let is_member = |v: usize| Some(forest.parent(I::of_index(v as u64))) == largest;
        // A part is of whole words.
        parts(context, 0..vertices, |part| {
            for first in part.clone().step_by(64) {
                let word = first..part.end.min(first + 64);
                let bits = word.map(|v| u64::from(is_member(v)) << (v % 64));
                members.set_word(first / 64, bits.sum());
            }
        })?;
        Ok(Members(members))
    }

    #[inline(always)]
    fn has(&self, v: u64) -> bool {
        self.0.is_marked(v as usize)
    }
}

/// The root that most vertices of a sample have.
fn most_frequent<I: AtomicScalar, A: AtomicCell<I>>(forest: UnionFind<'_, I, A>) -> Option<I> {
    let stride = forest.len().div_ceil(SAMPLE).max(1);
    let root_of = |v| forest.parent(I::of_index(v as u64));
    let mut roots: Vec<I> = (0..forest.len()).step_by(stride).map(root_of).collect();
    roots.sort_unstable();
    let longest = roots.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?;
    longest.first().copied()
}

/// Does some work for every vertex.
pub(crate) fn all(
    context: &ExecContext,
    vertices: usize,
    work: impl Fn(usize) + Sync,
) -> Result<(), EngineError> {
    each_of(context, 0..vertices, work)
}

/// Does some work for each of some vertices.
fn each_of(
    context: &ExecContext,
    vertices: Range<usize>,
    work: impl Fn(usize) + Sync,
) -> Result<(), EngineError> {
    parts(context, vertices, |part| part.for_each(&work))
}

/// Does some work for some vertices, many at a time.
fn parts(
    context: &ExecContext,
    vertices: Range<usize>,
    work: impl Fn(Range<usize>) + Sync,
) -> Result<(), EngineError> {
    let (first, edges) = (vertices.start, vertices.len() as u64);
    each_part(context, vertices.len(), AT_ONCE, edges, |part, _| {
        work(first + part.start..first + part.end);
    })
}
