//! Errors of comparing a result with a reference.

use std::path::PathBuf;

use graphmill_storage::{BudgetError, StorageError};

/// Why two files could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// Somebody asked to stop.
    #[error("interrupted")]
    Stopped,
    /// A file is not there.
    #[error("cannot read {}: there is no such file", path.display())]
    NoFile {
        /// What was given.
        path: PathBuf,
    },
    /// A directory without parts of a result.
    #[error("cannot read {}: there is no part of a result in this directory", path.display())]
    NoParts {
        /// The directory.
        path: PathBuf,
    },
    /// The disk failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Sorting, or the names of groups, do not fit the memory.
    #[error("{0}; files whose ids ascend are compared without sorting")]
    Budget(#[from] BudgetError),
    /// A compressed or Parquet file is broken.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What its decoder says.
        source: std::io::Error,
    },
    /// A line is not a row.
    #[error("cannot read {}, line {line}: it is {found:?}, expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Counted from 1, in the unpacked file.
        line: u64,
        /// The line, or its start.
        found: String,
        /// What it should look like.
        expected: &'static str,
    },
    /// A vertex, or an edge, has two rows.
    #[error("cannot compare {}: it has {row} twice", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The vertex or the edge.
        row: String,
    },
    /// One file has a row of numbers, the other has rows of vertices or of edges.
    #[error(
        "cannot compare column {column} with {others}: a file of vertices has the columns vertex and a value"
    )]
    Column {
        /// The column.
        column: String,
        /// The rows of the other file.
        others: String,
    },
    /// A stored graph was given where a file of values belongs.
    #[error(
        "cannot read {}: it is a stored graph, not a file of values; to check a result by its graph give both and name the algorithm (RESULT GRAPH --algorithm NAME)",
        path.display()
    )]
    IsGraph {
        /// The stored graph.
        path: PathBuf,
    },
    /// The allowed difference is not a number of 0 or more.
    #[error(
        "cannot compare by rule epsilon: the allowed difference is {share}, expected 0 or more"
    )]
    Share {
        /// The requested share.
        share: f64,
    },
}
