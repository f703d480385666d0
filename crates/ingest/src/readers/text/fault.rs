//! Errors of lines, with the byte where each begins.

use crate::error::{IngestError, LineProblem};

/// Why lines could not be taken; a byte is counted from the first of those given, then of the file.
#[derive(Debug)]
pub(crate) enum ParseError {
    /// The line that begins with this byte has a fault.
    At(u64, LineFault),
    /// Something else.
    Other(IngestError),
}

/// Why a line could not be taken.
#[derive(Debug)]
pub(crate) enum LineFault {
    Malformed {
        problem: LineProblem,
        found: String,
    },
    /// The quotes that open in it are not closed.
    Unclosed,
    /// It is longer than a line may be.
    Endless,
}

impl ParseError {
    /// Returns the error with its byte offset increased by `before`.
    pub(crate) fn after(self, before: u64) -> Self {
        match self {
            Self::At(at, fault) => Self::At(before + at, fault),
            other => other,
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
