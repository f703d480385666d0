//! Types: the options for text files, and the dialect that the first bytes of a file decide.

use std::path::Path;

use super::record::{Delimiter, LexState, RecordFormat};

/// What lines are, by the name of the file or by option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Columns by any separator; blanks around them do not count.
    Text,
    /// Columns as in RFC 4180, by commas unless the file shows something else.
    Csv,
    /// The same by tabs.
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

/// Whether the first line of a file names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// By what it holds.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// What a quote means in a file of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    /// In CSV and TSV it encloses columns.
    #[default]
    Auto,
    /// It encloses columns.
    Encloses,
    /// It is text.
    None,
}

/// Which lines are comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Comments {
    /// Those before the first edge that start with `#`, `%` or `//`.
    #[default]
    Auto,
    /// All that start with this.
    Prefix(String),
    /// None.
    None,
}

/// How the lines of text files are read; the default decides everything from the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The column of the sources, by name or by number from 1.
    pub source_column: Option<String>,
    /// The column of the destinations.
    pub target_column: Option<String>,
    /// The column of the weights.
    pub weight_column: Option<String>,
    /// Whether the first line names the columns.
    pub header: Header,
    /// What separates columns.
    pub delimiter: Option<Delimiter>,
    /// What a quote means.
    pub quote: Quote,
    /// Which lines are comments.
    pub comments: Comments,
}

/// How the records of a file are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) syntax: Syntax,
    pub(crate) cut: RecordFormat,
    pub(crate) comments: Comments,
    /// The columns of source, destination and weight, from 0.
    pub(crate) wanted: [usize; 3],
    /// Columns of every record, where the sample has one number of them.
    pub(crate) columns: Option<usize>,
    /// Whether the ids of all lines but the first are integers, and there are some.
    pub(crate) integers_below: bool,
    /// Whether the columns have names, of this file or of one before it.
    pub(super) named: bool,
    /// The first line, where it names the columns.
    pub(crate) header: Option<Vec<u8>>,
    /// What the wanted columns are called: names of a header, else numbers from 1.
    pub(crate) names: [String; 3],
    /// What was decided though it could be otherwise, with the option.
    pub(crate) doubt: Option<String>,
}

impl Dialect {
    /// Whether a record that begins with these bytes is a comment.
    pub(crate) fn state(&self, bytes: &[u8]) -> LexState {
        match &self.comments {
            Comments::Prefix(prefix) if bytes.starts_with(prefix.as_bytes()) => LexState::Comment,
            _ => LexState::Start,
        }
    }
}

/// The lines of a file before its first edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preamble {
    /// Where the first edge begins.
    pub(crate) bytes: u64,
    /// Line ends before it.
    pub(crate) lines: u64,
    pub(crate) comments: u64,
    pub(crate) blank: u64,
    pub(crate) headers: u64,
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
    /// How the file before it is read: where two ways fit, this one's is taken.
    pub(crate) before: Option<&'a Dialect>,
}
