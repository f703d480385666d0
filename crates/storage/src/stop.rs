//! The wish that a run ends soon: Ctrl-C, a time limit, a failed sibling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A request to stop that all clones share. Workers check it between steps.
///
/// Work that a later run resumes is patient: it continues to a point where stopping loses nothing, unless it is asked twice.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    wish: Arc<Wish>,
    /// Another flag that asks for the same, at once.
    other: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
struct Wish {
    asked: AtomicBool,
    insisted: AtomicBool,
    /// Number of living [`Patience`] guards.
    patient: AtomicUsize,
}

/// A guard: while it lives, work continues after the first request to a point where it can stop.
#[derive(Debug)]
pub struct Patience(Arc<Wish>);

impl Stop {
    /// Makes one without a request.
    pub fn new() -> Self {
        Stop::default()
    }

    /// Returns a clone that `other` stops too, at once; the other clones ignore that flag.
    #[must_use]
    pub fn or(&self, other: Arc<AtomicBool>) -> Self {
        Stop {
            wish: Arc::clone(&self.wish),
            other: Some(other),
        }
    }

    /// Asks all clones to stop; patient work continues to a point where it can stop.
    pub fn request(&self) {
        self.wish.asked.store(true, Ordering::Relaxed);
    }

    /// Asks everybody to stop at once.
    pub fn insist(&self) {
        self.request();
        self.wish.insisted.store(true, Ordering::Relaxed);
    }

    /// Work is patient from now on.
    #[must_use]
    pub fn be_patient(&self) -> Patience {
        self.wish.patient.fetch_add(1, Ordering::Relaxed);
        Patience(Arc::clone(&self.wish))
    }

    /// True if there is a request, so that patient work ends where it can.
    pub fn asked(&self) -> bool {
        self.wish.asked.load(Ordering::Relaxed)
    }

    /// True if work is patient that was not asked twice.
    pub fn is_patient(&self) -> bool {
        self.wish.patient.load(Ordering::Relaxed) > 0 && !self.wish.insisted.load(Ordering::Relaxed)
    }

    /// True if work is to stop now.
    pub fn requested(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        (self.asked() && !self.is_patient()) || self.other.as_deref().is_some_and(is_set)
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.0.patient.fetch_sub(1, Ordering::Relaxed);
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

    #[test]
    fn patient_work_is_asked_twice() {
        let stop = Stop::new();
        let (one, two) = (stop.be_patient(), stop.clone().be_patient());
        stop.request();
        assert!(stop.asked() && !stop.requested());
        drop(one);
        assert!(!stop.requested());
        stop.insist();
        assert!(stop.requested() && !stop.is_patient());
        drop(two);
        let stop = Stop::new();
        drop(stop.be_patient());
        stop.request();
        assert!(stop.requested());
    }
}
