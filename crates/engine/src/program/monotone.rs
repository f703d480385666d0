//! Label programs: each vertex settles on the least label that reaches it.
//!
//! A label program is what breadth-first depths, shortest paths and flooding have in common. It says less than an edge program
//! and so leaves the engine more freedom: a label may travel as soon as it is known, and again when a lesser one comes. The result
//! is the same whatever the order, since [`MonotoneProgram::on_edge`] ascends in the label: the least fixed point.

use std::convert::identity;

use graphmill_raw::AtomicScalar;

use crate::value::{Accumulator, EdgeValue};

/// What vertices settle on; the greatest label says that none has come.
pub trait Label: Accumulator + PartialOrd + std::fmt::Debug {
    /// A number that is ordered as labels are.
    type Word: AtomicScalar;
    /// The label that no other is greater than.
    const NONE: Self;
    /// The number of a label.
    fn word(self) -> Self::Word;
    /// The label of a number.
    fn of_word(word: Self::Word) -> Self;
}

macro_rules! labels {
    ($($t:ident $word:ident $none:ident $to:path, $from:path;)*) => {$(
        impl Label for $t {
            type Word = $word;
            const NONE: $t = $t::$none;
            #[inline(always)]
            fn word(self) -> $word {
                $to(self)
            }
            #[inline(always)]
            fn of_word(word: $word) -> $t {
                $from(word)
            }
        }
    )*};
}
// Floating-point labels are 0 or more: then their bits are ordered as they are.
labels! {
    u32 u32 MAX identity, identity;
    u64 u64 MAX identity, identity;
    f32 u32 INFINITY f32::to_bits, f32::from_bits;
    f64 u64 INFINITY f64::to_bits, f64::from_bits;
}

/// A program whose vertices settle on the least label that reaches them.
pub trait MonotoneProgram: Copy + Sync + 'static {
    /// What a vertex settles on.
    type Label: Label;
    /// The edge's value: `()`, a weight as `f32` or `f64` (1 on a graph without weights), or a record.
    ///
    /// [`edge_record!`](crate::edge_record) makes a struct the record of an edge.
    type Edge: EdgeValue;
    /// True if no label is lowered after it has reached a vertex.
    ///
    /// All active vertices then have the same label, and `on_edge` makes the same greater or equal one of it on every edge. A vertex
    /// needs at most one message, so it may pull.
    const UNIT_STEP: bool = false;

    /// Returns the label at the end of an edge: not less than `label`, and monotone in it.
    fn on_edge(&self, label: Self::Label, edge: Self::Edge) -> Self::Label;

    /// Returns the bucket of a label: lower buckets are sent first (delta-stepping).
    ///
    /// Ascends with the label.
    fn bucket(&self, _label: Self::Label) -> u64 {
        0
    }
}
