//! An open file of this machine.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::port::DiskFile;
use crate::error::{StorageError, at};

/// A file of this machine.
#[derive(Debug)]
pub(super) struct SystemFile {
    pub(super) path: PathBuf,
    pub(super) descriptor: Arc<OwnedFd>,
}

impl DiskFile for SystemFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64, StorageError> {
        let stat = at("look at", &self.path, rustix::fs::fstat(&*self.descriptor))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }
}
