//! Fields to ids and weights: the one place that decides what an integer is.

use graphmill_graph::{EdgeKind, FieldType};

use super::super::edge_columns::{DataColumn, OutOfRange, float_bits, integer_bits};
use super::record::trim;
use crate::error::LineProblem;
use crate::limits::ID_BYTES_MAX;

/// Returns the integer of 64 bits, signed or not, that `bytes` are the canonical text of.
///
/// The canonical text is what the number would be written as.
pub(crate) fn integer(bytes: &[u8]) -> Option<i128> {
    match bytes {
        [b'-', b'0', ..] => None,
        [b'-', digits @ ..] => Some(0i64.checked_sub_unsigned(digits_of(digits)?)?.into()),
        digits => digits_of(digits).map(i128::from),
    }
}

fn digits_of(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 1 && bytes[0] == b'0' {
        return None;
    }
    bytes.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// The kind of a field's content, to tell a header from the rows below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Empty,
    Integer,
    Number,
    Text,
}

impl FieldKind {
    pub(crate) fn classify(bytes: &[u8]) -> Self {
        let bytes = trim(bytes);
        if bytes.is_empty() {
            return Self::Empty;
        }
        if integer(bytes).is_some() {
            return Self::Integer;
        }
        let is_number = bytes.iter().any(u8::is_ascii_digit)
            && std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<f64>().is_ok());
        if is_number { Self::Number } else { Self::Text }
    }

    /// The kind of a cell of a row; a cell that the row lacks is empty.
    pub(crate) fn at(row: &[Vec<u8>], column: usize) -> Self {
        row.get(column)
            .map_or(Self::Empty, |cell| Self::classify(cell))
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

/// True if a cell stands for a missing or infinite number: above numbers it names no column.
pub(crate) fn is_missing(cell: &[u8]) -> bool {
    const WORDS: [&str; 11] = [
        "na", "n/a", "nan", "null", "none", "nil", "\\n", "inf", "infinity", "-", "?",
    ];
    let cell = String::from_utf8_lossy(trim(cell)).to_ascii_lowercase();
    let cell = cell.strip_prefix('+').unwrap_or(&cell);
    let unsigned = cell.strip_prefix('-').unwrap_or(cell);
    WORDS.contains(&cell) || WORDS.contains(&unsigned) || cell == "."
}

/// A text id, when it may be one.
pub(crate) fn text_id(id: &[u8], column: usize) -> Result<&[u8], LineProblem> {
    if id.len() > ID_BYTES_MAX {
        return Err(LineProblem::LongId { column });
    }
    if std::str::from_utf8(id).is_err() {
        return Err(LineProblem::NotUtf8 { column });
    }
    Ok(id)
}

/// The weight that `bytes` say.
pub(super) fn weight(bytes: &[u8], kind: EdgeKind, column: usize) -> Result<f64, LineProblem> {
    let bytes = trim(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| LineProblem::NotWeight { column })?;
    // Spelled-out infinities are refused; numbers that are too large are another error.
    let is_number = bytes.iter().any(u8::is_ascii_digit);
    let weight = match kind {
        EdgeKind::None | EdgeKind::Record(_) => return Ok(0.0),
        EdgeKind::F32 => text.parse::<f32>().map(f64::from),
        EdgeKind::F64 => text.parse::<f64>(),
    };
    match weight {
        Ok(weight) if weight.is_finite() => Ok(weight),
        Ok(_) if is_number => Err(LineProblem::WeightTooLarge { column }),
        _ => Err(LineProblem::NotWeight { column }),
    }
}

/// The part of a record that `bytes` say, the text of one field.
pub(super) fn data(bytes: &[u8], field: DataColumn) -> Result<u128, LineProblem> {
    let (column, kind) = (field.column + 1, field.kind);
    let bytes = trim(bytes);
    if bytes.is_empty() {
        return Err(LineProblem::EmptyColumn { column });
    }
    let no_number = LineProblem::NotField { column, kind };
    let text = std::str::from_utf8(bytes).map_err(|_| no_number)?;
    let digits = bytes
        .strip_prefix(b"-")
        .or(bytes.strip_prefix(b"+"))
        .unwrap_or(bytes);
    let bits = if kind.integers().is_some() {
        if !digits.iter().all(u8::is_ascii_digit) || digits.is_empty() {
            return Err(no_number);
        }
        // A number that 128 bits do not hold is out of any range.
        text.parse()
            .map_or(Err(OutOfRange), |number| integer_bits(number, kind))
    } else {
        // Spelled-out infinities are refused; numbers that are too large are another error.
        if !digits.iter().any(u8::is_ascii_digit) {
            return Err(no_number);
        }
        let number = match kind {
            // Rounding twice can differ from rounding once.
            FieldType::F32 => text.parse::<f32>().map(f64::from),
            _ => text.parse::<f64>(),
        };
        let number = number.map_err(|_| no_number)?;
        float_bits(number, kind).unwrap_or(Err(OutOfRange))
    };
    let bits = bits.map_err(|OutOfRange| LineProblem::FieldOutOfRange { column, kind })?;
    Ok(field.part(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_ids_are_canonical() {
        let is = |text: &str| integer(text.as_bytes());
        assert_eq!(is("0"), Some(0));
        assert_eq!(is("18446744073709551615"), Some(u64::MAX.into()));
        assert_eq!(is("-9223372036854775808"), Some(i64::MIN.into()));
        for text in [
            "",
            "-",
            "007",
            "00",
            "-0",
            "-07",
            "+7",
            "1.0",
            "1e3",
            "7 ",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            assert_eq!(is(text), None, "{text}");
        }
    }
}
