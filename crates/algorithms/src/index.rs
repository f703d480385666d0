//! Vertex indices as values of vertex arrays: 32 bits where the graph has fewer than 2^32 - 1 vertices, else 64.

use graphmill_engine::{Accumulator, Label, Word};

/// An integer that holds a vertex index, or [`Label::NONE`].
pub trait Index: Accumulator + Label + Word {
    /// The index, which fits.
    #[inline(always)]
    fn of(index: u64) -> Self {
        Self::of_index(index)
    }
}

impl Index for u32 {}
impl Index for u64 {}

/// Whether the indices of a graph fit in 32 bits, with one number to spare for none.
pub fn fits_u32(vertices: u64) -> bool {
    vertices < u64::from(u32::MAX)
}
