//! Ask programs: each vertex asks one other vertex, and takes the answer into its row.

use graphmill_raw::Element;

use crate::program::edge::Activate;
use crate::state::rows::Rows;
use crate::value::Reduce;

/// A program whose vertices ask other vertices, whether or not an edge leads there.
///
/// ```text
/// ask(v, row)           at an active vertex         -> the index of the vertex that it asks, or none
/// answer(u, row)        at the asked vertex         -> the answer, once for each request
/// take(v, row, answer)  at the vertex that asked    -> a summand, and whether it is active next
/// ```
///
/// All answers of a pass come from rows as they were before any vertex took its answer. So the bits are the same for any number of
/// threads and any budget.
pub trait AskProgram: Sync {
    /// The arrays that `ask` sees.
    type AskRows: Rows;
    /// The arrays that `answer` sees.
    type AnswerRows: Rows;
    /// The arrays that `take` sees.
    type TakeRows: Rows;
    /// The answer to one request.
    type Answer: Element;
    /// What a pass adds up.
    type Sum: Reduce;

    /// Returns the index of the vertex that an active vertex asks; a vertex may ask itself.
    fn ask(&self, v: u64, row: <Self::AskRows as Rows>::Row<'_>) -> Option<u64>;
    /// Returns what an asked vertex answers.
    fn answer(&self, v: u64, row: <Self::AnswerRows as Rows>::Row<'_>) -> Self::Answer;
    /// Updates a vertex that asked.
    fn take(
        &self,
        v: u64,
        row: <Self::TakeRows as Rows>::Row<'_>,
        answer: Self::Answer,
    ) -> (Self::Sum, Activate);
}
