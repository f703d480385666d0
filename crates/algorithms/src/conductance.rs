//! Conductance of a set of vertices: the arcs between the set and the rest, over the arcs of the smaller side.
//!
//! One pass: each vertex sends its side, and each destination counts the messages of both sides. Without weights all counts are whole numbers.

pub mod check;
pub(crate) mod entry;

use std::marker::PhantomData;

use graphmill_engine::{
    Accumulator, Activate, Direction, EdgeProgram, EdgeValue, Engine, EngineError,
    ProgramFootprint, Read, Reduce, VertexArray,
};

use crate::output::{NumberRow, NumberValue};

/// The columns of the result.
pub const COLUMNS: [&str; 4] = ["cut", "volume", "volume_rest", "conductance"];

/// Arcs or weights that are counted.
pub trait Amount: Accumulator + Reduce {
    /// The value of an arc.
    type Edge: EdgeValue;
    /// Sums are the same in any order.
    const EXACT: bool;
    /// The sum of nothing.
    const NOTHING: Self;
    /// What an arc counts.
    fn of(edge: Self::Edge) -> Self;
    /// Wrapped as a number of the result.
    fn number(self) -> NumberValue;
    /// Rounded to a number to divide by.
    fn value(self) -> f64;
}

impl Amount for u64 {
    type Edge = ();
    const EXACT: bool = true;
    const NOTHING: u64 = 0;
    #[inline(always)]
    fn of((): ()) -> u64 {
        1
    }
    fn number(self) -> NumberValue {
        NumberValue::Integer(Some(self))
    }
    fn value(self) -> f64 {
        self as f64
    }
}

impl Amount for f64 {
    type Edge = f64;
    const EXACT: bool = false;
    const NOTHING: f64 = -0.0;
    #[inline(always)]
    fn of(weight: f64) -> f64 {
        weight
    }
    fn number(self) -> NumberValue {
        // A sum of nothing is a plain 0.
        NumberValue::Float(Some(self + 0.0))
    }
    fn value(self) -> f64 {
        self
    }
}

/// Counts arcs, or adds up their weights (`A` is `f64`).
///
/// The set are the vertices whose row is not 0.
/// The volume of a side is what leaves its vertices. The cut is what goes between both sides, on directed graphs in both directions.
///
/// # Errors
/// Errors of the engine.
pub fn run<A: Amount>(engine: &mut Engine, set: VertexArray<u8>) -> Result<NumberRow, EngineError> {
    let everyone = engine.full_set()?;
    let program = CountSides::<A>(PhantomData);
    let forward = Direction::Forward;
    let (sides, _) = engine.process_edges(&program, set.read(), set.read(), &everyone, forward)?;
    Ok(row(sides, engine.graph().directed()))
}

/// Returns the result from what goes from each side to each side.
///
/// The order is: rest to rest, rest to set, set to rest, set to set.
fn row<A: Amount>([rest, back, out, inside]: [A; 4], is_directed: bool) -> NumberRow {
    let plus = |mut one: A, other| {
        one.add(other);
        one
    };
    // Of an undirected edge one arc is enough.
    let cut = if is_directed { plus(out, back) } else { out };
    let volumes = [plus(out, inside), plus(rest, back)];
    let smaller = volumes[0].value().min(volumes[1].value());
    let conductance = (smaller != 0.0).then(|| cut.value() / smaller);
    let values = [
        cut.number(),
        volumes[0].number(),
        volumes[1].number(),
        NumberValue::Float(conductance),
    ];
    NumberRow::new(&COLUMNS, &values)
}

/// Returns the bytes that the pass holds for each vertex.
pub(crate) fn sizes<A: Amount>() -> ProgramFootprint {
    ProgramFootprint::of::<CountSides<A>>().with_arrays(size_of::<u8>())
}

/// Counts the arcs from each side to each side.
struct CountSides<A>(PhantomData<fn() -> A>);

impl<A: Amount> EdgeProgram for CountSides<A> {
    type SignalRows = Read<u8>;
    type ApplyRows = Read<u8>;
    type Edge = A::Edge;
    type Message = u8;
    type EdgeMessage = (u8, A);
    /// From the rest, and from the set.
    type Accumulator = [A; 2];
    type Sum = [A; 4];
    const IDENTITY: [A; 2] = [A::NOTHING; 2];
    const ORDER_INDEPENDENT: bool = A::EXACT;

    #[inline(always)]
    fn signal(&self, _: u64, side: &u8) -> Option<u8> {
        Some(*side)
    }
    #[inline(always)]
    fn on_edge(&self, side: u8, edge: A::Edge) -> (u8, A) {
        (side, A::of(edge))
    }
    #[inline(always)]
    fn fold(&self, counts: &mut [A; 2], (side, amount): (u8, A)) {
        counts[usize::from(side != 0)].add(amount);
    }
    #[inline(always)]
    fn merge(&self, counts: &mut [A; 2], later: [A; 2]) {
        counts.add(later);
    }
    #[inline(always)]
    fn apply(&self, _: u64, side: &u8, [from_rest, from_set]: [A; 2]) -> ([A; 4], Activate) {
        let none = A::ZERO;
        let sides = match *side {
            0 => [from_rest, none, from_set, none],
            _ => [none, from_rest, none, from_set],
        };
        (sides, Activate::No)
    }
}
