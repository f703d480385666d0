//! Slot programs: edge programs whose work on an edge is one function, as in DFOGraph.

use graphmill_raw::Element;

use crate::program::edge::{Activate, EdgeProgram};
use crate::state::rows::Rows;
use crate::value::{Accumulator, EdgeValue, Reduce};

/// A signal/slot program with one function for an edge (DFOGraph, section 2.2 and Fig. 2a).
///
/// [`Slot`] makes an [`EdgeProgram`] of it. In the paper the slot changes the row of the destination. Here it changes an
/// accumulator, and `apply` takes that into the row once all messages of the pass have come. So a pass needs no rows while it reads edges.
pub trait SlotProgram: Sync {
    /// The arrays that `signal` reads or changes.
    type SignalRows: Rows;
    /// The arrays that `apply` reads or changes.
    type ApplyRows: Rows;
    /// The edge's value.
    type Edge: EdgeValue;
    /// The message type.
    type Message: Element;
    /// The result of all slot calls for one destination.
    type Accumulator: Accumulator;
    /// The reduction of what `apply` returns.
    type Sum: Reduce;

    /// As [`EdgeProgram::IDENTITY`].
    const IDENTITY: Self::Accumulator;
    /// As [`EdgeProgram::ORDER_INDEPENDENT`].
    const ORDER_INDEPENDENT: bool = false;

    /// Returns the message of an active vertex, or none.
    fn signal(&self, v: u64, row: <Self::SignalRows as Rows>::Row<'_>) -> Option<Self::Message>;
    /// Adds a message that vertex `source` sent along an edge to the accumulator of vertex `destination`.
    fn slot(
        &self,
        accumulator: &mut Self::Accumulator,
        message: Self::Message,
        source: u64,
        destination: u64,
        edge: Self::Edge,
    );
    /// Adds the accumulator of later slot calls to that of earlier ones.
    fn merge(&self, accumulator: &mut Self::Accumulator, later: Self::Accumulator);
    /// Updates a destination.
    fn apply(
        &self,
        v: u64,
        row: <Self::ApplyRows as Rows>::Row<'_>,
        accumulator: Self::Accumulator,
    ) -> (Self::Sum, Activate);
}

/// The edge program of a [`SlotProgram`].
#[derive(Clone, Copy, Debug)]
pub struct Slot<P>(pub P);

impl<P: SlotProgram> EdgeProgram for Slot<P> {
    type SignalRows = P::SignalRows;
    type ApplyRows = P::ApplyRows;
    type Edge = P::Edge;
    type Message = P::Message;
    type EdgeMessage = (P::Message, [u64; 2], P::Edge);
    type Accumulator = P::Accumulator;
    type Sum = P::Sum;
    const IDENTITY: P::Accumulator = P::IDENTITY;
    const ORDER_INDEPENDENT: bool = P::ORDER_INDEPENDENT;

    #[inline(always)]
    fn signal(&self, v: u64, row: <P::SignalRows as Rows>::Row<'_>) -> Option<P::Message> {
        self.0.signal(v, row)
    }
    #[inline(always)]
    fn on_edge(&self, message: P::Message, edge: P::Edge) -> Self::EdgeMessage {
        (message, [0; 2], edge)
    }
    #[inline(always)]
    fn on_arc(
        &self,
        sender: u64,
        receiver: u64,
        message: P::Message,
        edge: P::Edge,
    ) -> Self::EdgeMessage {
        (message, [sender, receiver], edge)
    }
    #[inline(always)]
    fn fold(&self, accumulator: &mut P::Accumulator, carried: Self::EdgeMessage) {
        let (message, [source, destination], edge) = carried;
        self.0.slot(accumulator, message, source, destination, edge);
    }
    #[inline(always)]
    fn merge(&self, accumulator: &mut P::Accumulator, later: P::Accumulator) {
        self.0.merge(accumulator, later);
    }
    #[inline(always)]
    fn apply(
        &self,
        v: u64,
        row: <P::ApplyRows as Rows>::Row<'_>,
        accumulator: P::Accumulator,
    ) -> (P::Sum, Activate) {
        self.0.apply(v, row, accumulator)
    }
}
