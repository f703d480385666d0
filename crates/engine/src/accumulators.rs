//! Accumulators: what the edges of a pass fold into, one value for each destination of a batch or of the graph.
//!
//! They are hit at random, so they lie in aligned memory that may have huge pages: with small ones most folds of a
//! wide batch would wait for the address first.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Buffer, Kind};

use crate::error::EngineError;
use crate::machine::Machine;
use crate::program::Accumulator;

/// A row of accumulators, leased from the budget.
pub(crate) struct Accumulators<A> {
    memory: Buffer,
    entry: PhantomData<A>,
}

impl<A: Accumulator> Accumulators<A> {
    /// Bytes of the budget that so many take.
    pub(crate) fn bytes(entries: usize) -> u64 {
        AlignedBuffer::footprint(entries * size_of::<A>())
    }

    /// So many accumulators with this value.
    pub(crate) fn new(machine: &Machine, entries: usize, identity: A) -> Result<Self, EngineError> {
        let (tiers, budget) = (&machine.tiers, &machine.budget);
        let bytes = entries * size_of::<A>();
        let mut memory = tiers.buffer(Kind::Messages, budget, "accumulators", bytes)?;
        memory.typed_mut::<A>().fill(identity);
        Ok(Accumulators {
            memory,
            entry: PhantomData,
        })
    }
}

impl<A: Accumulator> Deref for Accumulators<A> {
    type Target = [A];
    fn deref(&self) -> &[A] {
        self.memory.typed()
    }
}

impl<A: Accumulator> DerefMut for Accumulators<A> {
    fn deref_mut(&mut self) -> &mut [A] {
        self.memory.typed_mut()
    }
}
