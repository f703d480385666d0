//! A disk that counts the bytes that another one reads and writes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::port::{
    Completion, DirLock, Disk, FileHandle, FileIdentity, LockMode, Open, Operation, Owner, Queue,
    Target,
};
use crate::error::StorageError;

/// Bytes that moved between memory and a disk.
#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    written: AtomicU64,
}

/// Another disk, with a count of the bytes read from it and written to it.
///
/// A read beyond the end of a file counts all bytes that it requested.
#[derive(Debug)]
pub struct CountedDisk {
    disk: Arc<dyn Disk>,
    counts: Arc<Counts>,
}

impl CountedDisk {
    /// Makes a disk over `disk`, with counts of 0.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        let counts = Arc::default();
        CountedDisk { disk, counts }
    }
    /// Returns the bytes read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.counts.read.load(Relaxed)
    }
    /// Returns the bytes written so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.counts.written.load(Relaxed)
    }
}

/// Passes calls on to the other disk.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $arg: $type)*) -> $result {
            self.disk.$name($($arg),*)
        })*
    };
}

impl Disk for CountedDisk {
    forward! {
        fn open(&self, path: &Path, how: Open) -> Result<FileHandle, StorageError>;
        fn create_dir_all(&self, path: &Path) -> Result<(), StorageError>;
        fn create_dir(&self, path: &Path) -> Result<(), StorageError>;
        fn rename(&self, from: &Path, to: &Path) -> Result<(), StorageError>;
        fn exchange(&self, one: &Path, other: &Path) -> Result<(), StorageError>;
        fn remove_file(&self, path: &Path) -> Result<(), StorageError>;
        fn remove_dir(&self, path: &Path) -> Result<(), StorageError>;
        fn remove_dir_all(&self, path: &Path) -> Result<(), StorageError>;
        fn hold(&self, dir: &Path, how: LockMode, owner: Owner<'_>) -> Result<Option<DirLock>, StorageError>;
        fn share(&self, dir: &Path, like: &Path) -> Result<(), StorageError>;
        fn owner(&self, path: &Path) -> Result<u32, StorageError>;
        fn target(&self, path: &Path) -> Result<Target, StorageError>;
        fn stream(&self, path: &Path) -> Result<Box<dyn io::Write + Send>, StorageError>;
        fn inherit(&self, file: &FileHandle, path: &Path) -> Result<(), StorageError>;
        fn sync_dir(&self, path: &Path) -> Result<(), StorageError>;
        fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, StorageError>;
        fn is_dir(&self, path: &Path) -> Result<bool, StorageError>;
        fn exists(&self, path: &Path) -> Result<bool, StorageError>;
        fn stamp(&self, path: &Path) -> Result<FileIdentity, StorageError>;
        fn set_len(&self, file: &FileHandle, len: u64) -> Result<(), StorageError>;
        fn reserve(&self, file: &FileHandle, bytes: u64) -> Result<(), StorageError>;
        fn sync(&self, file: &FileHandle) -> Result<(), StorageError>;
        fn free_bytes(&self, path: &Path) -> Result<u64, StorageError>;
        fn is_local(&self, folder: &Path) -> bool;
    }
    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>, StorageError> {
        let (queue, counts) = (self.disk.queue(depth)?, Arc::clone(&self.counts));
        Ok(Box::new(CountedQueue { queue, counts }))
    }
    fn read_small(&self, path: &Path, max: u64) -> Result<Vec<u8>, StorageError> {
        let bytes = self.disk.read_small(path, max)?;
        self.counts.read.fetch_add(bytes.len() as u64, Relaxed);
        Ok(bytes)
    }
    fn write_small(&self, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
        self.counts.written.fetch_add(bytes.len() as u64, Relaxed);
        self.disk.write_small(path, bytes)
    }
}

#[derive(Debug)]
struct CountedQueue {
    queue: Box<dyn Queue>,
    counts: Arc<Counts>,
}

impl Queue for CountedQueue {
    fn submit(&mut self, operation: Operation, token: u64) {
        let counts = &self.counts;
        match &operation {
            Operation::Read { range, .. } => counts.read.fetch_add(range.len() as u64, Relaxed),
            Operation::Write { range, .. } => counts.written.fetch_add(range.len() as u64, Relaxed),
            Operation::Sync { .. } => 0,
        };
        self.queue.submit(operation, token);
    }
    fn poll(&mut self) -> Option<Completion> {
        self.queue.poll()
    }
    fn block(&mut self) {
        self.queue.block();
    }
    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;
    use crate::memory_budget::MemoryBudget;

    #[test]
    fn counted_disk_counts_reads_and_writes() {
        let disk = CountedDisk::new(Arc::new(SimDisk::new(1)));
        let budget = MemoryBudget::new(1 << 20);
        let path = Path::new("/file");
        let file = disk.open(path, Open::Create).unwrap();
        let mut queue = disk.queue(1).unwrap();
        let buffer = budget.buffer("a page", 8192).unwrap();
        let (offset, range) = (0, 0..4096);
        queue.submit(
            Operation::Write {
                file: file.clone(),
                offset,
                buffer,
                range: range.clone(),
            },
            1,
        );
        let buffer = queue.wait().and_then(|done| done.buffer).unwrap();
        for range in [range, 4096..8192] {
            let buffer = budget.buffer("a page", 8192).unwrap();
            let file = file.clone();
            queue.submit(
                Operation::Read {
                    file,
                    offset,
                    buffer,
                    range,
                },
                2,
            );
            assert!(queue.wait().is_some_and(|done| done.result.is_ok()));
        }
        drop(buffer);
        disk.write_small(Path::new("/small"), &[1, 2, 3]).unwrap();
        disk.read_small(Path::new("/small"), 9).unwrap();
        assert_eq!((disk.bytes_read(), disk.bytes_written()), (8195, 4099));
    }
}
