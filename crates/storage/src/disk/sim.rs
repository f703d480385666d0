//! A disk in memory whose completions come in an order drawn from a seed, and which fails when told to.
//!
//! An operation of a queue takes effect when it completes, not when it is submitted; so whoever relies on an order that no
//! completion has shown finds out. The same seed and the same calls give the same order.
//!
//! What is durable is known apart from what there is: after a power cut ([`SimDisk::after_power_cut`]) there are the names that were made
//! durable, of the other changes of each directory the first so many, and of each file what was synced, with any of the sectors written
//! since.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use graphmill_raw::Random;
use graphmill_raw::uring::Action;

use super::transfer::{Next, Transfer, own};
use super::{
    Completion, Disk, DiskFile, FileHandle, FileStamp, Hold, Holding, Open, Operation, Queue,
};
use crate::error::StorageError;
use crate::stop::Stop;

/// Which operations a fault may hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All of the following.
    Any,
    /// Reads through a queue, and [`Disk::read_small`].
    Read,
    /// Writes through a queue, [`Disk::write_small`] and [`Disk::set_len`].
    Write,
    /// Syncs of files and directories.
    Sync,
    /// Opening, listing and removing files and directories, and changes of names.
    Name,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The operation fails: input/output error.
    Eio,
    /// The operation fails: no space left.
    Enospc,
    /// A read or write moves only a part, at least one byte, and has to be continued.
    Short,
    /// One bit of what is read or written is flipped, and nobody says so.
    FlipBit,
    /// The operation fails, and any part of what it writes may be there after a power cut. Planned for good, it is one.
    PowerCut,
}

/// One planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// To which operations.
    pub on: On,
    /// To the how-manieth of them from now; 1 is the next.
    pub nth: u64,
    /// Whether it also happens to all after it.
    pub for_good: bool,
}

/// A disk in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<World>,
}

#[derive(Debug)]
struct World {
    names: Mutex<Names>,
    fate: Mutex<Fate>,
}

/// The names that there are, and those that a power cut leaves.
#[derive(Debug, Default)]
struct Names {
    now: Tree,
    durable: Tree,
    /// Changes that are not yet durable, each with the directory whose sync makes it so.
    pending: Vec<(PathBuf, Change)>,
}

type Tree = BTreeMap<PathBuf, Entry>;

#[derive(Clone, Debug)]
enum Entry {
    Dir(Holders),
    File(Arc<Mutex<Content>>),
}

impl Entry {
    /// The same as the disk knows it, which does not know who holds it.
    fn unheld(&self) -> Entry {
        match self {
            Entry::Dir(_) => Entry::Dir(Holders::default()),
            file => file.clone(),
        }
    }
}

/// A change of names.
#[derive(Clone, Debug)]
enum Change {
    Put(PathBuf, Entry),
    Gone(PathBuf),
    Move(PathBuf, PathBuf),
}

impl Change {
    fn apply(&self, tree: &mut Tree) {
        match self {
            Change::Put(path, entry) => {
                tree.insert(path.clone(), entry.clone());
            }
            Change::Gone(path) => {
                tree.remove(path);
            }
            Change::Move(from, to) => {
                let moved = take(tree, from);
                put(tree, to, moved);
            }
        }
    }
}

impl Names {
    /// These are there, and durable.
    fn begin(&mut self, tree: Tree) {
        self.durable = tree
            .iter()
            .map(|(path, entry)| (path.clone(), entry.unheld()))
            .collect();
        self.now = tree;
    }

    /// Changes what there is; a sync of `dir` makes it durable.
    fn change(&mut self, dir: &Path, change: Change) {
        change.apply(&mut self.now);
        let change = match change {
            Change::Put(path, entry) => Change::Put(path, entry.unheld()),
            change => change,
        };
        self.pending.push((dir.to_path_buf(), change));
    }

    /// Makes a directory; whether there was none.
    fn make_dir(&mut self, dir: &Path) -> Result<bool, StorageError> {
        match self.now.get(dir) {
            None => {
                let made = Change::Put(dir.to_path_buf(), Entry::Dir(Holders::default()));
                self.change(parent(dir), made);
                Ok(true)
            }
            Some(Entry::Dir(_)) => Ok(false),
            Some(Entry::File(_)) => at(
                "make directory",
                dir,
                Err(io::ErrorKind::NotADirectory.into()),
            ),
        }
    }

    fn sync(&mut self, dir: &Path) {
        let durable = &mut self.durable;
        let of_dir = (self.pending).extract_if(.., |(changed, _)| changed == dir);
        of_dir.for_each(|(_, change)| change.apply(durable));
    }
}

/// The bytes of a file, and what of them a power cut leaves.
#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync: where, and what.
    written: Vec<(usize, Vec<u8>)>,
    /// Those whose sync failed: no other sync makes them durable, as the system takes them for written.
    lost: Vec<(usize, Vec<u8>)>,
}

/// Bytes that a power cut leaves wholly written or not at all.
const SECTOR_BYTES: usize = 512;

impl Content {
    /// One that is durable.
    fn of(bytes: Vec<u8>) -> Self {
        Content {
            durable: bytes.clone(),
            bytes,
            ..Content::default()
        }
    }
    fn write(&mut self, start: usize, bytes: &[u8]) {
        write(&mut self.bytes, start, bytes);
        let end = start + bytes.len();
        self.lost
            .retain(|(lost, bytes)| *lost >= end || lost + bytes.len() <= start);
        self.written.push((start, bytes.to_vec()));
    }
    fn sync(&mut self) {
        self.durable.resize(self.bytes.len(), 0);
        for (start, bytes) in self.written.drain(..) {
            let end = (start + bytes.len()).min(self.durable.len());
            if start < end {
                self.durable[start..end].copy_from_slice(&bytes[..end - start]);
            }
        }
    }
    fn fail_sync(&mut self) {
        self.lost.append(&mut self.written);
    }
    /// What a power cut leaves: of each write all, nothing, or some sectors.
    fn after_power_cut(&self, random: &mut Random) -> Vec<u8> {
        let mut left = self.durable.clone();
        if self.bytes.len() > left.len() && random.below(2) == 0 {
            left.resize(self.bytes.len(), 0);
        }
        for (start, bytes) in self.lost.iter().chain(&self.written) {
            let odds = [0, 4, random.below(5)][random.below(3) as usize];
            for (number, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                if random.below(4) < odds {
                    write(&mut left, start + number * SECTOR_BYTES, sector);
                }
            }
        }
        left
    }
}

fn write(bytes: &mut Vec<u8>, start: usize, written: &[u8]) {
    let end = start + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(written);
}

/// Who holds a directory: as many as there are clones of either.
#[derive(Clone, Debug, Default)]
struct Holders {
    shared: Arc<()>,
    alone: Arc<()>,
}

#[derive(Debug)]
struct Fate {
    random: Random,
    faults: Vec<Fault>,
    /// Who is asked to stop, and at the how-manieth operation of all.
    wishes: Vec<(u64, Stop)>,
    operations: u64,
    no_locks: Option<PathBuf>,
}

/// An open file: like a descriptor, it outlives its name.
#[derive(Debug)]
struct SimFile {
    path: PathBuf,
    content: Arc<Mutex<Content>>,
}

impl SimDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> Self {
        let fate = Fate {
            random: Random::new(seed),
            faults: Vec::new(),
            wishes: Vec::new(),
            operations: 0,
            no_locks: None,
        };
        SimDisk {
            world: Arc::new(World {
                names: Mutex::default(),
                fate: Mutex::new(fate),
            }),
        }
    }

    /// Plans a failure, beside those already planned.
    pub fn inject(&self, fault: Fault) {
        lock(&self.world.fate).faults.push(fault);
    }

    /// Asks to stop, at the how-manieth operation from now; 1 is the next. Who was asked before is asked to stop at once.
    pub fn ask_at(&self, nth: u64, stop: &Stop) {
        let mut fate = lock(&self.world.fate);
        let at = fate.operations + nth;
        fate.wishes.push((at, stop.clone()));
    }

    /// From now on nothing below a directory can be held, as on some file systems.
    pub fn lose_locks(&self, below: &Path) {
        lock(&self.world.fate).no_locks = Some(below.to_path_buf());
    }

    /// Forgets all planned failures, and whom to ask to stop.
    pub fn heal(&self) {
        let mut fate = lock(&self.world.fate);
        fate.faults.clear();
        fate.wishes.clear();
    }

    /// The disk that a power cut now would leave, by a seed that says what of the changes that are not durable is there; without
    /// faults. This one stays as it is.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> SimDisk {
        let left = SimDisk::new(seed);
        let mut random = Random::new(seed);
        let names = lock(&self.world.names);
        let mut tree = names.durable.clone();
        let mut of_dirs = BTreeMap::new();
        for (dir, _) in &names.pending {
            *of_dirs.entry(dir).or_insert(0) += 1;
        }
        of_dirs
            .values_mut()
            .for_each(|changes| *changes = random.below(*changes + 1));
        for (dir, change) in &names.pending {
            if let Some(changes) = of_dirs.get_mut(dir).filter(|changes| **changes > 0) {
                *changes -= 1;
                change.apply(&mut tree);
            }
        }
        // Nothing lies in a directory that is not there.
        let mut there = Tree::new();
        for (path, entry) in tree {
            if is_dir(&there, parent(&path)) {
                let entry = match entry {
                    Entry::Dir(_) => Entry::Dir(Holders::default()),
                    Entry::File(content) => {
                        let bytes = lock(&content).after_power_cut(&mut random);
                        Entry::File(Arc::new(Mutex::new(Content::of(bytes))))
                    }
                };
                there.insert(path, entry);
            }
        }
        lock(&left.world.names).begin(there);
        left
    }

    /// A disk of its own with all that there is, all of it durable, and without faults.
    #[must_use]
    pub fn copied(&self, seed: u64) -> SimDisk {
        let copy = SimDisk::new(seed);
        let own = |entry: &Entry| match entry {
            Entry::Dir(_) => Entry::Dir(Holders::default()),
            Entry::File(content) => {
                let bytes = lock(content).bytes.clone();
                Entry::File(Arc::new(Mutex::new(Content::of(bytes))))
            }
        };
        let names = lock(&self.world.names);
        let all = names.now.iter();
        let tree: Tree = all
            .map(|(path, entry)| (path.clone(), own(entry)))
            .collect();
        drop(names);
        lock(&copy.world.names).begin(tree);
        copy
    }

    /// Operations so far that a fault [`On::Any`] could have hit.
    pub fn operations(&self) -> u64 {
        lock(&self.world.fate).operations
    }
}

impl World {
    /// Counts an operation and says what is to go wrong with it.
    fn fate(&self, on: On) -> Option<FaultKind> {
        let mut fate = lock(&self.fate);
        fate.operations += 1;
        let now = fate.operations;
        fate.wishes.retain(|(at, stop)| {
            match *at == now {
                true if stop.asked() => stop.insist(),
                true => stop.request(),
                false => {}
            }
            *at > now
        });
        let mut kind = None;
        fate.faults.retain_mut(|fault| {
            let hit = fault.on == On::Any || fault.on == on;
            if hit && fault.nth > 1 {
                fault.nth -= 1;
                return true;
            }
            if hit {
                kind = kind.or(Some(fault.kind));
            }
            !hit || fault.for_good
        });
        kind
    }

    /// [`World::fate`] for an operation that can only succeed or fail.
    fn fail(&self, on: On) -> io::Result<()> {
        self.fate(on).and_then(error_of).map_or(Ok(()), Err)
    }

    fn draw(&self, bound: u64) -> u64 {
        lock(&self.fate).random.below(bound)
    }

    /// One step of a transfer, with its fault.
    fn step(&self, transfer: &mut Transfer<SimFile>) -> io::Result<usize> {
        let action = transfer.action;
        let on = match action {
            Action::Read => On::Read,
            Action::Write => On::Write,
            Action::Sync => On::Sync,
        };
        let fault = self.fate(on);
        let file = Arc::clone(&transfer.file);
        let mut held = lock(&file.content);
        if let Some(error) = fault.and_then(error_of) {
            if (fault, action) == (Some(FaultKind::PowerCut), Action::Write) {
                let start = usize::try_from(transfer.offset()).map_err(io::Error::other)?;
                held.written.push((start, transfer.bytes().to_vec()));
            }
            if action == Action::Sync {
                held.fail_sync();
            }
            return Err(error);
        }
        let start = usize::try_from(transfer.offset()).map_err(io::Error::other)?;
        let mut length = transfer.range().len();
        if action == Action::Read {
            length = length.min(held.bytes.len().saturating_sub(start));
        }
        if fault == Some(FaultKind::Short) && length > 1 {
            length = 1 + self.draw(length as u64 - 1) as usize;
        }
        let bytes = &mut transfer.bytes()[..length];
        let flipped =
            (fault == Some(FaultKind::FlipBit) && length > 0).then(|| self.draw(8 * length as u64));
        let flip = |bytes: &mut [u8]| {
            if let Some(bit) = flipped {
                bytes[bit as usize / 8] ^= 1 << (bit % 8);
            }
        };
        match action {
            Action::Read => {
                let there = held.bytes.get(start..start + length).unwrap_or_default();
                bytes[..there.len()].copy_from_slice(there);
                flip(bytes);
            }
            Action::Write => {
                let mut written = bytes.to_vec();
                flip(&mut written);
                held.write(start, &written);
            }
            Action::Sync => held.sync(),
        }
        Ok(length)
    }
}

fn error_of(kind: FaultKind) -> Option<io::Error> {
    match kind {
        FaultKind::Eio | FaultKind::PowerCut => Some(io::Error::from_raw_os_error(libc::EIO)),
        FaultKind::Enospc => Some(io::Error::from_raw_os_error(libc::ENOSPC)),
        FaultKind::Short | FaultKind::FlipBit => None,
    }
}

impl DiskFile for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64, StorageError> {
        Ok(lock(&self.content).bytes.len() as u64)
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError> {
        at("open", path, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        let content = match (names.now.get(path), how) {
            (Some(_), Open::Create) => Err(io::ErrorKind::AlreadyExists),
            (Some(Entry::File(content)), _) => Ok(Arc::clone(content)),
            (Some(Entry::Dir(_)), _) => Err(io::ErrorKind::IsADirectory),
            (None, Open::Create) if is_dir(&names.now, parent(path)) => {
                let content = Arc::default();
                let made = Change::Put(path.to_path_buf(), Entry::File(Arc::clone(&content)));
                names.change(parent(path), made);
                Ok(content)
            }
            (None, _) => Err(io::ErrorKind::NotFound),
        };
        let content = at("open", path, content.map_err(io::Error::from))?;
        Ok(Arc::new(SimFile {
            path: path.to_path_buf(),
            content,
        }))
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError> {
        let random = Random::new(lock(&self.world.fate).random.next_u64());
        Ok(Box::new(SimQueue {
            world: Arc::clone(&self.world),
            random,
            depth: depth.max(1),
            running: Vec::new(),
            backlog: VecDeque::new(),
            ready: VecDeque::new(),
        }))
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        at("make directory", path, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        let dirs: Vec<&Path> = path
            .ancestors()
            .filter(|dir| !dir.as_os_str().is_empty())
            .collect();
        for dir in dirs.into_iter().rev() {
            if names.make_dir(dir)? {
                at("sync", path, self.world.fail(On::Sync))?;
                names.sync(parent(dir));
            }
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<(), StorageError> {
        at("make directory", path, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        if !is_dir(&names.now, parent(path)) {
            return at("make directory", path, Err(io::ErrorKind::NotFound.into()));
        }
        names.make_dir(path).map(drop)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError> {
        at("rename", from, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        let full = children(&names.now, to).next().is_some();
        let problem = match (names.now.get(from), names.now.get(to)) {
            (None, _) => Some(io::ErrorKind::NotFound),
            _ if !is_dir(&names.now, parent(to)) => Some(io::ErrorKind::NotFound),
            (Some(Entry::File(_)), Some(Entry::Dir(_))) => Some(io::ErrorKind::IsADirectory),
            (Some(Entry::Dir(_)), Some(Entry::File(_))) => Some(io::ErrorKind::NotADirectory),
            (Some(Entry::Dir(_)), _) if full => Some(io::ErrorKind::DirectoryNotEmpty),
            (Some(Entry::Dir(_)), _) if to != from && to.starts_with(from) => {
                Some(io::ErrorKind::InvalidInput)
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return at("rename", from, Err(problem.into()));
        }
        let moved = Change::Move(from.to_path_buf(), to.to_path_buf());
        names.change(parent(to), moved);
        at("sync", to, self.world.fail(On::Sync))?;
        for dir in [parent(from), parent(to)] {
            names.sync(dir);
        }
        Ok(())
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError> {
        at("exchange", one, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        for (path, within) in [(one, other), (other, one)] {
            let problem = match names.now.get(path) {
                None => Some(io::ErrorKind::NotFound),
                Some(_) if path.starts_with(within) && one != other => {
                    Some(io::ErrorKind::InvalidInput)
                }
                Some(_) => None,
            };
            if let Some(problem) = problem {
                return at("exchange", path, Err(problem.into()));
            }
        }
        for dir in [parent(one), parent(other)] {
            names.sync(dir);
        }
        let Names { now, durable, .. } = &mut *names;
        for tree in [now, durable] {
            let (of_one, of_other) = (take(tree, one), take(tree, other));
            put(tree, other, of_one);
            put(tree, one, of_other);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        match names.now.get(path) {
            Some(Entry::File(_)) => {
                names.change(parent(path), Change::Gone(path.to_path_buf()));
                Ok(())
            }
            Some(Entry::Dir(_)) => at("remove", path, Err(io::ErrorKind::IsADirectory.into())),
            None => at("remove", path, Err(io::ErrorKind::NotFound.into())),
        }
    }

    fn remove_dir(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        let full = children(&names.now, path).next().is_some();
        match names.now.get(path) {
            Some(Entry::Dir(_)) if full => {
                at("remove", path, Err(io::ErrorKind::DirectoryNotEmpty.into()))
            }
            Some(Entry::Dir(_)) => {
                names.change(parent(path), Change::Gone(path.to_path_buf()));
                Ok(())
            }
            Some(Entry::File(_)) => at("remove", path, Err(io::ErrorKind::NotADirectory.into())),
            None => at("remove", path, Err(io::ErrorKind::NotFound.into())),
        }
    }

    fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        at("remove", path, self.world.fail(On::Name))?;
        let mut names = lock(&self.world.names);
        if !is_dir(&names.now, path) {
            return at("remove", path, Err(io::ErrorKind::NotFound.into()));
        }
        let within = names.now.keys().filter(|entry| entry.starts_with(path));
        // What lies in a directory goes before it.
        for gone in within.cloned().collect::<Vec<_>>().into_iter().rev() {
            names.change(parent(&gone), Change::Gone(gone.clone()));
        }
        Ok(())
    }

    fn hold(&self, dir: &Path, how: Holding) -> Result<Option<Hold>, StorageError> {
        at("lock", dir, self.world.fail(On::Name))?;
        let no_locks = lock(&self.world.fate).no_locks.clone();
        if no_locks.is_some_and(|below| dir.starts_with(below)) {
            return at("lock", dir, Err(io::ErrorKind::Unsupported.into()));
        }
        let names = lock(&self.world.names);
        let Some(Entry::Dir(holders)) = names.now.get(dir) else {
            return Ok(None);
        };
        let is_free = |holders: &Arc<()>| Arc::strong_count(holders) == 1;
        let held = match how {
            Holding::Shared => is_free(&holders.alone).then_some(&holders.shared),
            Holding::Alone => {
                (is_free(&holders.alone) && is_free(&holders.shared)).then_some(&holders.alone)
            }
        };
        Ok(held.map(|held| Box::new(Arc::clone(held)) as Hold))
    }

    fn sync_dir(&self, path: &Path) -> Result<(), StorageError> {
        at("sync", path, self.world.fail(On::Sync))?;
        let mut names = lock(&self.world.names);
        if !is_dir(&names.now, path) {
            return at("sync", path, Err(io::ErrorKind::NotFound.into()));
        }
        names.sync(path);
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError> {
        at("list", dir, self.world.fail(On::Name))?;
        let names = lock(&self.world.names);
        if !is_dir(&names.now, dir) {
            return at("list", dir, Err(io::ErrorKind::NotFound.into()));
        }
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
    fn stamp(&self, path: &Path) -> Result<FileStamp, StorageError> {
        at("look at", path, self.world.fail(On::Name))?;
        let held = match lock(&self.world.names).now.get(path) {
            Some(Entry::File(content)) => lock(content).bytes.clone(),
            Some(Entry::Dir(_)) => Vec::new(),
            None => return at("look at", path, Err(io::ErrorKind::NotFound.into())),
        };
        let sum = held.iter().fold(0_i64, |sum, &byte| {
            sum.wrapping_mul(0x0100_0000_01b3)
                .wrapping_add(i64::from(byte) + 1)
        });
        Ok(FileStamp {
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
            Some(Entry::File(content)) => lock(content).bytes.clone(),
            Some(Entry::Dir(_)) => {
                return at("read", path, Err(io::ErrorKind::IsADirectory.into()));
            }
            None => return at("open", path, Err(io::ErrorKind::NotFound.into())),
        };
        if bytes.len() as u64 > max {
            return Err(StorageError::TooLarge {
                path: path.to_path_buf(),
                max,
            });
        }
        flip(&self.world, fault, &mut bytes);
        Ok(bytes)
    }

    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        let fault = self.world.fate(On::Write);
        at("write", path, fault.and_then(error_of).map_or(Ok(()), Err))?;
        at("sync", path, self.world.fail(On::Sync))?;
        at("rename to", path, self.world.fail(On::Name))?;
        let mut bytes = bytes.to_vec();
        flip(&self.world, fault, &mut bytes);
        let mut names = lock(&self.world.names);
        if !is_dir(&names.now, parent(path)) {
            return at("write", path, Err(io::ErrorKind::NotFound.into()));
        }
        if matches!(names.now.get(path), Some(Entry::Dir(_))) {
            return at("write", path, Err(io::ErrorKind::IsADirectory.into()));
        }
        // A new file under the old name: who has the old one open keeps it.
        let new = Entry::File(Arc::new(Mutex::new(Content::of(bytes))));
        names.change(parent(path), Change::Put(path.to_path_buf(), new));
        at("sync", parent(path), self.world.fail(On::Sync))?;
        names.sync(parent(path));
        Ok(())
    }

    fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError> {
        let file: Arc<SimFile> = own(file)?;
        at("set the length of", &file.path, self.world.fail(On::Write))?;
        let len = at(
            "set the length of",
            &file.path,
            usize::try_from(len).map_err(io::Error::other),
        )?;
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

fn flip(world: &World, fault: Option<FaultKind>, bytes: &mut [u8]) {
    if fault == Some(FaultKind::FlipBit) && !bytes.is_empty() {
        let bit = world.draw(8 * bytes.len() as u64);
        bytes[bit as usize / 8] ^= 1 << (bit % 8);
    }
}

fn is_dir(names: &Tree, path: &Path) -> bool {
    path.parent().is_none() || matches!(names.get(path), Some(Entry::Dir(_)))
}

/// The directory a path is in; the start of relative paths is a directory as the root is.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// What lies directly in a directory, sorted.
fn children<'n>(names: &'n Tree, dir: &'n Path) -> impl Iterator<Item = &'n PathBuf> {
    names.keys().filter(move |path| path.parent() == Some(dir))
}

/// Takes away a file, or a directory with all that is in it, by names within it.
fn take(names: &mut Tree, from: &Path) -> Vec<(PathBuf, Entry)> {
    let within = |path: &Path| path.strip_prefix(from).ok().map(Path::to_path_buf);
    let taken = names.extract_if(.., |path, _| path.starts_with(from));
    taken
        .filter_map(|(path, entry)| Some((within(&path)?, entry)))
        .collect()
}

/// Puts what was taken under another name.
fn put(names: &mut Tree, to: &Path, taken: Vec<(PathBuf, Entry)>) {
    for (within, entry) in taken {
        // Joining nothing would put a slash at the end.
        let path = match within.as_os_str().is_empty() {
            true => to.to_path_buf(),
            false => to.join(within),
        };
        names.insert(path, entry);
    }
}

fn at<T>(action: &'static str, path: &Path, result: io::Result<T>) -> Result<T, StorageError> {
    result.map_err(|source| StorageError::Path {
        action,
        path: path.to_path_buf(),
        source,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queue that carries out one of its operations, drawn by seed, whenever it is asked for one.
#[derive(Debug)]
struct SimQueue {
    world: Arc<World>,
    random: Random,
    depth: usize,
    running: Vec<Transfer<SimFile>>,
    backlog: VecDeque<Transfer<SimFile>>,
    ready: VecDeque<Completion>,
}

impl SimQueue {
    /// Carries out a step of one running operation.
    fn step(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let chosen = self.random.below(self.running.len() as u64) as usize;
        let mut transfer = self.running.swap_remove(chosen);
        let step = self.world.step(&mut transfer);
        match transfer.advance(step) {
            Next::Again(rest) => self.running.push(rest),
            Next::Complete(completion) => {
                self.ready.push_back(completion);
                self.running.extend(self.backlog.pop_front());
            }
        }
    }
}

impl Queue for SimQueue {
    fn submit(&mut self, operation: Operation, token: u64) {
        match Transfer::begin(operation, token) {
            Next::Again(transfer) if self.running.len() < self.depth => self.running.push(transfer),
            Next::Again(transfer) => self.backlog.push_back(transfer),
            Next::Complete(completion) => self.ready.push_back(completion),
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        // Often there is nothing yet, as on a real disk.
        if self.ready.is_empty() && self.random.below(2) == 0 {
            self.step();
        }
        self.ready.pop_front()
    }

    fn block(&mut self) {
        while self.ready.is_empty() && !self.running.is_empty() {
            self.step();
        }
    }

    fn in_flight(&self) -> usize {
        self.ready.len() + self.running.len() + self.backlog.len()
    }
}
