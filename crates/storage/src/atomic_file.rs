//! A file that is written from front to back beside its final path, and renamed when it is complete.
//!
//! Invariants:
//!
//! - `offset` is a multiple of the chunk, so every write keeps to the grain of direct I/O. The last chunk is padded, and then the file is
//!   cut to its length.
//! - Until [`AtomicFile::commit`] the written bytes are not under the final name. A file that is not committed is removed when dropped.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_raw::failpoint;

use crate::disk::port::{Completion, Disk, FileHandle, GRAIN_BYTES, Open, Operation, Queue};
use crate::error::StorageError;
use crate::memory_budget::{Buffer, MemoryBudget};
use crate::work_dir::WorkDir;

/// Number of chunks, which are being filled or written.
const CHUNKS: usize = 2;

/// Returns the final name of a file that is not committed yet; the name itself of any other file.
#[must_use]
pub fn final_name(name: &str) -> &str {
    let small = (name.strip_prefix('.')).and_then(|name| name.strip_suffix(".aside"));
    let way = small.or_else(|| name.strip_suffix(".partial"));
    way.and_then(|way| way.get(..way.rfind('.')?))
        .unwrap_or(name)
}

/// A file that gets its name when it is complete; a [`Write`].
#[derive(Debug)]
pub struct AtomicFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    aside: PathBuf,
    file: FileHandle,
    queue: Box<dyn Queue>,
    /// Bytes of one write.
    chunk_bytes: usize,
    /// Chunks that are neither being filled nor written.
    spare: Vec<Buffer>,
    filling: Option<Buffer>,
    filled: usize,
    /// Bytes submitted so far, which is the offset of the chunk being filled.
    offset: u64,
    is_committed: bool,
    /// The directory it is in until it is committed; `None` if that is its parent.
    _folder: Option<WorkDir>,
}

impl AtomicFile {
    /// Returns the bytes of memory for a file that is written in chunks of `chunk_bytes`.
    #[must_use]
    pub const fn memory(chunk_bytes: usize) -> u64 {
        (CHUNKS * chunk_bytes) as u64
    }

    /// Creates a file for `path`, written in chunks of a multiple of [`GRAIN_BYTES`].
    ///
    /// Until [`AtomicFile::commit`] the file is beside `path`, and stays there if the process is killed.
    ///
    /// # Errors
    /// The directory cannot be written, or the budget has too few bytes for the chunks.
    pub fn create(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        chunk_bytes: usize,
    ) -> Result<AtomicFile, StorageError> {
        // A killed process with the same number may have left a file of that name.
        let mut number = 0;
        let aside = loop {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".{}-{number}.partial", std::process::id()));
            let aside = path.with_file_name(name);
            if !disk.exists(&aside)? {
                break aside;
            }
            number += 1;
        };
        Self::open(disk, budget, path, (aside, None), chunk_bytes)
    }

    /// Creates a file as [`AtomicFile::create`] does, in a directory of its own beside `path`.
    ///
    /// If the process is killed, the next call for the same place deletes the directory with its contents.
    ///
    /// # Errors
    /// As for [`AtomicFile::create`].
    pub fn create_apart(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        chunk_bytes: usize,
    ) -> Result<AtomicFile, StorageError> {
        let above = path.parent().unwrap_or(Path::new(""));
        let above = match above.as_os_str().is_empty() {
            true => Path::new("."),
            false => above,
        };
        let folder = WorkDir::create(disk, above, "file")?;
        let aside = folder.path().join(path.file_name().unwrap_or_default());
        Self::open(disk, budget, path, (aside, Some(folder)), chunk_bytes)
    }

    fn open(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        (aside, folder): (PathBuf, Option<WorkDir>),
        chunk_bytes: usize,
    ) -> Result<AtomicFile, StorageError> {
        failpoint!(WrittenInPlace: aside = path.to_path_buf());
        let spare = (0..CHUNKS).map(|_| budget.buffer("chunks of a file to write", chunk_bytes));
        let mut spare = spare.collect::<Result<Vec<_>, _>>()?;
        let queue = disk.queue(CHUNKS)?;
        Ok(AtomicFile {
            file: disk.open(&aside, Open::Create)?,
            disk: Arc::clone(disk),
            path: path.to_path_buf(),
            aside,
            queue,
            chunk_bytes,
            filling: spare.pop(),
            spare,
            filled: 0,
            offset: 0,
            is_committed: false,
            _folder: folder,
        })
    }

    /// Makes the file durable, renames it to its final name and returns its length.
    ///
    /// # Errors
    /// A write, the sync or the rename failed; the file is removed.
    pub fn commit(mut self) -> Result<u64, StorageError> {
        let length = self.offset + self.filled as u64;
        let padded = self.filled.next_multiple_of(GRAIN_BYTES);
        if let Some(buffer) = &mut self.filling {
            buffer[self.filled..padded].fill(0);
        }
        self.submit(padded);
        while let Some(completion) = self.queue.wait() {
            self.accept(completion)?;
        }
        self.disk.set_len(&self.file, length)?;
        failpoint!(FileNotSynced => return self.rename(length));
        self.disk.sync(&self.file)?;
        self.rename(length)
    }

    /// Renames the file to its final name.
    fn rename(mut self, length: u64) -> Result<u64, StorageError> {
        if self.aside != self.path {
            self.disk.inherit(&self.file, &self.path)?;
            self.disk.rename(&self.aside, &self.path)?;
        }
        self.is_committed = true;
        Ok(length)
    }

    /// Submits the first `bytes` of the chunk being filled.
    fn submit(&mut self, bytes: usize) {
        if bytes > 0
            && let Some(buffer) = self.filling.take()
        {
            let operation = Operation::Write {
                file: Arc::clone(&self.file),
                offset: self.offset,
                buffer,
                range: 0..bytes,
            };
            self.queue.submit(operation, self.offset);
            self.offset += bytes as u64;
            self.filled = 0;
        }
    }

    fn accept(&mut self, completion: Completion) -> Result<(), StorageError> {
        self.spare.extend(completion.buffer);
        completion.result.map(|_| ())
    }

    /// Returns the chunk to fill; waits for a write to complete if no chunk is spare.
    fn chunk(&mut self) -> io::Result<&mut Buffer> {
        if self.filling.is_none() {
            while self.spare.is_empty() {
                let completion = self.queue.wait().ok_or_else(|| {
                    io::Error::other(format!("{}: the disk kept a buffer", self.aside.display()))
                })?;
                self.accept(completion).map_err(io::Error::other)?;
            }
            self.filling = self.spare.pop();
        }
        (self.filling.as_mut()).ok_or_else(|| io::Error::other("no chunk to fill"))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (filled, chunk_bytes) = (self.filled, self.chunk_bytes);
        let chunk = self.chunk()?;
        let count = bytes.len().min(chunk_bytes - filled);
        chunk[filled..filled + count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        if self.filled == chunk_bytes {
            self.submit(chunk_bytes);
        }
        Ok(count)
    }

    /// Does nothing: bytes are on the disk after [`AtomicFile::commit`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_committed {
            while self.queue.wait().is_some() {}
            // The error that led here is reported. A file that stays does less harm.
            let _ = self.disk.remove_file(&self.aside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::open_disk;
    use crate::disk::port::IoChoice;

    const CHUNK_BYTES: usize = 4 * GRAIN_BYTES;

    fn names(folder: &Path) -> Vec<String> {
        let disk = open_disk(IoChoice::Threads).unwrap();
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        disk.list(folder).unwrap().into_iter().map(name).collect()
    }

    #[test]
    fn partial_file_is_recognised_by_its_name() {
        for (name, to_be) in [
            ("rows", "rows"),
            ("version-1.12-0.partial", "version-1"),
            (".run.json.12-0.aside", "run.json"),
            ("mine.partial", "mine.partial"),
            (".aside", ".aside"),
            (".partial", ".partial"),
            ("", ""),
        ] {
            assert_eq!(final_name(name), to_be);
        }
    }

    #[test]
    fn atomic_file_of_any_length_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let disk = open_disk(IoChoice::Threads).unwrap();
        for length in [
            0,
            1,
            GRAIN_BYTES,
            CHUNK_BYTES,
            CHUNK_BYTES + 1,
            3 * CHUNK_BYTES + 4099,
        ] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 7 % 251) as u8).collect();
            let path = folder.path().join(format!("{length}"));
            let budget = MemoryBudget::new(AtomicFile::memory(CHUNK_BYTES));
            let mut file = AtomicFile::create(&disk, &budget, &path, CHUNK_BYTES).unwrap();
            for part in bytes.chunks(10_003) {
                file.write_all(part).unwrap();
            }
            assert!(!disk.exists(&path).unwrap());
            assert_eq!(file.commit().unwrap(), length as u64);
            assert_eq!(disk.read_small(&path, length as u64).unwrap(), bytes);
            assert_eq!(budget.available(), budget.total());
        }
        assert_eq!(names(folder.path()).len(), 6);
    }

    #[test]
    fn atomic_file_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let disk = open_disk(IoChoice::Threads).unwrap();
        let path = folder.path().join("result");
        disk.write_small(&path, b"old").unwrap();
        for create in [AtomicFile::create, AtomicFile::create_apart] {
            let mut file = create(&disk, &MemoryBudget::new(1 << 30), &path, CHUNK_BYTES).unwrap();
            file.write_all(&[1; 2 * CHUNK_BYTES]).unwrap();
            drop(file);
            assert_eq!(names(folder.path()), ["result"]);
            assert_eq!(disk.read_small(&path, 9).unwrap(), b"old");
        }
    }

    #[test]
    fn directory_apart_is_removed_now_or_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let disk = open_disk(IoChoice::Threads).unwrap();
        let path = folder.path().join("result");
        // A killed process leaves a directory without a lock.
        let left = WorkDir::create(&disk, folder.path(), "file").unwrap();
        let dead = PathBuf::from(format!("{}-1", left.path().display()));
        disk.create_dir_all(&dead).unwrap();
        disk.write_small(&dead.join("result"), b"half").unwrap();
        drop(left);
        assert_eq!(names(folder.path()).len(), 1);
        let budget = MemoryBudget::new(1 << 30);
        let mut file = AtomicFile::create_apart(&disk, &budget, &path, CHUNK_BYTES).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(names(folder.path()), ["result"]);
        assert_eq!(disk.read_small(&path, 9).unwrap(), b"new");
    }
}
