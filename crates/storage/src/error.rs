//! Errors of the machine.

use std::io;
use std::path::PathBuf;

use graphmill_raw::OutOfMemory;

use crate::placement::error::PlacementError;

/// A lease that the budget cannot give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error(
    "{what} would take {asked} bytes of memory, and {available} of the budget of {total} bytes are free: give more (--memory)"
)]
pub struct BudgetError {
    /// The purpose of the memory.
    pub what: &'static str,
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes that were free.
    pub available: u64,
    /// Bytes of the whole budget.
    pub total: u64,
}

/// A box for the error of a job's own step.
pub type JobError = Box<dyn std::error::Error + Send + Sync>;

/// Why the machine did not do what was asked.
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
    /// A directory is a link, or another user decides its contents, so this program cannot trust it.
    #[error(
        "cannot use {}: {what}; move it away, or work where no other user can write (the output, or --tmp)", path.display()
    )]
    NotOwn {
        /// Which directory.
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
        /// Where in the file the part that failed begins, in bytes.
        offset: u64,
        /// Length of the part that failed.
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
        /// Where in the file, in bytes.
        offset: u64,
        /// Where in the buffer.
        start: usize,
        /// End in the buffer.
        end: usize,
        /// Bytes of the buffer.
        held: usize,
    },
    /// A file handle was given to a disk that has not opened it: a mistake in the program.
    #[error("{} was opened by another disk; this is a bug, please report it", path.display())]
    ForeignFile {
        /// Which file.
        path: PathBuf,
    },
    /// A file that is read whole has more bytes than it may.
    #[error("{} has more than {max} bytes and is not what it should be: check the path", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The most bytes it may have.
        max: u64,
    },
    /// The user asked for io_uring, and the system refuses it.
    #[error(
        "io_uring cannot be used here ({source}): use --io threads, or allow it (containers and sysctl kernel.io_uring_disabled forbid it)"
    )]
    NoUring {
        /// The system's error.
        source: io::Error,
    },
    /// The system starts no more threads.
    #[error(
        "cannot start a thread ({source}): use fewer threads (--threads), or raise the limit (ulimit -u)"
    )]
    Thread {
        /// The system's error.
        source: io::Error,
    },
    /// The memory budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The system gave no memory although the budget allowed it.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// A kind of data cannot lie where it was to.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A job's own error, as it was.
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
    /// All workers of a simulation wait, and no operation in flight can wake one: a bug.
    #[error("all workers wait for each other (seed {seed}); this is a bug, please report it")]
    Stuck {
        /// The simulation's seed.
        seed: u64,
    },
}

/// True if the system reports a full or failing disk, which other processes' files do not cause.
pub fn is_of_disk(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::ReadOnlyFilesystem
    ) || error.raw_os_error() == Some(libc::EIO)
}

/// True if the system reports too many open files, so that no other directory can be opened either.
pub fn is_of_open_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

/// Returns a hint for an error of the system, or nothing if the error says enough.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space there, or write elsewhere (the output, or temporary files by --tmp)"
        }
        io::ErrorKind::ReadOnlyFilesystem => ": choose another directory",
        io::ErrorKind::PermissionDenied => ": check who may use it",
        io::ErrorKind::NotFound => ": check the path, and whether new files can be made there",
        io::ErrorKind::FileTooLarge => ": raise the limit (ulimit -f), or use another file system",
        _ if error.raw_os_error() == Some(libc::EIO) => {
            ": the device failed, see the system's log (dmesg)"
        }
        _ if is_of_open_files(error) => ": raise the limit of open files (ulimit -n)",
        _ => "",
    }
}
