//! A ring of one producer and one consumer: values pass from one thread to another without a lock.
//!
//! Invariants:
//!
//! - Place `n % places` belongs to the producer while `n` is at least `taken + places`, and otherwise, while `n` is below `put`, to the consumer.
//! - Only the producer changes `put`, and only the consumer changes `taken`. Each end is one value that cannot be copied.

#![expect(unsafe_code, reason = "the two ends access different places")]

use std::sync::Arc;

use crate::sync::{AtomicUsize, Ordering, UnsafeCell};

/// A number alone in its cache line, which one thread writes and another reads.
#[derive(Debug)]
#[repr(align(128))]
struct Counter(AtomicUsize);

struct RingState<T> {
    places: Box<[UnsafeCell<Option<T>>]>,
    /// Values put so far.
    put: Counter,
    /// Values taken so far.
    taken: Counter,
}

// SAFETY: a place is accessed by one end at a time, and `put` and `taken` order these accesses (see the invariants).
unsafe impl<T: Send> Sync for RingState<T> {}
// SAFETY: the values may move to another thread, and with them all that the state owns.
unsafe impl<T: Send> Send for RingState<T> {}

/// The end of a ring that puts values in.
pub struct RingProducer<T> {
    state: Arc<RingState<T>>,
    put: usize,
    /// What `taken` was when this end last read it.
    taken: usize,
}

/// The end of a ring that takes values out.
pub struct RingConsumer<T> {
    state: Arc<RingState<T>>,
    taken: usize,
    /// What `put` was when this end last read it.
    put: usize,
}

/// Makes a ring of `places` places, one at least.
pub fn ring<T: Send>(places: usize) -> (RingProducer<T>, RingConsumer<T>) {
    let empty = |_| UnsafeCell::new(None);
    let state = Arc::new(RingState {
        places: (0..places.max(1)).map(empty).collect(),
        put: Counter(AtomicUsize::new(0)),
        taken: Counter(AtomicUsize::new(0)),
    });
    let producer = RingProducer {
        state: Arc::clone(&state),
        put: 0,
        taken: 0,
    };
    let consumer = RingConsumer {
        state,
        taken: 0,
        put: 0,
    };
    (producer, consumer)
}

impl<T: Send> RingProducer<T> {
    /// Puts a value in.
    ///
    /// # Errors
    /// The ring is full: returns the value.
    #[inline]
    pub fn put(&mut self, value: T) -> Result<(), T> {
        self.put_as(value, Ordering::Release)
    }

    #[inline(always)]
    pub(crate) fn put_as(&mut self, value: T, publish: Ordering) -> Result<(), T> {
        let places = self.state.places.len();
        if self.put - self.taken == places {
            self.taken = self.state.taken.0.load(Ordering::Acquire);
            if self.put - self.taken == places {
                return Err(value);
            }
        }
        let place = &self.state.places[self.put % places];
        // SAFETY: the consumer has taken the last value from this place and does not access it before `put` is greater.
        place.with_mut(|place| unsafe { *place = Some(value) });
        self.put += 1;
        self.state.put.0.store(self.put, publish);
        Ok(())
    }
}

impl<T: Send> RingConsumer<T> {
    /// Takes the oldest value out; `None` if there is none.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        self.take_as(Ordering::Release)
    }

    #[inline(always)]
    fn take_as(&mut self, publish: Ordering) -> Option<T> {
        if self.taken == self.put {
            self.put = self.state.put.0.load(Ordering::Acquire);
            if self.taken == self.put {
                return None;
            }
        }
        let place = &self.state.places[self.taken % self.state.places.len()];
        // SAFETY: the producer has put a value into this place and does not access it before `taken` is greater.
        let value = place.with_mut(|place| unsafe { (*place).take() });
        self.taken += 1;
        self.state.taken.0.store(self.taken, publish);
        value
    }
}

impl<T> std::fmt::Debug for RingProducer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingProducer")
            .field("put", &self.put)
            .finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for RingConsumer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingConsumer")
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn full_ring_returns_the_value() {
        let (mut producer, mut consumer) = ring(2);
        assert_eq!([producer.put('a'), producer.put('b')], [Ok(()), Ok(())]);
        assert_eq!(producer.put('c'), Err('c'));
        assert_eq!(consumer.take(), Some('a'));
        assert_eq!(producer.put('c'), Ok(()));
        let rest = std::iter::from_fn(|| consumer.take());
        assert_eq!(rest.collect::<String>(), "bc");
    }

    #[test]
    fn values_left_in_ring_are_dropped() {
        let value = Arc::new(());
        let (mut producer, consumer) = ring(4);
        for _ in 0..3 {
            producer.put(Arc::clone(&value)).unwrap();
        }
        drop((producer, consumer));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn values_of_threads_keep_their_order() {
        let count = if cfg!(miri) { 50 } else { 100_000 };
        let (mut producer, mut consumer) = ring(7);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for mut value in 0..count {
                    while let Err(back) = producer.put(value) {
                        value = back;
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0;
            while next < count {
                match consumer.take() {
                    Some(value) => {
                        assert_eq!(value, next);
                        next += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use super::*;
    use crate::sync::{every_order, thread};

    /// A thread puts three values through a ring of `places` places, and this one takes them.
    fn passes(places: usize, put: Ordering, take: Ordering) {
        every_order(move || {
            let (mut producer, mut consumer) = ring(places);
            let other = thread::spawn(move || {
                let mut next = 0_usize;
                for _ in 0..4 {
                    next += usize::from(producer.put_as(Box::new(next), put).is_ok());
                }
                (producer, next)
            });
            let mut taken = Vec::new();
            for _ in 0..3 {
                taken.extend(consumer.take_as(take).map(|value| *value));
            }
            let (_producer, all) = other.join().unwrap();
            taken.extend(std::iter::from_fn(|| consumer.take()).map(|value| *value));
            assert_eq!(taken, (0..all).collect::<Vec<_>>(), "in order, none lost");
        });
    }

    #[test]
    fn values_pass_in_order() {
        for places in [1, 2] {
            passes(places, Ordering::Release, Ordering::Release);
        }
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Concurrent")]
    fn value_published_too_early_is_detected() {
        passes(2, Ordering::Relaxed, Ordering::Release);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Concurrent")]
    fn place_given_back_too_early_is_detected() {
        passes(1, Ordering::Release, Ordering::Relaxed);
    }
}
