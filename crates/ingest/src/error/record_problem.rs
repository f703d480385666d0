//! What can be wrong with a line of text, or with a cell of a Parquet file.

use graphmill_graph::{FieldType, IdType};

/// A problem with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// The line has too few columns.
    #[error("{} where {needed} are needed (--delimiter says what separates them)", columns(*found))]
    TooFewColumns {
        /// Columns there are.
        found: usize,
        /// Columns it takes.
        needed: usize,
    },
    /// A line has more or fewer columns than the lines before.
    #[error(
        "{} where the first lines have {expected} (--delimiter says what separates them)",
        columns(*found)

    )]
    ColumnCount {
        /// Columns there are.
        found: usize,
        /// Columns of the first lines.
        expected: usize,
    },
    /// A comment among edges, or an id that starts like one.
    #[error(
        "this looks like a comment after the first edge (--comments '#' leaves out all lines that start so, --comments none takes them as edges)"
    )]
    LooksLikeComment,
    /// Nothing between two separators.
    #[error("column {column} is empty")]
    EmptyColumn {
        /// The column, from 1.
        column: usize,
    },
    /// The cell is a NULL as databases write it.
    #[error("column {column} is \\N, as databases write NULL")]
    Null {
        /// The column, from 1.
        column: usize,
    },
    /// An id is not one of the vertices.
    #[error(
        "the id in column {column} is not below {below}, as --vertices-below says of all ids (give a larger number)"
    )]
    Beyond {
        /// The column, from 1.
        column: usize,
        /// The end of the ids.
        below: u64,
    },
    /// An id is not the canonical text of an integer of 64 bits.
    #[error(
        "column {column} is no integer of 64 bits as it would be written, without a plus or leading zeros (--ids string takes any id)"
    )]
    NotInteger {
        /// The column, from 1.
        column: usize,
    },
    /// A negative id among ids that are not.
    #[error(
        "column {column} is negative, and no id of the first 64 MiB is (--ids string takes any id)"
    )]
    Negative {
        /// The column, from 1.
        column: usize,
    },
    /// An id from 2^63 on among signed ones.
    #[error(
        "column {column} is 2^63 or more, and other ids are negative: no integer type has both (--ids string takes any id)"
    )]
    Huge {
        /// The column, from 1.
        column: usize,
    },
    /// An id is not of the type that was asked for.
    #[error(
        "the id in column {column} is no {}: ask for a wider type (--ids int64), or for any id (--ids string)",
        id_type.name()
    )]
    OtherType {
        /// The column, from 1.
        column: usize,
        /// The type.
        id_type: IdType,
    },
    /// An id is no UUID.
    #[error(
        "the id in column {column} is no UUID of 36 characters, as in 00112233-4455-6677-8899-aabbccddeeff (--ids string takes any id)"
    )]
    NotUuid {
        /// The column, from 1.
        column: usize,
    },
    /// An id is too long.
    #[error(
        "the id in column {column} has more than {} bytes",
        crate::limits::ID_BYTES_MAX
    )]
    LongId {
        /// The column, from 1.
        column: usize,
    },
    /// An id holds a byte that is zero, as files have that a crash cut off.
    #[error("the id in column {column} holds a zero byte")]
    ZeroByte {
        /// The column, from 1.
        column: usize,
    },
    /// An id is not text.
    #[error("the id in column {column} is not in UTF-8 (iconv can convert the file)")]
    NotUtf8 {
        /// The column, from 1.
        column: usize,
    },
    /// A weight is not a finite number.
    #[error(
        "the weight in column {column} is no finite number, with a point before its fraction (--weights none ignores it)"
    )]
    NotWeight {
        /// The column, from 1.
        column: usize,
    },
    /// A weight is finite, but not in single precision.
    #[error(
        "the weight in column {column} is too large for the precision asked for (--weights f64 takes up to 1.7e308)"
    )]
    WeightTooLarge {
        /// The column, from 1.
        column: usize,
    },
    /// The text of a field is no number of its type.
    #[error("column {column} is no number of type {kind} (--edge-data names columns and types)")]
    NotField {
        /// The column, from 1.
        column: usize,
        /// The type of the field.
        kind: FieldType,
    },
    /// The number of a field is beyond its type.
    #[error("column {column} does not fit {kind} (--edge-data names columns and types)")]
    FieldOutOfRange {
        /// The column, from 1.
        column: usize,
        /// The type of the field.
        kind: FieldType,
    },
    /// Quotes that do not enclose a column as a whole.
    #[error(
        "column {column} has quotes that do not enclose it (--quote none takes quotes as text)"
    )]
    Quotes {
        /// The column, from 1.
        column: usize,
    },
    /// A quote in a file whose first bytes have none.
    #[error(
        "column {column} has the first quote of the file (--quote '\"' if quotes enclose columns, --quote none if they are text)"
    )]
    LateQuote {
        /// The column, from 1.
        column: usize,
    },
    /// An id that begins with a quote in a file that is no CSV.
    #[error(
        "column {column} begins with a quote (--quote '\"' if quotes enclose columns, --quote none if they are text)"
    )]
    LeadingQuote {
        /// The column, from 1.
        column: usize,
    },
    /// A line of a DIMACS file that is neither arc, problem nor comment.
    #[error("a line of a DIMACS file starts with \"a\", \"e\", \"p\" or \"c\"")]
    NotDimacs,
}

/// A problem with a cell of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellProblem {
    /// The cell is null.
    #[error("is null")]
    Null,
    /// The text is no integer.
    #[error("is no integer of 64 bits as it would be written (--ids string takes any id)")]
    NotInteger,
    /// The integer is negative, and the ids are unsigned.
    #[error("is negative, and the ids of other files go beyond 2^63 (--ids string takes any id)")]
    Negative,
    /// The integer is 2^63 or more, and the ids are signed.
    #[error("is 2^63 or more, and other ids are negative (--ids string takes any id)")]
    Huge,
    /// The id is not one of the vertices.
    #[error("is not below {below}, as --vertices-below says of all ids: give a larger number")]
    Beyond {
        /// The end of the ids.
        below: u64,
    },
    /// The integer is not of the type that was asked for.
    #[error(
        "is no {}: ask for a wider type (--ids int64), or for any id (--ids string)",
        id_type.name()
    )]
    OtherType {
        /// The type.
        id_type: IdType,
    },
    /// The text is no UUID.
    #[error(
        "is no UUID of 36 characters, as in 00112233-4455-6677-8899-aabbccddeeff (--ids string takes any id)"
    )]
    NotUuid,
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text is no id.
    #[error(
        "holds text that is not UTF-8, or too long: an id has at most {} bytes",
        crate::limits::ID_BYTES_MAX
    )]
    NoId,
    /// The value does not fit the type of its field.
    #[error("does not fit {kind} (--edge-data names columns and types)")]
    NotField {
        /// The type of the field.
        kind: FieldType,
    },
    /// The value is no finite number of the precision.
    #[error("is no finite number of the precision asked for")]
    NotWeight,
}

fn columns(count: usize) -> String {
    format!("{count} column{}", if count == 1 { "" } else { "s" })
}
