//! A bitmap whose bits several threads set concurrently, and take word by word.
//!
//! A single atomic operation sets a bit, so no thread overwrites another bit of the word. All accesses are relaxed: a
//! [`crate::ForkJoinPool`] that returns orders the threads that set bits before the thread that reads them.

use crate::sync::{AtomicU64, Ordering};

/// A bit for each of a number of places.
#[derive(Debug)]
pub struct AtomicBitmap {
    words: Vec<AtomicU64>,
}

impl AtomicBitmap {
    /// Bits of a word.
    pub const WORD: usize = u64::BITS as usize;

    /// Returns the bytes of memory of `places` bits.
    pub fn bytes(places: u64) -> u64 {
        places.div_ceil(Self::WORD as u64) * size_of::<u64>() as u64
    }

    /// Returns a bitmap of `places` clear bits.
    pub fn new(places: u64) -> Self {
        let words = places.div_ceil(Self::WORD as u64);
        AtomicBitmap {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Returns the number of words.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Sets the bit of a place. Does nothing if there is no such place.
    #[inline(always)]
    pub fn set(&self, place: usize) {
        if let Some(word) = self.words.get(place / Self::WORD) {
            word.fetch_or(1 << (place % Self::WORD), Ordering::Relaxed);
        }
    }

    /// Returns true if the bit of a place is set.
    #[inline(always)]
    pub fn is_marked(&self, place: usize) -> bool {
        self.snapshot()(place)
    }

    /// Returns a test of single bits, which keeps the address in registers for many tests.
    #[inline(always)]
    pub fn snapshot(&self) -> impl Fn(usize) -> bool {
        let words = self.words.as_slice();
        move |place| {
            let word = words.get(place / Self::WORD);
            word.is_some_and(|word| word.load(Ordering::Relaxed) >> (place % Self::WORD) & 1 != 0)
        }
    }

    /// Returns the bits of a word; the lowest is the first place.
    #[inline(always)]
    pub fn word(&self, word: usize) -> u64 {
        let word = self.words.get(word);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Clears a word and returns the bits it had; the lowest is the first place.
    #[inline(always)]
    pub fn take_word(&self, word: usize) -> u64 {
        let Some(word) = self.words.get(word) else {
            return 0;
        };
        // Most words are 0, and a load leaves the cache line shared with the other threads.
        match word.load(Ordering::Relaxed) {
            0 => 0,
            _ => word.swap(0, Ordering::Relaxed),
        }
    }

    /// Stores the bits of a word, while no other thread sets bits of it.
    #[inline(always)]
    pub fn set_word(&self, word: usize, marks: u64) {
        if let Some(word) = self.words.get(word) {
            word.store(marks, Ordering::Relaxed);
        }
    }

    /// Returns the words as they are now.
    pub fn to_words(&self) -> impl Iterator<Item = u64> {
        self.words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Returns the words, after the last thread has set its bits.
    #[cfg(not(any(loom, shuttle)))]
    pub fn into_words(self) -> impl Iterator<Item = u64> {
        self.words.into_iter().map(AtomicU64::into_inner)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bits_are_taken_word_by_word() {
        let marks = AtomicBitmap::new(130);
        assert_eq!((marks.words(), AtomicBitmap::bytes(130)), (3, 24));
        [0, 63, 64, 129, 1000]
            .into_iter()
            .for_each(|place| marks.set(place));
        assert!(marks.is_marked(129) && !marks.is_marked(128) && !marks.is_marked(1000));
        let all = [0, 1, 2, 3].map(|word| marks.take_word(word));
        assert_eq!(all, [1 | 1 << 63, 1, 2, 0]);
        assert_eq!(marks.take_word(0), 0, "they were taken");
        marks.set_word(2, 3);
        assert_eq!((marks.word(2), marks.word(3)), (3, 0));
        assert_eq!(marks.take_word(2), 3);
        marks.set_word(1, 5);
        assert!(marks.into_words().eq([0, 5, 0]));
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{every_order, thread};

    /// Two threads set bits of one word while a third takes bits: each bit is taken once.
    fn marked_and_taken(mark: fn(&AtomicBitmap, usize), take: fn(&AtomicBitmap, usize) -> u64) {
        every_order(move || {
            let marks = Arc::new(AtomicBitmap::new(64));
            let threads = [1, 63].map(|place| {
                let marks = Arc::clone(&marks);
                thread::spawn(move || mark(&marks, place))
            });
            let before = take(&marks, 0);
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            let after = take(&marks, 0);
            assert_eq!(before & after, 0, "no mark comes out twice");
            assert_eq!(before | after, 2 | 1 << 63, "no mark is lost");
        });
    }

    #[test]
    fn bit_is_taken_once() {
        marked_and_taken(AtomicBitmap::set, AtomicBitmap::take_word);
    }

    // Depending on the order, the mark is lost or comes out twice.
    #[test]
    #[should_panic(expected = "no mark")]
    fn bit_stored_over_another_is_detected() {
        let store = |marks: &AtomicBitmap, place: usize| {
            let before = marks.words[0].load(Ordering::Relaxed);
            marks.set_word(0, before | 1 << place);
        };
        marked_and_taken(store, AtomicBitmap::take_word);
    }

    #[test]
    #[should_panic(expected = "no mark is lost")]
    fn word_cleared_after_a_load_is_detected() {
        let empty = |marks: &AtomicBitmap, word: usize| {
            let found = marks.words[word].load(Ordering::Relaxed);
            marks.set_word(word, 0);
            found
        };
        marked_and_taken(AtomicBitmap::set, empty);
    }
}
