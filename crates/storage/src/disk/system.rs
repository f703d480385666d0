//! The files of this machine, by Linux's system calls.
//!
//! Files are opened for direct I/O, so that what streams by leaves no copies in the page cache, and through it where
//! the file system cannot do better. What must survive a power cut is synced before a name points to it.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use graphmill_raw::uring::Ring;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::threads::{Pool, ThreadsQueue};
use super::transfer::own;
use super::uring::UringQueue;
use super::{
    Disk, DiskFile, FileHandle, FileStamp, GRAIN_BYTES, Hold, Holding, IoChoice, Open, Queue,
};
use crate::error::StorageError;

/// File systems of a machine alone: ext, XFS, Btrfs, F2FS, bcachefs, ZFS, tmpfs, and what containers have over these.
const LOCAL: [u32; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0x0102_1994,
    0x794c_7630,
];

/// How long the kernel may take to start a thread for a ring.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// The disk of this machine.
#[derive(Debug)]
pub(crate) struct SystemDisk {
    choice: IoChoice,
    /// The threads that move bytes where no ring does, once there is such a queue.
    pool: Mutex<Option<Arc<Pool>>>,
}

impl SystemDisk {
    /// With io_uring, with threads that call pread and pwrite, or with threads where a ring is refused: the kernel has none,
    /// does not allow it, allows no more of them, or can start no thread for one.
    ///
    /// # Errors
    /// [`StorageError::NoUring`] where rings are asked for and refused, [`StorageError::Thread`] where not even one thread can be
    /// started.
    pub(crate) fn new(choice: IoChoice) -> Result<Self, StorageError> {
        let choice = match choice {
            IoChoice::Threads => choice,
            _ => match Ring::<()>::probe(PROBE_PATIENCE) {
                Ok(()) => choice,
                Err(_) if choice == IoChoice::Auto => IoChoice::Threads,
                Err(source) => return Err(StorageError::NoUring { source }),
            },
        };
        let disk = SystemDisk {
            choice,
            pool: Mutex::default(),
        };
        // A small queue shows whether others will do.
        disk.queue(1)?;
        Ok(disk)
    }

    fn threads(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = match &*pool {
            Some(pool) => pool,
            None => pool.insert(Arc::new(Pool::new()?)),
        };
        Ok(Box::new(ThreadsQueue::new(Arc::clone(pool), depth)))
    }
}

/// A file of this machine.
#[derive(Debug)]
pub(super) struct SystemFile {
    path: PathBuf,
    descriptor: Arc<OwnedFd>,
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

impl Disk for SystemDisk {
    fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError> {
        let descriptor = at("open", path, open(path, how))?;
        Ok(Arc::new(SystemFile {
            path: path.to_path_buf(),
            descriptor: Arc::new(descriptor),
        }))
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError> {
        if self.choice == IoChoice::Threads {
            return self.threads(depth);
        }
        match UringQueue::new(depth) {
            Ok(queue) => Ok(Box::new(queue)),
            Err(_) if self.choice == IoChoice::Auto => self.threads(depth),
            Err(refused) => Err(refused),
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        let missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.is_dir();
        let missing: Vec<&Path> = path.ancestors().take_while(missing).collect();
        for dir in missing.into_iter().rev() {
            self.create_dir(dir)?;
            self.sync_dir(parent(dir))?;
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<(), StorageError> {
        match std::fs::create_dir(path) {
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => at("make directory", path, made),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError> {
        at("rename", from, rustix::fs::rename(from, to))?;
        self.sync_dir(parent(to))?;
        if parent(from) == parent(to) {
            Ok(())
        } else {
            self.sync_dir(parent(from))
        }
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let exchanged = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
        let exchanged = exchanged.map_err(|error| match error {
            // What NFS and others say that do not know the flag.
            Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => io::ErrorKind::Unsupported.into(),
            error => io::Error::from(error),
        });
        at("exchange", one, exchanged)?;
        self.sync_dir(parent(one))?;
        match parent(one) == parent(other) {
            true => Ok(()),
            false => self.sync_dir(parent(other)),
        }
    }

    fn remove_file(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, std::fs::remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, std::fs::remove_dir(path))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, std::fs::remove_dir_all(path))
    }

    fn hold(&self, dir: &Path, how: Holding) -> Result<Option<Hold>, StorageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = match rustix::fs::open(dir, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => at("open", dir, opened)?,
        };
        let lock = match how {
            Holding::Shared => FlockOperation::NonBlockingLockShared,
            Holding::Alone => FlockOperation::NonBlockingLockExclusive,
        };
        match rustix::fs::flock(&descriptor, lock) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => at("lock", dir, locked)?,
        }
        // Whoever held it before may have removed it, or given it another name.
        let held = at("look at", dir, rustix::fs::fstat(&descriptor))?;
        let is_it = match rustix::fs::stat(dir) {
            Err(Errno::NOENT) => false,
            named => {
                let named = at("look at", dir, named)?;
                (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
            }
        };
        Ok(is_it.then(|| Box::new(descriptor) as Hold))
    }

    fn sync_dir(&self, path: &Path) -> Result<(), StorageError> {
        let open = rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        match rustix::fs::fsync(at("open", path, open)?) {
            // Some file systems sync no directories, and need not.
            Err(Errno::INVAL) => Ok(()),
            synced => at("sync", path, synced),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError> {
        let entries = at("list", dir, std::fs::read_dir(dir))?;
        let paths = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect();
        let mut paths: Vec<PathBuf> = at("list", dir, paths)?;
        paths.sort();
        Ok(paths)
    }

    fn is_dir(&self, path: &Path) -> Result<bool, StorageError> {
        found(
            path,
            std::fs::metadata(path).map(|metadata| metadata.is_dir()),
        )
    }

    fn exists(&self, path: &Path) -> Result<bool, StorageError> {
        found(path, std::fs::symlink_metadata(path).map(|_| true))
    }

    fn stamp(&self, path: &Path) -> Result<FileStamp, StorageError> {
        let facts = at("look at", path, std::fs::metadata(path))?;
        Ok(FileStamp {
            inode: facts.ino(),
            bytes: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    fn read_small(&self, path: &Path, max: u64) -> Result<Vec<u8>, StorageError> {
        let mut bytes = Vec::new();
        let file = at("open", path, OpenOptions::new().read(true).open(path))?;
        at(
            "read",
            path,
            file.take(max.saturating_add(1)).read_to_end(&mut bytes),
        )?;
        if bytes.len() as u64 > max {
            return Err(StorageError::TooLarge {
                path: path.to_path_buf(),
                max,
            });
        }
        Ok(bytes)
    }

    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (aside, file) = loop {
            let mut name = std::ffi::OsString::from(".");
            name.push(path.file_name().unwrap_or_default());
            name.push(format!(
                ".{}-{}.aside",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            ));
            let aside = path.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&aside) {
                // Of a process that was killed and had this one's number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => break (aside, at("write", path, file)?),
            }
        };
        let write = || {
            let mut file = file;
            file.write_all(bytes)?;
            file.sync_all()
        };
        let written = at("write", path, write())
            .and_then(|()| at("rename to", path, rustix::fs::rename(&aside, path)));
        if written.is_err() {
            // The first error is the one to tell.
            let _ = std::fs::remove_file(&aside);
            return written;
        }
        self.sync_dir(parent(path))
    }

    fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError> {
        let file: Arc<SystemFile> = own(file)?;
        at(
            "set the length of",
            &file.path,
            rustix::fs::ftruncate(&*file.descriptor, len),
        )
    }

    fn reserve(&self, file: &FileHandle, bytes: u64) -> Result<(), StorageError> {
        use rustix::fs::{FallocateFlags, fallocate};
        let file: Arc<SystemFile> = own(file)?;
        let reserve = || fallocate(&*file.descriptor, FallocateFlags::empty(), 0, bytes);
        match rustix::io::retry_on_intr(reserve) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            done => at("set aside space for", &file.path, done),
        }
    }

    fn sync(&self, file: &FileHandle) -> Result<(), StorageError> {
        let file: Arc<SystemFile> = own(file)?;
        at("sync", &file.path, rustix::fs::fdatasync(&*file.descriptor))
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, StorageError> {
        let stat = at("look at", path, rustix::fs::statvfs(path))?;
        // File systems without a size of their own, such as ramfs, say nothing.
        Ok(match stat.f_blocks {
            0 => u64::MAX,
            _ => stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }

    fn is_local(&self, folder: &Path) -> bool {
        // One that is to be made will be where the one above it is.
        let mut there = folder
            .ancestors()
            .map(|above| match above.as_os_str().is_empty() {
                true => Path::new("."),
                false => above,
            });
        let facts = there.find_map(|above| rustix::fs::statfs(above).ok());
        facts.is_some_and(|facts| LOCAL.contains(&(facts.f_type as u32)))
    }
}

fn open(path: &Path, how: Open) -> io::Result<OwnedFd> {
    let flags = OFlags::CLOEXEC
        | match how {
            Open::Read => OFlags::RDONLY,
            Open::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Open::Update => OFlags::RDWR,
        };
    if how != Open::Create {
        // Before opening: a pipe would block there.
        match FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "not a regular file",
                ));
            }
        }
    }
    let mode = Mode::from_raw_mode(0o666);
    match rustix::fs::open(path, flags | OFlags::DIRECT, mode) {
        Ok(descriptor) => {
            if !takes_direct(&descriptor) {
                rustix::fs::fcntl_setfl(
                    &descriptor,
                    rustix::fs::fcntl_getfl(&descriptor)? - OFlags::DIRECT,
                )?;
            }
            Ok(descriptor)
        }
        Err(Errno::INVAL) => {
            // No direct I/O here. Some kernels notice that only after they have made the file.
            Ok(rustix::fs::open(path, flags - OFlags::EXCL, mode)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether direct I/O at our grain suits the file; kernels before 6.1 do not say, then it is taken to.
fn takes_direct(descriptor: &OwnedFd) -> bool {
    let Ok(stat) = rustix::fs::statx(descriptor, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
    else {
        return true;
    };
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN);
    let suits = |align: u32| align > 0 && GRAIN_BYTES.is_multiple_of(align as usize);
    !known || suits(stat.stx_dio_offset_align) && suits(stat.stx_dio_mem_align)
}

fn at<T, E: Into<io::Error>>(
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

fn found(path: &Path, result: io::Result<bool>) -> Result<bool, StorageError> {
    match result {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(false)
        }
        result => at("look at", path, result),
    }
}

/// The directory a path is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        // The root is in itself.
        None => path,
        Some(_) => Path::new("."),
    }
}
