//! Which integer ids occur: a bitmap that workers fill together, then the rank of each id in it.
//!
//! The bitmap holds the ids below a limit that memory sets. An id beyond it makes the whole bitmap worthless (the
//! dictionary is sorted on disk instead), so the first one is remembered and marking stops.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use graphmill_raw::AtomicBitmap;
use graphmill_storage::{
    BudgetError, Buffer, Lease, MemoryBudget, RecordReader, RecordWriter, corrupt,
};

use crate::comm::ImportCommunicator;
use crate::error::IngestError;

/// Ids of one chunk: 512 KiB of bits.
const CHUNK_SHIFT: u32 = 22;
const CHUNK_WORDS: usize = 1 << (CHUNK_SHIFT - 6);
/// Entries whose ids are handed out at once.
const RUN_ENTRIES: usize = 128;
/// Bytes of the bits of one chunk, and of its ranks.
const CHUNK_BYTES: u64 = (CHUNK_WORDS * size_of::<u64>()) as u64;
const RANK_BYTES: u64 = 2 * CHUNK_BYTES;
/// In a record: the bitmap overflowed, or it holds all ids.
const NO_ROOM: u32 = 0;
const ROOM: u32 = 1;
/// Entries of ranks of one chunk, of 32 ids each.
const CHUNK_ENTRIES: usize = 2 * CHUNK_WORDS;

#[derive(Debug)]
struct BitmapChunk {
    ids: AtomicBitmap,
    _lease: Lease,
}

/// The ids that occur, as bits.
#[derive(Debug)]
pub(crate) struct IdBitmap {
    chunks: Vec<OnceLock<BitmapChunk>>,
    budget: MemoryBudget,
    overflowed: AtomicBool,
}

impl IdBitmap {
    /// An empty set that takes at most `bytes_max` of `budget`, its ranks included, bit by bit as ids grow.
    pub(crate) fn new(budget: &MemoryBudget, bytes_max: u64) -> Self {
        let chunks =
            (bytes_max / (CHUNK_BYTES + RANK_BYTES)).min(1 << (u64::BITS - CHUNK_SHIFT - 1));
        let chunks = (0..chunks).map(|_| OnceLock::new()).collect();
        Self {
            chunks,
            budget: budget.clone(),
            overflowed: AtomicBool::new(false),
        }
    }

    /// Returns the bytes of the set of ids below `range` with its ranks, as `new` counts them.
    pub(crate) fn bytes(range: u64) -> u64 {
        let chunks = range.div_ceil(1 << CHUNK_SHIFT);
        chunks.saturating_mul(CHUNK_BYTES + RANK_BYTES)
    }

    /// Returns the bytes of the bits of ids below `range`, which ranks merge, and of their ranks.
    pub(crate) fn merged_bytes(range: u64) -> (u64, u64) {
        let bits = range.div_ceil(64) * size_of::<u64>() as u64;
        (bits, bits.saturating_mul(2))
    }

    /// Allocates the bitmap for ids up to `id_max`; false, from then on for good, if memory is short.
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
        // Another worker may have been faster; then this chunk and its lease go.
        let _ = self.chunks[chunk].set(BitmapChunk {
            ids: AtomicBitmap::new(1 << CHUNK_SHIFT),
            _lease: lease,
        });
        Ok(())
    }

    /// Marks an id that fits the last [`reserve`](Self::reserve); other ids are ignored.
    #[inline(always)]
    pub(crate) fn mark(&self, id: u64) {
        let chunk = self.chunks.get((id >> CHUNK_SHIFT) as usize);
        let Some(chunk) = chunk.and_then(OnceLock::get) else {
            return;
        };
        let of_chunk = (id & ((1 << CHUNK_SHIFT) - 1)) as usize;
        // Most ids occur many times: a word that is only read stays in the caches of all cores.
        if !chunk.ids.is_marked(of_chunk) {
            chunk.ids.set(of_chunk);
        }
    }

    /// Writes the ids, or that the bitmap overflowed.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        if self.overflowed.load(Relaxed) {
            return out.put_u32(NO_ROOM);
        }
        let chunks = self.chunks.iter().map_while(OnceLock::get);
        out.put_u32(ROOM)?;
        out.put_u64(chunks.clone().count() as u64)?;
        let mut words = chunks.flat_map(|chunk| chunk.ids.to_words());
        words.try_for_each(|word| out.put_u64(word))
    }

    /// Reads the bitmap that [was encoded](IdBitmap::encode); it takes at most `bytes_max` of `budget`.
    pub(crate) fn decode(
        budget: &MemoryBudget,
        bytes_max: u64,
        from: &mut RecordReader<'_>,
    ) -> io::Result<Self> {
        let id_bitmap = Self::new(budget, bytes_max);
        if from.word()? == NO_ROOM {
            id_bitmap.overflowed.store(true, Relaxed);
            return Ok(id_bitmap);
        }
        let chunks = from.count(CHUNK_BYTES)?;
        let last = chunks.checked_sub(1).map(|last| last << CHUNK_SHIFT);
        if !last.is_none_or(|last| id_bitmap.reserve(last)) {
            from.pass(chunks * CHUNK_BYTES);
            return Ok(id_bitmap);
        }
        for chunk in id_bitmap.chunks.iter().map_while(OnceLock::get) {
            for word in 0..CHUNK_WORDS {
                chunk.ids.set_word(word, from.number()?);
            }
        }
        Ok(id_bitmap)
    }

    /// Returns the ranks of the ids that any rank of the import marked, none above `id_max`.
    ///
    /// `None` if an id did not fit in the memory of some rank.
    ///
    /// # Errors
    /// The budget has no memory for them, or a rank is lost.
    pub(crate) fn ranks(
        self,
        comm: &ImportCommunicator<'_>,
        id_max: Option<u64>,
    ) -> Result<Option<RankBitmap>, IngestError> {
        let fits = id_max.is_none_or(|id_max| self.reserve(id_max));
        if !comm.all_true(fits && !self.overflowed.load(Relaxed))? {
            return Ok(None);
        }
        let chunks = self.chunks.into_iter();
        let chunks: Vec<BitmapChunk> = chunks.map_while(OnceLock::into_inner).collect();
        // Nothing is marked beyond the greatest id.
        let words = chunks.len() * CHUNK_WORDS;
        let words = id_max.map_or(words, |id_max| words.min((id_max >> 6) as usize + 1));
        let bytes = 2 * words * size_of::<u64>();
        let mut buffer = self.budget.buffer("the ranks of ids", bytes)?;
        let entries = buffer.typed_mut::<u64>()[..2 * words].chunks_mut(CHUNK_ENTRIES);
        let mut bases = Vec::with_capacity(chunks.len());
        let mut total = 0;
        for (chunk, entries) in chunks.into_iter().zip(entries) {
            bases.push(total);
            let mut rank = 0u32;
            let words = chunk.ids.into_words().take(entries.len() / 2);
            let mut words: Vec<u64> = words.collect();
            comm.reduce(&mut words, |a, b| a | b)?;
            for (word, entries) in words.into_iter().zip(entries.as_chunks_mut::<2>().0) {
                for (entry, bits) in entries.iter_mut().zip([word as u32, (word >> 32) as u32]) {
                    *entry = u64::from(rank) << 32 | u64::from(bits);
                    rank += bits.count_ones();
                }
            }
            total += u64::from(rank);
        }
        Ok(Some(RankBitmap {
            entries: buffer,
            bases,
            total,
        }))
    }
}

/// The marked ids in ascending order, each with its rank: the index of its vertex.
#[derive(Debug)]
pub(crate) struct RankBitmap {
    /// For 32 ids one word, so that a lookup costs one cache line: low the bits, high the ids before them.
    ///
    /// The high half counts within the chunk.
    entries: Buffer,
    /// For each chunk the ids before it.
    bases: Vec<u64>,
    /// Number of ids.
    pub(crate) total: u64,
}

/// [`RankBitmap`] for many look-ups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankLookup<'a> {
    entries: &'a [u64],
    bases: &'a [u64],
    total: u64,
}

impl RankLookup<'_> {
    /// Number of marked ids below `id`: the index of `id` when it is marked.
    #[inline(always)]
    pub(crate) fn rank(&self, id: u64) -> u64 {
        let (Some(entry), Some(base)) = (
            self.entries.get((id >> 5) as usize),
            self.bases.get((id >> CHUNK_SHIFT) as usize),
        ) else {
            return self.total;
        };
        let below = entry & ((1 << (id & 31)) - 1);
        base + (entry >> 32) + u64::from(below.count_ones())
    }
}

impl RankBitmap {
    /// Writes the bitmap with its ranks.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        out.put_u64(self.total)?;
        out.put_u64s(self.bases.iter().copied())?;
        out.put_u64s(self.entries.typed::<u64>().iter().copied())
    }

    /// Reads a bitmap that was [encoded](RankBitmap::encode).
    ///
    /// Refuses ranks that do not follow from its bits.
    pub(crate) fn decode(budget: &MemoryBudget, from: &mut RecordReader<'_>) -> io::Result<Self> {
        let total = from.number()?;
        let bases = from.numbers()?;
        let count = from.count(size_of::<u64>() as u64)? as usize;
        if count.div_ceil(CHUNK_ENTRIES) != bases.len() {
            return Err(corrupt());
        }
        let entries = budget.buffer("the ranks of ids", count * size_of::<u64>());
        let mut entries = entries.map_err(io::Error::other)?;
        let chunks = entries.typed_mut::<u64>()[..count].chunks_mut(CHUNK_ENTRIES);
        let mut ids = 0;
        for (&base, chunk) in bases.iter().zip(chunks) {
            let mut rank = 0;
            for entry in chunk {
                *entry = from.number()?;
                if base != ids || *entry >> 32 != rank {
                    return Err(corrupt());
                }
                rank += u64::from((*entry as u32).count_ones());
            }
            ids += rank;
        }
        if total != ids {
            return Err(corrupt());
        }
        Ok(RankBitmap {
            entries,
            bases,
            total,
        })
    }

    /// True if an id is marked.
    pub(crate) fn holds(&self, id: u64) -> bool {
        let entry = self.entries.typed::<u64>().get((id >> 5) as usize);
        entry.is_some_and(|entry| entry >> (id & 31) & 1 == 1)
    }

    /// For look-ups.
    pub(crate) fn look_up(&self) -> RankLookup<'_> {
        RankLookup {
            entries: self.entries.typed(),
            bases: &self.bases,
            total: self.total,
        }
    }

    /// Calls `each` with runs of ids in ascending order.
    pub(crate) fn for_each<E>(
        &self,
        mut each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut run = Vec::with_capacity(32 * RUN_ENTRIES);
        for (line, entries) in self.entries.typed::<u64>().chunks(RUN_ENTRIES).enumerate() {
            run.clear();
            for (i, &entry) in entries.iter().enumerate() {
                let first = ((line * RUN_ENTRIES + i) as u64) << 5;
                let mut left = entry as u32;
                while left != 0 {
                    run.push(first + u64::from(left.trailing_zeros()));
                    left &= left - 1;
                }
            }
            if !run.is_empty() {
                each(&run)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::{CancelToken, Disk, RandomAccessFile, SimDisk, SplitMix64, is_corrupt};
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::Arc;

    fn alone() -> ImportCommunicator<'static> {
        static STOP: OnceLock<CancelToken> = OnceLock::new();
        ImportCommunicator::new(None, STOP.get_or_init(CancelToken::default))
    }

    #[test]
    fn bitmap_ranks_follow_ascending_ids() {
        let budget = MemoryBudget::new(64 << 20);
        let id_bitmap = IdBitmap::new(&budget, 32 << 20);
        let mut random = SplitMix64::new(3);
        let mut ids: BTreeSet<u64> = (0..5000).map(|_| random.next_u64() % (20 << 20)).collect();
        ids.extend([0, 63, 64, 511, 512, (1 << 22) - 1, 1 << 22]);
        for &id in &ids {
            assert!(id_bitmap.reserve(id));
            id_bitmap.mark(id);
            id_bitmap.mark(id);
        }
        let ranks = id_bitmap.ranks(&alone(), None).unwrap().unwrap();
        assert_eq!(ranks.total, ids.len() as u64);
        for (rank, &id) in ids.iter().enumerate() {
            assert_eq!(ranks.look_up().rank(id), rank as u64, "{id}");
            assert!(ranks.holds(id) && (ids.contains(&(id + 1)) == ranks.holds(id + 1)));
        }
        assert_eq!(
            ranks.look_up().rank(1),
            1,
            "of an id that is not there: how many are smaller"
        );
        assert_eq!(ranks.look_up().rank(u64::MAX), ids.len() as u64);
        let mut listed = Vec::new();
        ranks
            .for_each::<()>(|run| {
                listed.extend_from_slice(run);
                Ok(())
            })
            .unwrap();
        assert!(listed.iter().eq(ids.iter()));
    }

    #[test]
    fn bitmap_record_is_refused_unless_ranks_follow_from_bits() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let budget = MemoryBudget::new(64 << 20);
        let decoded = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let path = Path::new("/record");
            disk.write_small(path, &bytes).unwrap();
            let opened = RandomAccessFile::open(&disk, &budget, path, 4096).unwrap();
            RankBitmap::decode(&budget, &mut RecordReader::at(&opened, 0))
        };
        let right = [4, 1, 0, 2, 0b1011, 3 << 32 | 1];
        let ranks = decoded(&right).unwrap();
        assert_eq!((ranks.total, ranks.look_up().rank(32)), (4, 3));
        // The total, the number of bases, a base, the number of entries, the ranks of two entries.
        for (at, wrong) in [
            (0, 5),
            (1, 2),
            (2, u64::MAX),
            (3, 1),
            (4, 1 << 32),
            (5, 2 << 32),
        ] {
            let mut words = right;
            words[at] = wrong;
            assert!(decoded(&words).is_err_and(|error| is_corrupt(&error)));
        }
    }

    #[test]
    fn bitmap_ends_at_an_id_beyond_memory() {
        let budget = MemoryBudget::new(64 << 20);
        let id_bitmap = IdBitmap::new(&budget, 3 << 20);
        assert!(id_bitmap.reserve(1 << 22));
        assert!(!id_bitmap.reserve(1 << 40));
        assert!(!id_bitmap.reserve(1), "and it stays so");
        assert!(id_bitmap.ranks(&alone(), None).unwrap().is_none());
        assert_eq!(
            budget.available(),
            64 << 20,
            "what it had leased is given back"
        );
    }

    #[test]
    fn bitmap_ends_at_a_refused_lease() {
        let budget = MemoryBudget::new(3 << 18);
        let id_bitmap = IdBitmap::new(&budget, 64 << 20);
        assert!(id_bitmap.reserve(5));
        assert!(!id_bitmap.reserve(5 << 22));
        assert!(id_bitmap.ranks(&alone(), None).unwrap().is_none());
    }
}
