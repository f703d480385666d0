//! Filtering lists: which messages of this rank each other rank needs (DFOGraph, section 4.3).
//!
//! A rank needs a message if its source has edges to a batch that the rank owns. The lists are a [`RoutingTable`]
//! (`messages/routing_table.rs`) whose groups are the other ranks. The dispatch graph is one whose groups are the column groups of a rank.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use graphmill_graph::Batches;
use graphmill_raw::lock;
use graphmill_storage::Lease;

use crate::comm::wire::PEERS;
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::messages::routing_size::TableMemory;
use crate::messages::routing_table::{ColumnGroups, RoutingTable};
use crate::messages::run_codec::WORD;

/// The lists may take this fraction of the free budget: one part in 8.
const SHARE: u64 = 8;

/// Returns the memory budgets to try for the filter lists of one orientation, largest first.
///
/// The first holds all lists in memory if they are worth it, the second leaves them on disk. Empty if even the second exceeds
/// its share of free memory.
pub(crate) fn filter_budgets(
    batches: &Batches,
    own: Range<usize>,
    ranks: usize,
    (orientations, free): (u64, u64),
) -> impl Iterator<Item = u64> + use<> {
    let (bytes, selected) = (lists_memory(batches, own, ranks), selected_bytes(batches));
    let share = free / SHARE / orientations;
    let [least, most] = [bytes.least, bytes.most].map(|bytes| bytes + selected);
    let budgets = [most.min(share), least].into_iter();
    budgets.filter(move |_| least <= share)
}

/// Returns the bytes of the budget that the lists take.
pub(crate) fn lists_memory(batches: &Batches, own: Range<usize>, ranks: usize) -> TableMemory {
    let lists = own.len() * (ranks - 1);
    TableMemory::new(batches, own, ranks - 1, lists, PEERS)
}

/// Which of the other ranks one is.
fn others(rank: usize, other: usize) -> usize {
    other - usize::from(other > rank)
}

/// Returns the bytes of selected sources of a batch, for all ranks that are sent to at the same time.
pub(crate) fn selected_bytes(batches: &Batches) -> u64 {
    batches.widest().div_ceil(WORD as u64) * 8 * PEERS as u64
}

/// The filtering lists of one rank's vertices.
pub(crate) struct MessageFilter {
    rank: usize,
    /// One a batch and other rank.
    lists: RoutingTable,
    /// The sources of a batch that sent a message which a rank needs, one set for each peer index.
    selected: Vec<Mutex<Vec<u64>>>,
    _lease: Lease,
}

impl MessageFilter {
    /// Builds the lists in at most `bytes` bytes, or in a file of that name.
    ///
    /// Returns them with the bytes read and written. Returns `None` if `bytes` is too small to build them.
    pub(crate) fn load(
        context: &ExecContext,
        file: &str,
        bytes: u64,
    ) -> Result<Option<(Self, [u64; 2])>, EngineError> {
        let (ranks, batches) = (&context.ranks, &context.batches);
        let own = ranks.rank();
        let other = |owner| (owner != own).then(|| others(own, owner));
        let owners = (0..batches.len()).map(|batch| other(ranks.owner(batch)));
        let owners: Vec<_> = owners.collect();
        let groups = ColumnGroups {
            of: ranks.own(),
            count: ranks.count() - 1,
            bytes: lists_memory(batches, ranks.own(), ranks.count()),
            readers: PEERS,
            group_of: Box::new(move |_| owners.clone()),
        };
        let selected = selected_bytes(batches);
        let _lease = (context.budget).lease("messages that ranks need", selected)?;
        let words = (batches.widest() as usize).div_ceil(WORD);
        let path = context.scratch.join(file);
        let built = RoutingTable::build(context, &groups, &path, bytes.saturating_sub(selected))?;
        Ok(built.map(|(lists, traffic)| {
            let filter = MessageFilter {
                rank: own,
                lists,
                selected: (0..PEERS).map(|_| Mutex::new(vec![0; words])).collect(),
                _lease,
            };
            (filter, traffic)
        }))
    }

    /// Bytes read from disk since the last call.
    pub(crate) fn take_bytes_read(&self) -> u64 {
        self.lists.take_bytes_read()
    }

    /// True if messages to a rank are worth filtering.
    ///
    /// The `active_own` vertices of this rank emit at most one message of `width` bytes each.
    ///
    /// They are not if filtering drops nearly none: fewer than one vertex in each scanned word of bits or, with lists
    /// on disk, less than the bytes read of these. DFOGraph tests whether the list of sources is `filter_ratio` times as long as
    /// the messages.
    pub(crate) fn is_worthwhile(
        &self,
        context: &ExecContext,
        to: usize,
        active_own: u64,
        width: usize,
    ) -> bool {
        let to = others(self.rank, to);
        let (listed, vertices) = (self.lists.listed[to], context.arrays.vertices());
        if let Some(ratio) = context.options.filter_ratio {
            return (listed as f64) < ratio * active_own as f64;
        }
        is_worthwhile(
            [listed, vertices, active_own],
            width,
            self.lists.on_disk[to],
        )
    }

    /// True if a rank needs any message of a batch.
    pub(crate) fn needs_any(&self, batch: usize, to: usize) -> bool {
        self.lists.has(batch, others(self.rank, to))
    }

    /// Announces that the sender of that peer index will select what a rank needs of a batch.
    pub(crate) fn prefetch(
        &self,
        batch: usize,
        to: usize,
        peer_index: usize,
    ) -> Result<(), EngineError> {
        let to = std::iter::once(others(self.rank, to));
        self.lists.want(batch, to, peer_index)
    }

    /// Selects the sources of a batch that sent a message which a rank needs, as was said.
    pub(crate) fn select(
        &self,
        batch: usize,
        to: usize,
        present: &[u64],
        peer_index: usize,
    ) -> Result<(), EngineError> {
        let selected = &mut lock(&self.selected[peer_index])[..present.len()];
        let of = (batch, others(self.rank, to));
        self.lists.select(of, present, peer_index, selected)?;
        Ok(())
    }

    /// The bits of those that were selected last.
    pub(crate) fn selected(&self, peer_index: usize) -> MutexGuard<'_, Vec<u64>> {
        lock(&self.selected[peer_index])
    }
}

/// True if filtering drops enough messages.
///
/// It compares the listed, all and the active vertices of this rank, the bytes of a message, and the bytes of lists
/// read from disk.
pub(crate) fn is_worthwhile(
    [listed, vertices, active_own]: [u64; 3],
    width: usize,
    on_disk: u64,
) -> bool {
    let rest = vertices.saturating_sub(listed);
    let share = rest as f64 / (vertices as f64).max(1.0);
    let kept_back = active_own as f64 * share * width as f64;
    rest * WORD as u64 >= vertices && kept_back >= on_disk as f64
}

#[cfg(test)]
mod tests;
