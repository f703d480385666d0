//! Components as a vertex program, as iPregel runs them (hash-min): a vertex passes on the smallest label that reaches it.

use std::marker::PhantomData;

use graphmill_engine::{VertexContext, VertexProgram};

use crate::vertex_index::VertexIndex;

/// The program; its vertices start with labels of their own, which a run sets.
pub(super) struct HashMin<I>(pub(super) PhantomData<fn() -> I>);

impl<I: VertexIndex> VertexProgram for HashMin<I> {
    type Value = I;
    type Message = I;
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: I = I::NONE;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn compute(&self, vertex: &mut VertexContext<'_, Self>, least: Option<I>) {
        let is_less = match least {
            Some(label) => label < *vertex.value,
            None => vertex.superstep() == 0,
        };
        if is_less {
            *vertex.value = least.unwrap_or(*vertex.value);
            vertex.broadcast(*vertex.value);
        }
        vertex.vote_to_halt();
    }
    #[inline(always)]
    fn combine(&self, least: &mut I, label: I) {
        *least = (*least).min(label);
    }
}
