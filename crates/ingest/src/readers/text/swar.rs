//! Numbers, eight bytes of text at a time.
//!
//! This file handles only common and exact cases; for all others it returns `None`, and the rules read the line again.

use graphmill_graph::FieldType;

use super::super::edge_columns::integer_bits;

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

/// The powers of ten up to the longest number of [`number_at`].
const POWERS_OF_TEN: [u64; 16] = {
    let mut powers = [1; 16];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

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

/// Returns the weight at `at` and its end, rounded as `str::parse` rounds it.
///
/// `None` if there is none, it is too large, or it ends with `bytes`.
#[inline(always)]
pub(super) fn weight_at<const KIND: u8>(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let found = exact_at::<KIND>(bytes, at);
    // An exponent, or one more digit, continues the number.
    match found {
        Some((_, end)) if !is_of_number(*bytes.get(end)?) => found,
        _ => parsed_at::<KIND>(bytes, at),
    }
}

/// Returns the bits of the field of type `kind` at `at`, and its end.
///
/// `None` if there is none, it does not fit the type, or it ends with `bytes`.
#[inline(always)]
pub(super) fn field_at(bytes: &[u8], at: usize, kind: FieldType) -> Option<(u64, usize)> {
    match kind {
        FieldType::F32 => {
            let (number, end) = weight_at::<F32>(bytes, at)?;
            Some(((number as f32).to_bits().into(), end))
        }
        FieldType::F64 => {
            let (number, end) = weight_at::<F64>(bytes, at)?;
            Some((number.to_bits(), end))
        }
        _ => {
            let negative = bytes.get(at) == Some(&b'-');
            let (number, end) = number_at(bytes, at + usize::from(negative))?;
            let number = i128::from(number);
            let number = if negative { -number } else { number };
            Some((integer_bits(number, kind).ok()?, end))
        }
    }
}

/// Returns the decimal number that begins at `at`, without an exponent, if two exact operands give it.
///
/// Its digits make an integer that an f64 holds exactly, divided by a power of ten that it holds exactly too (Clinger, "How to
/// read floating point numbers accurately", PLDI 1990, section 3). So the quotient is rounded correctly to an f64. Rounding
/// that to an f32 is correct too, unless it lies halfway between two: anywhere else it is on the same side as the exact value.
#[inline(always)]
fn exact_at<const KIND: u8>(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = bytes.get(at) == Some(&b'-');
    let (whole, mut end) = number_at(bytes, at + usize::from(negative))?;
    let mut weight = whole as f64;
    if bytes.get(end) == Some(&b'.') {
        let (fraction, past) = number_at(bytes, end + 1)?;
        let scale = *POWERS_OF_TEN.get(past - end - 1)?;
        let digits = whole.checked_mul(scale)?.checked_add(fraction)?;
        if digits >= 1 << f64::MANTISSA_DIGITS {
            return None;
        }
        weight = digits as f64 / scale as f64;
        end = past;
    }
    if KIND == F32 {
        // The bits of an f64 that an f32 lacks; 0 and normal numbers of both types alone come here.
        const LOST: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;
        if weight.to_bits() & ((1 << LOST) - 1) == 1 << (LOST - 1) {
            return None;
        }
        weight = f64::from(weight as f32);
    }
    Some((if negative { -weight } else { weight }, end))
}

/// Returns the number at `at` as the library reads it.
fn parsed_at<const KIND: u8>(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let rest = bytes.get(at..)?;
    let length = rest.iter().position(|&byte| !is_of_number(byte))?;
    let text = std::str::from_utf8(&rest[..length]).ok()?;
    let weight = match KIND {
        F32 => f64::from(text.parse::<f32>().ok()?),
        _ => text.parse::<f64>().ok()?,
    };
    weight.is_finite().then_some((weight, at + length))
}

/// True for the bytes of finite numbers.
#[inline(always)]
fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E')
}

pub(super) const NONE: u8 = 0;
pub(super) const F32: u8 = 1;
pub(super) const F64: u8 = 2;
pub(super) const RECORD: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::SplitMix64;

    /// Digits, with zeros more often than others.
    fn digits(random: &mut SplitMix64, most: u64, text: &mut String) {
        for _ in 0..random.next_u64() % (most + 1) {
            let digit = random.next_u64() % 14 % 11 % 10;
            text.push(char::from(b'0' + digit as u8));
        }
    }

    fn decimal(random: &mut SplitMix64) -> String {
        let mut text = String::new();
        let most = [2, 4, 8, 9, 16, 17, 24][(random.next_u64() % 7) as usize];
        text.push_str(["", "", "", "-", "+"][(random.next_u64() % 5) as usize]);
        digits(random, most, &mut text);
        if !random.next_u64().is_multiple_of(4) {
            text.push('.');
            digits(random, most, &mut text);
        }
        if random.next_u64().is_multiple_of(4) {
            text.push(if random.next_u64().is_multiple_of(2) {
                'e'
            } else {
                'E'
            });
            text.push_str(["", "-", "+"][(random.next_u64() % 3) as usize]);
            digits(random, 2, &mut text);
        }
        text
    }

    /// Texts of f32 and f64, and of the halves between two neighbours.
    fn printed(random: &mut SplitMix64) -> String {
        let bits = random.next_u64();
        let single = f32::from_bits(bits as u32);
        let half = (f64::from(single) + f64::from(f32::from_bits(bits as u32 + 1))) / 2.0;
        let small = (bits >> 40) as f64 / f64::from(1 << 24);
        match random.next_u64() % 6 {
            0 => format!("{single}"),
            1 => format!("{}", f64::from_bits(bits)),
            2 => format!("{half}"),
            3 => format!("{half:e}"),
            4 => format!("{small:.*}", (bits % 20) as usize),
            _ => format!("{}", bits % (1 << 25)),
        }
    }

    fn check(text: &str, after: &str) {
        let line = format!("{text}{after}");
        let single = text.parse::<f32>().map(f64::from);
        let found = [
            (weight_at::<F32>(line.as_bytes(), 0), single),
            (weight_at::<F64>(line.as_bytes(), 0), text.parse()),
        ];
        for (found, expected) in found {
            // Numbers beyond the largest are not taken.
            let expected = expected.ok().filter(|weight| weight.is_finite());
            let expected = expected.map(|weight| (weight.to_bits(), text.len()));
            let found = found.map(|(weight, end)| (weight.to_bits(), end));
            assert_eq!(found, expected, "{line:?}");
        }
    }

    #[test]
    fn weight_bits_are_those_of_the_library() {
        let mut random = SplitMix64::new(30);
        for _ in 0..1_000_000 {
            for text in [decimal(&mut random), printed(&mut random)] {
                check(
                    &text,
                    ["\n", " 1\n", ",\n                        "][text.len() % 3],
                );
            }
        }
    }

    #[test]
    fn weight_of_odd_texts() {
        for text in [
            "+1",
            ".5",
            "5.",
            "-.5",
            "-0",
            "-0.0",
            "0e0",
            "00017",
            "0.1",
            "1e-46",
            "1e38",
            "3.4028236e38",
            "1e39",
            "1e309",
            "16777216",
            "16777217",
            "16777219",
            "16777217.0000001",
            "9007199254740993",
            "4.9e-324",
            "",
            "-",
            "+",
            ".",
            "e1",
            "1e",
            "1e+",
            "--1",
            "+-1",
            "1.2.3",
            "1-2",
            "123456789012345",
            "1234567890123456",
            "0.00000000000000000001",
        ] {
            check(text, "\n");
            check(text, " 1234567890123456\n");
        }
        for text in ["inf", "-inf", "infinity", "nan", "NaN", "0x10", "1_0", "1f"] {
            let line = format!("{text}\n");
            let ends_early =
                weight_at::<F64>(line.as_bytes(), 0).is_none_or(|(_, end)| end < text.len());
            assert!(ends_early, "{text}");
        }
    }
}
