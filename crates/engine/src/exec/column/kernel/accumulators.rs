//! Accumulators: what the edges of a pass fold into, one value for each destination of a batch or of the graph.
//!
//! They are hit at random, so they lie in aligned memory that may have huge pages: with small ones most folds of a
//! wide batch would wait for the address first.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use graphmill_raw::{AlignedBuffer, Element};
use graphmill_storage::{Buffer, DataKind};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::schedule::numa;
use crate::value::Accumulator;

/// An array of accumulators, leased from the budget.
pub(crate) struct Accumulators<A> {
    memory: Buffer,
    /// The node of the thread that filled it, where its memory is; none before.
    home: Option<usize>,
    entry: PhantomData<A>,
}

impl<A: Element> Accumulators<A> {
    /// Returns the bytes of the budget for `entries` accumulators.
    pub(crate) fn bytes(entries: usize) -> u64 {
        AlignedBuffer::footprint(entries * size_of::<A>())
    }

    /// Allocates accumulators that hold one value.
    pub(crate) fn new(
        context: &ExecContext,
        entries: usize,
        identity: A,
    ) -> Result<Self, EngineError> {
        let mut accumulators = Self::unfilled(context, entries)?;
        accumulators.fill(identity, numa::current_node());
        Ok(accumulators)
    }

    /// Allocates accumulators that a worker fills before it uses them.
    pub(crate) fn unfilled(context: &ExecContext, entries: usize) -> Result<Self, EngineError> {
        let (tiers, budget) = (&context.tiers, &context.budget);
        let bytes = entries * size_of::<A>();
        Ok(Accumulators {
            memory: tiers.buffer(DataKind::Messages, budget, "accumulators", bytes)?,
            home: None,
            entry: PhantomData,
        })
    }

    /// Returns the memory.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.memory
    }

    fn fill(&mut self, identity: A, node: usize) {
        self.memory.typed_mut::<A>().fill(identity);
        self.home = Some(node);
    }
}

/// Takes `count` of some idle sets, which must exist, near a node if possible.
///
/// A used set lies near the node of its first user. Users of other nodes take it only once their own and unused sets run out.
pub(crate) fn take_near<A>(
    idle: &mut Vec<Accumulators<A>>,
    count: usize,
    node: usize,
) -> Vec<Accumulators<A>> {
    if numa::cpu_nodes().len() > 1 {
        // Sets are taken from the end: first the sets of this node, then unused ones.
        idle.sort_by_key(|set| set.home.map_or(1, |home| 2 * u8::from(home == node)));
    }
    idle.split_off(idle.len() - count)
}

/// Fills sets that were never used, on the thread that will use them.
pub(crate) fn fill_new<A: Accumulator>(sets: &mut [Accumulators<A>], identity: A, node: usize) {
    for set in sets.iter_mut().filter(|set| set.home.is_none()) {
        set.fill(identity, node);
    }
}

impl<A: Element> Deref for Accumulators<A> {
    type Target = [A];
    fn deref(&self) -> &[A] {
        self.memory.typed()
    }
}

impl<A: Element> DerefMut for Accumulators<A> {
    fn deref_mut(&mut self) -> &mut [A] {
        self.memory.typed_mut()
    }
}
