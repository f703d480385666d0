//! A hint to the processor that memory is read soon.

/// Starts to load `values[i]` into the cache, without waiting for it.
///
/// Does nothing outside the slice, and on processors without such a hint.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls an intrinsic")
)]
pub fn prefetch<T>(values: &[T], i: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(i) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has SSE; a prefetch reads nothing that the program can see, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, i);
}

#[cfg(test)]
mod tests {
    #[test]
    fn prefetch_takes_any_index() {
        let values = [1u64, 2, 3];
        for i in [0, 2, 3, usize::MAX] {
            super::prefetch(&values, i);
        }
        super::prefetch::<u8>(&[], 0);
        assert_eq!(values, [1, 2, 3]);
    }
}
