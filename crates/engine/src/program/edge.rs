//! What an edge program is.
//!
//! Above it stand the algorithms, below it the executors. A program is five small functions (DFOGraph, section 3
//! and Fig. 2, with the accumulator kept apart from the row so that a fold needs no access to the destination):
//!
//! ```text
//! signal(v, row)       at an active source            -> a message, or none
//! on_edge(message, e)  on each edge                   -> what this edge carries (`on_arc` knows its two vertices too)
//! fold(acc, carried)   at the destination, from IDENTITY
//! merge(acc, acc)      of two partial folds of one destination
//! apply(v, row, acc)   once per destination reached   -> a summand, and whether it is active next
//! ```
//!
//! A function has exclusive access to its row, so programs hold no atomics and no locks.

use graphmill_raw::Element;

use crate::frontier::bitmap::Bits;
use crate::state::rows::{RowRun, Rows};
use crate::value::{Accumulator, EdgeValue, Reduce};

/// Whether a vertex takes part as a source in the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activate {
    /// It stays silent.
    No,
    /// It signals in the next pass that is given the returned set.
    Yes,
}

impl Activate {
    /// Returns `Yes` if `is_active`.
    #[inline(always)]
    #[must_use]
    pub fn when(is_active: bool) -> Activate {
        if is_active { Self::Yes } else { Self::No }
    }
}

/// The destinations that `apply` is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyTo {
    /// Those that a message reached: whose accumulator differs from `IDENTITY`, bit by bit.
    Touched,
    /// Every vertex, those that no message reached with `IDENTITY`.
    All,
}

/// Which way the messages of a pass travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the source of an arc to its destination.
    Forward,
    /// From the destination of an arc to its source; needs no reversed copy of the graph.
    Backward,
}

/// A signal/slot program; see the module's page for the order of its calls.
///
/// The fold of one destination is defined by the graph alone: in ascending order of the source within a strip,
/// strips merged in order. A program therefore gives the same bits for any number of threads and any budget.
pub trait EdgeProgram: Sync {
    /// The arrays that `signal` sees.
    type SignalRows: Rows;
    /// The arrays that `apply` and `is_pending` see.
    type ApplyRows: Rows;
    /// The edge's value: `()`, a weight as `f32` or `f64` (1 on a graph without weights), or a record.
    ///
    /// [`edge_record!`](crate::edge_record) makes a struct the record of an edge.
    type Edge: EdgeValue;
    /// What a source emits.
    type Message: Element;
    /// What one edge carries.
    type EdgeMessage: Copy;
    /// The fold of what reached one vertex.
    type Accumulator: Accumulator;
    /// What a pass adds up.
    type Sum: Reduce;

    /// The accumulator that no message has reached.
    ///
    /// For a floating-point sum this is `-0.0`: the true neutral element, and different from every sum of messages.
    const IDENTITY: Self::Accumulator;
    /// The destinations that `apply` is called for.
    const APPLY_TO: ApplyTo = ApplyTo::Touched;
    /// The fold gives the same bits in any order (integers, minimum, maximum).
    const ORDER_INDEPENDENT: bool = false;

    /// [`EdgeProgram::IDENTITY`], unless the value is known at run time only.
    ///
    /// It is the same in all passes of an engine.
    #[inline(always)]
    fn identity(&self) -> Self::Accumulator {
        Self::IDENTITY
    }
    /// [`EdgeProgram::APPLY_TO`], unless it is known at run time only.
    #[inline(always)]
    fn apply_to(&self) -> ApplyTo {
        Self::APPLY_TO
    }

    /// [`EdgeProgram::ORDER_INDEPENDENT`], unless it is known at run time only.
    #[inline(always)]
    fn is_exact(&self) -> bool {
        Self::ORDER_INDEPENDENT
    }

    /// The message of an active vertex.
    ///
    /// A pass calls it exactly once for each active vertex, in every mode, and also for a vertex without edges. It may therefore
    /// change the rows that it names for writing. All calls at a rank end before the first `apply` there.
    fn signal(&self, v: u64, row: <Self::SignalRows as Rows>::Row<'_>) -> Option<Self::Message>;
    /// What an edge makes of a message.
    fn on_edge(&self, message: Self::Message, edge: Self::Edge) -> Self::EdgeMessage;
    /// What the edge from vertex `sender` to vertex `receiver` makes of a message of the sender.
    ///
    /// The executors call this function. By default it calls [`EdgeProgram::on_edge`], and the two indices cost nothing. Against the
    /// arcs ([`Direction::Backward`]) the sender is the destination of the arc.
    #[inline(always)]
    fn on_arc(
        &self,
        _sender: u64,
        _receiver: u64,
        message: Self::Message,
        edge: Self::Edge,
    ) -> Self::EdgeMessage {
        self.on_edge(message, edge)
    }
    /// Takes one more message into an accumulator.
    fn fold(&self, accumulator: &mut Self::Accumulator, carried: Self::EdgeMessage);
    /// True if [`EdgeProgram::fold_edges`] folds many edges at once, sooner than one by one.
    const FOLDS_MANY: bool = false;
    /// Folds edges into the accumulators at `receivers`, in order.
    ///
    /// The executors call it where they have many edges, and [`EdgeProgram::fold`] elsewhere. All lists have the same length. Each
    /// receiver is a place in `accumulators`.
    fn fold_edges(
        &self,
        accumulators: &mut [Self::Accumulator],
        receivers: &[u32],
        messages: &[Self::Message],
        edges: &[Self::Edge],
    ) {
        for (i, receiver) in receivers.iter().enumerate() {
            let carried = self.on_edge(messages[i], edges[i]);
            self.fold(&mut accumulators[*receiver as usize], carried);
        }
    }
    /// Takes a later partial fold into an earlier one.
    fn merge(&self, accumulator: &mut Self::Accumulator, later: Self::Accumulator);
    /// Updates a destination.
    fn apply(
        &self,
        v: u64,
        row: <Self::ApplyRows as Rows>::Row<'_>,
        accumulator: Self::Accumulator,
    ) -> (Self::Sum, Activate);

    /// True if `signal_many` and `apply_many` are sooner than one call for each vertex.
    ///
    /// The executors call them where they have many vertices, and `signal` and `apply` elsewhere.
    const CALLS_MANY: bool = false;
    /// Makes the messages of the vertices from `v` on whose bits are set.
    ///
    /// Returns the bits of the vertices that send.
    fn signal_many(
        &self,
        v: u64,
        bits: u64,
        rows: &mut RowRun<'_, '_, Self::SignalRows>,
        messages: &mut [Self::Message],
    ) -> u64 {
        let mut sent = 0;
        for i in Bits(bits) {
            if let Some(message) = self.signal(v + i as u64, rows.row(i)) {
                messages[i] = message;
                sent |= 1 << i;
            }
        }
        sent
    }
    /// Updates the destinations from `v` on whose bits are set, and adds up their sums.
    ///
    /// Returns the bits of the vertices that are active next.
    fn apply_many(
        &self,
        v: u64,
        bits: u64,
        rows: &mut RowRun<'_, '_, Self::ApplyRows>,
        accumulators: &[Self::Accumulator],
        sum: &mut Self::Sum,
    ) -> u64 {
        let mut active = 0;
        for i in Bits(bits) {
            let (summand, activate) = self.apply(v + i as u64, rows.row(i), accumulators[i]);
            sum.add(summand);
            active |= u64::from(activate == Activate::Yes) << i;
        }
        active
    }

    /// True if this destination can still use a message; a pass that pulls passes by those that cannot.
    fn is_pending(&self, _v: u64, _row: <Self::ApplyRows as Rows>::Row<'_>) -> bool {
        true
    }
    /// True if no message of a later source can change this accumulator; a pass that pulls stops there.
    fn is_final(&self, _accumulator: &Self::Accumulator) -> bool {
        false
    }
    /// True if `is_pending` or `is_final` ever say something, so that pulling can save work.
    const EARLY_EXIT: bool = false;
}
