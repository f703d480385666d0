//! Count programs: a vertex learns how often each label occurs among its neighbours.

use graphmill_raw::AtomicScalar;

use crate::value::Accumulator;

/// A program in which each vertex takes a label by the labels of all its neighbours.
///
/// In an undirected graph each edge brings the label of its other end. In a directed graph each arc brings its source the label of
/// its destination, and its destination the label of its source. A self-loop brings a vertex its own label: once in an undirected
/// graph, twice in a directed one.
pub trait CountProgram: Sync {
    /// The label of a vertex.
    type Label: AtomicScalar + Accumulator;
    /// What a vertex knows of the labels that it has counted.
    type Choice: Copy + Send;

    /// The choice of a vertex that has counted no label.
    const NONE: Self::Choice;

    /// Takes a label that `times` neighbours have into the choice.
    ///
    /// It is called once for each label, and labels come in no order.
    fn count(&self, choice: &mut Self::Choice, label: Self::Label, times: u64);
    /// Returns the next label of a vertex that has neighbours; a vertex without neighbours keeps its label.
    fn choose(&self, choice: Self::Choice) -> Self::Label;
}

/// Counts each label of a list, which this sorts.
pub(crate) fn count_sorted<P: CountProgram>(
    program: &P,
    choice: &mut P::Choice,
    labels: &mut [P::Label],
) {
    labels.sort_unstable();
    for equal in labels.chunk_by(|one, next| one == next) {
        program.count(choice, equal[0], equal.len() as u64);
    }
}
