//! Fields of packed bits, and the size of a page.

use std::ops::Range;

use crate::codec::bitpack::word_at;

/// Vertices of a page.
pub const PAGE_VERTICES: u64 = 4096;

/// Returns the numbers of the pages that have a vertex of a range.
pub(crate) fn pages_of(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE_VERTICES..range.end.div_ceil(PAGE_VERTICES)
}

/// Bits that `n` takes, at least 1.
pub(super) fn width(n: u64) -> u32 {
    (64 - n.leading_zeros()).max(1)
}

/// The field of `bits` (at most 56) that begins at bit `at`; bits beyond the bytes are 0.
#[inline]
pub(super) fn field(bytes: &[u8], at: usize, bits: u32) -> u64 {
    (word_at(bytes, at / 8) >> (at % 8)) & ((1 << bits) - 1)
}
