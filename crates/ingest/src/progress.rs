//! How far an import is, for whoever listens: a step and, of its units, how many are done.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::IngestError;

/// Hears how far an import is.
pub trait Progress: Sync + std::fmt::Debug {
    /// Of the `total` units (bytes, edges or arcs) of a step, `done` are done. Called often, from any thread.
    fn update(&self, step: &'static str, done: u64, total: u64);

    /// Work goes on with a step, since another import of the same had ended those before; so many column files are complete.
    fn goes_on(&self, _step: &'static str, _files: usize) {}

    /// Nothing of what is done is kept: in a folder another import of the same works, or nobody can tell whether it does.
    fn keeps_nothing(&self, _folder: &Path) {}

    /// What is done from now on is not kept, because of an error.
    fn keeps_no_more(&self, _error: &IngestError) {}

    /// The import ends before its time, and what it has done is kept in a folder: the next import of the same goes on with it.
    fn keeps(&self, _folder: &Path) {}
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _step: &'static str, _done: u64, _total: u64) {}
}

/// How far one step is.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    progress: &'a dyn Progress,
    step: &'static str,
    total: u64,
    done: AtomicU64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(progress: &'a dyn Progress, step: &'static str, total: u64) -> Self {
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
        self.progress
            .update(self.step, done.min(self.total), self.total);
    }
}
