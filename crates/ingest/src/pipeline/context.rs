//! The state that all steps of an import share, and the sizes of their buffers.

use std::path::Path;
use std::time::Duration;

use crate::checkpoint::step_log::StepLog;
use crate::comm::ImportCommunicator;
use crate::options::{ImportOptions, ImportResources};
use crate::report::ImportReport;
use crate::source::EdgeSource;

pub(super) struct ImportContext<'a> {
    pub(super) resources: ImportResources<'a>,
    /// The log of the checkpoint, if one is written.
    pub(super) log: Option<&'a StepLog<'a>>,
    /// The options by which arcs are stored.
    pub(super) options: &'a ImportOptions,
    /// True if edges have a direction.
    pub(super) directed: bool,
    pub(super) comm: ImportCommunicator<'a>,
    /// The part of the edges that this rank reads, and of the list of vertices.
    pub(super) source: &'a dyn EdgeSource,
    pub(super) vertices: Option<&'a dyn EdgeSource>,
    pub(super) temporary: &'a Path,
    pub(super) staging: &'a Path,
    pub(super) report: ImportReport,
    /// Edges in the part that this rank reads.
    pub(super) edges_here: u64,
    /// The time when the current step began.
    pub(super) started: Duration,
}

/// Bytes of a bucket that a worker reads ahead, if that is not too many chunks or too few.
const READ_AHEAD_BYTES: usize = 1 << 20;

/// Chunks of a bucket that a worker reads ahead.
pub(super) fn read_ahead(chunk_bytes: usize) -> usize {
    (READ_AHEAD_BYTES / chunk_bytes).clamp(8, 32)
}

impl ImportContext<'_> {
    /// Notes the time of a step that ends.
    pub(super) fn done(&mut self, step: &'static str) {
        let now = self.resources.clock.now();
        self.report
            .steps
            .push((step, now.saturating_sub(self.started)));
        self.started = now;
    }

    pub(super) fn lanes(&self) -> u64 {
        self.resources.workers.count() as u64
    }
}
