//! Directories of this user that are held open, and the paths below them.
//!
//! Invariants: a path below a held directory is resolved from its descriptor, name by name, and never through a symbolic link. So a link or
//! another directory under one of these names changes nothing. All other paths are resolved as users expect.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Stat};
use rustix::io::Errno;

/// The directories that are held, each under the path by which it was opened.
#[derive(Debug, Default)]
pub(super) struct HeldDirs {
    dirs: Mutex<Vec<(PathBuf, Arc<OwnedFd>)>>,
    /// Locked while a held directory is listed, since its descriptor has one position.
    listing: Mutex<()>,
}

/// A hold on a directory, until this is dropped.
#[derive(Debug)]
pub(super) struct HeldDir {
    all: Arc<HeldDirs>,
    descriptor: Arc<OwnedFd>,
}

impl Drop for HeldDir {
    fn drop(&mut self) {
        let mut dirs = lock(&self.all.dirs);
        dirs.retain(|(_, held)| !Arc::ptr_eq(held, &self.descriptor));
    }
}

/// A name in a directory.
#[derive(Debug)]
pub(super) struct NamedEntry<'p> {
    dir: Option<Arc<OwnedFd>>,
    pub(super) name: &'p Path,
}

impl NamedEntry<'_> {
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_ref().map_or(CWD, |dir| dir.as_fd())
    }

    /// Opens it, but no link if it is below a held directory.
    pub(super) fn open(&self, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let own = match self.dir {
            Some(_) => OFlags::CLOEXEC | OFlags::NOFOLLOW,
            None => OFlags::CLOEXEC,
        };
        rustix::fs::openat(self.dir(), self.name, own | flags, mode)
    }

    pub(super) fn unlink(&self, how: AtFlags) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(self.dir(), self.name, how)
    }

    /// Returns its metadata, of a link itself if it is below a held directory.
    pub(super) fn stat(&self) -> rustix::io::Result<Stat> {
        let flags = match self.dir {
            Some(_) => AtFlags::SYMLINK_NOFOLLOW,
            None => AtFlags::empty(),
        };
        rustix::fs::statat(self.dir(), self.name, flags)
    }

    /// Returns the metadata of the name itself, even if it is a link.
    pub(super) fn stat_itself(&self) -> rustix::io::Result<Stat> {
        rustix::fs::statat(self.dir(), self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

impl HeldDirs {
    /// Holds an open directory.
    pub(super) fn hold(self: &Arc<Self>, path: &Path, descriptor: OwnedFd) -> HeldDir {
        let descriptor = Arc::new(descriptor);
        lock(&self.dirs).push((path.to_path_buf(), Arc::clone(&descriptor)));
        let all = Arc::clone(self);
        HeldDir { all, descriptor }
    }

    /// Records that directories moved at the same time, each from its first path to its second.
    pub(super) fn renamed(&self, changes: &[(&Path, &Path)]) {
        for (path, _) in lock(&self.dirs).iter_mut() {
            let change = changes
                .iter()
                .find_map(|(from, to)| Some((path.strip_prefix(from).ok()?, to)));
            if let Some((below, to)) = change {
                *path = match below.as_os_str().is_empty() {
                    true => to.to_path_buf(),
                    false => to.join(below),
                };
            }
        }
    }

    /// Returns the directory of that path, if it is held.
    pub(super) fn held(&self, path: &Path) -> Option<Arc<OwnedFd>> {
        let dirs = lock(&self.dirs);
        let mut held = dirs.iter().rev();
        held.find(|(held, _)| held == path)
            .map(|(_, held)| Arc::clone(held))
    }

    /// Returns a path as a name below the innermost held directory above it.
    pub(super) fn place<'p>(&self, path: &'p Path) -> io::Result<NamedEntry<'p>> {
        let above = {
            let dirs = lock(&self.dirs);
            let below = |(held, dir): &(PathBuf, Arc<OwnedFd>)| {
                let below = path.strip_prefix(held).ok()?;
                (!below.as_os_str().is_empty()).then(|| (Arc::clone(dir), below))
            };
            let all = dirs.iter().filter_map(below);
            all.min_by_key(|(_, below)| below.components().count())
        };
        let Some((mut dir, below)) = above else {
            let (dir, name) = (None, path);
            return Ok(NamedEntry { dir, name });
        };
        let mut components = below.components().peekable();
        while let Some(component) = components.next() {
            let Component::Normal(name) = component else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            let name = Path::new(name);
            if components.peek().is_none() {
                let dir = Some(dir);
                return Ok(NamedEntry { dir, name });
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            dir = Arc::new(rustix::fs::openat(&dir, name, flags, Mode::empty())?);
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// Returns the names in a directory; a held one needs no other descriptor.
    ///
    /// The process may have no descriptor left.
    pub(super) fn names(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(held) = self.held(path) else {
            return Ok(names(self.open_dir(path)?.as_fd())?);
        };
        let _turn = lock(&self.listing);
        rustix::fs::seek(&held, SeekFrom::Start(0))?;
        Ok(names(held.as_fd())?)
    }

    /// Opens a directory to read its names or to change its mode.
    pub(super) fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Some(held) = self.held(path) {
            return Ok(rustix::fs::openat(&held, ".", flags, Mode::empty())?);
        }
        Ok(self.place(path)?.open(flags, Mode::empty())?)
    }

    /// Removes a directory and all that is in it, without following links.
    ///
    /// If another directory now has the name of a held one, only the contents of the held one are removed.
    pub(super) fn remove_all(&self, path: &Path) -> io::Result<()> {
        let place = self.place(path)?;
        // Needs no new descriptor, since the process may have none left.
        match place.unlink(AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return Ok(removed?),
        }
        match self.held(path) {
            Some(held) => {
                let (named, own) = (place.stat_itself()?, rustix::fs::fstat(&held)?);
                if (named.st_dev, named.st_ino) != (own.st_dev, own.st_ino) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let _turn = lock(&self.listing);
                rustix::fs::seek(&held, SeekFrom::Start(0))?;
                clear(held.as_fd())?;
            }
            None => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                clear(place.open(flags, Mode::empty())?.as_fd())?;
            }
        }
        Ok(place.unlink(AtFlags::REMOVEDIR)?)
    }
}

/// Returns the names in an open directory, from its position on.
fn names(dir: BorrowedFd<'_>) -> rustix::io::Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStrExt;
    // Names have at most 255 bytes on Linux; a few file systems allow a little more.
    let mut buffer = [MaybeUninit::uninit(); 8 << 10];
    let mut entries = RawDir::new(dir, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = std::ffi::OsStr::from_bytes(entry?.file_name().to_bytes()).to_os_string();
        if name != "." && name != ".." {
            names.push(PathBuf::from(name));
        }
    }
    Ok(names)
}

/// Removes the contents of an open directory.
fn clear(dir: BorrowedFd<'_>) -> io::Result<()> {
    for name in names(dir)? {
        let kind = match rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            // Another rank was faster.
            Err(Errno::NOENT) => continue,
            facts => FileType::from_raw_mode(facts?.st_mode),
        };
        let removal = match kind {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                clear(rustix::fs::openat(dir, &name, flags, Mode::empty())?.as_fd())?;
                AtFlags::REMOVEDIR
            }
            _ => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(dir, &name, removal) {
            Err(Errno::NOENT) => {}
            removed => removed?,
        }
    }
    Ok(())
}
