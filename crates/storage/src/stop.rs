//! The wish that a run ends soon: Ctrl-C, a time limit, a failed sibling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that all its clones share. Whoever works looks at it between steps.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
}

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Self {
        Stop::default()
    }

    /// Asks everybody to stop. Safe to call from a signal handler.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_wish() {
        let stop = Stop::new();
        let clone = stop.clone();
        assert!(!clone.requested());
        stop.request();
        assert!(clone.requested());
    }
}
