//! Bytes of the budget that lists of sources take.

use std::ops::Range;

use graphmill_graph::Batches;
use graphmill_raw::AlignedBuffer;

use crate::messages::run_codec::WORD;

/// Buffers of a reader or writer of lists.
pub(crate) const WINDOW: usize = 2;
/// A list, and a message run for its group.
const ENTRY_BYTES: u64 = 128;

/// Bytes of the budget that lists take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableMemory {
    /// Bytes of the matrix of one batch while the lists are built.
    pub(crate) rows: u64,
    /// Maximum number of lists, and bytes of their entries.
    pub(crate) count: usize,
    pub(crate) entries: u64,
    /// Maximum bytes of the lists alone.
    pub(crate) lists: u64,
    /// With the lists on disk.
    pub(crate) least: u64,
    /// At most.
    pub(crate) most: u64,
}

impl TableMemory {
    /// Returns the memory of `count` lists, of the sources of some batches for `groups` groups.
    ///
    /// `readers` read them at the same time.
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

    /// True if the lists are built in memory, in `limit` bytes.
    pub(crate) fn fits(&self, limit: u64) -> bool {
        self.most <= limit
    }

    /// True if lists of `lists` bytes that were built on disk then fit in memory.
    ///
    /// They take the place of the build buffers.
    pub(crate) fn fits_after_build(&self, lists: u64, limit: u64) -> bool {
        let lists = AlignedBuffer::footprint(lists as usize);
        (self.least - self.rows).saturating_add(lists) <= limit
    }

    /// True if lists of `lists` bytes that were built in memory move to an allocation of their size.
    pub(crate) fn should_compact(&self, lists: u64) -> bool {
        AlignedBuffer::footprint(lists as usize) <= self.lists / 2
    }

    /// Returns whether lists of `lists` bytes end up on disk, and the bytes of memory that they take.
    pub(crate) fn resident_bytes(&self, lists: u64, limit: u64) -> (bool, u64) {
        match () {
            () if self.fits(limit) && !self.should_compact(lists) => {
                (false, self.entries + self.lists)
            }
            () if self.fits(limit) => (false, self.entries + lists),
            () if self.fits_after_build(lists, limit) => (false, self.entries + lists),
            () => (true, self.least - self.rows),
        }
    }
}
