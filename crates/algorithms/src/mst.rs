//! A minimum spanning forest: the edges of least weight that connect each component, arcs taken without their direction.
//!
//! The method is Boruvka's. Edges are ordered by weight, then by the smaller id of their ends, then by the larger one. No two edges
//! are equal in this order, but for parallel edges of one weight. So the forest is the same however the work is done.
//!
//! Each tree has a root, and each vertex holds the index of its root. A vertex is *live* while it has an edge to another tree, as
//! all have at first. A round has these steps:
//!
//! 1. A pass over the edges of live vertices finds the least edge from each of them to another tree. A fold does not know the tree
//!    of its vertex, so it keeps the two least edges that come from different trees. One of them is from another tree, if any edge is.
//! 2. A vertex that found no such edge is no longer live: trees only grow, so it never has one again, and no vertex of another tree
//!    needs its messages. Its row may keep an old root.
//! 3. Each live vertex sends its edge to its root, which keeps the least.
//! 4. Each root asks the root at the other end of its edge for the choice made there. Of two roots that chose each other the one with
//!    the smaller id stays. Every other root that has an edge puts it into its row and takes the root at the other end as its own.
//! 5. The roots that took another one ask along these links until they know the last one.
//! 6. Each live vertex that was no root asks its former root for the new one.
//!
//! A vertex stops being a root once, so its row has one edge of the forest at most.

pub mod check;
mod edge;
pub(crate) mod entry;
mod link;
mod programs;

use std::marker::PhantomData;

use graphmill_engine::{
    ActiveSet, Engine, EngineError, IdOrdinal, ProgramFootprint, VertexArray, Write,
};

pub use self::edge::ForestEdge;
pub use self::link::LinkIndex;
use self::programs::{Hook, JumpToRoot, LeastLinks, LeastOfTree, NewRoot};
use crate::output::NO_EDGE;

/// Finds the edges of the forest: each is in the row of one vertex, and all other rows are [`NO_EDGE`].
///
/// An edge without a weight counts 1. Self-loops are never in the forest. Of parallel edges only the least may be.
///
/// # Errors
/// The engine's.
pub fn run<I: LinkIndex>(engine: &mut Engine) -> Result<VertexArray<ForestEdge>, EngineError> {
    let forest = engine.vertex_array::<ForestEdge>("forest")?;
    let root = engine.vertex_array::<I>("root")?;
    let candidate = engine.vertex_array::<I::Candidate>("candidate")?;
    let rows = (forest.write(), root.write(), candidate.write());
    engine.process_vertices(rows, None, |v, (edge, root, candidate)| {
        (*edge, *root, *candidate) = (NO_EDGE, I::of(v), I::NO_CANDIDATE);
    })?;
    let mut live = engine.full_set()?;
    let mut limit = engine.pass_limit("a minimum spanning forest");
    let index = PhantomData::<fn() -> I>;
    loop {
        limit.pass()?;
        let mut found = engine.empty_set()?;
        for direction in engine.neighbour_directions() {
            let links = LeastLinks(index);
            let (signal, apply) = links.rows(root, candidate);
            let (_, more) = engine.process_edges(&links, signal, apply, &live, *direction)?;
            found.union(&more)?;
        }
        // A vertex that was not live has an old root, with which its own tree looks like another one.
        live.intersect(&found)?;
        if live.is_empty() {
            return Ok(forest);
        }
        let roots = hook_roots(engine, (root, candidate, forest), &live)?;
        found.intersect(&live)?;
        found.remove(&roots)?;
        drop(roots);
        if !found.is_empty() {
            let (read, rows) = (root.read(), (root.write(), candidate.write()));
            engine.process_asks(&NewRoot(index), read, read, rows, Some(&found))?;
        }
    }
}

/// The rows of a search: the root, the candidate, and the edge of the forest.
type ForestRows<I> = (
    VertexArray<I>,
    VertexArray<<I as LinkIndex>::Candidate>,
    VertexArray<ForestEdge>,
);

/// Steps 3 to 5 of a round; returns the vertices that were roots.
fn hook_roots<I: LinkIndex>(
    engine: &mut Engine,
    (root, candidate, forest): ForestRows<I>,
    live: &ActiveSet,
) -> Result<ActiveSet, EngineError> {
    let index = PhantomData::<fn() -> I>;
    let rows = (root.read(), candidate.read());
    let least = LeastOfTree(index);
    let (_, [mut roots, reached]) =
        engine.process_messages(&least, rows, candidate.write(), Some(live))?;
    roots.union(&reached)?;
    drop(reached);

    let (read, hook) = (candidate.read(), Hook(index));
    let rows = (root.write(), candidate.write(), forest.write(), IdOrdinal);
    let (_, mut hooked) =
        engine.process_asks(&hook, read, (read, IdOrdinal), rows, Some(&roots))?;
    while !hooked.is_empty() {
        let (read, jump) = (root.read(), JumpToRoot(index));
        (_, hooked) = engine.process_asks(&jump, read, read, root.write(), Some(&hooked))?;
    }
    Ok(roots)
}

/// Returns the bytes that the passes hold for each vertex.
#[must_use]
pub fn sizes<I: LinkIndex>() -> ProgramFootprint {
    let arrays = size_of::<I>() + size_of::<I::Candidate>() + size_of::<ForestEdge>();
    ProgramFootprint::of::<LeastLinks<I>>()
        .with_rows::<(Write<I>, Write<I::Candidate>, Write<ForestEdge>, IdOrdinal)>()
        .with_arrays(arrays)
        .going_against(true)
        .sending()
}
