//! Communities by label propagation, as LDBC Graphalytics defines it (CDLP): in rounds, with all vertices at once.

pub mod check;
pub(crate) mod entry;

use std::marker::PhantomData;

use graphmill_engine::{
    CountProgram, Engine, EngineError, IdOrdinal, ProgramFootprint, VertexArray, Write,
    count_footprint,
};

use crate::vertex_index::VertexIndex;

/// Labels each vertex with its community after a number of rounds: the ordinal of an id.
///
/// The first label of a vertex is its own id. In a round each vertex takes the label that most of its neighbours had before the
/// round; of several such labels it takes the smallest id. In a directed graph a neighbour counts once for each arc from it and
/// once for each arc to it.
///
/// # Errors
/// The engine's.
pub fn run<I: VertexIndex>(
    engine: &mut Engine,
    iterations: u64,
) -> Result<VertexArray<I>, EngineError> {
    let mut labels = engine.vertex_array::<I>("label")?;
    let mut next = engine.vertex_array::<I>("next label")?;
    engine.process_vertices((labels.write(), IdOrdinal), None, |_, (label, ordinal)| {
        *label = I::of(ordinal);
    })?;
    let mut changed = engine.full_set()?;
    let mut round = 0;
    // Where no label changes, later rounds change none.
    while round < iterations && !changed.is_empty() {
        let most_frequent = MostFrequent(PhantomData);
        changed = engine.process_counts(&most_frequent, [labels, next], &changed)?;
        std::mem::swap(&mut labels, &mut next);
        round += 1;
    }
    Ok(labels)
}

/// Returns the bytes that the passes hold for each vertex of a graph.
#[must_use]
pub fn sizes<I: VertexIndex>(symmetric: bool) -> ProgramFootprint {
    count_footprint::<MostFrequent<I>>(symmetric, 2 * size_of::<I>())
        .with_rows::<(Write<I>, IdOrdinal)>()
}

/// The label that occurs most often; of several the smallest.
struct MostFrequent<I>(PhantomData<fn() -> I>);

impl<I: VertexIndex> CountProgram for MostFrequent<I> {
    type Label = I;
    /// How often the label occurs, and the label.
    type Choice = (u64, I);
    const NONE: (u64, I) = (0, I::ZERO);

    #[inline(always)]
    fn count(&self, choice: &mut (u64, I), label: I, times: u64) {
        if times > choice.0 || times == choice.0 && label < choice.1 {
            *choice = (times, label);
        }
    }
    #[inline(always)]
    fn choose(&self, choice: (u64, I)) -> I {
        choice.1
    }
}
