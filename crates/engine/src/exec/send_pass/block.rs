//! Sorted blocks of addressed messages, in memory or in the page file.

use std::ops::Range;

use graphmill_raw::Element;
use graphmill_storage::{Buffer, Lease};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::state::row_file::{RowFileIo, SlotRef};

/// Messages of one box, sorted by destination batch: indices, then messages.
pub(crate) struct SortedBlock {
    /// The sending batch, and the number of the block among its blocks.
    pub(crate) order: (usize, usize),
    /// The batches that messages are for, ascending, each with where its messages end.
    pub(crate) parts: Vec<(u32, u32)>,
    pub(crate) count: usize,
    pub(crate) at: BlockStorage,
    pub(crate) _lease: Lease,
}

impl SortedBlock {
    /// Which messages are for a batch.
    pub(crate) fn part(&self, batch: usize) -> Option<Range<usize>> {
        let at = self
            .parts
            .binary_search_by_key(&batch, |part| part.0 as usize);
        let at = at.ok()?;
        let from = at.checked_sub(1).map_or(0, |before| self.parts[before].1);
        Some(from as usize..self.parts[at].1 as usize)
    }
}

pub(crate) enum BlockStorage {
    Memory(Buffer),
    Disk(Vec<Option<SlotRef>>),
}

/// Returns the bytes of `count` messages with their destinations.
pub(crate) fn bytes_of<M>(count: usize) -> usize {
    count * (size_of::<u64>() + size_of::<M>())
}

pub(crate) fn write_at<T: Element>(bytes: &mut [u8], at: usize, value: T) {
    if let Some(into) = bytes.get_mut(at..at + size_of::<T>()) {
        into.copy_from_slice(value.as_bytes());
    }
}

pub(crate) fn read_at<T: Element>(bytes: &[u8], at: usize) -> Option<T> {
    T::read_from_bytes(bytes.get(at..at + size_of::<T>())?).ok()
}

/// Puts bytes into the page file.
pub(crate) fn store(
    machine: &ExecContext,
    io: &mut RowFileIo,
    bytes: &[u8],
) -> Result<Vec<Option<SlotRef>>, EngineError> {
    let pages = machine.arrays.pages();
    let count = bytes.len().div_ceil(pages.page_bytes());
    let mut slots = vec![None; count];
    io.store(pages, bytes, 0..count, |page, slot| {
        slots[page] = Some(slot)
    })?;
    Ok(slots)
}

/// Bytes of a block that were read from the row file, and the offset of the requested ones.
pub(crate) struct BlockRead {
    pub(crate) bytes: Buffer,
    pub(crate) from: usize,
}

pub(crate) fn load(
    machine: &ExecContext,
    io: &mut RowFileIo,
    slots: &[Option<SlotRef>],
    range: Range<usize>,
) -> Result<BlockRead, EngineError> {
    let pages = machine.arrays.pages();
    let page_bytes = pages.page_bytes();
    let (first, end) = (range.start / page_bytes, range.end.div_ceil(page_bytes));
    let mut bytes = machine
        .budget
        .buffer("sent messages", (end - first) * page_bytes)?;
    let whole = (end - first) * page_bytes;
    io.load(
        pages,
        slots.get(first..end).unwrap_or(&[]),
        &mut bytes[..whole],
    )?;
    Ok(BlockRead {
        bytes,
        from: range.start - first * page_bytes,
    })
}
