//! A directory whose files live in the memory of this process; all other paths are on the disk below.
//!
//! Names and bytes are gone with the disk, so nothing is made durable. The bytes are leased from a budget. A queue moves the bytes of
//! such a file at once, when an operation is submitted.

mod content;
mod queue;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use graphmill_raw::lock;

use self::content::{MemoryContent, MemoryFile};
use self::queue::MemoryQueue;
use super::port::{DirLock, Disk, FileHandle, FileIdentity, LockMode, Open, Owner, Queue, Target};
use super::transfer::own;
use super::tree::{
    DirEntry, LockTable, Tree, check_exchange, check_remove, check_rename, children, find, is_dir,
    need_dir, parent, put, take,
};
use crate::error::{StorageError, at, at_most};
use crate::memory_budget::MemoryBudget;

type Names = Tree<Arc<Mutex<MemoryContent>>>;

/// Files in memory, below a directory that only this process sees. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryFiles {
    root: PathBuf,
    names: Arc<Mutex<Names>>,
}

/// A disk with one directory in memory.
#[derive(Debug)]
pub struct MemoryDisk {
    files: MemoryFiles,
    below: Arc<dyn Disk>,
    budget: MemoryBudget,
}

impl MemoryFiles {
    /// No files, below the directory `root`.
    pub fn new(root: PathBuf) -> Self {
        let mut names = Tree::new();
        for dir in root.ancestors() {
            names.insert(dir.to_path_buf(), DirEntry::Dir(LockTable::default()));
        }
        let names = Arc::new(Mutex::new(names));
        MemoryFiles { root, names }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the bytes of all files.
    pub fn bytes(&self) -> u64 {
        let names = lock(&self.names);
        let bytes = names.values().map(|entry| match entry {
            DirEntry::File(content) => lock(content).len() as u64,
            DirEntry::Dir(_) => 0,
        });
        bytes.sum()
    }
}

impl MemoryDisk {
    /// The disk of these files and of all of `below` beside them.
    ///
    /// This disk leases what it writes to them from `budget`.
    pub fn new(files: MemoryFiles, below: Arc<dyn Disk>, budget: MemoryBudget) -> Self {
        MemoryDisk {
            files,
            below,
            budget,
        }
    }

    /// The names, if the path is one of them.
    fn names(&self, path: &Path) -> Option<MutexGuard<'_, Names>> {
        path.starts_with(&self.files.root)
            .then(|| lock(&self.files.names))
    }

    /// The names, if both paths are among them; an error if one is.
    fn names_of_both(
        &self,
        action: &'static str,
        [one, other]: [&Path; 2],
    ) -> Result<Option<MutexGuard<'_, Names>>, StorageError> {
        match (
            one.starts_with(&self.files.root),
            other.starts_with(&self.files.root),
        ) {
            (true, true) => Ok(Some(lock(&self.files.names))),
            (false, false) => Ok(None),
            _ => at(action, one, Err(io::ErrorKind::CrossesDevices)),
        }
    }

    /// The bytes of the file of that name.
    fn content(
        &self,
        action: &'static str,
        names: &Names,
        path: &Path,
    ) -> Result<Arc<Mutex<MemoryContent>>, StorageError> {
        let found = find(names, path, Open::Read)
            .and_then(|content| content.ok_or(io::ErrorKind::NotFound));
        at(action, path, found)
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError> {
        let Some(mut names) = self.names(path) else {
            return self.below.open(path, how);
        };
        let content = match at("open", path, find(&names, path, how))? {
            Some(content) => content,
            None => {
                let content = Arc::default();
                names.insert(path.to_path_buf(), DirEntry::File(Arc::clone(&content)));
                content
            }
        };
        Ok(Arc::new(MemoryFile {
            path: path.to_path_buf(),
            budget: self.budget.clone(),
            content,
        }))
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError> {
        Ok(Box::new(MemoryQueue::new(Arc::clone(&self.below), depth)))
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        let Some(mut names) = self.names(path) else {
            return self.below.create_dir_all(path);
        };
        for dir in path.ancestors() {
            match names.get(dir) {
                Some(DirEntry::File(_)) => {
                    return at("make directory", dir, Err(io::ErrorKind::NotADirectory));
                }
                Some(DirEntry::Dir(_)) => {}
                None => {
                    names.insert(dir.to_path_buf(), DirEntry::Dir(LockTable::default()));
                }
            }
        }
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<(), StorageError> {
        match self.names(path) {
            None => self.below.create_dir(path),
            Some(names) => {
                at("make directory", path, need_dir(&names, parent(path)))?;
                drop(names);
                self.create_dir_all(path)
            }
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError> {
        let Some(mut names) = self.names_of_both("rename", [from, to])? else {
            return self.below.rename(from, to);
        };
        at("rename", from, check_rename(&names, from, to))?;
        let moved = take(&mut names, from);
        put(&mut names, to, moved);
        Ok(())
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError> {
        let Some(mut names) = self.names_of_both("exchange", [one, other])? else {
            return self.below.exchange(one, other);
        };
        at("exchange", one, check_exchange(&names, one, other))?;
        let (of_one, of_other) = (take(&mut names, one), take(&mut names, other));
        put(&mut names, other, of_one);
        put(&mut names, one, of_other);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<(), StorageError> {
        let Some(mut names) = self.names(path) else {
            return self.below.remove_file(path);
        };
        at("remove", path, check_remove(&names, path, true))?;
        names.remove(path);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<(), StorageError> {
        let Some(mut names) = self.names(path) else {
            return self.below.remove_dir(path);
        };
        at("remove", path, check_remove(&names, path, false))?;
        names.remove(path);
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError> {
        let Some(mut names) = self.names(path) else {
            return self.below.remove_dir_all(path);
        };
        at("remove", path, need_dir(&names, path))?;
        take(&mut names, path);
        Ok(())
    }

    fn hold(
        &self,
        dir: &Path,
        how: LockMode,
        owner: Owner<'_>,
    ) -> Result<Option<DirLock>, StorageError> {
        match self.names(dir) {
            None => self.below.hold(dir, how, owner),
            Some(names) => Ok(match names.get(dir) {
                Some(DirEntry::Dir(holders)) => holders.hold(how),
                _ => None,
            }),
        }
    }

    fn share(&self, dir: &Path, like: &Path) -> Result<(), StorageError> {
        match self.names(dir) {
            None => self.below.share(dir, like),
            Some(names) => at("share", dir, need_dir(&names, dir)),
        }
    }

    fn owner(&self, path: &Path) -> Result<u32, StorageError> {
        match self.names(path) {
            None => self.below.owner(path),
            Some(_) => Ok(rustix::process::geteuid().as_raw()),
        }
    }

    /// There are no links in memory.
    fn target(&self, path: &Path) -> Result<Target, StorageError> {
        match self.names(path) {
            None => self.below.target(path),
            Some(_) => Ok(Target::File(path.to_path_buf())),
        }
    }

    fn stream(&self, path: &Path) -> Result<Box<dyn io::Write + Send>, StorageError> {
        match self.names(path) {
            None => self.below.stream(path),
            Some(_) => at("open", path, Err(io::ErrorKind::Unsupported)),
        }
    }

    fn inherit(&self, file: &FileHandle, path: &Path) -> Result<(), StorageError> {
        match own::<MemoryFile>(file) {
            Err(_) => self.below.inherit(file, path),
            Ok(_) => Ok(()),
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<(), StorageError> {
        match self.names(path) {
            None => self.below.sync_dir(path),
            Some(names) => at("sync", path, need_dir(&names, path)),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError> {
        let Some(names) = self.names(dir) else {
            return self.below.list(dir);
        };
        at("list", dir, need_dir(&names, dir))?;
        Ok(children(&names, dir).cloned().collect())
    }

    fn is_dir(&self, path: &Path) -> Result<bool, StorageError> {
        match self.names(path) {
            None => self.below.is_dir(path),
            Some(names) => Ok(is_dir(&names, path)),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool, StorageError> {
        match self.names(path) {
            None => self.below.exists(path),
            Some(names) => Ok(names.contains_key(path)),
        }
    }

    fn stamp(&self, path: &Path) -> Result<FileIdentity, StorageError> {
        let Some(names) = self.names(path) else {
            return self.below.stamp(path);
        };
        let (bytes, changes) = match names.get(path) {
            None => return at("look at", path, Err(io::ErrorKind::NotFound)),
            Some(DirEntry::Dir(_)) => (0, 0),
            Some(DirEntry::File(content)) => {
                let content = lock(content);
                (content.len() as u64, content.changes)
            }
        };
        Ok(FileIdentity {
            inode: 0,
            bytes,
            modified: (0, 0),
            changed: (changes, 0),
        })
    }

    fn read_small(&self, path: &Path, max: u64) -> Result<Vec<u8>, StorageError> {
        let Some(names) = self.names(path) else {
            return self.below.read_small(path, max);
        };
        let content = self.content("read", &names, path)?;
        let mut content = lock(&content);
        let mut bytes = vec![
            0;
            content
                .len()
                .min(usize::try_from(max).unwrap_or(usize::MAX))
        ];
        let is_too_long = content.len() > bytes.len();
        content.read(0, &mut bytes);
        if is_too_long {
            bytes.push(0);
        }
        at_most(max, path, &bytes)?;
        Ok(bytes)
    }

    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        let Some(mut names) = self.names(path) else {
            return self.below.write_small(path, bytes);
        };
        at("write", path, need_dir(&names, parent(path)))?;
        if matches!(names.get(path), Some(DirEntry::Dir(_))) {
            return at("write", path, Err(io::ErrorKind::IsADirectory));
        }
        // A new file under the old name: who has the old one open keeps it.
        let mut content = MemoryContent::default();
        content.write(0, bytes, &self.budget)?;
        let file = DirEntry::File(Arc::new(Mutex::new(content)));
        names.insert(path.to_path_buf(), file);
        Ok(())
    }

    fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError> {
        let Ok(file) = own::<MemoryFile>(file) else {
            return self.below.set_len(file, len);
        };
        let len = usize::try_from(len).map_err(io::Error::other);
        let len = at("set the length of", &file.path, len)?;
        lock(&file.content).set_len(len, &file.budget)
    }

    fn reserve(&self, file: &FileHandle, bytes: u64) -> Result<(), StorageError> {
        match own::<MemoryFile>(file) {
            Err(_) => self.below.reserve(file, bytes),
            Ok(_) if bytes > file.len()? => self.set_len(file, bytes),
            Ok(_) => Ok(()),
        }
    }

    fn sync(&self, file: &FileHandle) -> Result<(), StorageError> {
        match own::<MemoryFile>(file) {
            Err(_) => self.below.sync(file),
            Ok(_) => Ok(()),
        }
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, StorageError> {
        match self.names(path) {
            None => self.below.free_bytes(path),
            Some(_) => Ok(self.budget.available()),
        }
    }

    fn is_local(&self, folder: &Path) -> bool {
        match self.names(folder) {
            None => self.below.is_local(folder),
            Some(_) => true,
        }
    }
}

#[cfg(test)]
mod tests;
