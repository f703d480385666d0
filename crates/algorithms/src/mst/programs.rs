//! The programs of a round.

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, AskProgram, EdgeProgram, IdOrdinal, MessageProgram, Outbox, Read, VertexArray, Write,
};

use super::edge::{Candidate, ForestEdge, NO_CANDIDATE};
use super::link::LinkIndex;
use crate::output::weight_key;

/// Finds the least edge of each vertex to another tree.
pub(super) struct LeastLinks<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> LeastLinks<I> {
    /// Returns the rows of `signal` and of `apply`.
    pub(super) fn rows(
        &self,
        root: VertexArray<I>,
        candidate: VertexArray<Candidate>,
    ) -> (
        <Self as EdgeProgram>::SignalRows,
        <Self as EdgeProgram>::ApplyRows,
    ) {
        let signal = (root.read(), IdOrdinal);
        (signal, (root.read(), candidate.write(), IdOrdinal))
    }
}

impl<I: LinkIndex> EdgeProgram for LeastLinks<I> {
    type SignalRows = (Read<I>, IdOrdinal);
    type ApplyRows = (Read<I>, Write<Candidate>, IdOrdinal);
    type Edge = f64;
    /// The ordinal of the sender, and its root.
    type Message = [I; 2];
    type EdgeMessage = I::Link;
    /// The two least links of different roots, the least first.
    type Accumulator = [I::Link; 2];
    type Sum = ();
    const IDENTITY: [I::Link; 2] = [I::NO_LINK; 2];
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (root, ordinal): (&I, u64)) -> Option<[I; 2]> {
        Some([I::of(ordinal), *root])
    }
    #[inline(always)]
    fn on_edge(&self, [ordinal, root]: [I; 2], weight: f64) -> I::Link {
        I::link(weight_key(weight), ordinal, root)
    }
    #[inline(always)]
    fn fold(&self, [first, second]: &mut [I::Link; 2], link: I::Link) {
        let is_other = I::root_of(link) != I::root_of(*first);
        if link < *first {
            if is_other {
                *second = *first;
            }
            *first = link;
        } else if is_other && link < *second {
            *second = link;
        }
    }
    #[inline(always)]
    fn merge(&self, links: &mut [I::Link; 2], later: [I::Link; 2]) {
        for link in later {
            self.fold(links, link);
        }
    }
    #[inline(always)]
    fn apply(
        &self,
        _: u64,
        (root, candidate, ordinal): (&I, &mut Candidate, u64),
        [first, second]: [I::Link; 2],
    ) -> ((), Activate) {
        let is_own = I::root_of(first) == *root;
        let link = if is_own { second } else { first };
        if link == I::NO_LINK {
            return ((), Activate::No);
        }
        let (key, other, other_root) = I::parts(link);
        let other = other.index() as u64;
        let (smaller, larger) = (ordinal.min(other), ordinal.max(other));
        let found = [key, smaller, larger, other_root.index() as u64];
        // The pass in the other direction may have found a lesser one.
        *candidate = found.min(*candidate);
        ((), Activate::Yes)
    }
}

/// Each vertex sends its candidate to its root, which keeps the least.
pub(super) struct LeastOfTree<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> MessageProgram for LeastOfTree<I> {
    type SendRows = (Read<I>, Read<Candidate>);
    type ApplyRows = Write<Candidate>;
    type Message = Candidate;
    type Accumulator = Candidate;
    type Sum = ();
    const IDENTITY: Candidate = NO_CANDIDATE;

    #[inline(always)]
    fn send(
        &self,
        _: u64,
        (root, candidate): (&I, &Candidate),
        sink: &mut Outbox<'_, Candidate>,
    ) -> ((), Activate) {
        sink.send(root.index() as u64, *candidate);
        ((), Activate::No)
    }
    #[inline(always)]
    fn fold(&self, least: &mut Candidate, candidate: Candidate) {
        *least = candidate.min(*least);
    }
    #[inline(always)]
    fn apply(&self, _: u64, candidate: &mut Candidate, least: Candidate) -> ((), Activate) {
        *candidate = least;
        ((), Activate::Yes)
    }
}

/// A root asks the root that it chose for the choice made there.
///
/// It takes the asked one as its own root, unless it stays a root.
pub(super) struct Hook<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> AskProgram for Hook<I> {
    type AskRows = Read<Candidate>;
    type AnswerRows = (Read<Candidate>, IdOrdinal);
    type TakeRows = (Write<I>, Read<Candidate>, Write<ForestEdge>, IdOrdinal);
    /// The root that the asked one chose, and the ordinal of the asked one.
    type Answer = [u64; 2];
    type Sum = ();

    #[inline(always)]
    fn ask(&self, _: u64, [.., chosen]: &Candidate) -> Option<u64> {
        Some(*chosen)
    }
    #[inline(always)]
    fn answer(&self, _: u64, ([.., chosen], ordinal): (&Candidate, u64)) -> [u64; 2] {
        [*chosen, ordinal]
    }
    #[inline(always)]
    fn take(
        &self,
        v: u64,
        (root, candidate, edge, ordinal): (&mut I, &Candidate, &mut ForestEdge, u64),
        [chosen_there, ordinal_there]: [u64; 2],
    ) -> ((), Activate) {
        let [key, smaller, larger, chosen] = *candidate;
        if chosen_there == v && ordinal < ordinal_there {
            return ((), Activate::No);
        }
        *root = I::of(chosen);
        *edge = [key, smaller, larger];
        ((), Activate::Yes)
    }
}

/// A former root asks its root for its root, until that is the last one.
pub(super) struct JumpToRoot<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> AskProgram for JumpToRoot<I> {
    type AskRows = Read<I>;
    type AnswerRows = Read<I>;
    type TakeRows = Write<I>;
    type Answer = I;
    type Sum = ();

    #[inline(always)]
    fn ask(&self, _: u64, root: &I) -> Option<u64> {
        Some(root.index() as u64)
    }
    #[inline(always)]
    fn answer(&self, _: u64, root: &I) -> I {
        *root
    }
    #[inline(always)]
    fn take(&self, _: u64, root: &mut I, next: I) -> ((), Activate) {
        let is_last = *root == next;
        *root = next;
        ((), if is_last { Activate::No } else { Activate::Yes })
    }
}

/// Each vertex asks its root for the new root, and whether the tree goes into the next round.
pub(super) struct NewRoot<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> AskProgram for NewRoot<I> {
    type AskRows = Read<I>;
    type AnswerRows = (Read<I>, Read<Candidate>);
    type TakeRows = (Write<I>, Write<Candidate>);
    /// The new root, and 1 if the asked root had an edge to another tree.
    type Answer = [I; 2];
    type Sum = ();

    #[inline(always)]
    fn ask(&self, _: u64, root: &I) -> Option<u64> {
        Some(root.index() as u64)
    }
    #[inline(always)]
    fn answer(&self, _: u64, (root, candidate): (&I, &Candidate)) -> [I; 2] {
        [*root, I::of(u64::from(*candidate != NO_CANDIDATE))]
    }
    #[inline(always)]
    fn take(
        &self,
        _: u64,
        (root, candidate): (&mut I, &mut Candidate),
        [new_root, grows]: [I; 2],
    ) -> ((), Activate) {
        *root = new_root;
        *candidate = NO_CANDIDATE;
        let is_done = grows == I::ZERO;
        ((), if is_done { Activate::No } else { Activate::Yes })
    }
}
