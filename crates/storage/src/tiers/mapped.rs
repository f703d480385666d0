//! The files behind mapped memory: files without a name, which end with the process, or devices.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::FileMap;

use crate::memory_files::IN_MEMORY;

/// A file whose mappings are memory.
#[derive(Clone, Debug)]
pub(super) struct MappedFile {
    pub(super) map: Arc<FileMap>,
    /// True if the file is memory itself, for example on a tmpfs: the budget pays for it.
    pub(super) leased: bool,
}

/// Opens the file at a path: a new one in a directory, a new one of that name, or a device.
pub(super) fn open(path: &Path) -> io::Result<MappedFile> {
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return of_file(named(path)?),
        Err(error) => return Err(error),
    };
    if about.is_dir() {
        return of_file(in_folder(path)?);
    }
    if !about.file_type().is_char_device() {
        // A file that a user has.
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let bytes = device_bytes(about.rdev())?;
    let device = OpenOptions::new().read(true).write(true).open(path)?;
    let map = FileMap::of_device(device, bytes)?;
    let leased = false;
    Ok(MappedFile { map, leased })
}

fn of_file(file: File) -> io::Result<MappedFile> {
    let leased = IN_MEMORY.contains(&(rustix::fs::fstatfs(&file)?.f_type as u32));
    let map = FileMap::of_file(file, leased)?;
    Ok(MappedFile { map, leased })
}

/// Creates a file under a name that it loses at once.
fn named(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600);
    let file = file.open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Creates a file in a directory, without a name if the file system supports that.
fn in_folder(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.custom_flags(libc::O_TMPFILE).open(folder) {
        Err(error) if !is_final(&error) => named(&folder.join(unused_name())),
        opened => opened,
    }
}

/// Returns true if the error of a file without a name holds for any file.
fn is_final(error: &io::Error) -> bool {
    let unable = [libc::EOPNOTSUPP, libc::EISDIR, libc::EINVAL, libc::ENOENT];
    (error.raw_os_error()).is_none_or(|number| !unable.contains(&number))
}

fn unused_name() -> PathBuf {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    format!(".graphmill-memory-{}-{number}", std::process::id()).into()
}

/// Returns the bytes of a device of persistent memory; fails for other devices.
fn device_bytes(device: u64) -> io::Result<u64> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = format!("/sys/dev/char/{major}:{minor}/size");
    let bytes = std::fs::read_to_string(path).map(|text| text.trim().parse().ok());
    bytes
        .ok()
        .flatten()
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}
