//! A number that one thread raises and others read.

use crate::sync::{AtomicU64, Ordering};

/// All work below this number is done.
///
/// A thread that reads a number sees what the other thread wrote before it raised the watermark to that number.
#[derive(Debug, Default)]
pub struct Watermark(AtomicU64);

impl Watermark {
    /// Raises the number; one thread does it.
    #[inline]
    pub fn raise(&self, to: u64) {
        self.raise_as(to, Ordering::Release);
    }

    #[inline(always)]
    fn raise_as(&self, to: u64, publish: Ordering) {
        self.0.store(to, publish);
    }

    /// Returns the number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{Watch, every_order, thread};

    /// A thread folds two buckets and raises the number after each; this one reads the work below it.
    fn acknowledged(publish: Ordering) {
        every_order(move || {
            let shared = Arc::new((Watermark::default(), [Watch::default(), Watch::default()]));
            let other = Arc::clone(&shared);
            let lane = thread::spawn(move || {
                for (watch, number) in other.1.iter().zip(1..) {
                    watch.write();
                    other.0.raise_as(number, publish);
                }
            });
            let seen = shared.0.get();
            assert!(seen <= 2);
            shared.1[..seen as usize].iter().for_each(Watch::read);
            lane.join().unwrap();
            assert_eq!(shared.0.get(), 2);
        });
    }

    #[test]
    fn watermark_shows_the_work_below_it() {
        acknowledged(Ordering::Release);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Causality violation")]
    fn watermark_raised_too_early_is_detected() {
        acknowledged(Ordering::Relaxed);
    }
}
