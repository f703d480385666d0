//! PageRank: the share of time a walker spends at each vertex who follows an arc, or else jumps.

pub(crate) mod entry;
pub mod judge;
mod pregel;
mod rounding;
mod weights;

use std::marker::PhantomData;
use std::sync::Arc;

use graphmill_engine::{
    Accumulator, Activate, Convergence, Direction, EdgeProgram, EdgeValue, Element, Engine,
    EngineError, OutDegree, Reach, Read, Sizes, Version, VertexArray, Write, sizes_of_pregel,
};

use weights::{OutWeights, Weighed};

/// Where the rank of vertices without outgoing arcs goes in each iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dangling {
    /// To every vertex in proportion to the chance of a jump there, so that ranks always sum to 1, as in LDBC Graphalytics.
    #[default]
    Redistribute,
    /// Nowhere: ranks sum to less than 1.
    Drop,
}

/// How ranks are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// One pass over all edges an iteration.
    #[default]
    Passes,
    /// By a vertex program, as in iPregel. Its pull version gives the same bits as passes; its push version adds in the order in
    /// which messages come.
    Pregel(Version),
}

/// What is asked of a PageRank run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How ranks are computed.
    pub method: Method,
    /// The chance to follow an arc rather than to jump, 0 to 1.
    pub damping: f64,
    /// At most so many iterations.
    pub iterations: u32,
    /// Stop when the ranks of all vertices together change by less than this in an iteration.
    pub tolerance: Option<f64>,
    /// What becomes of the rank of vertices without outgoing arcs.
    pub dangling: Dangling,
    /// Jumps lead to these vertices only, with equal chance, in ascending order; empty: to any vertex.
    pub sources: Vec<u64>,
    /// A vertex splits its score over its out-arcs in proportion to their weights, not equally. A vertex whose weights add up to 0
    /// is one without out-arcs.
    pub weighted: bool,
}

/// A floating-point type that ranks are kept in.
pub trait Real: Element + Accumulator {
    /// The neutral element of addition, told apart from every sum.
    const NOTHING: Self;
    /// Rounded from `f64`.
    fn of(value: f64) -> Self;
    /// Widened to `f64`.
    fn value(self) -> f64;
    /// The sum.
    fn plus(self, other: Self) -> Self;
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
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
        }
    )*};
}
real!(f32 f64);

/// What a vertex holds while scores are computed.
pub(crate) trait State<R: Real>: Element {
    /// What an arc adds: nothing, or its weight.
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
    fn along(share: Self::Message, edge: Self::Edge) -> Self::Message;
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
    fn along(share: R, (): ()) -> R {
        share
    }
}

/// Ranks, from the chances of a jump, by at most `options.iterations` passes over all edges. Each pass is one
/// `Step`; the mass of vertices without outgoing arcs is summed by the pass before it.
///
/// # Errors
/// The engine's; a weight is negative, or weights add up to more than can be split by, where `options.weighted`.
pub fn run<R: Real>(engine: &mut Engine, options: &Options) -> Result<VertexArray<R>, EngineError> {
    if !options.weighted {
        let scores = engine.vertex_array::<R>("pagerank")?;
        iterate::<R, R>(engine, options, scores)?;
        return Ok(scores);
    }
    let states = weights::weigh(engine)?;
    iterate::<R, Weighed>(engine, options, states)?;
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
    let jump = Jump::new(engine.vertices(), &options.sources);
    let (mut residual, mut iterations) = (f64::INFINITY, 0);
    if let Method::Pregel(version) = options.method {
        let walk = pregel::Walk::<R, S>::new(jump, options);
        ((residual, _), iterations) = engine.pregel(walk, states, version, None)?;
    } else {
        let rows = (states.write(), OutDegree);
        let mut dangling: f64 = engine.process_vertices(rows, None, |v, (state, degree)| {
            state.set_score(R::of(jump.chance(v)));
            lost(state, degree)
        })?;
        // Every vertex calls in every pass, so the sets that passes return stay empty.
        let everyone = engine.all_vertices()?;
        for iteration in 1..=options.iterations {
            iterations = iteration.into();
            let returned = match options.dangling {
                Dangling::Redistribute => dangling,
                Dangling::Drop => 0.0,
            };
            let step = Step::<R, S> {
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
    if options.iterations > 0 {
        let end = Convergence::new(residual, options.tolerance).after(iterations);
        engine.note_convergence(end);
    }
    Ok(())
}

/// The score of a vertex that has no arc to send it along; else 0.
#[inline(always)]
fn lost<R: Real, S: State<R>>(state: &S, degree: u64) -> f64 {
    match state.total(degree) > 0.0 {
        true => 0.0,
        false => state.score().value(),
    }
}

/// Where jumps lead.
#[derive(Clone)]
struct Jump {
    chance: f64,
    sources: Arc<[u64]>,
}

impl Jump {
    fn new(vertices: u64, sources: &[u64]) -> Self {
        let places = if sources.is_empty() {
            vertices
        } else {
            sources.len() as u64
        };
        Jump {
            chance: 1.0 / places as f64,
            sources: sources.into(),
        }
    }
    #[inline(always)]
    fn chance(&self, v: u64) -> f64 {
        if self.sources.is_empty() || self.sources.binary_search(&v).is_ok() {
            self.chance
        } else {
            0.0
        }
    }
}

/// What the passes hold for each vertex.
pub(crate) fn sizes<R: Real>(method: Method, weighted: bool) -> Sizes {
    fn of<R: Real, S: State<R>>(method: Method) -> Sizes {
        match method {
            Method::Passes => Sizes::of::<Step<R, S>>(),
            Method::Pregel(version) => sizes_of_pregel::<pregel::Walk<R, S>>(version),
        }
    }
    match weighted {
        false => of::<R, R>(method),
        true => of::<R, Weighed>(method)
            .or(Sizes::of::<OutWeights>())
            .looking_at::<(Write<R>, Read<Weighed>)>(),
    }
}

/// One iteration: each vertex shares its rank out among its arcs.
struct Step<R, S> {
    jump: Jump,
    damping: f64,
    /// The mass that jumps in this iteration.
    jumping: f64,
    real: PhantomData<fn() -> (R, S)>,
}

impl<R: Real, S: State<R>> EdgeProgram for Step<R, S> {
    type SignalRows = (Read<S>, OutDegree);
    type ApplyRows = (Write<S>, OutDegree);
    type Edge = S::Edge;
    type Message = S::Message;
    type Carried = S::Message;
    type Accumulator = S::Message;
    /// The change of all ranks together, and the rank of vertices without outgoing arcs.
    type Sum = (f64, f64);
    const IDENTITY: S::Message = S::Message::NOTHING;
    const REACH: Reach = Reach::Every;

    #[inline(always)]
    fn signal(&self, _: u64, (state, degree): (&S, u64)) -> Option<S::Message> {
        let total = state.total(degree);
        (total > 0.0).then(|| S::Message::of(state.score().value() / total))
    }
    #[inline(always)]
    fn along(&self, share: S::Message, edge: S::Edge) -> S::Message {
        S::along(share, edge)
    }
    #[inline(always)]
    fn fold(&self, sum: &mut S::Message, share: S::Message) {
        *sum = sum.plus(share);
    }
    #[inline(always)]
    fn merge(&self, sum: &mut S::Message, later: S::Message) {
        *sum = sum.plus(later);
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
        (
            ((new.value() - old).abs(), lost(state, degree)),
            Activate::No,
        )
    }
}
