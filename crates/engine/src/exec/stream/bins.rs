//! Bins: the updates for each batch that are not folded yet, and the accumulators that stay in memory.
//!
//! An update is the local index of a destination and the accumulator of one message. A bin has room for a number of them:
//! first all indices, then all accumulators. A full bin is folded if the accumulators of its batch are in memory.
//! Otherwise it becomes an update chunk.

use std::sync::{Mutex, MutexGuard, TryLockError};

use graphmill_raw::{Element, lock};
use graphmill_storage::Buffer;
use zerocopy::FromBytes;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::memory::stream::{BIN_HEADER_BYTES, StreamMemory, bin_values_at};

/// The updates for one batch, on their way to its accumulators.
pub(crate) struct Bin {
    pub(crate) buffer: Buffer,
    pub(crate) count: usize,
}

/// Accumulators of a batch, and whether an update was folded into them.
pub(crate) struct AccumulatorSet {
    pub(crate) memory: Buffer,
    pub(crate) is_touched: bool,
    /// They stay in memory between passes.
    pub(crate) is_resident: bool,
}

impl AccumulatorSet {
    /// Returns a set that gather uses for one batch after the other.
    pub(crate) fn passing(memory: Buffer) -> Self {
        AccumulatorSet {
            memory,
            is_touched: false,
            is_resident: false,
        }
    }
}

/// The bins and the accumulators in memory, by batch.
pub(crate) struct Bins {
    bins: Vec<Mutex<Bin>>,
    resident: Vec<Mutex<Option<AccumulatorSet>>>,
    /// Updates of a bin at most.
    pub(crate) capacity: usize,
    /// Bytes of an accumulator.
    pub(crate) width: usize,
}

/// Returns the indices and the accumulators of a bin's buffer.
pub(crate) fn parts_mut<A: Element>(
    buffer: &mut Buffer,
    capacity: usize,
) -> (&mut [u32], &mut [A]) {
    let (head, values) = buffer.split_at_mut(bin_values_at(capacity));
    let indices = &mut head[BIN_HEADER_BYTES..BIN_HEADER_BYTES + capacity * size_of::<u32>()];
    (
        elements_mut(indices),
        elements_mut(&mut values[..capacity * size_of::<A>()]),
    )
}

/// Returns the first updates of a bin: indices, and the bytes of accumulators.
pub(crate) fn updates_of(bin: &Bin, capacity: usize, width: usize) -> (&[u32], &[u8]) {
    let indices = &bin.buffer[BIN_HEADER_BYTES..bin_values_at(capacity)];
    let indices = <[u32]>::ref_from_prefix_with_elems(indices, bin.count);
    let values = bin_values_at(capacity);
    (
        indices.map_or(&[][..], |(indices, _)| indices),
        &bin.buffer[values..values + bin.count * width],
    )
}

fn elements_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    <[T]>::mut_from_bytes(bytes).unwrap_or(&mut [])
}

impl Bins {
    /// Allocates a bin for each batch, for accumulators of `width` bytes.
    pub(crate) fn new(
        context: &ExecContext,
        memory: &StreamMemory,
        width: usize,
    ) -> Result<Self, EngineError> {
        let (batches, bytes) = (context.batches.len(), memory.bin_bytes);
        let bin = |_| {
            let buffer = context.budget.buffer("bins of updates", bytes)?;
            Ok(Mutex::new(Bin { buffer, count: 0 }))
        };
        Ok(Bins {
            bins: (0..batches).map(bin).collect::<Result<_, EngineError>>()?,
            resident: (0..batches).map(|_| Mutex::new(None)).collect(),
            capacity: memory.bin_capacity,
            width,
        })
    }

    /// Number of bins: one for each batch.
    pub(crate) fn len(&self) -> usize {
        self.bins.len()
    }

    /// Gives a batch accumulators in memory.
    pub(crate) fn keep(&mut self, batch: usize, accumulators: Buffer) {
        let set = AccumulatorSet {
            is_resident: true,
            ..AccumulatorSet::passing(accumulators)
        };
        self.resident[batch] = Mutex::new(Some(set));
    }

    /// The bin of a batch; `None` if another worker has it.
    pub(crate) fn try_bin(&self, batch: usize) -> Option<MutexGuard<'_, Bin>> {
        match self.bins[batch].try_lock() {
            Ok(bin) => Some(bin),
            Err(TryLockError::Poisoned(bin)) => Some(bin.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The bin of a batch, once no other worker has it.
    pub(crate) fn bin(&self, batch: usize) -> MutexGuard<'_, Bin> {
        lock(&self.bins[batch])
    }

    /// The accumulators of a batch; `None` inside if they are not in memory.
    pub(crate) fn resident(&self, batch: usize) -> MutexGuard<'_, Option<AccumulatorSet>> {
        lock(&self.resident[batch])
    }
}
