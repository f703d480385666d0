//! The copy of an in-memory array that checkpoints have: its pages on disk, and which of them changed since.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::frontier::bitmap::HierarchicalBitmap;
use crate::state::row_file::PageTable;

/// An array in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedColumn {
    pub(crate) name: String,
    pub(crate) element_bytes: usize,
    pub(crate) pages: PageTable,
}

/// The pages of an in-memory array that checkpoints hold.
pub(crate) struct CheckpointCopy {
    /// The number of the first page of each batch.
    pub(crate) first: Vec<usize>,
    pub(crate) table: Mutex<PageTable>,
    /// Bit i of word w: page 64 w + i has changed since the last checkpoint.
    pub(crate) changed: Vec<AtomicU64>,
}

impl CheckpointCopy {
    pub(crate) fn new(first: Vec<usize>) -> Self {
        let pages = first.last().copied().unwrap_or(0);
        let words = pages.div_ceil(64);
        CheckpointCopy {
            first,
            table: Mutex::new(vec![None; pages]),
            changed: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }
    pub(crate) fn change(&self, page: usize) {
        let (word, bit) = (&self.changed[page / 64], 1 << (page % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }
    pub(crate) fn change_all(&self) {
        (0..self.first.last().copied().unwrap_or(0)).for_each(|page| self.change(page));
    }
    /// The pages of a range that have changed, from its first on; they have not any more.
    pub(crate) fn take_changed(&self, range: Range<usize>) -> Vec<usize> {
        let take = |page: &usize| {
            let bit = 1 << (page % 64);
            self.changed[page / 64].fetch_and(!bit, Ordering::Relaxed) & bit != 0
        };
        let pages = range.clone().filter(take);
        pages.map(|page| page - range.start).collect()
    }
}

/// Returns the pages of a batch that hold changed rows, of elements of `size` bytes.
pub(crate) fn pages_of(
    dirty: &HierarchicalBitmap,
    element_bytes: usize,
    page_bytes: usize,
) -> Vec<usize> {
    let mut changed = Vec::new();
    // Rows before this one are in pages already reported: a division for each page, not for each row.
    let mut copied = 0;
    dirty.for_each(|i| {
        if i >= copied {
            let from = i * element_bytes / page_bytes;
            let to = ((i + 1) * element_bytes - 1) / page_bytes;
            let is_told = changed.last() == Some(&from);
            changed.extend(from + usize::from(is_told)..=to);
            copied = (to + 1) * page_bytes / element_bytes;
        }
    });
    changed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use graphmill_storage::MemoryBudget;

    use super::*;

    #[test]
    fn changed_row_marks_its_pages() {
        const PAGE_BYTES: usize = 64;
        for element_bytes in [1, 4, 12, 48, 64, 100, 200] {
            for step in [1, 3, 17, 50] {
                let mut dirty = HierarchicalBitmap::default();
                dirty.reserve(300, &MemoryBudget::new(1 << 20)).unwrap();
                let mut pages = BTreeSet::new();
                for i in (0..300).step_by(step) {
                    dirty.insert(i);
                    let bytes = i * element_bytes..(i + 1) * element_bytes;
                    pages.extend(bytes.map(|byte| byte / PAGE_BYTES));
                }
                let found = pages_of(&dirty, element_bytes, PAGE_BYTES);
                assert_eq!(found, Vec::from_iter(pages), "{element_bytes} bytes");
            }
        }
    }
}
