//! An edge as one of its ends sees it: the weight, the other end, and the root of the other end.

use graphmill_engine::{Accumulator, Label};

use crate::vertex_index::VertexIndex;

/// An index of vertices, and how it lies in a link.
pub trait LinkIndex: VertexIndex {
    /// The key of a weight, the ordinal of a vertex, and the index of its root: in this order.
    type Link: Accumulator + Ord;
    /// A link that is greater than all others; its root is [`Label::NONE`].
    const NO_LINK: Self::Link;
    /// Makes a link.
    fn link(key: u64, ordinal: Self, root: Self) -> Self::Link;
    /// Returns the key, the ordinal and the root.
    fn parts(link: Self::Link) -> (u64, Self, Self);
    /// Returns the root.
    #[inline(always)]
    fn root_of(link: Self::Link) -> Self {
        Self::parts(link).2
    }
}

impl LinkIndex for u32 {
    /// Ordinal and root in one word.
    type Link = [u64; 2];
    const NO_LINK: [u64; 2] = [u64::MAX; 2];

    #[inline(always)]
    fn link(key: u64, ordinal: u32, root: u32) -> [u64; 2] {
        [key, u64::from(ordinal) << 32 | u64::from(root)]
    }
    #[inline(always)]
    fn parts([key, ends]: [u64; 2]) -> (u64, u32, u32) {
        (key, (ends >> 32) as u32, ends as u32)
    }
}

impl LinkIndex for u64 {
    type Link = [u64; 3];
    const NO_LINK: [u64; 3] = [<u64 as Label>::NONE; 3];

    #[inline(always)]
    fn link(key: u64, ordinal: u64, root: u64) -> [u64; 3] {
        [key, ordinal, root]
    }
    #[inline(always)]
    fn parts([key, ordinal, root]: [u64; 3]) -> (u64, u64, u64) {
        (key, ordinal, root)
    }
}
