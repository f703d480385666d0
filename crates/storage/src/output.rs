//! An output of a user: a file that is replaced atomically, or anything else, which is written in place.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use crate::budget::Budget;
use crate::disk::port::{Disk, Target};
use crate::error::StorageError;
use crate::file_aside::FileAside;

/// An output on its way; a [`Write`]. Links to it are followed.
#[derive(Debug)]
pub enum Output {
    /// To a file, which is replaced when it is complete.
    File(Box<FileAside>),
    /// To a pipe, a device or an open descriptor.
    Stream(Stream),
}

/// Something that is written in place.
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

impl Output {
    /// Creates the output at `path`; a file is written in chunks, as by [`FileAside::create_apart`].
    ///
    /// # Errors
    /// As for [`FileAside::create_apart`] and [`Disk::target`].
    pub fn create(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        path: &Path,
        chunk_bytes: usize,
    ) -> Result<Output, StorageError> {
        Ok(match disk.target(path)? {
            Target::File(path) => {
                let file = FileAside::create_apart(disk, budget, &path, chunk_bytes)?;
                Output::File(Box::new(file))
            }
            Target::Stream => Output::Stream(Stream {
                to: BufWriter::new(disk.stream(path)?),
                path: path.to_path_buf(),
                bytes: 0,
            }),
        })
    }

    /// Ends the output, as [`FileAside::publish`] does; returns its length.
    ///
    /// # Errors
    /// As there.
    pub fn publish(self) -> Result<u64, StorageError> {
        match self {
            Output::File(file) => file.publish(),
            Output::Stream(mut stream) => {
                let flushed = stream.to.flush();
                flushed.map_err(|source| failed(&stream.path, source))?;
                Ok(stream.bytes)
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File(file) => file.write(bytes),
            Output::Stream(stream) => {
                let written = stream.to.write(bytes)?;
                stream.bytes += written as u64;
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File(file) => file.flush(),
            Output::Stream(stream) => stream.to.flush(),
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
            written.map_err(|source| failed(path, source))
        }
    }
}

fn failed(path: &Path, source: io::Error) -> StorageError {
    StorageError::Path {
        action: "write",
        path: path.to_path_buf(),
        source,
    }
}
