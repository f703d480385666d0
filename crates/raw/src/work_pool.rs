//! Parts of a job that threads share until no thread has any; each thread may also have parts of its own.
//!
//! 1. A thread is busy from the time it takes a part ([`WorkPool::claim`]) until it has done that part and all of its own
//!    ([`WorkPool::finish`]). Its own parts include those that it finds meanwhile.
//! 2. A busy thread may share some of its own parts ([`WorkPool::offer`]) if other threads find none.
//! 3. A thread that finds no part and no busy thread knows that the job is done.
//!
//! Only the number of busy threads is accessed without the lock. A thread raises it, and decides by it, with the parts locked. So a thread
//! that finds no part counts every thread that has taken one. The parts that a thread shares before it finishes are visible to all
//! threads that see it finished.

use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// The parts that no thread has taken yet, and the number of threads that are busy with others.
#[derive(Debug)]
pub struct WorkPool<T> {
    parts: Mutex<Vec<T>>,
    active: AtomicUsize,
}

/// The result for a thread that looks for a part.
#[derive(Debug)]
pub enum WorkShare<T> {
    /// A part; the thread is busy now.
    Part(T),
    /// No part, but other threads are busy and may still share some.
    NotYet,
    /// No part, and there will be none.
    NoMore,
}

impl<T> WorkPool<T> {
    /// Returns a pool of parts, beside `active` threads that are busy from the start.
    ///
    /// Those have parts of their own.
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

    /// Returns the approximate number of busy threads.
    #[inline(always)]
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Calls `give` for a busy thread to add parts to share, unless there are parts left.
    ///
    /// Returns the result of `give`, or false if it was not called.
    pub fn offer(&self, give: impl FnOnce(&mut Vec<T>) -> bool) -> bool {
        let mut parts = lock(&self.parts);
        parts.is_empty() && give(&mut parts)
    }

    /// Records that the calling thread, which was busy, has no parts left.
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
        event: EventCount,
        threads: usize,
        undone: AtomicUsize,
    }

    impl Work {
        /// The work of one thread with `own` parts of its own.
        ///
        /// Each time it has done one, it shares the others if another thread wants them.
        fn with(&self, own: u32, take: Take) {
            let mut own: Vec<u32> = (0..own).collect();
            loop {
                let key = self.event.key();
                if own.pop().is_none() {
                    match take(&self.shares) {
                        WorkShare::Part(_) => (),
                        WorkShare::NotYet => {
                            self.event.wait(key, Duration::MAX);
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
                self.event.notify_all();
            }
            // Adding 0 reads the latest value.
            let undone = self.undone.fetch_add(0, Ordering::Relaxed);
            assert_eq!(undone, 0, "nobody goes before all is done");
        }
    }

    /// Runs threads with parts of their own, and parts that are shared from the start.
    fn all_is_done(interruptions: usize, own: &'static [u32], shared: u32, take: Take) {
        nearly_every_order(interruptions, move || {
            let busy = own.iter().filter(|own| **own > 0).count();
            let work = Arc::new(Work {
                shares: WorkPool::new((0..shared).collect(), busy),
                event: EventCount::default(),
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
        // One thread shares, one takes and one decides; with three interruptions this takes a minute and a half.
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
