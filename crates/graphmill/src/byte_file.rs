//! A file as a run of bytes that can be read anywhere: what the libraries that parse results ask for.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use graphmill_storage::{
    Budget, Buffer, Disk, FileHandle, GRAIN_BYTES, Open, Operation, Queue, StorageError,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// Bytes read from the disk at a time.
const CHUNK_BYTES: usize = 1 << 18;

/// An open file; clones share one chunk of its bytes.
#[derive(Debug, Clone)]
pub(crate) struct ByteFile {
    length: u64,
    chunk: Arc<Mutex<Chunk>>,
}

/// The bytes of the file that are in memory.
#[derive(Debug)]
struct Chunk {
    file: FileHandle,
    queue: Box<dyn Queue>,
    /// Away while it is filled; lost when the kernel failed.
    buffer: Option<Buffer>,
    start: u64,
    filled: usize,
}

impl ByteFile {
    /// Opens a file that exists.
    ///
    /// # Errors
    /// It does not, or cannot be read; the budget has no room for a chunk.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        path: &Path,
    ) -> Result<ByteFile, StorageError> {
        let file = disk.open(path, Open::Read)?;
        Ok(ByteFile {
            length: file.len()?,
            chunk: Arc::new(Mutex::new(Chunk {
                file,
                queue: disk.queue(1)?,
                buffer: Some(budget.buffer("a chunk of a file to read", CHUNK_BYTES)?),
                start: 0,
                filled: 0,
            })),
        })
    }

    /// Reads from the front to the end.
    pub(crate) fn reader(&self) -> ByteReader {
        self.reader_from(0)
    }

    fn reader_from(&self, offset: u64) -> ByteReader {
        ByteReader {
            file: self.clone(),
            offset,
        }
    }

    /// Copies what the file holds from `offset` on, up to the end of a chunk; 0 at the end of the file.
    fn copy(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        if offset >= self.length {
            return Ok(0);
        }
        let mut chunk = self.chunk.lock().unwrap_or_else(PoisonError::into_inner);
        if offset < chunk.start || offset >= chunk.start + chunk.filled as u64 {
            chunk.fill(offset / GRAIN_BYTES as u64 * GRAIN_BYTES as u64)?;
        }
        let skipped = (offset - chunk.start) as usize;
        let held = chunk
            .buffer
            .as_ref()
            .map_or(&[][..], |buffer| &buffer[..chunk.filled]);
        let held = held.get(skipped..).unwrap_or_default();
        let count = held.len().min(out.len());
        out[..count].copy_from_slice(&held[..count]);
        Ok(count)
    }
}

impl Chunk {
    fn fill(&mut self, start: u64) -> io::Result<()> {
        self.filled = 0;
        let lost = || io::Error::other("the disk kept a buffer");
        let buffer = self.buffer.take().ok_or_else(lost)?;
        let operation = Operation::Read {
            file: Arc::clone(&self.file),
            offset: start,
            buffer,
            range: 0..CHUNK_BYTES,
        };
        self.queue.submit(operation, 0);
        let completion = self.queue.wait().ok_or_else(lost)?;
        self.buffer = completion.buffer;
        self.filled = completion.result.map_err(io::Error::other)?;
        self.start = start;
        Ok(())
    }
}

/// Reads a [`ByteFile`] on from some offset.
#[derive(Debug)]
pub(crate) struct ByteReader {
    file: ByteFile,
    offset: u64,
}

impl Read for ByteReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.copy(self.offset, out)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Length for ByteFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for ByteFile {
    type T = ByteReader;

    fn get_read(&self, start: u64) -> Result<ByteReader, ParquetError> {
        Ok(self.reader_from(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            let what = format!("bytes {start} and {length} on of a file of {}", self.length);
            return Err(ParquetError::EOF(what));
        }
        let mut bytes = vec![0; length];
        self.reader_from(start).read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}
