//! An edge as its ends and trees see it: how its weight, its ends and the root of another tree lie in few words.

use graphmill_engine::{Accumulator, Label};

use super::edge::ForestEdge;
use crate::vertex_index::VertexIndex;

/// An index of vertices, and how it lies in links and candidates.
pub trait LinkIndex: VertexIndex {
    /// An edge as one of its ends sees it: the key of its weight, then the other end.
    ///
    /// The other end is its ordinal and its root.
    type Link: Accumulator + Ord;
    /// A link that is greater than all others; its root is [`Label::NONE`].
    const NO_LINK: Self::Link;
    /// The least edge from a vertex or a tree to another tree, and the root of the other tree.
    type Candidate: Accumulator + Ord;
    /// The row of a vertex that has no edge to another tree; it is greater than all others.
    const NO_CANDIDATE: Self::Candidate;

    /// Makes a link.
    fn link(key: u64, ordinal: Self, root: Self) -> Self::Link;
    /// Returns the key, the ordinal and the root.
    fn parts(link: Self::Link) -> (u64, Self, Self);
    /// Returns the root.
    #[inline(always)]
    fn root_of(link: Self::Link) -> Self {
        Self::parts(link).2
    }

    /// Makes the candidate of a vertex with this ordinal out of a link.
    fn candidate(ordinal: Self, link: Self::Link) -> Self::Candidate;
    /// Returns the edge.
    fn edge(candidate: Self::Candidate) -> ForestEdge;
    /// Returns the root of the other tree.
    fn other_root(candidate: Self::Candidate) -> Self;
}

/// Returns the halves of a word of two indices.
#[inline(always)]
fn halves(word: u64) -> [u32; 2] {
    [(word >> 32) as u32, word as u32]
}

/// Returns the word of two indices, which are ordered by the first one.
#[inline(always)]
fn word(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

impl LinkIndex for u32 {
    /// Ordinal and root in one word.
    type Link = [u64; 2];
    const NO_LINK: [u64; 2] = [u64::MAX; 2];
    /// Both ordinals in one word.
    type Candidate = [u64; 3];
    const NO_CANDIDATE: [u64; 3] = [u64::MAX; 3];

    #[inline(always)]
    fn link(key: u64, ordinal: u32, root: u32) -> [u64; 2] {
        [key, word(ordinal, root)]
    }
    #[inline(always)]
    fn parts([key, ends]: [u64; 2]) -> (u64, u32, u32) {
        let [ordinal, root] = halves(ends);
        (key, ordinal, root)
    }
    #[inline(always)]
    fn candidate(ordinal: u32, link: [u64; 2]) -> [u64; 3] {
        let (key, other, root) = Self::parts(link);
        [
            key,
            word(ordinal.min(other), ordinal.max(other)),
            root.into(),
        ]
    }
    #[inline(always)]
    fn edge([key, ends, _]: [u64; 3]) -> ForestEdge {
        let [smaller, larger] = halves(ends).map(u64::from);
        [key, smaller, larger]
    }
    #[inline(always)]
    fn other_root([.., root]: [u64; 3]) -> u32 {
        root as u32
    }
}

impl LinkIndex for u64 {
    type Link = [u64; 3];
    const NO_LINK: [u64; 3] = [<u64 as Label>::NONE; 3];
    type Candidate = [u64; 4];
    const NO_CANDIDATE: [u64; 4] = [u64::MAX; 4];

    #[inline(always)]
    fn link(key: u64, ordinal: u64, root: u64) -> [u64; 3] {
        [key, ordinal, root]
    }
    #[inline(always)]
    fn parts([key, ordinal, root]: [u64; 3]) -> (u64, u64, u64) {
        (key, ordinal, root)
    }
    #[inline(always)]
    fn candidate(ordinal: u64, [key, other, root]: [u64; 3]) -> [u64; 4] {
        [key, ordinal.min(other), ordinal.max(other), root]
    }
    #[inline(always)]
    fn edge([key, smaller, larger, _]: [u64; 4]) -> ForestEdge {
        [key, smaller, larger]
    }
    #[inline(always)]
    fn other_root([.., root]: [u64; 4]) -> u64 {
        root
    }
}
