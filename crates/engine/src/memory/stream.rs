//! What a pass of the stream executor takes of the memory budget, and how the rest is shared out.
//!
//! Windows, messages of open batches, bins and a set of accumulators for each worker come first. The rest is for accumulators that
//! stay in memory: with them a full bin is folded at once.

use graphmill_graph::DISK_PAGE_BYTES;
use graphmill_raw::AlignedBuffer;

use crate::memory::run_bytes;
use crate::memory::transposed::CopyBytes;
use crate::program::footprint::ProgramFootprint;

/// What memory depends on of the chunks of a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamShape {
    pub(crate) workers: usize,
    /// There are no other ranks.
    pub(crate) is_alone: bool,
    pub(crate) batches: usize,
    /// Vertices of a batch, and accumulators of one.
    pub(crate) widest: usize,
    pub(crate) entries: usize,
    /// Bytes of a chunk at most.
    pub(crate) chunk_bytes: usize,
    /// Bytes of the data of its edges at most.
    pub(crate) data_bytes: usize,
    /// Updates that a storage engine keeps in a pass, on average.
    pub(crate) updates: u64,
    /// Requests that keep all storage engines busy (Chaos, section 6.5).
    pub(crate) requests: usize,
    /// Requests on their way, if that is given.
    pub(crate) window: Option<usize>,
    /// The copy that the first pass against the arcs makes.
    pub(crate) transposed: CopyBytes,
}

/// How the free memory of a pass is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamMemory {
    /// Buffers of the window, and bytes of each.
    pub(crate) window: usize,
    pub(crate) slot_bytes: usize,
    /// Batches whose messages are in memory at one time, and bytes of the messages of each.
    pub(crate) open: usize,
    pub(crate) message_bytes: usize,
    /// Bytes of a bin, and its updates.
    pub(crate) bin_bytes: usize,
    pub(crate) bin_capacity: usize,
    /// Bins beside one for each batch, which are written.
    pub(crate) spare_bins: usize,
    /// Sets of accumulators for gather.
    pub(crate) sets: usize,
    /// Bytes of a set.
    pub(crate) set_bytes: u64,
    /// Batches whose accumulators stay in memory.
    pub(crate) resident: usize,
    /// Bytes of all of it.
    pub(crate) takes: u64,
}

/// Bytes before the updates of a bin, where an update chunk has its header.
pub(crate) const BIN_HEADER_BYTES: usize = 64;
/// Bytes of a window buffer before its chunk: a header on the way to another rank.
pub(crate) const SLOT_HEADER_BYTES: usize = 4096;
/// Buffers for chunks to other ranks, and as many for update chunks from them.
pub(crate) const SERVED: usize = 2;
/// Bytes of a bin at least and at most; both are powers of two.
const BIN_BYTES_MIN: usize = 1 << 12;
const BIN_BYTES_MAX: usize = 1 << 21;
/// An entry of the list of update chunks: its pages, and the entry of its batch before it.
pub(crate) type ListEntry = [u32; 2];
/// Bytes of a block of that list.
pub(crate) const LIST_BLOCK_BYTES: usize = 1 << 12;
/// Bins take at most one part in this number of the memory.
const BIN_SHARE: u64 = 4;

/// Returns the offset of the accumulators of a bin with `capacity` updates.
pub(crate) fn bin_values_at(capacity: usize) -> usize {
    // Accumulators lie at a multiple of their alignment.
    (BIN_HEADER_BYTES + capacity * size_of::<u32>()).next_multiple_of(BIN_HEADER_BYTES)
}

/// Returns the updates of `width` bytes each that a bin of `bytes` bytes has room for.
fn bin_capacity(bytes: usize, width: usize) -> usize {
    (bytes - 2 * BIN_HEADER_BYTES) / (size_of::<u32>() + width)
}

impl StreamShape {
    /// The least that a pass takes, with the accumulators of all batches in memory or of none.
    pub(crate) fn least(&self, sizes: ProgramFootprint, all_resident: bool) -> u64 {
        let resident = if all_resident { self.batches } else { 0 };
        self.with_few_requests().least_of(sizes, resident)
    }

    /// Divides `free` bytes; returns `None` if they are too few.
    ///
    /// At most `most` batches have their accumulators in memory. They come before long bins.
    pub(crate) fn plan(
        &self,
        sizes: ProgramFootprint,
        free: u64,
        most: usize,
    ) -> Option<StreamMemory> {
        let few = self.with_few_requests();
        if self.requests > few.requests && self.least_of(sizes, 0) > free {
            return few.plan(sizes, free, most);
        }
        let most = most.min(self.batches);
        let longest = |resident| {
            let fits = |bytes: &usize| self.needs(sizes, *bytes, resident) <= free;
            self.bin_sizes(sizes).find(fits)
        };
        if let Some(bytes) = longest(most) {
            return Some(self.memory(sizes, bytes, most));
        }
        let bytes = longest(0)?;
        let none = self.memory(sizes, bytes, 0);
        let resident = (free - none.takes) / none.set_bytes.max(1);
        Some(self.memory(sizes, bytes, (resident as usize).min(most)))
    }

    /// The same with no more requests than the workers need.
    fn with_few_requests(self) -> Self {
        StreamShape {
            requests: 0,
            ..self
        }
    }

    /// Short bins need a long list of update chunks, so the shortest need not be the least.
    fn least_of(&self, sizes: ProgramFootprint, resident: usize) -> u64 {
        let needs = |bytes| self.needs(sizes, bytes, resident);
        self.bin_sizes(sizes).map(needs).min().unwrap_or(u64::MAX)
    }

    /// Returns the memory that is enough for bins of `bin_bytes` bytes, which take their share of it.
    fn needs(&self, sizes: ProgramFootprint, bin_bytes: usize, resident: usize) -> u64 {
        let takes = self.memory(sizes, bin_bytes, resident).takes;
        match bin_bytes == self.bin_bytes_min(sizes) {
            true => takes,
            false => takes.max(self.bins_bytes(bin_bytes).saturating_mul(BIN_SHARE)),
        }
    }

    /// The bytes of a bin, the most first.
    fn bin_sizes(&self, sizes: ProgramFootprint) -> impl Iterator<Item = usize> {
        let least = self.bin_bytes_min(sizes);
        let halves = std::iter::successors(Some(BIN_BYTES_MAX.max(least)), |bytes| Some(bytes / 2));
        halves.take_while(move |bytes| *bytes >= least)
    }

    /// Returns the bytes that workers take to make a transposed copy.
    pub(crate) fn transposing_bytes(&self, [writer, worker, directory]: CopyBytes) -> u64 {
        self.scan_bytes(true) + writer + self.workers as u64 * worker + directory
    }

    /// Returns the bytes of a buffer for a chunk, with the data of its edges or without.
    pub(crate) fn slot_bytes(&self, reads_data: bool) -> usize {
        let data_bytes = if reads_data { self.data_bytes } else { 0 };
        let page = DISK_PAGE_BYTES as usize;
        SLOT_HEADER_BYTES + (self.chunk_bytes + data_bytes).next_multiple_of(page) + page
    }

    /// Returns the bytes of the budget that a scan takes, with the data of edges or without.
    pub(crate) fn scan_bytes(&self, reads_data: bool) -> u64 {
        2 * self.workers as u64 * AlignedBuffer::footprint(self.slot_bytes(reads_data))
    }

    /// A bin has room for some updates, whatever their bytes.
    fn bin_bytes_min(&self, sizes: ProgramFootprint) -> usize {
        let wide = 16 * (size_of::<u32>() + sizes.accumulator) + 2 * BIN_HEADER_BYTES;
        wide.next_power_of_two().max(BIN_BYTES_MIN)
    }

    fn bins_bytes(&self, bin_bytes: usize) -> u64 {
        (self.batches + self.spare_bins()) as u64 * bin_bytes as u64
    }

    fn spare_bins(&self) -> usize {
        self.workers + 1
    }

    /// Returns a plan with bins of fewer bytes, and the accumulators of fewer batches in memory.
    pub(crate) fn reduced(
        &self,
        sizes: ProgramFootprint,
        memory: StreamMemory,
        (bin_bytes, resident): (usize, usize),
    ) -> StreamMemory {
        StreamMemory {
            window: memory.window,
            ..self.memory(sizes, bin_bytes, resident)
        }
    }

    /// Returns the memory with bins of `bin_bytes` bytes and the accumulators of `resident` batches.
    fn memory(&self, sizes: ProgramFootprint, bin_bytes: usize, resident: usize) -> StreamMemory {
        // An update chunk takes the place of a chunk of arcs.
        let of_chunk = self.slot_bytes(sizes.weighted);
        let slot_bytes = of_chunk.max(SLOT_HEADER_BYTES + bin_bytes);
        let window = self
            .window
            .unwrap_or(2 * self.workers.max(self.requests.div_ceil(2)));
        let window = window.max(1);
        // One more is for a copy that goes to a helper.
        let open = self.workers + 1 + usize::from(!self.is_alone);
        let message_bytes = run_bytes::bytes_max(self.widest, sizes.message);
        let set_bytes = AlignedBuffer::footprint(self.entries * sizes.accumulator);
        // With all accumulators of one rank in memory no update is written.
        let sets = match resident >= self.batches && self.is_alone {
            true => 0,
            // One more is for the accumulators of a helper.
            false => self.workers + usize::from(!self.is_alone),
        };
        let bin_capacity = bin_capacity(bin_bytes, sizes.accumulator);
        let list_bytes = match resident >= self.batches {
            true => 0,
            false => self.list_bytes(bin_capacity),
        };
        let served = if self.is_alone { 0 } else { SERVED };
        let takes = (window + served) as u64 * AlignedBuffer::footprint(slot_bytes)
            + (served * bin_bytes) as u64
            + open as u64 * AlignedBuffer::footprint(message_bytes)
            + self.bins_bytes(bin_bytes)
            + (sets + resident) as u64 * set_bytes
            + list_bytes;
        StreamMemory {
            window,
            slot_bytes,
            open,
            message_bytes,
            bin_bytes,
            bin_capacity,
            spare_bins: self.spare_bins(),
            sets,
            set_bytes,
            resident,
            takes,
        }
    }

    /// Returns the bytes of the list of update chunks.
    ///
    /// Storage engines are drawn, so the bound is six standard deviations above the mean.
    fn list_bytes(&self, bin_capacity: usize) -> u64 {
        let mean = self.updates.div_ceil(bin_capacity as u64) + self.batches as u64;
        let above = if self.is_alone {
            0
        } else {
            6 * mean.isqrt() + 36
        };
        let bytes = (mean + above) * size_of::<ListEntry>() as u64;
        bytes.next_multiple_of(LIST_BLOCK_BYTES as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> StreamShape {
        StreamShape {
            workers: 2,
            is_alone: true,
            requests: 1,
            batches: 64,
            widest: 1 << 18,
            entries: 1 << 18,
            chunk_bytes: 4 << 20,
            data_bytes: 0,
            updates: 1 << 28,
            window: None,
            transposed: [0; 3],
        }
    }

    #[test]
    fn least_memory_is_enough_and_exact() {
        for is_alone in [true, false] {
            let shape = StreamShape {
                is_alone,
                requests: 6,
                ..shape()
            };
            let sizes = ProgramFootprint::USUAL;
            let least = shape.least(sizes, false);
            assert_eq!(shape.plan(sizes, least, 64).unwrap().takes, least);
            assert_eq!(shape.plan(sizes, least - 1, 64), None);
        }
    }

    #[test]
    fn memory_plan_never_exceeds_free_bytes() {
        let (shape, sizes) = (shape(), ProgramFootprint::USUAL);
        let mut free = shape.least(sizes, false);
        let mut resident = Vec::new();
        while free < 2 << 30 {
            let memory = shape.plan(sizes, free, usize::MAX).unwrap();
            assert!(memory.takes <= free, "{free}");
            let values_end = bin_values_at(memory.bin_capacity) + memory.bin_capacity * 8;
            assert!(values_end <= memory.bin_bytes);
            resident.push(memory.resident);
            free += free / 31;
        }
        // With more memory bins may grow at the cost of some batches, so the numbers are not sorted.
        assert_eq!((resident[0], resident.last()), (0, Some(&64)));
    }
}
