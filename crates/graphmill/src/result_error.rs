//! Errors of writing a result.

use std::path::PathBuf;

use graphmill_storage::StorageError;

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The name does not say the format.
    #[error("cannot tell the format of {}: its name has no known ending; end it with .parquet, .csv, .csv.gz, .tsv or .tsv.gz (and a slash, for a directory of parts), or give - for CSV on standard output", path.display())]
    UnknownFormat {
        /// The result file asked for.
        path: PathBuf,
    },
    /// A value that should be a vertex is no index.
    #[error(
        "cannot write the result: a value of {column:?} is {index}, and the graph has {vertices} vertices; give vertices by index, or 2^32 - 1 (of 64 bits 2^64 - 1) for none with `nullable`"
    )]
    NoVertex {
        /// The column of the result.
        column: &'static str,
        /// The value.
        index: u64,
        /// Vertices of the graph.
        vertices: u64,
    },
    /// The row of an edge names a vertex by a number that is no ordinal.
    #[error(
        "cannot write the result: an end of an edge is {ordinal}, and the graph has {vertices} vertices; give ends by the ordinals of their ids (IdOrdinal), and NO_EDGE for rows without an edge"
    )]
    NoEnd {
        /// The number.
        ordinal: u64,
        /// Vertices of the graph.
        vertices: u64,
    },
    /// Parquet text has to be UTF-8.
    #[error("cannot write vertex id {id:?} to Parquet: it is not UTF-8; write .csv instead")]
    NotUtf8 {
        /// The id, with its odd bytes replaced.
        id: String,
    },
    /// The Parquet library refused.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The CSV library refused.
    #[error("cannot write CSV: {0}")]
    Csv(String),
    /// A write failed on its way to the disk.
    #[error("cannot write the result: {0}")]
    Write(#[from] std::io::Error),
    /// The disk failed, or memory ran out.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<::csv::Error> for ResultError {
    fn from(error: ::csv::Error) -> Self {
        // An error of theirs does not name its source.
        match error.into_kind() {
            ::csv::ErrorKind::Io(source) => ResultError::Write(source),
            other => ResultError::Csv(format!("{other:?}")),
        }
    }
}
