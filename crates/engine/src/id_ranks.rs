//! The ranks of vertices in ascending order of ids, for programs that break ties by id.
//!
//! In order of ids a rank is the index itself and takes no room. Else ranks are unpacked into memory when a pass names them
//! and there is room, or from the stored graph batch by batch.

use std::sync::Arc;

use graphmill_graph::{Batches, FrameReader, Order, StoredGraph};
use graphmill_raw::Segments;
use graphmill_storage::{Budget, Kind, Lease, Tiers};

use crate::error::EngineError;
use crate::vertex_array::Guard;

/// Frames of 64 KiB that unpacking reads ahead.
const FRAMES: usize = 8;

/// Where ranks are read from.
pub(crate) enum IdRanks {
    /// They are the indices.
    Indices,
    /// No pass has named them yet.
    Unknown,
    /// Unpacked in memory, 32 bits each.
    Memory { ranks: Segments<u8>, _lease: Lease },
    /// Unpacked from the stored graph, batch by batch.
    Disk,
}

impl IdRanks {
    pub(crate) fn of(graph: &StoredGraph) -> Self {
        match graph.order() {
            Order::Id => IdRanks::Indices,
            Order::Degree => IdRanks::Unknown,
        }
    }

    /// Whether no pass has to read them.
    pub(crate) fn resident(&self) -> bool {
        matches!(self, IdRanks::Indices | IdRanks::Memory { .. })
    }

    /// Bytes of one in memory.
    pub(crate) fn bytes_of_one(&self) -> u64 {
        match self {
            IdRanks::Memory { .. } => size_of::<u32>() as u64,
            IdRanks::Indices | IdRanks::Unknown | IdRanks::Disk => 0,
        }
    }

    /// Unpacks them into memory, when they fit in 32 bits each and that leaves `reserve` bytes of the budget; returns the bytes
    /// read.
    pub(crate) fn load(
        &mut self,
        graph: &Arc<StoredGraph>,
        (tiers, budget): (&Tiers, &Budget),
        reserve: u64,
    ) -> Result<u64, EngineError> {
        if !matches!(self, IdRanks::Unknown) {
            return Ok(0);
        }
        *self = IdRanks::Disk;
        let batches = graph.batches();
        let bytes = batches.vertices() * size_of::<u32>() as u64;
        let fit = batches.vertices() <= 1 << 32;
        let leased = tiers.leased(Kind::Vertices, bytes);
        if !fit || leased > 0 && budget.available() < leased.saturating_add(reserve) {
            return Ok(0);
        }
        let all = tiers.buffer(Kind::Vertices, budget, "ranks of ids", bytes as usize)?;
        let (mut all, lease) = all.into_parts();
        let mut frames = FrameReader::new(graph, budget, FRAMES)?;
        let mut rest = &mut all.typed_mut::<u32>()[..batches.vertices() as usize];
        for batch in 0..batches.len() {
            let (part, later) = rest.split_at_mut(batches.span(batch) as usize);
            graph.ranks_of(&mut frames, batch, part)?;
            rest = later;
        }
        let cuts = (0..=batches.len()).map(|b| batches.cut(b) as usize * size_of::<u32>());
        *self = IdRanks::Memory {
            ranks: Segments::new(all, cuts.collect()),
            _lease: lease,
        };
        Ok(frames.take_bytes_read())
    }

    /// Those of one batch, where they need not be read.
    pub(crate) fn open(
        &self,
        batches: &Batches,
        batch: usize,
    ) -> Result<Option<Guard<'_>>, EngineError> {
        match self {
            IdRanks::Indices => Ok(Some(Guard::Indices(batches.start(batch)))),
            IdRanks::Memory { ranks, .. } => {
                let ranks = ranks.read(batch).ok_or(EngineError::ForeignArray)?;
                Ok(Some(Guard::Shared(ranks)))
            }
            IdRanks::Unknown | IdRanks::Disk => Ok(None),
        }
    }
}
