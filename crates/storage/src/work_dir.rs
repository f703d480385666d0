//! A work directory, for temporary files or for an output that is renamed when it is complete.
//!
//! Dropping it deletes it and its contents, unless it was renamed. The drop also deletes the parents that were made for it, if they are
//! empty.
//!
//! A named directory stays if the work in it does not finish, for the next user of that name.
//!
//! Only this user can enter it, and no link leads out of it (`disk/system/dirs.rs`).
//!
//! Creating a directory deletes those beside it that killed processes left. The name of a directory identifies the machine, and its lock
//! tells whether the process lives (`host_id.rs`). Directories of other machines or users stay, and so do all on a file system
//! without locks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::Clock;
use crate::disk::port::{DirLock, Disk, LockMode, Owner};
use crate::error::StorageError;
use crate::host_id::{HOLD_ATTEMPTS, HOLD_PAUSE, host_id, is_this_host, unlocked_dirs};

/// Attempts while another process removes the parent of this directory.
const ATTEMPTS_MAX: u32 = 16;

/// The number in the name of the next directory of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory that is deleted when it is dropped.
#[derive(Debug)]
pub struct WorkDir {
    disk: Arc<dyn Disk>,
    path: Option<PathBuf>,
    _hold: Option<DirLock>,
    /// The directories above it that did not exist before, the innermost first.
    made: Vec<PathBuf>,
    stays: AtomicBool,
    /// The file in it that is deleted last.
    last: Option<&'static str>,
}

impl WorkDir {
    /// Creates a directory in `folder`, named after `what`, and removes those that dead processes left.
    ///
    /// `folder` is created if it does not exist.
    ///
    /// # Errors
    /// [`StorageError::Path`]. Nothing is left behind then.
    pub fn create(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        what: &str,
    ) -> Result<WorkDir, StorageError> {
        let mut scratch = WorkDir::below(disk, folder)?;
        remove_dead(&**disk, folder);
        let mut machine = None;
        let process = std::process::id();
        let mut attempts = 0;
        loop {
            // A counter of the process: no two threads try the same name.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let machine = machine.get_or_insert_with(|| host_id(&**disk, folder));
            let path = folder.join(format!("{PREFIX}{what}@{machine}-{process}-{number}"));
            if disk.exists(&path)? {
                continue;
            }
            // The process that made `folder` found it empty and removed it.
            disk.create_dir_all(folder)?;
            match disk.create_dir(&path) {
                Ok(()) => match hold(&**disk, &path) {
                    // Another process took it for a leftover before this one locked it.
                    Ok(None) => {}
                    // Another process has the name already.
                    Err(StorageError::NotOwn { .. }) if attempts < ATTEMPTS_MAX => attempts += 1,
                    held => {
                        // From here on the directory is deleted with `scratch`.
                        scratch.path = Some(path);
                        scratch._hold = held?;
                        disk.sync_dir(folder)?;
                        return Ok(scratch);
                    }
                },
                Err(error) if attempts < ATTEMPTS_MAX && is_missing(&error) => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens the directory `name` in `folder`, with the contents that another process left there.
    ///
    /// A directory with contents stays until [`WorkDir::keep_on_drop`] is called with false.
    /// Returns `None` if a living process has it, or if the file system has no locks.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    pub fn named(
        (disk, clock): (&Arc<dyn Disk>, &dyn Clock),
        folder: &Path,
        name: &str,
    ) -> Result<Option<WorkDir>, StorageError> {
        let mut scratch = WorkDir::below(disk, folder)?;
        let path = folder.join(format!("{PREFIX}{name}"));
        for attempt in 0..HOLD_ATTEMPTS {
            if attempt > 0 {
                clock.wait(HOLD_PAUSE);
            }
            disk.create_dir_all(folder)?;
            disk.create_dir(&path)?;
            disk.sync_dir(folder)?;
            let held = disk.hold(&path, LockMode::Alone, Owner::Own);
            match held {
                Err(error) if locks_unsupported(&error) => {
                    // Fails if it has contents.
                    let _ = disk.remove_dir(&path);
                    return Ok(None);
                }
                Err(error @ StorageError::NotOwn { .. }) => return Err(error),
                Err(error) if !is_missing(&error) => {
                    // Fails if it has contents.
                    let _ = disk.remove_dir(&path);
                    return Err(error);
                }
                held => {
                    // The last holder may have removed it before this lock, or another process may hold it to check whether to remove it.
                    let hold = held.ok().flatten();
                    if hold.is_some() && disk.exists(&path)? {
                        scratch.keep_on_drop(!disk.list(&path)?.is_empty());
                        scratch.path = Some(path);
                        scratch._hold = hold;
                        return Ok(Some(scratch));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Prepares a directory below one that may not exist yet.
    fn below(disk: &Arc<dyn Disk>, folder: &Path) -> Result<WorkDir, StorageError> {
        let mut made = Vec::new();
        for above in folder.ancestors() {
            if above.as_os_str().is_empty() || disk.exists(above)? {
                break;
            }
            made.push(above.to_path_buf());
        }
        Ok(WorkDir {
            disk: Arc::clone(disk),
            path: None,
            _hold: None,
            made,
            stays: AtomicBool::new(false),
            last: None,
        })
    }

    /// Deletes the named file last, since it identifies the directory if the deletion is killed.
    #[must_use]
    pub fn removed_last(mut self, file: &'static str) -> WorkDir {
        self.last = Some(file);
        self
    }

    /// Sets whether dropping this keeps the directory.
    pub fn keep_on_drop(&self, stays: bool) {
        self.stays.store(stays, Ordering::Relaxed);
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// Renames the directory to its final name; it then stays.
    ///
    /// # Errors
    /// As for [`Disk::rename`]; the directory is deleted then.
    pub fn rename(mut self, to: &Path) -> Result<(), StorageError> {
        self.disk.share(self.path(), to)?;
        self.disk.rename(self.path(), to)?;
        self.path = None;
        Ok(())
    }
}

/// The prefix of the names of all work directories.
const PREFIX: &str = ".graphmill-";

/// Returns true if an error says that the file system has no locks.
pub fn locks_unsupported(error: &StorageError) -> bool {
    let StorageError::Path { source, .. } = error else {
        return false;
    };
    let is_unable = [io::ErrorKind::Unsupported, io::ErrorKind::InvalidInput];
    // A network file system reports ENOLCK if its lock server does not answer.
    is_unable.contains(&source.kind()) || source.raw_os_error() == Some(libc::ENOLCK)
}

/// Locks a new directory; without a lock if the file system has none.
fn hold(disk: &dyn Disk, path: &Path) -> Result<Option<DirLock>, StorageError> {
    match disk.hold(path, LockMode::Alone, Owner::Own) {
        Err(error) if locks_unsupported(&error) => disk.hold(path, LockMode::Unlocked, Owner::Own),
        held => held,
    }
}

/// Removes the directories in `folder` that dead processes of this machine made.
///
/// Directories that cannot be removed stay, since they do no harm.
fn remove_dead(disk: &dyn Disk, folder: &Path) {
    let is_ours = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_prefix(PREFIX)?.split_once('@'));
        name.and_then(|(_, name)| name.split_once('-'))
            .is_some_and(|(machine, numbers)| {
                let are_numbers = numbers.bytes().all(|b| b == b'-' || b.is_ascii_digit());
                are_numbers && is_this_host(machine, disk, folder)
            })
    };
    for (path, _hold) in unlocked_dirs(disk, folder, is_ours) {
        let _ = disk.remove_dir_all(&path);
    }
}

/// Removes a directory and its contents; the files that satisfy `is_last` go last.
///
/// # Errors
/// As for [`Disk::remove_dir_all`].
pub fn remove_dir_keeping_last(
    disk: &dyn Disk,
    dir: &Path,
    is_last: impl Fn(&Path) -> bool,
) -> Result<(), StorageError> {
    for path in disk.list(dir)? {
        if is_last(&path) {
            continue;
        }
        match disk.is_dir(&path)? {
            true => disk.remove_dir_all(&path)?,
            false => disk.remove_file(&path)?,
        }
    }
    disk.remove_dir_all(dir)
}

/// Returns true if an error says that there is no such file or directory.
pub fn is_missing(error: &StorageError) -> bool {
    matches!(error, StorageError::Path { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if self.stays.load(Ordering::Relaxed) {
            return;
        }
        // No caller receives errors here; the name of a directory that stays identifies the process.
        if let Some(path) = &self.path {
            let _ = match self.last {
                Some(last) => {
                    remove_dir_keeping_last(&*self.disk, path, |path| path.ends_with(last))
                }
                None => self.disk.remove_dir_all(path),
            };
        }
        for above in &self.made {
            // Fails if it has contents.
            let _ = self.disk.remove_dir(above);
        }
    }
}
