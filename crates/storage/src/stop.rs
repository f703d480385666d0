//! The wish that a run ends soon: Ctrl-C, a time limit, a failed sibling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that all its clones share. Whoever works looks at it between steps.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// Somebody else's flag that asks for the same.
    other: Option<Arc<AtomicBool>>,
}

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Self {
        Stop::default()
    }

    /// The same wish, which another flag stands for too: whoever has it stops once that is set, others do not.
    #[must_use]
    pub fn or(&self, other: Arc<AtomicBool>) -> Self {
        Stop {
            requested: Arc::clone(&self.requested),
            other: Some(other),
        }
    }

    /// Asks everybody to stop. Safe to call from a signal handler.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn requested(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is_set(&self.requested) || self.other.as_deref().is_some_and(is_set)
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

    #[test]
    fn another_flag_stops_those_who_know_of_it() {
        let (stop, other) = (Stop::new(), Arc::new(AtomicBool::new(false)));
        let both = stop.or(Arc::clone(&other));
        assert!(!both.requested());
        other.store(true, Ordering::Relaxed);
        assert!(both.requested() && !stop.requested());
        stop.request();
        assert!(stop.or(Arc::default()).requested());
    }
}
