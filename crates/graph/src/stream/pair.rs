//! The form of the arcs in a chunk: both ends as local numbers of their batches, packed into whole bytes.

use crate::batches::Batches;
use crate::error::FormatError;

/// Bits of a local number at most.
pub(crate) const LOCAL_BITS_MAX: u32 = 20;
/// Vertices of a graph in the stream layout at most: an open chunk holds an arc in 64 bits.
pub(crate) const STREAM_VERTICES_MAX: u64 = 1 << (u64::BITS - LOCAL_BITS_MAX);
/// Zero bytes after the pairs, so that a whole word can be read at each.
pub(crate) const PADDING: usize = 8;

/// The form of a pair: the source in the low bits, the destination above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairLayout {
    /// Bits of each local number.
    pub(crate) bits: u32,
    /// Bytes of a pair: 1 to 5.
    pub(crate) bytes: usize,
}

impl PairLayout {
    /// Returns the layout for batches of the same power of two of vertices, or fewer at the end.
    ///
    /// # Errors
    /// The batches are others, or larger than 2^20 vertices; or they have 2^44 vertices or more.
    pub(crate) fn new(batches: &Batches) -> Result<Self, FormatError> {
        let span = if batches.is_empty() {
            0
        } else {
            batches.span(0)
        };
        let is_uniform = batches.len() < 2 || span.is_power_of_two() && batches.is_uniform();
        let bits = u64::BITS - span.saturating_sub(1).leading_zeros();
        if !is_uniform || bits > LOCAL_BITS_MAX || batches.vertices() >= STREAM_VERTICES_MAX {
            let what = "chunks need batches of the same power of two of vertices, at most 2^20";
            return Err(FormatError::misuse(what));
        }
        let bytes = (2 * bits).div_ceil(8).max(1) as usize;
        Ok(PairLayout { bits, bytes })
    }
    /// The greatest local number.
    #[inline(always)]
    pub(crate) fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }
    /// Bytes that the runs of a chunk of `edges` arcs take at most, with their number.
    fn runs_bytes(batches: usize, edges: usize) -> usize {
        let varint = |most: usize| (usize::BITS - most.leading_zeros()).max(1).div_ceil(7) as usize;
        let runs = batches.min(edges);
        varint(batches) + runs.saturating_mul(varint(batches) + varint(edges))
    }
    /// Returns the bytes of a chunk of `edges` arcs at most, wherever they go.
    pub(crate) fn chunk_bytes(self, batches: usize, edges: usize) -> usize {
        let runs = Self::runs_bytes(batches, edges);
        runs.saturating_add(4 + PADDING + edges * self.bytes)
    }
    /// Returns the arcs that a chunk of `chunk_bytes` bytes holds, wherever they go.
    pub(crate) fn capacity(self, batches: usize, chunk_bytes: usize) -> usize {
        let bytes = |edges| self.chunk_bytes(batches, edges);
        let (mut fits, mut too_many) = (1, chunk_bytes.max(2));
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            match bytes(middle) <= chunk_bytes {
                true => fits = middle,
                false => too_many = middle,
            }
        }
        fits
    }
}
