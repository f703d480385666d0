//! The names on a simulated disk: the current names, and those that a power cut leaves.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use graphmill_raw::{SplitMix64, lock};

use super::content::Content;
use crate::error::{StorageError, at};

/// The current names, and those that a power cut leaves.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    pub(super) now: Tree,
    pub(super) durable: Tree,
    /// Changes that are not yet durable, each with the directory whose sync makes it so.
    pending: Vec<(PathBuf, Change)>,
}

pub(super) type Tree = BTreeMap<PathBuf, DirEntry>;

#[derive(Clone, Debug)]
pub(super) enum DirEntry {
    Dir(LockTable),
    File(Arc<Mutex<Content>>),
}

impl DirEntry {
    /// A file whose bytes are durable.
    pub(super) fn of(bytes: Vec<u8>) -> DirEntry {
        DirEntry::File(Arc::new(Mutex::new(Content::of(bytes))))
    }

    /// Returns the entry as it is on disk, without its holders.
    fn unheld(&self) -> DirEntry {
        match self {
            DirEntry::Dir(_) => DirEntry::Dir(LockTable::default()),
            file => file.clone(),
        }
    }
}

/// A change of names.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(PathBuf, DirEntry),
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

impl Namespace {
    /// Returns the names and files that a power cut leaves.
    pub(super) fn after_power_cut(&self, random: &mut SplitMix64) -> Tree {
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
        let mut there = Tree::new();
        for (path, entry) in tree {
            if is_dir(&there, parent(&path)) {
                let entry = match entry {
                    DirEntry::Dir(_) => DirEntry::Dir(LockTable::default()),
                    DirEntry::File(content) => DirEntry::of(lock(&content).after_power_cut(random)),
                };
                there.insert(path, entry);
            }
        }
        there
    }

    /// Returns an independent copy of all names and files.
    pub(super) fn copied(&self) -> Tree {
        let own = |entry: &DirEntry| match entry {
            DirEntry::Dir(_) => DirEntry::Dir(LockTable::default()),
            DirEntry::File(content) => DirEntry::of(lock(content).bytes.clone()),
        };
        let all = self.now.iter();
        all.map(|(path, entry)| (path.clone(), own(entry)))
            .collect()
    }

    /// Starts with these names, all durable.
    pub(super) fn begin(&mut self, tree: Tree) {
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

    pub(super) fn need_dir(&self, path: &Path) -> Result<(), io::ErrorKind> {
        is_dir(&self.now, path)
            .then_some(())
            .ok_or(io::ErrorKind::NotFound)
    }

    pub(super) fn sync(&mut self, dir: &Path) {
        let durable = &mut self.durable;
        let of_dir = (self.pending).extract_if(.., |(changed, _)| changed == dir);
        of_dir.for_each(|(_, change)| change.apply(durable));
    }
}

/// The holders of a directory, counted by the clones of each field.
#[derive(Clone, Debug, Default)]
pub(super) struct LockTable {
    pub(super) shared: Arc<()>,
    pub(super) alone: Arc<()>,
}

pub(super) fn is_dir(names: &Tree, path: &Path) -> bool {
    path.parent().is_none() || matches!(names.get(path), Some(DirEntry::Dir(_)))
}

/// Returns the directory of a path.
///
/// The start of relative paths counts as a directory, as the root does.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Returns the paths directly in a directory, sorted.
pub(super) fn children<'n>(names: &'n Tree, dir: &'n Path) -> impl Iterator<Item = &'n PathBuf> {
    names.keys().filter(move |path| path.parent() == Some(dir))
}

/// Removes a file, or a directory with its contents; returns them by names within it.
pub(super) fn take(names: &mut Tree, from: &Path) -> Vec<(PathBuf, DirEntry)> {
    let within = |path: &Path| path.strip_prefix(from).ok().map(Path::to_path_buf);
    let taken = names.extract_if(.., |path, _| path.starts_with(from));
    taken
        .filter_map(|(path, entry)| Some((within(&path)?, entry)))
        .collect()
}

/// Puts removed entries under another name.
pub(super) fn put(names: &mut Tree, to: &Path, taken: Vec<(PathBuf, DirEntry)>) {
    for (within, entry) in taken {
        // Joining an empty path would add a slash at the end.
        let path = match within.as_os_str().is_empty() {
            true => to.to_path_buf(),
            false => to.join(within),
        };
        names.insert(path, entry);
    }
}
