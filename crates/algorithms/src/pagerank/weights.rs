//! The weights of the out-arcs of each vertex together, by which weighted PageRank splits its score.
//!
//! One pass in which every arc brings its weight back to its source. It reads each weight, so a negative one is found whatever the
//! description of the graph says.

use graphmill_engine::{
    Activate, ApplyTo, Direction, EdgeProgram, Engine, EngineError, VertexArray, Write,
};

use super::score::{Real, State};

/// A score, and the weights of the out-arcs together.
pub(crate) type Weighed = [f64; 2];

/// Sums by which a score, which is at most 1, is split without loss of digits.
const TOTALS: std::ops::RangeInclusive<f64> = 1e-200..=1e200;

impl<R: Real> State<R> for Weighed {
    type Edge = f64;
    /// In 64 bits whatever the scores have: a score over a sum may be far from both.
    type Message = f64;
    #[inline(always)]
    fn score(&self) -> R {
        R::of(self[0])
    }
    #[inline(always)]
    fn set_score(&mut self, score: R) {
        self[0] = score.value();
    }
    #[inline(always)]
    fn total(&self, _: u64) -> f64 {
        self[1]
    }
    #[inline(always)]
    fn on_edge(share: f64, weight: f64) -> f64 {
        share * weight
    }
}

/// Adds up the weights of the out-arcs of each vertex.
///
/// # Errors
/// A weight is negative or no number, or the weights of a vertex add up to what no score can be split by; the engine's.
pub(super) fn weigh(engine: &mut Engine) -> Result<VertexArray<Weighed>, EngineError> {
    let states = engine.vertex_array::<Weighed>("pagerank and weights")?;
    let everyone = engine.full_set()?;
    let rows = (states.write(),);
    let ([negative, odd], _) =
        engine.process_edges(&OutWeights, (), rows, &everyone, Direction::Backward)?;
    let refuse = |what| {
        Err(EngineError::Weights {
            graph: engine.graph().path().to_path_buf(),
            what,
        })
    };
    match (negative, odd) {
        (0, 0) => Ok(states),
        (0, _) => refuse(
            "the weights of the arcs out of a vertex add up to less than 1e-200 or more than 1e200, and a score is split by their sum; import the edges again with weights of another scale",
        ),
        _ => refuse(
            "it has negative weights, and a score is split in proportion to weights of 0 or more; import the edges again with other weights, or leave out --weighted",
        ),
    }
}

/// Brings the weight of each arc back to its source.
pub(super) struct OutWeights;

impl EdgeProgram for OutWeights {
    type SignalRows = ();
    type ApplyRows = (Write<Weighed>,);
    type Edge = f64;
    type Message = u8;
    type EdgeMessage = f64;
    /// NaN once a weight was negative.
    type Accumulator = f64;
    /// Vertices with a negative weight, and with a sum that nothing is split by.
    type Sum = [u64; 2];
    const IDENTITY: f64 = -0.0;
    const APPLY_TO: ApplyTo = ApplyTo::All;

    #[inline(always)]
    fn signal(&self, _: u64, (): ()) -> Option<u8> {
        Some(0)
    }
    #[inline(always)]
    fn on_edge(&self, _: u8, weight: f64) -> f64 {
        if weight >= 0.0 { weight } else { f64::NAN }
    }
    #[inline(always)]
    fn fold(&self, sum: &mut f64, weight: f64) {
        *sum += weight;
    }
    #[inline(always)]
    fn merge(&self, sum: &mut f64, later: f64) {
        *sum += later;
    }
    #[inline(always)]
    fn apply(&self, _: u64, (state,): (&mut Weighed,), sum: f64) -> ([u64; 2], Activate) {
        state[1] = sum;
        let is_negative = sum.is_nan();
        let is_odd = sum != 0.0 && !is_negative && !TOTALS.contains(&sum);
        ([is_negative, is_odd].map(u64::from), Activate::No)
    }
}
