//! The files of this machine, through the system calls of Linux.
//!
//! Files are opened for direct I/O, so that streamed bytes leave no copies in the page cache. If the file system does not support it, they
//! are opened without. Bytes that must survive a power cut are synced before a name points to them.

mod dirs;
mod files;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graphmill_raw::lock;
use graphmill_raw::uring::Ring;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, renameat, renameat_with,
};
use rustix::io::{Errno, retry_on_intr};

use self::dirs::HeldDirs;
use self::files::{inherit, is, open, parent, target};
use super::port::{
    DirLock, Disk, FileHandle, FileIdentity, IoChoice, LockMode, Open, Owner, Queue, Target,
};
use super::system_file::SystemFile;
use super::threads::{Pool, ThreadsQueue};
use super::transfer::own;
use super::uring::UringQueue;
use crate::error::{StorageError, at, at_most};

/// The types of local file systems, which only one machine has.
///
/// These are ext, XFS, Btrfs, F2FS, bcachefs, ZFS, tmpfs, and the overlays of containers.
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

/// Time that the kernel may take to start a thread for a ring.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// The disk of this machine.
#[derive(Debug)]
pub(crate) struct SystemDisk {
    choice: IoChoice,
    /// The threads that move bytes if no ring does.
    pool: Arc<Pool>,
    dirs: Arc<HeldDirs>,
    /// Closed when no descriptor is left to remove leftovers with.
    spare: Mutex<Option<OwnedFd>>,
}

impl SystemDisk {
    /// Makes a disk that uses io_uring, or threads that call pread and pwrite.
    ///
    /// `Auto` chooses threads if the kernel refuses a ring: it has none, does not allow one more, or cannot start its thread.
    ///
    /// # Errors
    /// [`StorageError::NoUring`]: a ring is requested, and the kernel refuses it.
    pub(crate) fn new(choice: IoChoice) -> Result<Self, StorageError> {
        static RINGS_WORK: AtomicBool = AtomicBool::new(false);
        let choice = match choice {
            IoChoice::Threads => choice,
            // The kernel of this process allows rings, or it does not: one look is enough.
            _ if RINGS_WORK.load(Ordering::Relaxed) => choice,
            _ => match Ring::<()>::probe(PROBE_PATIENCE) {
                Ok(()) => {
                    RINGS_WORK.store(true, Ordering::Relaxed);
                    choice
                }
                Err(_) if choice == IoChoice::Auto => IoChoice::Threads,
                Err(source) => return Err(StorageError::NoUring { source }),
            },
        };
        let disk = SystemDisk {
            choice,
            pool: Arc::default(),
            dirs: Arc::default(),
            spare: Mutex::new(spare()),
        };
        // A small queue shows whether rings work.
        disk.queue(1)?;
        Ok(disk)
    }

    fn threads(&self, depth: usize) -> Box<dyn Queue> {
        Box::new(ThreadsQueue::new(Arc::clone(&self.pool), depth))
    }

    fn make_dir(&self, path: &Path, mode: u32) -> Result<(), StorageError> {
        let make = || {
            let place = self.dirs.place(path)?;
            let mode = Mode::from_raw_mode(mode);
            Ok::<(), io::Error>(rustix::fs::mkdirat(place.dir(), place.name, mode)?)
        };
        match make() {
            // Another thread or process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.is_dir(path)? => {
                Ok(())
            }
            made => at("make directory", path, made),
        }
    }

    fn unlink(&self, path: &Path, how: AtFlags) -> io::Result<()> {
        Ok(self.dirs.place(path)?.unlink(how)?)
    }

    fn look(&self, path: &Path) -> Result<Stat, StorageError> {
        let look = || Ok::<_, io::Error>(self.dirs.place(path)?.stat()?);
        at("look at", path, look())
    }

    /// Refuses a path that is not a directory, or whose contents another user controls.
    fn check_owner(&self, dir: &Path, facts: &Stat, owner: Owner<'_>) -> Result<(), StorageError> {
        let others: &[u32] = match owner {
            Owner::OwnOr(others) => others,
            _ => &[],
        };
        let user = rustix::process::geteuid().as_raw();
        let is_open = |facts: &Stat| facts.st_mode & 0o002 != 0;
        let what = match FileType::from_raw_mode(facts.st_mode) {
            FileType::Symlink => "it is a symbolic link".to_string(),
            FileType::Directory => {
                let is_owned = user == facts.st_uid || others.contains(&facts.st_uid);
                // On some file systems new files get another owner, or everybody may write.
                let as_new = || {
                    let new = self.new_dir_beside(dir)?;
                    let is_owned = is_owned || new.st_uid == facts.st_uid;
                    Some(is_owned && (is_open(&new) || !is_open(facts)))
                };
                if is_owned && !is_open(facts) || as_new() == Some(true) {
                    return Ok(());
                }
                match is_owned {
                    true => "everybody can write there".to_string(),
                    false => format!("it belongs to user {}", facts.st_uid),
                }
            }
            _ => "it is not a directory".to_string(),
        };
        let path = dir.to_path_buf();
        Err(StorageError::NotOwn { path, what })
    }

    /// Makes the names of two paths durable, in this order.
    fn sync_parents(&self, first: &Path, second: &Path) -> Result<(), StorageError> {
        self.sync_dir(parent(first))?;
        match parent(first) == parent(second) {
            true => Ok(()),
            false => self.sync_dir(parent(second)),
        }
    }

    /// Returns the metadata of a directory that this user makes beside another.
    fn new_dir_beside(&self, dir: &Path) -> Option<Stat> {
        let path = aside_of(dir, &format!(".{}-owner", std::process::id()));
        let place = self.dirs.place(&path).ok()?;
        rustix::fs::mkdirat(place.dir(), place.name, Mode::RWXU).ok()?;
        let facts = place.stat_itself();
        place.unlink(AtFlags::REMOVEDIR).ok()?;
        facts.ok()
    }
}

impl Disk for SystemDisk {
    fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError> {
        let open = || open(&self.dirs.place(path)?, how);
        let (descriptor, path) = (Arc::new(at("open", path, open())?), path.to_path_buf());
        Ok(Arc::new(SystemFile { path, descriptor }))
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError> {
        if self.choice == IoChoice::Threads {
            return Ok(self.threads(depth));
        }
        match UringQueue::new(depth) {
            Ok(queue) => Ok(Box::new(queue)),
            Err(_) if self.choice == IoChoice::Auto => Ok(self.threads(depth)),
            Err(refused) => Err(refused),
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        let mut missing = Vec::new();
        for dir in path.ancestors() {
            if dir.as_os_str().is_empty() || self.is_dir(dir)? {
                break;
            }
            missing.push(dir);
        }
        for dir in missing.into_iter().rev() {
            self.make_dir(dir, 0o777)?;
            self.sync_dir(parent(dir))?;
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<(), StorageError> {
        self.make_dir(path, 0o700)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError> {
        let rename = || {
            let (old, new) = (self.dirs.place(from)?, self.dirs.place(to)?);
            Ok::<(), io::Error>(renameat(old.dir(), old.name, new.dir(), new.name)?)
        };
        at("rename", from, rename())?;
        self.dirs.renamed(&[(from, to)]);
        self.sync_parents(to, from)
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError> {
        let exchange = || {
            let (first, second) = (self.dirs.place(one)?, self.dirs.place(other)?);
            let (to, how) = (second.dir(), RenameFlags::EXCHANGE);
            match renameat_with(first.dir(), first.name, to, second.name, how) {
                // NFS and others return this if they do not know the flag.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    Err(io::Error::from(io::ErrorKind::Unsupported))
                }
                exchanged => Ok(exchanged?),
            }
        };
        at("exchange", one, exchange())?;
        self.dirs.renamed(&[(one, other), (other, one)]);
        self.sync_parents(one, other)
    }

    fn remove_file(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, self.unlink(path, AtFlags::empty()))
    }

    fn remove_dir(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, self.unlink(path, AtFlags::REMOVEDIR))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        let removed = match self.dirs.remove_all(path) {
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                let mut held = lock(&self.spare);
                *held = None;
                let removed = self.dirs.remove_all(path);
                *held = spare();
                removed
            }
            removed => removed,
        };
        at("remove", path, removed)
    }

    fn hold(
        &self,
        dir: &Path,
        how: LockMode,
        owner: Owner<'_>,
    ) -> Result<Option<DirLock>, StorageError> {
        let is_own = owner != Owner::Anybody;
        let place = match self.dirs.place(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            place => at("open", dir, place)?,
        };
        let look = || match is_own {
            true => place.stat_itself(),
            false => place.stat(),
        };
        match look() {
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return at("look at", dir, Err(error)),
            Ok(named) if is_own => self.check_owner(dir, &named, owner)?,
            Ok(_) => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let flags = match is_own {
            true => flags | OFlags::NOFOLLOW,
            false => flags,
        };
        let descriptor = match rustix::fs::openat(place.dir(), place.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => at("open", dir, opened)?,
        };
        let lock = |how| retry_on_intr(|| rustix::fs::flock(&descriptor, how));
        let locked = match how {
            LockMode::Shared => lock(FlockOperation::NonBlockingLockShared),
            LockMode::Alone => lock(FlockOperation::NonBlockingLockExclusive),
            LockMode::Unlocked => Ok(()),
        };
        match locked {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => at("lock", dir, locked)?,
        }
        // The last holder may have removed or renamed it, or another directory may have its name by now.
        let held = at("look at", dir, rustix::fs::fstat(&descriptor))?;
        let is_it = match look() {
            Err(Errno::NOENT) => false,
            named => {
                let named = at("look at", dir, named)?;
                (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
            }
        };
        if is_own {
            self.check_owner(dir, &held, owner)?;
        }
        Ok(match (is_it, is_own) {
            (false, _) => None,
            (true, true) => Some(Box::new(self.dirs.hold(dir, descriptor))),
            (true, false) => Some(Box::new(descriptor)),
        })
    }

    fn share(&self, dir: &Path, like: &Path) -> Result<(), StorageError> {
        let share = || {
            let open = self.dirs.open_dir(dir)?;
            // The setgid bit, by which new files get the group of the directory, comes from the directory above.
            let kept = rustix::fs::fstat(&open)?.st_mode & 0o7000;
            let mode = match self.dirs.place(like)?.stat_itself() {
                Ok(like) if is(&like, FileType::Directory) => like.st_mode & 0o777,
                _ => 0o777 & !umask(),
            };
            let mode = Mode::from_raw_mode(kept | mode);
            Ok::<(), io::Error>(rustix::fs::fchmod(&open, mode)?)
        };
        at("share", dir, share())
    }

    fn owner(&self, path: &Path) -> Result<u32, StorageError> {
        Ok(self.look(path)?.st_uid)
    }

    fn target(&self, path: &Path) -> Result<Target, StorageError> {
        at("write to", path, target(path))
    }

    fn stream(&self, path: &Path) -> Result<Box<dyn Write + Send>, StorageError> {
        // Appends: the call creates no file and keeps existing bytes.
        let opened = OpenOptions::new().append(true).open(path);
        Ok(Box::new(at("open", path, opened)?))
    }

    fn inherit(&self, file: &FileHandle, path: &Path) -> Result<(), StorageError> {
        let file: Arc<SystemFile> = own(file)?;
        let inherit = || match self.dirs.place(path)?.stat_itself() {
            Err(Errno::NOENT) => Ok(()),
            there => inherit(&*file.descriptor, &there?),
        };
        at("write", path, inherit())
    }

    fn sync_dir(&self, path: &Path) -> Result<(), StorageError> {
        let dir = match self.dirs.held(path) {
            Some(held) => held,
            None => Arc::new(at("open", path, self.dirs.open_dir(path))?),
        };
        match retry_on_intr(|| rustix::fs::fsync(&dir)) {
            // Some file systems cannot sync directories, and do not need to.
            Err(Errno::INVAL) => Ok(()),
            synced => at("sync", path, synced),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError> {
        let names = at("list", dir, self.dirs.names(dir))?;
        let mut paths: Vec<PathBuf> = names.into_iter().map(|name| dir.join(name)).collect();
        paths.sort();
        Ok(paths)
    }

    fn is_dir(&self, path: &Path) -> Result<bool, StorageError> {
        let is_dir = || {
            let facts = match self.dirs.held(path) {
                Some(held) => rustix::fs::fstat(&held)?,
                None => self.dirs.place(path)?.stat()?,
            };
            Ok(is(&facts, FileType::Directory))
        };
        found(path, is_dir())
    }

    fn exists(&self, path: &Path) -> Result<bool, StorageError> {
        let exists = || Ok(self.dirs.place(path)?.stat_itself().map(|_| true)?);
        found(path, exists())
    }

    fn stamp(&self, path: &Path) -> Result<FileIdentity, StorageError> {
        let facts = self.look(path)?;
        Ok(FileIdentity {
            inode: facts.st_ino,
            bytes: u64::try_from(facts.st_size).unwrap_or(0),
            modified: (facts.st_mtime, facts.st_mtime_nsec as i64),
            changed: (facts.st_ctime, facts.st_ctime_nsec as i64),
        })
    }

    fn read_small(&self, path: &Path, max: u64) -> Result<Vec<u8>, StorageError> {
        let open = || {
            // A pipe would block.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let opened = self.dirs.place(path)?.open(flags, Mode::empty())?;
            Ok::<_, io::Error>(File::from(opened))
        };
        let mut bytes = Vec::new();
        let file = at("open", path, open())?;
        let mut part = file.take(max.saturating_add(1));
        at("read", path, part.read_to_end(&mut bytes))?;
        at_most(max, path, &bytes)?;
        Ok(bytes)
    }

    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let place = at("write", path, self.dirs.place(path))?;
        let there = place.stat_itself().ok();
        let there = there.filter(|there| is(there, FileType::RegularFile));
        // Keeps the old mode: who cannot read the old file must not read the new one either.
        let mode = Mode::from_raw_mode(there.map_or(0o666, |there| there.st_mode & 0o777));
        let (aside, file) = loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let aside = aside_of(path, &format!(".{}-{number}.aside", std::process::id()));
            let open = || {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let opened = self.dirs.place(&aside)?.open(flags, mode)?;
                Ok::<_, io::Error>(File::from(opened))
            };
            match open() {
                // A killed process with the same number left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => break (aside, at("write", path, file)?),
            }
        };
        let write = || {
            let mut file = file;
            file.write_all(bytes)?;
            if let Some(there) = &there {
                inherit(&file, there)?;
            }
            Ok::<(), io::Error>(retry_on_intr(|| rustix::fs::fsync(&file))?)
        };
        let rename = || {
            let aside = self.dirs.place(&aside)?;
            Ok::<(), io::Error>(renameat(aside.dir(), aside.name, place.dir(), place.name)?)
        };
        let written = at("write", path, write()).and_then(|()| at("rename to", path, rename()));
        if written.is_err() {
            // The first error is reported.
            let _ = self.remove_file(&aside);
            return written;
        }
        self.sync_dir(parent(path))
    }

    fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError> {
        let file: Arc<SystemFile> = own(file)?;
        let set = || rustix::fs::ftruncate(&*file.descriptor, len);
        at("set the length of", &file.path, retry_on_intr(set))
    }

    fn reserve(&self, file: &FileHandle, bytes: u64) -> Result<(), StorageError> {
        use rustix::fs::{FallocateFlags, fallocate};
        let file: Arc<SystemFile> = own(file)?;
        let reserve = || fallocate(&*file.descriptor, FallocateFlags::empty(), 0, bytes);
        match retry_on_intr(reserve) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            done => at("set aside space for", &file.path, done),
        }
    }

    fn sync(&self, file: &FileHandle) -> Result<(), StorageError> {
        let file: Arc<SystemFile> = own(file)?;
        let sync = || rustix::fs::fdatasync(&*file.descriptor);
        at("sync", &file.path, retry_on_intr(sync))
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, StorageError> {
        let stat = at("look at", path, rustix::fs::statvfs(path))?;
        // File systems without a size, such as ramfs, report 0.
        Ok(match stat.f_blocks {
            0 => u64::MAX,
            _ => stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }

    fn is_local(&self, folder: &Path) -> bool {
        // A directory that does not exist yet will be on the file system of the one above it.
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

/// A descriptor to close when the process has no others left.
fn spare() -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open("/dev/null", flags, Mode::empty()).ok()
}

/// Returns the mode bits that this process's umask clears in new files.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o077)
}

/// Returns a hidden path beside a path; its name is not longer than a name may be.
fn aside_of(path: &Path, ending: &str) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let name = path.file_name().unwrap_or_default().as_bytes();
    let kept = name.len().min(NAME_BYTES_MAX - 1 - ending.len());
    let aside = [b".", &name[..kept], ending.as_bytes()].concat();
    path.with_file_name(std::ffi::OsStr::from_bytes(&aside))
}

/// Maximum bytes of a name.
const NAME_BYTES_MAX: usize = 255;
fn found(path: &Path, result: io::Result<bool>) -> Result<bool, StorageError> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match result {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(false),
        result => at("look at", path, result),
    }
}
