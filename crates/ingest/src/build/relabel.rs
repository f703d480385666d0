//! Edges gathered by ranges of destinations, read back with new indices of destinations and both ends swapped.
//!
//! So only the indices of one range are in memory at a time, and doing it twice calls both ends of every edge by other indices.

use std::ops::Range;

use graphmill_raw::AlignedBuffer;
use graphmill_storage::{CancelToken, Disk, Lease, MemoryBudget};

use super::distribute::{DistributionPlan, Distributor};
use crate::edge_data::EdgeDataBatch;
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, ChunkReader};
use crate::ids::order_window::OrderWindow;

/// Chunks that are read as one task, and chunks of it on their way.
const UNIT_CHUNKS: usize = 16;
const AHEAD: usize = 4;
/// Edges that are relabelled together.
const BLOCK: usize = 1024;
/// Bytes of their lists: two ends, two words of data and a number in the input for each.
const LISTS_BYTES: u64 = (BLOCK * 5 * size_of::<u64>()) as u64;

/// Edges that are gathered.
pub(crate) struct Gathered<'a> {
    pub(crate) plan: &'a DistributionPlan,
    pub(crate) bucket_file: &'a BucketFile,
}

/// One worker's way to read them.
pub(crate) struct GatheredReader {
    chunk_reader: ChunkReader,
    edges: Vec<(u64, u64)>,
    data: EdgeDataBatch,
    sequences: Vec<u64>,
    _lists: Lease,
}

impl GatheredReader {
    /// Bytes of the budget that a reader takes.
    pub(crate) fn bytes(chunk_bytes: usize) -> u64 {
        AHEAD as u64 * AlignedBuffer::footprint(chunk_bytes) + LISTS_BYTES
    }

    pub(crate) fn new(
        gathered: &Gathered<'_>,
        disk: &dyn Disk,
        budget: &MemoryBudget,
    ) -> Result<Self, IngestError> {
        let chunk_bytes = gathered.bucket_file.chunk_bytes;
        Ok(Self {
            chunk_reader: ChunkReader::new(disk, budget, chunk_bytes, AHEAD)?,
            edges: Vec::with_capacity(BLOCK),
            data: EdgeDataBatch::with_capacity(BLOCK, gathered.plan.weights),
            sequences: Vec::with_capacity(BLOCK),
            _lists: budget.lease("edges on their way", LISTS_BYTES)?,
        })
    }
}

impl Gathered<'_> {
    /// The tasks of a range.
    pub(crate) fn units(&self, range: usize) -> u64 {
        self.bucket_file.chunks(range).div_ceil(UNIT_CHUNKS) as u64
    }

    /// The destinations of a range.
    pub(crate) fn destinations(&self, range: usize) -> Range<u64> {
        let cuts = self.plan.layout.cuts();
        cuts[range]..cuts[range + 1]
    }

    /// Passes the edges of one task of a range to `sink`; `indices` holds the range's destinations.
    pub(crate) fn read(
        &self,
        range: usize,
        unit: u64,
        indices: &OrderWindow,
        reader: &mut GatheredReader,
        stop: &CancelToken,
        sink: &mut Distributor<'_>,
    ) -> Result<(), IngestError> {
        let (layout, packing) = (&self.plan.layout, self.plan.packing);
        let start = layout.cuts()[range];
        let from = unit as usize * UNIT_CHUNKS;
        let chunks = from..self.bucket_file.chunks(range).min(from + UNIT_CHUNKS);
        let block_bytes = BLOCK * packing.bytes();
        let mut take = |records: &[u8]| {
            reader.edges.clear();
            reader.data.clear();
            reader.sequences.clear();
            packing.unpack(records, |key, data, sequence| {
                let (_, source, offset) = layout.parts(key);
                reader.edges.push((indices.index(start + offset), source));
                if packing.has_payload() {
                    reader.data.push(data, self.plan.weights);
                    reader.sequences.push(sequence);
                }
            });
            sink.take(&reader.edges, reader.data.data(), |edge| {
                reader.sequences.get(edge).copied().unwrap_or(0)
            })
        };
        let chunk_reader = &mut reader.chunk_reader;
        self.bucket_file
            .read_chunks(range, chunks, chunk_reader, stop, |records| {
                records.chunks(block_bytes).try_for_each(&mut take)
            })
    }
}
