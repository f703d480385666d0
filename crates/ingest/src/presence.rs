//! Which integer ids occur: a bitmap that workers fill together, then the rank of each id in it.
//!
//! The bitmap holds the ids below a limit that memory sets. An id beyond it makes the whole bitmap worthless (the
//! dictionary is sorted on disk instead), so the first one is remembered and marking stops.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use graphmill_storage::{Budget, BudgetError, Lease};

/// Ids of one chunk: 512 KiB of bits.
const CHUNK_SHIFT: u32 = 22;
const CHUNK_WORDS: usize = 1 << (CHUNK_SHIFT - 6);
/// Words whose ids are handed out at once.
const RUN_WORDS: usize = 64;
/// Bytes that one chunk takes, with the rank of the first id of each word.
const CHUNK_BYTES: u64 = (CHUNK_WORDS * (size_of::<u64>() + size_of::<u32>())) as u64;

#[derive(Debug)]
struct Chunk {
    words: Vec<AtomicU64>,
    _lease: Lease,
}

/// The ids that occur, as bits.
#[derive(Debug)]
pub(crate) struct Presence {
    chunks: Vec<OnceLock<Chunk>>,
    budget: Budget,
    overflowed: AtomicBool,
}

impl Presence {
    /// An empty set that takes at most `bytes_max` of `budget`, bit by bit as ids grow.
    pub(crate) fn new(budget: &Budget, bytes_max: u64) -> Self {
        let chunks = (bytes_max / CHUNK_BYTES).min(1 << (u64::BITS - CHUNK_SHIFT - 1));
        let chunks = (0..chunks).map(|_| OnceLock::new()).collect();
        Self { chunks, budget: budget.clone(), overflowed: AtomicBool::new(false) }
    }

    /// Makes room for the ids up to `id_max`; `false` when memory does not allow that, from then on for good.
    pub(crate) fn reserve(&self, id_max: u64) -> bool {
        if self.overflowed.load(Relaxed) {
            return false;
        }
        let last = (id_max >> CHUNK_SHIFT) as usize;
        if last < self.chunks.len() && self.chunks[last].get().is_some() {
            return true;
        }
        if last >= self.chunks.len() || (0..=last).any(|chunk| self.make(chunk).is_err()) {
            self.overflowed.store(true, Relaxed);
            return false;
        }
        true
    }

    fn make(&self, chunk: usize) -> Result<(), BudgetError> {
        if self.chunks[chunk].get().is_some() {
            return Ok(());
        }
        let lease = self.budget.lease("the bitmap of ids", CHUNK_BYTES)?;
        let words = (0..CHUNK_WORDS).map(|_| AtomicU64::new(0)).collect();
        // Another worker may have been faster; then this chunk and its lease go.
        let _ = self.chunks[chunk].set(Chunk { words, _lease: lease });
        Ok(())
    }

    /// Marks an id that [`reserve`](Self::reserve) made room for; others are ignored.
    #[inline(always)]
    pub(crate) fn mark(&self, id: u64) {
        let Some(chunk) = self.chunks.get((id >> CHUNK_SHIFT) as usize).and_then(OnceLock::get) else { return };
        let word = &chunk.words[(id >> 6) as usize & (CHUNK_WORDS - 1)];
        let bit = 1 << (id & 63);
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// The ranks of the marked ids, or `None` when an id did not fit.
    pub(crate) fn ranks(self) -> Option<Ranks> {
        if self.overflowed.load(Relaxed) {
            return None;
        }
        let mut chunks = Vec::new();
        let mut total = 0;
        for chunk in self.chunks.into_iter().map_while(OnceLock::into_inner) {
            let words: Vec<u64> = chunk.words.into_iter().map(AtomicU64::into_inner).collect();
            let mut ranks = Vec::with_capacity(CHUNK_WORDS);
            let mut rank = 0u32;
            for word in &words {
                ranks.push(rank);
                rank += word.count_ones();
            }
            chunks.push(RankChunk { words, ranks, base: total, _lease: chunk._lease });
            total += u64::from(rank);
        }
        Some(Ranks { chunks, total })
    }
}

#[derive(Debug)]
struct RankChunk {
    words: Vec<u64>,
    /// For each word the ids of the chunk before it.
    ranks: Vec<u32>,
    /// Ids before the chunk.
    base: u64,
    _lease: Lease,
}

/// The marked ids in ascending order, each with its rank: the index of its vertex.
#[derive(Debug)]
pub(crate) struct Ranks {
    chunks: Vec<RankChunk>,
    total: u64,
}

impl Ranks {
    /// Number of ids.
    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    /// Number of marked ids below `id`: the index of `id` when it is marked.
    #[inline(always)]
    pub(crate) fn rank(&self, id: u64) -> u64 {
        let Some(chunk) = self.chunks.get((id >> CHUNK_SHIFT) as usize) else { return self.total };
        let word = (id >> 6) as usize & (CHUNK_WORDS - 1);
        let below = chunk.words[word] & ((1 << (id & 63)) - 1);
        chunk.base + u64::from(chunk.ranks[word]) + u64::from(below.count_ones())
    }

    /// Calls `each` with runs of ids in ascending order.
    pub(crate) fn for_each<E>(&self, mut each: impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        let mut run = Vec::with_capacity(64 * RUN_WORDS);
        for (number, chunk) in self.chunks.iter().enumerate() {
            for (line, words) in chunk.words.chunks_exact(RUN_WORDS).enumerate() {
                run.clear();
                for (i, &word) in words.iter().enumerate() {
                    let first = ((number as u64) << CHUNK_SHIFT) + (((line * RUN_WORDS + i) as u64) << 6);
                    let mut left = word;
                    while left != 0 {
                        run.push(first + u64::from(left.trailing_zeros()));
                        left &= left - 1;
                    }
                }
                if !run.is_empty() {
                    each(&run)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::Random;
    use std::collections::BTreeSet;

    #[test]
    fn ranks_follow_ascending_ids() {
        let budget = Budget::new(64 << 20);
        let presence = Presence::new(&budget, 32 << 20);
        let mut random = Random::new(3);
        let mut ids: BTreeSet<u64> = (0..5000).map(|_| random.next_u64() % (20 << 20)).collect();
        ids.extend([0, 63, 64, 511, 512, (1 << 22) - 1, 1 << 22]);
        for &id in &ids {
            assert!(presence.reserve(id));
            presence.mark(id);
            presence.mark(id);
        }
        let ranks = presence.ranks().unwrap();
        assert_eq!(ranks.len(), ids.len() as u64);
        for (rank, &id) in ids.iter().enumerate() {
            assert_eq!(ranks.rank(id), rank as u64, "{id}");
        }
        assert_eq!(ranks.rank(1), 1, "of an id that is not there: how many are smaller");
        assert_eq!(ranks.rank(u64::MAX), ids.len() as u64);
        let mut listed = Vec::new();
        ranks.for_each::<()>(|run| { listed.extend_from_slice(run); Ok(()) }).unwrap();
        assert!(listed.iter().eq(ids.iter()));
    }

    #[test]
    fn an_id_beyond_memory_ends_the_bitmap() {
        let budget = Budget::new(64 << 20);
        let presence = Presence::new(&budget, 2 << 20);
        assert!(presence.reserve(1 << 22));
        assert!(!presence.reserve(1 << 40));
        assert!(!presence.reserve(1), "and it stays so");
        assert!(presence.ranks().is_none());
        assert_eq!(budget.available(), 64 << 20, "what it had leased is given back");
    }

    #[test]
    fn a_lease_refused_ends_the_bitmap_too() {
        let budget = Budget::new(1 << 20);
        let presence = Presence::new(&budget, 64 << 20);
        assert!(presence.reserve(5));
        assert!(!presence.reserve(5 << 22));
        assert!(presence.ranks().is_none());
    }
}
