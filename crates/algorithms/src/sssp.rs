//! Single-source shortest paths over non-negative weights: the least sum of weights from a source to every vertex it reaches.

mod distance;
pub(crate) mod entry;
mod pregel;

use std::marker::PhantomData;

use graphmill_engine::{
    Direction, Engine, EngineError, MonotoneProgram, PregelMode, ProgramFootprint, VertexArray,
    footprint_of, job, pregel_footprint,
};
use graphmill_graph::StoredGraph;

pub use self::distance::Distance;
use self::pregel::ShortestPaths;
use crate::options::AlgorithmError;

/// The method that finds shortest paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SsspMethod {
    /// Delta-stepping: distances within one width form a bucket, and the nearest bucket is relaxed first.
    ///
    /// Without a width, the weights determine one.
    Delta(Option<f64>),
    /// Each pass relaxes the arcs of the vertices that came closer in the last one (DFOGraph, Fig. 2b).
    BellmanFord,
    /// By a vertex program (iPregel).
    Pregel(PregelMode),
}

/// Computes distances from a source: the least sum of weights on a path, `inf` without a path.
///
/// Weights must not be negative; without weights each arc counts 1. The method changes nothing but the time.
///
/// # Errors
/// The graph has negative weights. Errors of the engine.
pub fn run<R: Distance>(
    engine: &mut Engine,
    source: u64,
    method: SsspMethod,
) -> Result<VertexArray<R>, AlgorithmError> {
    check_weights(engine.graph())?;
    let distance = engine.vertex_array::<R>("distance")?;
    engine.process_vertices(distance.write(), None, |v, distance| {
        *distance = if v == source { R::ZERO } else { R::NONE };
    })?;
    let width = match method {
        SsspMethod::Pregel(mode) => {
            let length = PhantomData::<fn() -> R>;
            engine.pregel(ShortestPaths { source, length }, distance, mode, None)?;
            return Ok(distance);
        }
        SsspMethod::Delta(Some(width)) => width,
        SsspMethod::Delta(None) => bucket_width(engine)?,
        SsspMethod::BellmanFord => 1.0,
    };
    let mut active = engine.empty_set()?;
    active.insert(source)?;
    let relax = Relax::<R> {
        per_bucket: width.recip().min(f64::MAX),
        length: PhantomData,
    };
    let forward = Direction::Forward;
    if let SsspMethod::Delta(_) = method {
        engine.run_to_fixpoint(&relax, distance, active, forward)?;
    } else {
        engine.run_to_fixpoint_by_passes(&relax, distance, active, forward)?;
    }
    Ok(distance)
}

/// Chooses a bucket width: the longer the arcs the wider, the more arcs a vertex has the narrower.
///
/// If hubs have most arcs, the source of most arcs has a much greater degree than most vertices. So the degree is the geometric mean of
/// both averages.
fn bucket_width(engine: &mut Engine) -> Result<f64, EngineError> {
    let mean = job::sample_mean_weight(engine)?.unwrap_or(1.0);
    let of_edges = job::sample_degree(engine)?;
    let graph = engine.graph();
    let of_vertices = graph.arcs() as f64 / graph.vertices().max(1) as f64;
    let degree = (of_vertices * of_edges).sqrt();
    let width = WIDTH * mean / degree.max(1.0);
    Ok(if width.is_normal() { width } else { 1.0 })
}

/// Bucket width, in mean arc lengths divided by the degree of a vertex.
///
/// Measured as best, or nearly best, on three kinds of graphs. The numbers are the mean length of an arc, the arcs a vertex, and the degree
/// of the source of an arc:
///
/// - Kronecker graphs: 128; 31; 590 to 840;
/// - a grid: 128; 4; 4;
/// - roads: degrees 2.2 and 2.3.
const WIDTH: f64 = 2.0;

/// Refuses graphs with negative weights.
pub(crate) fn check_weights(graph: &StoredGraph) -> Result<(), AlgorithmError> {
    match graph.meta().weights.filter(|weights| weights.least < 0.0) {
        None => Ok(()),
        Some(weights) => Err(AlgorithmError::NegativeWeights {
            graph: graph.path().to_path_buf(),
            weights: weights.to_string(),
        }),
    }
}

/// Returns the bytes that the passes hold for each vertex.
pub(crate) fn sizes<R: Distance>(method: SsspMethod) -> ProgramFootprint {
    match method {
        SsspMethod::Pregel(mode) => pregel_footprint::<ShortestPaths<R>>(mode),
        SsspMethod::Delta(_) | SsspMethod::BellmanFord => {
            footprint_of::<Relax<R>>().with_arrays(size_of::<R>())
        }
    }
}

/// As much further away as the arc is long.
#[derive(Clone, Copy)]
struct Relax<R> {
    /// The reciprocal of a bucket's width.
    per_bucket: f64,
    length: PhantomData<fn() -> R>,
}

impl<R: Distance> MonotoneProgram for Relax<R> {
    type Label = R;
    type Edge = R;

    #[inline(always)]
    fn on_edge(&self, distance: R, weight: R) -> R {
        distance + weight
    }
    #[inline(always)]
    fn bucket(&self, distance: R) -> u64 {
        // Numbers from 2^52 on have no bits for halves, so adding it rounds; and the bits of positive numbers ascend as they do.
        const WHOLE: f64 = (1_u64 << 52) as f64;
        let length: f64 = distance.into();
        (length * self.per_bucket + WHOLE).to_bits() - WHOLE.to_bits()
    }
}

/// Checks distances by relaxing every arc, by tight predecessors and by a serial Dijkstra.
pub mod check {
    use crate::check::{
        BySource, Violation, bytes_of, check_shape, check_value, check_values, check_vertex, number,
    };
    use std::cmp::Reverse;
    use std::fmt::Display;
    use std::ops::Add;

    /// Accepts `distances` (`None` if unreached) only if they are bit by bit the least sums from `source`.
    ///
    /// `W` is the type the run summed in: `f32`, `f64` or an integer wide enough for every sum. Its default must be zero. A sum beyond its
    /// greatest number is infinite, which is the distance of a vertex that is not reached.
    ///
    /// Equality to the last bit is right even for floats: rounded addition of non-negative numbers never decreases and keeps order. So the
    /// least sum over all paths, each added from the source outwards, does not depend on the order of relaxations.
    ///
    /// Two methods must agree. The first traverses nothing: no arc offers less, and each reached vertex but the source has an arc that
    /// offers exactly its distance. It accepts cycles of weight zero that vouch for themselves. The second, a serial Dijkstra, does not.
    ///
    /// # Errors
    /// The first [`Violation`] found; a weight that is negative or not a number is one too.
    pub fn check_distances<W>(
        vertices: u64,
        arcs: &[(u64, u64, W)],
        source: u64,
        distances: &[Option<W>],
    ) -> Result<(), Violation>
    where
        W: Copy + PartialOrd + Add<Output = W> + Default + Display + Into<f64>,
    {
        let ends = arcs.iter().map(|arc| (arc.0, arc.1));
        check_shape(vertices, distances.len(), ends)?;
        check_vertex("the source", source, vertices)?;
        let zero = W::default();
        let is_weight = |weight: W| weight >= zero;
        if let Some(arc) = arcs.iter().find(|arc| !is_weight(arc.2)) {
            return Err(Violation::Input {
                what: "a weight",
                found: arc.2.to_string(),
                expected: "0 or more",
            });
        }

        let mut tight = vec![false; distances.len()];
        for &(u, v, weight) in arcs {
            let Some(near) = distances[u as usize] else {
                continue;
            };
            let offer = near + weight;
            if offer.into().is_infinite() {
                continue;
            }
            let distance = distances[v as usize];
            let is_near = distance.is_some_and(|distance| distance <= offer);
            let values = [distance, Some(offer)];
            check_value(is_near, v as usize, values, number, "no arc offers less")?;
            tight[v as usize] |= distance == Some(offer);
        }
        for (vertex, &distance) in distances.iter().enumerate() {
            let (is_right, expected, rule) = if vertex as u64 == source {
                let rule = "the source is at distance 0";
                (distance == Some(zero), Some(zero), rule)
            } else {
                let rule = "an arc leads to each reached vertex at its distance";
                (distance.is_none() || tight[vertex], None, rule)
            };
            check_value(is_right, vertex, [distance, expected], number, rule)?;
        }

        let expected = dijkstra(vertices, arcs, source);
        let rule = "the distance by a serial Dijkstra";
        check_values(distances, expected, number, rule)
    }

    /// Bytes of memory of the checker, without arcs and distances.
    pub(crate) fn bytes<W>(vertices: u64, arcs: u64) -> u64 {
        let (tight, distance) = (size_of::<bool>(), size_of::<Option<W>>());
        let near = size_of::<Near>();
        bytes_of(&[(vertices, tight + distance), (arcs, near), (1, near)])
            .saturating_add(BySource::bytes(vertices, arcs))
    }

    /// Computes distances with a binary heap.
    ///
    /// Every arc and the source must be inside `0..vertices`, every weight a number of 0 or more.
    fn dijkstra<W>(vertices: u64, arcs: &[(u64, u64, W)], source: u64) -> Vec<Option<W>>
    where
        W: Copy + PartialOrd + Add<Output = W> + Default + Into<f64>,
    {
        let outgoing = BySource::new(vertices as usize, arcs.iter().map(|arc| arc.0));
        let mut distances: Vec<Option<W>> = vec![None; vertices as usize];
        distances[source as usize] = Some(W::default());
        // Each vertex is expanded once, so the heap takes each arc once at the most and never grows.
        let mut heap = std::collections::BinaryHeap::with_capacity(arcs.len() + 1);
        heap.push(Reverse((bits(W::default()), source as usize)));
        while let Some(Reverse((near_bits, vertex))) = heap.pop() {
            let Some(near) = distances[vertex].filter(|near| bits(*near) == near_bits) else {
                continue;
            };
            for &arc in outgoing.of(vertex) {
                let (_, next, weight) = arcs[arc];
                let (next, offer) = (next as usize, near + weight);
                let is_less = distances[next].is_none_or(|distance| offer < distance);
                if is_less && offer.into().is_finite() {
                    distances[next] = Some(offer);
                    heap.push(Reverse((bits(offer), next)));
                }
            }
        }
        distances
    }

    /// The bits of a distance and a vertex, as the heap holds them.
    type Near = (u64, usize);

    /// Bits that are ordered as distances are: these are numbers of 0 or more.
    fn bits(distance: impl Into<f64>) -> u64 {
        distance.into().to_bits()
    }
}
