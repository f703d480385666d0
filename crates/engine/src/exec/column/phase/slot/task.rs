//! A column group at work: its targets, its cells in the order of work, and the worker's state for it.

use std::collections::{BTreeMap, BTreeSet};

use graphmill_graph::Cell;

use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::phase::slot::block_ranges::CellPart;
use crate::exec::column::phase::slot::input::{InputState, MessageInput};
use crate::messages::batch::BatchMessages;
use crate::messages::buffer::MessageBuffer;
use crate::program::edge::EdgeProgram;
use crate::schedule::tasks::StripRef;
use crate::state::vertex_array::BatchRows;

/// The progress of a step on a group.
pub(crate) enum TaskProgress {
    Worked,
    /// Cells are not read yet.
    Starved,
    /// Messages are not there yet.
    Early,
    Done,
}

/// One cell of a group, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct CellTask<'p> {
    /// The target of the group that it folds into.
    pub(crate) target: usize,
    pub(crate) column: usize,
    pub(crate) cell: &'p Cell,
    /// The batch whose messages it carries, and the position of that batch in the order of the group.
    pub(crate) from: usize,
    pub(crate) number: usize,
    /// Where its bytes and its edges begin and end, from the first of the cell.
    pub(crate) part: CellPart,
    /// True if a later item of the group carries them too.
    pub(crate) again: bool,
    /// The cell's bytes and weights, if they are cached.
    pub(crate) pinned: Option<(&'p [u8], &'p [u8])>,
}

/// A column group in progress.
pub(crate) struct GroupTask<'p, P: EdgeProgram> {
    pub(crate) targets: Vec<StripRef>,
    pub(crate) accumulators: Vec<Accumulators<P::Accumulator>>,
    pub(crate) items: Vec<CellTask<'p>>,
    pub(crate) at: usize,
    /// By target: whether an edge was folded into it.
    pub(crate) folded: Vec<bool>,
    /// Bytes and edges done of the current item, and bytes of weights skipped.
    pub(crate) bytes: usize,
    pub(crate) edges: usize,
    pub(crate) weights_skipped: usize,
    pub(crate) input: MessageInput,
    pub(crate) streams: Option<CellStreams>,
    pub(crate) messages: Option<(usize, BatchMessages<'p, P::Message>)>,
    /// By target: the rows that a gather asks whether they want messages, kept until they are applied to.
    pub(crate) rows: Vec<Option<BatchRows<'p>>>,
}

impl<'p, P: EdgeProgram> GroupTask<'p, P> {
    /// Moves on behind an item; returns the messages that it was the last to fold.
    pub(crate) fn next_item(
        &mut self,
        item: &CellTask<'p>,
    ) -> Option<(usize, BatchMessages<'p, P::Message>)> {
        self.at += 1;
        (self.bytes, self.edges) = (0, 0);
        let next = self.items.get(self.at);
        let is_last = next.is_none_or(|next| next.from != item.from);
        self.messages.take_if(|_| is_last)
    }

    /// Loads the messages of an item if they have arrived.
    pub(crate) fn next_messages(
        &mut self,
        buffer: &'p MessageBuffer<P::Message>,
        item: &CellTask<'p>,
        worker: usize,
    ) -> Result<InputState, EngineError> {
        if let Some((batch, _)) = &self.messages
            && *batch == item.from
        {
            return Ok(InputState::Here);
        }
        if !buffer.is_ready(item.from) {
            return Ok(InputState::Early);
        }
        if buffer.in_memory() {
            if buffer.count(item.from) == 0 {
                return Ok(InputState::Nothing);
            }
        } else {
            self.input.prefetch_ready(buffer, worker)?;
            if self.input.prefetched <= item.number {
                return Ok(InputState::Early);
            }
            if self.input.empty.contains(&item.from) {
                return Ok(InputState::Nothing);
            }
        }
        let messages = buffer.read(item.from, worker)?;
        self.messages = Some((item.from, messages));
        Ok(InputState::Here)
    }
}

/// Sorts the items of a group, which carry the messages of the batches `froms`, by the order of work.
///
/// The worker holds a limited number of batches. Compiled once, not for each program.
pub(crate) fn put_in_order(items: &mut [CellTask<'_>], froms: &[usize], window_batches: usize) {
    let numbers: BTreeMap<usize, usize> = froms.iter().copied().zip(0..).collect();
    for item in items.iter_mut() {
        item.number = numbers.get(&item.from).copied().unwrap_or(0);
    }
    items.sort_by_key(|item| (item.number / window_batches, item.target, item.number));
    // Within one turn the targets come one after the other, so only the last of them is done with the messages.
    let mut later: BTreeSet<usize> = BTreeSet::new();
    for item in items.iter_mut().rev() {
        item.again = !later.insert(item.from);
    }
}
