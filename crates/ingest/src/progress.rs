//! The progress of an import, for a listener: a step, and how many of its units are done.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::IngestError;

/// A listener to the progress of an import.
pub trait ImportProgress: Sync + std::fmt::Debug {
    /// Reports that `done` of `total` units (bytes, edges or arcs) of a step are done.
    ///
    /// Any thread may call it, often.
    fn update(&self, step: &'static str, done: u64, total: u64);

    /// Reports that the import resumes at `step`, with this many complete column files.
    ///
    /// An earlier import of the same input had ended the steps before.
    fn goes_on(&self, _step: &'static str, _files: usize) {}

    /// Reports that the import writes no checkpoint.
    ///
    /// In the directory, another import of the same input works, or locks cannot tell whether one does.
    fn keeps_nothing(&self, _folder: &Path) {}

    /// Reports that the import writes no further checkpoint, because of an error.
    fn keeps_no_more(&self, _error: &IngestError) {}

    /// Reports that the import was interrupted, and that its checkpoint is in this directory.
    ///
    /// The next import of the same input resumes from it.
    fn keeps(&self, _folder: &Path) {}
}

/// A listener that ignores all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl ImportProgress for NoProgress {
    fn update(&self, _step: &'static str, _done: u64, _total: u64) {}
}

/// The progress of one step.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    progress: &'a dyn ImportProgress,
    step: &'static str,
    total: u64,
    done: AtomicU64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(progress: &'a dyn ImportProgress, step: &'static str, total: u64) -> Self {
        progress.update(step, 0, total);
        Self {
            progress,
            step,
            total,
            done: AtomicU64::new(0),
        }
    }

    pub(crate) fn advance(&self, amount: u64) {
        let done = self.done.fetch_add(amount, Relaxed) + amount;
        let shown = match self.total {
            // The amount is not known.
            0 => done,
            total => done.min(total),
        };
        self.progress.update(self.step, shown, self.total);
    }
}
