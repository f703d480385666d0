//! Sizes of buffers and blocks that the result writers share.

use graphmill_storage::AtomicFile;

use crate::result::block::ROWS_MAX;

/// Bytes of a file format without rows and file chunks: a page and its compressed copy.
pub(super) const FORMAT_BYTES: u64 = 4 << 20;
/// Bytes of one write to a file that is written from front to back.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
/// Bytes that writing a result takes, without its rows.
pub(crate) const WRITER_BYTES: u64 = AtomicFile::memory(CHUNK_BYTES) + FORMAT_BYTES;
/// A task's output is full when it has this many bytes.
pub(super) const OUTPUT_BYTES: usize = 2 << 20;
/// Bytes of the names that are looked up at a time, where there is little memory.
pub(super) const NAMES_BYTES: u64 = 4 << 20;
/// Rows of a block, at most.
pub(super) const BLOCK_ROWS: u64 = ROWS_MAX as u64;
/// Bytes of the names of a row group's values, at most: where they have more, it has fewer rows.
pub(super) const DICTIONARY_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };
