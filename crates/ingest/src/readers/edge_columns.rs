//! Records of fields: which columns of the input they are read from, and what a column's text or number becomes.

use std::fmt;
use std::str::FromStr;

use graphmill_graph::{EdgeField, EdgeFields, FieldType};

/// The columns of the fields of a record, in the order of its bytes; none without a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeColumns {
    /// Names, or numbers from 1.
    columns: Vec<String>,
    fields: EdgeFields,
}

impl EdgeColumns {
    /// The columns, each by name or by number from 1.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The fields of a record.
    #[must_use]
    pub fn fields(&self) -> &EdgeFields {
        &self.fields
    }
}

/// Parses `amount:f32,day=4:u16`: the name, the column and the type of each field.
///
/// The name is that of the column where it is left out.
impl FromStr for EdgeColumns {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for field in text.split(',') {
            let Some((column, kind)) = field.rsplit_once(':') else {
                return Err(format!("{field} is not COLUMN:TYPE, as in amount:f32"));
            };
            let (name, column) = column.split_once('=').unwrap_or((column, column));
            let kind = kind.trim().parse()?;
            columns.push(column.trim().to_string());
            let name = name.trim().to_string();
            fields.push(EdgeField { name, kind });
        }
        let fields = EdgeFields::new(fields)?;
        Ok(Self { columns, fields })
    }
}

/// Displays what [`from_str`](FromStr::from_str) parses.
impl fmt::Display for EdgeColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.list().iter().zip(&self.columns);
        for (i, (EdgeField { name, kind }, column)) in fields.enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{name}={column}:{kind}")?;
        }
        Ok(())
    }
}

/// A column that holds a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataColumn {
    /// From 0.
    pub(crate) column: usize,
    pub(crate) kind: FieldType,
    /// Bits of the record before the field.
    pub(crate) shift: u32,
}

impl DataColumn {
    /// The columns of `fields`, given the column of each.
    pub(crate) fn all(fields: &EdgeFields, columns: &[usize]) -> Vec<Self> {
        let mut end = 0;
        let fields = fields.list().iter().zip(columns);
        let one = |(field, column): (&EdgeField, &usize)| {
            let shift = end;
            end += 8 * field.kind.bytes() as u32;
            DataColumn {
                column: *column,
                kind: field.kind,
                shift,
            }
        };
        fields.map(one).collect()
    }

    /// Returns the field's part of a record: `bits`, little-endian, at their place.
    pub(crate) fn part(self, bits: u64) -> u128 {
        u128::from(bits) << self.shift
    }
}

/// A number that a field's type does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange;

/// Returns the bits of an integer as a field of type `kind`.
///
/// A float is the nearest one.
pub(crate) fn integer_bits(number: i128, kind: FieldType) -> Result<u64, OutOfRange> {
    match (kind, kind.integers()) {
        (FieldType::F32, _) => Ok((number as f32).to_bits().into()),
        (FieldType::F64, _) => Ok((number as f64).to_bits()),
        (_, Some((least, greatest))) if (least..=greatest).contains(&number) => {
            Ok(number as u64 & u64::MAX >> (u64::BITS - 8 * kind.bytes() as u32))
        }
        _ => Err(OutOfRange),
    }
}

/// Returns the bits of a float as a field of type `kind`, rounded; `None` for types of integers.
pub(crate) fn float_bits(number: f64, kind: FieldType) -> Option<Result<u64, OutOfRange>> {
    let (bits, is_finite) = match kind {
        FieldType::F32 => {
            let number = number as f32;
            (number.to_bits().into(), number.is_finite())
        }
        FieldType::F64 => (number.to_bits(), number.is_finite()),
        _ => return None,
    };
    Some(is_finite.then_some(bits).ok_or(OutOfRange))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_columns_are_parsed() {
        let columns: EdgeColumns = "amount:f32, day=4:u16,xy=x:y:u8".parse().unwrap();
        assert_eq!(columns.columns(), ["amount", "4", "x:y"]);
        let said = columns.to_string();
        assert_eq!(said, "amount=amount:f32,day=4:u16,xy=x:y:u8");
    }

    #[test]
    fn edge_columns_that_make_no_record_are_refused() {
        for (text, problem) in [
            ("amount", "COLUMN:TYPE"),
            ("", "COLUMN:TYPE"),
            ("amount:f16", "no type of a field"),
            ("a:f64,b:f64,c:u8", "17 bytes"),
            ("a:u8,a:u16", "two fields"),
            ("=3:u8", "no name"),
        ] {
            let error = text.parse::<EdgeColumns>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn fields_hold_the_numbers_of_their_types() {
        use FieldType::{F32, F64, I8, I64, U8, U64};
        assert_eq!(integer_bits(-1, I8), Ok(0xff));
        assert_eq!(integer_bits(-129, I8), Err(OutOfRange));
        assert_eq!(integer_bits(256, U8), Err(OutOfRange));
        assert_eq!(integer_bits(-1, U64), Err(OutOfRange));
        assert_eq!(integer_bits(u64::MAX.into(), U64), Ok(u64::MAX));
        assert_eq!(integer_bits(i64::MIN.into(), I64), Ok(1 << 63));
        assert_eq!(integer_bits(3, F32), Ok(3f32.to_bits().into()));
        assert_eq!(float_bits(1e39, F32), Some(Err(OutOfRange)));
        assert_eq!(float_bits(1e39, F64), Some(Ok(1e39f64.to_bits())));
        assert_eq!(float_bits(1.0, U8), None);
    }
}
