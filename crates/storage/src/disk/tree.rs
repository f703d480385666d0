//! The names of files that live in this process: which there are, and which changes of them make sense.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::port::{DirLock, LockMode, Open};

/// Files of type `F` and directories by their paths.
pub(super) type Tree<F> = BTreeMap<PathBuf, DirEntry<F>>;

/// A directory, or a file.
#[derive(Clone, Debug)]
pub(super) enum DirEntry<F> {
    Dir(LockTable),
    File(F),
}

/// The holders of a directory, counted by the clones of each field.
#[derive(Clone, Debug, Default)]
pub(super) struct LockTable {
    shared: Arc<()>,
    alone: Arc<()>,
}

impl LockTable {
    /// Locks the directory; `None` if others hold it.
    pub(super) fn hold(&self, how: LockMode) -> Option<DirLock> {
        let is_free = |holders: &Arc<()>| Arc::strong_count(holders) == 1;
        let held = match how {
            LockMode::Shared => is_free(&self.alone).then_some(&self.shared),
            LockMode::Alone => {
                (is_free(&self.alone) && is_free(&self.shared)).then_some(&self.alone)
            }
            LockMode::Unlocked => return Some(Box::new(())),
        };
        held.map(|held| Box::new(Arc::clone(held)) as DirLock)
    }
}

pub(super) fn is_dir<F>(names: &Tree<F>, path: &Path) -> bool {
    path.parent().is_none() || matches!(names.get(path), Some(DirEntry::Dir(_)))
}

/// Fails unless there is a directory of that name.
pub(super) fn need_dir<F>(names: &Tree<F>, path: &Path) -> Result<(), io::ErrorKind> {
    is_dir(names, path)
        .then_some(())
        .ok_or(io::ErrorKind::NotFound)
}

/// Returns the directory of a path.
///
/// The start of relative paths counts as a directory, as the root does.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Returns the paths directly in a directory, sorted.
pub(super) fn children<'n, F>(
    names: &'n Tree<F>,
    dir: &'n Path,
) -> impl Iterator<Item = &'n PathBuf> {
    names.keys().filter(move |path| path.parent() == Some(dir))
}

/// Returns the file of that name; `None` if the caller must create it.
pub(super) fn find<F: Clone>(
    names: &Tree<F>,
    path: &Path,
    how: Open,
) -> Result<Option<F>, io::ErrorKind> {
    match (names.get(path), how) {
        (Some(_), how) if how.creates() => Err(io::ErrorKind::AlreadyExists),
        (Some(DirEntry::File(file)), _) => Ok(Some(file.clone())),
        (Some(DirEntry::Dir(_)), _) => Err(io::ErrorKind::IsADirectory),
        (None, how) if how.creates() && is_dir(names, parent(path)) => Ok(None),
        (None, _) => Err(io::ErrorKind::NotFound),
    }
}

/// Fails unless `from` can be renamed to `to`.
pub(super) fn check_rename<F>(
    names: &Tree<F>,
    from: &Path,
    to: &Path,
) -> Result<(), io::ErrorKind> {
    let full = children(names, to).next().is_some();
    match (names.get(from), names.get(to)) {
        (None, _) => Err(io::ErrorKind::NotFound),
        _ if !is_dir(names, parent(to)) => Err(io::ErrorKind::NotFound),
        (Some(DirEntry::File(_)), Some(DirEntry::Dir(_))) => Err(io::ErrorKind::IsADirectory),
        (Some(DirEntry::Dir(_)), Some(DirEntry::File(_))) => Err(io::ErrorKind::NotADirectory),
        (Some(DirEntry::Dir(_)), _) if full => Err(io::ErrorKind::DirectoryNotEmpty),
        (Some(DirEntry::Dir(_)), _) if to != from && to.starts_with(from) => {
            Err(io::ErrorKind::InvalidInput)
        }
        _ => Ok(()),
    }
}

/// Fails unless the names of both can be exchanged.
pub(super) fn check_exchange<F>(
    names: &Tree<F>,
    one: &Path,
    other: &Path,
) -> Result<(), io::ErrorKind> {
    for (path, within) in [(one, other), (other, one)] {
        let is_inside = path.starts_with(within) && one != other;
        match names.get(path) {
            None => return Err(io::ErrorKind::NotFound),
            Some(_) if is_inside => return Err(io::ErrorKind::InvalidInput),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Fails unless a file, or an empty directory, can be removed.
pub(super) fn check_remove<F>(
    names: &Tree<F>,
    path: &Path,
    is_file: bool,
) -> Result<(), io::ErrorKind> {
    match names.get(path) {
        None => Err(io::ErrorKind::NotFound),
        Some(DirEntry::Dir(_)) if is_file => Err(io::ErrorKind::IsADirectory),
        Some(DirEntry::File(_)) if !is_file => Err(io::ErrorKind::NotADirectory),
        Some(_) if children(names, path).next().is_some() => Err(io::ErrorKind::DirectoryNotEmpty),
        Some(_) => Ok(()),
    }
}

/// Removes a file, or a directory with its contents; returns them by names within it.
pub(super) fn take<F>(names: &mut Tree<F>, from: &Path) -> Vec<(PathBuf, DirEntry<F>)> {
    let within = |path: &Path| path.strip_prefix(from).ok().map(Path::to_path_buf);
    let taken = names.extract_if(.., |path, _| path.starts_with(from));
    taken
        .filter_map(|(path, entry)| Some((within(&path)?, entry)))
        .collect()
}

/// Puts removed entries under another name.
pub(super) fn put<F>(names: &mut Tree<F>, to: &Path, taken: Vec<(PathBuf, DirEntry<F>)>) {
    for (within, entry) in taken {
        // Joining an empty path would add a slash at the end.
        let path = match within.as_os_str().is_empty() {
            true => to.to_path_buf(),
            false => to.join(within),
        };
        names.insert(path, entry);
    }
}
