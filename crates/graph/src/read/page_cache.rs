//! Small reads that wait: pages of any file of a graph, with a cache of those used last.
//!
//! For seeks: indices of cells, degrees, fan-out lists and ids of a few vertices. Long runs go through
//! [`ExtentReader`](crate::ExtentReader), which does not wait.

use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::{Buffer, Lease, MemoryBudget, Operation, Queue};

use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, cut_off};
use crate::open::stored_graph::StoredGraph;

#[derive(Default)]
struct CachedPage {
    buffer: Option<Buffer>,
    page: Option<(FileId, u64)>,
    bytes: usize,
    used: u64,
}

/// Reads ranges of a graph's files, page by page, each checked before its bytes are given out.
pub struct PageCache {
    graph: Arc<StoredGraph>,
    queue: Box<dyn Queue>,
    slots: Vec<CachedPage>,
    uses: u64,
    bytes_read: u64,
    /// Of pages that the graph does not have.
    _missing: Lease,
}

impl PageCache {
    /// A reader that keeps up to `pages` pages of 64 KiB, at least one.
    ///
    /// # Errors
    /// The budget has no room for them.
    pub fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        pages: usize,
    ) -> Result<Self, FormatError> {
        let asked = pages.max(1);
        // No more than the graph has; the budget pays for all, so that it does not depend on that.
        let of_graph = graph.all_files().map(|file| file.root.pages());
        let pages = of_graph.sum::<u64>().clamp(1, asked as u64) as usize;
        let missing = (asked - pages) as u64 * DISK_PAGE_BYTES;
        let missing = budget.lease("pages of the stored graph", missing)?;
        let slot = |_| {
            let buffer = budget.buffer("pages of the stored graph", DISK_PAGE_BYTES as usize)?;
            Ok::<_, FormatError>(CachedPage {
                buffer: Some(buffer),
                ..CachedPage::default()
            })
        };
        Ok(PageCache {
            graph: Arc::clone(graph),
            slots: (0..pages).map(slot).collect::<Result<_, _>>()?,
            queue: graph.disk().queue(pages.min(32))?,
            uses: 0,
            bytes_read: 0,
            _missing: missing,
        })
    }
    /// The graph it reads.
    pub fn graph(&self) -> &Arc<StoredGraph> {
        &self.graph
    }
    /// Bytes read from the disk since the last call.
    pub fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }
    /// Appends bytes `range` of a file's payload to `out`. The caller has leased memory for them.
    ///
    /// # Errors
    /// The disk fails, a page is not what was written, or the range does not lie in the file.
    pub fn read(
        &mut self,
        file: FileId,
        range: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        let mut at = range.start;
        while at < range.end {
            let from = (at % DISK_PAGE_BYTES) as usize;
            let now = (DISK_PAGE_BYTES - at % DISK_PAGE_BYTES).min(range.end - at);
            let ahead = (range.end - 1) / DISK_PAGE_BYTES;
            let bytes = self.page_ahead(file, at / DISK_PAGE_BYTES, ahead)?;
            let part = bytes.get(from..from + now as usize);
            let short = || FormatError::misuse(format!("{file} ends before byte {at}"));
            out.extend_from_slice(part.ok_or_else(short)?);
            at += now;
        }
        Ok(())
    }
    /// One page of a file; the last one of a file includes the zeros after the payload.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn page(&mut self, file: FileId, page: u64) -> Result<&[u8], FormatError> {
        self.page_ahead(file, page, page)
    }
    /// Returns a page; if it is not cached, reads the pages after it up to `last` too, if they fit.
    pub(crate) fn page_ahead(
        &mut self,
        file: FileId,
        page: u64,
        last: u64,
    ) -> Result<&[u8], FormatError> {
        let at = match self.held(file, page) {
            Some(at) => at,
            None => self.load(file, page, last)?,
        };
        self.uses += 1;
        let slot = &mut self.slots[at];
        slot.used = self.uses;
        let bytes = (slot.buffer.as_ref()).and_then(|buffer| buffer.get(..slot.bytes));
        bytes.ok_or_else(|| FormatError::misuse("a buffer was lost after a failed read"))
    }
    fn held(&self, file: FileId, page: u64) -> Option<usize> {
        let mut slots = self.slots.iter();
        slots.position(|slot| slot.page == Some((file, page)))
    }
    fn load(&mut self, file: FileId, page: u64, last: u64) -> Result<usize, FormatError> {
        let graph = Arc::clone(&self.graph);
        let paged = graph.paged(file)?;
        if page >= paged.root.pages() {
            return Err(FormatError::misuse(format!("{file} has no page {page}")));
        }
        let handle = graph.handle(file)?;
        let last = last.min(paged.root.pages() - 1);
        let last = last.min(page + self.slots.len() as u64 - 1);
        for page in page..=last {
            if self.held(file, page).is_some() {
                continue;
            }
            let free = self.slots.iter_mut().enumerate();
            let free = free.filter(|(_, slot)| slot.buffer.is_some());
            let oldest = free.min_by_key(|(_, slot)| slot.used);
            let Some((at, slot)) = oldest else { break };
            let Some(buffer) = slot.buffer.take() else {
                break;
            };
            // Not to be found before it is checked.
            slot.page = None;
            slot.bytes = paged.page_bytes(page);
            self.uses += 1;
            slot.used = self.uses;
            let read = Operation::Read {
                file: handle.clone(),
                offset: page * DISK_PAGE_BYTES,
                buffer,
                range: 0..slot.bytes,
            };
            self.queue.submit(read, page << 16 | at as u64);
        }
        let mut outcome = Ok(());
        let mut found = None;
        while let Some(done) = self.queue.wait() {
            let (page_read, at) = (done.token >> 16, (done.token & 0xffff) as usize);
            let slot = &mut self.slots[at];
            slot.buffer = done.buffer;
            let start = page_read * DISK_PAGE_BYTES;
            let checked = match (done.result, &slot.buffer) {
                (Err(error), _) => Err(error.into()),
                (Ok(read), Some(buffer)) if read == slot.bytes => {
                    graph.check(paged, page_read, &buffer[..read])
                }
                (Ok(read), _) => Err(cut_off(handle.path(), start, [slot.bytes, read])),
            };
            match checked {
                Ok(()) => {
                    self.bytes_read += slot.bytes as u64;
                    slot.page = Some((file, page_read));
                    if page_read == page {
                        found = Some(at);
                    }
                }
                // The page that was asked for counts; others may never be needed.
                Err(error) if page_read == page => outcome = Err(error),
                Err(_) => {}
            }
        }
        outcome?;
        found.ok_or_else(|| FormatError::misuse("a page was read and got lost"))
    }
}
