//! Active sets: which vertices signal in the next pass, at a cost in proportion to how many they are.
//!
//! A set is one bitmap a batch with two levels of summary above it (a bit for each non-empty word below), so that
//! inserting costs three words, and walking or clearing a set of k vertices costs O(k), not O(|V|). The bitmap of a
//! batch exists once a vertex of the batch was inserted; sets that are dropped are cleared and kept for reuse, so
//! that a graph of large diameter does not pay for a new bitmap each superstep.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use graphmill_graph::Batches;
use graphmill_raw::{Mistake, lock, prefetch};
use graphmill_storage::{Budget, Lease};

use crate::error::EngineError;
use crate::program::Sum;
use crate::ranks::{Ranks, mismatch};
use crate::recovery::History;
use crate::recovery::members;

const WORD: usize = 64;
/// The active vertices of one batch, as batch-local numbers.
#[derive(Debug, Default)]
pub(crate) struct BatchSet {
    span: usize,
    count: usize,
    /// Bit i of word w: vertex 64 w + i.
    words: Vec<u64>,
    /// Bit i of word w: word 64 w + i below is not zero.
    summary: Vec<u64>,
    /// The same once more.
    top: Vec<u64>,
    lease: Option<Lease>,
}

impl BatchSet {
    /// Words of each level for so many vertices.
    fn words_of(span: usize) -> [usize; 3] {
        let words = span.div_ceil(WORD);
        let summary = words.div_ceil(WORD);
        [words, summary, summary.div_ceil(WORD)]
    }
    /// Bytes of the budget that a set over so many vertices takes.
    pub(crate) fn bytes(span: usize) -> u64 {
        8 * Self::words_of(span).iter().sum::<usize>() as u64
    }

    pub(crate) fn reserve(&mut self, span: usize, budget: &Budget) -> Result<(), EngineError> {
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
    pub(crate) fn count(&self) -> usize {
        self.count
    }
    /// Bit i of word w: vertex 64 w + i.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
    pub(crate) fn span(&self) -> usize {
        self.span
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

    /// Walks and empties the set.
    #[inline(always)]
    pub(crate) fn drain(&mut self, mut f: impl FnMut(usize)) {
        if self.count == 0 {
            return;
        }
        self.drain_part(0..self.span, &mut f);
    }

    /// Whether a part of the set holds anything.
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

/// The positions of the set bits of word number `w`.
fn ones(mut word: u64, w: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            w * WORD + bit
        })
    })
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

/// What the sets of one engine share.
#[derive(Debug)]
pub(crate) struct ActivePool {
    pub(crate) batches: Arc<Batches>,
    ranks: Arc<Ranks>,
    budget: Budget,
    free: Mutex<Vec<Sets>>,
    /// What the driver was told.
    history: Mutex<History>,
    /// The sets that it has, by number, where versions are published.
    held: Mutex<BTreeMap<u64, Weak<Sets>>>,
}

/// The sets of all batches.
pub(crate) type Sets = Vec<Mutex<BatchSet>>;

impl ActivePool {
    pub(crate) fn new(batches: Arc<Batches>, ranks: Arc<Ranks>, budget: Budget) -> Arc<Self> {
        Arc::new(ActivePool {
            batches,
            ranks,
            budget,
            free: Mutex::new(Vec::new()),
            history: Mutex::default(),
            held: Mutex::default(),
        })
    }

    /// What the driver was told.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// The sets that the driver has, by number.
    pub(crate) fn of_driver(&self) -> Vec<(u64, Arc<Sets>)> {
        let held = lock(&self.held);
        let sets = held
            .iter()
            .filter_map(|(number, sets)| Some((*number, sets.upgrade()?)));
        sets.collect()
    }

    /// Gives the memory of sets that nobody uses back to the budget.
    pub(crate) fn trim(&self) {
        lock(&self.free).clear();
    }

    pub(crate) fn empty(self: &Arc<Self>) -> ActiveSet {
        let reused = lock(&self.free).pop();
        let sets = reused.unwrap_or_else(|| {
            (0..self.batches.len())
                .map(|_| Mutex::new(BatchSet::default()))
                .collect()
        });
        ActiveSet {
            counts: vec![0; self.batches.len()],
            own: 0,
            total: 0,
            sets: Arc::new(sets),
            number: None,
            pool: Arc::clone(self),
        }
    }
}

/// A set of vertices. Of several ranks each holds those of its own batches; how many there are all of them know, so whatever changes a
/// set is called by all.
#[derive(Debug)]
pub struct ActiveSet {
    /// Vertices in the set, by batch of this rank: what a pass looks at first.
    counts: Vec<u64>,
    /// Their sum.
    own: u64,
    /// The sum over all ranks, as of when they last agreed on it, or as the driver was told.
    total: u64,
    sets: Arc<Sets>,
    /// By which versions know it, once the driver has it.
    number: Option<u64>,
    pool: Arc<ActivePool>,
}

impl ActiveSet {
    /// Whether it was made by that pool.
    pub(crate) fn is_of(&self, pool: &Arc<ActivePool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }
    /// Number of vertices in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.total
    }
    /// Number of those that this rank holds.
    pub(crate) fn own_len(&self) -> u64 {
        self.own
    }
    /// Takes over what all ranks hold together.
    pub(crate) fn take_total(&mut self, total: u64) {
        self.total = total;
    }
    /// Has the driver have it, with as many vertices as it is told: what is in it then comes from the version that is gone on with.
    pub(crate) fn hand_out(&mut self, total: u64) -> Result<(), EngineError> {
        let pool = Arc::clone(&self.pool);
        let (number, saved) = pool.history().adopt();
        if let Some(saved) = saved.filter(|_| !Mistake::SetsForgotten.is_planted()) {
            let mut from = saved.members();
            for _ in 0..saved.read(from.number())? {
                let batch = saved.read(from.number())? as usize;
                let is_own = pool.ranks.own().contains(&batch);
                if !is_own || !saved.read(members::take(&mut from, &mut *self.batch(batch)?))? {
                    return Err(EngineError::OtherRun {
                        what: "its sets of vertices are of another graph",
                    });
                }
                self.recount(batch);
            }
        }
        self.total = total;
        self.number = Some(number);
        if pool.history().is_kept() {
            lock(&pool.held).insert(number, Arc::downgrade(&self.sets));
        }
        Ok(())
    }

    /// A change that the driver makes, and all ranks with it.
    fn change(
        &mut self,
        what: &str,
        work: impl FnOnce(&mut Self) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let pool = Arc::clone(&self.pool);
        if let Some(said) = pool.history().answer(what)? {
            self.total = <u64 as Sum>::take(&mut &said[..]).ok_or_else(mismatch)?;
            return Ok(());
        }
        work(self)?;
        [self.total] = pool.ranks.total([self.own])?;
        pool.history().note(what, &self.total.to_le_bytes());
        Ok(())
    }
    /// Whether no vertex is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Adds the vertex with index `v`.
    ///
    /// # Errors
    /// The index is not of this graph, the budget has no room for the batch's bitmap, or a rank is lost.
    pub fn insert(&mut self, v: u64) -> Result<(), EngineError> {
        let batches = Arc::clone(&self.pool.batches);
        if v >= batches.vertices() {
            return Err(EngineError::NoSuchIndex {
                index: v,
                vertices: batches.vertices(),
            });
        }
        let batch = batches.batch_of(v);
        self.change("insert", |set| {
            if set.pool.ranks.own().contains(&batch) {
                let start = batches.start(batch);
                set.batch(batch)?.insert((v - start) as usize);
                set.recount(batch);
            }
            Ok(())
        })
    }
    /// Adds every vertex.
    ///
    /// # Errors
    /// The budget has no room for the bitmap, or a rank is lost.
    pub fn insert_all(&mut self) -> Result<(), EngineError> {
        self.change("insert all", |set| {
            for batch in set.pool.ranks.own() {
                set.batch(batch)?.insert_all();
                set.recount(batch);
            }
            Ok(())
        })
    }
    /// Adds these vertices.
    pub(crate) fn insert_these<'v>(
        &mut self,
        vertices: impl Iterator<Item = &'v u32>,
    ) -> Result<(), EngineError> {
        let batches = Arc::clone(&self.pool.batches);
        self.change("insert these", |set| {
            for v in vertices.copied().map(u64::from) {
                let batch = batches.batch_of(v);
                let i = v - batches.start(batch);
                set.batch(batch)?.insert(i as usize);
            }
            set.recount_all();
            Ok(())
        })
    }

    /// Adds every vertex of which `f` says so.
    pub(crate) fn insert_where(&mut self, f: impl Fn(u64) -> bool) -> Result<(), EngineError> {
        self.change("insert where", |all| {
            for batch in all.pool.ranks.own() {
                {
                    let mut set = all.batch(batch)?;
                    let range = all.pool.batches.range(batch);
                    for (i, v) in range.enumerate() {
                        if f(v) {
                            set.insert(i);
                        }
                    }
                }
                all.recount(batch);
            }
            Ok(())
        })
    }

    /// Adds the vertices of another set of the same graph.
    ///
    /// # Errors
    /// The other set is of another engine, the budget has no room for the bitmap, or a rank is lost.
    pub fn union(&mut self, other: &ActiveSet) -> Result<(), EngineError> {
        if !other.is_of(&self.pool) {
            return Err(EngineError::ForeignSet);
        }
        self.change("union", |set| {
            for batch in other.batches() {
                {
                    let mut mine = set.batch(batch)?;
                    lock(&other.sets[batch]).for_each(|i| mine.insert(i));
                }
                set.recount(batch);
            }
            Ok(())
        })
    }

    /// Takes the vertices of another set of the same graph out of this one.
    ///
    /// # Errors
    /// The other set is of another engine, the budget has no room for the bitmap, or a rank is lost.
    pub fn remove(&mut self, other: &ActiveSet) -> Result<(), EngineError> {
        if !other.is_of(&self.pool) {
            return Err(EngineError::ForeignSet);
        }
        self.change("remove", |set| {
            for batch in other.batches() {
                {
                    let mut mine = set.batch(batch)?;
                    lock(&other.sets[batch]).for_each(|i| mine.remove(i));
                }
                set.recount(batch);
            }
            Ok(())
        })
    }

    /// Calls `f` with each vertex of the set, in ascending order.
    pub(crate) fn each(&self, mut f: impl FnMut(u64)) -> Result<(), EngineError> {
        for batch in self.batches() {
            let start = self.pool.batches.start(batch);
            self.batch(batch)?.for_each(|i| f(start + i as u64));
        }
        Ok(())
    }

    /// The batches of this rank with active vertices, in ascending order.
    pub(crate) fn batches(&self) -> impl Iterator<Item = usize> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(batch, _)| batch)
    }
    /// Number of vertices of one batch in the set.
    pub(crate) fn count_in(&self, batch: usize) -> u64 {
        self.counts[batch]
    }
    /// The set of one batch with its bitmap; the caller ends with [`ActiveSet::recount`].
    pub(crate) fn batch(&self, batch: usize) -> Result<MutexGuard<'_, BatchSet>, EngineError> {
        let mut set = lock(&self.sets[batch]);
        if set.words.is_empty() {
            let span = self.pool.batches.span(batch) as usize;
            set.reserve(span, &self.pool.budget)?;
        }
        Ok(set)
    }
    /// Takes over the count of a batch that was changed.
    pub(crate) fn recount(&mut self, batch: usize) {
        let count = lock(&self.sets[batch]).count as u64;
        self.own = self.own - self.counts[batch] + count;
        self.counts[batch] = count;
    }
    /// Takes over the counts of all batches.
    pub(crate) fn recount_all(&mut self) {
        for batch in 0..self.sets.len() {
            self.recount(batch);
        }
    }
}

impl Drop for ActiveSet {
    fn drop(&mut self) {
        for (batch, &count) in self.counts.iter().enumerate() {
            if count > 0 {
                lock(&self.sets[batch]).clear();
            }
        }
        if let Some(number) = self.number {
            lock(&self.pool.held).remove(&number);
        }
        // Nobody else has them between passes.
        if let Some(sets) = Arc::into_inner(std::mem::take(&mut self.sets)) {
            lock(&self.pool.free).push(sets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn set(span: usize) -> BatchSet {
        let mut set = BatchSet::default();
        set.reserve(span, &Budget::new(1 << 30)).unwrap();
        set
    }

    #[test]
    fn walks_in_order_and_empties() {
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
    fn parts_are_drained_and_looked_at_alone() {
        for span in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let all: Vec<usize> = (0..span).step_by(1 + span / 97).collect();
            for cut in [0, 1, 63, 64, 65, 4095, 4096, 200_001, span - 1, span] {
                let cut = cut.min(span);
                let mut mine = set(span);
                all.iter().for_each(|i| mine.insert(*i));
                let (below, above): (Vec<_>, Vec<_>) = all.iter().copied().partition(|i| *i < cut);
                assert_eq!(mine.has_in(0..cut), !below.is_empty());
                assert_eq!(mine.has_in(cut..span), !above.is_empty());
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
    fn a_full_set_is_every_vertex() {
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
