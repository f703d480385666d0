//! A maximal independent set: the greedy set in order of a priority, arcs taken without their direction.

pub mod check;
pub(crate) mod entry;
mod priority;

use graphmill_engine::{
    Activate, EdgeProgram, Engine, EngineError, IdOrdinal, ProgramFootprint, VertexArray, Write,
};

pub use self::priority::Priority;

/// A neighbour of a selected vertex.
const EXCLUDED: u32 = 0;
/// A vertex of the set.
const SELECTED: u32 = 1;
/// A vertex that no round has decided yet.
const UNDECIDED: u32 = 2;
/// The same, with an undecided neighbour that comes first.
const BLOCKED: u32 = 3;

/// Selects the set that a walk over the vertices in order of priority selects.
///
/// The walk takes each vertex that has no neighbour in the set so far. The result is 1 for a vertex of the set and 0 for each other.
///
/// Self-loops and duplicates of arcs change nothing. A round selects all undecided vertices that come before their undecided
/// neighbours, and excludes the neighbours of these. So the set does not depend on how the work is done.
///
/// # Errors
/// The engine's.
pub fn run(engine: &mut Engine, priority: Priority) -> Result<VertexArray<u32>, EngineError> {
    let state = engine.vertex_array::<u32>("selected")?;
    engine.process_vertices(state.write(), None, |_, state| *state = UNDECIDED)?;
    let directions = engine.neighbour_directions();
    let mut undecided = engine.full_set()?;
    let mut limit = engine.pass_limit("a maximal independent set");
    while !undecided.is_empty() {
        limit.pass()?;
        let block = BlockLater { priority };
        for direction in directions {
            let rows = (state.write(), IdOrdinal);
            engine.process_edges(&block, IdOrdinal, rows, &undecided, *direction)?;
        }
        let selected = engine.select_vertices(state.write(), Some(&undecided), |_, state| {
            let is_first = *state == UNDECIDED;
            *state = if is_first { SELECTED } else { UNDECIDED };
            is_first
        })?;
        undecided.remove(&selected)?;
        for direction in directions {
            let write = state.write();
            let (_, excluded) = engine.process_edges(&Exclude, (), write, &selected, *direction)?;
            undecided.remove(&excluded)?;
        }
    }
    Ok(state)
}

/// Returns the bytes that the passes hold for each vertex.
pub(crate) fn sizes() -> ProgramFootprint {
    ProgramFootprint::of::<BlockLater>()
        .or(ProgramFootprint::of::<Exclude>())
        .with_rows::<Write<u32>>()
        .with_arrays(size_of::<u32>())
}

/// An undecided vertex waits for its undecided neighbours that come first.
struct BlockLater {
    priority: Priority,
}

impl EdgeProgram for BlockLater {
    type SignalRows = IdOrdinal;
    type ApplyRows = (Write<u32>, IdOrdinal);
    type Edge = ();
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = ();
    /// The last priority: no vertex waits for one that has it.
    const IDENTITY: u64 = u64::MAX;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, ordinal: u64) -> Option<u64> {
        Some(self.priority.of(ordinal))
    }
    #[inline(always)]
    fn on_edge(&self, priority: u64, (): ()) -> u64 {
        priority
    }
    #[inline(always)]
    fn fold(&self, first: &mut u64, priority: u64) {
        *first = priority.min(*first);
    }
    #[inline(always)]
    fn merge(&self, first: &mut u64, later: u64) {
        *first = later.min(*first);
    }
    #[inline(always)]
    fn apply(&self, _: u64, (state, ordinal): (&mut u32, u64), first: u64) -> ((), Activate) {
        // A self-loop brings a vertex its own priority.
        if *state == UNDECIDED && first < self.priority.of(ordinal) {
            *state = BLOCKED;
        }
        ((), Activate::No)
    }
}

/// The neighbours of selected vertices are not in the set.
struct Exclude;

impl EdgeProgram for Exclude {
    type SignalRows = ();
    type ApplyRows = Write<u32>;
    type Edge = ();
    type Message = u8;
    type EdgeMessage = u8;
    type Accumulator = u8;
    type Sum = ();
    const IDENTITY: u8 = 0;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (): ()) -> Option<u8> {
        Some(1)
    }
    #[inline(always)]
    fn on_edge(&self, message: u8, (): ()) -> u8 {
        message
    }
    #[inline(always)]
    fn fold(&self, reached: &mut u8, message: u8) {
        *reached |= message;
    }
    #[inline(always)]
    fn merge(&self, reached: &mut u8, later: u8) {
        *reached |= later;
    }
    #[inline(always)]
    fn apply(&self, _: u64, state: &mut u32, _: u8) -> ((), Activate) {
        if *state != UNDECIDED {
            return ((), Activate::No);
        }
        *state = EXCLUDED;
        ((), Activate::Yes)
    }
}
