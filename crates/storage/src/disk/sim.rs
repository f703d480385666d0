//! A disk in memory that draws the order of completions from a seed and fails as planned.
//!
//! An operation of a queue takes effect when it completes, not when it is submitted. So a test finds code that relies on an order without
//! waiting for completions. The same seed and the same calls give the same order.
//!
//! The disk tracks durable state apart from current state. A power cut ([`SimDisk::after_power_cut`]) leaves:
//!
//! - the names that were made durable, and a prefix of the other changes of each directory;
//! - of each file the synced bytes, with any of the sectors written since.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `names.rs` | names of files and directories |
//! | `content.rs` | bytes of files |
//! | `faults.rs` | [`Fault`]: what goes wrong, and when |
//! | `world.rs` | the state that clones and queues share; open files |
//! | `queue.rs` | the order of completions |

mod content;
pub(crate) mod faults;
mod names;
mod queue;
mod world;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use graphmill_raw::{SplitMix64, lock};

use self::faults::{Fault, FaultSchedule, On, error_of};
use self::names::{Change, Namespace, SimEntry};
use self::queue::SimQueue;
use self::world::{SimFile, World};
use super::port::{DirLock, Disk, FileHandle, FileIdentity, LockMode, Open, Owner, Queue, Target};
use super::transfer::own;
use super::tree::{
    check_exchange, check_remove, check_rename, children, find, is_dir, need_dir, parent, put, take,
};
use crate::cancel::CancelToken;
use crate::error::{StorageError, at, at_most};

/// A disk in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<World>,
}

impl SimDisk {
    /// Makes an empty disk.
    pub fn new(seed: u64) -> Self {
        let world = Arc::new(World {
            names: Mutex::default(),
            fate: Mutex::new(FaultSchedule::new(seed)),
        });
        SimDisk { world }
    }

    /// Plans a fault, in addition to those already planned.
    pub fn inject(&self, fault: Fault) {
        lock(&self.world.fate).faults.push(fault);
    }

    /// Requests `stop` at the `nth` operation from now; 1 is the next.
    ///
    /// A second request to the same [`CancelToken`] makes it stop at once.
    pub fn ask_at(&self, nth: u64, stop: &CancelToken) {
        let mut fate = lock(&self.world.fate);
        let at = fate.operations + nth;
        fate.wishes.push((at, stop.clone()));
    }

    /// Makes locks below a directory fail from now on, as on some file systems.
    pub fn lose_locks(&self, below: &Path) {
        lock(&self.world.fate).no_locks = Some(below.to_path_buf());
    }

    /// Removes all planned faults and requests to stop.
    pub fn heal(&self) {
        let mut fate = lock(&self.world.fate);
        fate.faults.clear();
        fate.wishes.clear();
    }

    /// Returns the disk that a power cut now would leave, without faults; `self` stays as it is.
    ///
    /// The seed decides which of the changes that are not durable survive.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> SimDisk {
        let left = SimDisk::new(seed);
        let mut random = SplitMix64::new(seed);
        let there = lock(&self.world.names).after_power_cut(&mut random);
        lock(&left.world.names).begin(there);
        left
    }

    /// Returns an independent copy of the disk, with all names and bytes durable and without faults.
    #[must_use]
    pub fn copied(&self, seed: u64) -> SimDisk {
        let copy = SimDisk::new(seed);
        let there = lock(&self.world.names).copied();
        lock(&copy.world.names).begin(there);
        copy
    }

    /// Returns the number of operations so far that a fault [`On::Any`] could have hit.
    pub fn operations(&self) -> u64 {
        lock(&self.world.fate).operations
    }

    /// Locks the names for an operation on `path`, which a fault may hit.
    fn names(
        &self,
        action: &'static str,
        path: &Path,
    ) -> Result<MutexGuard<'_, Namespace>, StorageError> {
        at(action, path, self.world.fail(On::Name))?;
        Ok(lock(&self.world.names))
    }

    /// Removes the name of a file, or of an empty directory.
    fn remove(&self, path: &Path, is_file: bool) -> Result<(), StorageError> {
        let mut names = self.names("remove", path)?;
        at("remove", path, check_remove(&names.now, path, is_file))?;
        names.change(parent(path), Change::Gone(path.to_path_buf()));
        Ok(())
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError> {
        let mut names = self.names("open", path)?;
        let content = match at("open", path, find(&names.now, path, how))? {
            Some(content) => content,
            None => {
                let content = Arc::default();
                let made = Change::Put(path.to_path_buf(), SimEntry::File(Arc::clone(&content)));
                names.change(parent(path), made);
                content
            }
        };
        let path = path.to_path_buf();
        Ok(Arc::new(SimFile { path, content }))
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError> {
        let random = SplitMix64::new(lock(&self.world.fate).random.next_u64());
        let world = Arc::clone(&self.world);
        Ok(Box::new(SimQueue::new(world, random, depth)))
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        let mut names = self.names("make directory", path)?;
        let dirs: Vec<&Path> = path.ancestors().collect();
        let is_named = |dir: &&Path| !dir.as_os_str().is_empty();
        for dir in dirs.into_iter().rev().filter(is_named) {
            if names.make_dir(dir)? {
                at("sync", path, self.world.fail(On::Sync))?;
                names.sync(parent(dir));
            }
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<(), StorageError> {
        let mut names = self.names("make directory", path)?;
        at("make directory", path, need_dir(&names.now, parent(path)))?;
        names.make_dir(path).map(drop)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError> {
        let mut names = self.names("rename", from)?;
        at("rename", from, check_rename(&names.now, from, to))?;
        let moved = Change::Move(from.to_path_buf(), to.to_path_buf());
        names.change(parent(to), moved);
        at("sync", to, self.world.fail(On::Sync))?;
        for dir in [parent(from), parent(to)] {
            names.sync(dir);
        }
        Ok(())
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError> {
        let mut names = self.names("exchange", one)?;
        at("exchange", one, check_exchange(&names.now, one, other))?;
        for dir in [parent(one), parent(other)] {
            names.sync(dir);
        }
        let Namespace { now, durable, .. } = &mut *names;
        for tree in [now, durable] {
            let (of_one, of_other) = (take(tree, one), take(tree, other));
            put(tree, other, of_one);
            put(tree, one, of_other);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<(), StorageError> {
        self.remove(path, true)
    }

    fn remove_dir(&self, path: &Path) -> Result<(), StorageError> {
        self.remove(path, false)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        let mut names = self.names("remove", path)?;
        at("remove", path, need_dir(&names.now, path))?;
        let within = names.now.keys().filter(|entry| entry.starts_with(path));
        // What lies in a directory goes before it.
        for gone in within.cloned().collect::<Vec<_>>().into_iter().rev() {
            names.change(parent(&gone), Change::Gone(gone.clone()));
        }
        Ok(())
    }

    fn hold(
        &self,
        dir: &Path,
        how: LockMode,
        _: Owner<'_>,
    ) -> Result<Option<DirLock>, StorageError> {
        at("lock", dir, self.world.fail(On::Name))?;
        let no_locks = lock(&self.world.fate).no_locks.clone();
        if how != LockMode::Unlocked && no_locks.is_some_and(|below| dir.starts_with(below)) {
            return at("lock", dir, Err(io::ErrorKind::Unsupported));
        }
        let names = lock(&self.world.names);
        let Some(SimEntry::Dir(holders)) = names.now.get(dir) else {
            return Ok(None);
        };
        Ok(holders.hold(how))
    }

    fn share(&self, dir: &Path, _: &Path) -> Result<(), StorageError> {
        at("share", dir, need_dir(&lock(&self.world.names).now, dir))
    }

    fn owner(&self, _: &Path) -> Result<u32, StorageError> {
        Ok(0)
    }

    /// There are no links on a simulated disk.
    fn target(&self, path: &Path) -> Result<Target, StorageError> {
        Ok(Target::File(path.to_path_buf()))
    }

    fn stream(&self, path: &Path) -> Result<Box<dyn io::Write + Send>, StorageError> {
        at("open", path, Err(io::ErrorKind::Unsupported))
    }

    /// There are no modes on a simulated disk.
    fn inherit(&self, _: &FileHandle, _: &Path) -> Result<(), StorageError> {
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<(), StorageError> {
        at("sync", path, self.world.fail(On::Sync))?;
        let mut names = lock(&self.world.names);
        at("sync", path, need_dir(&names.now, path))?;
        names.sync(path);
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError> {
        let names = self.names("list", dir)?;
        at("list", dir, need_dir(&names.now, dir))?;
        Ok(children(&names.now, dir).cloned().collect())
    }

    fn is_dir(&self, path: &Path) -> Result<bool, StorageError> {
        Ok(is_dir(&lock(&self.world.names).now, path))
    }

    fn exists(&self, path: &Path) -> Result<bool, StorageError> {
        let names = lock(&self.world.names);
        Ok(names.now.contains_key(path) || is_dir(&names.now, path))
    }

    /// A simulated disk has no clock: the bytes stand for the time of the change.
    fn stamp(&self, path: &Path) -> Result<FileIdentity, StorageError> {
        let held = match self.names("look at", path)?.now.get(path) {
            Some(SimEntry::File(content)) => lock(content).bytes.clone(),
            Some(SimEntry::Dir(_)) => Vec::new(),
            None => return at("look at", path, Err(io::ErrorKind::NotFound)),
        };
        let sum = held.iter().fold(0_i64, |sum, &byte| {
            sum.wrapping_mul(0x0100_0000_01b3)
                .wrapping_add(i64::from(byte) + 1)
        });
        Ok(FileIdentity {
            inode: 0,
            bytes: held.len() as u64,
            modified: (0, 0),
            changed: (sum, 0),
        })
    }

    fn read_small(&self, path: &Path, max: u64) -> Result<Vec<u8>, StorageError> {
        let fault = self.world.fate(On::Read);
        at("read", path, fault.and_then(error_of).map_or(Ok(()), Err))?;
        let mut bytes = match lock(&self.world.names).now.get(path) {
            Some(SimEntry::File(content)) => lock(content).bytes.clone(),
            Some(SimEntry::Dir(_)) => return at("read", path, Err(io::ErrorKind::IsADirectory)),
            None => return at("open", path, Err(io::ErrorKind::NotFound)),
        };
        at_most(max, path, &bytes)?;
        self.world.flip(fault, &mut bytes);
        Ok(bytes)
    }

    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        let fault = self.world.fate(On::Write);
        at("write", path, fault.and_then(error_of).map_or(Ok(()), Err))?;
        at("sync", path, self.world.fail(On::Sync))?;
        at("rename to", path, self.world.fail(On::Name))?;
        let mut bytes = bytes.to_vec();
        self.world.flip(fault, &mut bytes);
        let mut names = lock(&self.world.names);
        at("write", path, need_dir(&names.now, parent(path)))?;
        if matches!(names.now.get(path), Some(SimEntry::Dir(_))) {
            return at("write", path, Err(io::ErrorKind::IsADirectory));
        }
        // A new file under the old name: who has the old one open keeps it.
        let new = SimEntry::of(bytes);
        names.change(parent(path), Change::Put(path.to_path_buf(), new));
        at("sync", parent(path), self.world.fail(On::Sync))?;
        names.sync(parent(path));
        Ok(())
    }

    fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError> {
        let file: Arc<SimFile> = own(file)?;
        let len = (self.world.fail(On::Write))
            .and_then(|()| usize::try_from(len).map_err(io::Error::other));
        let len = at("set the length of", &file.path, len)?;
        let mut content = lock(&file.content);
        let cut = len..content.bytes.len();
        content.bytes.resize(len, 0);
        if !cut.is_empty() {
            // What was written beyond the end is gone, and zeros come back where it grows again.
            content.written.push((cut.start, vec![0; cut.len()]));
        }
        Ok(())
    }

    fn reserve(&self, file: &FileHandle, bytes: u64) -> Result<(), StorageError> {
        match bytes > file.len()? {
            true => self.set_len(file, bytes),
            false => Ok(()),
        }
    }

    fn sync(&self, file: &FileHandle) -> Result<(), StorageError> {
        let file: Arc<SimFile> = own(file)?;
        let failed = self.world.fail(On::Sync);
        let mut content = lock(&file.content);
        match &failed {
            Ok(()) => content.sync(),
            Err(_) => content.fail_sync(),
        }
        at("sync", &file.path, failed)
    }

    /// A simulated disk is full when a fault says so, and never by itself.
    fn free_bytes(&self, path: &Path) -> Result<u64, StorageError> {
        at("look at", path, self.world.fail(On::Name))?;
        Ok(u64::MAX)
    }

    fn is_local(&self, _: &Path) -> bool {
        true
    }
}
