//! The ranks of vertices in ascending order of ids, for programs that break ties by id.
//!
//! In order of ids a rank is the index itself and takes no room. Else ranks are unpacked into memory when a pass names them
//! and there is room, or from the stored graph batch by batch.

use std::ops::Range;
use std::sync::Arc;

use graphmill_graph::{Batches, Order, PageCache, StoredGraph};
use graphmill_raw::BorrowedSegments;
use graphmill_storage::{DataKind, Lease, MemoryBudget, Tiers};

use crate::error::EngineError;
use crate::state::vertex_array::{ColumnGuard, own_cuts};

/// Frames of 64 KiB that unpacking reads ahead.
const FRAMES: usize = 8;

/// Where ranks are read from.
pub(crate) enum IdOrder {
    /// They are the indices.
    Indices,
    /// No pass has named them yet.
    Unknown,
    /// Unpacked in memory, 32 bits each.
    Memory {
        ranks: BorrowedSegments<u8>,
        _lease: Lease,
    },
    /// Unpacked from the stored graph, batch by batch.
    Disk,
}

impl IdOrder {
    pub(crate) fn of(graph: &StoredGraph) -> Self {
        match graph.order() {
            Order::Id => IdOrder::Indices,
            Order::Degree => IdOrder::Unknown,
        }
    }

    /// True if no pass has to read them.
    pub(crate) fn resident(&self) -> bool {
        matches!(self, IdOrder::Indices | IdOrder::Memory { .. })
    }

    /// Bytes of one in memory.
    pub(crate) fn bytes_of_one(&self) -> u64 {
        match self {
            IdOrder::Memory { .. } => size_of::<u32>() as u64,
            IdOrder::Indices | IdOrder::Unknown | IdOrder::Disk => 0,
        }
    }

    /// Unpacks the ordinals of some batches into memory; returns the bytes read.
    ///
    /// It does so only if they fit in 32 bits each and leave `reserve` bytes of the budget.
    pub(crate) fn load(
        &mut self,
        graph: &Arc<StoredGraph>,
        own: &Range<usize>,
        (tiers, budget): (&Tiers, &MemoryBudget),
        reserve: u64,
    ) -> Result<u64, EngineError> {
        if !matches!(self, IdOrder::Unknown) {
            return Ok(0);
        }
        *self = IdOrder::Disk;
        let batches = graph.batches();
        let vertices = batches.cut(own.end) - batches.cut(own.start);
        let bytes = vertices * size_of::<u32>() as u64;
        let fit = batches.vertices() <= 1 << 32;
        let leased = tiers.leased(DataKind::Vertices, bytes);
        if !fit || leased > 0 && budget.available() < leased.saturating_add(reserve) {
            return Ok(0);
        }
        let all = tiers.buffer(DataKind::Vertices, budget, "ranks of ids", bytes as usize)?;
        let (mut all, lease) = all.into_parts();
        let mut frames = PageCache::new(graph, budget, FRAMES)?;
        let mut rest = &mut all.typed_mut::<u32>()[..vertices as usize];
        for batch in own.clone() {
            let (part, later) = rest.split_at_mut(batches.span(batch) as usize);
            graph.ranks_of(&mut frames, batch, part)?;
            rest = later;
        }
        let cuts = own_cuts(batches, own, size_of::<u32>());
        *self = IdOrder::Memory {
            ranks: BorrowedSegments::new(all, cuts),
            _lease: lease,
        };
        Ok(frames.take_bytes_read())
    }

    /// Returns the ordinals of one batch, if they need not be read.
    pub(crate) fn open(
        &self,
        batches: &Batches,
        batch: usize,
    ) -> Result<Option<ColumnGuard<'_>>, EngineError> {
        match self {
            IdOrder::Indices => Ok(Some(ColumnGuard::Indices(batches.start(batch)))),
            IdOrder::Memory { ranks, .. } => {
                let ranks = ranks.read(batch).ok_or(EngineError::ForeignArray)?;
                Ok(Some(ColumnGuard::Shared(ranks)))
            }
            IdOrder::Unknown | IdOrder::Disk => Ok(None),
        }
    }
}
