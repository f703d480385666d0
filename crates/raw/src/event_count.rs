//! A count of events: a thread that finds no work sleeps until there is a new event.
//!
//! 1. A thread reads the number of events ([`EventCount::key`]) before it looks for work.
//! 2. If it finds none, it waits for a new event ([`EventCount::wait`]). It counts itself as asleep. Then it modifies the count of events
//!    by adding 0.
//! 3. A thread with an event counts the event first, and then looks for sleepers ([`EventCount::notify_all`]).
//!
//! Of two threads that modify the count one is second, and sees what the other did before. Either the sleeper sees the event, or the
//! notifier sees the sleeper. So no thread sleeps through an event.

use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, lock, spin};

/// Number of times, a few microseconds in all, that a thread checks before it sleeps.
const SPINS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// The number of events so far, and the threads that sleep until the next one.
#[derive(Debug, Default)]
pub struct EventCount {
    count: AtomicU64,
    asleep: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
}

impl EventCount {
    /// Returns the number of events so far.
    pub fn key(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Counts an event and wakes all threads that sleep.
    pub fn notify_all(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.wake();
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::Relaxed) > 0 {
            // A thread that saw no event holds the lock until it waits on the condition variable.
            drop(lock(&self.bed));
            self.bell.notify_all();
        }
    }

    /// Returns if the number of events is not `key`, after `longest`, or without a reason.
    pub fn wait(&self, key: u64, longest: Duration) {
        for _ in 0..SPINS {
            if self.key() != key {
                return;
            }
            spin();
        }
        self.asleep.fetch_add(1, Ordering::Relaxed);
        let bed = lock(&self.bed);
        if self.count.fetch_add(0, Ordering::AcqRel) == key {
            let woken = self.bell.wait_timeout(bed, longest);
            drop(woken.unwrap_or_else(PoisonError::into_inner));
        }
        self.asleep.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn waiter_wakes_on_new_events_only() {
        let event = EventCount::default();
        let key = event.key();
        event.wait(key, Duration::from_millis(1));
        assert_eq!(event.key(), key);
        event.notify_all();
        event.wait(key, Duration::MAX);
        std::thread::scope(|scope| {
            let key = event.key();
            scope.spawn(|| event.notify_all());
            while event.key() == key {
                event.wait(key, Duration::MAX);
            }
        });
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{AtomicU32, nearly_every_order, thread};

    /// Some threads each do a part of the work and notify, and one waits for all parts.
    ///
    /// The wait has no limit, so a missed event is a deadlock.
    fn parts(tellers: u32, tell: fn(&EventCount)) {
        nearly_every_order(3, move || {
            let shared = Arc::new((EventCount::default(), AtomicU32::new(0)));
            for _ in 0..tellers {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (event, done) = &*shared;
                    done.fetch_add(1, Ordering::Relaxed);
                    tell(event);
                });
            }
            let (event, done) = &*shared;
            loop {
                let key = event.key();
                if done.load(Ordering::Relaxed) == tellers {
                    return;
                }
                event.wait(key, Duration::MAX);
            }
        });
    }

    #[test]
    fn waiter_misses_no_event() {
        parts(1, EventCount::notify_all);
        parts(2, EventCount::notify_all);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn notifier_checking_waiters_first_is_detected() {
        parts(1, |event| {
            event.wake();
            event.count.fetch_add(1, Ordering::AcqRel);
        });
    }

    #[test]
    #[cfg(shuttle)]
    fn waiter_of_many_notifiers_misses_no_event() {
        parts(5, EventCount::notify_all);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "deadlock")]
    fn notifier_missing_a_waiter_is_detected() {
        parts(1, |event| {
            event.count.fetch_add(1, Ordering::Relaxed);
            event.wake();
        });
    }
}
