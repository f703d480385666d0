//! Scores: the floating-point types they are kept in, and the state of a vertex while they are computed.

use graphmill_engine::{Accumulator, EdgeValue, Element, Reduce};

/// A floating-point type that ranks are kept in.
pub trait Real: Element + Accumulator + Reduce + std::fmt::Debug {
    /// The neutral element of addition, told apart from every sum.
    const NOTHING: Self;
    /// Rounded from `f64`.
    fn of(value: f64) -> Self;
    /// Widened to `f64`.
    fn value(self) -> f64;
}

macro_rules! real {
    ($($t:ty)*) => {$(
        impl Real for $t {
            const NOTHING: Self = -0.0;
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn value(self) -> f64 {
                f64::from(self)
            }
        }
    )*};
}
real!(f32 f64);

/// The row of a vertex while scores are computed.
pub(crate) trait State<R: Real>: Element {
    /// The value of an arc: nothing, or its weight.
    type Edge: EdgeValue;
    /// The share of a score that goes along an arc, per unit of weight.
    type Message: Real;
    /// Returns the score.
    fn score(&self) -> R;
    /// Replaces the score.
    fn set_score(&mut self, score: R);
    /// Returns what the score is split by: the weights of the out-arcs together. 0 if the vertex is a sink.
    fn total(&self, degree: u64) -> f64;
    /// Returns what goes along an arc.
    fn on_edge(share: Self::Message, edge: Self::Edge) -> Self::Message;
}

impl<R: Real> State<R> for R {
    type Edge = ();
    type Message = R;
    #[inline(always)]
    fn score(&self) -> R {
        *self
    }
    #[inline(always)]
    fn set_score(&mut self, score: R) {
        *self = score;
    }
    #[inline(always)]
    fn total(&self, degree: u64) -> f64 {
        degree as f64
    }
    #[inline(always)]
    fn on_edge(share: R, (): ()) -> R {
        share
    }
}

/// The score of a vertex that has no arc to send it along; else 0.
#[inline(always)]
pub(super) fn lost<R: Real, S: State<R>>(state: &S, degree: u64) -> f64 {
    match state.total(degree) > 0.0 {
        true => 0.0,
        false => state.score().value(),
    }
}
