//! PageRank whose jumps, returning mass and first scores are vectors of the user.

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, ApplyTo, Direction, EdgeProgram, Engine, EngineError, OutDegree, Read, Reduce,
    VertexArray, Write,
};

use super::options::{Dangling, Options};
use super::score::{Real, State, lost, spread};
use super::teleport::Teleport;
use super::vectors::{Shares, Vectors};

/// Sets the first scores; returns the score of vertices without outgoing arcs.
pub(super) fn begin<R: Real, S: State<R>>(
    engine: &mut Engine,
    vectors: &Vectors,
    jump: &Teleport,
    states: VertexArray<S>,
) -> Result<f64, EngineError> {
    let rows = (states.write(), OutDegree);
    let equal = 1.0 / engine.vertices() as f64;
    let first = match (vectors.start, vectors.jumps) {
        (Some(start), _) => Some(start),
        (None, Some(jumps)) if !vectors.starts_equal => Some(jumps),
        _ => None,
    };
    match first {
        Some(Shares { values, sum }) => {
            let rows = (states.write(), OutDegree, values.read());
            engine.process_vertices(rows, None, |_, (state, degree, value)| {
                state.set_score(R::of(value / sum));
                lost(state, degree)
            })
        }
        None if vectors.starts_equal => {
            engine.process_vertices(rows, None, |_, (state, degree)| {
                state.set_score(R::of(equal));
                lost(state, degree)
            })
        }
        None => engine.process_vertices(rows, None, |v, (state, degree)| {
            state.set_score(R::of(jump.chance(v)));
            lost(state, degree)
        }),
    }
}

/// Does the passes of a run whose jumps or returns are vectors.
///
/// Returns the last change, and the number of passes.
pub(super) fn iterate<R: Real, S: State<R>>(
    engine: &mut Engine,
    options: &Options,
    states: VertexArray<S>,
    mut dangling: f64,
) -> Result<(f64, u64), EngineError> {
    let jumps = match options.vectors.jumps {
        Some(jumps) => jumps,
        None => Shares {
            values: crate::spmv::ones(engine)?,
            sum: engine.vertices() as f64,
        },
    };
    let returns = options.vectors.returns.unwrap_or(jumps);
    let everyone = engine.full_set()?;
    let (mut residual, mut iterations) = (f64::INFINITY, 0);
    for iteration in 1..=options.iterations {
        iterations = iteration.into();
        let step = VectorStep::<R, S> {
            damping: options.damping,
            sums: [jumps.sum, returns.sum],
            returned: match options.dangling {
                Dangling::Redistribute => dangling,
                Dangling::Drop => 0.0,
            },
            real: PhantomData,
        };
        let read = (states.read(), OutDegree);
        let rows = (
            states.write(),
            OutDegree,
            jumps.values.read(),
            returns.values.read(),
        );
        ((residual, dangling), _) =
            engine.process_edges(&step, read, rows, &everyone, Direction::Forward)?;
        if (options.tolerance).is_some_and(|tolerance| residual < tolerance) {
            break;
        }
    }
    Ok((residual, iterations))
}

/// One iteration with a chance of a jump, and a share of the returning mass, for each vertex.
pub(super) struct VectorStep<R, S> {
    damping: f64,
    /// By which the two vectors are divided.
    sums: [f64; 2],
    /// The mass that returns in this iteration.
    returned: f64,
    real: PhantomData<fn() -> (R, S)>,
}

impl<R: Real, S: State<R>> EdgeProgram for VectorStep<R, S> {
    type SignalRows = (Read<S>, OutDegree);
    type ApplyRows = (Write<S>, OutDegree, Read<f64>, Read<f64>);
    type Edge = S::Edge;
    type Message = S::Message;
    type EdgeMessage = S::Message;
    type Accumulator = S::Message;
    /// The change of all ranks together, and the rank of vertices without outgoing arcs.
    type Sum = (f64, f64);
    const IDENTITY: S::Message = S::Message::NOTHING;
    const APPLY_TO: ApplyTo = ApplyTo::All;

    #[inline(always)]
    fn signal(&self, _: u64, (state, degree): (&S, u64)) -> Option<S::Message> {
        spread(state, degree)
    }
    #[inline(always)]
    fn on_edge(&self, share: S::Message, edge: S::Edge) -> S::Message {
        S::on_edge(share, edge)
    }
    #[inline(always)]
    fn fold(&self, sum: &mut S::Message, share: S::Message) {
        sum.add(share);
    }
    #[inline(always)]
    fn merge(&self, sum: &mut S::Message, later: S::Message) {
        sum.add(later);
    }
    #[inline(always)]
    fn apply(
        &self,
        _: u64,
        (state, degree, jump, share): (&mut S, u64, &f64, &f64),
        sum: S::Message,
    ) -> ((f64, f64), Activate) {
        let old = state.score().value();
        let jumped = (1.0 - self.damping) * (jump / self.sums[0]);
        let returned = self.returned * (share / self.sums[1]);
        let new = R::of(jumped + self.damping * (sum.value() + returned));
        state.set_score(new);
        let change = (new.value() - old).abs();
        ((change, lost(state, degree)), Activate::No)
    }
}
