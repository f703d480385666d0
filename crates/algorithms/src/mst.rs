//! A minimum spanning forest: the edges of least weight that connect each component, arcs taken without their direction.
//!
//! The method is Boruvka's. Edges are ordered by weight, then by the smaller id of their ends, then by the larger one. No two edges
//! are equal in this order, but for parallel edges of one weight. So the forest is the same however the work is done.
//!
//! Each tree has a root, and each vertex holds the index of its root. A round has these steps:
//!
//! 1. A pass over the edges finds the least edge from each vertex to another tree. A fold does not know the tree of its vertex, so it
//!    keeps the two least edges that come from different trees. One of them is from another tree, if any edge is.
//! 2. Each vertex sends its edge to its root, which keeps the least.
//! 3. Each root asks the root at the other end of its edge for the choice made there. Of two roots that chose each other the one with
//!    the smaller id stays. Every other root that has an edge puts it into its row and takes the root at the other end as its own.
//! 4. The roots that took another one ask along these links until they know the last one.
//! 5. Each vertex asks its former root for the new one. A tree without an edge to another one is complete, and takes no further part.
//!
//! A vertex stops being a root once, so its row has one edge of the forest at most.

pub mod check;
mod edge;
pub(crate) mod entry;
mod link;
mod programs;

use std::marker::PhantomData;

use graphmill_engine::{
    Engine, EngineError, IdOrdinal, ProgramFootprint, Read, VertexArray, Write,
};

pub use self::edge::ForestEdge;
use self::edge::{Candidate, NO_CANDIDATE};
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
    let candidate = engine.vertex_array::<Candidate>("candidate")?;
    let rows = (forest.write(), root.write(), candidate.write());
    engine.process_vertices(rows, None, |v, (edge, root, candidate)| {
        (*edge, *root, *candidate) = (NO_EDGE, I::of(v), NO_CANDIDATE);
    })?;
    let mut live = engine.full_set()?;
    let mut limit = engine.pass_limit("a minimum spanning forest");
    let index = PhantomData::<fn() -> I>;
    while !live.is_empty() {
        limit.pass()?;
        let mut found = engine.empty_set()?;
        for direction in engine.neighbour_directions() {
            let links = LeastLinks(index);
            let (signal, apply) = links.rows(root, candidate);
            let (_, more) = engine.process_edges(&links, signal, apply, &live, *direction)?;
            found.union(&more)?;
        }
        let least = LeastOfTree(index);
        let rows = (root.read(), candidate.read());
        let (_, [_, roots]) =
            engine.process_messages(&least, rows, candidate.write(), Some(&found))?;
        drop(found);

        let (read, hook) = (candidate.read(), Hook(index));
        let rows = (root.write(), read, forest.write(), IdOrdinal);
        let (_, mut hooked) =
            engine.process_asks(&hook, read, (read, IdOrdinal), rows, Some(&roots))?;
        drop(roots);
        while !hooked.is_empty() {
            let (read, jump) = (root.read(), JumpToRoot(index));
            (_, hooked) = engine.process_asks(&jump, read, read, root.write(), Some(&hooked))?;
        }
        let (read, rows) = (root.read(), (root.write(), candidate.write()));
        let answer = (root.read(), candidate.read());
        (_, live) = engine.process_asks(&NewRoot(index), read, answer, rows, Some(&live))?;
    }
    Ok(forest)
}

/// Returns the bytes that the passes hold for each vertex.
#[must_use]
pub fn sizes<I: LinkIndex>() -> ProgramFootprint {
    let arrays = size_of::<I>() + size_of::<Candidate>() + size_of::<ForestEdge>();
    ProgramFootprint::of::<LeastLinks<I>>()
        .with_rows::<(Write<I>, Read<Candidate>, Write<ForestEdge>, IdOrdinal)>()
        .with_arrays(arrays)
}
