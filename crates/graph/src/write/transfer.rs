//! Files of a graph in the making on their way to another host, as one run of bytes.
//!
//! ```text
//! file    bytes of the name: u64 | bytes of the file: u64 | name, relative to the directory | bytes
//! ```

use std::path::{Path, PathBuf};

use graphmill_storage::{Disk, MemoryBudget, Open};

use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, GRAIN, PageReader};
use crate::file::page_writer::PagedWriter;
use crate::manifest::NAME;

const HEAD_BYTES: usize = 16;
/// Bytes of a name at most.
const NAME_BYTES_MAX: u64 = 256;
/// Bytes of a chunk on its way to the disk.
const CHUNK_BYTES: usize = DISK_PAGE_BYTES as usize;

/// Returns the names of the files of a finished graph without column files, the description last.
///
/// # Errors
/// The directory cannot be listed.
pub fn common_files(disk: &dyn Disk, folder: &Path) -> Result<Vec<String>, FormatError> {
    let mut names = Vec::new();
    let name_of = |path: &Path| Some(path.file_name()?.to_str()?.to_string());
    for path in disk.list(folder)? {
        // Hidden ones say something of the work here.
        let Some(name) = name_of(&path).filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if !disk.is_dir(&path)? {
            names.push(name);
            continue;
        }
        for file in disk.list(&path)? {
            // Only column files have an ending there.
            if file.extension().is_none() {
                names.extend(name_of(&file).map(|file| format!("{name}/{file}")));
            }
        }
    }
    names.sort_by_key(|name| name == NAME);
    Ok(names)
}

/// Encodes the contents of files of a directory, by name, in parts of any length.
///
/// [`CopiedFiles`] decodes them elsewhere. The read buffer is leased from `budget`.
///
/// # Errors
/// Reading fails, or `say` fails.
pub fn send_files<E: From<FormatError>>(
    disk: &dyn Disk,
    budget: &MemoryBudget,
    folder: &Path,
    names: &[String],
    mut say: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut fetch = PageReader::new(disk, budget)?;
    for name in names {
        let file = disk.open(&folder.join(name), Open::Read);
        let file = file.map_err(FormatError::from)?;
        let length = file.len().map_err(FormatError::from)?;
        say(&(name.len() as u64).to_le_bytes())?;
        say(&length.to_le_bytes())?;
        say(name.as_bytes())?;
        if !length.is_multiple_of(GRAIN) {
            // Only the description, which is read whole wherever it is.
            let bytes = disk.read_small(&folder.join(name), length);
            say(&bytes.map_err(FormatError::from)?)?;
            continue;
        }
        for at in (0..length).step_by(DISK_PAGE_BYTES as usize) {
            let now = (length - at).min(DISK_PAGE_BYTES) as usize;
            say(fetch.read(&file, at, now)?)?;
        }
    }
    Ok(())
}

/// Writes files that come from another host into a directory; they are durable when it has ended.
pub struct CopiedFiles<'d> {
    disk: &'d dyn Disk,
    budget: MemoryBudget,
    folder: PathBuf,
    /// Bytes that came and make no head yet.
    left: Vec<u8>,
    open: Option<Copying>,
}

/// The file that comes.
struct Copying {
    path: PathBuf,
    writer: PagedWriter,
    left: u64,
    length: u64,
}

impl<'d> CopiedFiles<'d> {
    /// Into an existing directory.
    pub fn new(disk: &'d dyn Disk, budget: &MemoryBudget, folder: &Path) -> Self {
        CopiedFiles {
            disk,
            budget: budget.clone(),
            folder: folder.to_path_buf(),
            left: Vec::new(),
            open: None,
        }
    }

    /// Takes in more bytes.
    ///
    /// # Errors
    /// They make no sense, or the disk or the budget refuses.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), FormatError> {
        loop {
            match &mut self.open {
                Some(file) => {
                    let now = file.left.min(bytes.len() as u64) as usize;
                    file.writer.append(0, &bytes[..now])?;
                    file.left -= now as u64;
                    bytes = &bytes[now..];
                    if file.left > 0 {
                        return Ok(());
                    }
                    self.close()?;
                }
                None if bytes.is_empty() => return Ok(()),
                None => {
                    // Heads are short: byte by byte will do.
                    self.left.push(bytes[0]);
                    bytes = &bytes[1..];
                    self.begin()?;
                }
            }
        }
    }

    /// Begins a file when its head has come.
    fn begin(&mut self) -> Result<(), FormatError> {
        let Some((head, name)) = self.left.split_at_checked(HEAD_BYTES) else {
            return Ok(());
        };
        let number = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let (name_bytes, length) = (number(0), number(8));
        let misuse = || FormatError::misuse("what comes from another host is no file of a graph");
        if name_bytes > NAME_BYTES_MAX {
            return Err(misuse());
        }
        if (name.len() as u64) < name_bytes {
            return Ok(());
        }
        let name = std::str::from_utf8(name).map_err(|_| misuse())?;
        let is_inside = |part: &str| !matches!(part, "" | "." | "..");
        if !name.split('/').all(is_inside) {
            return Err(misuse());
        }
        let path = self.folder.join(name);
        // One that was killed may have left some of it.
        if self.disk.exists(&path)? {
            self.disk.remove_file(&path)?;
        }
        let mut writer = PagedWriter::new(self.disk, &self.budget, 0)?;
        writer.add_temporary(self.disk, &path, CHUNK_BYTES)?;
        self.left.clear();
        self.open = Some(Copying {
            path,
            writer,
            left: length,
            length,
        });
        Ok(())
    }

    /// Ends the current file and makes it durable.
    fn close(&mut self) -> Result<(), FormatError> {
        let Some(file) = self.open.take() else {
            return Ok(());
        };
        file.writer.finish()?;
        let written = self.disk.open(&file.path, Open::Update)?;
        if !file.length.is_multiple_of(GRAIN) {
            self.disk.set_len(&written, file.length)?;
        }
        Ok(self.disk.sync(&written)?)
    }

    /// Whether all that came were whole files.
    ///
    /// # Errors
    /// They were not.
    pub fn end(self) -> Result<(), FormatError> {
        let is_whole = self.open.is_none() && self.left.is_empty();
        let short = || FormatError::misuse("a file of another host is cut short");
        is_whole.then_some(()).ok_or_else(short)
    }
}
