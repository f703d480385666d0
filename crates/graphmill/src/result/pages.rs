//! What pages of Parquet are made of: headers, packed bits, deltas.
//!
//! As <https://parquet.apache.org/docs/file-format/> has them: headers are Thrift's compact protocol, numbers LEB128, bits are packed
//! from the lowest on.

use parquet::basic::Encoding;

/// Differences with a common minimum, and those with a common width.
const DELTA_BLOCK: usize = 128;
const DELTA_RUN: usize = 32;

/// Appends the header of a data page of `rows` rows, with its bytes before and after compression.
pub(super) fn put_data_header(
    out: &mut Vec<u8>,
    rows: u64,
    encoding: Encoding,
    [plain, packed]: [usize; 2],
) {
    const DATA_PAGE: i64 = 0;
    let encoding = match encoding {
        Encoding::PLAIN => 0,
        Encoding::RLE_DICTIONARY => 8,
        _ => 5,
    };
    put_fields(out, &[DATA_PAGE, plain as i64, packed as i64]);
    // Field 5: rows, and the encodings of values and of two kinds of levels, which are runs.
    out.push(0x2c);
    put_fields(out, &[rows as i64, encoding, 3, 3]);
    out.extend([0, 0]);
}

/// Appends the header of a dictionary page of `names` names in ascending order.
///
/// `plain` and `packed` are its bytes before and after compression.
pub(super) fn put_dictionary_header(out: &mut Vec<u8>, names: u64, [plain, packed]: [usize; 2]) {
    const DICTIONARY_PAGE: i64 = 2;
    put_fields(out, &[DICTIONARY_PAGE, plain as i64, packed as i64]);
    // Field 7: names, their encoding, which is plain, and that they are sorted.
    out.push(0x4c);
    put_fields(out, &[names as i64, 0]);
    out.extend([0x11, 0, 0]);
}

/// Adds the next fields of a struct, integers of 32 bits.
fn put_fields(out: &mut Vec<u8>, fields: &[i64]) {
    for field in fields {
        out.push(0x15);
        put_number(out, zigzag(*field));
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Adds a number of as many bytes as it needs.
pub(super) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bits that numbers up to that one need.
fn width_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends numbers of `width` bits each, and pads the last byte with 0 bits.
fn pack(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let (mut bits, mut count) = (0_u128, 0);
    for value in values {
        bits |= u128::from(value) << count;
        count += width;
        if count >= u64::BITS {
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            bits >>= u64::BITS;
            count -= u64::BITS;
        }
    }
    out.extend_from_slice(&(bits as u64).to_le_bytes()[..count.div_ceil(8) as usize]);
}

/// Adds one run of packed numbers, as many as there are and 0 up to a multiple of eight.
fn put_run(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = u64>, width: u32) {
    let groups = values.len().div_ceil(8);
    put_number(out, (groups as u64) << 1 | 1);
    let more = groups * 8 - values.len();
    pack(out, values.chain(std::iter::repeat_n(0, more)), width);
}

/// Adds which rows have a value, behind its length.
pub(super) fn put_levels(out: &mut Vec<u8>, reached: &[bool]) {
    let at = out.len();
    out.extend([0; 4]);
    put_run(out, reached.iter().map(|reached| u64::from(*reached)), 1);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Adds places in a dictionary of `names` names.
pub(super) fn put_indices(out: &mut Vec<u8>, places: &[i64], names: u64) {
    let width = width_of(names.saturating_sub(1)).max(1);
    out.push(width as u8);
    if !places.is_empty() {
        put_run(out, places.iter().map(|place| *place as u64), width);
    }
}

/// Adds integers of `bits` bits as differences (DELTA_BINARY_PACKED).
pub(super) fn put_deltas(out: &mut Vec<u8>, values: &[i64], bits: u32) {
    // Differences of narrow integers wrap around where these do.
    let wrap = |difference: i64| match bits {
        u32::BITS => i64::from(difference as i32),
        _ => difference,
    };
    let mut before = wrap(values.first().copied().unwrap_or(0));
    for number in [DELTA_BLOCK, DELTA_BLOCK / DELTA_RUN, values.len()] {
        put_number(out, number as u64);
    }
    put_number(out, zigzag(before));
    for block in values.get(1..).unwrap_or_default().chunks(DELTA_BLOCK) {
        let mut deltas = [0; DELTA_BLOCK];
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = wrap(wrap(*value).wrapping_sub(before));
            before = wrap(*value);
        }
        let deltas = &mut deltas[..block.len()];
        let least = deltas.iter().copied().min().unwrap_or(0);
        put_number(out, zigzag(least));
        let rest = |delta: i64| delta.wrapping_sub(least) as u64;
        let mut widths = [0; DELTA_BLOCK / DELTA_RUN];
        for (width, run) in widths.iter_mut().zip(deltas.chunks(DELTA_RUN)) {
            *width = width_of(run.iter().fold(0, |all, delta| all | rest(*delta)));
        }
        out.extend(widths.map(|width| width as u8));
        for (width, run) in widths.into_iter().zip(deltas.chunks(DELTA_RUN)) {
            let more = std::iter::repeat_n(0, DELTA_RUN - run.len());
            pack(out, run.iter().map(|delta| rest(*delta)).chain(more), width);
        }
    }
}
