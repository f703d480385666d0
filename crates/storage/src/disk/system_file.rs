//! An open file of this machine.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::port::DiskFile;
use crate::error::StorageError;

/// A file of this machine.
#[derive(Debug)]
pub(super) struct SystemFile {
    pub(super) path: PathBuf,
    pub(super) descriptor: Arc<OwnedFd>,
}

impl SystemFile {
    pub(super) fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.descriptor
    }
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

/// Names the action and the path in an error of the system.
pub(super) fn at<T, E: Into<io::Error>>(
    action: &'static str,
    path: &Path,
    result: Result<T, E>,
) -> Result<T, StorageError> {
    result.map_err(|error| StorageError::Path {
        action,
        path: path.to_path_buf(),
        source: error.into(),
    })
}
