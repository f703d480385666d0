//! Kernels with the vector instructions of this processor, in one build for all processors.

/// Runs `kernel` compiled for AVX2, BMI, LZCNT, POPCNT and FMA if the processor has all, else as is.
///
/// Functions that the closure calls must be inlined into it (`#[inline(always)]`). Otherwise they keep the instructions of the baseline.
/// Results do not depend on the processor: the compiler does not fuse or reorder floating-point operations by itself.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls a function with target features")
)]
pub fn dispatch<R>(kernel: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if has_wide() {
        // SAFETY: `has_wide` has seen that the processor has every feature that `wide` is compiled for.
        return unsafe { wide(kernel) };
    }
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
fn wide<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

/// Returns true if the processor has the features of `wide`; after the first call this is one load.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_wide() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("fma")
}

#[cfg(test)]
mod tests {
    #[test]
    fn kernel_runs_once_and_returns_its_result() {
        let values: Vec<f32> = (0..1000).map(|i| i as f32 * 0.1).collect();
        let mut calls = 0;
        let sum = super::dispatch(|| {
            calls += 1;
            values.iter().sum::<f32>()
        });
        assert_eq!(
            (calls, sum.to_bits()),
            (1, values.iter().sum::<f32>().to_bits())
        );
    }
}
