//! The programs of a round.

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, AskProgram, EdgeProgram, IdOrdinal, MessageProgram, Outbox, Read, VertexArray, Write,
};

use super::edge::ForestEdge;
use super::link::LinkIndex;
use crate::output::weight_key;

/// Finds the least edge of each vertex to another tree.
pub(super) struct LeastLinks<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> LeastLinks<I> {
    /// Returns the rows of `signal` and of `apply`.
    pub(super) fn rows(
        &self,
        root: VertexArray<I>,
        candidate: VertexArray<I::Candidate>,
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
    type ApplyRows = (Read<I>, Write<I::Candidate>, IdOrdinal);
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
        (root, candidate, ordinal): (&I, &mut I::Candidate, u64),
        [first, second]: [I::Link; 2],
    ) -> ((), Activate) {
        let is_own = I::root_of(first) == *root;
        let link = if is_own { second } else { first };
        if link == I::NO_LINK {
            return ((), Activate::No);
        }
        let found = I::candidate(I::of(ordinal), link);
        // The pass in the other direction may have found a lesser one.
        *candidate = found.min(*candidate);
        ((), Activate::Yes)
    }
}

/// Each vertex sends its candidate to its root, which keeps the least; a root keeps its own.
pub(super) struct LeastOfTree<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> MessageProgram for LeastOfTree<I> {
    type SendRows = (Read<I>, Read<I::Candidate>);
    type ApplyRows = Write<I::Candidate>;
    type Message = I::Candidate;
    type Accumulator = I::Candidate;
    type Sum = ();
    const IDENTITY: I::Candidate = I::NO_CANDIDATE;
    const COMBINES: bool = true;

    #[inline(always)]
    fn send(
        &self,
        v: u64,
        (root, candidate): (&I, &I::Candidate),
        sink: &mut Outbox<'_, I::Candidate>,
    ) -> ((), Activate) {
        let root = root.index() as u64;
        if root == v {
            return ((), Activate::Yes);
        }
        sink.send(root, *candidate);
        ((), Activate::No)
    }
    #[inline(always)]
    fn combine(&self, earlier: &mut I::Candidate, later: I::Candidate) {
        self.fold(earlier, later);
    }
    #[inline(always)]
    fn fold(&self, least: &mut I::Candidate, candidate: I::Candidate) {
        *least = candidate.min(*least);
    }
    #[inline(always)]
    fn apply(&self, _: u64, candidate: &mut I::Candidate, least: I::Candidate) -> ((), Activate) {
        *candidate = least.min(*candidate);
        ((), Activate::Yes)
    }
}

/// A root asks the root that it chose for the choice made there.
///
/// It takes the asked one as its own root, unless it stays a root.
pub(super) struct Hook<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> AskProgram for Hook<I> {
    type AskRows = Read<I::Candidate>;
    type AnswerRows = (Read<I::Candidate>, IdOrdinal);
    type TakeRows = (Write<I>, Write<I::Candidate>, Write<ForestEdge>, IdOrdinal);
    /// The root that the asked one chose, and the ordinal of the asked one.
    type Answer = [I; 2];
    type Sum = ();

    #[inline(always)]
    fn ask(&self, _: u64, candidate: &I::Candidate) -> Option<u64> {
        Some(I::other_root(*candidate).index() as u64)
    }
    #[inline(always)]
    fn answer(&self, _: u64, (candidate, ordinal): (&I::Candidate, u64)) -> [I; 2] {
        [I::other_root(*candidate), I::of(ordinal)]
    }
    #[inline(always)]
    fn take(
        &self,
        v: u64,
        (root, candidate, edge, ordinal): (&mut I, &mut I::Candidate, &mut ForestEdge, u64),
        [chosen_there, ordinal_there]: [I; 2],
    ) -> ((), Activate) {
        let chosen = std::mem::replace(candidate, I::NO_CANDIDATE);
        if chosen_there == I::of(v) && I::of(ordinal) < ordinal_there {
            return ((), Activate::No);
        }
        *root = I::other_root(chosen);
        *edge = I::edge(chosen);
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
        let is_other = *root != next;
        *root = next;
        ((), Activate::when(is_other))
    }
}

/// Each vertex asks its former root for the new one, and forgets its candidate.
pub(super) struct NewRoot<I>(pub(super) PhantomData<fn() -> I>);

impl<I: LinkIndex> AskProgram for NewRoot<I> {
    type AskRows = Read<I>;
    type AnswerRows = Read<I>;
    type TakeRows = (Write<I>, Write<I::Candidate>);
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
    fn take(
        &self,
        _: u64,
        (root, candidate): (&mut I, &mut I::Candidate),
        new_root: I,
    ) -> ((), Activate) {
        (*root, *candidate) = (new_root, I::NO_CANDIDATE);
        ((), Activate::No)
    }
}
