//! Vertex indices, and ranks of ids, as values of vertex arrays: 32 bits where the graph has fewer than 2^32 - 1 vertices, else 64.

use graphmill_engine::{Accumulator, Word};

/// An integer that holds a vertex index.
pub trait Index: Accumulator + Word {
    /// No vertex.
    const NONE: Self;
    /// The index, which fits.
    fn of(index: u64) -> Self;
}

impl Index for u32 {
    const NONE: u32 = u32::MAX;
    #[inline(always)]
    fn of(index: u64) -> u32 {
        index as u32
    }
}

impl Index for u64 {
    const NONE: u64 = u64::MAX;
    #[inline(always)]
    fn of(index: u64) -> u64 {
        index
    }
}

/// Whether the indices of a graph fit in 32 bits, with one number to spare for none.
pub fn fits_u32(vertices: u64) -> bool {
    vertices < u64::from(u32::MAX)
}
