//! Opening of files, the targets of paths, and the permissions that a new file inherits.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, StatxFlags, Uid};
use rustix::io::Errno;

use super::dirs::NamedEntry;
use crate::disk::port::{GRAIN_BYTES, Open, Target};

/// Maximum number of links on a path, as in the kernel.
const LINKS_MAX: u32 = 40;

pub(super) fn is(facts: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(facts.st_mode) == kind
}

/// Gives a file the mode of another, and its owner if this user may do that.
pub(super) fn inherit(file: impl AsFd, there: &Stat) -> io::Result<()> {
    if !is(there, FileType::RegularFile) {
        return Ok(());
    }
    let new = rustix::fs::fstat(&file)?;
    if (new.st_uid, new.st_gid) != (there.st_uid, there.st_gid) {
        let owner = (Uid::from_raw(there.st_uid), Gid::from_raw(there.st_gid));
        // Only root may give a file another owner.
        let _ = rustix::fs::fchown(&file, Some(owner.0), Some(owner.1));
    }
    let mode = Mode::from_raw_mode(there.st_mode & 0o777);
    Ok(rustix::fs::fchmod(&file, mode)?)
}

/// Returns the target of a write to a path, links followed.
pub(super) fn target(path: &Path) -> io::Result<Target> {
    let stream = || {
        rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::empty())?;
        Ok(Target::Stream)
    };
    let mut at = path.to_path_buf();
    for _ in 0..=LINKS_MAX {
        let facts = match rustix::fs::lstat(&at) {
            Err(Errno::NOENT) => return Ok(Target::File(at)),
            facts => facts?,
        };
        let folder = parent(&at);
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::RegularFile | FileType::Directory => return Ok(Target::File(at)),
            FileType::Symlink => {
                // /dev/stdout leads there; its file is open already.
                if std::fs::canonicalize(folder)?.starts_with("/proc") {
                    return stream();
                }
                check_link(folder, &facts)?;
                at = folder.join(std::fs::read_link(&at)?);
            }
            _ => return stream(),
        }
    }
    Err(Errno::LOOP.into())
}

/// Refuses another user's link in a directory where every user may create one.
///
/// The kernel does the same for links that it follows itself.
fn check_link(folder: &Path, link: &Stat) -> io::Result<()> {
    let above = rustix::fs::stat(folder)?;
    let is_for_all = above.st_mode & 0o1002 == 0o1002;
    let user = rustix::process::geteuid().as_raw();
    match is_for_all && ![user, above.st_uid].contains(&link.st_uid) {
        true => Err(Errno::ACCESS.into()),
        false => Ok(()),
    }
}

pub(super) fn open(place: &NamedEntry<'_>, how: Open) -> io::Result<OwnedFd> {
    let flags = match how {
        Open::Read => OFlags::RDONLY,
        Open::Update => OFlags::RDWR,
        _ => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW,
    };
    if !how.creates() {
        // Before opening: a pipe would block there.
        match FileType::from_raw_mode(place.stat()?.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            _ => {
                let kind = io::ErrorKind::InvalidInput;
                return Err(io::Error::new(kind, "not a regular file"));
            }
        }
    }
    let mode = Mode::from_raw_mode(match how {
        Open::CreatePrivate => 0o600,
        _ => 0o666,
    });
    let descriptor = match place.open(flags | OFlags::DIRECT, mode) {
        // No direct I/O here. Some kernels notice that only after they have made the file.
        Err(Errno::INVAL) => return Ok(place.open(flags - OFlags::EXCL, mode)?),
        opened => opened?,
    };
    if !takes_direct(&descriptor) {
        let flags = rustix::fs::fcntl_getfl(&descriptor)?;
        rustix::fs::fcntl_setfl(&descriptor, flags - OFlags::DIRECT)?;
    }
    Ok(descriptor)
}

/// Returns true if direct I/O at [`GRAIN_BYTES`] suits the file.
///
/// Kernels before 6.1 do not report it. Then the result is true.
fn takes_direct(descriptor: &OwnedFd) -> bool {
    let Ok(stat) = rustix::fs::statx(descriptor, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
    else {
        return true;
    };
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN);
    let suits = |align: u32| align > 0 && GRAIN_BYTES.is_multiple_of(align as usize);
    !known || suits(stat.stx_dio_offset_align) && suits(stat.stx_dio_mem_align)
}

/// Returns the directory of a path.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        // The root is in itself.
        None => path,
        Some(_) => Path::new("."),
    }
}
