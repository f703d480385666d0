//! Vertex indices as values of vertex arrays: 32 bits where the graph has fewer than 2^32 - 1 vertices, else 64.

use graphmill_engine::{Accumulator, AtomicScalar, Label};

use crate::mix::{mixed, mixed_32, unmixed, unmixed_32};

/// An integer that holds a vertex index, or [`Label::NONE`].
pub trait VertexIndex: Accumulator + Label + AtomicScalar {
    /// A number and an index in order: first by the number, then by the index.
    type Numbered: Accumulator + Ord;
    /// A value greater than all others.
    const LAST: Self::Numbered;

    /// The index of the first vertex, and a count of none.
    const ZERO: Self;
    /// A number that is no index, and not [`Label::NONE`].
    const UNNAMED: Self;

    /// The index, which fits.
    #[inline(always)]
    fn of(index: u64) -> Self {
        Self::of_index(index)
    }
    /// This index with a number.
    fn numbered(self, number: u32) -> Self::Numbered;
    /// The index of one with a number.
    fn index_of(numbered: Self::Numbered) -> Self;
    /// Returns a number above 0 for this index, in an order that looks random.
    ///
    /// Two indices never get the same number.
    fn scrambled(self) -> Self;
    /// Returns the index that [`VertexIndex::scrambled`] makes this number of.
    fn unscrambled(self) -> Self;
}

impl VertexIndex for u32 {
    /// In one word, which is compared at once.
    type Numbered = u64;
    const LAST: u64 = u64::MAX;
    const ZERO: u32 = 0;
    const UNNAMED: u32 = u32::MAX - 1;

    #[inline(always)]
    fn numbered(self, number: u32) -> u64 {
        u64::from(number) << 32 | u64::from(self)
    }
    #[inline(always)]
    fn index_of(numbered: u64) -> u32 {
        numbered as u32
    }
    // The mix of 0 is 0: it comes from `NONE`, which is no index.
    #[inline(always)]
    fn scrambled(self) -> u32 {
        mixed_32(!self)
    }
    #[inline(always)]
    fn unscrambled(self) -> u32 {
        !unmixed_32(self)
    }
}

impl VertexIndex for u64 {
    type Numbered = [u64; 2];
    const LAST: [u64; 2] = [u64::MAX; 2];
    const ZERO: u64 = 0;
    const UNNAMED: u64 = u64::MAX - 1;

    #[inline(always)]
    fn numbered(self, number: u32) -> [u64; 2] {
        [number.into(), self]
    }
    #[inline(always)]
    fn index_of([_, index]: [u64; 2]) -> u64 {
        index
    }
    #[inline(always)]
    fn scrambled(self) -> u64 {
        mixed(!self)
    }
    #[inline(always)]
    fn unscrambled(self) -> u64 {
        !unmixed(self)
    }
}

/// True if the indices of a graph fit in 32 bits, with one number to spare for none.
pub fn fits_u32(vertices: u64) -> bool {
    vertices < u64::from(u32::MAX)
}
