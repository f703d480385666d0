//! Shortest paths as a vertex program, as iPregel runs them: a vertex that comes closer tells its neighbours.

use std::marker::PhantomData;

use graphmill_engine::{VertexContext, VertexProgram};

use super::distance::Distance;

/// The program; its vertices start at the distances that a run sets.
pub(super) struct ShortestPaths<R> {
    pub(super) source: u64,
    pub(super) length: PhantomData<fn() -> R>,
}

impl<R: Distance> VertexProgram for ShortestPaths<R> {
    type Value = R;
    type Message = R;
    type Edge = R;
    type Aggregate = ();
    const IDENTITY: R = R::NONE;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn compute(&self, vertex: &mut VertexContext<'_, Self>, nearest: Option<R>) {
        let is_closer = match nearest {
            Some(distance) => distance < *vertex.value,
            None => vertex.superstep() == 0 && vertex.index() == self.source,
        };
        if is_closer {
            *vertex.value = nearest.unwrap_or(R::ZERO);
            vertex.broadcast(*vertex.value);
        }
        vertex.vote_to_halt();
    }
    #[inline(always)]
    fn combine(&self, nearest: &mut R, distance: R) {
        if distance < *nearest {
            *nearest = distance;
        }
    }
    #[inline(always)]
    fn on_edge(&self, distance: R, weight: R) -> R {
        distance + weight
    }
}
