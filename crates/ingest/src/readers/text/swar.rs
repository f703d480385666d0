//! Numbers, eight bytes of text at a time.
//!
//! This file handles only common and exact cases; for all others it returns `None`, and the rules read the line again.

/// Number of decimal digits that eight bytes of text start with, and the eight bytes less `'0'` each.
#[inline(always)]
fn digits_of(bytes: &[u8; 8]) -> (u32, u64) {
    let digits = u64::from_le_bytes(*bytes) ^ 0x3030_3030_3030_3030;
    // A byte above 9 gets its high bit set; a carry can only spoil bytes after the first such byte.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    (others.trailing_zeros() / 8, digits)
}

/// The value of eight digits, the first in the lowest byte.
#[inline(always)]
fn value_of(digits: u64) -> u64 {
    const MASK: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let upper = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & MASK).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

const POWERS_OF_TEN: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Returns the number of at most 15 digits at `at`, and its end.
///
/// `None` if there is none, it is longer, or it is too close to the end of `bytes` to read eight bytes at once.
#[inline(always)]
pub(super) fn number_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let (count, digits) = digits_of(bytes.get(at..)?.first_chunk()?);
    if count == 0 {
        return None;
    }
    let value = value_of(digits << ((8 - count) * 8));
    if count < 8 {
        return Some((value, at + count as usize));
    }
    let (count, digits) = digits_of(bytes.get(at + 8..)?.first_chunk()?);
    match count {
        0 => Some((value, at + 8)),
        1..8 => {
            let low = value_of(digits << ((8 - count) * 8));
            Some((
                value * POWERS_OF_TEN[count as usize & 7] + low,
                at + 8 + count as usize,
            ))
        }
        _ => None,
    }
}

/// Returns the id at `at` and its end; its first digit is 0 only if it is the only one.
///
/// `007` is another text than `7`.
#[inline(always)]
pub(super) fn id_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let (value, end) = number_at(bytes, at)?;
    (bytes[at] != b'0' || end == at + 1).then_some((value, end))
}

/// Returns the decimal number at `at` that ends a line or a column, if rounding is exact.
///
/// Its digits make an integer that the type holds exactly, divided by a power of ten that it holds exactly too (Clinger, "How to
/// read floating point numbers accurately", PLDI 1990, section 3).
#[inline(always)]
pub(super) fn weight_at<const KIND: u8>(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let (whole, mut end) = number_at(bytes, at)?;
    let (mut digits, mut scale) = (whole, 1);
    if bytes.get(end) == Some(&b'.') {
        let (fraction, past) = number_at(bytes, end + 1)?;
        scale = *POWERS_OF_TEN.get(past - end - 1)?;
        digits = whole.checked_mul(scale)?.checked_add(fraction)?;
        end = past;
    }
    match KIND {
        F32 if digits < 1 << 24 => Some((f64::from(digits as f32 / scale as f32), end)),
        F64 if digits < 1 << 53 => Some((digits as f64 / scale as f64, end)),
        _ => None,
    }
}

pub(super) const NONE: u8 = 0;
pub(super) const F32: u8 = 1;
pub(super) const F64: u8 = 2;
