//! Belief propagation on two states: the probability of state 1 of each vertex, from priors and what neighbours say.
//!
//! Messages live in vertices: the graph has one for each edge, with an arc from the source and one to the destination. An iteration is two
//! passes that bring the beliefs of both ends to the edge, and two that bring its new messages to them.

pub mod check;
pub(crate) mod entry;

use graphmill_engine::{
    Activate, Convergence, Direction, EdgeProgram, Engine, EngineError, ProgramFootprint, Read,
    VertexArray, Write, job,
};

/// The options of a run.
#[derive(Debug, Clone, Copy)]
pub struct BpOptions {
    /// The weights of the pairs of states, all above 0.
    ///
    /// `[s][t]` is for state `s` of the source and state `t` of the destination.
    pub potential: [[f64; 2]; 2],
    /// The greatest number of iterations.
    pub iterations: u32,
    /// Stop when all messages together change by less than this in an iteration.
    pub tolerance: Option<f64>,
}

/// The row of a vertex: in log odds of state 1, the prior and the belief, or the messages of an edge.
type Row = [f64; 3];
const PRIOR: usize = 0;
const BELIEF: usize = 1;
/// The messages to the destination and to the source, and the next one to the destination.
const TO_DESTINATION: usize = 0;
const TO_SOURCE: usize = 1;
const NEXT: usize = 2;

/// The greatest exponent of a potential: sums of as many as a graph has edges stay finite.
const EXPONENT_MAX: f64 = 1e280;

/// Computes the beliefs by sum-product, with all messages at once, from messages that favour no state.
///
/// A belief is the prior times the messages of all edges, scaled to a probability. A message to one end of an edge is the potential, to the
/// power of the weight, applied to the belief of the other end without the message that came from this edge. `priors` are probabilities of
/// state 1; without them each is 0.5. The graph must have been imported with vertices of edges.
///
/// # Errors
/// Errors of the engine.
pub fn run(
    engine: &mut Engine,
    priors: Option<VertexArray<f64>>,
    options: &BpOptions,
) -> Result<VertexArray<f64>, EngineError> {
    let named = engine.graph().named_vertices();
    let rows = engine.vertex_array::<Row>("beliefs and messages")?;
    let vertices = engine.select_vertices((), None, |v, ()| v < named)?;
    let edges = engine.select_vertices((), None, |v, ()| v >= named)?;
    engine.process_vertices(rows.write(), None, |_, row| *row = [0.0; 3])?;
    if let Some(priors) = priors {
        let both = (rows.write(), priors.read());
        engine.process_vertices(both, Some(&vertices), |_, (row, prior)| {
            row[PRIOR] = prior.ln() - (-prior).ln_1p();
            row[BELIEF] = row[PRIOR];
        })?;
    }
    let logs = options.potential.map(|row| row.map(f64::ln));
    let directions = [
        (Direction::Forward, TO_DESTINATION),
        (Direction::Backward, TO_SOURCE),
    ];
    let (mut change, mut iterations) = (0.0, 0);
    while iterations < options.iterations {
        change = 0.0;
        for (direction, _) in directions {
            let to_edges = ToEdges::new(logs, direction);
            let (write, read) = (rows.write(), rows.write());
            change += engine
                .process_edges(&to_edges, write, read, &vertices, direction)?
                .0;
        }
        for (direction, place) in directions {
            let to_ends = ToEnds { place };
            engine.process_edges(&to_ends, rows.read(), rows.write(), &edges, direction)?;
        }
        iterations += 1;
        if (options.tolerance).is_some_and(|tolerance| change < tolerance) {
            break;
        }
    }
    if iterations > 0 {
        let end = Convergence::new(change, options.tolerance).after(iterations.into());
        job::note_convergence(engine, end);
    }
    let beliefs = engine.vertex_array::<f64>("belief")?;
    let both = (beliefs.write(), rows.read());
    engine.process_vertices(both, Some(&vertices), |_, (belief, row)| {
        *belief = probability(row[BELIEF]);
    })?;
    Ok(beliefs)
}

/// Returns the bytes that the passes hold for each vertex.
pub(crate) fn sizes() -> ProgramFootprint {
    // Rows, beliefs and priors.
    let arrays = size_of::<Row>() + 2 * size_of::<f64>();
    ProgramFootprint::of::<ToEdges>()
        .or(ProgramFootprint::of::<ToEnds>())
        .with_arrays(arrays)
        .with_rows::<(Write<f64>, Read<Row>)>()
        .going_against(true)
}

/// The probability of log odds.
fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// The logarithm of the sum of two numbers, not both 0, from their logarithms.
fn log_sum(one: f64, other: f64) -> f64 {
    let (least, most) = (one.min(other), one.max(other));
    most + (least - most).exp().ln_1p()
}

/// Brings the belief of each end to its edges, which compute their messages to the other ends.
struct ToEdges {
    /// The logarithms of the potential, by the state of the end that sends and of the other end.
    logs: [[f64; 2]; 2],
    is_forward: bool,
}

impl ToEdges {
    fn new(logs: [[f64; 2]; 2], direction: Direction) -> ToEdges {
        let [[a, b], [c, d]] = logs;
        match direction {
            Direction::Forward => ToEdges {
                logs,
                is_forward: true,
            },
            Direction::Backward => ToEdges {
                logs: [[a, c], [b, d]],
                is_forward: false,
            },
        }
    }

    /// The message of an end whose state has these log odds, over an edge of this weight.
    fn message(&self, log_odds: f64, weight: f64) -> f64 {
        let [from_0, from_1] = self
            .logs
            .map(|row| row.map(|log| (weight * log).clamp(-EXPONENT_MAX, EXPONENT_MAX)));
        // Log odds may be infinite: none is added to another.
        let (state_0, state_1) = (-log_odds.max(0.0), log_odds.min(0.0));
        let of_state = |to: usize| log_sum(state_0 + from_0[to], state_1 + from_1[to]);
        of_state(1) - of_state(0)
    }
}

impl EdgeProgram for ToEdges {
    type SignalRows = Write<Row>;
    type ApplyRows = Write<Row>;
    type Edge = f64;
    type Message = f64;
    type EdgeMessage = [f64; 2];
    /// The belief of the end, and the weight of the edge: nothing is added up.
    type Accumulator = [f64; 2];
    /// How much the messages change.
    type Sum = f64;
    const IDENTITY: [f64; 2] = [f64::NAN; 2];
    const ORDER_INDEPENDENT: bool = true;

    /// The second pass is the last that needs the belief: the next one begins with the prior.
    #[inline(always)]
    fn signal(&self, _: u64, row: &mut Row) -> Option<f64> {
        let belief = row[BELIEF];
        if !self.is_forward {
            row[BELIEF] = row[PRIOR];
        }
        Some(belief)
    }
    #[inline(always)]
    fn on_edge(&self, belief: f64, weight: f64) -> [f64; 2] {
        [belief, weight]
    }
    #[inline(always)]
    fn fold(&self, one: &mut [f64; 2], carried: [f64; 2]) {
        *one = carried;
    }
    #[inline(always)]
    fn merge(&self, one: &mut [f64; 2], later: [f64; 2]) {
        if !later[1].is_nan() {
            *one = later;
        }
    }
    #[inline(always)]
    fn apply(&self, _: u64, row: &mut Row, [belief, weight]: [f64; 2]) -> (f64, Activate) {
        let (came, goes) = match self.is_forward {
            true => (TO_SOURCE, TO_DESTINATION),
            false => (TO_DESTINATION, TO_SOURCE),
        };
        let next = self.message(belief - row[came], weight);
        let change = (probability(next) - probability(row[goes])).abs();
        match self.is_forward {
            // The way back still needs the old one.
            true => row[NEXT] = next,
            false => (row[TO_DESTINATION], row[TO_SOURCE]) = (row[NEXT], next),
        }
        (change, Activate::No)
    }
}

/// Brings the messages of each edge to one of its ends, which adds them to its belief.
struct ToEnds {
    /// The place of the message in the row of an edge.
    place: usize,
}

impl EdgeProgram for ToEnds {
    type SignalRows = Read<Row>;
    type ApplyRows = Write<Row>;
    type Edge = ();
    type Message = f64;
    type EdgeMessage = f64;
    type Accumulator = f64;
    type Sum = ();
    const IDENTITY: f64 = -0.0;

    #[inline(always)]
    fn signal(&self, _: u64, row: &Row) -> Option<f64> {
        Some(row[self.place])
    }
    #[inline(always)]
    fn on_edge(&self, message: f64, (): ()) -> f64 {
        message
    }
    #[inline(always)]
    fn fold(&self, sum: &mut f64, message: f64) {
        *sum += message;
    }
    #[inline(always)]
    fn merge(&self, sum: &mut f64, later: f64) {
        *sum += later;
    }
    #[inline(always)]
    fn apply(&self, _: u64, row: &mut Row, sum: f64) -> ((), Activate) {
        row[BELIEF] += sum;
        ((), Activate::No)
    }
}
