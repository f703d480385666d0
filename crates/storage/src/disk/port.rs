//! The port: what a [`Disk`] and a [`Queue`] do, and the words of their methods.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::budget::Buffer;
use crate::error::StorageError;

/// Offsets, starts in the buffer and lengths of reads and writes are multiples of this, in bytes: the grain of direct I/O.
pub const GRAIN_BYTES: usize = graphmill_raw::PAGE_BYTES;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// To read; it exists.
    Read,
    /// To read and write; it does not exist yet.
    Create,
    /// The same, for this user alone (mode 0600): a temporary copy of input.
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
pub enum Holding {
    /// With others who share it.
    Shared,
    /// By nobody else.
    Alone,
    /// Without a lock: another process of this job has one, or the file system has none.
    Unlocked,
}

/// Whose directory is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'o> {
    /// This user's. No link is followed, neither to it nor below it, as long as it is held.
    Own,
    /// The same, but it may also belong to one of these users.
    OwnOr(&'o [u32]),
    /// Anybody's, and links to it are followed: a directory that a user names.
    Anybody,
}

/// Where a write to a path goes, links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a regular file, which can be replaced; there may be none yet.
    File(PathBuf),
    /// To something else, such as a pipe, a device or an open descriptor, which is written in place ([`Disk::stream`]).
    Stream,
}

/// A directory that is held; let go of by dropping.
pub type Hold = Box<dyn Any + Send + Sync>;

/// What of a file changes when it is written, replaced or renamed.
///
/// Size and time of modification alone can be kept while the bytes change (`cp -p`, `touch -r`, `rsync -t`); the number of the
/// file and the time of its last change of any kind cannot. What the stamp misses is a change within the same tick of the file
/// system's clock, a few milliseconds, that keeps the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
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

    /// Makes one directory that only this user can enter (mode 0700); nothing happens where it exists. After a power cut it may be gone
    /// unless [`Disk::sync_dir`] was called on the one that it is in.
    ///
    /// # Errors
    /// [`StorageError::Path`]: there is nothing that it could be in.
    fn create_dir(&self, path: &Path) -> Result<(), StorageError>;

    /// Gives a file or directory another name, durably and at one stroke. A file that has the name is replaced, and so is an
    /// empty directory by a directory. What is renamed must have been synced before.
    ///
    /// # Errors
    /// [`StorageError::Path`]: no such file, another file system, a directory that is not empty.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError>;

    /// Has two files or directories of one file system change names, durably and at one stroke.
    ///
    /// # Errors
    /// [`StorageError::Path`]: no such file; the file system cannot do it ([`Unsupported`](std::io::ErrorKind::Unsupported)).
    fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError>;

    /// Removes a file. After a power cut it may be back unless [`Disk::sync_dir`] was called on its directory.
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

    /// Takes hold of a directory, until what it gives is dropped or the process ends in whatever way. A directory is held by any
    /// number who share it, or by one who has it alone; nothing else is kept from using it. `None`: others hold it, or there is
    /// no such directory any more.
    ///
    /// As long as it is held, paths below one that is not [anybody's](Owner::Anybody) lead to this directory, whatever has its name by then.
    ///
    /// # Errors
    /// [`StorageError::NotOwn`]: it is a link, or not a directory of this owner. [`StorageError::Path`]: the file system has no locks
    /// ([`has_no_locks`](crate::has_no_locks)), or it may not be opened.
    fn hold(
        &self,
        dir: &Path,
        how: Holding,
        owner: Owner<'_>,
    ) -> Result<Option<Hold>, StorageError>;

    /// Lets others use a directory that was made for this user alone, as far as the directory at `like` lets them; as far as new ones do,
    /// where there is none.
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

    /// Gives a file that is to replace the one at `path` the mode of that one, and its owner where this user can do so.
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

    /// Whether there is a directory of that name.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the system cannot say.
    fn is_dir(&self, path: &Path) -> Result<bool, StorageError>;

    /// Whether there is anything of that name.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the system cannot say.
    fn exists(&self, path: &Path) -> Result<bool, StorageError>;

    /// What tells the file or directory of that name from one that was written, replaced or renamed since; links are followed.
    ///
    /// # Errors
    /// [`StorageError::Path`]: there is nothing of that name, or the system cannot say.
    fn stamp(&self, path: &Path) -> Result<FileStamp, StorageError>;

    /// All bytes of a file that has at most `max` of them.
    ///
    /// # Errors
    /// [`StorageError::TooLarge`], [`StorageError::Path`].
    fn read_small(&self, path: &Path, max: u64) -> Result<Vec<u8>, StorageError>;

    /// Writes a whole file durably and at one stroke: readers, and whoever looks after a power cut, find the old bytes or the new.
    /// A file that is replaced keeps its mode; a link is replaced itself.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError>;

    /// Cuts a file off, or extends it by zeros.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError>;

    /// Has the file system set aside space for the first `bytes` bytes of a file, which gets at least so long, so that writes there do not
    /// find the disk full. Where the file system knows nothing of the kind, nothing happens.
    ///
    /// # Errors
    /// [`StorageError::Path`]: the disk is full.
    fn reserve(&self, file: &FileHandle, bytes: u64) -> Result<(), StorageError>;

    /// Makes a file's bytes and length durable. After an error they may be lost whatever is done: write another file.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn sync(&self, file: &FileHandle) -> Result<(), StorageError>;

    /// Bytes that can still be written where `path` lies.
    ///
    /// # Errors
    /// [`StorageError::Path`].
    fn free_bytes(&self, path: &Path) -> Result<u64, StorageError>;

    /// Whether a folder, which may yet have to be made, is on a file system of this machine, of those that are well known. Others may have it
    /// too, by way of this one.
    fn is_local(&self, folder: &Path) -> bool;
}

/// What a [`Queue`] carries out. The buffer is away until the operation is complete.
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
        /// Of which file.
        file: FileHandle,
    },
}

/// An operation that has come to its end.
#[derive(Debug)]
pub struct Completion {
    /// What the operation was submitted with.
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
    /// Takes an operation. Never blocks: beyond the depth, operations wait inside. Every error comes with the completion.
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
pub enum IoChoice {
    /// io_uring where it is to be had, else threads.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// Threads that call pread and pwrite: for kernels and containers without io_uring, and for tools that watch system calls.
    Threads,
}
