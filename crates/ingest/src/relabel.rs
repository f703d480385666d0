//! The arcs of a graph that is stored in order of ids, read back column by column, their ends called by other indices.
//!
//! The indices of the sources of some batches, and of the destinations of some, are in memory: a worker reads the cells between
//! them, which lie side by side in a column, and looks no further than these two lists.

use std::ops::Range;
use std::sync::Arc;

use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockView, EdgeKind, Extent, ExtentReader, FRAME_BYTES, StoredGraph,
};
use graphmill_storage::{Budget, Disk, Lease, Queue, Stop};

use crate::deal::Slice;
use crate::error::IngestError;
use crate::policy::value;
use crate::spool::Edges;

/// Bytes of a read, and reads on their way.
const CHUNK_BYTES: usize = FRAME_BYTES as usize;
const DEPTH: usize = 4;
/// Bytes of the lists of a block: sources and destinations, as they are stored and as they are called, and weights.
const LIST_BYTES: u64 = 40 * BLOCK_EDGES_MAX as u64;

/// A stream of bytes with a queue of its own.
struct Stream {
    reader: ExtentReader,
    queue: Box<dyn Queue>,
}

impl Stream {
    fn new(
        graph: &Arc<StoredGraph>,
        disk: &dyn Disk,
        budget: &Budget,
    ) -> Result<Self, IngestError> {
        Ok(Self {
            reader: ExtentReader::new(graph, budget, CHUNK_BYTES, DEPTH)?,
            queue: disk.queue(DEPTH)?,
        })
    }
}

/// One worker's way to read arcs.
pub(crate) struct ArcReader {
    graph: Arc<StoredGraph>,
    cells: Stream,
    weights: Option<Stream>,
    sources: Box<[u32; BLOCK_EDGES_MAX]>,
    /// By source of a block, its index.
    called: Vec<u64>,
    destinations: Box<[u32; BLOCK_EDGES_MAX]>,
    arcs: Vec<(u64, u64)>,
    values: Vec<f64>,
    _lists: Lease,
}

impl ArcReader {
    /// Bytes of the budget that a reader takes of a graph with such edges.
    pub(crate) fn bytes(edge: EdgeKind) -> u64 {
        let streams = if edge == EdgeKind::None { 1 } else { 2 };
        streams * ExtentReader::memory(CHUNK_BYTES, DEPTH) + LIST_BYTES
    }

    pub(crate) fn new(graph: &Arc<StoredGraph>, budget: &Budget) -> Result<Self, IngestError> {
        let disk = &**graph.disk();
        Ok(Self {
            graph: Arc::clone(graph),
            _lists: budget.lease("blocks of edges", LIST_BYTES)?,
            cells: Stream::new(graph, disk, budget)?,
            weights: match graph.edge_kind() {
                EdgeKind::None => None,
                _ => Some(Stream::new(graph, disk, budget)?),
            },
            sources: Box::new([0; BLOCK_EDGES_MAX]),
            called: Vec::with_capacity(BLOCK_EDGES_MAX),
            destinations: Box::new([0; BLOCK_EDGES_MAX]),
            arcs: Vec::with_capacity(BLOCK_EDGES_MAX),
            values: Vec::with_capacity(BLOCK_EDGES_MAX),
        })
    }

    /// Hands the arcs of a column that come from some source batches to `sink`. `from` and `to` have the indices of at least
    /// those sources, and of the destinations of the column.
    pub(crate) fn read(
        &mut self,
        column: usize,
        source_batches: &Range<usize>,
        from: &Slice,
        to: &Slice,
        stop: &Stop,
        sink: &mut impl Edges,
    ) -> Result<(), IngestError> {
        let graph = Arc::clone(&self.graph);
        let kind = graph.edge_kind();
        let cells = graph.column(column).cells();
        let position = |batch| cells.partition_point(|cell| cell.source_batch() < batch);
        let cells = &cells[position(source_batches.start)..position(source_batches.end)];
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else {
            return Ok(());
        };
        let joined = |first: Extent, last: Extent| Extent {
            bytes: first.bytes.start..last.bytes.end,
            ..first
        };
        let extents = [first, last].map(|cell| graph.data_extent(column, cell));
        let [begin, end] = extents;
        self.cells.reader.start(vec![joined(begin, end)])?;
        if let Some(weights) = &mut self.weights {
            let [begin, end] = [first, last].map(|cell| graph.weights_extent(column, cell));
            weights.reader.start(vec![joined(begin, end)])?;
        }
        let batches = graph.batches();
        let destinations = to.from(batches.start(column));
        for cell in cells {
            if stop.requested() {
                return Err(IngestError::Stopped);
            }
            let start = batches.start(cell.source_batch());
            let global_offset = batches.start(column).wrapping_sub(start) as i64;
            let sources = from.from(start);
            let broken = || graph.broken_cell(column, cell);
            let mut left = cell.edges();
            while left > 0 {
                let bytes = self.cells.reader.wait(&mut *self.cells.queue)?;
                let parsed = BlockView::parse(bytes.unwrap_or(&[]), global_offset);
                let (block, used) = parsed.map_err(|_| broken())?.ok_or_else(broken)?;
                let edges = block.edges();
                left = left.checked_sub(edges as u64).ok_or_else(broken)?;
                self.values.clear();
                if let Some(weights) = &mut self.weights {
                    let bytes = edges * kind.bytes();
                    let found = weights.reader.wait(&mut *weights.queue)?;
                    let found = found
                        .and_then(|found| found.get(..bytes))
                        .ok_or_else(broken)?;
                    let weight = |bits: &[u8]| value(word(bits), kind);
                    self.values
                        .extend(found.chunks_exact(kind.bytes()).map(weight));
                    weights.reader.consume(bytes);
                }
                let groups = block.sources(&mut self.sources);
                self.called.clear();
                let groups = self.sources.get(..groups).unwrap_or(&[]);
                self.called
                    .extend(groups.iter().map(|source| sources.of(*source)));
                self.arcs.clear();
                let (called, arcs) = (&self.called, &mut self.arcs);
                block.for_each_edge(&mut self.destinations, |group, destination, _| {
                    let source = called.get(group).copied().unwrap_or(u64::MAX);
                    arcs.push((source, destinations.of(destination)));
                });
                sink.integers(&self.arcs, &self.values, 0)?;
                self.cells.reader.consume(used);
            }
        }
        Ok(())
    }
}

/// A little-endian number of at most 8 bytes.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
