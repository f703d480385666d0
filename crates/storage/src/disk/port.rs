//! The port: [`Disk`], [`Queue`], and the types of their methods.

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

/// The way to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// For reading; the file exists.
    Read,
    /// For reading and writing; the file does not exist yet.
    Create,
    /// For reading and writing, by this user only (mode 0600); the file does not exist yet.
    CreatePrivate,
    /// For reading and writing; the file exists.
    Update,
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
pub trait DiskFile: Any + Debug + Send + Sync {
    /// Returns the path it was opened by.
    fn path(&self) -> &Path;

    /// Returns its current length in bytes.
    ///
    /// # Errors
    /// The system does not report it.
    fn len(&self) -> Result<u64, StorageError>;
}

/// An open file, shared; closed when the last clone is dropped.
pub type FileHandle = Arc<dyn DiskFile>;

impl Open {
    /// Returns true if the file must not exist yet.
    #[must_use]
    pub fn creates(self) -> bool {
        matches!(self, Open::Create | Open::CreatePrivate)
    }
}

/// The way to lock a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Shared with other holders.
    Shared,
    /// By one holder only.
    Alone,
    /// Without a lock: another process of this job has one, or the file system has none.
    Unlocked,
}

/// The owner of a held directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'o> {
    /// This user. No link is followed, neither to the directory nor below it, as long as it is held.
    Own,
    /// This user or one of these users. Links are as for [`Owner::Own`].
    OwnOr(&'o [u32]),
    /// Any user, and links to the directory are followed: for a directory that a user names.
    Anybody,
}

/// The target of a write to a path, links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A regular file, which can be replaced; it may not exist yet.
    File(PathBuf),
    /// A pipe, a device or an open descriptor, which is written in place ([`Disk::stream`]).
    Stream,
}

/// A hold on a directory; dropping it releases the directory.
pub type DirLock = Box<dyn Any + Send + Sync>;

/// The properties of a file that change when it is written, replaced or renamed.
///
/// Programs can keep size and time of modification while the bytes change (`cp -p`, `touch -r`, `rsync -t`). They cannot keep the inode
/// number and the time of the last change of any kind. The stamp misses only a change that keeps the size, within one tick of the file
/// system's clock, a few milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Inode number of the file.
    pub inode: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last write: seconds and nanoseconds since 1970. Programs can set it.
    pub modified: (i64, i64),
    /// Time of the last change of bytes, name or permissions. Only the system sets it.
    pub changed: (i64, i64),
}

/// The files of a machine. All methods block. The paths in errors are the given ones.
pub trait Disk: Send + Sync + Debug {
    /// Opens a regular file, with direct I/O if the file system supports it.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the file does not exist or exists already ([`Open::Create`]), is not regular, or may not be opened.
    fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError>;

    /// Returns a queue that carries out at most `depth` operations at a time.
    ///
    /// # Errors
    /// The system gives no more rings or threads.
    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError>;

    /// Makes a directory and those above it, durably; does nothing if it exists.
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

    /// Removes an empty directory; as durable as [`Disk::remove_file`].
    ///
    /// # Errors
    /// [`StorageError::Path`]: the directory does not exist or is not empty.
    fn remove_dir(&self, path: &Path) -> Result<(), StorageError>;

    /// Removes a directory with its contents; as durable as [`Disk::remove_file`].
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError>;

    /// Locks a directory until the returned hold is dropped or the process ends; `None` if others hold it.
    ///
    /// Any number of holders share a directory, or one has it alone. The lock is advisory: it prevents no other use of the directory.
    /// Also returns `None` if the directory no longer exists.
    ///
    /// As long as it is held, paths below it lead to this directory, even if another directory gets its name.
    /// This is not so for [`Owner::Anybody`].
    ///
    /// # Errors
    /// - [`StorageError::NotOwn`]: it is a link, or not a directory of this owner.
    /// - [`StorageError::Path`]: the file system has no locks ([`locks_unsupported`](crate::locks_unsupported)), or the directory may not
    ///   be opened.
    fn hold(
        &self,
        dir: &Path,
        how: LockMode,
        owner: Owner<'_>,
    ) -> Result<Option<DirLock>, StorageError>;

    /// Gives other users the permissions on a directory of this user that they have on `like`.
    ///
    /// If `like` does not exist, they get the permissions that they have on new directories.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn share(&self, dir: &Path, like: &Path) -> Result<(), StorageError>;

    /// Returns the user id that a file or directory belongs to; links are followed.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn owner(&self, path: &Path) -> Result<u32, StorageError>;

    /// Returns the target of a write to `path`.
    ///
    /// # Errors
    /// [`StorageError::Path`]: links form a circle, lead where this user may not write, or were made by another user.
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

    /// Returns the paths in a directory, sorted.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError>;

    /// Returns true if there is a directory of that name.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the system does not report it.
    fn is_dir(&self, path: &Path) -> Result<bool, StorageError>;

    /// Returns true if there is anything of that name.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the system does not report it.
    fn exists(&self, path: &Path) -> Result<bool, StorageError>;

    /// Returns the stamp of a file or directory, which changes with every write, replacement and rename.
    ///
    /// Links are followed.
    ///
    /// # Errors
    /// [`StorageError::Path`]: there is nothing of that name, or the system does not report it.
    fn stamp(&self, path: &Path) -> Result<FileIdentity, StorageError>;

    /// Returns all bytes of a file that has at most `max` bytes.
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

    /// Truncates a file, or extends it by zeros.
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

    /// Returns the bytes that can still be written on the file system of `path`.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn free_bytes(&self, path: &Path) -> Result<u64, StorageError>;

    /// Returns true if a directory is on a well-known local file system of this machine.
    ///
    /// The directory need not exist yet. Other machines may still reach the file system through this one.
    fn is_local(&self, folder: &Path) -> bool;
}

/// An operation of a [`Queue`], which owns the buffer until the operation is complete.
#[derive(Debug)]
pub enum Operation {
    /// Reads from byte `offset` of the file on, into `range` of the buffer.
    Read {
        /// The file to read.
        file: FileHandle,
        /// Offset in the file: a multiple of [`GRAIN_BYTES`].
        offset: u64,
        /// Memory to read into.
        buffer: Buffer,
        /// The bytes of it to fill: start and length are multiples of [`GRAIN_BYTES`].
        range: Range<usize>,
    },
    /// Writes `range` of the buffer to byte `offset` of the file and on. The file grows as needed.
    Write {
        /// The file to write.
        file: FileHandle,
        /// Offset in the file: a multiple of [`GRAIN_BYTES`].
        offset: u64,
        /// Memory to write from.
        buffer: Buffer,
        /// The bytes of it to write: start and length are multiples of [`GRAIN_BYTES`].
        range: Range<usize>,
    },
    /// Makes the bytes of all complete writes durable, as [`Disk::sync`] does.
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
    /// Its buffer; `None` for a sync, and if the kernel failed and may still use the memory.
    pub buffer: Option<Buffer>,
    /// Bytes moved.
    ///
    /// A read moves fewer than requested only at the end of the file. A write moves all. A sync moves 0.
    pub result: Result<usize, StorageError>,
}

/// Operations in flight, in no order: a read may overtake a write that was submitted before it.
///
/// One thread uses a queue at a time. Dropping a queue waits for the operations that the system carries out and drops the rest.
pub trait Queue: Send + Debug {
    /// Submits an operation, without blocking.
    ///
    /// Operations beyond the queue's depth wait inside it. Every error comes with the completion.
    fn submit(&mut self, operation: Operation, token: u64);

    /// Returns a complete operation, if there is one.
    fn poll(&mut self) -> Option<Completion>;

    /// Blocks until [`Queue::poll`] has a completion to return, or nothing is in flight.
    fn block(&mut self);

    /// Returns the number of submitted operations whose completions were not taken.
    fn in_flight(&self) -> usize;

    /// Blocks until an operation is complete and returns it; `None` if nothing is in flight.
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

/// The way to read and write a machine's disk.
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
