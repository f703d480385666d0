//! How an import in the stream layout shares out its memory.

use graphmill_graph::{ChunkShape, ChunkWriter, DegreeWriter, FormatError};

use crate::external::shuffle::BucketShuffle;
use crate::options::ImportOptions;

/// Bytes beside chunks: their entries, checksums, the tables of small things.
const TABLES_BYTES: u64 = 512 << 10;
/// Bytes of a chunk down to which it shrinks before out-degrees are counted in a second reading.
const COUNTING_CHUNK_MIN: usize = 1 << 20;

/// How memory is shared out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinSizes {
    pub(crate) chunk_bytes: usize,
    pub(crate) lanes: u64,
    /// Out-degrees are counted while chunks are filled.
    pub(crate) counts_degrees: bool,
}

/// What the memory of the step *bin* depends on.
pub(crate) struct BinDemand<'d> {
    /// The chunks of each side.
    pub(crate) shapes: &'d [ChunkShape],
    pub(crate) lanes: u64,
    /// Bytes of a reader of edges.
    pub(crate) reader_bytes: u64,
    pub(crate) ranks: usize,
}

impl BinDemand<'_> {
    /// Returns the longest chunks and the most workers that `available` bytes hold.
    ///
    /// The inner error is the least number of bytes.
    pub(crate) fn sizes(
        &self,
        options: &ImportOptions,
        available: u64,
    ) -> Result<Result<BinSizes, u64>, FormatError> {
        let (most, least) = options.chunk_sizes();
        let counting_least = COUNTING_CHUNK_MIN.min(most);
        let mut needed = 0;
        for (lanes, counts_degrees, floor) in [
            (self.lanes, true, counting_least),
            (self.lanes, false, least),
            (1, false, least),
        ] {
            let mut chunk_bytes = most;
            while chunk_bytes >= floor {
                let sizes = BinSizes {
                    chunk_bytes,
                    lanes,
                    counts_degrees,
                };
                needed = self.bytes(sizes)?;
                if needed <= available {
                    return Ok(Ok(sizes));
                }
                chunk_bytes /= 2;
            }
        }
        Ok(Err(needed))
    }

    /// Bytes of the budget that the step takes.
    fn bytes(&self, sizes: BinSizes) -> Result<u64, FormatError> {
        let (mut all, mut degrees, mut sealed, mut last) = (0, 0, 0, 0);
        for shape in self.shapes {
            let shape = ChunkShape {
                chunk_bytes: sizes.chunk_bytes,
                ..shape.clone()
            };
            all += ChunkWriter::memory(&shape, sizes.lanes as usize)?;
            let batches = &shape.batches;
            if sizes.counts_degrees {
                degrees += ChunkWriter::degrees_memory(batches);
            }
            // No arc takes less than a byte, so its data bound the data of a chunk.
            sealed = shape.chunk_bytes * (1 + shape.edge.bytes());
            let reading = if sizes.counts_degrees {
                0
            } else {
                2 * shape.chunk_bytes as u64
            };
            last = DegreeWriter::memory(batches.vertices()) + 8 * batches.widest() + reading;
        }
        if self.ranks > 1 {
            all += BucketShuffle::memory(self.ranks, sealed);
        }
        Ok(TABLES_BYTES + degrees + last.max(all + sizes.lanes * self.reader_bytes))
    }
}
