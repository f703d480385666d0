//! What a transposed copy of the chunks takes of the memory budget, while a pass makes it and later.

use graphmill_graph::{ChunkShape, ChunkWriter, FileSide, FormatError, GraphDims};

/// Bytes of a chunk at least, if memory is small.
const CHUNK_BYTES_MIN: usize = 4 << 10;

/// A transposed copy in chunks of some length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransposedCopy {
    pub(crate) chunk_bytes: usize,
    /// Bytes that a writer takes without workers, and for each of them.
    writer: [u64; 2],
    /// Bytes that stay as long as the copy.
    pub(crate) directory: u64,
}

impl TransposedCopy {
    /// Returns the copies of `arcs` arcs in chunks of `shape` or shorter ones, the longest first.
    pub(crate) fn choices(
        shape: &ChunkShape,
        arcs: u64,
    ) -> impl Iterator<Item = Result<Self, FormatError>> {
        let most = shape.chunk_bytes.max(CHUNK_BYTES_MIN);
        let shorter =
            |bytes: &usize| (*bytes > CHUNK_BYTES_MIN).then(|| (bytes / 2).max(CHUNK_BYTES_MIN));
        std::iter::successors(Some(most), shorter).map(move |chunk_bytes| {
            let shape = ChunkShape {
                chunk_bytes,
                ..shape.clone()
            };
            let [none, one] = [0, 1].map(|lanes| ChunkWriter::memory(&shape, lanes));
            let fixed = none?;
            let starts = size_of::<usize>() * (shape.batches.len() + 1);
            Ok(TransposedCopy {
                chunk_bytes,
                writer: [fixed, one? - fixed],
                directory: ChunkWriter::tables_memory(&shape, arcs)? + starts as u64,
            })
        })
    }

    /// Returns the copy that takes least, if passes of a graph make one.
    pub(crate) fn least(graph: &GraphDims) -> Option<Self> {
        let chunks = graph
            .chunks
            .filter(|_| graph.orientations == 1 && !graph.symmetric)?;
        let shape = ChunkShape {
            batches: graph.batches.clone(),
            edge: graph.edge,
            chunk_bytes: chunks.chunk_bytes,
            side: FileSide::Reverse,
            file: 0,
        };
        // Chunks are spread evenly over the ranks, batches less so.
        let batches = graph.batches.len().max(1) as u128;
        let own = graph
            .own
            .as_ref()
            .map_or(batches, |own| 2 * own.len() as u128);
        let share = u128::from(chunks.arcs) * own.min(batches) / batches;
        let copies = Self::choices(&shape, share as u64).filter_map(Result::ok);
        copies.min_by_key(|copy| copy.making(1))
    }

    /// Returns the bytes that `workers` workers take to make it, without the scan of the chunks.
    pub(crate) fn making(&self, workers: usize) -> u64 {
        let [fixed, each] = self.writer;
        fixed + workers as u64 * each + self.directory
    }
}
