//! The names on a simulated disk: the current names, and those that a power cut leaves.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use graphmill_raw::{SplitMix64, lock};

use super::content::Content;
use crate::disk::tree::{self, DirEntry, LockTable, is_dir, parent, put, take};
use crate::error::{StorageError, at};

/// The current names, and those that a power cut leaves.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    pub(super) now: SimTree,
    pub(super) durable: SimTree,
    /// Changes that are not yet durable, each with the directory whose sync makes it so.
    pending: Vec<(PathBuf, Change)>,
}

type SimTree = tree::Tree<Arc<Mutex<Content>>>;
/// A directory, or a file with its bytes.
pub(super) type SimEntry = DirEntry<Arc<Mutex<Content>>>;

impl SimEntry {
    /// A file whose bytes are durable.
    pub(super) fn of(bytes: Vec<u8>) -> SimEntry {
        DirEntry::File(Arc::new(Mutex::new(Content::of(bytes))))
    }

    /// Returns the entry as it is on disk, without its holders.
    fn unheld(&self) -> SimEntry {
        match self {
            DirEntry::Dir(_) => DirEntry::Dir(LockTable::default()),
            file => file.clone(),
        }
    }
}

/// A change of names.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(PathBuf, SimEntry),
    Gone(PathBuf),
    Move(PathBuf, PathBuf),
}

impl Change {
    fn apply(&self, tree: &mut SimTree) {
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

impl Namespace {
    /// Returns the names and files that a power cut leaves.
    pub(super) fn after_power_cut(&self, random: &mut SplitMix64) -> SimTree {
        let mut tree = self.durable.clone();
        let mut of_dirs = BTreeMap::new();
        for (dir, _) in &self.pending {
            *of_dirs.entry(dir).or_insert(0) += 1;
        }
        of_dirs
            .values_mut()
            .for_each(|changes| *changes = random.below(*changes + 1));
        for (dir, change) in &self.pending {
            if let Some(changes) = of_dirs.get_mut(dir).filter(|changes| **changes > 0) {
                *changes -= 1;
                change.apply(&mut tree);
            }
        }
        // A directory that does not exist has no entries.
        let mut there = SimTree::new();
        for (path, entry) in tree {
            if is_dir(&there, parent(&path)) {
                let entry = match entry {
                    DirEntry::Dir(_) => DirEntry::Dir(LockTable::default()),
                    DirEntry::File(content) => SimEntry::of(lock(&content).after_power_cut(random)),
                };
                there.insert(path, entry);
            }
        }
        there
    }

    /// Returns an independent copy of all names and files.
    pub(super) fn copied(&self) -> SimTree {
        let own = |entry: &SimEntry| match entry {
            DirEntry::Dir(_) => DirEntry::Dir(LockTable::default()),
            DirEntry::File(content) => SimEntry::of(lock(content).bytes.clone()),
        };
        let all = self.now.iter();
        all.map(|(path, entry)| (path.clone(), own(entry)))
            .collect()
    }

    /// Starts with these names, all durable.
    pub(super) fn begin(&mut self, tree: SimTree) {
        self.durable = tree
            .iter()
            .map(|(path, entry)| (path.clone(), entry.unheld()))
            .collect();
        self.now = tree;
    }

    /// Changes the names; a sync of `dir` makes the change durable.
    pub(super) fn change(&mut self, dir: &Path, change: Change) {
        change.apply(&mut self.now);
        let change = match change {
            Change::Put(path, entry) => Change::Put(path, entry.unheld()),
            change => change,
        };
        self.pending.push((dir.to_path_buf(), change));
    }

    /// Makes a directory; returns true if there was none.
    pub(super) fn make_dir(&mut self, dir: &Path) -> Result<bool, StorageError> {
        match self.now.get(dir) {
            None => {
                let made = Change::Put(dir.to_path_buf(), DirEntry::Dir(LockTable::default()));
                self.change(parent(dir), made);
                Ok(true)
            }
            Some(DirEntry::Dir(_)) => Ok(false),
            Some(DirEntry::File(_)) => at("make directory", dir, Err(io::ErrorKind::NotADirectory)),
        }
    }

    pub(super) fn sync(&mut self, dir: &Path) {
        let durable = &mut self.durable;
        let of_dir = (self.pending).extract_if(.., |(changed, _)| changed == dir);
        of_dir.for_each(|(_, change)| change.apply(durable));
    }
}
