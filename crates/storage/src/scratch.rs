//! A folder to work in: temporary files, or something that gets its name when it is complete.
//!
//! It goes with all that is in it when it is dropped, unless it was given another name; and so do the folders above it that were
//! made for it, unless there is something in them by then.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::StorageError;

/// Names tried while somebody else removes the folder in which this one is to be.
const ATTEMPTS_MAX: u32 = 16;

/// A folder that goes when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    disk: Arc<dyn Disk>,
    path: Option<PathBuf>,
    /// The folders above it that were not there before, the innermost first.
    made: Vec<PathBuf>,
}

impl Scratch {
    /// A new folder in `folder`, which is made where it is missing; `what` is part of its name.
    ///
    /// # Errors
    /// [`StorageError::Path`]. Nothing is left behind then.
    pub fn create(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        what: &str,
    ) -> Result<Scratch, StorageError> {
        let mut scratch = Scratch {
            disk: Arc::clone(disk),
            path: None,
            made: Vec::new(),
        };
        for above in folder.ancestors() {
            if above.as_os_str().is_empty() || disk.exists(above)? {
                break;
            }
            scratch.made.push(above.to_path_buf());
        }
        let process = std::process::id();
        let mut attempts = 0;
        let mut number = 0_u64;
        loop {
            let path = folder.join(format!(".graphmill-{what}-{process}-{number}"));
            number += 1;
            if disk.exists(&path)? {
                continue;
            }
            match disk.create_dir_all(&path) {
                Ok(()) => {
                    scratch.path = Some(path);
                    return Ok(scratch);
                }
                // Whoever made `folder` found it empty, and removed it.
                Err(error) if attempts < ATTEMPTS_MAX && is_missing(&error) => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// Gives it its name; from now on it stays.
    ///
    /// # Errors
    /// As for [`Disk::rename`]. It goes then.
    pub fn rename(mut self, to: &Path) -> Result<(), StorageError> {
        self.disk.rename(self.path(), to)?;
        self.path = None;
        Ok(())
    }
}

fn is_missing(error: &StorageError) -> bool {
    matches!(error, StorageError::Path { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is left to tell; what stays is named after the process.
        if let Some(path) = &self.path {
            let _ = self.disk.remove_dir_all(path);
        }
        for above in &self.made {
            // Not where there is something in it.
            let _ = self.disk.remove_dir(above);
        }
    }
}
