//! The spill file of paged vertex arrays: fixed-size slots, and tables that say which slot holds which page.
//!
//! A page is never written in place. [`RowFileIo::store`] puts it in a free slot and returns the slot; the caller swaps
//! tables when the pass that wrote the pages has ended, and only then gives the old slots back. Each table entry
//! carries the page's checksum, so a page that reads differently from what was written is an error.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};

use graphmill_graph::{Batches, DISK_PAGE_BYTES, PageCache, StoredGraph};
use graphmill_raw::{failpoint, lock};
use graphmill_storage::{Buffer, Disk, MemoryBudget, Open, Queue};

use crate::engine_file::EngineFile;
use crate::error::{EngineError, made};

/// Bytes of a page of rows: whole batches of 8-byte elements if they are small.
pub(crate) fn page_bytes(batches: &Batches) -> usize {
    let widest = batches.widest().max(1) as usize;
    let most = match batches.vertices() > VERTICES_OF_SHORT_PAGES {
        true => 4 * PAGE_BYTES_MAX,
        false => PAGE_BYTES_MAX,
    };
    (widest * 8).next_multiple_of(4096).min(most)
}

/// Bytes of a large page; pages of small batches are smaller.
const PAGE_BYTES_MAX: usize = 64 << 10;
/// Vertices from which on a page is four times as long.
///
/// The tables of pages, about 160 bytes a page, are not leased.
const VERTICES_OF_SHORT_PAGES: u64 = 1 << 29;
/// Reads or writes of pages in flight for one worker.
const DEPTH: usize = 8;

/// Slots at least that the file system is asked to have space for at a time.
const SLOTS_RESERVED_MIN: u64 = 16;

/// Frames of 64 KiB of the stored graph that a worker reads ahead.
const FRAMES: usize = 8;

/// Where a page lies and what its bytes add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRef {
    pub(crate) number: u64,
    pub(crate) checksum: u32,
}

/// The slots of all pages of one array; `None` for a page of zeros that was never written.
pub(crate) type PageTable = Vec<Option<SlotRef>>;

/// Slots in use by checkpoints: none is overwritten before the last checkpoint that uses it is deleted.
#[derive(Debug, Default)]
pub(crate) struct PinnedSlots {
    /// Bit i of word w: a checkpoint uses slot 64 w + i.
    slots: Vec<u64>,
    /// Slots that the current rows no longer use, with the newest checkpoint that does, the oldest first.
    retired: VecDeque<(u64, Vec<SlotRef>)>,
    newest: u64,
}

impl PinnedSlots {
    fn has(&self, slot: SlotRef) -> bool {
        let word = self.slots.get(slot.number as usize / 64);
        word.is_some_and(|word| word >> (slot.number % 64) & 1 != 0)
    }
    /// Records that the current rows no longer use a slot; returns true if a checkpoint does.
    pub(crate) fn retire(&mut self, slot: SlotRef) -> bool {
        failpoint!(SlotsNotKept => return false);
        let is_kept = self.has(slot);
        if is_kept {
            match self.retired.back_mut() {
                Some((version, slots)) if *version == self.newest => slots.push(slot),
                _ => self.retired.push_back((self.newest, vec![slot])),
            }
        }
        is_kept
    }
    /// Records a checkpoint with these slots.
    pub(crate) fn publish<'s>(&mut self, version: u64, slots: impl Iterator<Item = &'s SlotRef>) {
        self.newest = version;
        for slot in slots {
            let word = slot.number as usize / 64;
            if word >= self.slots.len() {
                self.slots.resize(word + 1, 0);
            }
            self.slots[word] |= 1 << (slot.number % 64);
        }
    }
    /// Returns the slots that become free when the checkpoints before this one are deleted.
    pub(crate) fn drop_before(&mut self, oldest: u64) -> Vec<SlotRef> {
        let mut free = Vec::new();
        while let Some((_, slots)) = self.retired.pop_front_if(|(version, _)| *version < oldest) {
            for slot in &slots {
                self.slots[slot.number as usize / 64] &= !(1 << (slot.number % 64));
            }
            free.extend(slots);
        }
        free
    }
}

/// The file with its free slots.
#[derive(Debug)]
pub(crate) struct RowFile {
    pub(crate) file: EngineFile,
    page_bytes: usize,
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    next: u64,
    /// Slots that the file system has space for, from the first on.
    reserved: u64,
    slots: BTreeSet<u64>,
}

impl RowFile {
    /// Opens a file in which these slots are taken; creates it if `how` says so.
    pub(crate) fn open<'s>(
        disk: Arc<dyn Disk>,
        (path, how): (&Path, Open),
        page_bytes: usize,
        taken: impl Iterator<Item = &'s SlotRef>,
    ) -> Result<Self, EngineError> {
        let taken: BTreeSet<u64> = taken.map(|slot| slot.number).collect();
        let next = taken.last().map_or(0, |last| last + 1);
        Ok(RowFile {
            file: EngineFile::open(disk, path, how)?,
            page_bytes,
            free: Mutex::new(Free {
                next,
                reserved: next,
                slots: (0..next).filter(|slot| !taken.contains(slot)).collect(),
            }),
        })
    }
    /// Makes all pages durable that were written.
    pub(crate) fn sync(&self) -> Result<(), EngineError> {
        failpoint!(PagesNotSynced => return Ok(()));
        let synced = self.file.disk.sync(&self.file.handle);
        failpoint!(FailedSyncIgnored => return Ok(()));
        Ok(synced?)
    }
    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }
    /// Takes the lowest free slot: neighbours in time stay neighbours on disk.
    ///
    /// Fails if the disk has no space for it.
    fn take_slot(&self) -> Result<u64, EngineError> {
        let mut free = lock(&self.free);
        if let Some(slot) = free.slots.pop_first() {
            return Ok(slot);
        }
        if free.next == free.reserved {
            let reserved = free.next + (free.next / 8).max(SLOTS_RESERVED_MIN);
            let bytes = reserved * self.page_bytes as u64;
            self.file.disk.reserve(&self.file.handle, bytes)?;
            free.reserved = reserved;
        }
        free.next += 1;
        Ok(free.next - 1)
    }
    pub(crate) fn give_back(&self, slots: impl Iterator<Item = SlotRef>) {
        lock(&self.free).slots.extend(slots.map(|slot| slot.number));
    }
}

/// One worker's way to the page file: a queue and its buffers.
pub(crate) struct RowFileIo {
    queue: Box<dyn Queue>,
    free: Vec<Buffer>,
    /// Where degrees are unpacked from; made with the first batch of them.
    frames: Option<PageCache>,
}

impl RowFileIo {
    /// Bytes of the budget that [`RowFileIo::frames`] takes.
    pub(crate) const FRAMES_BYTES: u64 = FRAMES as u64 * DISK_PAGE_BYTES;

    /// Returns the bytes of the budget that it takes, without frames.
    pub(crate) fn memory(page_bytes: usize) -> u64 {
        (DEPTH * page_bytes) as u64
    }

    pub(crate) fn new(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        page_bytes: usize,
    ) -> Result<Self, EngineError> {
        let buffer = |_| budget.buffer("pages of vertex rows on their way", page_bytes);
        let free = (0..DEPTH).map(buffer).collect::<Result<_, _>>()?;
        Ok(RowFileIo {
            queue: disk.queue(DEPTH)?,
            free,
            frames: None,
        })
    }

    /// Frames of the stored graph.
    pub(crate) fn frames(
        &mut self,
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
    ) -> Result<&mut PageCache, EngineError> {
        made(&mut self.frames, || PageCache::new(graph, budget, FRAMES))
    }

    /// Reads pages into `rows`, each to its place there; a page without a slot is zeros.
    ///
    /// It reads the `wanted` ones, or all.
    pub(crate) fn load(
        &mut self,
        file: &RowFile,
        pages: &[Option<SlotRef>],
        wanted: Option<&[usize]>,
        rows: &mut [u8],
    ) -> Result<(), EngineError> {
        let (all, some) = match wanted {
            Some(wanted) => (0..0, wanted),
            None => (0..pages.len(), &[][..]),
        };
        let wanted = all.chain(some.iter().copied());
        self.read(file, pages, wanted, |page, bytes| {
            let end = rows.len().min((page + 1) * file.page_bytes);
            let into = &mut rows[page * file.page_bytes..end];
            let (there, zeros) = into.split_at_mut(bytes.len().min(into.len()));
            there.copy_from_slice(&bytes[..there.len()]);
            zeros.fill(0);
        })
        .inspect_err(|_| self.settle())
    }

    /// Reads pages and checks that each has its checksum.
    pub(crate) fn check(
        &mut self,
        file: &RowFile,
        pages: &[Option<SlotRef>],
    ) -> Result<(), EngineError> {
        self.read(file, pages, 0..pages.len(), |_, _| ())
            .inspect_err(|_| self.settle())
    }

    /// Waits for requests in flight after a failure, so that no later request takes their completions.
    fn settle(&mut self) {
        while let Some(done) = self.queue.wait() {
            self.free.extend(done.buffer);
        }
    }

    /// Has `take` take each page, in any order; one of zeros has no bytes.
    fn read(
        &mut self,
        file: &RowFile,
        pages: &[Option<SlotRef>],
        wanted: impl Iterator<Item = usize>,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), EngineError> {
        let page_bytes = file.page_bytes;
        let mut wanted = wanted.peekable();
        let mut on_way = 0;
        while wanted.peek().is_some() || on_way > 0 {
            if let Some(page) = wanted.peek().copied()
                && let Some(buffer) = self.free.pop()
            {
                wanted.next();
                let Some(slot) = pages[page] else {
                    take(page, &[]);
                    self.free.push(buffer);
                    continue;
                };
                on_way += 1;
                let offset = slot.number * page_bytes as u64;
                let operation = file.file.read(offset, buffer, page_bytes);
                self.queue.submit(operation, page as u64);
                continue;
            }
            // Buffers are free or on their way, unless a load before this one failed.
            let done = self.queue.wait().ok_or(EngineError::Broken)?;
            let read = done.result?;
            let page = done.token as usize;
            let (Some(slot), Some(buffer)) = (pages[page], done.buffer) else {
                return Err(EngineError::Broken);
            };
            let is_whole = read >= page_bytes;
            let is_sound = is_whole && crc32fast::hash(&buffer[..page_bytes]) == slot.checksum;
            failpoint!(PagesNotChecked: is_sound = is_whole);
            if is_sound {
                take(page, &buffer[..page_bytes]);
            }
            self.free.push(buffer);
            if !is_sound {
                return Err(file.file.corrupt(slot.number * page_bytes as u64));
            }
            on_way -= 1;
        }
        Ok(())
    }

    /// Writes the pages of `rows` that `dirty` names and says where they went.
    pub(crate) fn store(
        &mut self,
        file: &RowFile,
        rows: &[u8],
        dirty: impl Iterator<Item = usize>,
        stored: impl FnMut(usize, SlotRef),
    ) -> Result<(), EngineError> {
        self.write(file, rows, dirty, stored)
            .inspect_err(|_| self.settle())
    }

    fn write(
        &mut self,
        file: &RowFile,
        rows: &[u8],
        dirty: impl Iterator<Item = usize>,
        mut stored: impl FnMut(usize, SlotRef),
    ) -> Result<(), EngineError> {
        let page_bytes = file.page_bytes;
        let mut dirty = dirty.peekable();
        while dirty.peek().is_some() || self.queue.in_flight() > 0 {
            match dirty.peek().is_some().then(|| self.free.pop()).flatten() {
                Some(mut buffer) => {
                    let Some(page) = dirty.next() else { continue };
                    let from = &rows[page * page_bytes..rows.len().min((page + 1) * page_bytes)];
                    buffer[..from.len()].copy_from_slice(from);
                    buffer[from.len()..page_bytes].fill(0);
                    let number = match file.take_slot() {
                        Ok(number) => number,
                        Err(error) => {
                            self.free.push(buffer);
                            return Err(error);
                        }
                    };
                    let slot = SlotRef {
                        number,
                        checksum: crc32fast::hash(&buffer[..page_bytes]),
                    };
                    let offset = slot.number * page_bytes as u64;
                    let operation = file.file.write(offset, buffer, page_bytes);
                    self.queue.submit(operation, page as u64);
                    stored(page, slot);
                }
                None => {
                    let done = self.queue.wait().ok_or(EngineError::Broken)?;
                    done.result?;
                    self.free.extend(done.buffer);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_free_after_its_last_checkpoint() {
        let slot = |number| SlotRef {
            number,
            checksum: 0,
        };
        let mut kept = PinnedSlots::default();
        assert!(!kept.retire(slot(0)), "no version has it");
        kept.publish(1, [slot(0), slot(70)].iter());
        kept.publish(2, [slot(70), slot(3)].iter());
        assert!(kept.retire(slot(70)));
        assert!(!kept.retire(slot(5)));
        kept.publish(3, [slot(3), slot(4)].iter());
        assert!(kept.retire(slot(3)));
        assert_eq!(kept.drop_before(2), []);
        assert_eq!(kept.drop_before(3), [slot(70)]);
        assert!(!kept.retire(slot(70)), "it is free");
        assert_eq!(kept.drop_before(4), [slot(3)]);
    }
}
