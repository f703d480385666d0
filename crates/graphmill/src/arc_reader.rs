//! All arcs of a stored graph one by one, cell by cell or chunk by chunk, every page checked as it is read.

use std::sync::Arc;

use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockView, Cell, ChunkSet, ChunkSetReader, DISK_PAGE_BYTES, EdgeKind,
    PageCache, StoredGraph,
};
use graphmill_storage::{CancelToken, Lease, MemoryBudget};

use crate::error::{Error, check_stop};

/// Bytes of a cell that are read at a time; they begin anywhere in a page.
const CHUNK_BYTES: u64 = 8 * DISK_PAGE_BYTES;
/// Pages that such a chunk lies in.
const FRAMES: usize = 9;
/// Bytes of the lists of a reader: a chunk, and source, destination and weight of a block's edges.
const LIST_BYTES: u64 = CHUNK_BYTES + 16 * BLOCK_EDGES_MAX as u64;

/// Reads the arcs of a graph.
pub(crate) struct ArcReader {
    graph: Arc<StoredGraph>,
    budget: MemoryBudget,
    cells: PageCache,
    /// Where the arcs have weights and they are wanted.
    weights: Option<PageCache>,
    bytes: Vec<u8>,
    weight_bytes: Vec<u8>,
    sources: Box<[u32; BLOCK_EDGES_MAX]>,
    destinations: Box<[u32; BLOCK_EDGES_MAX]>,
    _lists: Lease,
}

impl ArcReader {
    /// Bytes of the budget that a reader takes.
    pub(crate) const BYTES: u64 = 2 * FRAMES as u64 * DISK_PAGE_BYTES + LIST_BYTES;

    pub(crate) fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        wants_weights: bool,
    ) -> Result<ArcReader, Error> {
        let lists = budget.lease("blocks of edges", LIST_BYTES)?;
        let pages = || PageCache::new(graph, budget, FRAMES);
        let has_weights = wants_weights && graph.edge_kind().is_weight();
        Ok(ArcReader {
            graph: Arc::clone(graph),
            budget: budget.clone(),
            cells: pages()?,
            weights: has_weights.then(pages).transpose()?,
            bytes: Vec::with_capacity(CHUNK_BYTES as usize),
            weight_bytes: Vec::with_capacity(8 * BLOCK_EDGES_MAX),
            sources: Box::new([0; BLOCK_EDGES_MAX]),
            destinations: Box::new([0; BLOCK_EDGES_MAX]),
            _lists: lists,
        })
    }

    /// Passes source, destination and weight of every arc to `each`.
    ///
    /// The weight is 1 if the graph has none or the caller does not want them. There are as many arcs as the graph says:
    /// opening it has summed the cells, and the reader checks the number of each cell.
    ///
    /// # Errors
    /// A page or a cell is not what was written, or work was to stop.
    pub(crate) fn each(
        &mut self,
        stop: &CancelToken,
        mut each: impl FnMut(u64, u64, f64),
    ) -> Result<(), Error> {
        let graph = Arc::clone(&self.graph);
        if let Some(set) = graph.chunks() {
            return self.chunks(&graph, set, stop, each);
        }
        for column in 0..graph.batches().len() {
            for cell in graph.column(column).cells() {
                self.cell(column, cell, stop, &mut each)?;
            }
        }
        Ok(())
    }

    /// Passes the arcs of all chunks.
    fn chunks(
        &mut self,
        graph: &StoredGraph,
        set: &ChunkSet,
        stop: &CancelToken,
        mut each: impl FnMut(u64, u64, f64),
    ) -> Result<(), Error> {
        let (batches, kind) = (graph.batches(), graph.edge_kind());
        let parts = (set, batches);
        let mut reader =
            ChunkSetReader::new(&**graph.disk(), &self.budget, parts, self.weights.is_some())?;
        for chunk in set.all() {
            check_stop(stop)?;
            let (view, weights) = reader.chunk(chunk)?;
            let from = batches.start(chunk.batch());
            for run in view.runs() {
                let to = batches.start(run.destination_batch);
                view.for_each(&run, |source, destination, at| {
                    let (source, destination) = (u64::from(source), u64::from(destination));
                    each(from + source, to + destination, weight(kind, weights, at));
                });
            }
        }
        Ok(())
    }

    fn cell(
        &mut self,
        column: usize,
        cell: &Cell,
        stop: &CancelToken,
        each: &mut impl FnMut(u64, u64, f64),
    ) -> Result<(), Error> {
        let graph = Arc::clone(&self.graph);
        let (batches, kind) = (graph.batches(), graph.edge_kind());
        let (from, to) = (batches.start(cell.source_batch()), batches.start(column));
        let (source_span, span) = (batches.span(cell.source_batch()), batches.span(column));
        let global_offset = to.wrapping_sub(from) as i64;
        let broken = || graph.corrupt_cell(column, cell);
        let extent = graph.data_extent(column, cell);
        let mut weight_at = graph.weights_extent(column, cell).bytes.start;
        let (mut at, mut left) = (extent.bytes.start, cell.edges());
        while at < extent.bytes.end {
            check_stop(stop)?;
            let end = (at + CHUNK_BYTES).min(extent.bytes.end);
            self.bytes.clear();
            self.cells.read(extent.file, at..end, &mut self.bytes)?;
            let mut rest = &self.bytes[..];
            while let Some((block, used)) =
                BlockView::parse(rest, global_offset).map_err(|_| broken())?
            {
                let edges = block.edges() as u64;
                left = left.checked_sub(edges).ok_or_else(broken)?;
                self.weight_bytes.clear();
                if let Some(weights) = &mut self.weights {
                    let end = weight_at + edges * kind.bytes() as u64;
                    let file = graph.weights_extent(column, cell).file;
                    weights.read(file, weight_at..end, &mut self.weight_bytes)?;
                    weight_at = end;
                }
                block.sources(&mut self.sources);
                let (sources, weights) = (&self.sources, &self.weight_bytes);
                let mut is_sound = true;
                block.for_each_edge(&mut self.destinations, |group, destination, edge| {
                    let (source, destination) = (u64::from(sources[group]), u64::from(destination));
                    is_sound &= source < source_span && destination < span;
                    each(from + source, to + destination, weight(kind, weights, edge));
                });
                if !is_sound {
                    return Err(broken().into());
                }
                rest = &rest[used..];
            }
            let used = (self.bytes.len() - rest.len()) as u64;
            if used == 0 {
                return Err(broken().into());
            }
            at += used;
        }
        match left {
            0 => Ok(()),
            _ => Err(broken().into()),
        }
    }
}

/// The weight of edge number `edge` of a block, out of the block's weights; 1 where there are none.
fn weight(kind: EdgeKind, weights: &[u8], edge: usize) -> f64 {
    let (singles, doubles) = (weights.as_chunks().0, weights.as_chunks().0);
    let weight = match kind {
        EdgeKind::F32 => singles.get(edge).map(|of| f32::from_le_bytes(*of).into()),
        EdgeKind::F64 => doubles.get(edge).map(|of| f64::from_le_bytes(*of)),
        EdgeKind::None | EdgeKind::Record(_) => None,
    };
    weight.unwrap_or(1.0)
}
