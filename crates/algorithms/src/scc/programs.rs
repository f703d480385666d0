//! The programs of the search.

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, AskProgram, Direction, EdgeProgram, IdOrdinal, MessageProgram, MonotoneProgram,
    Outbox, Read, Write,
};

use crate::vertex_index::VertexIndex;

/// One side of the arcs of a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    /// Its place in a row of both sides.
    place: usize,
    /// The direction in which messages reach the vertex along these arcs.
    pub(super) direction: Direction,
}

/// The arcs that lead to a vertex.
pub(super) const IN: Side = Side {
    place: 0,
    direction: Direction::Forward,
};
/// The arcs that leave a vertex.
pub(super) const OUT: Side = Side {
    place: 1,
    direction: Direction::Backward,
};

/// Adds to a count that stays at the greatest number once it is there.
#[inline(always)]
fn add<I: VertexIndex>(count: &mut I, more: u64) {
    let sum = (count.index() as u64).saturating_add(more);
    *count = match sum < I::NONE.index() as u64 {
        true => I::of(sum),
        false => I::NONE,
    };
}

/// Each active vertex counts one for each arc of one side that leads to another vertex.
macro_rules! counts_arcs {
    () => {
        type SignalRows = ();
        type Edge = ();
        type Message = u8;
        type EdgeMessage = u8;
        type Accumulator = I;
        type Sum = ();
        const IDENTITY: I = I::ZERO;
        const ORDER_INDEPENDENT: bool = true;

        #[inline(always)]
        fn signal(&self, _: u64, (): ()) -> Option<u8> {
            Some(1)
        }
        #[inline(always)]
        fn on_edge(&self, one: u8, (): ()) -> u8 {
            one
        }
        #[inline(always)]
        fn on_arc(&self, sender: u64, receiver: u64, one: u8, (): ()) -> u8 {
            if sender == receiver { 0 } else { one }
        }
        #[inline(always)]
        fn fold(&self, count: &mut I, one: u8) {
            add(count, one.into());
        }
        #[inline(always)]
        fn merge(&self, count: &mut I, later: I) {
            add(count, later.index() as u64);
        }
    };
}

/// Counts the arcs of one side.
pub(super) struct CountArcs<I>(pub(super) Side, pub(super) PhantomData<fn() -> I>);

impl<I: VertexIndex> EdgeProgram for CountArcs<I> {
    type ApplyRows = Write<[I; 2]>;
    counts_arcs!();

    #[inline(always)]
    fn apply(&self, _: u64, degrees: &mut [I; 2], count: I) -> ((), Activate) {
        degrees[self.0.place] = count;
        ((), Activate::No)
    }
}

/// Takes the arcs of closed vertices off the counts; a vertex that has none left is a component.
pub(super) struct Uncount<I>(pub(super) Side, pub(super) PhantomData<fn() -> I>);

impl<I: VertexIndex> EdgeProgram for Uncount<I> {
    type ApplyRows = (Write<I>, Write<[I; 2]>, IdOrdinal);
    counts_arcs!();

    #[inline(always)]
    fn apply(
        &self,
        _: u64,
        (component, degrees, ordinal): (&mut I, &mut [I; 2], u64),
        count: I,
    ) -> ((), Activate) {
        let degree = &mut degrees[self.0.place];
        // A count that has reached the greatest number is not exact; the rounds of colours do without it.
        if *component != I::NONE || *degree == I::NONE {
            return ((), Activate::No);
        }
        *degree = I::of((degree.index() - count.index().min(degree.index())) as u64);
        if *degree != I::ZERO {
            return ((), Activate::No);
        }
        *component = I::of(ordinal);
        ((), Activate::Yes)
    }
}

/// A vertex takes the least colour that reaches it.
#[derive(Clone, Copy)]
pub(super) struct LeastColour<I>(pub(super) PhantomData<fn() -> I>);

impl<I: VertexIndex> MonotoneProgram for LeastColour<I> {
    type Label = I;
    type Edge = ();

    #[inline(always)]
    fn on_edge(&self, colour: I, (): ()) -> I {
        colour
    }
}

/// A search against the arcs, from the roots through vertices of the same colour.
///
/// A vertex along an arc from an open vertex has a colour that is not greater. So the greatest colour that comes back to a
/// vertex is its own exactly if one comes that is its own.
pub(super) struct Reverse<I>(pub(super) PhantomData<fn() -> I>);

impl<I: VertexIndex> Reverse<I> {
    /// The component of a reached vertex, until it has a name: less than `NONE`, and no ordinal.
    pub(super) const REACHED: I = I::UNNAMED;
}

impl<I: VertexIndex> EdgeProgram for Reverse<I> {
    type SignalRows = Read<I>;
    type ApplyRows = (Write<I>, Read<I>);
    type Edge = ();
    type Message = I;
    type EdgeMessage = I;
    type Accumulator = I;
    type Sum = ();
    /// No scrambled index is 0.
    const IDENTITY: I = I::ZERO;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, colour: &I) -> Option<I> {
        Some(*colour)
    }
    #[inline(always)]
    fn on_edge(&self, colour: I, (): ()) -> I {
        colour
    }
    #[inline(always)]
    fn fold(&self, greatest: &mut I, colour: I) {
        *greatest = colour.max(*greatest);
    }
    #[inline(always)]
    fn merge(&self, greatest: &mut I, later: I) {
        *greatest = later.max(*greatest);
    }
    #[inline(always)]
    fn apply(&self, _: u64, (component, colour): (&mut I, &I), greatest: I) -> ((), Activate) {
        if *component != I::NONE || greatest != *colour {
            return ((), Activate::No);
        }
        *component = Self::REACHED;
        ((), Activate::Yes)
    }
}

/// Each member of a component sends its ordinal to the root, which its colour names.
pub(super) struct LeastMember<I>(pub(super) PhantomData<fn() -> I>);

impl<I: VertexIndex> MessageProgram for LeastMember<I> {
    type SendRows = (Read<I>, IdOrdinal);
    type ApplyRows = Write<I>;
    type Message = I;
    type Accumulator = I;
    type Sum = ();
    const IDENTITY: I = I::NONE;
    const COMBINES: bool = true;

    #[inline(always)]
    fn send(
        &self,
        _: u64,
        (colour, ordinal): (&I, u64),
        sink: &mut Outbox<'_, I>,
    ) -> ((), Activate) {
        sink.send(colour.unscrambled().index() as u64, I::of(ordinal));
        ((), Activate::No)
    }
    #[inline(always)]
    fn combine(&self, earlier: &mut I, later: I) {
        self.fold(earlier, later);
    }
    #[inline(always)]
    fn fold(&self, least: &mut I, ordinal: I) {
        *least = ordinal.min(*least);
    }
    #[inline(always)]
    fn apply(&self, _: u64, component: &mut I, least: I) -> ((), Activate) {
        *component = least;
        ((), Activate::No)
    }
}

/// Each member of a component, but for the root, asks the root for its name.
pub(super) struct AskRoot<I>(pub(super) PhantomData<fn() -> I>);

impl<I: VertexIndex> AskProgram for AskRoot<I> {
    type AskRows = (Read<I>, Read<I>);
    type AnswerRows = Read<I>;
    type TakeRows = Write<I>;
    type Answer = I;
    type Sum = ();

    #[inline(always)]
    fn ask(&self, _: u64, (component, colour): (&I, &I)) -> Option<u64> {
        let is_named = *component != Reverse::<I>::REACHED;
        (!is_named).then(|| colour.unscrambled().index() as u64)
    }
    #[inline(always)]
    fn answer(&self, _: u64, component: &I) -> I {
        *component
    }
    #[inline(always)]
    fn take(&self, _: u64, component: &mut I, name: I) -> ((), Activate) {
        *component = name;
        ((), Activate::No)
    }
}
