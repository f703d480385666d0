//! The out-degrees of vertices, for programs that name them.
//!
//! The store unpacks them into memory when a pass names them and the budget allows it, else batch by batch from the stored graph.

use std::ops::Range;
use std::sync::Arc;

use graphmill_graph::{FormatError, PageCache, StoredGraph};
use graphmill_raw::BorrowedSegments;
use graphmill_storage::{DataKind, Lease, MemoryBudget, Tiers};

use crate::error::EngineError;
use crate::state::vertex_array::{ColumnGuard, own_cuts};

/// Frames of 64 KiB that unpacking a batch's degrees reads ahead.
const DEGREE_FRAMES: usize = 8;

/// Where out-degrees are read from.
pub(crate) enum DegreeStorage {
    /// No pass has named them yet.
    Unknown,
    /// Unpacked in memory, 32 bits each.
    Memory {
        degrees: BorrowedSegments<u8>,
        _lease: Lease,
    },
    /// Unpacked from the stored graph, batch by batch.
    Disk,
}

impl DegreeStorage {
    /// True if the degrees are unpacked in memory.
    pub(crate) fn resident(&self) -> bool {
        matches!(self, DegreeStorage::Memory { .. })
    }

    /// Unpacks the degrees of the batches `own` into memory on the first call; returns the bytes read.
    ///
    /// It does so only if they fit in 32 bits each and leave `reserve` bytes of the budget.
    pub(crate) fn load(
        &mut self,
        graph: &Arc<StoredGraph>,
        own: &Range<usize>,
        (tiers, budget): (&Tiers, &MemoryBudget),
        reserve: u64,
    ) -> Result<u64, EngineError> {
        if !matches!(self, DegreeStorage::Unknown) {
            return Ok(0);
        }
        *self = DegreeStorage::Disk;
        let batches = graph.batches();
        let vertices = batches.cut(own.end) - batches.cut(own.start);
        let bytes = vertices * size_of::<u32>() as u64;
        let leased = tiers.leased(DataKind::Vertices, bytes);
        if leased > 0 && budget.available() < leased.saturating_add(reserve) {
            return Ok(0);
        }
        let all = tiers.buffer(DataKind::Vertices, budget, "out-degrees", bytes as usize)?;
        let (mut all, lease) = all.into_parts();
        let mut frames = PageCache::new(graph, budget, DEGREE_FRAMES)?;
        let mut rest = &mut all.typed_mut::<u32>()[..vertices as usize];
        for batch in own.clone() {
            let (part, later) = rest.split_at_mut(batches.span(batch) as usize);
            match graph.degrees(graph.forward(), &mut frames, batch, part) {
                Ok(()) => rest = later,
                Err(FormatError::DegreeTooLarge { .. }) => return Ok(frames.take_bytes_read()),
                Err(error) => return Err(error.into()),
            }
        }
        let cuts = own_cuts(batches, own, size_of::<u32>());
        *self = DegreeStorage::Memory {
            degrees: BorrowedSegments::new(all, cuts),
            _lease: lease,
        };
        Ok(frames.take_bytes_read())
    }

    /// Borrows the degrees of a batch. Returns `None` if they are not in memory.
    pub(crate) fn open(&self, batch: usize) -> Result<Option<ColumnGuard<'_>>, EngineError> {
        match self {
            DegreeStorage::Memory { degrees, .. } => {
                let narrow = degrees.read(batch).ok_or(EngineError::ForeignArray)?;
                Ok(Some(ColumnGuard::Shared(narrow)))
            }
            DegreeStorage::Unknown | DegreeStorage::Disk => Ok(None),
        }
    }
}
