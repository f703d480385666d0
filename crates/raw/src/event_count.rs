//! News that threads have for each other: who finds nothing to do sleeps until there is some.
//!
//! 1. A thread notes how many news there were ([`EventCount::key`]) before it looks for something to do.
//! 2. When it finds nothing it waits until there are more ([`EventCount::wait`]): it counts itself among those asleep, and then touches the
//!    count of news without changing it.
//! 3. Who has news counts them first, and looks for sleepers then ([`EventCount::notify_all`]).
//!
//! Of two who touch the count one comes second, and sees what the other did before: either the sleeper sees the news, or the teller
//! sees the sleeper. So nobody sleeps through news.

use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, lock, spin};

/// So many looks, a few microseconds, before a thread sleeps.
const SPINS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// How many news there were, and who sleeps until there are more.
#[derive(Debug, Default)]
pub struct EventCount {
    count: AtomicU64,
    asleep: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
}

impl EventCount {
    /// How many news there were up to now.
    pub fn key(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Counts news, and wakes those who sleep.
    pub fn notify_all(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.wake();
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::Relaxed) > 0 {
            // Who has seen no news holds the lock until he hears the bell.
            drop(lock(&self.bed));
            self.bell.notify_all();
        }
    }

    /// Returns when there are more news than `seen`, or after some time, or for no reason.
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
        let news = EventCount::default();
        let key = news.key();
        news.wait(key, Duration::from_millis(1));
        assert_eq!(news.key(), key);
        news.notify_all();
        news.wait(key, Duration::MAX);
        std::thread::scope(|scope| {
            let key = news.key();
            scope.spawn(|| news.notify_all());
            while news.key() == key {
                news.wait(key, Duration::MAX);
            }
        });
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{AtomicU32, nearly_every_order, thread};

    /// Some threads each do a part of some work and tell of it, one waits for all parts; nobody wakes who waits for too long.
    fn parts(tellers: u32, tell: fn(&EventCount)) {
        nearly_every_order(3, move || {
            let shared = Arc::new((EventCount::default(), AtomicU32::new(0)));
            for _ in 0..tellers {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (news, done) = &*shared;
                    done.fetch_add(1, Ordering::Relaxed);
                    tell(news);
                });
            }
            let (news, done) = &*shared;
            loop {
                let key = news.key();
                if done.load(Ordering::Relaxed) == tellers {
                    return;
                }
                news.wait(key, Duration::MAX);
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
        parts(1, |news| {
            news.wake();
            news.count.fetch_add(1, Ordering::AcqRel);
        });
    }

    #[test]
    #[cfg(shuttle)]
    fn many_tell() {
        parts(5, EventCount::notify_all);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "deadlock")]
    fn notifier_missing_a_waiter_is_detected() {
        parts(1, |news| {
            news.count.fetch_add(1, Ordering::Relaxed);
            news.wake();
        });
    }
}
