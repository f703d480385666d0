//! The copy of an in-memory array that checkpoints have: its pages on disk, and which of them changed since.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
