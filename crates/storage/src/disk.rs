//! Files as a port: blocking calls for names and small files, queues of operations for large files.
//!
//! There are three types. A [`Disk`] opens files and changes names. A [`FileHandle`](port::FileHandle) is an open file. A
//! [`Queue`](port::Queue) moves bytes between files and [`Buffer`](crate::memory_budget::Buffer)s: it accepts operations without blocking,
//! carries out `depth` of them at a time, and returns them complete, in any order.

pub(crate) mod counted;
pub(crate) mod memory;
pub(crate) mod port;
pub(crate) mod sim;
mod stall;
pub(crate) mod system;
mod system_file;
mod threads;
mod transfer;
mod tree;
mod uring;

use std::sync::Arc;

use crate::error::StorageError;
use port::{Disk, IoChoice};
use system::SystemDisk;

/// Opens the disk of this machine.
///
/// # Errors
/// [`StorageError::NoUring`] if io_uring is requested; [`StorageError::Thread`].
pub fn open_disk(choice: IoChoice) -> Result<Arc<dyn Disk>, StorageError> {
    Ok(Arc::new(SystemDisk::new(choice)?))
}
