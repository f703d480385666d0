//! Radix sort of arcs in memory: 64-bit keys, alone or with a payload.
//!
//! Least significant digit first while everything fits a core's cache; larger input is first split by its most
//! significant bits, so that each part does. The order of records with equal keys is not defined: the duplicate policy
//! orders them where it matters.

use graphmill_raw::Element;

/// A record to sort: a key, optionally followed by data and a sequence number.
pub(crate) trait SortRecord: Element + Default {
    /// Orders the records.
    fn key(&self) -> u64;
}

impl SortRecord for u64 {
    #[inline(always)]
    fn key(&self) -> u64 {
        *self
    }
}

impl SortRecord for [u64; 2] {
    #[inline(always)]
    fn key(&self) -> u64 {
        self[0]
    }
}

impl SortRecord for [u64; 3] {
    #[inline(always)]
    fn key(&self) -> u64 {
        self[0]
    }
}

impl SortRecord for [u64; 4] {
    #[inline(always)]
    fn key(&self) -> u64 {
        self[0]
    }
}

/// Bits of a digit, at most: its counters fit a core's first-level cache. Few records take fewer bits.
const DIGIT_BITS: u32 = 11;
const DIGIT_BITS_FEW: u32 = 8;
const FEW: usize = 4096;
/// Counters of one digit.
const RADIX: usize = 1 << DIGIT_BITS;
/// Digits of a key at most.
const DIGITS_MAX: usize = u64::BITS.div_ceil(DIGIT_BITS_FEW) as usize;
/// Below this many records a comparison sort is faster than clearing the counters.
const SMALL: usize = 256;
/// Bytes of records above which they are split first; with the scratch they fill a second-level cache.
const CACHE_BYTES: usize = 512 << 10;

/// Sorts `records` by key.
///
/// `scratch` has at least as many records; its content afterwards is undefined.
pub(crate) fn sort<R: SortRecord>(records: &mut [R], scratch: &mut [R]) {
    let scratch = &mut scratch[..records.len()];
    if records.len() <= SMALL {
        records.sort_unstable_by_key(R::key);
        return;
    }
    let first = records[0].key();
    let varying = records
        .iter()
        .fold(0, |bits, record| bits | (record.key() ^ first));
    if varying == 0 {
        return;
    }
    let (low, high) = (
        varying.trailing_zeros(),
        u64::BITS - varying.leading_zeros(),
    );
    if size_of_val(records) <= CACHE_BYTES
        || (high - low <= DIGIT_BITS && u32::try_from(records.len()).is_ok())
    {
        least_first(records, scratch, low, high);
        return;
    }
    // Split by the most significant digit, then sort each part back to where it came from.
    let shift = high.saturating_sub(8);
    let mut ends = [0usize; 257];
    for record in records.iter() {
        ends[((record.key() >> shift) & 0xff) as usize + 1] += 1;
    }
    for digit in 1..=256 {
        ends[digit] += ends[digit - 1];
    }
    let mut at = ends;
    for &record in records.iter() {
        let slot = &mut at[((record.key() >> shift) & 0xff) as usize];
        scratch[*slot] = record;
        *slot += 1;
    }
    records.copy_from_slice(scratch);
    for part in ends.windows(2) {
        sort(
            &mut records[part[0]..part[1]],
            &mut scratch[part[0]..part[1]],
        );
    }
}

/// Least significant digit first, over the bits `low..high`.
fn least_first<R: SortRecord>(records: &mut [R], scratch: &mut [R], low: u32, high: u32) {
    let width_max = if records.len() < FEW {
        DIGIT_BITS_FEW
    } else {
        DIGIT_BITS
    };
    let digits = (high - low).div_ceil(width_max);
    let width = (high - low).div_ceil(digits);
    let mask = (1u64 << width) - 1;
    let digits = digits as usize;
    let mut counts = [[0u32; RADIX]; DIGITS_MAX];
    let used = 1 << width;
    for record in records.iter() {
        let mut key = record.key() >> low;
        for counts in &mut counts[..digits] {
            counts[(key & mask) as usize & (RADIX - 1)] += 1;
            key >>= width;
        }
    }
    let total = records.len() as u32;
    let (mut from, mut to) = (&mut *records, &mut *scratch);
    let mut moved = false;
    for (digit, counts) in counts[..digits].iter_mut().enumerate() {
        let shift = low + digit as u32 * width;
        let first = (from[0].key() >> shift & mask) as usize & (RADIX - 1);
        if counts[first] == total {
            continue;
        }
        let mut sum = 0;
        for count in &mut counts[..used] {
            sum += std::mem::replace(count, sum);
        }
        for &record in from.iter() {
            let slot = &mut counts[(record.key() >> shift & mask) as usize & (RADIX - 1)];
            to[*slot as usize] = record;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
        moved = !moved;
    }
    if moved {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::SplitMix64;

    fn check(keys: &[u64]) {
        let mut expected = keys.to_vec();
        expected.sort_unstable();
        let mut records = keys.to_vec();
        let mut scratch = vec![0; keys.len() + 3];
        sort(&mut records, &mut scratch);
        assert_eq!(records, expected);

        let mut records: Vec<[u64; 3]> = keys.iter().map(|&key| [key, !key, key ^ 5]).collect();
        let mut scratch = vec![[0; 3]; keys.len()];
        sort(&mut records, &mut scratch);
        for (record, key) in records.iter().zip(expected) {
            assert_eq!(*record, [key, !key, key ^ 5]);
        }
    }

    #[test]
    fn radix_sort_of_any_count_and_width() {
        let mut random = SplitMix64::new(1);
        for count in [0usize, 1, 2, 255, 256, 257, 4095, 4096, 70_000, 300_000] {
            for bits in [1u32, 8, 9, 10, 18, 27, 43, 63, 64] {
                let keys: Vec<u64> = (0..count)
                    .map(|_| random.next_u64() >> (64 - bits))
                    .collect();
                check(&keys);
            }
        }
    }

    #[test]
    fn radix_sort_of_nearly_equal_keys() {
        let mut random = SplitMix64::new(2);
        check(&[7; 5000]);
        let keys: Vec<u64> = (0..200_000)
            .map(|_| 0xabcd_0000_0000_1234 | (random.next_u64() & 0xf0_0000_0000))
            .collect();
        check(&keys);
        let mut skewed = vec![42u64; 250_000];
        skewed.extend((0..1000).map(|_| random.next_u64()));
        check(&skewed);
    }
}
