//! Connected components over lists (Afforest; Sutton, Ben-Nun and Barak, IPDPS 2018).
//!
//! Two neighbours of each vertex make most of the largest component already. It is found by a sample, and its vertices need not be
//! looked at again where each edge is also an edge of its other end. The first neighbour is the least one of a list, so pointing
//! at it, where it is less than the vertex itself, makes a forest without looking at any other vertex.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use graphmill_graph::Cell;
use graphmill_raw::{AtomicCell, AtomicScalar, UnionFind};

use crate::cache::adjacency::AdjacencyLists;
use crate::cache::cells::CellCache;
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::in_memory::edge_scan;
use crate::exec::in_memory::round::each_part;
use crate::metrics::run::{Mode, PassMetrics};

/// Vertices of the sample.
const SAMPLE: usize = 1024;
/// Vertices that a worker takes at a time.
const AT_ONCE: usize = 4096;
/// Vertices whose neighbours are on their way.
const AHEAD: usize = 16;

/// Unites the ends of all edges; the forest is flat at the end.
///
/// `against` are the edges of the other orientation, if the graph stores them apart. `tell` receives the metrics of each step.
pub(crate) fn unite<I: AtomicScalar, A: AtomicCell<I>, const WORDS: usize>(
    context: &ExecContext,
    lists: &AdjacencyLists,
    against: Option<&AdjacencyLists>,
    forest: UnionFind<'_, I, A>,
    mut tell: impl FnMut(PassMetrics),
) -> Result<(), EngineError> {
    let vertices = forest.len();
    let pass = |messages: usize, edges: u64| {
        PassMetrics::in_memory(Mode::Push, [messages as u64, messages as u64, edges])
    };
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
    tell(pass(vertices, vertices as u64));
    all(context, vertices, |v| {
        // Prefetch the data of later vertices: a list, and the target of its second record.
        lists.prefetch_list::<WORDS>(v + 2 * AHEAD);
        forest.prefetch(index(second(v + AHEAD)));
        forest.union(index(v as u32), index(second(v)));
    })?;
    flatten(context, forest)?;
    tell(pass(vertices, vertices as u64));
    let has_both_ends = context.graph.symmetric() || against.is_some();
    let largest = has_both_ends.then(|| most_frequent(forest)).flatten();
    let degree = |v: usize| lists.degree(v) + against.map_or(0, |against| against.degree(v));
    let (left, edges) = (AtomicUsize::new(0), AtomicU64::new(0));
    parts(context, vertices, |part| {
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
                forest.prefetch(index(first(*later as usize)));
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
    tell(pass(left.into_inner(), edges.into_inner()));
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

/// Unites the ends of all arcs, cell by cell as they are stored; flat at the end.
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
    let pass = edge_scan::visit(context, cell_cache, wanted, |list| {
        let source = I::of_index(list.source);
        for local in list.destinations {
            let destination = list.first_destination + u64::from(*local);
            forest.union(source, I::of_index(destination));
        }
    })?;
    flatten(context, forest)?;
    tell(pass);
    Ok(())
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
fn all(
    context: &ExecContext,
    vertices: usize,
    work: impl Fn(usize) + Sync,
) -> Result<(), EngineError> {
    parts(context, vertices, |part| part.for_each(&work))
}

/// Does some work for all vertices, many at a time.
fn parts(
    context: &ExecContext,
    vertices: usize,
    work: impl Fn(Range<usize>) + Sync,
) -> Result<(), EngineError> {
    let edges = vertices as u64;
    each_part(context, vertices, AT_ONCE, edges, |part, _| work(part))
}
