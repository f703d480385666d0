//! The types of ids: what a column of them says, where a graph comes from and where results go.

use serde::{Deserialize, Serialize};

/// The type of the ids of vertices, as columns have it.
///
/// It says nothing about how a graph stores them ([`IdKind`](crate::IdKind)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdType {
    /// Signed integers of 32 bits.
    Int32,
    /// Signed integers of 64 bits: what text without a type has.
    #[default]
    Int64,
    /// Unsigned integers of 32 bits.
    UInt32,
    /// Unsigned integers of 64 bits.
    UInt64,
    /// Text in UTF-8.
    Text,
    /// The 16 bytes of a UUID (RFC 9562).
    Uuid,
}

impl IdType {
    /// All of them.
    pub const ALL: [IdType; 6] = [
        IdType::Int32,
        IdType::Int64,
        IdType::UInt32,
        IdType::UInt64,
        IdType::Text,
        IdType::Uuid,
    ];

    /// Its name on the command line and in descriptions of graphs.
    pub fn name(self) -> &'static str {
        match self {
            IdType::Int32 => "int32",
            IdType::Int64 => "int64",
            IdType::UInt32 => "uint32",
            IdType::UInt64 => "uint64",
            IdType::Text => "text",
            IdType::Uuid => "uuid",
        }
    }

    /// The greatest integer of the type; `None` of text and UUIDs.
    pub fn integer_max(self) -> Option<u64> {
        match self {
            IdType::Int32 => Some(i32::MAX as u64),
            IdType::Int64 => Some(i64::MAX as u64),
            IdType::UInt32 => Some(u32::MAX.into()),
            IdType::UInt64 => Some(u64::MAX),
            IdType::Text | IdType::Uuid => None,
        }
    }

    /// True if some values of the type are negative.
    pub fn is_signed(self) -> bool {
        matches!(self, IdType::Int32 | IdType::Int64)
    }

    /// The type of the ids of two columns together.
    ///
    /// It holds all values of both, except that integers of 64 bits with and without a sign become signed ones.
    #[must_use]
    pub fn join(self, other: IdType) -> IdType {
        match (self.integer_max(), other.integer_max()) {
            _ if self == other => self,
            (None, _) | (_, None) => IdType::Text,
            (Some(_), Some(_)) if self.is_signed() || other.is_signed() => IdType::Int64,
            (Some(_), Some(_)) => IdType::UInt64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_types_hold_the_values_of_both() {
        for one in IdType::ALL {
            assert_eq!(one.join(one), one);
            for other in IdType::ALL {
                let both = one.join(other);
                assert_eq!(both, other.join(one));
                let is_wide = one.integer_max().max(other.integer_max()) == Some(u64::MAX);
                assert!(both == IdType::Text || is_wide || both.integer_max() >= one.integer_max());
                assert!(both.integer_max().is_none() || both.is_signed() >= one.is_signed());
            }
        }
        assert_eq!(IdType::Uuid.join(IdType::Int32), IdType::Text);
        assert_eq!(IdType::UInt32.join(IdType::Int32), IdType::Int64);
        assert_eq!(IdType::UInt32.join(IdType::UInt64), IdType::UInt64);
    }
}
