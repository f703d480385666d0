//! PageRank: the share of time a walker spends at each vertex who follows an arc, or else jumps.

mod by_vectors;
pub mod check;
pub(crate) mod entry;
mod options;
mod pregel;
mod rounding;
mod score;
mod teleport;
mod vectors;
mod walk;
mod weights;

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, ApplyTo, Convergence, Direction, EdgeProgram, Engine, EngineError, OutDegree,
    ProgramFootprint, Read, Reduce, VertexArray, Write, job, pregel_footprint,
};

pub use options::{Dangling, Options, PageRankMethod};
pub use score::Real;
use score::{FixedScore, State, lost, spread};
use teleport::Teleport;
pub use vectors::{Shares, Vectors, shares};
use weights::{OutWeights, Weighed};

/// Computes the scores from the chances of a jump.
///
/// It takes at most `options.iterations` passes over all edges. Each pass is one `PageRankStep`; the pass before it sums the mass of vertices
/// without outgoing arcs.
///
/// # Errors
/// Errors of the engine. With `options.weighted`: a weight is negative, or the sum of weights is too large to divide by.
pub fn run<R: Real>(engine: &mut Engine, options: &Options) -> Result<VertexArray<R>, EngineError> {
    if !options.weighted {
        let scores = engine.vertex_array::<R>("pagerank")?;
        iterate::<R, R>(engine, options, scores)?;
        return Ok(scores);
    }
    let states = weights::weigh(engine)?;
    iterate::<R, Weighed>(engine, options, states)?;
    scores_of(engine, states)
}

/// As [`run`] without weights, with sums that are the same in any order.
///
/// A share is rounded once, to units of 2^-63, and sums are exact. So messages may come in any order, as with the bucket executor.
///
/// # Errors
/// Errors of the engine.
pub fn run_fixed(engine: &mut Engine, options: &Options) -> Result<VertexArray<f64>, EngineError> {
    let states = engine.vertex_array::<FixedScore>("pagerank in fixed point")?;
    iterate::<f64, FixedScore>(engine, options, states)?;
    scores_of(engine, states)
}

/// Copies the scores of states to an array of their own.
fn scores_of<R: Real, S: State<R>>(
    engine: &mut Engine,
    states: VertexArray<S>,
) -> Result<VertexArray<R>, EngineError> {
    let scores = engine.vertex_array::<R>("pagerank")?;
    let rows = (scores.write(), states.read());
    engine.process_vertices(rows, None, |_, (score, state)| *score = state.score())?;
    Ok(scores)
}

/// Computes the scores in `states`, and notes how far from the fixed point they are.
fn iterate<R: Real, S: State<R>>(
    engine: &mut Engine,
    options: &Options,
    states: VertexArray<S>,
) -> Result<(), EngineError> {
    let jump = Teleport::new(engine.vertices(), &options.sources);
    let (mut residual, mut iterations) = (f64::INFINITY, 0);
    if let PageRankMethod::Pregel(version) = options.method {
        let walk = pregel::RandomWalk::<R, S>::new(jump, options);
        ((residual, _), iterations) = engine.pregel(walk, states, version, None)?;
    } else {
        let rows = (states.write(), OutDegree);
        let mut dangling = by_vectors::begin(engine, &options.vectors, &jump, states)?;
        if options.vectors.in_passes() {
            (residual, iterations) =
                by_vectors::iterate::<R, S>(engine, options, states, dangling)?;
            return note_end(engine, options, residual, iterations);
        }
        // Every vertex calls in every pass, so the sets that passes return stay empty.
        let everyone = engine.full_set()?;
        for iteration in 1..=options.iterations {
            iterations = iteration.into();
            let returned = match options.dangling {
                Dangling::Redistribute => dangling,
                Dangling::Drop => 0.0,
            };
            let step = PageRankStep::<R, S> {
                jump: jump.clone(),
                damping: options.damping,
                jumping: 1.0 - options.damping + options.damping * returned,
                real: PhantomData,
            };
            let read = (states.read(), OutDegree);
            ((residual, dangling), _) =
                engine.process_edges(&step, read, rows, &everyone, Direction::Forward)?;
            if (options.tolerance).is_some_and(|tolerance| residual < tolerance) {
                break;
            }
        }
    }
    note_end(engine, options, residual, iterations)
}

/// Notes how far from the fixed point the last iteration ended.
fn note_end(
    engine: &mut Engine,
    options: &Options,
    residual: f64,
    iterations: u64,
) -> Result<(), EngineError> {
    if options.iterations > 0 {
        let end = Convergence::new(residual, options.tolerance).after(iterations);
        job::note_convergence(engine, end);
    }
    Ok(())
}

/// Returns the bytes that the passes hold for each vertex.
///
/// `fixed` is the choice of [`run_fixed`]; `vectors` are arrays of the user.
pub(crate) fn sizes<R: Real>(
    method: PageRankMethod,
    weighted: bool,
    fixed: bool,
    vectors: usize,
) -> ProgramFootprint {
    fn of<R: Real, S: State<R>>(
        method: PageRankMethod,
        scores: usize,
        vectors: usize,
    ) -> ProgramFootprint {
        match method {
            PageRankMethod::Passes if vectors > 0 => {
                let arrays = size_of::<S>() + scores + vectors * size_of::<f64>();
                ProgramFootprint::of::<by_vectors::VectorStep<R, S>>().with_arrays(arrays)
            }
            PageRankMethod::Passes => {
                ProgramFootprint::of::<PageRankStep<R, S>>().with_arrays(size_of::<S>() + scores)
            }
            PageRankMethod::Pregel(version) => {
                pregel_footprint::<pregel::RandomWalk<R, S>>(version)
            }
        }
    }
    match weighted {
        false if fixed => of::<f64, FixedScore>(method, size_of::<f64>(), vectors)
            .with_rows::<(Write<f64>, Read<FixedScore>)>(),
        false => of::<R, R>(method, 0, vectors),
        // The scores are copied from the states.
        true => of::<R, Weighed>(method, size_of::<R>(), vectors)
            .or(ProgramFootprint::of::<OutWeights>())
            .with_rows::<(Write<R>, Read<Weighed>)>(),
    }
}

/// One iteration: each vertex shares its rank out among its arcs.
struct PageRankStep<R, S> {
    jump: Teleport,
    damping: f64,
    /// The mass that jumps in this iteration.
    jumping: f64,
    real: PhantomData<fn() -> (R, S)>,
}

impl<R: Real, S: State<R>> EdgeProgram for PageRankStep<R, S> {
    type SignalRows = (Read<S>, OutDegree);
    type ApplyRows = (Write<S>, OutDegree);
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
        v: u64,
        (state, degree): (&mut S, u64),
        sum: S::Message,
    ) -> ((f64, f64), Activate) {
        let old = state.score().value();
        let new = R::of(self.jump.chance(v) * self.jumping + self.damping * sum.value());
        state.set_score(new);
        let change = (new.value() - old).abs();
        ((change, lost(state, degree)), Activate::No)
    }
}
