//! Records of fields as values of edges: [`edge_record!`](crate::edge_record) makes a struct one.

use graphmill_graph::FieldType;

/// A type of a field.
pub trait FieldValue: Copy {
    /// Its name in a stored graph.
    const TYPE: FieldType;
    /// The number zero.
    const ZERO: Self;
    /// The value that `bytes` begin with, little-endian; zero if they are too few.
    fn decode(bytes: &[u8]) -> Self;
}

macro_rules! field_values {
    ($($t:ident $kind:ident),*) => {$(
        impl FieldValue for $t {
            const TYPE: FieldType = FieldType::$kind;
            const ZERO: $t = 0 as $t;
            #[inline(always)]
            fn decode(bytes: &[u8]) -> $t {
                bytes.first_chunk().map_or(0 as $t, |bytes| $t::from_le_bytes(*bytes))
            }
        }
    )*};
}
field_values!(
    u8 U8, u16 U16, u32 U32, u64 U64, i8 I8, i16 I16, i32 I32, i64 I64, f32 F32, f64 F64
);

/// Declares a struct that is the record of an edge, field by field in the order of its bytes.
///
/// The fields are of types `u8` to `u64`, `i8` to `i64`, `f32` and `f64`, 1 to 16 bytes together. A graph must have been imported
/// with fields of the same names, types and order (`--edge-data amount:f32,day:u16`). A field whose stored name is no name in
/// Rust says it: `kind: u8 = "edge kind"`.
///
/// ```
/// graphmill_engine::edge_record! {
///     /// A payment.
///     pub struct Payment {
///         /// In euros.
///         pub amount: f32,
///         pub day: u16,
///         pub kind: u8 = "edge kind",
///     }
/// }
/// ```
#[macro_export]
macro_rules! edge_record {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $record:ident {
            $(
                $(#[$field_attribute:meta])*
                $field_visibility:vis $field:ident : $type:ident $(= $name:literal)?
            ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $visibility struct $record {
            $($(#[$field_attribute])* $field_visibility $field: $type,)+
        }

        impl $crate::EdgeValue for $record {
            const WEIGHTED: bool = true;
            const ONE: Self = Self { $($field: <$type as $crate::FieldValue>::ZERO),+ };
            const FIELDS: &'static [(&'static str, $crate::FieldType)] = &[
                $(($crate::edge_record!(@name $field $($name)?), <$type as $crate::FieldValue>::TYPE)),+
            ];
            #[inline(always)]
            fn of_f32(_: f32) -> Self {
                Self::ONE
            }
            #[inline(always)]
            fn of_f64(_: f64) -> Self {
                Self::ONE
            }
            #[inline(always)]
            fn of_record(record: &[u8]) -> Self {
                const BYTES: usize = 0 $(+ <$type as $crate::FieldValue>::TYPE.bytes())+;
                const { assert!(BYTES <= 16, "a record has at most 16 bytes") };
                let Some(record) = record.first_chunk::<BYTES>() else {
                    return Self::ONE;
                };
                let at = 0;
                $(
                    let $field = <$type as $crate::FieldValue>::decode(&record[at..]);
                    let at = at + <$type as $crate::FieldValue>::TYPE.bytes();
                )+
                let _ = at;
                Self { $($field),+ }
            }
        }
    };
    (@name $field:ident) => {
        stringify!($field)
    };
    (@name $field:ident $name:literal) => {
        $name
    };
}

#[cfg(test)]
mod tests {
    use graphmill_graph::FieldType;

    use crate::EdgeValue;

    crate::edge_record! {
        pub(crate) struct Mixed {
            a: u8,
            b: f32,
            /// With another name.
            c: i16 = "the c",
            d: u64,
        }
    }

    #[test]
    fn record_is_decoded_field_by_field() {
        let mut bytes = vec![7];
        bytes.extend(1.5f32.to_le_bytes());
        bytes.extend((-2i16).to_le_bytes());
        bytes.extend(u64::MAX.to_le_bytes());
        let (a, b, c, d) = (7, 1.5, -2, u64::MAX);
        assert_eq!(Mixed::of_record(&bytes), Mixed { a, b, c, d });
        assert_eq!(Mixed::of_record(&bytes[..14]), Mixed::ONE);
        let (u8, f32, i16, u64) = (
            FieldType::U8,
            FieldType::F32,
            FieldType::I16,
            FieldType::U64,
        );
        let fields = [("a", u8), ("b", f32), ("the c", i16), ("d", u64)];
        assert_eq!(Mixed::FIELDS, fields);
    }
}
