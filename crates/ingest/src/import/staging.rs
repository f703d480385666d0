//! Directories that an import fills before anything has the output's name: of temporary files, and of the graph itself.
//!
//! A directory is gone when its import is over or has failed, unless it was renamed.

use std::path::{Path, PathBuf};

use graphmill_storage::Disk;

use crate::error::IngestError;

/// A directory that goes when this is dropped, unless it was given another name.
#[derive(Debug)]
pub(super) struct Directory<'a> {
    disk: &'a dyn Disk,
    path: Option<PathBuf>,
}

impl<'a> Directory<'a> {
    /// A new directory in `parent`, called after `name`.
    pub(super) fn create(
        disk: &'a dyn Disk,
        parent: &Path,
        name: &str,
    ) -> Result<Self, IngestError> {
        let process = std::process::id();
        let mut number = 0u64;
        loop {
            let path = parent.join(format!(".{name}-{process}-{number}"));
            if !disk.exists(&path)? {
                disk.create_dir_all(&path)?;
                return Ok(Self {
                    disk,
                    path: Some(path),
                });
            }
            number += 1;
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    pub(super) fn rename(mut self, to: &Path) -> Result<(), IngestError> {
        self.disk.rename(self.path(), to)?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Directory<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // Nobody is left to tell; what is left behind is named after the import.
            let _ = self.disk.remove_dir_all(&path);
        }
    }
}
