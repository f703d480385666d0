//! Types: the options for text files, and the dialect that the first bytes of a file decide.

use std::path::Path;

use super::super::edge_columns::{DataColumn, EdgeColumns};
use super::comments::past_mark;
use super::record::{Delimiter, LexState, RecordFormat};
use crate::source::PieceReport;

/// The syntax of lines, by the file's name or by option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Columns by any separator; blanks around them do not count.
    Text,
    /// Columns as in RFC 4180, by commas unless the file shows something else.
    Csv,
    /// Columns separated by tabs.
    Tsv,
    /// `a u v w` and `e u v`; lines that start with `c` or `p` are comments.
    Dimacs,
}

/// The kind of a line: an edge or a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// Source, destination and, for graphs with weights, a weight.
    Edge,
    /// One vertex, delivered as the pair of itself and itself.
    Vertex,
}

/// Whether the first line of a file is a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Header {
    /// By what it holds.
    #[default]
    Auto,
    /// The first line is a header.
    Yes,
    /// The first line is no header.
    No,
}

/// The meaning of a quote in a text file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    /// In CSV and TSV it encloses columns.
    #[default]
    Auto,
    /// A quote encloses columns.
    Encloses,
    /// A quote is text.
    None,
}

/// The lines that are comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Comments {
    /// Lines before the first edge that start with `#`, `%` or `//`.
    #[default]
    Auto,
    /// All that start with this.
    Prefix(String),
    /// None.
    None,
}

/// Options for reading lines of text; the default detects all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The column of the sources, by name or by number from 1.
    pub source_column: Option<String>,
    /// The column of the destinations.
    pub target_column: Option<String>,
    /// The column of the weights.
    pub weight_column: Option<String>,
    /// The columns of a record of fields that edges carry in place of a weight.
    pub edge_data: EdgeColumns,
    /// Whether the first line is a header.
    pub header: Header,
    /// The separator of columns.
    pub delimiter: Option<Delimiter>,
    /// The meaning of a quote.
    pub quote: Quote,
    /// The lines that are comments.
    pub comments: Comments,
}

/// The rules for reading the records of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) syntax: Syntax,
    pub(crate) cut: RecordFormat,
    pub(crate) comments: Comments,
    /// The columns of source, destination and weight, from 0.
    pub(crate) wanted: [usize; 3],
    /// The columns of the fields of a record.
    pub(crate) data: Vec<DataColumn>,
    /// Columns of every record, where the sample has one number of them.
    pub(crate) columns: Option<usize>,
    /// True if there are lines below the first, and all their ids are integers.
    pub(crate) integers_below: bool,
    /// True if the columns have names, in this file or in one before it.
    pub(super) named: bool,
    /// The first line, where it names the columns.
    pub(crate) header: Option<Vec<u8>>,
    /// The names of the requested columns: names of a header, else numbers from 1.
    pub(crate) names: [String; 3],
    /// A decision in doubt, with the option that changes it.
    pub(crate) doubt: Option<String>,
}

impl Dialect {
    /// Returns the state at the start of a record: in a comment or not.
    pub(crate) fn state(&self, bytes: &[u8]) -> LexState {
        match &self.comments {
            Comments::Prefix(prefix) if past_mark(bytes).starts_with(prefix.as_bytes()) => {
                LexState::Comment
            }
            _ => LexState::Start,
        }
    }
}

/// The lines of a file before its first edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preamble {
    /// The offset of the first edge.
    pub(crate) bytes: u64,
    /// Line ends before it.
    pub(crate) line_ends: u64,
    pub(crate) report: PieceReport,
}

/// A request for the dialect of a file.
#[derive(Clone, Copy)]
pub(crate) struct DialectRequest<'a> {
    pub(crate) path: &'a Path,
    pub(crate) syntax: Syntax,
    pub(crate) columns: RecordKind,
    pub(crate) weighted: bool,
    /// Malformed lines are left out, so that the sample may hold some.
    pub(crate) skips: bool,
    pub(crate) options: &'a TextOptions,
    /// The dialect of the file before it, which decides if two dialects fit.
    pub(crate) before: Option<&'a Dialect>,
}
