//! Records of fields: the names and types of what an edge carries beyond one weight.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::spec::EdgeKind;

/// Bytes of a record, at most.
pub const RECORD_BYTES_MAX: usize = 16;

/// The type of a field. Its bytes are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// An unsigned integer of 8 bits.
    U8,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// A float of 32 bits.
    F32,
    /// A float of 64 bits.
    F64,
}

impl FieldType {
    /// All types, with their names.
    const ALL: [(FieldType, &'static str); 10] = [
        (FieldType::U8, "u8"),
        (FieldType::U16, "u16"),
        (FieldType::U32, "u32"),
        (FieldType::U64, "u64"),
        (FieldType::I8, "i8"),
        (FieldType::I16, "i16"),
        (FieldType::I32, "i32"),
        (FieldType::I64, "i64"),
        (FieldType::F32, "f32"),
        (FieldType::F64, "f64"),
    ];

    /// Bytes of a field: 1, 2, 4 or 8.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            FieldType::U8 | FieldType::I8 => 1,
            FieldType::U16 | FieldType::I16 => 2,
            FieldType::U32 | FieldType::I32 | FieldType::F32 => 4,
            FieldType::U64 | FieldType::I64 | FieldType::F64 => 8,
        }
    }

    /// The least and the greatest integer; `None` for floats.
    #[must_use]
    pub fn integers(self) -> Option<(i128, i128)> {
        Some(match self {
            FieldType::U8 => (0, u8::MAX.into()),
            FieldType::U16 => (0, u16::MAX.into()),
            FieldType::U32 => (0, u32::MAX.into()),
            FieldType::U64 => (0, u64::MAX.into()),
            FieldType::I8 => (i8::MIN.into(), i8::MAX.into()),
            FieldType::I16 => (i16::MIN.into(), i16::MAX.into()),
            FieldType::I32 => (i32::MIN.into(), i32::MAX.into()),
            FieldType::I64 => (i64::MIN.into(), i64::MAX.into()),
            FieldType::F32 | FieldType::F64 => return None,
        })
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(kind, _)| kind == self);
        f.write_str(found.map_or("", |(_, name)| name))
    }
}

impl FromStr for FieldType {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(kind, _)| *kind).ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name).join(", ");
            format!("{text} is no type of a field: use one of {names}")
        })
    }
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeField {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: FieldType,
}

/// The fields of a record, back to back in this order; none if edges carry no record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EdgeFields(Vec<EdgeField>);

impl EdgeFields {
    /// Returns the record of these fields.
    ///
    /// # Errors
    /// A text that says why these are no record: a name is empty, has control characters, a comma, a colon or an equals sign, or
    /// comes twice; or they take more than 16 bytes.
    pub fn new(fields: Vec<EdgeField>) -> Result<Self, String> {
        let bad = |c: char| c.is_control() || matches!(c, ',' | ':' | '=');
        for (i, field) in fields.iter().enumerate() {
            let name = &field.name;
            if name.is_empty() || name.contains(bad) {
                return Err(format!("{name:?} is no name of a field"));
            }
            if fields[..i].iter().any(|before| before.name == *name) {
                return Err(format!("two fields have the name {name}"));
            }
        }
        let record = Self(fields);
        match record.bytes() {
            0..=RECORD_BYTES_MAX => Ok(record),
            bytes => Err(format!(
                "the fields take {bytes} bytes, and a record has at most {RECORD_BYTES_MAX}"
            )),
        }
    }

    /// The fields, in the order of their bytes.
    #[must_use]
    pub fn list(&self) -> &[EdgeField] {
        &self.0
    }

    /// Bytes of a record.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|field| field.kind.bytes()).sum()
    }

    /// What edges with these fields carry: a record; `None` without fields.
    #[must_use]
    pub fn kind(&self) -> Option<EdgeKind> {
        let bytes = u8::try_from(self.bytes()).unwrap_or(u8::MAX);
        (!self.0.is_empty()).then_some(EdgeKind::Record(bytes))
    }
}

/// Displays `amount:f32,day:u16`.
impl fmt::Display for EdgeFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, EdgeField { name, kind }) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{name}:{kind}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(list: &[(&str, FieldType)]) -> Result<EdgeFields, String> {
        let field = |(name, kind): &(&str, FieldType)| EdgeField {
            name: (*name).into(),
            kind: *kind,
        };
        EdgeFields::new(list.iter().map(field).collect())
    }

    #[test]
    fn edge_fields_are_named_and_fit_sixteen_bytes() {
        use FieldType::{F32, F64, I64, U8, U16};
        let fields = record(&[("amount", F32), ("day", U16), ("kind", U8)]).unwrap();
        assert_eq!(fields.to_string(), "amount:f32,day:u16,kind:u8");
        assert_eq!(fields.kind(), Some(EdgeKind::Record(7)));
        assert_eq!(EdgeFields::default().kind(), None);
        assert!(record(&[("a", F64), ("b", I64)]).is_ok());
        let wrong = [
            (&[("a", F64), ("b", I64), ("c", U8)][..], "take 17 bytes"),
            (&[("a", U8), ("a", U8)], "two fields"),
            (&[("", U8)], "no name"),
            (&[("a,b", U8)], "no name"),
        ];
        for (list, problem) in wrong {
            let error = record(list).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn field_types_have_names() {
        for (kind, name) in FieldType::ALL {
            assert_eq!((name.parse(), kind.to_string()), (Ok(kind), name.into()));
        }
        assert!("u24".parse::<FieldType>().unwrap_err().contains("u16"));
    }
}
