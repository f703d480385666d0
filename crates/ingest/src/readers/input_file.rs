//! The files of an input, with the format and the dialect of each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_storage::FileIdentity;

use super::compression::Compression;
use super::parquet::ParquetFile;
use super::text::dialect::{Dialect, Preamble};
use super::text::record::{LexState, Quotes};
use crate::error::IngestError;

/// The declared format of input files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Format {
    /// By the name of each file, else text.
    #[default]
    Auto,
    /// One edge a line, separated by tab, space, comma or semicolon: SNAP, `.el`, `.wel`.
    Text,
    /// Text separated by commas.
    Csv,
    /// LDBC Graphalytics: `.e` files of edges, `.v` files of vertices; the other files are left out.
    Ldbc,
    /// The arcs (`a u v w`) of a file in DIMACS format.
    Dimacs,
    /// Pairs of little-endian 32-bit integers.
    RawU32,
    /// Pairs of little-endian 64-bit integers.
    RawU64,
    /// Parquet.
    Parquet,
}

/// Bits of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdWidth {
    U32,
    U64,
}

impl IdWidth {
    /// Bytes of a pair.
    pub(crate) fn pair_bytes(self) -> usize {
        match self {
            Self::U32 => 8,
            Self::U64 => 16,
        }
    }
}

/// The content of a file.
#[derive(Clone, Debug)]
pub(crate) enum FileContent {
    /// Text, its dialect, and the lines before its first edge.
    Text(Arc<Dialect>, Preamble),
    Pairs(IdWidth),
    Parquet(Arc<ParquetFile>),
}

impl FileContent {
    /// Returns the dialect of its text.
    pub(crate) fn dialect(&self) -> Option<&Arc<Dialect>> {
        match self {
            Self::Text(dialect, _) => Some(dialect),
            Self::Pairs(_) | Self::Parquet(_) => None,
        }
    }

    /// Treats quotes as enclosing columns, because some occur after the first bytes.
    pub(crate) fn enclose(&mut self) {
        if let Self::Text(dialect, _) = self {
            Arc::make_mut(dialect).cut.quotes = Quotes::Enclose;
        }
    }

    /// True if both are read in the same way.
    pub(crate) fn is_read_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one, _), Self::Text(other, _)) => one == other,
            (Self::Pairs(one), Self::Pairs(other)) => one == other,
            (Self::Parquet(one), Self::Parquet(other)) => one.columns.is_read_as(&other.columns),
            _ => false,
        }
    }
}

/// One file of an input.
#[derive(Clone, Debug)]
pub struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The file's identity when it was first opened.
    pub(crate) stamp: FileIdentity,
    pub(crate) content: FileContent,
    pub(crate) compression: Compression,
    /// The state at the byte before each piece, of a file with quotes.
    pub(crate) states: Vec<LexState>,
}

impl InputFile {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length on disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the error of a raw file of `bytes` (unpacked) bytes that ends within a pair.
    pub(crate) fn no_whole_pairs(&self, bytes: u64, width: IdWidth) -> IngestError {
        let (pair, bits) = (width.pair_bytes(), width.pair_bytes() * 4);
        IngestError::input(
            &self.path,
            format!(
                "{bytes} bytes are no whole number of pairs of {bits}-bit integers ({pair} bytes each): cut short, or of another format"
            ),
        )
    }
}

/// The files of an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputFiles {
    /// Files with edges, in order.
    pub(crate) edges: Vec<InputFile>,
    /// LDBC files of vertices.
    pub(crate) vertices: Vec<PathBuf>,
    /// Files of directories that were left out.
    pub(crate) left_out: Vec<PathBuf>,
}
