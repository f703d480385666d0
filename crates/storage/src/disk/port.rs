//! The port: what a [`Disk`] and a [`Queue`] do, and the words of their methods.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::StorageError;
use crate::memory_budget::Buffer;

/// The grain of direct I/O, in bytes.
///
/// Offsets, starts in the buffer and lengths of reads and writes are multiples of it.
pub const GRAIN_BYTES: usize = graphmill_raw::PAGE_BYTES;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// To read; it exists.
    Read,
    /// To read and write; it does not exist yet.
    Create,
    /// To read and write, for this user alone (mode 0600); it does not exist yet.
    CreatePrivate,
    /// To read and write; it exists.
    Update,
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
pub trait DiskFile: Any + Debug + Send + Sync {
    /// The path it was opened by.
    fn path(&self) -> &Path;

    /// Its length in bytes, now.
    ///
    /// # Errors
    /// The system cannot say.
    fn len(&self) -> Result<u64, StorageError>;
}

/// An open file, shared; closed when the last clone is dropped.
pub type FileHandle = Arc<dyn DiskFile>;

impl Open {
    /// True if the file must not exist yet.
    #[must_use]
    pub fn creates(self) -> bool {
        matches!(self, Open::Create | Open::CreatePrivate)
    }
}

/// How a directory is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// With others who share it.
    Shared,
    /// By one holder only.
    Alone,
    /// Without a lock: another process of this job has one, or the file system has none.
    Unlocked,
}

/// The owner of a held directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'o> {
    /// This user's. No link is followed, neither to it nor below it, as long as it is held.
    Own,
    /// This user's or one of these users', as for [`Owner::Own`].
    OwnOr(&'o [u32]),
    /// Anybody's, and links to it are followed: a directory that a user names.
    Anybody,
}

/// Where a write to a path goes, links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a regular file, which can be replaced; there may be none yet.
    File(PathBuf),
    /// To a pipe, a device or an open descriptor, which is written in place ([`Disk::stream`]).
    Stream,
}

/// A hold on a directory; dropping it releases the directory.
pub type DirLock = Box<dyn Any + Send + Sync>;

/// The properties of a file that change when it is written, replaced or renamed.
///
/// Size and time of modification alone can be kept while the bytes change (`cp -p`, `touch -r`, `rsync -t`); the number of the
/// file and the time of its last change of any kind cannot. What the stamp misses is a change within the same tick of the file
/// system's clock, a few milliseconds, that keeps the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Number of the file in its file system.
    pub inode: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When bytes were last written: seconds and nanoseconds since 1970. Programs can set it.
    pub modified: (i64, i64),
    /// When bytes, name or rights last changed. The system alone sets it.
    pub changed: (i64, i64),
}

/// The files of a machine. All methods block; all paths in their errors are those given.
pub trait Disk: Send + Sync + Debug {
    /// Opens a regular file; with direct I/O where the file system takes it.
    ///
    /// # Errors
    /// [`StorageError::Path`]: no such file, there is one already ([`Open::Create`]), not a regular file, no permission.
    fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError>;

    /// A queue that carries out at most `depth` operations at a time.
    ///
    /// # Errors
    /// The system gives no more rings or threads.
    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError>;

    /// Makes a directory and those above it, durably; nothing happens where it exists.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn create_dir_all(&self, path: &Path) -> Result<(), StorageError>;

    /// Makes one directory that only this user can enter (mode 0700), unless it exists.
    ///
    /// After a power cut the directory may be gone, unless [`Disk::sync_dir`] was called on its parent.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the parent does not exist.
    fn create_dir(&self, path: &Path) -> Result<(), StorageError>;

    /// Renames a file or directory, durably and atomically.
    ///
    /// A file replaces a file of the new name, and a directory replaces an empty directory.
    /// The caller must have synced the file or directory before.
    ///
    /// # Errors
    /// [`StorageError::Path`]: no such file, another file system, a directory that is not empty.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError>;

    /// Exchanges the names of two files or directories of one file system, durably and atomically.
    ///
    /// # Errors
    /// [`StorageError::Path`]: no such file; the file system cannot do it ([`Unsupported`](std::io::ErrorKind::Unsupported)).
    fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError>;

    /// Removes a file.
    ///
    /// After a power cut the file may be back, unless [`Disk::sync_dir`] was called on its directory.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn remove_file(&self, path: &Path) -> Result<(), StorageError>;

    /// Removes a directory in which there is nothing; durable as [`Disk::remove_file`] is.
    ///
    /// # Errors
    /// [`StorageError::Path`]: no such directory, or there is something in it.
    fn remove_dir(&self, path: &Path) -> Result<(), StorageError>;

    /// Removes a directory with all that is in it; durable as [`Disk::remove_file`] is.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError>;

    /// Locks a directory until the returned hold is dropped or the process ends; `None` if others hold it.
    ///
    /// Any number of holders share a directory, or one has it alone. The lock keeps no other use from the directory.
    /// Also returns `None` if the directory no longer exists.
    ///
    /// As long as it is held, paths below it lead to this directory, even if another directory gets its name.
    /// This does not hold for a directory that is [anybody's](Owner::Anybody).
    ///
    /// # Errors
    /// [`StorageError::NotOwn`]: it is a link, or not a directory of this owner. [`StorageError::Path`]: the file system has no locks
    /// ([`locks_unsupported`](crate::locks_unsupported)), or it may not be opened.
    fn hold(
        &self,
        dir: &Path,
        how: LockMode,
        owner: Owner<'_>,
    ) -> Result<Option<DirLock>, StorageError>;

    /// Gives others the rights to a directory of this user that they have to the one at `like`.
    ///
    /// If `like` does not exist, others get the rights that they have to new directories.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn share(&self, dir: &Path, like: &Path) -> Result<(), StorageError>;

    /// The user id that a file or directory belongs to; links are followed.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn owner(&self, path: &Path) -> Result<u32, StorageError>;

    /// Where a write to `path` goes.
    ///
    /// # Errors
    /// [`StorageError::Path`]: links go in circles, lead where this user may not write, or were put there by another user.
    fn target(&self, path: &Path) -> Result<Target, StorageError>;

    /// Opens a [`Target::Stream`], to write at its end.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn stream(&self, path: &Path) -> Result<Box<dyn io::Write + Send>, StorageError>;

    /// Gives `file`, which will replace the one at `path`, that file's mode.
    ///
    /// It also gives it that file's owner, if this user may do so.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn inherit(&self, file: &FileHandle, path: &Path) -> Result<(), StorageError>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn sync_dir(&self, path: &Path) -> Result<(), StorageError>;

    /// The paths in a directory, sorted.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError>;

    /// True if there is a directory of that name.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the system cannot say.
    fn is_dir(&self, path: &Path) -> Result<bool, StorageError>;

    /// True if there is anything of that name.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the system cannot say.
    fn exists(&self, path: &Path) -> Result<bool, StorageError>;

    /// Returns the stamp of a file or directory, which changes with every write, replacement and rename.
    ///
    /// Links are followed.
    ///
    /// # Errors
    /// [`StorageError::Path`]: there is nothing of that name, or the system cannot say.
    fn stamp(&self, path: &Path) -> Result<FileIdentity, StorageError>;

    /// All bytes of a file that has at most `max` of them.
    ///
    /// # Errors
    /// [`StorageError::TooLarge`], [`StorageError::Path`].
    fn read_small(&self, path: &Path, max: u64) -> Result<Vec<u8>, StorageError>;

    /// Writes a whole file durably and atomically: readers find the old bytes or the new.
    ///
    /// The same holds after a power cut. A replaced file keeps its mode; a link is replaced itself.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError>;

    /// Cuts a file off, or extends it by zeros.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError>;

    /// Reserves space for the first `bytes` bytes of a file and extends the file to that length.
    ///
    /// Later writes there cannot find the disk full. The call does nothing if the file system cannot reserve space.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the disk is full.
    fn reserve(&self, file: &FileHandle, bytes: u64) -> Result<(), StorageError>;

    /// Makes a file's bytes and length durable.
    ///
    /// After an error the bytes may be lost even if a later sync succeeds: write another file.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn sync(&self, file: &FileHandle) -> Result<(), StorageError>;

    /// Bytes that can still be written where `path` lies.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn free_bytes(&self, path: &Path) -> Result<u64, StorageError>;

    /// True if a directory is on a well-known local file system of this machine.
    ///
    /// The directory need not exist yet. Other machines may still reach the file system through this one.
    fn is_local(&self, folder: &Path) -> bool;
}

/// An operation of a [`Queue`], which owns the buffer until the operation is complete.
#[derive(Debug)]
pub enum Operation {
    /// From byte `offset` of the file on, into `range` of the buffer.
    Read {
        /// From which file.
        file: FileHandle,
        /// Where in the file: a multiple of [`GRAIN_BYTES`].
        offset: u64,
        /// Memory to read into.
        buffer: Buffer,
        /// Which bytes of it: start and length are multiples of [`GRAIN_BYTES`].
        range: Range<usize>,
    },
    /// `range` of the buffer to byte `offset` of the file and on. The file grows as needed.
    Write {
        /// Into which file.
        file: FileHandle,
        /// Where in the file: a multiple of [`GRAIN_BYTES`].
        offset: u64,
        /// Memory to write from.
        buffer: Buffer,
        /// Which bytes of it: start and length are multiples of [`GRAIN_BYTES`].
        range: Range<usize>,
    },
    /// Makes all bytes whose writes were complete durable, as [`Disk::sync`] does.
    Sync {
        /// The file to sync.
        file: FileHandle,
    },
}

/// A finished operation.
#[derive(Debug)]
pub struct Completion {
    /// The token that the operation was submitted with.
    pub token: u64,
    /// Its buffer; lost (`None`) in a sync, and when the kernel fails in a way that leaves it in doubt.
    pub buffer: Option<Buffer>,
    /// Bytes moved. A read moves fewer than asked only where the file ends; a write moves all; a sync 0.
    pub result: Result<usize, StorageError>,
}

/// Operations on their way, in no order: a read may overtake a write that was submitted before it.
///
/// One thread uses a queue at a time. Dropping a queue waits for what the system is carrying out and drops the rest.
pub trait Queue: Send + Debug {
    /// Submits an operation, without blocking.
    ///
    /// Operations beyond the queue's depth wait inside it. Every error comes with the completion.
    fn submit(&mut self, operation: Operation, token: u64);

    /// A complete operation, if there is one.
    fn poll(&mut self) -> Option<Completion>;

    /// Blocks until [`Queue::poll`] has something to give, or nothing is in flight.
    fn block(&mut self);

    /// Operations submitted whose completions have not been taken.
    fn in_flight(&self) -> usize;

    /// Blocks until an operation is complete; `None` when nothing is in flight.
    fn wait(&mut self) -> Option<Completion> {
        while self.in_flight() > 0 {
            if let Some(completion) = self.poll() {
                return Some(completion);
            }
            self.block();
        }
        None
    }
}

/// How a machine's disk is read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum IoChoice {
    /// io_uring if the system allows it, else threads.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// Threads that call pread and pwrite.
    ///
    /// For kernels and containers without io_uring, and for tools that watch system calls.
    Threads,
}
