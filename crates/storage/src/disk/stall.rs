//! Reports a disk that completes nothing for long in one line on stderr, so that the command does not seem dead.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How long a disk may complete nothing before it is reported.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// True from the report, by any queue, until the next completion.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Reports that none of `waiting` operations completed within [`PATIENCE`].
pub(super) fn tell(waiting: usize) {
    if !IS_TOLD.swap(true, Relaxed) {
        let _ = writeln!(
            std::io::stderr(),
            "graphmill: the disk has completed nothing for {} s ({waiting} operations wait): check the disk and the limit of \
             threads (ulimit -u, pids.max); two interrupts end the command",
            PATIENCE.as_secs()
        );
    }
}

/// Records that an operation completed.
pub(super) fn end() {
    IS_TOLD.store(false, Relaxed);
}
