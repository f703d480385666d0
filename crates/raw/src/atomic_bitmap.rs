//! Marks that several threads make at once, each a bit, and that are taken out a word of bits at a time.
//!
//! Marks of one word never get into each other's way: each is added by a single operation. All accesses are relaxed: who reads them
//! comes after those who made them (a [`crate::ForkJoinPool`] that returned).

use crate::sync::{AtomicU64, Ordering};

/// A mark or none for each of some places.
#[derive(Debug)]
pub struct AtomicBitmap {
    words: Vec<AtomicU64>,
}

impl AtomicBitmap {
    /// Places whose marks are in one word.
    pub const WORD: usize = u64::BITS as usize;

    /// Bytes of memory for so many places.
    pub fn bytes(places: u64) -> u64 {
        places.div_ceil(Self::WORD as u64) * size_of::<u64>() as u64
    }

    /// So many places without a mark.
    pub fn new(places: u64) -> Self {
        let words = places.div_ceil(Self::WORD as u64);
        AtomicBitmap {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Number of words.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Marks a place. Nothing happens where there is no such place.
    #[inline(always)]
    pub fn set(&self, place: usize) {
        if let Some(word) = self.words.get(place / Self::WORD) {
            word.fetch_or(1 << (place % Self::WORD), Ordering::Relaxed);
        }
    }

    /// Whether a place is marked.
    #[inline(always)]
    pub fn is_marked(&self, place: usize) -> bool {
        self.snapshot()(place)
    }

    /// Says of places whether they are marked: for many looks, where to look is at hand in registers.
    #[inline(always)]
    pub fn snapshot(&self) -> impl Fn(usize) -> bool {
        let words = self.words.as_slice();
        move |place| {
            let word = words.get(place / Self::WORD);
            word.is_some_and(|word| word.load(Ordering::Relaxed) >> (place % Self::WORD) & 1 != 0)
        }
    }

    /// Takes the marks of a word out: one bit a place, the first is the lowest.
    #[inline(always)]
    pub fn take_word(&self, word: usize) -> u64 {
        let Some(word) = self.words.get(word) else {
            return 0;
        };
        // Most words are empty, and only to look at one leaves it with the others who do.
        match word.load(Ordering::Relaxed) {
            0 => 0,
            _ => word.swap(0, Ordering::Relaxed),
        }
    }

    /// Gives a word these marks and no others, where no other thread marks places of it.
    #[inline(always)]
    pub fn set_word(&self, word: usize, marks: u64) {
        if let Some(word) = self.words.get(word) {
            word.store(marks, Ordering::Relaxed);
        }
    }

    /// All words as they are.
    pub fn to_words(&self) -> impl Iterator<Item = u64> {
        self.words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// All words, once nobody marks any more.
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

    /// Two threads mark places of one word while a third takes marks out: each mark comes out once, then or later.
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

    #[test]
    #[should_panic(expected = "no mark is lost")]
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
