//! A disk that completes nothing for long, which is told in one line on stderr: the command only seems to be dead.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How long a disk may complete nothing before that is told.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Told once by all queues, until one of them goes on.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Tells that none of so many operations was complete for that long.
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

/// Takes note that an operation is complete.
pub(super) fn end() {
    IS_TOLD.store(false, Relaxed);
}
