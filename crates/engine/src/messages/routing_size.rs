//! Bytes of the budget that lists of sources take.

use std::ops::Range;

use graphmill_graph::Batches;
use graphmill_raw::AlignedBuffer;

use crate::messages::run_codec::WORD;

/// Buffers of those who read or write lists.
pub(crate) const WINDOW: usize = 2;
/// A list, and a piece of messages for its group.
const ENTRY_BYTES: u64 = 128;

/// Bytes of the budget that lists take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableMemory {
    /// What is known of one batch while they are made.
    pub(crate) rows: u64,
    /// How many lists there are, at most, and bytes of what is known of them.
    pub(crate) count: usize,
    pub(crate) entries: u64,
    /// Those of the lists alone, at most.
    pub(crate) lists: u64,
    /// With the lists on disk.
    pub(crate) least: u64,
    /// At most.
    pub(crate) most: u64,
}

impl TableMemory {
    /// Of lists of the sources of some batches for so many groups: so many lists, which so many read at the same time.
    pub(crate) fn new(
        batches: &Batches,
        of: Range<usize>,
        groups: usize,
        count: usize,
        readers: usize,
    ) -> Self {
        let words = batches.widest().div_ceil(WORD as u64);
        let rows = words.saturating_mul(8 * groups as u64);
        let window = WINDOW as u64 * AlignedBuffer::footprint(words as usize * 8);
        let entries = count as u64 * ENTRY_BYTES;
        let least = rows + entries + readers as u64 * window;
        let span = |batch| batches.span(batch).div_ceil(WORD as u64) * 8;
        let bits = of.map(span).sum::<u64>().saturating_mul(groups as u64);
        let lists = bits.div_ceil(4096).saturating_mul(4096);
        TableMemory {
            rows,
            count,
            entries,
            lists,
            least,
            most: (rows + entries).saturating_add(lists).max(least),
        }
    }

    /// Whether lists are made in memory, in so much of it.
    pub(crate) fn fits(&self, room: u64) -> bool {
        self.most <= room
    }

    /// Whether lists of so many bytes that were made on disk have room in memory, in the place of what made them.
    pub(crate) fn fits_after_build(&self, lists: u64, room: u64) -> bool {
        let lists = AlignedBuffer::footprint(lists as usize);
        (self.least - self.rows).saturating_add(lists) <= room
    }

    /// Whether lists of so many bytes that were made in memory are moved to a place of their size, to leave what they do not take.
    pub(crate) fn should_compact(&self, lists: u64) -> bool {
        AlignedBuffer::footprint(lists as usize) <= self.lists / 2
    }

    /// Whether lists of so many bytes are on disk in the end, where there is so much memory; and how much of it they take.
    pub(crate) fn resident_bytes(&self, lists: u64, room: u64) -> (bool, u64) {
        match () {
            () if self.fits(room) && !self.should_compact(lists) => {
                (false, self.entries + self.lists)
            }
            () if self.fits(room) => (false, self.entries + lists),
            () if self.fits_after_build(lists, room) => (false, self.entries + lists),
            () => (true, self.least - self.rows),
        }
    }
}
