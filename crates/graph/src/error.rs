//! What can be wrong with a stored graph, or with what its writer was given.

use std::path::PathBuf;

use graphmill_raw::OutOfMemory;
use graphmill_storage::{BudgetError, StorageError};

/// Why a stored graph cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The memory budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The machine's memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// A directory without `graph.json`, or no directory.
    #[error("cannot open {}: it is not a stored graph (it has no graph.json); make one with graphmill import", path.display())]
    NotAGraph {
        /// The directory.
        path: PathBuf,
    },
    /// A column file that another host has.
    #[error("cannot read {}: the graph is spread over the hosts that imported it, and this needs all of its edges; import it into a directory that all hosts share", path.display())]
    Elsewhere {
        /// The file.
        path: PathBuf,
    },
    /// A format of another time.
    #[error("cannot open {}: it has format {found}, and this program reads format {expected}; import the graph again", path.display())]
    Version {
        /// The graph's `graph.json`.
        path: PathBuf,
        /// The format that this program reads.
        expected: u64,
        /// The format of the file.
        found: u64,
    },
    /// `graph.json` is not what was written.
    #[error("cannot read {}: {what} (the file was changed or is damaged); restore it or import the graph again", path.display())]
    Description {
        /// The graph's `graph.json`.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// A file is too short, too long or another one.
    #[error(
        "cannot read {}: it has {found} bytes where {expected} were written (page {page} and later are affected); restore it or import the graph again",
        path.display()
    )]
    Length {
        /// Which file.
        path: PathBuf,
        /// The first page that is missing or too many.
        page: u64,
        /// Bytes that were written.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A page does not have its checksum.
    #[error(
        "cannot read {}: page {page} (byte {offset}) is not what was written there: checksum {found:08x}, expected {expected:08x}; restore the file or import the graph again",
        path.display()
    )]
    Page {
        /// Which file.
        path: PathBuf,
        /// Number of the page.
        page: u64,
        /// Where the page begins, in bytes.
        offset: u64,
        /// The checksum in the table.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// A checksum table does not have its checksum.
    #[error(
        "cannot read {}: the checksum table (byte {offset}, after page {pages}) is not what was written there: checksum {found:08x}, expected {expected:08x}; restore the file or import the graph again",
        path.display()
    )]
    Table {
        /// Which file.
        path: PathBuf,
        /// Pages the file has.
        pages: u64,
        /// Where the table begins, in bytes.
        offset: u64,
        /// The checksum that was written down for the table.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// Bytes that have their checksum but make no sense: a graph written by a broken program.
    #[error("cannot read {}, page {page} (byte {offset}): {what}; import the graph again", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Number of the page.
        page: u64,
        /// Where in the file, in bytes.
        offset: u64,
        /// What does not fit.
        what: String,
    },
    /// A corrupt block or index; a caller that knows the file turns it into [`Malformed`](Self::Malformed).
    #[error(
        "cannot decode a cell: {what}, byte {offset}, expected {expected}, found {found}; import the graph again"
    )]
    Cell {
        /// What does not fit.
        what: &'static str,
        /// Where in the block or index, in bytes.
        offset: u64,
        /// What would fit.
        expected: u64,
        /// The number that was found.
        found: u64,
    },
    /// An out-degree that the caller's numbers cannot hold.
    #[error(
        "cannot store the degree of vertex index {vertex}: {degree} edges are more than a number of this size holds"
    )]
    DegreeTooLarge {
        /// The vertex.
        vertex: u64,
        /// Its out-degree.
        degree: u64,
    },
    /// An id longer than the format takes.
    #[error("cannot store a vertex id of {bytes} bytes: {max} is the most")]
    IdTooLong {
        /// Bytes of the id.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// The writer or a reader was called in a way it does not allow: a mistake in the program.
    #[error("{what}; this is a bug, please report it")]
    Misuse {
        /// What was wrong.
        what: String,
    },
}

impl FormatError {
    /// A block or index that makes no sense.
    pub(crate) fn cell(what: &'static str, offset: u64, expected: usize, found: usize) -> Self {
        FormatError::Cell {
            what,
            offset,
            expected: expected as u64,
            found: found as u64,
        }
    }
    /// A mistake of the caller.
    pub(crate) fn misuse(what: impl Into<String>) -> Self {
        FormatError::Misuse { what: what.into() }
    }
}
