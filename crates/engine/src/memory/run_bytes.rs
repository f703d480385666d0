//! Bytes of the messages of one batch.

/// Where the bits of a batch of so many sources are, behind values of so many bytes each.
pub(crate) fn bits_at(span: usize, width: usize) -> usize {
    (span * width).next_multiple_of(8)
}

/// Bytes of any piece of a batch of so many sources, on disk and in memory, at most.
pub(crate) fn bytes_max(span: usize, width: usize) -> usize {
    bits_at(span, width) + span.div_ceil(u64::BITS as usize) * 8
}
