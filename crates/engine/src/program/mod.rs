//! The narrow waist: what an edge program is.
//!
//! Above it stand the algorithms, below it the executors. A program is five small functions (DFOGraph, section 3
//! and Fig. 2, with the accumulator kept apart from the row so that a fold needs no access to the destination):
//!
//! ```text
//! signal(v, row)      at an active source            -> a message, or none
//! along(message, e)   on each edge                   -> what this edge carries
//! fold(acc, carried)  at the destination, from IDENTITY
//! merge(acc, acc)     of two partial folds of one destination
//! apply(v, row, acc)  once per destination reached   -> a summand, and whether it is active next
//! ```
//!
//! A function has exclusive access to its row, so programs hold no atomics and no locks.

mod label;
mod pregel;
mod send;

use graphmill_graph::EdgeKind;
use graphmill_raw::Element;

use crate::rows::Rows;

pub use label::{Label, LabelProgram};
pub(crate) use pregel::Facts;
pub use pregel::{Pregel, Vertex};
pub use send::SendProgram;

/// Whether a vertex takes part as a source in the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activate {
    /// It stays silent.
    No,
    /// It signals in the next pass that is given the returned set.
    Yes,
}

/// The destinations that `apply` is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those that a message reached: whose accumulator differs from `IDENTITY`, bit by bit.
    Reached,
    /// Every vertex, those that no message reached with `IDENTITY`.
    Every,
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
    /// The arrays that `apply` and `wants` see.
    type ApplyRows: Rows;
    /// The edge's value: `()`, or a weight as `f32` or `f64` (1 on a graph without weights).
    type Edge: EdgeValue;
    /// What a source emits.
    type Message: Element;
    /// What one edge carries.
    type Carried: Copy;
    /// The fold of what reached one vertex.
    type Accumulator: Accumulator;
    /// What a pass adds up.
    type Sum: Sum;

    /// The accumulator that no message has reached. For a floating-point sum this is `-0.0`: the true neutral
    /// element, and different from every sum of messages.
    const IDENTITY: Self::Accumulator;
    /// The destinations that `apply` is called for.
    const REACH: Reach = Reach::Reached;
    /// The fold gives the same bits in any order (integers, minimum, maximum).
    const EXACT: bool = false;

    /// The message of an active vertex.
    fn signal(&self, v: u64, row: <Self::SignalRows as Rows>::Row<'_>) -> Option<Self::Message>;
    /// What an edge makes of a message.
    fn along(&self, message: Self::Message, edge: Self::Edge) -> Self::Carried;
    /// Takes one more message into an accumulator.
    fn fold(&self, accumulator: &mut Self::Accumulator, carried: Self::Carried);
    /// Takes a later partial fold into an earlier one.
    fn merge(&self, accumulator: &mut Self::Accumulator, later: Self::Accumulator);
    /// Updates a destination.
    fn apply(
        &self,
        v: u64,
        row: <Self::ApplyRows as Rows>::Row<'_>,
        accumulator: Self::Accumulator,
    ) -> (Self::Sum, Activate);

    /// Whether this destination can still use a message; a pass that pulls passes by those that cannot.
    fn wants(&self, _v: u64, _row: <Self::ApplyRows as Rows>::Row<'_>) -> bool {
        true
    }
    /// Whether no message of a later source can change this accumulator; a pass that pulls stops there.
    fn enough(&self, _accumulator: &Self::Accumulator) -> bool {
        false
    }
    /// Whether `wants` or `enough` ever say something, so that pulling can save work.
    const PULLS: bool = false;
}

/// An edge's value as a program sees it.
pub trait EdgeValue: Copy + Send + Sync + 'static {
    /// Whether the pass has to read the weights.
    const WEIGHTED: bool;
    /// The value on a graph without weights.
    const ONE: Self;
    /// From a stored `f32`.
    fn of_f32(weight: f32) -> Self;
    /// From a stored `f64`.
    fn of_f64(weight: f64) -> Self;
}

/// The value of edge `i`, whose weight lies among `weights`, bytes as the graph keeps them.
#[inline(always)]
pub(crate) fn edge_value<E: EdgeValue>(kind: EdgeKind, weights: &[u8], i: usize) -> E {
    match kind {
        EdgeKind::F32 if E::WEIGHTED => {
            let weight = weights.as_chunks().0.get(i);
            E::of_f32(f32::from_le_bytes(weight.copied().unwrap_or_default()))
        }
        EdgeKind::F64 if E::WEIGHTED => {
            let weight = weights.as_chunks().0.get(i);
            E::of_f64(f64::from_le_bytes(weight.copied().unwrap_or_default()))
        }
        _ => E::ONE,
    }
}

impl EdgeValue for () {
    const WEIGHTED: bool = false;
    const ONE: () = ();
    fn of_f32(_: f32) {}
    fn of_f64(_: f64) {}
}

impl EdgeValue for f32 {
    const WEIGHTED: bool = true;
    const ONE: f32 = 1.0;
    fn of_f32(weight: f32) -> f32 {
        weight
    }
    fn of_f64(weight: f64) -> f32 {
        weight as f32
    }
}

impl EdgeValue for f64 {
    const WEIGHTED: bool = true;
    const ONE: f64 = 1.0;
    fn of_f32(weight: f32) -> f64 {
        f64::from(weight)
    }
    fn of_f64(weight: f64) -> f64 {
        weight
    }
}

/// A value that folds messages; compared bit by bit to tell a destination that was reached.
pub trait Accumulator: Element {
    /// Equality of bits: `-0.0` differs from `0.0`, a NaN equals itself.
    fn same(&self, other: &Self) -> bool;
}

impl<T: Accumulator, const N: usize> Accumulator for [T; N] {
    #[inline(always)]
    fn same(&self, other: &Self) -> bool {
        self.iter().zip(other).all(|(one, other)| one.same(other))
    }
}

/// A value that a pass adds up, batch by batch in order.
pub trait Sum: Copy + Send + Sync + 'static {
    /// The empty sum.
    const ZERO: Self;
    /// Adds a later summand.
    fn add(&mut self, later: Self);
    /// Appends bytes that [`Sum::take`] makes the same of, on its way to another rank.
    fn put(&self, to: &mut Vec<u8>);
    /// Takes one off the front of bytes that [`Sum::put`] appended; `None` where they are too few.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

impl<T: Sum, const N: usize> Sum for [T; N] {
    const ZERO: Self = [T::ZERO; N];
    #[inline(always)]
    fn add(&mut self, later: Self) {
        self.iter_mut()
            .zip(later)
            .for_each(|(one, later)| one.add(later));
    }
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|one| one.put(to));
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut all = Self::ZERO;
        for one in &mut all {
            *one = T::take(from)?;
        }
        Some(all)
    }
}

/// Numbers as they go from rank to rank.
macro_rules! as_bytes {
    () => {
        fn put(&self, to: &mut Vec<u8>) {
            to.extend_from_slice(&self.to_le_bytes());
        }
        fn take(from: &mut &[u8]) -> Option<Self> {
            let (bytes, rest) = from.split_first_chunk()?;
            *from = rest;
            Some(Self::from_le_bytes(*bytes))
        }
    };
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Accumulator for $t {
            #[inline(always)]
            fn same(&self, other: &Self) -> bool {
                self == other
            }
        }
        impl Sum for $t {
            const ZERO: Self = 0;
            #[inline(always)]
            fn add(&mut self, later: Self) {
                *self = self.wrapping_add(later);
            }
            as_bytes!();
        }
    )*};
}
integers!(u8 u16 u32 u64 i32 i64);

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Accumulator for $t {
            #[inline(always)]
            fn same(&self, other: &Self) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
        impl Sum for $t {
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn add(&mut self, later: Self) {
                *self += later;
            }
            as_bytes!();
        }
    )*};
}
floats!(f32 f64);

impl Sum for () {
    const ZERO: () = ();
    fn add(&mut self, (): ()) {}
    fn put(&self, _: &mut Vec<u8>) {}
    fn take(_: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: Sum),+> Sum for ($($t,)+) {
            const ZERO: Self = ($($t::ZERO,)+);
            #[inline(always)]
            fn add(&mut self, later: Self) {
                $(self.$i.add(later.$i);)+
            }
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$i.put(to);)+
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(($($t::take(from)?,)+))
            }
        }
    )*};
}
tuples!((A 0, B 1) (A 0, B 1, C 2));
