//! Errors of lines, with the byte where each begins.

use crate::error::{IngestError, LineProblem};

/// Why lines could not be taken; a byte is counted from the first of those given, then of the file.
#[derive(Debug)]
pub(crate) enum ParseError {
    /// The line at this byte is malformed.
    Line {
        problem: LineProblem,
        found: String,
        at: u64,
    },
    /// The quotes that open in the record at this byte are not closed.
    Unclosed { at: u64 },
    /// The line at this byte is longer than a line may be.
    Endless { at: u64 },
    /// Something else.
    Other(IngestError),
}

impl ParseError {
    /// Returns the error with its byte offset increased by `before`.
    pub(crate) fn after(self, before: u64) -> Self {
        match self {
            Self::Line { problem, found, at } => Self::Line {
                problem,
                found,
                at: before + at,
            },
            Self::Unclosed { at } => Self::Unclosed { at: before + at },
            Self::Endless { at } => Self::Endless { at: before + at },
            Self::Other(error) => Self::Other(error),
        }
    }
}

impl From<IngestError> for ParseError {
    fn from(error: IngestError) -> Self {
        Self::Other(error)
    }
}

/// Bytes of a malformed line that its error shows.
pub(super) const SHOWN_BYTES: usize = 60;

/// Returns the start of a line, for an error.
pub(super) fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)])
        .trim_end()
        .to_string()
}
