//! Bins: the updates for each batch that are not folded yet, and the accumulators that stay in memory.
//!
//! An update is the local index of a destination and the accumulator of one message. A bin has room for a number of them:
//! first all indices, then all accumulators. A full bin is folded if the accumulators of its batch are in memory.
//! Otherwise it becomes an update chunk.

use std::sync::{Mutex, MutexGuard, TryLockError};

use graphmill_raw::{Element, lock, simd};
use graphmill_storage::Buffer;
use zerocopy::FromBytes;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::memory::stream::{BIN_HEADER_BYTES, StreamMemory, bin_values_at};
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;

/// The updates for one batch, on their way to its accumulators.
pub(crate) struct Bin {
    pub(crate) buffer: Buffer,
    pub(crate) count: usize,
}

/// Accumulators of a batch, and whether an update was folded into them.
pub(crate) struct AccumulatorSet<A> {
    pub(crate) accumulators: Accumulators<A>,
    pub(crate) is_touched: bool,
    /// They stay in memory between passes.
    pub(crate) is_resident: bool,
}

impl<A> AccumulatorSet<A> {
    /// Returns a set that gather uses for one batch after the other.
    pub(crate) fn passing(accumulators: Accumulators<A>) -> Self {
        AccumulatorSet {
            accumulators,
            is_touched: false,
            is_resident: false,
        }
    }
}

/// The bins and the accumulators in memory, by batch.
pub(crate) struct Bins<A> {
    bins: Vec<Mutex<Bin>>,
    resident: Vec<Mutex<Option<AccumulatorSet<A>>>>,
    capacity: usize,
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

fn elements_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    <[T]>::mut_from_bytes(bytes).unwrap_or(&mut [])
}

impl<A: Element> Bins<A> {
    /// Allocates a bin for each batch.
    pub(crate) fn new(context: &ExecContext, memory: &StreamMemory) -> Result<Self, EngineError> {
        let (batches, bytes) = (context.batches.len(), memory.bin_bytes);
        let bin = |_| {
            let buffer = context.budget.buffer("bins of updates", bytes)?;
            Ok(Mutex::new(Bin { buffer, count: 0 }))
        };
        Ok(Bins {
            bins: (0..batches).map(bin).collect::<Result<_, EngineError>>()?,
            resident: (0..batches).map(|_| Mutex::new(None)).collect(),
            capacity: memory.bin_capacity,
        })
    }

    /// Updates of a bin at most.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of bins: one for each batch.
    pub(crate) fn len(&self) -> usize {
        self.bins.len()
    }

    /// Gives a batch accumulators in memory.
    pub(crate) fn keep(&mut self, batch: usize, accumulators: Accumulators<A>) {
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
    pub(crate) fn resident(&self, batch: usize) -> MutexGuard<'_, Option<AccumulatorSet<A>>> {
        lock(&self.resident[batch])
    }
}

/// Folds updates into the accumulators of batch that begins with vertex `start`.
///
/// The length of `accumulators` is a power of two, so that a mask replaces the bounds check.
pub(crate) fn fold<P: EdgeProgram>(
    program: &P,
    start: u64,
    (indices, values): (&[u32], &[P::Accumulator]),
    accumulators: &mut [P::Accumulator],
) {
    simd::dispatch(
        #[inline(always)]
        || {
            let mask = accumulators.len() - 1;
            let current = CurrentCall::new();
            for (index, value) in indices.iter().zip(values) {
                let local = *index as usize & mask;
                current.at(start + local as u64);
                program.merge(&mut accumulators[local], *value);
            }
        },
    );
}
