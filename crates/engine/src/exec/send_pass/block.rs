//! Sorted blocks of addressed messages, in memory or in the page file.
//!
//! ```text
//! block   parts, in ascending order of batches
//! part    of one destination batch: the position of each receiver in the batch, a u32 | the messages, in the same order
//! ```

use std::ops::Range;

use graphmill_raw::Element;
use graphmill_storage::{Buffer, DataKind, Lease};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::state::row_file::{RowFileIo, SlotRef};

/// Messages of one box, sorted by destination batch.
pub(crate) struct SortedBlock {
    /// The sending batch, and the number of the block among its blocks.
    pub(crate) order: (usize, usize),
    /// The batches that messages are for, ascending, each with where its messages end.
    pub(crate) parts: Vec<(u32, u32)>,
    pub(crate) at: BlockStorage,
    pub(crate) _lease: Lease,
}

impl SortedBlock {
    /// Returns which messages are for the batch of a part.
    pub(crate) fn places(&self, part: usize) -> Range<usize> {
        let from = part.checked_sub(1).map_or(0, |before| self.parts[before].1);
        from as usize..self.parts[part].1 as usize
    }
}

/// Returns where in a block the messages of some parts are, with their receivers.
pub(crate) fn bytes_at<M>(places: &Range<usize>) -> Range<usize> {
    bytes_of::<M>(places.start)..bytes_of::<M>(places.end)
}

pub(crate) enum BlockStorage {
    Memory(Buffer),
    Disk(Vec<Option<SlotRef>>),
}

/// Returns the bytes of `count` messages with their receivers.
pub(crate) fn bytes_of<M>(count: usize) -> usize {
    count * (size_of::<u32>() + size_of::<M>())
}

pub(crate) fn write_at<T: Element>(bytes: &mut [u8], at: usize, value: T) {
    if let Some(into) = bytes.get_mut(at..at + size_of::<T>()) {
        into.copy_from_slice(value.as_bytes());
    }
}

pub(crate) fn read_at<T: Element>(bytes: &[u8], at: usize) -> Option<T> {
    T::read_from_bytes(bytes.get(at..at + size_of::<T>())?).ok()
}

/// Allocates a block that stays in memory, or one of whole pages that goes to the page file.
pub(crate) fn room(
    context: &ExecContext,
    bytes: usize,
    is_kept: bool,
) -> Result<Buffer, EngineError> {
    let (tiers, budget) = (&context.tiers, &context.budget);
    let bytes = match is_kept {
        true => bytes,
        false => bytes.next_multiple_of(context.arrays.pages().page_bytes()),
    };
    Ok(tiers.buffer(DataKind::Messages, budget, "sent messages", bytes)?)
}

/// Puts bytes into the page file.
pub(crate) fn store(
    context: &ExecContext,
    io: &mut RowFileIo,
    bytes: &[u8],
) -> Result<Vec<Option<SlotRef>>, EngineError> {
    let pages = context.arrays.pages();
    let count = bytes.len().div_ceil(pages.page_bytes());
    let mut slots = vec![None; count];
    io.store(pages, bytes, 0..count, |page, slot| {
        slots[page] = Some(slot)
    })?;
    Ok(slots)
}

/// Reads bytes of a block from the page file; returns them, and the offset of the requested ones.
pub(crate) fn load(
    context: &ExecContext,
    io: &mut RowFileIo,
    slots: &[Option<SlotRef>],
    range: Range<usize>,
) -> Result<(Buffer, usize), EngineError> {
    let pages = context.arrays.pages();
    let page_bytes = pages.page_bytes();
    let (first, end) = (range.start / page_bytes, range.end.div_ceil(page_bytes));
    let whole = (end - first) * page_bytes;
    let mut bytes = context.budget.buffer("sent messages", whole)?;
    let slots = slots.get(first..end).unwrap_or(&[]);
    io.load(pages, slots, None, &mut bytes[..whole])?;
    Ok((bytes, range.start - first * page_bytes))
}
