//! Mailboxes that several threads put messages into concurrently: the hybrid combiner.
//!
//! A thread puts the first message into an empty mailbox under the mailbox's lock. From then on the mailbox is full. Threads combine later
//! messages with its message by compare-and-exchange, without the lock. So no message waits for another, even if many have the same
//! destination (Capelli et al., iPregel). A message wider than a machine word is always combined under the lock.
//!
//! Invariants:
//!
//! - The thread that changes `states[i]` to [`LOCKED`] has message `i` to itself until it changes the state back.
//! - No thread locks a narrow mailbox that is [`FULL`], except to take its message.

#![expect(unsafe_code, reason = "a lock of one byte guards each message")]

use crate::aligned_buffer::{AlignedBuffer, Element};
use crate::sync::{AtomicU8, AtomicU64, Cells, Ordering, UnsafeCell, spin};

const EMPTY: u8 = 0;
const LOCKED: u8 = 1;
const FULL: u8 = 2;

/// A mailbox for each of a number of places, each with one message or none.
pub struct Mailboxes<M> {
    states: Cells<AtomicU8>,
    kept: Kept<M>,
}

enum Kept<M> {
    /// Messages of 8 bytes or less, as the low bytes of words.
    Narrow(Cells<AtomicU64>),
    Wide(Cells<UnsafeCell<M>>),
}

// SAFETY: only the thread that locked a mailbox accesses its wide message, and locking and unlocking order these accesses;
// everything else is atomic.
unsafe impl<M: Send> Sync for Mailboxes<M> {}

impl<M> std::fmt::Debug for Mailboxes<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailboxes")
            .field("places", &self.states.len())
            .finish_non_exhaustive()
    }
}

impl<M: Element> Mailboxes<M> {
    const NARROW: bool = size_of::<M>() <= size_of::<u64>();

    /// Returns the bytes of the two buffers of `places` mailboxes: of states and of messages.
    pub fn bytes(places: usize) -> [usize; 2] {
        let message = size_of::<M>().max(size_of::<u64>());
        [places, places.saturating_mul(message)]
    }

    /// Returns `places` empty mailboxes in zeroed buffers with the bytes that [`Mailboxes::bytes`] returns.
    ///
    /// Shorter buffers hold fewer mailboxes.
    pub fn new(places: usize, [states, messages]: [AlignedBuffer; 2]) -> Self {
        let kept = match Self::NARROW {
            true => Kept::Narrow(Cells::new(messages, places, || AtomicU64::new(0))),
            false => Kept::Wide(Cells::new(messages, places, || {
                UnsafeCell::new(M::new_zeroed())
            })),
        };
        let places = match &kept {
            Kept::Narrow(words) => words.len(),
            Kept::Wide(slots) => slots.len(),
        };
        let states = Cells::new(states, places, || AtomicU8::new(EMPTY));
        Mailboxes { states, kept }
    }

    /// Puts a message into mailbox `i`, or combines it with the one there; true if it was the first.
    ///
    /// Does nothing if there is no such mailbox.
    #[inline]
    pub fn put(&self, i: usize, message: M, combine: impl Fn(&mut M, M)) -> bool {
        self.put_and_say(i, message, combine, Ordering::Release)
    }

    /// Does [`Mailboxes::put`]; `say` is the memory order of the store that marks the mailbox full.
    #[inline(always)]
    fn put_and_say(
        &self,
        i: usize,
        message: M,
        combine: impl Fn(&mut M, M),
        say: Ordering,
    ) -> bool {
        let Some(state) = self.states.get(i) else {
            return false;
        };
        match &self.kept {
            Kept::Narrow(words) => {
                if state.load(Ordering::Acquire) == FULL || !lock(state, EMPTY) {
                    exchange(&words[i], message, combine);
                    return false;
                }
                words[i].store(to_word(message), Ordering::Relaxed);
                state.store(FULL, say);
                true
            }
            Kept::Wide(slots) => {
                let is_first = lock_any(state);
                slots[i].with_mut(|slot| {
                    // SAFETY: the mailbox is locked, by this thread.
                    let slot = unsafe { &mut *slot };
                    match is_first {
                        true => *slot = message,
                        false => combine(slot, message),
                    }
                });
                state.store(FULL, say);
                is_first
            }
        }
    }

    /// Does [`Mailboxes::put`] without lock or exchange, while no other thread uses the mailboxes.
    #[inline]
    pub fn put_alone(&self, i: usize, message: M, combine: impl Fn(&mut M, M)) -> bool {
        let Kept::Narrow(words) = &self.kept else {
            return self.put(i, message, combine);
        };
        let (Some(state), Some(word)) = (self.states.get(i), words.get(i)) else {
            return false;
        };
        let is_first = state.load(Ordering::Relaxed) != FULL;
        if is_first {
            word.store(to_word(message), Ordering::Relaxed);
            state.store(FULL, Ordering::Relaxed);
        } else {
            let mut combined = of_word(word.load(Ordering::Relaxed));
            combine(&mut combined, message);
            word.store(to_word(combined), Ordering::Relaxed);
        }
        is_first
    }

    /// Takes the message out of mailbox `i`, if there is one, while no thread puts any in.
    #[inline]
    pub fn take(&self, i: usize) -> Option<M> {
        let state = self.states.get(i)?;
        if state.load(Ordering::Acquire) != FULL || !lock(state, FULL) {
            return None;
        }
        let message = match &self.kept {
            Kept::Narrow(words) => of_word(words[i].load(Ordering::Relaxed)),
            Kept::Wide(slots) => slots[i].with_mut(|slot| {
                // SAFETY: the mailbox is locked, by this thread.
                unsafe { *slot }
            }),
        };
        state.store(EMPTY, Ordering::Release);
        Some(message)
    }

    /// Returns the message in mailbox `i`, which stays there.
    #[inline]
    pub fn peek(&self, i: usize) -> Option<M> {
        let state = self.states.get(i)?;
        match &self.kept {
            Kept::Narrow(words) => {
                let is_full = state.load(Ordering::Acquire) == FULL;
                is_full.then(|| of_word(words[i].load(Ordering::Relaxed)))
            }
            Kept::Wide(slots) => {
                let is_empty = lock_any(state);
                let message = slots[i].with_mut(|slot| {
                    // SAFETY: the mailbox is locked, by this thread.
                    unsafe { *slot }
                });
                state.store(if is_empty { EMPTY } else { FULL }, Ordering::Release);
                (!is_empty).then_some(message)
            }
        }
    }

    /// Starts to load mailbox `i` into the cache.
    #[cfg(not(any(loom, shuttle)))]
    #[inline(always)]
    pub fn prefetch(&self, i: usize) {
        crate::prefetch(&self.states, i);
        match &self.kept {
            Kept::Narrow(words) => crate::prefetch(words, i),
            Kept::Wide(slots) => crate::prefetch(slots, i),
        }
    }
}

/// Locks a mailbox that is in state `from`; returns false if another thread filled or emptied it.
#[inline]
fn lock(state: &AtomicU8, from: u8) -> bool {
    loop {
        match state.compare_exchange(from, LOCKED, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => return true,
            Err(FULL) => return false,
            Err(EMPTY) if from == FULL => return false,
            Err(_) => spin(),
        }
    }
}

/// Locks a mailbox in any state; returns true if it is empty.
#[inline]
fn lock_any(state: &AtomicU8) -> bool {
    loop {
        let found = state.load(Ordering::Relaxed);
        if found == LOCKED {
            spin();
        } else if state
            .compare_exchange(found, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return found == EMPTY;
        }
    }
}

/// Combines a message with the one of a full narrow mailbox.
#[inline]
fn exchange<M: Element>(word: &AtomicU64, message: M, combine: impl Fn(&mut M, M)) {
    let mut old = word.load(Ordering::Relaxed);
    loop {
        let mut combined = of_word(old);
        combine(&mut combined, message);
        let new = to_word(combined);
        if new == old {
            return;
        }
        match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(found) => old = found,
        }
    }
}

#[inline(always)]
fn to_word<M: Element>(message: M) -> u64 {
    let mut bytes = [0; 8];
    if let Some(into) = bytes.get_mut(..size_of::<M>()) {
        into.copy_from_slice(message.as_bytes());
    }
    u64::from_le_bytes(bytes)
}

#[inline(always)]
fn of_word<M: Element>(word: u64) -> M {
    let bytes = word.to_le_bytes();
    let bytes = bytes.get(..size_of::<M>());
    bytes
        .and_then(|bytes| M::read_from_bytes(bytes).ok())
        .unwrap_or_else(M::new_zeroed)
}

#[cfg(test)]
fn boxes<M: Element>(places: usize) -> Mailboxes<M> {
    let buffers = Mailboxes::<M>::bytes(places).map(|bytes| AlignedBuffer::zeroed(bytes).unwrap());
    Mailboxes::new(places, buffers)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn first_message_is_reported_and_others_combined() {
        let boxes = boxes::<f32>(3);
        let add = |sum: &mut f32, one: f32| *sum += one;
        assert!(boxes.put(1, 2.0, add) && !boxes.put(1, 0.5, add));
        assert_eq!(
            [boxes.peek(0), boxes.peek(1), boxes.peek(9)],
            [None, Some(2.5), None]
        );
        assert!(!boxes.put(3, 1.0, add), "there is no fourth");
        assert_eq!(
            [boxes.take(0), boxes.take(1), boxes.take(1), boxes.take(3)],
            [None, Some(2.5), None, None]
        );
        assert!(boxes.put(1, 7.0, add), "it was emptied");
        assert!(boxes.put_alone(2, 1.0, add) && !boxes.put_alone(2, 2.0, add));
        assert!(!boxes.put(2, 4.0, add) && !boxes.put_alone(3, 1.0, add));
        assert_eq!(boxes.take(2), Some(7.0));
    }

    fn threads_lose_nothing<M: Element + PartialEq + std::fmt::Debug>(
        one: M,
        add: fn(&mut M, M),
        all: M,
    ) {
        let boxes = boxes::<M>(2);
        let rounds = if cfg!(miri) { 20 } else { 10_000 };
        let firsts = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let first = boxes.put(1, one, add);
                        firsts.fetch_add(usize::from(first), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(firsts.into_inner(), 1);
        if !cfg!(miri) {
            assert_eq!(boxes.take(1), Some(all));
        }
    }

    #[test]
    fn narrow_messages_of_threads_sum_up() {
        threads_lose_nothing(1_u16, |sum, one| *sum += one, 30_000);
        threads_lose_nothing(1_u64, |sum, one| *sum += one, 30_000);
    }

    #[test]
    fn wide_messages_of_threads_sum_up() {
        let add = |sum: &mut [u64; 3], one: [u64; 3]| {
            sum.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
        };
        threads_lose_nothing([1, 2, 3], add, [30_000, 60_000, 90_000]);
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{every_order, thread};

    /// Threads put messages into a mailbox that has the messages of `before`, in every order.
    ///
    /// No message is lost, and exactly one was the first. No more than two threads put into an empty mailbox: if two threads wait for the
    /// one with the lock, the checker never ends.
    fn puts<M: Element + PartialEq + std::fmt::Debug>(
        before: &'static [M],
        by_thread: &'static [&'static [M]],
        put: fn(&Mailboxes<M>, M) -> bool,
        all: M,
    ) {
        every_order(move || {
            let boxes = Arc::new(boxes::<M>(1));
            let firsts_of = move |boxes: &Mailboxes<M>, messages: &[M]| {
                messages.iter().filter(|one| put(boxes, **one)).count()
            };
            let mut firsts = firsts_of(&boxes, before);
            let threads: Vec<_> = by_thread[1..]
                .iter()
                .map(|messages| {
                    let boxes = Arc::clone(&boxes);
                    thread::spawn(move || firsts_of(&boxes, messages))
                })
                .collect();
            firsts += firsts_of(&boxes, by_thread[0]);
            for thread in threads {
                firsts += thread.join().unwrap();
            }
            assert_eq!(firsts, 1, "one was the first");
            assert_eq!(boxes.take(0), Some(all), "nothing is lost");
            assert_eq!(boxes.take(0), None);
        });
    }

    fn sum(boxes: &Mailboxes<u32>, one: u32) -> bool {
        boxes.put(0, one, |sum, one| *sum += one)
    }
    /// Keeps the least message. It does not store an equal word, so no later store hides an early read.
    fn least(boxes: &Mailboxes<u32>, one: u32) -> bool {
        boxes.put(0, one, |least, one| *least = one.min(*least))
    }
    fn wide(sum: &mut [u64; 2], one: [u64; 2]) {
        sum.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
    }

    #[test]
    fn narrow_messages_sum_up() {
        puts(&[], &[&[1], &[2]], sum, 3);
        puts(&[], &[&[5], &[3]], least, 3);
        puts(&[], &[&[1, 2], &[4, 8]], sum, 15);
    }

    #[test]
    fn narrow_messages_by_exchange_sum_up() {
        puts(&[4], &[&[1], &[2]], sum, 7);
        puts(&[7], &[&[5], &[3]], least, 3);
        puts(&[8], &[&[1], &[2], &[4]], sum, 15);
    }

    #[test]
    fn wide_messages_sum_up() {
        let put = |boxes: &Mailboxes<_>, one| boxes.put(0, one, wide);
        puts(&[], &[&[[1, 10]], &[[2, 20]]], put, [3, 30]);
        puts(&[[4, 40]], &[&[[1, 10]], &[[2, 20]]], put, [7, 70]);
    }

    #[test]
    #[cfg(shuttle)]
    fn messages_of_many_threads_sum_up() {
        puts(&[], &[&[1, 2], &[4, 8], &[16, 32], &[64]], sum, 127);
        puts(&[9], &[&[8, 7], &[6, 3], &[4, 5]], least, 3);
        let put = |boxes: &Mailboxes<_>, one| boxes.put(0, one, wide);
        puts(
            &[],
            &[&[[1, 10]], &[[2, 20]], &[[4, 40], [8, 80]]],
            put,
            [15, 150],
        );
    }

    #[test]
    #[should_panic(expected = "nothing is lost")]
    fn store_instead_of_exchange_is_detected() {
        let alone = |boxes: &Mailboxes<u32>, one| boxes.put_alone(0, one, |sum, one| *sum += one);
        puts(&[4], &[&[1], &[2]], alone, 7);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "nothing is lost")]
    fn narrow_mailbox_full_too_early_is_detected() {
        let put = |boxes: &Mailboxes<u32>, one| {
            let least = |least: &mut u32, one: u32| *least = one.min(*least);
            boxes.put_and_say(0, one, least, Ordering::Relaxed)
        };
        puts(&[], &[&[5], &[3]], put, 3);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Causality violation")]
    fn wide_mailbox_unlocked_too_early_is_detected() {
        let put = |boxes: &Mailboxes<_>, one| boxes.put_and_say(0, one, wide, Ordering::Relaxed);
        puts(&[], &[&[[1, 10]], &[[2, 20]]], put, [3, 30]);
    }
}
