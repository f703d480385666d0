//! The number of workers that distribute arcs, and the sizes of their buffers: a function of counts and of memory alone.
//!
//! The sum covers all leases of distribution and of the steps after it, so that a budget that is too small is refused
//! before anything large is written. If memory is short, there are fewer workers first, then shorter slabs and chunks.

use super::write;
use crate::build::distribute::{self, DistributionPlan};
use crate::external::bucket_file::{BucketFile, GRAIN, HEADER_BYTES, SLABS};
use crate::external::shuffle::BucketShuffle;

/// Bytes of a chunk of a bucket at most, and of a slab of chunks.
pub(crate) const CHUNK_BYTES_MAX: usize = 256 << 10;
const SLAB_BYTES_MAX: usize = 1 << 20;
const SLAB_BYTES_MIN: usize = 4 * GRAIN;

/// The sizes that are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferSizes {
    pub(crate) lanes: u64,
    pub(crate) slab_bytes: usize,
    pub(crate) chunk_bytes: usize,
}

/// A budget, and what of it is free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemorySnapshot {
    pub(crate) total: u64,
    pub(crate) available: u64,
}

impl MemorySnapshot {
    /// Returns the budget after a lease of `bytes` bytes; `None` if fewer are free.
    pub(crate) fn less(self, bytes: u64) -> Option<Self> {
        let available = self.available.checked_sub(bytes)?;
        Some(Self { available, ..self })
    }

    /// Returns a budget that is `bytes` bytes larger.
    pub(crate) fn and(self, bytes: u64) -> Self {
        Self {
            total: self.total + bytes,
            available: self.available + bytes,
        }
    }
}

/// The memory that a distribution needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    buckets: u64,
    /// Bytes of a worker's reader, and of its other memory except slabs and chunks.
    reader_bytes: u64,
    fixed_bytes: u64,
    /// Bytes of a line of arcs, which lies in one chunk, and of all arcs.
    line_bytes: u64,
    arcs_bytes: u64,
    /// Ranks that distribute together.
    ranks: usize,
    /// The memory that the write step needs afterwards.
    write: write::WriteMemory,
}

/// The powers of two from `from` down to `to`, which is one.
fn halves(from: usize, to: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(from), |size| Some(size / 2)).take_while(move |&size| size >= to)
}

impl Demand {
    /// Creates the demand of `plan`, given the bytes of a reader of the edges.
    pub(crate) fn new(
        plan: &DistributionPlan,
        reader_bytes: u64,
        ranks: usize,
        write: write::WriteMemory,
    ) -> Self {
        let sides = plan.sides().count() as u64;
        Self {
            buckets: plan.buckets() as u64,
            reader_bytes,
            fixed_bytes: distribute::fixed_bytes(plan.buckets(), plan.parts, plan.packing),
            line_bytes: distribute::line_bytes(plan.packing) as u64,
            arcs_bytes: sides * plan.arcs_max() * plan.packing.bytes() as u64,
            ranks,
            write,
        }
    }

    /// Bytes of the table of all chunks: all but the last of a worker and bucket lack less than a line.
    pub(crate) fn table_bytes(&self, sizes: &BufferSizes) -> u64 {
        let filled = (sizes.chunk_bytes - HEADER_BYTES) as u64 - self.line_bytes;
        let chunks = self.arcs_bytes / filled + sizes.lanes * self.buckets;
        // Who takes in what other ranks send has its own.
        BucketFile::table_bytes(chunks, sizes.lanes + u64::from(self.ranks > 1))
    }

    /// Bytes that distribution leases.
    fn bytes(&self, sizes: &BufferSizes) -> u64 {
        let slabs = (SLABS * sizes.slab_bytes) as u64;
        let chunks = self.buckets * sizes.chunk_bytes as u64;
        let lane = self.reader_bytes + self.fixed_bytes + slabs + chunks;
        // Who takes in what other ranks send has slabs too.
        let shuffle = match self.ranks {
            1 => 0,
            ranks => slabs + BucketShuffle::memory(ranks, sizes.chunk_bytes),
        };
        sizes.lanes * lane + shuffle + self.table_bytes(sizes)
    }

    /// Bytes that the memory lacks, of what distribution takes or of what writing takes then.
    fn lack(&self, sizes: &BufferSizes, memory: MemorySnapshot) -> u64 {
        let later = self.table_bytes(sizes) + self.write.bytes(memory.total, sizes.chunk_bytes);
        let now = self.bytes(sizes).saturating_sub(memory.available);
        now.max(later.saturating_sub(memory.total))
    }

    /// The sizes for at most `lanes` workers; `None`: there is too little memory for one.
    pub(crate) fn sizes(&self, lanes: u64, memory: MemorySnapshot) -> Option<BufferSizes> {
        (1..=lanes)
            .rev()
            .find_map(|lanes| self.sizes_of(lanes, memory))
    }

    /// Returns the sizes for exactly `lanes` workers; `None` if memory is too small.
    ///
    /// Slabs get a quarter of the memory, or less if chunks need the rest; chunks are as large as possible.
    fn sizes_of(&self, lanes: u64, memory: MemorySnapshot) -> Option<BufferSizes> {
        let share = (memory.available / lanes).checked_sub(self.reader_bytes + self.fixed_bytes)?;
        let quarter = share / 4 / SLABS as u64;
        let slab = (1usize << quarter.max(1).ilog2().min(30)).clamp(SLAB_BYTES_MIN, SLAB_BYTES_MAX);
        halves(slab, SLAB_BYTES_MIN)
            .flat_map(|slab_bytes| Self::with_slabs(lanes, slab_bytes))
            .find(|sizes| self.lack(sizes, memory) == 0)
    }

    /// All sizes of chunks with slabs of this size, the largest first.
    fn with_slabs(lanes: u64, slab_bytes: usize) -> impl Iterator<Item = BufferSizes> {
        halves(CHUNK_BYTES_MAX.min(slab_bytes), GRAIN).map(move |chunk_bytes| BufferSizes {
            lanes,
            slab_bytes,
            chunk_bytes,
        })
    }

    /// Returns the missing bytes for one worker whose reader takes `reader_bytes`.
    pub(crate) fn wanting(&self, memory: MemorySnapshot, reader_bytes: u64) -> u64 {
        let demand = Self {
            reader_bytes,
            ..*self
        };
        let mut more = 0;
        // Where there is more memory, writing takes more of it.
        loop {
            let memory = memory.and(more);
            let lacks = |sizes| demand.lack(&sizes, memory);
            match Self::with_slabs(1, SLAB_BYTES_MIN).map(lacks).min() {
                Some(lack) if lack > 0 => more += lack,
                _ => return more,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(buckets: u64, arcs: u64) -> Demand {
        Demand {
            buckets,
            reader_bytes: 64 << 10,
            fixed_bytes: 4096 * buckets,
            line_bytes: 64 * 8,
            arcs_bytes: arcs * 8,
            ranks: 1,
            write: write::WriteMemory::of_cells(buckets, arcs.min(buckets << 12)),
        }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn buffer_sizes_follow_from_counts_and_memory() {
        // Buckets, arcs, workers, memory; workers, slabs and chunks in KiB.
        for (buckets, arcs, lanes, memory, expected) in [
            (1, 1000, 2, 64 * MIB, Some((2, 1024, 256))),
            (64, 1 << 24, 2, 256 * MIB, Some((2, 1024, 256))),
            (64, 1 << 24, 2, 64 * MIB, Some((2, 1024, 256))),
            (64, 1 << 24, 2, 32 * MIB, Some((2, 512, 128))),
            (64, 1 << 24, 8, 32 * MIB, Some((8, 128, 32))),
            (4096, 1 << 30, 4, 2048 * MIB, Some((4, 1024, 64))),
            (4096, 1 << 30, 4, 1024 * MIB, Some((4, 1024, 32))),
            // The write step that follows would lack memory.
            (4096, 1 << 30, 4, 1000 * MIB, None),
            (4096, 1 << 30, 4, MIB, None),
        ] {
            let memory = MemorySnapshot {
                total: memory,
                available: memory,
            };
            let sizes = demand(buckets, arcs).sizes(lanes, memory);
            let found = sizes.map(|s| (s.lanes, s.slab_bytes >> 10, s.chunk_bytes >> 10));
            assert_eq!(found, expected, "{buckets} {arcs} {lanes} {memory:?}");
        }
    }

    #[test]
    fn buffer_plan_least_memory_is_enough() {
        for (buckets, arcs) in [
            (1, 0),
            (1, 1000),
            (64, 600_000),
            (64, 1 << 32),
            (4096, 1 << 30),
        ] {
            let demand = demand(buckets, arcs);
            for total in [1, 3 * MIB, 40 * MIB] {
                let memory = MemorySnapshot {
                    total,
                    available: total * 3 / 4,
                };
                let more = demand.wanting(memory, 4 * demand.reader_bytes);
                let named = memory.and(more);
                let sizes = demand.sizes(2, named).expect("the least does");
                assert!(demand.bytes(&sizes) <= named.available);
            }
        }
    }
}
