//! The bytes of a file in memory.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;

use crate::disk::port::DiskFile;
use crate::error::StorageError;
use crate::memory_budget::{Lease, MemoryBudget};

/// Bytes of a page of a file; the last page is as long as its bytes.
const PAGE_BYTES: usize = 64 << 10;
/// What the memory of a page is rounded up to.
const STEP_BYTES: usize = 4 << 10;

/// The bytes of a file, and their leases.
#[derive(Debug, Default)]
pub(super) struct MemoryContent {
    pages: Vec<Vec<u8>>,
    leases: Vec<Lease>,
    /// Changes so far.
    pub(super) changes: i64,
}

/// An open file in memory.
#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) path: PathBuf,
    pub(super) budget: MemoryBudget,
    pub(super) content: Arc<Mutex<MemoryContent>>,
}

impl DiskFile for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64, StorageError> {
        Ok(lock(&self.content).len() as u64)
    }
}

impl MemoryContent {
    pub(super) fn len(&self) -> usize {
        let last = self.pages.last().map_or(0, Vec::len);
        self.pages.len().saturating_sub(1) * PAGE_BYTES + last
    }

    /// Cuts the file, or extends it by zeros.
    pub(super) fn set_len(
        &mut self,
        len: usize,
        budget: &MemoryBudget,
    ) -> Result<(), StorageError> {
        self.changes += 1;
        let pages = len.div_ceil(PAGE_BYTES);
        self.pages.truncate(pages);
        // The pages before the last one are full.
        while self.pages.len() < pages || self.len() < len {
            let is_full = self
                .pages
                .last()
                .is_none_or(|page| page.len() == PAGE_BYTES);
            if is_full {
                self.pages.push(Vec::new());
            }
            let before = (self.pages.len() - 1) * PAGE_BYTES;
            if let Some(page) = self.pages.last_mut() {
                let wanted = (len - before).min(PAGE_BYTES);
                if wanted > page.capacity() {
                    let more = wanted.next_multiple_of(STEP_BYTES) - page.capacity();
                    self.leases
                        .push(budget.lease("a file in memory", more as u64)?);
                    page.reserve_exact(page.capacity() + more - page.len());
                }
                page.resize(wanted, 0);
            }
        }
        if let Some(page) = self.pages.last_mut() {
            page.truncate(len - (pages - 1) * PAGE_BYTES);
        }
        Ok(())
    }

    /// Calls `each` with the parts of the file in a range, and their places in the range.
    fn each_part(
        &mut self,
        start: usize,
        length: usize,
        mut each: impl FnMut(&mut [u8], Range<usize>),
    ) {
        let mut done = 0;
        while done < length {
            let (page, from) = ((start + done) / PAGE_BYTES, (start + done) % PAGE_BYTES);
            let count = (length - done).min(PAGE_BYTES - from);
            let part = self.pages.get_mut(page);
            match part.and_then(|page| page.get_mut(from..from + count)) {
                Some(part) => each(part, done..done + count),
                None => return,
            }
            done += count;
        }
    }

    pub(super) fn read(&mut self, start: usize, to: &mut [u8]) -> usize {
        let length = to.len().min(self.len().saturating_sub(start));
        self.each_part(start, length, |part, place| to[place].copy_from_slice(part));
        length
    }

    pub(super) fn write(
        &mut self,
        start: usize,
        bytes: &[u8],
        budget: &MemoryBudget,
    ) -> Result<(), StorageError> {
        let end = start + bytes.len();
        self.set_len(self.len().max(end), budget)?;
        self.each_part(start, bytes.len(), |part, place| {
            part.copy_from_slice(&bytes[place]);
        });
        Ok(())
    }
}
