//! Parts of some work that threads share out between them, each thread with parts of its own besides, until nobody has any.
//!
//! 1. A thread is busy from when it takes a part ([`WorkPool::claim`]) until it has done that and all of its own, those that it found on
//!    the way included ([`WorkPool::finish`]).
//! 2. While it is busy it may share some of its own ([`WorkPool::offer`]), if others look for parts in vain.
//! 3. Who finds no part, nor anybody busy, knows that all is done.
//!
//! Only the number of busy threads is reached without the lock. It rises, and is judged, with the parts locked: so who finds none
//! counts every thread that has taken some; and what a thread shares before it leaves is there for all who can see it gone.

use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// Parts that nobody has taken yet, and how many threads are busy with others.
#[derive(Debug)]
pub struct WorkPool<T> {
    parts: Mutex<Vec<T>>,
    active: AtomicUsize,
}

/// What a thread gets that looks for a part.
#[derive(Debug)]
pub enum WorkShare<T> {
    /// A part; the thread is busy now.
    Part(T),
    /// Nothing, but others are busy and may share some yet.
    NotYet,
    /// Nothing, and nothing to come.
    NoMore,
}

impl<T> WorkPool<T> {
    /// Some parts, beside so many threads that are busy with parts of their own from the start.
    pub fn new(parts: Vec<T>, active: usize) -> Self {
        WorkPool {
            parts: Mutex::new(parts),
            active: AtomicUsize::new(active),
        }
    }

    /// Takes a part, for a thread that is not busy.
    pub fn claim(&self) -> WorkShare<T> {
        let mut parts = lock(&self.parts);
        match (parts.pop(), self.active.load(Ordering::Relaxed)) {
            (Some(part), _) => {
                self.active.fetch_add(1, Ordering::Relaxed);
                WorkShare::Part(part)
            }
            (None, 0) => WorkShare::NoMore,
            (None, _) => WorkShare::NotYet,
        }
    }

    /// Threads that are busy, about.
    #[inline(always)]
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Shares what `give` adds, for a thread that is busy, unless there are parts left; what `give` returns, or `false`.
    pub fn offer(&self, give: impl FnOnce(&mut Vec<T>) -> bool) -> bool {
        let mut parts = lock(&self.parts);
        parts.is_empty() && give(&mut parts)
    }

    /// The calling thread, which was busy, has nothing left.
    #[inline]
    pub fn finish(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn parts_are_offered_while_a_thread_is_active() {
        let shares = WorkPool::new(vec![1], 1);
        assert!(matches!(shares.claim(), WorkShare::Part(1)));
        assert_eq!(shares.active(), 2);
        assert!(matches!(shares.claim(), WorkShare::NotYet));
        let two = |parts: &mut Vec<i32>| {
            parts.extend([2, 3]);
            true
        };
        assert!(shares.offer(two));
        assert!(!shares.offer(two), "there are some");
        shares.finish();
        shares.finish();
        assert!(matches!(shares.claim(), WorkShare::Part(3)));
        assert!(matches!(shares.claim(), WorkShare::Part(2)));
        shares.finish();
        assert!(matches!(shares.claim(), WorkShare::NotYet));
        shares.finish();
        assert!(matches!(shares.claim(), WorkShare::NoMore));
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::event_count::EventCount;
    use crate::sync::{nearly_every_order, thread};

    type Take = fn(&WorkPool<u32>) -> WorkShare<u32>;

    struct Work {
        shares: WorkPool<u32>,
        news: EventCount,
        threads: usize,
        undone: AtomicUsize,
    }

    impl Work {
        /// What one thread does, with so many parts of its own: each time it has done one it shares the others if that is wanted.
        fn with(&self, own: u32, take: Take) {
            let mut own: Vec<u32> = (0..own).collect();
            loop {
                let key = self.news.key();
                if own.pop().is_none() {
                    match take(&self.shares) {
                        WorkShare::Part(_) => (),
                        WorkShare::NotYet => {
                            self.news.wait(key, Duration::MAX);
                            continue;
                        }
                        WorkShare::NoMore => break,
                    }
                }
                self.undone.fetch_sub(1, Ordering::Relaxed);
                if self.shares.active() < self.threads {
                    self.shares.offer(|parts| {
                        parts.append(&mut own);
                        true
                    });
                }
                if own.is_empty() {
                    self.shares.finish();
                }
                self.news.notify_all();
            }
            // Adding nothing reads the last value there is.
            let undone = self.undone.fetch_add(0, Ordering::Relaxed);
            assert_eq!(undone, 0, "nobody goes before all is done");
        }
    }

    /// Threads with parts of their own, and some that are shared from the start.
    fn all_is_done(interruptions: usize, own: &'static [u32], shared: u32, take: Take) {
        nearly_every_order(interruptions, move || {
            let busy = own.iter().filter(|own| **own > 0).count();
            let work = Arc::new(Work {
                shares: WorkPool::new((0..shared).collect(), busy),
                news: EventCount::default(),
                threads: own.len(),
                undone: AtomicUsize::new((own.iter().sum::<u32>() + shared) as usize),
            });
            let others: Vec<_> = own[1..]
                .iter()
                .map(|own| {
                    let work = Arc::clone(&work);
                    thread::spawn(move || work.with(*own, take))
                })
                .collect();
            work.with(own[0], take);
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }

    #[test]
    fn threads_end_when_all_work_is_done() {
        all_is_done(3, &[0, 0], 3, WorkPool::claim);
        all_is_done(3, &[2, 0], 0, WorkPool::claim);
        all_is_done(3, &[3, 1], 0, WorkPool::claim);
        // One that shares, one that takes, and one that judges; with three interruptions it takes a minute and a half.
        all_is_done(2, &[2, 0, 0], 0, WorkPool::claim);
    }

    #[test]
    #[cfg(shuttle)]
    fn many_threads_end_when_all_work_is_done() {
        all_is_done(0, &[6, 0, 2, 0, 0], 3, WorkPool::claim);
        all_is_done(0, &[9, 0, 0, 0], 0, WorkPool::claim);
    }

    #[test]
    #[should_panic(expected = "nobody goes before all is done")]
    fn thread_deciding_without_the_lock_is_detected() {
        all_is_done(3, &[2, 0], 0, |shares| {
            let part = lock(&shares.parts).pop();
            match (part, shares.active()) {
                (Some(part), _) => {
                    shares.active.fetch_add(1, Ordering::Relaxed);
                    WorkShare::Part(part)
                }
                (None, 0) => WorkShare::NoMore,
                (None, _) => WorkShare::NotYet,
            }
        });
    }

    #[test]
    #[should_panic(expected = "nobody goes before all is done")]
    fn thread_counted_too_late_is_detected() {
        all_is_done(3, &[0, 0], 1, |shares| {
            let found = match (&mut *lock(&shares.parts), shares.active()) {
                (parts, 0) if parts.is_empty() => WorkShare::NoMore,
                (parts, _) => parts.pop().map_or(WorkShare::NotYet, WorkShare::Part),
            };
            if let WorkShare::Part(_) = found {
                shares.active.fetch_add(1, Ordering::Relaxed);
            }
            found
        });
    }
}
