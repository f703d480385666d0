//! Bitmaps of the vertices of one batch, with two levels of summary above the bits.

use std::ops::Range;
use std::sync::Mutex;

use graphmill_raw::prefetch;
use graphmill_storage::{Lease, MemoryBudget};

use crate::error::EngineError;

const WORD: usize = 64;
/// The active vertices of one batch, as batch-local numbers.
#[derive(Debug, Default)]
pub(crate) struct HierarchicalBitmap {
    pub(crate) span: usize,
    pub(crate) count: usize,
    /// Bit i of word w: vertex 64 w + i.
    pub(crate) words: Vec<u64>,
    /// Bit i of word w: word 64 w + i below is not zero.
    summary: Vec<u64>,
    /// The same once more.
    top: Vec<u64>,
    lease: Option<Lease>,
}

impl HierarchicalBitmap {
    /// Returns the words of each level for `span` vertices.
    fn words_of(span: usize) -> [usize; 3] {
        let words = span.div_ceil(WORD);
        let summary = words.div_ceil(WORD);
        [words, summary, summary.div_ceil(WORD)]
    }
    /// Returns the bytes of the budget for a set over `span` vertices.
    pub(crate) fn bytes(span: usize) -> u64 {
        8 * Self::words_of(span).iter().sum::<usize>() as u64
    }

    pub(crate) fn reserve(
        &mut self,
        span: usize,
        budget: &MemoryBudget,
    ) -> Result<(), EngineError> {
        if self.words.is_empty() && span > 0 {
            let [words, summary, top] = Self::words_of(span);
            self.lease = Some(budget.lease("the active set", Self::bytes(span))?);
            self.words = vec![0; words];
            self.summary = vec![0; summary];
            self.top = vec![0; top];
        }
        self.span = span;
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, i: usize) {
        let word = &mut self.words[i / WORD];
        let bit = 1 << (i % WORD);
        if *word & bit == 0 {
            if *word == 0 {
                self.summary[i / WORD / WORD] |= 1 << (i / WORD % WORD);
                self.top[i / WORD / WORD / WORD] |= 1 << (i / WORD / WORD % WORD);
            }
            *word |= bit;
            self.count += 1;
        }
    }

    /// Has the word of a member on its way into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, i: usize) {
        prefetch(&self.words, i / WORD);
    }

    pub(crate) fn remove(&mut self, i: usize) {
        let word = &mut self.words[i / WORD];
        if *word >> (i % WORD) & 1 == 0 {
            return;
        }
        *word &= !(1 << (i % WORD));
        self.count -= 1;
        if *word == 0 {
            let summary = &mut self.summary[i / WORD / WORD];
            *summary &= !(1 << (i / WORD % WORD));
            if *summary == 0 {
                self.top[i / WORD / WORD / WORD] &= !(1 << (i / WORD / WORD % WORD));
            }
        }
    }

    /// The 64 vertices of word `w`.
    #[inline(always)]
    pub(crate) fn word(&self, w: usize) -> u64 {
        self.words.get(w).copied().unwrap_or_default()
    }

    /// True if vertex `i` is in the set.
    pub(crate) fn contains(&self, i: usize) -> bool {
        let word = self.words.get(i / WORD);
        word.is_some_and(|word| word >> (i % WORD) & 1 == 1)
    }

    /// Removes the vertices for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        for w in 0..self.words.len() {
            for i in ones(self.words[w], w).filter(|i| !keep(*i)) {
                self.remove(i);
            }
        }
    }

    pub(crate) fn insert_all(&mut self) {
        fn fill(words: &mut [u64], bits: usize) {
            words.fill(!0);
            if let (Some(last), rest @ 1..) = (words.last_mut(), bits % WORD) {
                *last = (1 << rest) - 1;
            }
        }
        fill(&mut self.words, self.span);
        fill(&mut self.summary, self.words.len());
        fill(&mut self.top, self.summary.len());
        self.count = self.span;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count == self.span
    }

    /// The vertices in ascending order.
    #[inline(always)]
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize)) {
        if self.count == 0 {
            return;
        }
        bits(&self.top, 0, |s| {
            bits(&self.summary[s..=s], s * WORD, |w| {
                bits(&self.words[w..=w], w * WORD, &mut f);
            });
        });
    }

    /// The vertices of a part in ascending order.
    pub(crate) fn for_each_in(&self, part: Range<usize>, mut f: impl FnMut(usize)) {
        let of_words = part.start / WORD..part.end.div_ceil(WORD);
        let of_summary = of_words.start / WORD..of_words.end.div_ceil(WORD);
        for (t, mask) in parts(of_summary) {
            bits(&[self.top[t] & mask], t * WORD, |s| {
                bits(&[self.summary[s] & only(s, &of_words)], s * WORD, |w| {
                    bits(&[self.words[w] & only(w, &part)], w * WORD, &mut f);
                });
            });
        }
    }

    /// Walks and empties the set.
    #[inline(always)]
    pub(crate) fn drain(&mut self, mut f: impl FnMut(usize)) {
        if self.count == 0 {
            return;
        }
        self.drain_part(0..self.span, &mut f);
    }

    /// True if a part of the set holds anything.
    pub(crate) fn has_in(&self, part: Range<usize>) -> bool {
        let of_words = part.start / WORD..part.end.div_ceil(WORD);
        let of_summary = of_words.start / WORD..of_words.end.div_ceil(WORD);
        parts(of_summary).any(|(t, mask)| {
            ones(self.top[t] & mask, t).any(|s| {
                let summary = self.summary[s] & only(s, &of_words);
                ones(summary, s).any(|w| self.words[w] & only(w, &part) != 0)
            })
        })
    }

    /// Walks and empties a part of the set.
    #[inline(always)]
    pub(crate) fn drain_part(&mut self, part: Range<usize>, mut f: impl FnMut(usize)) {
        let (words, summary, top) = (&mut self.words, &mut self.summary, &mut self.top);
        // Each level is walked where the one above says; of its first and last word only bits of the part count.
        let of_words = part.start / WORD..part.end.div_ceil(WORD);
        let of_summary = of_words.start / WORD..of_words.end.div_ceil(WORD);
        for (t, mask) in parts(of_summary) {
            bits(&[top[t] & mask], t * WORD, |s| {
                bits(&[summary[s] & only(s, &of_words)], s * WORD, |w| {
                    let drained = words[w] & only(w, &part);
                    self.count -= drained.count_ones() as usize;
                    bits(&[drained], w * WORD, &mut f);
                    words[w] &= !drained;
                    if words[w] == 0 {
                        summary[s] &= !(1 << (w % WORD));
                    }
                });
                if summary[s] == 0 {
                    top[t] &= !(1 << (s % WORD));
                }
            });
        }
    }

    /// Empties the set; the bitmap of a large set is swept, that of a small one walked.
    pub(crate) fn clear(&mut self) {
        if self.count > self.words.len() / 8 {
            self.words.fill(0);
            self.summary.fill(0);
            self.top.fill(0);
            self.count = 0;
        } else {
            self.drain(|_| ());
        }
    }
}

/// The words that hold a part of a set, and which bits of each are of the part.
fn parts(part: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    (part.start / WORD..part.end.div_ceil(WORD)).map(move |w| (w, only(w, &part)))
}

/// The bits of word `w` that are of a part.
#[inline(always)]
fn only(w: usize, part: &Range<usize>) -> u64 {
    let base = w * WORD;
    let from = !0 << part.start.saturating_sub(base).min(WORD - 1);
    let beyond = (base + WORD).saturating_sub(part.end);
    if beyond >= WORD {
        0
    } else {
        from & !0 >> beyond
    }
}

/// The numbers of the bits of a word.
#[derive(Clone, Copy, Debug)]
pub struct Bits(pub u64);

impl Iterator for Bits {
    type Item = usize;
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros() as usize);
        self.0 &= self.0.wrapping_sub(1);
        bit
    }
}

/// The positions of the set bits of word number `w`.
fn ones(word: u64, w: usize) -> impl Iterator<Item = usize> {
    Bits(word).map(move |bit| w * WORD + bit)
}

/// The positions of the set bits, from `base`.
#[inline(always)]
pub(crate) fn bits(words: &[u64], base: usize, mut f: impl FnMut(usize)) {
    for (w, &word) in words.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            f(base + w * WORD + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// The sets of all batches.
pub(crate) type BatchBitmaps = Vec<Mutex<HierarchicalBitmap>>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn set(span: usize) -> HierarchicalBitmap {
        let mut set = HierarchicalBitmap::default();
        set.reserve(span, &MemoryBudget::new(1 << 30)).unwrap();
        set
    }

    #[test]
    fn bitmap_walks_in_order_and_empties() {
        for span in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let mut mine = set(span);
            let mut theirs = BTreeSet::new();
            let mut x = 12345usize;
            for _ in 0..200 {
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                mine.insert((x >> 20) % span);
                theirs.insert((x >> 20) % span);
                mine.remove((x >> 30) % span);
                theirs.remove(&((x >> 30) % span));
            }
            assert_eq!(mine.count, theirs.len());
            let mut seen = Vec::new();
            mine.for_each(|i| seen.push(i));
            assert_eq!(seen, theirs.iter().copied().collect::<Vec<_>>());
            let mut drained = Vec::new();
            mine.drain(|i| drained.push(i));
            assert_eq!(drained, seen);
            assert!(
                mine.words
                    .iter()
                    .chain(&mine.summary)
                    .chain(&mine.top)
                    .all(|w| *w == 0)
            );
        }
    }

    #[test]
    fn bitmap_ranges_are_drained_and_read_alone() {
        for span in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let all: Vec<usize> = (0..span).step_by(1 + span / 97).collect();
            for cut in [0, 1, 63, 64, 65, 4095, 4096, 200_001, span - 1, span] {
                let cut = cut.min(span);
                let mut mine = set(span);
                all.iter().for_each(|i| mine.insert(*i));
                let (below, above): (Vec<_>, Vec<_>) = all.iter().copied().partition(|i| *i < cut);
                assert_eq!(mine.has_in(0..cut), !below.is_empty());
                assert_eq!(mine.has_in(cut..span), !above.is_empty());
                let mut walked = Vec::new();
                mine.for_each_in(cut..span, |i| walked.push(i));
                assert_eq!(walked, above, "{cut} of {span}");
                let mut drained = Vec::new();
                mine.drain_part(cut..span, |i| drained.push(i));
                assert_eq!(drained, above, "{cut} of {span}");
                assert!(!mine.has_in(cut..span));
                let mut left = Vec::new();
                mine.drain(|i| left.push(i));
                assert_eq!(left, below, "{cut} of {span}");
                let levels = [&mine.words, &mine.summary, &mine.top];
                assert!(levels.into_iter().flatten().all(|word| *word == 0) && mine.count == 0);
            }
        }
    }

    #[test]
    fn bitmap_full_has_every_vertex() {
        for span in [1, 64, 65, 5000] {
            let mut mine = set(span);
            mine.insert_all();
            assert!(mine.is_full());
            let mut seen = 0;
            mine.for_each(|i| {
                assert_eq!(i, seen);
                seen += 1;
            });
            assert_eq!(seen, span);
            mine.clear();
            mine.for_each(|_| panic!("empty"));
        }
    }
}
