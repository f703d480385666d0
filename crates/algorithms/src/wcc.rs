//! Weakly connected components: every vertex gets the smallest vertex of its component, arcs taken without their direction.

pub(crate) mod entry;
mod pregel;

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, ActiveSet, ComponentsMethod, Direction, EdgeProgram, Engine, EngineError, IdOrdinal,
    Least, MessageProgram, MonotoneProgram, Outbox, PregelMode, ProgramFootprint, Read,
    VertexArray, Write, footprint_of, job, pregel_footprint,
};
use graphmill_graph::Order;

use self::pregel::HashMin;
use crate::options::AlgorithmError;
use crate::vertex_index::VertexIndex;

/// The method that finds components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WccMethod {
    /// By uniting the ends of arcs where labels fit in memory, else by spreading labels.
    Unite(ComponentsMethod),
    /// The smallest label spreads from neighbour to neighbour, as in the systems that know passes only.
    Labels,
    /// By a vertex program (iPregel), of a graph with the opposite of each arc.
    Pregel(PregelMode),
}

/// Labels each vertex with the smallest ordinal of an id in its weakly connected component.
///
/// The method changes nothing but the time.
///
/// # Errors
/// The data of the requested method do not fit in memory, or it is a vertex program and the graph is directed. Errors of the engine.
pub fn run<I: VertexIndex>(
    engine: &mut Engine,
    method: WccMethod,
) -> Result<VertexArray<I>, AlgorithmError> {
    let label = engine.vertex_array::<I>("component")?;
    match method {
        WccMethod::Unite(how) if engine.connected_components(label, how)? => Ok(label),
        WccMethod::Unite(ComponentsMethod::Lists) => Err(AlgorithmError::NoRoom {
            method: "afforest",
            what: "labels and the lists of edges",
            least: job::adjacency_min_memory(engine, &label),
        }),
        WccMethod::Unite(ComponentsMethod::Cells) => Err(AlgorithmError::NoRoom {
            method: "union-find",
            what: "labels",
            least: None,
        }),
        WccMethod::Unite(ComponentsMethod::Auto) => Ok(spread(engine, label, true)?),
        WccMethod::Labels => Ok(spread(engine, label, false)?),
        WccMethod::Pregel(_) if !engine.graph().symmetric() && engine.graph().arcs() > 0 => {
            let graph = engine.graph().path().to_path_buf();
            Err(AlgorithmError::Directed { graph })
        }
        WccMethod::Pregel(mode) => {
            own_labels(engine, label)?;
            engine.pregel(HashMin::<I>(PhantomData), label, mode, None)?;
            Ok(label)
        }
    }
}

/// Spreads the smallest label along the arcs, and against them if the graph is directed.
///
/// If each arc has its opposite, a flood from the vertex with the most arcs may come first. The component of that vertex is mostly the
/// largest by far. The flood reads few arcs of a vertex before one reaches it, where spreading reads all arcs again and again.
fn spread<I: VertexIndex>(
    engine: &mut Engine,
    label: VertexArray<I>,
    may_flood: bool,
) -> Result<VertexArray<I>, EngineError> {
    let symmetric = engine.graph().symmetric();
    let hub = match symmetric && may_flood {
        true => job::max_degree_vertex(engine)?,
        false => None,
    };
    let mut active = match hub {
        Some(hub) => flood(engine, label, hub)?,
        None => {
            own_labels(engine, label)?;
            engine.full_set()?
        }
    };
    let spread = Propagate(PhantomData::<fn() -> I>);
    let mut limit = engine.pass_limit("connected components");
    while !active.is_empty() {
        limit.pass()?;
        let (read, write, forward) = (label.read(), label.write(), Direction::Forward);
        let (_, mut next) = engine.process_edges(&spread, read, write, &active, forward)?;
        if !symmetric {
            // Those that just changed call at once as well as those that were to call.
            active.union(&next)?;
            let backward = Direction::Backward;
            let (_, back) = engine.process_edges(&spread, read, write, &active, backward)?;
            next.union(&back)?;
        }
        active = next;
    }
    Ok(label)
}

/// Labels each vertex with the ordinal of its own id.
fn own_labels<I: VertexIndex>(
    engine: &mut Engine,
    label: VertexArray<I>,
) -> Result<(), EngineError> {
    engine.process_vertices((label.write(), IdOrdinal), None, |_, (label, ordinal)| {
        *label = I::of(ordinal)
    })
}

/// Labels the component of `hub`, and every other vertex with itself; these are returned.
fn flood<I: VertexIndex>(
    engine: &mut Engine,
    label: VertexArray<I>,
    hub: u64,
) -> Result<ActiveSet, EngineError> {
    let mut active = engine.empty_set()?;
    active.insert(hub)?;
    engine.process_vertices(label.write(), None, |v, label| {
        *label = if v == hub { I::of(hub) } else { I::NONE }
    })?;
    let reach = Flood(PhantomData::<fn() -> I>);
    engine.run_to_fixpoint_by_passes(&reach, label, active, Direction::Forward)?;
    let rest = engine.select_vertices(label.read(), None, |_, label| *label == I::NONE)?;
    let smallest: Least<u64> =
        engine.process_vertices((label.read(), IdOrdinal), None, |_, (label, rank)| {
            if *label == I::NONE {
                Least(u64::MAX)
            } else {
                Least(rank)
            }
        })?;
    engine.process_vertices((label.write(), IdOrdinal), None, |_, (label, rank)| {
        let is_rest = *label == I::NONE;
        *label = I::of(if is_rest { rank } else { smallest.0 });
    })?;
    Ok(rest)
}

/// The size of each component, at the index that is the rank of its least id; 0 elsewhere.
///
/// # Errors
/// The engine's.
pub fn component_sizes<I: VertexIndex>(
    engine: &mut Engine,
    label: VertexArray<I>,
) -> Result<VertexArray<I>, EngineError> {
    let size = engine.vertex_array::<I>("component size")?;
    engine.process_vertices(size.write(), None, |_, size| *size = I::ZERO)?;
    let count = Count(PhantomData::<fn() -> I>);
    engine.process_messages(&count, label.read(), size.write(), None)?;
    Ok(size)
}

/// Every vertex counts for its component.
struct Count<I>(PhantomData<fn() -> I>);

impl<I: VertexIndex> MessageProgram for Count<I> {
    type SendRows = Read<I>;
    type ApplyRows = Write<I>;
    /// That a vertex is there: the address says it all.
    type Message = u8;
    type Accumulator = I;
    type Sum = ();
    const IDENTITY: I = I::ZERO;

    #[inline(always)]
    fn send(&self, _: u64, label: &I, sink: &mut Outbox<'_, u8>) -> ((), Activate) {
        sink.send(label.index() as u64, 0);
        ((), Activate::No)
    }
    #[inline(always)]
    fn fold(&self, size: &mut I, _: u8) {
        *size = I::of(size.index() as u64 + 1);
    }
    #[inline(always)]
    fn apply(&self, _: u64, size: &mut I, counted: I) -> ((), Activate) {
        *size = counted;
        ((), Activate::No)
    }
}

/// Returns the bytes that a method holds for each vertex of a graph in this order.
pub(crate) fn sizes<I: VertexIndex>(method: WccMethod, order: Order) -> ProgramFootprint {
    let passes = ProgramFootprint::of::<Propagate<I>>().or(footprint_of::<Flood<I>>());
    // Their sizes are counted at the end.
    let passes = passes.with_rows::<Read<I>>().with_arrays(size_of::<I>());
    let passes = passes.going_against(true).sending();
    // Components are named by their least ids at the end, where these have another order than indices.
    let (passes, arrays) = match order {
        Order::Id => (passes, 1),
        Order::Degree => (passes.with_rows::<(Read<I>, IdOrdinal)>(), 2),
    };
    match method {
        WccMethod::Pregel(mode) => passes.or(pregel_footprint::<HashMin<I>>(mode)),
        WccMethod::Unite(ComponentsMethod::Lists | ComponentsMethod::Cells) => {
            passes.keeping(arrays * size_of::<I>(), 0)
        }
        WccMethod::Unite(ComponentsMethod::Auto) => passes.reading_edges_once(),
        WccMethod::Labels => passes,
    }
}

/// A flood: a reached vertex takes the label of the vertex that reached it.
#[derive(Clone, Copy)]
pub(crate) struct Flood<I>(pub(crate) PhantomData<fn() -> I>);

impl<I: VertexIndex> MonotoneProgram for Flood<I> {
    type Label = I;
    type Edge = ();
    const UNIT_STEP: bool = true;

    #[inline(always)]
    fn on_edge(&self, label: I, (): ()) -> I {
        label
    }
}

/// One step: a vertex takes the smallest label that it receives.
struct Propagate<I>(PhantomData<fn() -> I>);

impl<I: VertexIndex> EdgeProgram for Propagate<I> {
    type SignalRows = Read<I>;
    type ApplyRows = Write<I>;
    type Edge = ();
    type Message = I;
    type EdgeMessage = I;
    type Accumulator = I;
    type Sum = u64;
    const IDENTITY: I = I::NONE;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, label: &I) -> Option<I> {
        Some(*label)
    }
    #[inline(always)]
    fn on_edge(&self, label: I, (): ()) -> I {
        label
    }
    #[inline(always)]
    fn fold(&self, least: &mut I, label: I) {
        *least = (*least).min(label);
    }
    #[inline(always)]
    fn merge(&self, least: &mut I, later: I) {
        *least = (*least).min(later);
    }
    #[inline(always)]
    fn apply(&self, _: u64, label: &mut I, least: I) -> (u64, Activate) {
        if least >= *label {
            return (0, Activate::No);
        }
        *label = least;
        (1, Activate::Yes)
    }
}

/// Checks labels by union-find.
pub mod check {
    use crate::check::{Violation, ViolationValue, bytes_of, check_shape, check_value};

    /// Accepts `labels` only if each is the smallest vertex of its vertex's component.
    ///
    /// Directions of arcs do not matter.
    ///
    /// # Errors
    /// The first [`Violation`] found.
    pub fn check_components(
        vertices: u64,
        arcs: &[(u64, u64)],
        labels: &[u64],
    ) -> Result<(), Violation> {
        check_shape(vertices, labels.len(), arcs.iter().copied())?;
        // The smaller root always becomes the parent, so a root is the smallest vertex of its set.
        let mut parent: Vec<u64> = (0..vertices).collect();
        for &(u, v) in arcs {
            let (u, v) = (root(&mut parent, u), root(&mut parent, v));
            parent[u.max(v) as usize] = u.min(v);
        }
        for (vertex, &label) in labels.iter().enumerate() {
            let expected = root(&mut parent, vertex as u64);
            let values = [Some(label), Some(expected)];
            let rule = "the label is the smallest vertex of the component";
            let is_right = label == expected;
            check_value(is_right, vertex, values, ViolationValue::Vertex, rule)?;
        }
        Ok(())
    }

    /// Bytes of memory of the checker, without arcs and labels.
    pub(crate) fn bytes(vertices: u64, _: u64) -> u64 {
        bytes_of(&[(vertices, size_of::<u64>())])
    }

    /// The root of `vertex`, with path halving.
    fn root(parent: &mut [u64], mut vertex: u64) -> u64 {
        while parent[vertex as usize] != vertex {
            let grandparent = parent[parent[vertex as usize] as usize];
            parent[vertex as usize] = grandparent;
            vertex = grandparent;
        }
        vertex
    }
}
