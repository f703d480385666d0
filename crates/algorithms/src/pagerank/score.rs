//! Scores: the floating-point types they are kept in, and the state of a vertex while they are computed.

use graphmill_engine::{Accumulator, EdgeValue, Element, Reduce};

/// A type of number that scores, or sums of them, are kept in.
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

/// The value of a unit of fixed-point sums.
const UNIT: f64 = 1.0 / (1u64 << 63) as f64;

/// Shares in units of 2^-63: their sum is the same in any order, and about 1 at most.
impl Real for u64 {
    const NOTHING: Self = 0;
    #[inline(always)]
    fn of(value: f64) -> Self {
        (value / UNIT).round_ties_even() as u64
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self as f64 * UNIT
    }
}

/// A score whose shares are summed in fixed point.
pub(crate) type FixedScore = [f64; 1];

impl State<f64> for FixedScore {
    type Edge = ();
    type Message = u64;
    #[inline(always)]
    fn score(&self) -> f64 {
        self[0]
    }
    #[inline(always)]
    fn set_score(&mut self, score: f64) {
        self[0] = score;
    }
    #[inline(always)]
    fn total(&self, degree: u64) -> f64 {
        degree as f64
    }
    #[inline(always)]
    fn on_edge(share: u64, (): ()) -> u64 {
        share
    }
}

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

/// The share of a vertex's score that goes along each of its arcs; nothing from a sink.
#[inline(always)]
pub(super) fn spread<R: Real, S: State<R>>(state: &S, degree: u64) -> Option<S::Message> {
    let total = state.total(degree);
    (total > 0.0).then(|| S::Message::of(state.score().value() / total))
}
