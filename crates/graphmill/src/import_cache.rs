//! Where the graph imported from a file of edges is kept: in `FILE.graphmill/`, beside the file.
//!
//! One directory an import, named by what went into it: `STAMP-OPTIONS`, hashes of the files and of the import's options with the
//! format of stored graphs. So a file that changed, or other options, never meet an old graph; graphs of older stamps are removed.
//!
//! The stamp is made of each file's name and [`FileIdentity`](graphmill_storage::FileIdentity): its number in the file system, its size,
//! and the times when it was modified and when anything about it changed, in nanoseconds. A file that was written in place, or
//! replaced by another of the same size and time of modification, so has another stamp. The bytes are not read: that would take
//! as long as the import saves. A copy of the file, or one that was renamed and back, is imported again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_storage::{DirLock, Disk, LockMode, Owner, StorageError, WorkDir, unlocked_dirs};

use crate::error::Error;
use crate::hash::Fnv1a;
use crate::machine::resources::{Machine, folder_of};
use crate::paths::{DESCRIPTION, is_pattern};

/// How the names of directories begin in which an import that was interrupted keeps what it did.
const KEPT: [&str; 2] = [".graphmill-import-", ".graphmill-graph-"];

/// What the name of the directory of an input's graphs ends with.
const ENDING: &str = ".graphmill";

/// A graph that a run has kept beside a file or directory of edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedGraph {
    /// The stored graph.
    pub path: PathBuf,
    /// The edges that it was made of; they may be gone by now.
    pub input: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
}

impl Machine {
    /// The graphs that are kept of the edges at `path`, and of all edges in it where it is a directory.
    ///
    /// # Errors
    /// There is nothing at `path`, or the disk fails.
    pub fn cached_graphs(&self, path: &Path) -> Result<Vec<CachedGraph>, Error> {
        let disk = self.disk();
        let beside = folder_beside(path);
        let mut folders = Vec::new();
        match is_folder(&beside) {
            true => folders.push(beside),
            false => self.check_there(path)?,
        }
        match path.to_str().is_some_and(|path| path.ends_with(ENDING)) {
            true => folders.push(path.to_path_buf()),
            false if is_folder(path) => folders.extend(disk.list(path)?),
            false => {}
        }
        let mut graphs = Vec::new();
        for folder in folders {
            let text = folder.as_os_str().to_string_lossy();
            let Some(input) = text.strip_suffix(ENDING).filter(|_| is_folder(&folder)) else {
                continue;
            };
            for path in disk.list(&folder)? {
                let is_graph = is_graph_name(&path) && is_folder(&path);
                if is_graph && disk.exists(&path.join(DESCRIPTION))? {
                    let (bytes, input) = (self.disk_bytes(&path)?, PathBuf::from(input));
                    graphs.push(CachedGraph { path, input, bytes });
                }
            }
        }
        Ok(graphs)
    }

    /// Removes a cached graph, and the directory of its input if it was the last; false if it is in use.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove_cached(&self, graph: &CachedGraph) -> Result<bool, Error> {
        let folder = folder_of(&graph.path);
        let is_removed = remove(self.disk(), &folder, &graph.path)?;
        // It stays where there is something else in it.
        let _ = self.disk().remove_dir(&folder);
        Ok(is_removed)
    }
}

/// The directory of the graphs that are kept of an input.
fn folder_beside(input: &Path) -> PathBuf {
    // `.` and `..` have a name only in full.
    let whole = match input.file_name() {
        Some(_) => input.to_path_buf(),
        None => std::fs::canonicalize(input).unwrap_or_else(|_| input.to_path_buf()),
    };
    // A pattern of files has its cache in the directory above them all.
    let whole = match is_pattern(&whole) {
        true => folder_of_pattern(&whole),
        false => whole,
    };
    let mut name = OsString::from(whole.file_name().unwrap_or("input".as_ref()));
    name.push(ENDING);
    whole.with_file_name(name)
}

/// Whether there is a directory, and no link to one: what a link leads to is not ours.
fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}

/// Whether a graph of a cache has such a name: two hashes.
fn is_graph_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_part = |byte: &u8| *byte == b'-' || byte.is_ascii_hexdigit();
    name.len() == 33 && name.iter().all(is_part)
}

/// Removes a graph atomically, unless a run has locked it.
///
/// It renames the graph into a directory that the next import empties if this one is killed.
fn remove(disk: &Arc<dyn Disk>, folder: &Path, graph: &Path) -> Result<bool, StorageError> {
    let Some(_hold) = disk.hold(graph, LockMode::Alone, Owner::Own)? else {
        return Ok(false);
    };
    let away = WorkDir::create(disk, folder, "stale")?;
    disk.rename(graph, &away.path().join("graph"))?;
    Ok(true)
}

/// The place of one import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheLocation {
    /// Directory of all graphs made from this input.
    pub(crate) folder: PathBuf,
    /// Owners of trusted directories, apart from this user: root, and the owner of the file.
    owners: [u32; 2],
    stamp: String,
    options: String,
}

impl CacheLocation {
    /// Where the graph of `files` (all of `input`) imported with `options` belongs.
    ///
    /// # Errors
    /// A file is not there, or the system says nothing about it.
    pub(crate) fn of(
        disk: &dyn Disk,
        input: &Path,
        files: &[PathBuf],
        options: &str,
    ) -> Result<CacheLocation, StorageError> {
        let mut stamp = Fnv1a::new();
        for file in files {
            let facts = disk.stamp(file)?;
            let name = file.file_name().unwrap_or_default();
            stamp.add(name.as_encoded_bytes());
            stamp.add(&facts.inode.to_le_bytes());
            stamp.add(&facts.bytes.to_le_bytes());
            for (seconds, nanoseconds) in [facts.modified, facts.changed] {
                stamp.add(&seconds.to_le_bytes());
                stamp.add(&nanoseconds.to_le_bytes());
            }
        }
        let mut hash = Fnv1a::new();
        hash.add(env!("CARGO_PKG_VERSION").as_bytes());
        hash.add(&graphmill_graph::FORMAT.to_le_bytes());
        hash.add(options.as_bytes());
        Ok(CacheLocation {
            owners: [
                0,
                disk.owner(files.first().map_or(input, PathBuf::as_path))?,
            ],
            folder: folder_beside(input),
            stamp: stamp.text(),
            options: hash.text(),
        })
    }

    /// The stored graph's directory.
    pub(crate) fn graph(&self) -> PathBuf {
        self.folder.join(format!("{}-{}", self.stamp, self.options))
    }

    /// Takes hold of the graph for a run, so that it stays; none when there is no such graph.
    ///
    /// # Errors
    /// Another user than this one, root or the owner of the file owns the directory.
    pub(crate) fn hold(&self, disk: &dyn Disk) -> Result<Option<DirLock>, StorageError> {
        let owner = Owner::OwnOr(&self.owners);
        let Some(folder) = disk.hold(&self.folder, LockMode::Unlocked, owner)? else {
            return Ok(None);
        };
        let graph = match disk.hold(&self.graph(), LockMode::Shared, owner) {
            Err(StorageError::Path { .. }) => {
                disk.hold(&self.graph(), LockMode::Unlocked, owner)?
            }
            held => held?,
        };
        // In this order: the graph is below the directory.
        Ok(graph.map(|graph| Box::new((graph, folder)) as DirLock))
    }

    /// Makes the directory of all graphs, and takes hold of it; none where it cannot be made.
    ///
    /// # Errors
    /// As for [`CacheLocation::hold`].
    pub(crate) fn make(&self, disk: &dyn Disk) -> Result<Option<DirLock>, StorageError> {
        match disk.create_dir_all(&self.folder) {
            Ok(()) => disk.hold(&self.folder, LockMode::Unlocked, Owner::OwnOr(&self.owners)),
            // A write to the directory reports the cause.
            Err(_) => Ok(None),
        }
    }

    /// Removes the graphs of other stamps that no run has locked.
    ///
    /// What it cannot remove stays: the next import tries again.
    pub(crate) fn remove_stale(&self, disk: &Arc<dyn Disk>) {
        let Ok(Some(_folder)) = disk.hold(&self.folder, LockMode::Unlocked, Owner::Own) else {
            return;
        };
        for graph in disk.list(&self.folder).unwrap_or_default() {
            let name = graph.file_name().unwrap_or_default().as_encoded_bytes();
            if is_graph_name(&graph) && !name.starts_with(self.stamp.as_bytes()) {
                let _ = remove(disk, &self.folder, &graph);
            }
        }
        // Checkpoints of an import of another state of the input.
        let is_kept = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| KEPT.iter().any(|kept| name.starts_with(kept)))
        };
        for (kept, _hold) in unlocked_dirs(&**disk, &self.folder, is_kept) {
            let _ = disk.remove_dir_all(&kept);
        }
    }
}

/// Where a pattern would lie in the deepest directory that it names in full.
fn folder_of_pattern(pattern: &Path) -> PathBuf {
    let plain = pattern.ancestors().find(|path| !is_pattern(path));
    let plain = plain.unwrap_or(Path::new(""));
    let rest = pattern.strip_prefix(plain).unwrap_or(pattern);
    let rest = rest.to_string_lossy();
    plain.join(rest.replace(['*', '?', '[', ']', '/'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::SimDisk;

    #[test]
    fn cached_graph_is_removed_when_unlocked() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let (folder, file) = (Path::new("/t"), PathBuf::from("/t/edges"));
        disk.create_dir_all(folder).unwrap();
        let of = |text: &[u8]| {
            disk.write_small(&file, text).unwrap();
            let cache = CacheLocation::of(&*disk, &file, std::slice::from_ref(&file), "").unwrap();
            disk.create_dir_all(&cache.graph()).unwrap();
            cache
        };
        let (old, new) = (of(b"1 2"), of(b"1 3"));
        assert_ne!(old, new);
        let held = old.hold(&*disk).unwrap();
        assert!(held.is_some());
        new.remove_stale(&disk);
        assert_eq!(disk.list(&new.folder).unwrap().len(), 2);
        drop(held);
        new.remove_stale(&disk);
        assert_eq!(disk.list(&new.folder).unwrap(), [new.graph()]);
        // The second call finds nothing to remove.
        new.remove_stale(&disk);
        assert!(old.hold(&*disk).unwrap().is_none());
    }
}
