//! The values that the graph keeps of its vertices, for programs that name them: out-degrees, and ranks of ids.
//!
//! The store unpacks them into memory when a pass names them and the budget allows it, else batch by batch from the stored graph.
//! In order of ids the rank of an id is the index itself and takes no room.

use std::ops::Range;
use std::sync::Arc;

use graphmill_graph::{Batches, FormatError, Order, PageCache, StoredGraph};
use graphmill_raw::{AlignedBuffer, BorrowedSegments};
use graphmill_storage::{DataKind, Lease, MemoryBudget, Tiers};

use crate::error::EngineError;
use crate::state::vertex_array::{ColumnGuard, own_cuts};

/// Frames of 64 KiB that unpacking into memory reads ahead.
const FRAMES: usize = 8;

/// Which values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphValue {
    /// The ranks of ids in ascending order.
    IdRank,
    /// The out-degrees.
    OutDegree,
}

impl GraphValue {
    pub(crate) const ALL: [GraphValue; 2] = [GraphValue::IdRank, GraphValue::OutDegree];

    /// Names of the buffers with the values of all vertices, and of one batch.
    pub(crate) fn names(self) -> [&'static str; 2] {
        match self {
            GraphValue::IdRank => ["ranks of ids", "the ranks of ids of a batch"],
            GraphValue::OutDegree => ["out-degrees", "the degrees of a batch"],
        }
    }

    /// Unpacks the values of a batch from the stored graph.
    pub(crate) fn unpack<T: TryFrom<u64>>(
        self,
        graph: &StoredGraph,
        frames: &mut PageCache,
        batch: usize,
        out: &mut [T],
    ) -> Result<(), FormatError> {
        match self {
            GraphValue::IdRank => graph.ranks_of(frames, batch, out),
            GraphValue::OutDegree => graph.degrees(graph.forward(), frames, batch, out),
        }
    }
}

/// Where the values are read from.
pub(crate) enum ValueStorage {
    /// They are the indices.
    Indices,
    /// No pass has named them yet.
    Unknown,
    /// Unpacked in memory, 32 bits each.
    Memory {
        values: BorrowedSegments<u8>,
        _lease: Lease,
    },
    /// Unpacked from the stored graph, batch by batch.
    Disk,
}

impl ValueStorage {
    pub(crate) fn new(value: GraphValue, graph: &StoredGraph) -> Self {
        match (value, graph.order()) {
            (GraphValue::IdRank, Order::Id) => ValueStorage::Indices,
            _ => ValueStorage::Unknown,
        }
    }

    /// True if no pass has to read them.
    pub(crate) fn resident(&self) -> bool {
        matches!(self, ValueStorage::Indices | ValueStorage::Memory { .. })
    }

    /// Bytes of one in memory.
    pub(crate) fn bytes_of_one(&self) -> u64 {
        match self {
            ValueStorage::Memory { .. } => size_of::<u32>() as u64,
            ValueStorage::Indices | ValueStorage::Unknown | ValueStorage::Disk => 0,
        }
    }

    /// Unpacks the values of the batches `own` into memory on the first call; returns the bytes read.
    ///
    /// It does so only if they fit in 32 bits each and leave `reserve` bytes of the budget.
    pub(crate) fn load(
        &mut self,
        value: GraphValue,
        graph: &Arc<StoredGraph>,
        own: &Range<usize>,
        (tiers, budget): (&Tiers, &MemoryBudget),
        reserve: u64,
    ) -> Result<u64, EngineError> {
        if !matches!(self, ValueStorage::Unknown) {
            return Ok(0);
        }
        *self = ValueStorage::Disk;
        let batches = graph.batches();
        let vertices = batches.cut(own.end) - batches.cut(own.start);
        let bytes = vertices * size_of::<u32>() as u64;
        let fit = value == GraphValue::OutDegree || batches.vertices() <= 1 << 32;
        let leased = tiers.leased(DataKind::Vertices, bytes);
        let of_nodes = tiers.free_on_nodes(DataKind::Vertices);
        let fit = fit && of_nodes >= AlignedBuffer::footprint(bytes as usize);
        if !fit || leased > 0 && budget.available() < leased.saturating_add(reserve) {
            return Ok(0);
        }
        let all = tiers.buffer(DataKind::Vertices, budget, value.names()[0], bytes as usize)?;
        let (mut all, _lease) = all.into_parts();
        let mut frames = PageCache::new(graph, budget, FRAMES)?;
        let mut rest = &mut all.typed_mut::<u32>()[..vertices as usize];
        for batch in own.clone() {
            let (part, later) = rest.split_at_mut(batches.span(batch) as usize);
            match value.unpack(graph, &mut frames, batch, part) {
                Ok(()) => rest = later,
                Err(FormatError::DegreeTooLarge { .. }) => return Ok(frames.take_bytes_read()),
                Err(error) => return Err(error.into()),
            }
        }
        let cuts = own_cuts(batches, own, size_of::<u32>());
        *self = ValueStorage::Memory {
            values: BorrowedSegments::new(all, cuts),
            _lease,
        };
        Ok(frames.take_bytes_read())
    }

    /// Returns the values of one batch if they are in memory, otherwise `None`.
    pub(crate) fn open(
        &self,
        batches: &Batches,
        batch: usize,
    ) -> Result<Option<ColumnGuard<'_>>, EngineError> {
        Ok(match self {
            ValueStorage::Indices => Some(ColumnGuard::Indices(batches.start(batch))),
            ValueStorage::Memory { values, .. } => {
                let values = values.read(batch).ok_or(EngineError::ForeignArray)?;
                Some(ColumnGuard::Shared(values))
            }
            ValueStorage::Unknown | ValueStorage::Disk => None,
        })
    }
}
