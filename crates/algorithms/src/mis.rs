//! A maximal independent set: the greedy set in order of a priority, arcs taken without their direction.

pub mod check;
pub(crate) mod entry;
mod priority;

use graphmill_engine::{
    Activate, ActiveSet, Direction, EdgeProgram, Engine, EngineError, IdOrdinal, ProgramFootprint,
    Read, VertexArray, Write,
};

pub use self::priority::Priority;

/// A neighbour of a selected vertex.
const EXCLUDED: u32 = 0;
/// A vertex of the set.
const SELECTED: u32 = 1;
/// An undecided vertex with an undecided neighbour that comes first.
const WAITING: u32 = 2;
/// An undecided vertex that may come before its undecided neighbours.
const CANDIDATE: u32 = 3;

/// A round looks at all undecided vertices if the round before excluded one of this many.
///
/// Few rounds do so, as each leaves fewer. The others look at the vertices around those just excluded.
const DENSE_SHARE: u64 = 8;

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
    engine.process_vertices(state.write(), None, |_, state| *state = WAITING)?;
    let directions = engine.neighbour_directions();
    let mut rounds = Rounds {
        engine,
        state,
        priority,
        directions,
    };
    let mut undecided = rounds.engine.vertices();
    let mut limit = rounds.engine.pass_limit("a maximal independent set");
    let mut excluded = None;
    while undecided > 0 {
        limit.pass()?;
        let selected = rounds.select(excluded.as_ref())?;
        drop(excluded);
        let found = rounds.reach(&MoveTo(EXCLUDED), (), state.write(), &selected)?;
        undecided -= selected.len() + found.len();
        excluded = (found.len() < undecided / DENSE_SHARE).then_some(found);
    }
    Ok(state)
}

/// Returns the bytes that the passes hold for each vertex.
pub(crate) fn sizes() -> ProgramFootprint {
    ProgramFootprint::of::<BlockLater>()
        .or(ProgramFootprint::of::<FindEarlier>())
        .or(ProgramFootprint::of::<MoveTo>())
        .with_rows::<Write<u32>>()
        .with_arrays(size_of::<u32>())
        .going_against(true)
}

/// The rounds of a run.
struct Rounds<'e> {
    engine: &'e mut Engine,
    state: VertexArray<u32>,
    priority: Priority,
    directions: &'static [Direction],
}

impl Rounds<'_> {
    /// Selects the undecided vertices that come before their undecided neighbours.
    ///
    /// Only neighbours of vertices that the last round excluded can be such, if `excluded` is given.
    fn select(&mut self, excluded: Option<&ActiveSet>) -> Result<ActiveSet, EngineError> {
        let (state, priority) = (self.state, self.priority);
        let candidates = match excluded {
            Some(excluded) => self.reach(&MoveTo(CANDIDATE), (), state.write(), excluded)?,
            None => (self.engine).select_vertices(state.write(), None, |_, state| {
                let is_undecided = *state >= WAITING;
                if is_undecided {
                    *state = CANDIDATE;
                }
                is_undecided
            })?,
        };
        let earlier = match excluded {
            Some(_) => {
                let rows = (state.read(), IdOrdinal);
                Some(self.reach(&FindEarlier { priority }, IdOrdinal, rows, &candidates)?)
            }
            None => None,
        };
        let senders = earlier.as_ref().unwrap_or(&candidates);
        if !senders.is_empty() {
            let rows = (state.write(), IdOrdinal);
            self.reach(&BlockLater { priority }, IdOrdinal, rows, senders)?;
        }
        drop(earlier);
        (self.engine).select_vertices(state.write(), Some(&candidates), |_, state| {
            let is_first = *state == CANDIDATE;
            if is_first {
                *state = SELECTED;
            }
            is_first
        })
    }

    /// Runs a program over the arcs of some vertices, and returns the vertices that it activates.
    fn reach<P: EdgeProgram + 'static>(
        &mut self,
        program: &P,
        signal: P::SignalRows,
        apply: P::ApplyRows,
        from: &ActiveSet,
    ) -> Result<ActiveSet, EngineError> {
        let mut reached = self.engine.empty_set()?;
        for direction in self.directions {
            let (_, found) =
                (self.engine).process_edges(program, signal, apply, from, *direction)?;
            reached.union(&found)?;
        }
        Ok(reached)
    }
}

/// A candidate waits if an undecided neighbour comes first.
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
        if *state == CANDIDATE && first < self.priority.of(ordinal) {
            *state = WAITING;
        }
        ((), Activate::No)
    }
}

/// Finds the undecided vertices that come before a neighbour.
struct FindEarlier {
    priority: Priority,
}

impl EdgeProgram for FindEarlier {
    type SignalRows = IdOrdinal;
    type ApplyRows = (Read<u32>, IdOrdinal);
    type Edge = ();
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = ();
    /// The first priority: no vertex comes before one that has it.
    const IDENTITY: u64 = 0;
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
    fn fold(&self, last: &mut u64, priority: u64) {
        *last = priority.max(*last);
    }
    #[inline(always)]
    fn merge(&self, last: &mut u64, later: u64) {
        *last = later.max(*last);
    }
    #[inline(always)]
    fn apply(&self, _: u64, (state, ordinal): (&u32, u64), last: u64) -> ((), Activate) {
        let is_earlier = *state >= WAITING && self.priority.of(ordinal) < last;
        ((), Activate::when(is_earlier))
    }
}

/// Gives neighbours that wait another state.
struct MoveTo(u32);

impl EdgeProgram for MoveTo {
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
        if *state != WAITING {
            return ((), Activate::No);
        }
        *state = self.0;
        ((), Activate::Yes)
    }
}
