//! Constants of the block format, and its two codecs for destinations.

/// Edges of a block at most.
pub const BLOCK_EDGES_MAX: usize = 4096;
/// Bytes of a block's header.
pub(super) const HEADER: usize = 16;
/// Zero bytes at the end of a block, so that wide loads of its last fields stay inside.
pub(super) const PADDING: usize = 8;
/// Bytes that say how long the bodies of the firsts are, in the gap codec.
pub(super) const FIRSTS_BYTES: usize = 4;
/// Percentage of the packed codec's bytes up to which a block takes the slower gap codec.
pub(super) const GAP_PERCENT_MAX: usize = 80;

/// How the destinations of a block are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Each in the bits of the batch's span.
    Packed,
    /// The first of each group relative to its source, the others as the gap to the one before.
    Gap,
}
