//! Bytes of the messages of one batch.

/// Returns the offset of the bits of a batch of `span` sources, behind values of `width` bytes each.
pub(crate) fn bits_at(span: usize, width: usize) -> usize {
    (span * width).next_multiple_of(8)
}

/// Returns the maximum bytes of a message run of a batch of `span` sources, on disk and in memory.
pub(crate) fn bytes_max(span: usize, width: usize) -> usize {
    bits_at(span, width) + span.div_ceil(u64::BITS as usize) * 8
}
