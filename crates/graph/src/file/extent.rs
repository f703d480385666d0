//! Ranges of bytes of files.

use std::ops::Range;

use crate::file::page::FileId;

/// Bytes of a chunk when nothing speaks for another size.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A byte range of a file's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Which file.
    pub file: FileId,
    /// Which bytes of its payload.
    pub bytes: Range<u64>,
}
