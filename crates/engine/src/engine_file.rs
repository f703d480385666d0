//! A file of the engine's own: pages of rows, or message runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_storage::{Buffer, Disk, FileHandle, Open, Operation};

use crate::error::EngineError;

/// The file, and the traffic on it; it is removed when dropped, unless it stays.
#[derive(Debug)]
pub(crate) struct EngineFile {
    pub(crate) handle: FileHandle,
    pub(crate) path: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    /// True if it holds checkpoints, which outlive the engine.
    pub(crate) stays: bool,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl EngineFile {
    /// Opens a file; creates it if `how` says so.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path, how: Open) -> Result<Self, EngineError> {
        Ok(EngineFile {
            handle: disk.open(path, how)?,
            path: path.to_path_buf(),
            disk,
            stays: false,
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
        })
    }

    /// Bytes read and written since the last call.
    pub(crate) fn take_traffic(&self) -> [u64; 2] {
        [&self.bytes_read, &self.bytes_written].map(|bytes| bytes.swap(0, Ordering::Relaxed))
    }

    /// Makes and counts a read into the first bytes of a buffer.
    pub(crate) fn read(&self, offset: u64, buffer: Buffer, bytes: usize) -> Operation {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
        Operation::Read {
            file: self.handle.clone(),
            offset,
            buffer,
            range: 0..bytes,
        }
    }

    /// Makes and counts a write of the first bytes of a buffer.
    pub(crate) fn write(&self, offset: u64, buffer: Buffer, bytes: usize) -> Operation {
        (self.bytes_written).fetch_add(bytes as u64, Ordering::Relaxed);
        Operation::Write {
            file: self.handle.clone(),
            offset,
            buffer,
            range: 0..bytes,
        }
    }

    /// The error for bytes that do not read back as written.
    pub(crate) fn corrupt(&self, offset: u64) -> EngineError {
        EngineError::CorruptPage {
            path: self.path.clone(),
            offset,
        }
    }
}

impl Drop for EngineFile {
    fn drop(&mut self) {
        // The file holds nothing once its engine is gone; a failure to remove it is no failure of the run.
        if !self.stays {
            let _ = self.disk.remove_file(&self.path);
        }
    }
}
