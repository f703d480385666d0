//! Files as a port: names and small files at once, reads and writes of large ones by completion.
//!
//! A reader of this crate meets three things. A [`Disk`] opens files and changes names. A [`FileHandle`](port::FileHandle) is an
//! open file. A [`Queue`](port::Queue) moves bytes between files and [`Buffer`](crate::memory_budget::Buffer)s: it takes operations without
//! ever blocking, carries out `depth` of them at a time, and gives them back complete, in any order.

pub(crate) mod counted;
pub(crate) mod port;
pub(crate) mod sim;
mod stall;
pub(crate) mod system;
mod system_file;
mod threads;
mod transfer;
mod uring;

use std::sync::Arc;

use crate::error::StorageError;
use port::{Disk, IoChoice};
use system::SystemDisk;

/// The disk of this machine.
///
/// # Errors
/// [`StorageError::NoUring`] when it was asked for; [`StorageError::Thread`].
pub fn open_disk(choice: IoChoice) -> Result<Arc<dyn Disk>, StorageError> {
    Ok(Arc::new(SystemDisk::new(choice)?))
}
