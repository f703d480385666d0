//! PageRank: the share of time a walker spends at each vertex who follows an arc, or else jumps.

pub(crate) mod entry;
pub mod judge;
mod pregel;
mod rounding;

use std::marker::PhantomData;
use std::sync::Arc;

use graphmill_engine::{
    Accumulator, Activate, Direction, EdgeProgram, Element, Engine, EngineError, OutDegree, Reach,
    Read, Sizes, Version, VertexArray, Write, sizes_of_pregel,
};

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

/// Ranks, from the chances of a jump, by at most `options.iterations` passes over all edges. Each pass is one
/// `Step`; the mass of vertices without outgoing arcs is summed by the pass before it.
///
/// # Errors
/// The engine's.
pub fn run<R: Real>(engine: &mut Engine, options: &Options) -> Result<VertexArray<R>, EngineError> {
    let rank = engine.vertex_array::<R>("pagerank")?;
    let jump = Jump::new(engine.vertices(), &options.sources);
    if let Method::Pregel(version) = options.method {
        let walk = pregel::Walk::new(jump, options);
        engine.pregel(walk, rank, version, None)?;
        return Ok(rank);
    }
    let mut dangling: f64 =
        engine.process_vertices((rank.write(), OutDegree), None, |v, (rank, degree)| {
            *rank = R::of(jump.chance(v));
            if degree == 0 { rank.value() } else { 0.0 }
        })?;
    // Every vertex calls in every pass, so the sets that passes return stay empty.
    let everyone = engine.all_vertices()?;
    for _ in 0..options.iterations {
        let returned = match options.dangling {
            Dangling::Redistribute => dangling,
            Dangling::Drop => 0.0,
        };
        let step = Step::<R> {
            jump: jump.clone(),
            damping: options.damping,
            jumping: 1.0 - options.damping + options.damping * returned,
            real: PhantomData,
        };
        let rows = (rank.write(), OutDegree);
        let ((change, mass), _) = engine.process_edges(
            &step,
            (rank.read(), OutDegree),
            rows,
            &everyone,
            Direction::Forward,
        )?;
        dangling = mass;
        if options
            .tolerance
            .is_some_and(|tolerance| change < tolerance)
        {
            break;
        }
    }
    Ok(rank)
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
pub(crate) fn sizes<R: Real>(method: Method) -> Sizes {
    match method {
        Method::Passes => Sizes::of::<Step<R>>(),
        Method::Pregel(version) => sizes_of_pregel::<pregel::Walk<R>>(version),
    }
}

/// One iteration: each vertex shares its rank out among its arcs.
struct Step<R> {
    jump: Jump,
    damping: f64,
    /// The mass that jumps in this iteration.
    jumping: f64,
    real: PhantomData<fn() -> R>,
}

impl<R: Real> EdgeProgram for Step<R> {
    type SignalRows = (Read<R>, OutDegree);
    type ApplyRows = (Write<R>, OutDegree);
    type Edge = ();
    type Message = R;
    type Carried = R;
    type Accumulator = R;
    /// The change of all ranks together, and the rank of vertices without outgoing arcs.
    type Sum = (f64, f64);
    const IDENTITY: R = R::NOTHING;
    const REACH: Reach = Reach::Every;

    #[inline(always)]
    fn signal(&self, _: u64, (rank, degree): (&R, u64)) -> Option<R> {
        (degree > 0).then(|| R::of(rank.value() / degree as f64))
    }
    #[inline(always)]
    fn along(&self, share: R, (): ()) -> R {
        share
    }
    #[inline(always)]
    fn fold(&self, sum: &mut R, share: R) {
        *sum = sum.plus(share);
    }
    #[inline(always)]
    fn merge(&self, sum: &mut R, later: R) {
        *sum = sum.plus(later);
    }
    #[inline(always)]
    fn apply(&self, v: u64, (rank, degree): (&mut R, u64), sum: R) -> ((f64, f64), Activate) {
        let old = rank.value();
        *rank = R::of(self.jump.chance(v) * self.jumping + self.damping * sum.value());
        let new = rank.value();
        (
            ((new - old).abs(), if degree == 0 { new } else { 0.0 }),
            Activate::No,
        )
    }
}
