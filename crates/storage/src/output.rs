//! An output of a user: a file that is replaced atomically, or anything else, which is written in place.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use crate::atomic_file::AtomicFile;
use crate::disk::port::{Disk, Target};
use crate::error::{StorageError, at};
use crate::memory_budget::MemoryBudget;

/// An output that is being written; a [`Write`]. Links to it are followed.
#[derive(Debug)]
pub enum OutputFile {
    /// A file, which is replaced when the output is complete.
    File(Box<AtomicFile>),
    /// A pipe, a device or an open descriptor.
    Stream(Stream),
}

/// An output that is written in place.
pub struct Stream {
    to: BufWriter<Box<dyn Write + Send>>,
    path: std::path::PathBuf,
    bytes: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("path", &self.path)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl OutputFile {
    /// Creates the output at `path`; a file is written in chunks, as by [`AtomicFile::create_apart`].
    ///
    /// # Errors
    /// As for [`AtomicFile::create_apart`] and [`Disk::target`].
    pub fn create(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        chunk_bytes: usize,
    ) -> Result<OutputFile, StorageError> {
        Ok(match disk.target(path)? {
            Target::File(path) => {
                let file = AtomicFile::create_apart(disk, budget, &path, chunk_bytes)?;
                OutputFile::File(Box::new(file))
            }
            Target::Stream => OutputFile::Stream(Stream {
                to: BufWriter::new(disk.stream(path)?),
                path: path.to_path_buf(),
                bytes: 0,
            }),
        })
    }

    /// Ends the output, as [`AtomicFile::commit`] does; returns its length.
    ///
    /// # Errors
    /// As for [`AtomicFile::commit`].
    pub fn commit(self) -> Result<u64, StorageError> {
        match self {
            OutputFile::File(file) => file.commit(),
            OutputFile::Stream(mut stream) => {
                at("write", &stream.path, stream.to.flush())?;
                Ok(stream.bytes)
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            OutputFile::File(file) => file.write(bytes),
            OutputFile::Stream(stream) => {
                let written = stream.to.write(bytes)?;
                stream.bytes += written as u64;
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            OutputFile::File(file) => file.flush(),
            OutputFile::Stream(stream) => stream.to.flush(),
        }
    }
}

/// Writes a small output to `path` as [`Disk::write_small`] does, or in place if it is no regular file.
///
/// # Errors
/// As for [`Disk::write_small`] and [`Disk::target`].
pub fn write_output(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    match disk.target(path)? {
        Target::File(path) => disk.write_small(&path, bytes),
        Target::Stream => {
            let mut stream = disk.stream(path)?;
            let written = stream.write_all(bytes).and_then(|()| stream.flush());
            at("write", path, written)
        }
    }
}
