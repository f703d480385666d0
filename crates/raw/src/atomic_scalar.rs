//! Plain numbers in memory that several threads read and change concurrently, as atomics.
//!
//! All accesses are relaxed: no number publishes other memory. The end of the threads' work, a [`crate::ForkJoinPool`] that returns, makes
//! all numbers visible.

#![cfg_attr(
    not(any(loom, shuttle)),
    expect(unsafe_code, reason = "looks at plain numbers as atomic ones")
)]

use crate::aligned_buffer::Element;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A number that an atomic can hold.
pub trait AtomicScalar: Element + Ord + std::fmt::Debug {
    /// The atomic type of the number.
    type Atomic: AtomicCell<Self> + Default;
    /// The least number: 0.
    const LEAST: Self;
    /// Returns an index as a number; the index must fit.
    fn of_index(index: u64) -> Self;
    /// Returns the number as an index.
    fn index(self) -> usize;
    /// Returns the numbers as atomics for as long as they are borrowed.
    #[cfg(not(any(loom, shuttle)))]
    fn shared(words: &mut [Self]) -> &[Self::Atomic];
}

/// An atomic number, with the operations that the lock-free structures use.
pub trait AtomicCell<T>: Sync {
    /// Returns the value.
    fn load(&self) -> T;
    /// Stores a value.
    fn store(&self, value: T);
    /// Changes the value from `old` to `new`. It may also fail if the value is `old`.
    ///
    /// # Errors
    /// The value that was found.
    fn exchange(&self, old: T, new: T) -> Result<(), T>;

    /// Lowers the value to `new`; returns true if it was greater.
    ///
    /// `alone` is true if no other thread changes the value meanwhile.
    #[inline(always)]
    fn lower(&self, new: T, alone: bool) -> bool
    where
        T: Copy + Ord,
    {
        let mut old = self.load();
        if alone {
            // Has no branch that could be mispredicted: it is unpredictable which label is lowered.
            self.store(old.min(new));
            return new < old;
        }
        while new < old {
            match self.exchange(old, new) {
                Ok(()) => return true,
                Err(found) => old = found,
            }
        }
        false
    }
}

macro_rules! words {
    ($($word:ty: $atomic:ty;)*) => {$(
        impl AtomicScalar for $word {
            const LEAST: Self = 0;
            type Atomic = $atomic;
            #[inline(always)]
            fn of_index(index: u64) -> $word {
                index as $word
            }
            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
            #[cfg(not(any(loom, shuttle)))]
            #[inline]
            fn shared(words: &mut [$word]) -> &[$atomic] {
                const {
                    assert!(
                        size_of::<$word>() == size_of::<$atomic>()
                            && align_of::<$word>() == align_of::<$atomic>()
                    )
                }
                // SAFETY: both types have the same size, alignment and bytes. The exclusive borrow lasts as long as the
                // returned shared one, so meanwhile the memory is accessed only through atomics.
                unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast(), words.len()) }
            }
        }
        impl AtomicCell<$word> for $atomic {
            #[inline(always)]
            fn load(&self) -> $word {
                self.load(Ordering::Relaxed)
            }
            #[inline(always)]
            fn store(&self, value: $word) {
                self.store(value, Ordering::Relaxed);
            }
            #[inline(always)]
            fn exchange(&self, old: $word, new: $word) -> Result<(), $word> {
                self.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).map(drop)
            }
        }
    )*};
}
words! {
    u32: AtomicU32;
    u64: AtomicU64;
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn scalar_exchange_of_threads_sums_up() {
        let mut words = [0_u64, 7];
        let shared = u64::shared(&mut words);
        let rounds = if cfg!(miri) { 50 } else { 10_000 };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let mut old = AtomicCell::load(&shared[0]);
                        while let Err(found) = shared[0].exchange(old, old + 1) {
                            old = found;
                        }
                    }
                });
            }
        });
        AtomicCell::store(&shared[1], 8);
        assert_eq!(words, [3 * rounds, 8]);
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{every_order, thread};

    /// Two threads lower a number, each to its own: the lesser stays, and its thread gets true.
    fn lowered(to: [u32; 2], alone: bool) {
        every_order(move || {
            let number = Arc::new(AtomicU32::new(9));
            let theirs = {
                let number = Arc::clone(&number);
                thread::spawn(move || number.lower(to[0], alone))
            };
            let mine = number.lower(to[1], alone);
            let theirs = theirs.join().unwrap();
            assert_eq!(AtomicCell::load(&*number), to[0].min(to[1]), "the lesser");
            assert!(if to[0] < to[1] { theirs } else { mine });
        });
    }

    #[test]
    fn scalar_min_keeps_the_least() {
        lowered([3, 5], false);
        lowered([5, 3], false);
    }

    #[test]
    #[should_panic(expected = "the lesser")]
    fn scalar_min_without_exchange_is_detected() {
        lowered([3, 5], true);
    }
}
