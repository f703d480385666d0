//! Requests to stop a run: by Ctrl-C, a time limit, or the failure of another rank.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A request to stop that all clones share. Workers check it between steps.
///
/// Work that a later run can resume is graceful: after a request it continues to a point where stopping loses nothing. A second request
/// stops it at once.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    wish: Arc<CancelState>,
    /// Another flag, which stops work at once.
    other: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
struct CancelState {
    asked: AtomicBool,
    insisted: AtomicBool,
    /// Number of living [`GracefulGuard`] guards.
    patient: AtomicUsize,
}

/// A guard: while it lives, work continues after the first request to a point where it can stop.
#[derive(Debug)]
pub struct GracefulGuard(Arc<CancelState>);

impl CancelToken {
    /// Makes a token without a request.
    pub fn new() -> Self {
        CancelToken::default()
    }

    /// Returns a clone that `other` stops too, at once; the other clones ignore that flag.
    #[must_use]
    pub fn or(&self, other: Arc<AtomicBool>) -> Self {
        let (wish, other) = (Arc::clone(&self.wish), Some(other));
        CancelToken { wish, other }
    }

    /// Asks all clones to stop; graceful work continues to a point where it can stop.
    pub fn request(&self) {
        self.wish.asked.store(true, Ordering::Relaxed);
    }

    /// Asks all clones to stop at once, graceful work too.
    pub fn force(&self) {
        self.request();
        self.wish.insisted.store(true, Ordering::Relaxed);
    }

    /// Takes all requests back: later work is not stopped.
    pub fn clear(&self) {
        self.wish.asked.store(false, Ordering::Relaxed);
        self.wish.insisted.store(false, Ordering::Relaxed);
    }

    /// Makes work graceful until the guard is dropped.
    #[must_use]
    pub fn graceful(&self) -> GracefulGuard {
        self.wish.patient.fetch_add(1, Ordering::Relaxed);
        GracefulGuard(Arc::clone(&self.wish))
    }

    /// Returns true if there is a request, so that graceful work ends where it can.
    pub fn is_requested(&self) -> bool {
        self.wish.asked.load(Ordering::Relaxed)
    }

    /// Returns true if work is graceful and was not asked twice.
    pub fn is_patient(&self) -> bool {
        self.wish.patient.load(Ordering::Relaxed) > 0 && !self.wish.insisted.load(Ordering::Relaxed)
    }

    /// Returns true if work must stop now.
    pub fn is_cancelled(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        (self.is_requested() && !self.is_patient()) || self.other.as_deref().is_some_and(is_set)
    }
}

impl Drop for GracefulGuard {
    fn drop(&mut self) {
        self.0.patient.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancel_is_shared_by_clones() {
        let stop = CancelToken::new();
        let clone = stop.clone();
        assert!(!clone.is_cancelled());
        stop.request();
        assert!(clone.is_cancelled());
    }

    #[test]
    fn cancel_by_another_flag_reaches_its_holders() {
        let (stop, other) = (CancelToken::new(), Arc::new(AtomicBool::new(false)));
        let both = stop.or(Arc::clone(&other));
        assert!(!both.is_cancelled());
        other.store(true, Ordering::Relaxed);
        assert!(both.is_cancelled() && !stop.is_cancelled());
        stop.request();
        assert!(stop.or(Arc::default()).is_cancelled());
    }

    #[test]
    fn cancel_of_graceful_work_takes_two_requests() {
        let stop = CancelToken::new();
        let (one, two) = (stop.graceful(), stop.clone().graceful());
        stop.request();
        assert!(stop.is_requested() && !stop.is_cancelled());
        drop(one);
        assert!(!stop.is_cancelled());
        stop.force();
        assert!(stop.is_cancelled() && !stop.is_patient());
        drop(two);
        let stop = CancelToken::new();
        drop(stop.graceful());
        stop.request();
        assert!(stop.is_cancelled());
    }
}
