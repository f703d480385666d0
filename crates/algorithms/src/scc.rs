//! Strongly connected components: every vertex gets the smallest vertex that it reaches and that reaches it.
//!
//! The method is that of Multistep (Slota et al., IPDPS 2014) with other colours. Vertices without a component are *open*.
//!
//! 1. Trim: an open vertex without open in- or out-neighbours is a component of its own. That may make others such vertices.
//! 2. The open vertex of most in- times out-arcs is likely in the largest component. That component is the set of all vertices
//!    that the vertex reaches and that reach it.
//! 3. Rounds of colours find the other components, with a trim after each round. A vertex takes the least colour of all open vertices
//!    that reach it. A vertex that keeps its own colour is a root: its component is the set of all vertices of its colour that reach
//!    it. Colours are scrambled indices, so that rounds are few: in order of indices a chain of n cycles takes n rounds.

pub mod check;
pub(crate) mod entry;
mod programs;

use std::marker::PhantomData;

use graphmill_engine::{
    ActiveSet, ComponentsMethod, Direction, Engine, EngineError, Greatest, IdOrdinal, Least,
    ProgramFootprint, Read, VertexArray, Write, footprint_of,
};
use graphmill_graph::Order;

use self::programs::{
    AskRoot, CountArcs, IN, LeastColour, LeastMember, OUT, Reverse, Side, Uncount,
};
use crate::options::AlgorithmError;
use crate::vertex_index::VertexIndex;
use crate::wcc::{self, Flood, WccMethod};

/// Labels each vertex with the smallest ordinal of an id in its strongly connected component.
///
/// In an undirected graph these are the weakly connected components.
///
/// # Errors
/// The engine's.
pub fn run<I: VertexIndex>(engine: &mut Engine) -> Result<VertexArray<I>, AlgorithmError> {
    if engine.graph().symmetric() {
        return wcc::run(engine, WccMethod::Unite(ComponentsMethod::Auto));
    }
    let component = engine.vertex_array::<I>("component")?;
    let mut search = Search {
        component,
        degrees: engine.vertex_array("open arcs")?,
        colour: engine.vertex_array("colour")?,
        open: engine.vertices(),
        engine,
    };
    search.run()?;
    Ok(component)
}

/// Returns the bytes that the passes hold for each vertex of a graph in this order.
pub(crate) fn sizes<I: VertexIndex>(symmetric: bool, order: Order) -> ProgramFootprint {
    if symmetric {
        return wcc::sizes::<I>(WccMethod::Unite(ComponentsMethod::Auto), order);
    }
    ProgramFootprint::of::<CountArcs<I>>()
        .or(ProgramFootprint::of::<Uncount<I>>())
        .or(ProgramFootprint::of::<Reverse<I>>())
        .or(footprint_of::<Flood<I>>())
        .or(footprint_of::<LeastColour<I>>())
        .with_rows::<(Write<I>, Read<[I; 2]>, IdOrdinal)>()
        .with_arrays(4 * size_of::<I>())
        .going_against(true)
        .sending()
}

/// The mark of a vertex that a search has reached; others have `NONE`.
const REACHED: u64 = 1;
/// The mark of a vertex that a search must not enter, less than that of a reached one.
const CLOSED: u64 = 0;

/// A search for components, and its rows.
struct Search<'e, I> {
    engine: &'e mut Engine,
    /// The smallest ordinal of the component, or `NONE` while the vertex is open.
    component: VertexArray<I>,
    /// The numbers of arcs from open vertices, and to open vertices, without self-loops.
    degrees: VertexArray<[I; 2]>,
    /// The colour, or the mark of a search.
    colour: VertexArray<I>,
    /// Number of open vertices.
    open: u64,
}

impl<I: VertexIndex> Search<'_, I> {
    fn run(&mut self) -> Result<(), EngineError> {
        let lone = self.lone_vertices()?;
        self.close(lone)?;
        if self.open == 0 {
            return Ok(());
        }
        let mut open = self.open_of(None)?;
        let members = self.largest(&open)?;
        self.close(members)?;
        let mut limit = self.engine.pass_limit("strongly connected components");
        while self.open > 0 {
            limit.pass()?;
            open = self.open_of(Some(&open))?;
            let members = self.round(&open)?;
            self.close(members)?;
        }
        Ok(())
    }

    /// The open ones of some vertices, or of all.
    fn open_of(&mut self, of: Option<&ActiveSet>) -> Result<ActiveSet, EngineError> {
        let rows = self.component.read();
        let is_open = |_, component: &I| *component == I::NONE;
        self.engine.select_vertices(rows, of, is_open)
    }

    /// Counts the arcs of all vertices; gives those that lack one side their component, and returns them.
    fn lone_vertices(&mut self) -> Result<ActiveSet, EngineError> {
        let (component, degrees) = (self.component, self.degrees);
        let rows = (component.write(), degrees.write());
        (self.engine).process_vertices(rows, None, |_, (component, degrees)| {
            (*component, *degrees) = (I::NONE, [I::ZERO; 2]);
        })?;
        let all = self.engine.full_set()?;
        for side in [IN, OUT] {
            let count = CountArcs(side, PhantomData::<fn() -> I>);
            let write = degrees.write();
            (self.engine).process_edges(&count, (), write, &all, side.direction)?;
        }
        drop(all);
        let rows = (component.write(), degrees.read(), IdOrdinal);
        (self.engine).select_vertices(rows, None, |_, (component, degrees, ordinal)| {
            let is_lone = degrees.contains(&I::ZERO);
            if is_lone {
                *component = I::of(ordinal);
            }
            is_lone
        })
    }

    /// Takes vertices with a component, and their arcs, out of the rest; then trims the rest.
    fn close(&mut self, mut closed: ActiveSet) -> Result<(), EngineError> {
        let mut limit = self.engine.pass_limit("the trim of strong components");
        loop {
            self.open -= closed.len();
            if closed.is_empty() || self.open == 0 {
                return Ok(());
            }
            limit.pass()?;
            let mut next = self.uncount(IN, &closed)?;
            next.union(&self.uncount(OUT, &closed)?)?;
            closed = next;
        }
    }

    /// Takes the arcs of closed vertices off the counts of one side; returns the vertices that this closes.
    fn uncount(&mut self, side: Side, closed: &ActiveSet) -> Result<ActiveSet, EngineError> {
        let rows = (self.component.write(), self.degrees.write(), IdOrdinal);
        let uncount = Uncount(side, PhantomData::<fn() -> I>);
        let (_, next) = (self.engine).process_edges(&uncount, (), rows, closed, side.direction)?;
        Ok(next)
    }

    /// Finds the component of the open vertex of most in- times out-arcs, and returns its members.
    fn largest(&mut self, open: &ActiveSet) -> Result<ActiveSet, EngineError> {
        let (component, degrees, colour) = (self.component, self.degrees, self.colour);
        let engine = &mut *self.engine;
        let product =
            |[first, second]: [I; 2]| (first.index() as u64).saturating_mul(second.index() as u64);
        let read = degrees.read();
        let most: Greatest<u64> =
            engine.process_vertices(read, Some(open), |_, degrees| Greatest(product(*degrees)))?;
        let hub: Least<u64> = engine.process_vertices(read, Some(open), |v, degrees| {
            Least(if product(*degrees) == most.0 {
                v
            } else {
                u64::MAX
            })
        })?;
        let hub = hub.0;
        let [closed, reached] = [CLOSED, REACHED].map(I::of);
        let rows = (colour.write(), component.read());
        engine.process_vertices(rows, None, |v, (mark, component)| {
            *mark = match *component == I::NONE {
                true if v == hub => reached,
                true => I::NONE,
                false => closed,
            };
        })?;
        self.flood(hub, Direction::Forward)?;
        // The search back enters only what the search forward reached.
        (self.engine).process_vertices(colour.write(), Some(open), |v, mark| {
            *mark = match *mark == reached {
                true if v == hub => reached,
                true => I::NONE,
                false => closed,
            };
        })?;
        self.flood(hub, Direction::Backward)?;
        let engine = &mut *self.engine;
        let is_reached = |_, mark: &I| *mark == reached;
        let members = engine.select_vertices(colour.read(), Some(open), is_reached)?;
        let least: Least<u64> =
            engine.process_vertices(IdOrdinal, Some(&members), |_, ordinal| Least(ordinal))?;
        engine.process_vertices(component.write(), Some(&members), |_, component| {
            *component = I::of(least.0);
        })?;
        Ok(members)
    }

    /// Marks all unmarked vertices that a search from one vertex reaches.
    fn flood(&mut self, from: u64, direction: Direction) -> Result<(), EngineError> {
        let mut active = self.engine.empty_set()?;
        active.insert(from)?;
        let flood = Flood(PhantomData::<fn() -> I>);
        (self.engine).run_to_fixpoint(&flood, self.colour, active, direction)
    }

    /// One round of colours: finds the components of all roots, and returns their members.
    fn round(&mut self, open: &ActiveSet) -> Result<ActiveSet, EngineError> {
        let (component, colour) = (self.component, self.colour);
        let engine = &mut *self.engine;
        engine.process_vertices(colour.write(), Some(open), |v, colour| {
            *colour = I::of(v).scrambled();
        })?;
        let mut active = engine.empty_set()?;
        active.union(open)?;
        let least = LeastColour(PhantomData::<fn() -> I>);
        engine.run_to_fixpoint(&least, colour, active, Direction::Forward)?;

        let reached = Reverse::<I>::REACHED;
        let rows = (component.write(), colour.read());
        let mut active = engine.select_vertices(rows, Some(open), |v, (component, colour)| {
            let is_root = *colour == I::of(v).scrambled();
            if is_root {
                *component = reached;
            }
            is_root
        })?;
        let reverse = Reverse(PhantomData::<fn() -> I>);
        while !active.is_empty() {
            let rows = (component.write(), colour.read());
            let backward = Direction::Backward;
            (_, active) = engine.process_edges(&reverse, colour.read(), rows, &active, backward)?;
        }
        let is_reached = |_, component: &I| *component == reached;
        let members = engine.select_vertices(component.read(), Some(open), is_reached)?;
        self.name(&members)?;
        Ok(members)
    }

    /// Names the components of a round.
    ///
    /// The root takes the least ordinal of its members, and each other member asks the root.
    fn name(&mut self, members: &ActiveSet) -> Result<(), EngineError> {
        let (component, colour) = (self.component, self.colour);
        let least = LeastMember(PhantomData::<fn() -> I>);
        let rows = (colour.read(), IdOrdinal);
        (self.engine).process_messages(&least, rows, component.write(), Some(members))?;
        let ask = AskRoot(PhantomData::<fn() -> I>);
        let rows = (component.read(), colour.read());
        let (read, write) = (component.read(), component.write());
        (self.engine).process_asks(&ask, rows, read, write, Some(members))?;
        Ok(())
    }
}
