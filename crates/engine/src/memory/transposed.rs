//! What a transposed copy of the chunks takes of the memory budget, while a pass makes it and later.

use graphmill_graph::{ChunkShape, ChunkWriter, FileSide, FormatError, GraphDims};

/// Bytes of a chunk at least, if memory is small.
const CHUNK_BYTES_MIN: usize = 4 << 10;

/// Bytes of a writer without workers, of each worker, and of the directory, which stays.
pub(crate) type CopyBytes = [u64; 3];

/// Returns copies of `arcs` arcs in chunks of `shape` and in shorter ones, the longest first.
pub(crate) fn copies(
    shape: &ChunkShape,
    arcs: u64,
) -> impl Iterator<Item = Result<(ChunkShape, CopyBytes), FormatError>> {
    let half = |bytes: &usize| (*bytes > CHUNK_BYTES_MIN).then(|| (bytes / 2).max(CHUNK_BYTES_MIN));
    let longest = shape.chunk_bytes.max(CHUNK_BYTES_MIN);
    std::iter::successors(Some(longest), half).map(move |chunk_bytes| {
        let shape = ChunkShape {
            chunk_bytes,
            ..shape.clone()
        };
        let writer = ChunkWriter::memory(&shape, 0)?;
        let worker = ChunkWriter::memory(&shape, 1)? - writer;
        let directory = ChunkWriter::tables_memory(&shape, arcs)?;
        Ok((shape, [writer, worker, directory]))
    })
}

/// Returns the bytes of the copy that takes least; 0 if passes of the graph make none.
pub(crate) fn least(graph: &GraphDims) -> CopyBytes {
    let chunks = graph
        .chunks
        .filter(|_| graph.orientations == 1 && !graph.symmetric);
    let of_chunks = chunks.and_then(|chunks| {
        let shape = ChunkShape {
            batches: graph.batches.clone(),
            edge: graph.edge,
            chunk_bytes: chunks.chunk_bytes,
            side: FileSide::Reverse,
            file: 0,
        };
        // Chunks are spread evenly over the ranks, batches less so.
        let batches = graph.batches.len().max(1);
        let own = graph
            .own
            .as_ref()
            .map_or(batches, |own| batches.min(2 * own.len()));
        let arcs = u128::from(chunks.arcs) * own as u128 / batches as u128;
        let copies = copies(&shape, arcs as u64).filter_map(Result::ok);
        copies
            .map(|(_, bytes)| bytes)
            .min_by_key(|bytes| bytes.iter().sum::<u64>())
    });
    of_chunks.unwrap_or_default()
}
