//! A file that can be read at any offset.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;

use crate::disk::port::{Disk, FileHandle, GRAIN_BYTES, Open, Operation, Queue};
use crate::error::StorageError;
use crate::memory_budget::{Buffer, MemoryBudget};

/// An open file; clones share one chunk of its bytes.
#[derive(Debug, Clone)]
pub struct RandomAccessFile {
    length: u64,
    chunk: Arc<Mutex<CachedChunk>>,
}

/// The bytes of the file that are in memory.
#[derive(Debug)]
struct CachedChunk {
    file: FileHandle,
    queue: Box<dyn Queue>,
    chunk_bytes: usize,
    /// `None` while it is filled, and if the kernel lost it.
    buffer: Option<Buffer>,
    start: u64,
    filled: usize,
}

impl RandomAccessFile {
    /// Opens an existing file and reads it in chunks of `chunk_bytes`, a multiple of [`GRAIN_BYTES`].
    ///
    /// # Errors
    /// The file does not exist or cannot be read, or the budget has too few bytes for a chunk.
    pub fn open(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        chunk_bytes: usize,
    ) -> Result<RandomAccessFile, StorageError> {
        let file = disk.open(path, Open::Read)?;
        Ok(RandomAccessFile {
            length: file.len()?,
            chunk: Arc::new(Mutex::new(CachedChunk {
                file,
                queue: disk.queue(1)?,
                chunk_bytes,
                buffer: Some(budget.buffer("a chunk of a file to read", chunk_bytes)?),
                start: 0,
                filled: 0,
            })),
        })
    }

    /// Returns its length in bytes when it was opened.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Returns a reader of the whole file.
    #[must_use]
    pub fn reader(&self) -> ByteReader {
        self.reader_from(0)
    }

    /// Returns a reader of the bytes from `offset` on.
    #[must_use]
    pub fn reader_from(&self, offset: u64) -> ByteReader {
        let file = self.clone();
        ByteReader { file, offset }
    }

    /// Copies bytes from `offset` on, up to the end of a chunk; returns 0 at the end of the file.
    fn copy(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        if offset >= self.length {
            return Ok(0);
        }
        let mut chunk = lock(&self.chunk);
        if offset < chunk.start || offset >= chunk.start + chunk.filled as u64 {
            chunk.fill(offset / GRAIN_BYTES as u64 * GRAIN_BYTES as u64)?;
        }
        let skipped = (offset - chunk.start) as usize;
        let held = chunk.buffer.as_ref();
        let held = held.and_then(|buffer| buffer.get(skipped..chunk.filled));
        let held = held.unwrap_or_default();
        let count = held.len().min(out.len());
        out[..count].copy_from_slice(&held[..count]);
        Ok(count)
    }
}

impl CachedChunk {
    fn fill(&mut self, start: u64) -> io::Result<()> {
        self.filled = 0;
        let lost = || io::Error::other("the disk kept a buffer");
        let buffer = self.buffer.take().ok_or_else(lost)?;
        let operation = Operation::Read {
            file: Arc::clone(&self.file),
            offset: start,
            buffer,
            range: 0..self.chunk_bytes,
        };
        self.queue.submit(operation, 0);
        let completion = self.queue.wait().ok_or_else(lost)?;
        self.buffer = completion.buffer;
        self.filled = completion.result.map_err(io::Error::other)?;
        self.start = start;
        Ok(())
    }
}

/// A sequential reader of a [`RandomAccessFile`].
#[derive(Debug)]
pub struct ByteReader {
    file: RandomAccessFile,
    offset: u64,
}

impl ByteReader {
    /// Returns the offset of the next byte in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Read for ByteReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.copy(self.offset, out)?;
        self.offset += count as u64;
        Ok(count)
    }
}
