//! Vertex indices as values of vertex arrays: 32 bits where the graph has fewer than 2^32 - 1 vertices, else 64.

use graphmill_engine::{Accumulator, AtomicScalar, Label};

/// An integer that holds a vertex index, or [`Label::NONE`].
pub trait VertexIndex: Accumulator + Label + AtomicScalar {
    /// A number and an index in order: first by the number, then by the index.
    type Numbered: Accumulator + Ord;
    /// A value greater than all others.
    const LAST: Self::Numbered;

    /// The index of the first vertex, and a count of none.
    const ZERO: Self;

    /// The index, which fits.
    #[inline(always)]
    fn of(index: u64) -> Self {
        Self::of_index(index)
    }
    /// This index with a number.
    fn numbered(self, number: u32) -> Self::Numbered;
    /// The index of one with a number.
    fn index_of(numbered: Self::Numbered) -> Self;
}

impl VertexIndex for u32 {
    /// In one word, which is compared at once.
    type Numbered = u64;
    const LAST: u64 = u64::MAX;
    const ZERO: u32 = 0;

    #[inline(always)]
    fn numbered(self, number: u32) -> u64 {
        u64::from(number) << 32 | u64::from(self)
    }
    #[inline(always)]
    fn index_of(numbered: u64) -> u32 {
        numbered as u32
    }
}

impl VertexIndex for u64 {
    type Numbered = [u64; 2];
    const LAST: [u64; 2] = [u64::MAX; 2];
    const ZERO: u64 = 0;

    #[inline(always)]
    fn numbered(self, number: u32) -> [u64; 2] {
        [number.into(), self]
    }
    #[inline(always)]
    fn index_of([_, index]: [u64; 2]) -> u64 {
        index
    }
}

/// True if the indices of a graph fit in 32 bits, with one number to spare for none.
pub fn fits_u32(vertices: u64) -> bool {
    vertices < u64::from(u32::MAX)
}
