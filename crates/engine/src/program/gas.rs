//! Scatter, gather and apply programs, as Chaos has them.

use graphmill_raw::Element;

use crate::program::edge::{Activate, ApplyTo, EdgeProgram};
use crate::state::rows::{Read, Write};
use crate::value::{Accumulator, EdgeValue};

/// An edge-centric program of three functions (Chaos, section 2 and Fig. 1).
///
/// BlitzG has the same three, and calls `gather` `collect` (Algorithms 1 and 2).
///
/// [`Gas`] makes an [`EdgeProgram`] of it, which any executor runs. All state is one value for each vertex. The value of an active
/// vertex goes along its edges.
pub trait GasProgram: Sync {
    /// The value of a vertex.
    type Value: Element;
    /// The edge's value.
    type Edge: EdgeValue;
    /// What an edge carries to its destination.
    type Update: Copy;
    /// The result of all updates of one vertex.
    type Accumulator: Accumulator;

    /// As [`EdgeProgram::IDENTITY`].
    const IDENTITY: Self::Accumulator;
    /// As [`EdgeProgram::APPLY_TO`]: the paper applies all vertices.
    const APPLY_TO: ApplyTo = ApplyTo::All;
    /// As [`EdgeProgram::ORDER_INDEPENDENT`].
    const ORDER_INDEPENDENT: bool = false;

    /// Returns the update that an edge carries from a source of that value.
    fn scatter(&self, source: Self::Value, edge: Self::Edge) -> Self::Update;
    /// Adds an update to the accumulator of its destination.
    fn gather(&self, accumulator: &mut Self::Accumulator, update: Self::Update);
    /// Adds the accumulator of one replica of a vertex to that of another (Fig. 3).
    fn merge(&self, accumulator: &mut Self::Accumulator, other: Self::Accumulator);
    /// Updates the value of a vertex; `Yes` scatters it in the next pass.
    fn apply(&self, value: &mut Self::Value, accumulator: Self::Accumulator) -> Activate;
}

/// The edge program of a [`GasProgram`]. A pass returns the number of vertices that are active next.
#[derive(Clone, Copy, Debug)]
pub struct Gas<P>(pub P);

impl<P: GasProgram> EdgeProgram for Gas<P> {
    type SignalRows = Read<P::Value>;
    type ApplyRows = Write<P::Value>;
    type Edge = P::Edge;
    type Message = P::Value;
    type EdgeMessage = P::Update;
    type Accumulator = P::Accumulator;
    type Sum = u64;
    const IDENTITY: P::Accumulator = P::IDENTITY;
    const APPLY_TO: ApplyTo = P::APPLY_TO;
    const ORDER_INDEPENDENT: bool = P::ORDER_INDEPENDENT;

    #[inline(always)]
    fn signal(&self, _: u64, value: &P::Value) -> Option<P::Value> {
        Some(*value)
    }
    #[inline(always)]
    fn on_edge(&self, value: P::Value, edge: P::Edge) -> P::Update {
        self.0.scatter(value, edge)
    }
    #[inline(always)]
    fn fold(&self, accumulator: &mut P::Accumulator, update: P::Update) {
        self.0.gather(accumulator, update);
    }
    #[inline(always)]
    fn merge(&self, accumulator: &mut P::Accumulator, later: P::Accumulator) {
        self.0.merge(accumulator, later);
    }
    #[inline(always)]
    fn apply(&self, _: u64, value: &mut P::Value, accumulator: P::Accumulator) -> (u64, Activate) {
        let activate = self.0.apply(value, accumulator);
        (u64::from(activate == Activate::Yes), activate)
    }
}
