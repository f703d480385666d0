//! Breadth-first search: the depth of every vertex that a source reaches and, when asked, a parent one level up.

pub(crate) mod entry;

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, Direction, EdgeProgram, Engine, EngineError, Greatest, IdOrdinal, Label,
    MonotoneProgram, ProgramFootprint, Read, VertexArray, Write, footprint_of,
};

use graphmill_graph::Order;

use crate::vertex_index::VertexIndex;

/// The depth of a vertex that the search did not reach.
pub const UNREACHED: u32 = <u32 as Label>::NONE;

/// Depths from a source: the number of arcs of a shortest path; [`UNREACHED`] where there is none.
///
/// # Errors
/// The engine's.
pub fn run(engine: &mut Engine, source: u64) -> Result<VertexArray<u32>, EngineError> {
    let depth = engine.vertex_array::<u32>("depth")?;
    engine.process_vertices(depth.write(), None, |v, depth| {
        *depth = if v == source { 0 } else { UNREACHED }
    })?;
    let mut active = engine.empty_set()?;
    active.insert(source)?;
    engine.run_to_fixpoint(&Depths, depth, active, Direction::Forward)?;
    Ok(depth)
}

/// An arc further away with each arc.
#[derive(Clone, Copy)]
struct Depths;

impl MonotoneProgram for Depths {
    type Label = u32;
    type Edge = ();
    const UNIT_STEP: bool = true;

    #[inline(always)]
    fn on_edge(&self, depth: u32, (): ()) -> u32 {
        depth + 1
    }
}

/// Computes the parents in the breadth-first tree: of the neighbours one level up, the smallest id.
///
/// The parent of the source is the source itself, and that of an unreached vertex is [`Label::NONE`].
///
/// The fastest method computes the depths first. Then one pass over the edges of all levels but the last sends every vertex its parent.
///
/// # Errors
/// Errors of the engine.
pub fn run_parents<I: VertexIndex>(
    engine: &mut Engine,
    source: u64,
) -> Result<VertexArray<I>, EngineError> {
    let depth = run(engine, source)?;
    let parent = engine.vertex_array::<I>("parent")?;
    let rows = (depth.read(), parent.write(), IdOrdinal);
    let Greatest(last) = engine.process_vertices(rows, None, |v, (depth, parent, rank)| {
        *parent = if v == source { I::of(rank) } else { I::NONE };
        Greatest(if *depth == UNREACHED { 0 } else { *depth })
    })?;
    let callers = engine.select_vertices(depth.read(), None, |_, depth| *depth < last)?;
    engine.process_edges(
        &SetParent(PhantomData::<fn() -> I>),
        (depth.read(), IdOrdinal),
        parent.write(),
        &callers,
        Direction::Forward,
    )?;
    Ok(parent)
}

/// Returns the bytes that the passes hold for each vertex.
pub(crate) fn sizes() -> ProgramFootprint {
    footprint_of::<Depths>().with_arrays(size_of::<u32>())
}

/// Returns the bytes that a search for parents holds for each vertex.
///
/// The last pass has an id's ordinal and a depth as message and as accumulator.
pub(crate) fn sizes_parents<I: VertexIndex>(order: Order) -> ProgramFootprint {
    let arrays = size_of::<u32>() + size_of::<I>();
    let sizes = sizes().or(ProgramFootprint::of::<SetParent<I>>());
    let sizes = sizes.with_arrays(arrays);
    match order {
        Order::Id => sizes,
        Order::Degree => sizes.with_rows::<(Read<u32>, Write<I>, IdOrdinal)>(),
    }
}

/// A pass that sets every parent to the smallest sender of the least depth.
///
/// No vertex sends from more than one level up.
struct SetParent<I>(PhantomData<fn() -> I>);

impl<I: VertexIndex> EdgeProgram for SetParent<I> {
    type SignalRows = (Read<u32>, IdOrdinal);
    type ApplyRows = Write<I>;
    type Edge = ();
    /// The caller's rank, numbered by its depth.
    type Message = I::Numbered;
    type EdgeMessage = I::Numbered;
    type Accumulator = I::Numbered;
    type Sum = ();
    const IDENTITY: I::Numbered = I::LAST;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (depth, rank): (&u32, u64)) -> Option<I::Numbered> {
        Some(I::of(rank).numbered(*depth))
    }
    #[inline(always)]
    fn on_edge(&self, caller: I::Numbered, (): ()) -> I::Numbered {
        caller
    }
    #[inline(always)]
    fn fold(&self, least: &mut I::Numbered, caller: I::Numbered) {
        *least = (*least).min(caller);
    }
    #[inline(always)]
    fn merge(&self, least: &mut I::Numbered, later: I::Numbered) {
        *least = (*least).min(later);
    }
    #[inline(always)]
    fn apply(&self, _: u64, parent: &mut I, least: I::Numbered) -> ((), Activate) {
        // The source has been its own parent from the start.
        if *parent == I::NONE {
            *parent = I::index_of(least);
        }
        ((), Activate::No)
    }
}

/// Checks depths and parents by the conditions of GAPBS's `BFSVerifier` and by a serial queue.
pub mod check {
    use crate::check::{
        BySource, Violation, ViolationValue, bytes_of, check_shape, check_value, check_values,
        check_vertex, number,
    };

    /// Accepts `depths` (in arcs, `None` if unreached) only if they are breadth-first depths from `source`.
    ///
    /// Two methods must agree. The second is a serial queue. The first traverses nothing and checks that:
    ///
    /// - the source alone is at 0;
    /// - no arc leads from a reached vertex more than one level down;
    /// - each other reached vertex has an arc from one level up.
    ///
    /// # Errors
    /// The first [`Violation`] found.
    pub fn check_depths(
        vertices: u64,
        arcs: &[(u64, u64)],
        source: u64,
        depths: &[Option<u64>],
    ) -> Result<(), Violation> {
        check_shape(vertices, depths.len(), arcs.iter().copied())?;
        check_vertex("the source", source, vertices)?;

        let mut from_above = vec![false; depths.len()];
        for &(u, v) in arcs {
            let Some(above) = depths[u as usize] else {
                continue;
            };
            let (depth, below) = (depths[v as usize], above.checked_add(1));
            let rule = "an arc leads at most one level down";
            let is_near = depth.is_some_and(|depth| depth <= above.saturating_add(1));
            check_value(is_near, v as usize, [depth, below], number, rule)?;
            from_above[v as usize] |= below == depth;
        }
        for (vertex, &depth) in depths.iter().enumerate() {
            let is_source = vertex as u64 == source;
            let values = [depth, is_source.then_some(0)];
            let rule = "the source, and it alone, is at depth 0";
            let is_right = is_source == (depth == Some(0));
            check_value(is_right, vertex, values, number, rule)?;
            let rule = "a reached vertex has an arc from one level up";
            let is_right = depth.is_none() || is_source || from_above[vertex];
            check_value(is_right, vertex, [depth, None], number, rule)?;
        }
        let expected = queue(vertices, arcs, source);
        check_values(depths, expected, number, "the depth by a serial queue")
    }

    /// Accepts `parents` only if each names the smallest vertex one level up that has an arc to it.
    ///
    /// The source names itself, and each unreached vertex has `None`.
    ///
    /// # Errors
    /// The first [`Violation`] found.
    pub fn check_parents(
        vertices: u64,
        arcs: &[(u64, u64)],
        source: u64,
        parents: &[Option<u64>],
    ) -> Result<(), Violation> {
        check_shape(vertices, parents.len(), arcs.iter().copied())?;
        check_vertex("the source", source, vertices)?;
        let depths = queue(vertices, arcs, source);
        let mut smallest: Vec<Option<u64>> = vec![None; parents.len()];
        smallest[source as usize] = Some(source);
        for &(u, v) in arcs {
            if let (Some(above), Some(depth)) = (depths[u as usize], depths[v as usize])
                && above + 1 == depth
            {
                let best = &mut smallest[v as usize];
                *best = Some(best.map_or(u, |best| best.min(u)));
            }
        }
        let rule = "the parent is the smallest vertex one level up with an arc to it";
        check_values(parents, smallest, ViolationValue::Vertex, rule)
    }

    /// Bytes of memory of either checker: three numbers a vertex, and arcs by source.
    ///
    /// Arcs and values are not included.
    pub(crate) fn bytes(vertices: u64, arcs: u64) -> u64 {
        let lists = bytes_of(&[(vertices, 3 * size_of::<Option<u64>>())]);
        lists.saturating_add(BySource::bytes(vertices, arcs))
    }

    /// Depths from `source` by a queue; every arc and the source must be inside `0..vertices`.
    fn queue(vertices: u64, arcs: &[(u64, u64)], source: u64) -> Vec<Option<u64>> {
        let outgoing = BySource::new(vertices as usize, arcs.iter().map(|arc| arc.0));
        let mut depths = vec![None; vertices as usize];
        depths[source as usize] = Some(0);
        // Each vertex is queued once, so the queue never grows.
        let mut queue = std::collections::VecDeque::with_capacity(depths.len());
        queue.push_back((source as usize, 0));
        while let Some((vertex, depth)) = queue.pop_front() {
            for &arc in outgoing.of(vertex) {
                let next = arcs[arc].1 as usize;
                if depths[next].is_none() {
                    depths[next] = Some(depth + 1);
                    queue.push_back((next, depth + 1));
                }
            }
        }
        depths
    }
}
