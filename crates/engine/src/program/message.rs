//! Send programs: messages to any vertex, whether or not an edge leads there.

use graphmill_raw::Element;

use crate::program::edge::Activate;
use crate::program::outbox::Outbox;
use crate::state::rows::Rows;
use crate::value::{Accumulator, Reduce};

/// A program whose vertices address their messages.
///
/// ```text
/// send(v, row, sink)  at an active vertex            -> any number of messages, a summand, and whether it is active next
/// fold(acc, message)  at the addressee, from IDENTITY
/// apply(v, row, acc)  once per vertex reached        -> a summand, and whether it is active next
/// ```
///
/// The messages of one destination are folded in ascending order of their senders, and the messages of one sender in the order in
/// which it sent them: so the bits are the same for any number of threads and any budget.
pub trait MessageProgram: Sync {
    /// The arrays that `send` sees.
    type SendRows: Rows;
    /// The arrays that `apply` sees.
    type ApplyRows: Rows;
    /// The message type.
    type Message: Element;
    /// The fold of what reached one vertex.
    type Accumulator: Accumulator;
    /// What a pass adds up.
    type Sum: Reduce;

    /// The accumulator that no message has reached.
    const IDENTITY: Self::Accumulator;
    /// Messages of a sending batch to the same vertex may be combined before they are folded.
    const COMBINES: bool = false;

    /// What an active vertex sends.
    fn send(
        &self,
        v: u64,
        row: <Self::SendRows as Rows>::Row<'_>,
        sink: &mut Outbox<'_, Self::Message>,
    ) -> (Self::Sum, Activate);
    /// Takes the next message to a vertex into the one before it.
    ///
    /// It is called only where [`MessageProgram::COMBINES`] is true. A fold of the result must give the same bits as a fold of both, one after the other.
    #[inline(always)]
    fn combine(&self, _earlier: &mut Self::Message, _later: Self::Message) {}
    /// Takes one more message into an accumulator.
    fn fold(&self, accumulator: &mut Self::Accumulator, message: Self::Message);
    /// Updates a vertex that was reached.
    fn apply(
        &self,
        v: u64,
        row: <Self::ApplyRows as Rows>::Row<'_>,
        accumulator: Self::Accumulator,
    ) -> (Self::Sum, Activate);
}
