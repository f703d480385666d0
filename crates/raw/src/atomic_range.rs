//! The number of claimed units: several threads raise it, but not above its limit.
//!
//! A thread reads the number and raises it by an exchange, which fails if another thread has changed the number meanwhile. So the number
//! never exceeds the limit, and no two threads get the same first unit. Units numbered from 0 are claimed once each as long as none
//! is released.
//!
//! All accesses are relaxed: the number tells how many units may be used, and does not publish what earlier users wrote.

use crate::sync::{AtomicU64, Ordering};

/// A number of units that threads claim and release.
#[derive(Debug)]
pub struct AtomicRange {
    taken: AtomicU64,
    limit: u64,
}

impl AtomicRange {
    /// Returns a range of `limit` units, `taken` of them claimed.
    pub fn new(taken: u64, limit: u64) -> Self {
        AtomicRange {
            taken: AtomicU64::new(taken),
            limit,
        }
    }

    /// Claims `units` units and returns the number of units claimed before.
    ///
    /// # Errors
    /// Fewer units are left; the error is their number.
    #[inline]
    pub fn claim(&self, units: u64) -> Result<u64, u64> {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                self.with(taken, units)
            })
            .map_err(|taken| self.limit - taken)
    }

    /// Returns the number of claimed units after `units` more; `None` if fewer are left.
    #[inline]
    fn with(&self, taken: u64, units: u64) -> Option<u64> {
        taken.checked_add(units).filter(|sum| *sum <= self.limit)
    }

    /// Releases units that were claimed.
    pub fn release(&self, units: u64) {
        self.taken.fetch_sub(units, Ordering::Relaxed);
    }

    /// Returns the number of units that are not claimed.
    pub fn remaining(&self) -> u64 {
        self.limit - self.taken.load(Ordering::Relaxed)
    }

    /// Returns the number of all units.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn units_are_claimed_up_to_the_limit_and_released() {
        let quota = AtomicRange::new(1, 5);
        assert_eq!([quota.claim(3), quota.claim(2)], [Ok(1), Err(1)]);
        assert_eq!([quota.claim(0), quota.claim(u64::MAX)], [Ok(4), Err(1)]);
        quota.release(2);
        assert_eq!([quota.remaining(), quota.limit()], [3, 5]);
        assert_eq!([quota.claim(3), quota.claim(1)], [Ok(2), Err(0)]);
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{every_order, thread};

    /// Two threads claim units one by one until none is left: each unit once, none beyond the limit.
    fn numbered(take: fn(&AtomicRange, u64) -> Result<u64, u64>) {
        every_order(move || {
            let quota = Arc::new(AtomicRange::new(4, 7));
            let all_of = move |quota: &AtomicRange| {
                std::iter::from_fn(|| take(quota, 1).ok()).collect::<Vec<_>>()
            };
            let theirs = {
                let quota = Arc::clone(&quota);
                thread::spawn(move || all_of(&quota))
            };
            let mut taken = all_of(&quota);
            taken.extend(theirs.join().unwrap());
            taken.sort_unstable();
            assert_eq!(taken, [4, 5, 6], "each once");
        });
    }

    /// Two threads each claim units and release them: never more than the limit, and all return.
    fn borrowed(units: u64, limit: u64, give_back: fn(&AtomicRange, u64)) {
        every_order(move || {
            let shared = Arc::new((AtomicRange::new(0, limit), AtomicU64::new(0)));
            let use_some = move |(quota, used): &(AtomicRange, AtomicU64)| match quota.claim(units)
            {
                Ok(_) => {
                    assert!(used.fetch_add(units, Ordering::Relaxed) + units <= limit);
                    used.fetch_sub(units, Ordering::Relaxed);
                    give_back(quota, units);
                }
                Err(left) => assert!(left < units, "who is refused is told why"),
            };
            let theirs = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || use_some(&shared))
            };
            use_some(&shared);
            theirs.join().unwrap();
            assert_eq!(shared.0.remaining(), limit, "all are there again");
        });
    }

    #[test]
    fn units_are_claimed_once() {
        numbered(AtomicRange::claim);
    }

    #[test]
    #[should_panic(expected = "each once")]
    fn unit_claimed_without_exchange_is_detected() {
        numbered(|quota, units| {
            let taken = quota.taken.load(Ordering::Relaxed);
            let after = quota.with(taken, units).ok_or(quota.limit - taken)?;
            quota.taken.store(after, Ordering::Relaxed);
            Ok(taken)
        });
    }

    #[test]
    fn units_bound_their_users() {
        borrowed(2, 3, AtomicRange::release);
        borrowed(1, 2, AtomicRange::release);
    }

    #[test]
    #[should_panic(expected = "all are there again")]
    fn units_never_released_are_detected() {
        borrowed(1, 2, |quota, units| {
            let taken = quota.taken.load(Ordering::Relaxed);
            let after = taken.saturating_sub(units);
            quota.taken.store(after, Ordering::Relaxed);
        });
    }
}
