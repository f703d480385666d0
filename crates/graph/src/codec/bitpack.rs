//! Fields of fixed width, packed one after the other: field i lies at bits `i*width ..`, bit 0 lowest of byte 0.

#![expect(
    unsafe_code,
    reason = "the vector decoder: loads and shuffles of the processor at hand"
)]

/// Bytes that `count` fields take.
pub(crate) fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Bits that a number takes.
pub(crate) fn width_of(number: u64) -> u32 {
    64 - number.leading_zeros()
}

/// Appends fields of `width` bits, at most 32 each; no value takes more.
#[inline]
pub(crate) fn pack(values: impl Iterator<Item = u32>, width: u32, out: &mut Vec<u8>) {
    pack_mixed(values.map(|value| (value.into(), width)), out);
}

/// Appends values of at most 56 bits, each with its width; zero bits fill the last byte.
#[inline]
pub(crate) fn pack_mixed(values: impl Iterator<Item = (u64, u32)>, out: &mut Vec<u8>) {
    let mut held = 0u64;
    let mut bits = 0;
    for (value, width) in values {
        held |= value << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&held.to_le_bytes());
            bits -= 64;
            held = value >> (width - bits);
        }
    }
    out.extend_from_slice(&held.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Field `i`; bytes past the end of `bytes` count as zero.
#[inline(always)]
pub(crate) fn field(bytes: &[u8], i: usize, width: u32) -> u32 {
    let bit = i * width as usize;
    (word_at(bytes, bit / 8) >> (bit % 8)) as u32 & mask(width)
}

/// Returns the eight bytes from byte `at` on; those beyond the end are 0.
#[inline(always)]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().unwrap_or([0; 8])),
        None => {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(bytes.get(at..).unwrap_or(&[])) {
                *to = *from;
            }
            u64::from_le_bytes(word)
        }
    }
}

#[inline(always)]
fn mask(width: u32) -> u32 {
    ((1u64 << width) - 1) as u32
}

/// The first `out.len()` fields. With AVX2 eight at a time, as long as whole vectors of `bytes` remain.
#[inline(always)]
pub(crate) fn unpack(bytes: &[u8], width: u32, out: &mut [u32]) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if width <= VECTOR_WIDTH_MAX && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        done = unsafe { unpack_avx2(bytes, width, out) };
    }
    for (i, value) in out.iter_mut().enumerate().skip(done) {
        *value = field(bytes, i, width);
    }
}

/// A field of at most this many bits lies within four bytes, wherever it begins.
#[cfg(target_arch = "x86_64")]
const VECTOR_WIDTH_MAX: u32 = 25;

/// Decodes fields eight by eight and says how many; the rest is the caller's.
///
/// Eight fields begin at a whole byte. Each half of a vector loads the sixteen bytes from where its four fields
/// begin, moves each field's four bytes to its lane, and shifts them down.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn unpack_avx2(bytes: &[u8], width: u32, out: &mut [u32]) -> usize {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_castsi128_si256,
        _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_shuffle_epi8,
        _mm256_srlv_epi32, _mm256_storeu_si256,
    };
    let width = width as usize;
    let upper = 4 * width / 8;
    let mut places = [0u8; 32];
    let mut shifts = [0u32; 8];
    for lane in 0..8 {
        let bit = lane * width;
        let from = bit / 8 - if lane < 4 { 0 } else { upper };
        for byte in 0..4 {
            places[4 * lane + byte] = (from + byte) as u8;
        }
        shifts[lane] = (bit % 8) as u32;
    }
    // The last vector whose upper load still ends within `bytes`.
    let vectors = (out.len() / 8).min(match bytes.len().checked_sub(upper + 16) {
        Some(room) if width > 0 => room / width + 1,
        Some(_) => usize::MAX,
        None => 0,
    });
    // SAFETY: `places` and `shifts` are 32 bytes each; loads need no alignment.
    let (places, shifts) = unsafe {
        (
            _mm256_loadu_si256(places.as_ptr().cast::<__m256i>()),
            _mm256_loadu_si256(shifts.as_ptr().cast::<__m256i>()),
        )
    };
    let mask = _mm256_set1_epi32(mask(width as u32) as i32);
    for vector in 0..vectors {
        // SAFETY: vector < vectors, so `vector * width + upper + 16 <= bytes.len()` and `8 * vector + 8 <= out.len()`.
        unsafe {
            let from = bytes.as_ptr().add(vector * width);
            let low = _mm_loadu_si128(from.cast::<__m128i>());
            let high = _mm_loadu_si128(from.add(upper).cast::<__m128i>());
            let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
            let lanes = _mm256_srlv_epi32(_mm256_shuffle_epi8(both, places), shifts);
            let fields = _mm256_and_si256(lanes, mask);
            _mm256_storeu_si256(out.as_mut_ptr().add(8 * vector).cast::<__m256i>(), fields);
        }
    }
    8 * vectors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitpack_round_trips_every_width_and_count() {
        for width in 0..=32 {
            for count in [0usize, 1, 7, 8, 9, 63, 64, 65, 1000] {
                let mut x = 7u64;
                let values: Vec<u32> = (0..count)
                    .map(|_| {
                        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (x >> 30) as u32 & mask(width)
                    })
                    .collect();
                let mut bytes = Vec::new();
                pack(values.iter().copied(), width, &mut bytes);
                assert_eq!(bytes.len(), packed_bytes(count, width));
                for padding in [0, 8, 40] {
                    let mut padded = bytes.clone();
                    padded.resize(bytes.len() + padding, 0xff);
                    let mut out = vec![0; count];
                    unpack(&padded, width, &mut out);
                    assert_eq!(out, values, "width {width}, count {count}");
                }
                for (i, value) in values.iter().enumerate() {
                    assert_eq!(field(&bytes, i, width), *value);
                }
            }
        }
    }
}
