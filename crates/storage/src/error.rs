//! Errors of the machine.

use std::io;
use std::path::{Path, PathBuf};

use graphmill_raw::OutOfMemory;

use crate::placement::error::PlacementError;

/// The error of a lease that is larger than the free bytes of the budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error(
    "cannot lease {asked} bytes of memory for {what}: {available} of the budget of {total} bytes are free; give more (--memory)"
)]
pub struct BudgetError {
    /// The purpose of the memory.
    pub what: &'static str,
    /// Requested bytes.
    pub asked: u64,
    /// Free bytes of the budget.
    pub available: u64,
    /// Bytes of the whole budget.
    pub total: u64,
}

/// The boxed error of a job's step.
pub type JobError = Box<dyn std::error::Error + Send + Sync>;

/// An error of the machine: disks, memory or threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The system refused an operation on a path.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    Path {
        /// The attempted action: "open", "rename", ...
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A directory is a link, or another user controls its contents, so this program cannot trust it.
    #[error(
        "cannot use {}: {what}; move it away, or work where no other user can write (the output, or --tmp)", path.display()
    )]
    NotOwn {
        /// The directory.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// A read, write or sync of an open file failed.
    #[error("cannot {action} {} at byte {offset} ({bytes} bytes): {source}{}", path.display(), advice(source))]
    Transfer {
        /// "read", "write" or "sync".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Offset in the file of the part that failed, in bytes.
        offset: u64,
        /// Length of the part that failed, in bytes.
        bytes: u64,
        /// The system's error.
        source: io::Error,
    },
    /// An operation breaks the grain of direct I/O or leaves its buffer: a mistake in the program.
    #[error(
        "cannot {action} {} at byte {offset}, bytes {start}..{end} of a buffer of {held}: offset, start and length must be \
         multiples of 4096 and lie in the buffer; this is a bug, please report it", path.display()
    )]
    Misaligned {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Start in the buffer.
        start: usize,
        /// End in the buffer.
        end: usize,
        /// Bytes of the buffer.
        held: usize,
    },
    /// The program gave a file handle to a disk that has not opened it: a mistake in the program.
    #[error("cannot use {}: another disk opened it; this is a bug, please report it", path.display())]
    ForeignFile {
        /// The file.
        path: PathBuf,
    },
    /// A file that is read whole has more bytes than allowed.
    #[error("cannot read {}: it has more than {max} bytes; check the path", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Maximum of its bytes.
        max: u64,
    },
    /// The user asked for io_uring, and the system refuses it.
    #[error(
        "cannot use io_uring: {source}; use --io threads, or allow it (containers and sysctl kernel.io_uring_disabled forbid it)"
    )]
    NoUring {
        /// The system's error.
        source: io::Error,
    },
    /// The system starts no more threads.
    #[error(
        "cannot start a thread: {source}; use fewer threads (--threads), or raise the limit (ulimit -u)"
    )]
    Thread {
        /// The system's error.
        source: io::Error,
    },
    /// The threads belong to the process that this one was forked from.
    #[error(
        "this process is a copy (fork) of the one that began this run; open the graph and run again in this process"
    )]
    Forked,
    /// The memory budget has too few free bytes.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The system gave no memory although the budget allowed it.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// A kind of data cannot be placed as requested.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// An error of a job's step.
    #[error(transparent)]
    Job(JobError),
    /// A job panicked: a mistake in the program.
    #[error("worker {worker} panicked: {message}; this is a bug, please report it")]
    Panic {
        /// Index of the worker.
        worker: usize,
        /// The message of the panic.
        message: String,
    },
    /// All workers of a simulation wait, and no operation in flight can wake one: a mistake in the program.
    #[error("all workers wait for each other (seed {seed}); this is a bug, please report it")]
    Stuck {
        /// The simulation's seed.
        seed: u64,
    },
}

/// Names the action and the path in an error of the system.
///
/// # Errors
/// The error, as [`StorageError::Path`].
pub fn at<T, E: Into<io::Error>>(
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

/// Returns an error if a file that was read whole has more than `max` bytes.
pub(crate) fn at_most(max: u64, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    if bytes.len() as u64 <= max {
        return Ok(());
    }
    let path = path.to_path_buf();
    Err(StorageError::TooLarge { path, max })
}

/// Returns true if the system reports a full or failing disk.
///
/// Files of other processes do not cause such an error.
pub fn is_of_disk(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::ReadOnlyFilesystem
    ) || error.raw_os_error() == Some(libc::EIO)
}

/// Returns true if the system reports too many open files: no other directory can be opened then.
pub fn is_of_open_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

/// Returns a hint for an error of the system, or an empty text if the error says enough.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space there, or write elsewhere (the output, or temporary files by --tmp)"
        }
        io::ErrorKind::ReadOnlyFilesystem => ": choose another directory",
        io::ErrorKind::PermissionDenied => ": check who may use it",
        io::ErrorKind::NotFound => ": check the path, and whether new files can be made there",
        io::ErrorKind::FileTooLarge => ": raise the limit (ulimit -f), or use another file system",
        _ if error.raw_os_error() == Some(libc::EIO) => {
            "; the device failed, see the system's log (dmesg)"
        }
        _ if is_of_open_files(error) => ": raise the limit of open files (ulimit -n)",
        _ => "",
    }
}
