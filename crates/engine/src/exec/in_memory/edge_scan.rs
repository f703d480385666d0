//! A scan of all arcs of a rank, in any order: each worker claims columns and scans their cells as they arrive.

use std::sync::Mutex;

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, Cell, FormatError};
use graphmill_raw::lock;
use graphmill_storage::{DataKind, Worker};

use crate::cache::cells::CellCache;
use crate::context::{ExecContext, each_batch};
use crate::error::{EngineError, ensure};
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::graph_view::join;
use crate::memory::plan::StreamBuffers;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;

/// Reads in flight of a worker.
const DEPTH: usize = 4;
/// Bytes of one read, at most and at least.
const CHUNK_BYTES_MAX: u64 = 1 << 20;
const CHUNK_BYTES_MIN: u64 = 1 << 16;

/// Bytes of the budget with which [`visit`] can do, where no weights are asked for.
pub(crate) fn least(workers: usize) -> u64 {
    let stream = StreamBuffers {
        weighted: false,
        chunk_bytes: CHUNK_BYTES_MIN as usize,
        depth: DEPTH,
    };
    stream.bytes() * workers as u64
}

/// The edges of one source in one block of a cell.
pub(crate) struct SourceEdges<'b> {
    /// The worker that scans them.
    pub(crate) worker: usize,
    pub(crate) source: u64,
    /// What destinations are counted from.
    first_destination: u64,
    destinations: &'b [u32],
}

impl SourceEdges<'_> {
    /// Returns the destinations, which ascend.
    #[inline(always)]
    pub(crate) fn destinations(&self) -> impl ExactSizeIterator<Item = u64> {
        let global = |local: &u32| self.first_destination + u64::from(*local);
        self.destinations.iter().map(global)
    }
}

/// Calls `visit` with the list of each wanted source in each wanted cell.
///
/// `wanted` takes a column and a cell of it, `is_source` a vertex.
pub(crate) fn visit(
    context: &ExecContext,
    cell_cache: &CellCache,
    wanted: impl Fn(usize, &Cell) -> bool + Sync,
    is_source: impl Fn(u64) -> bool + Sync,
    visit: impl Fn(SourceEdges<'_>) + Sync,
) -> Result<PassMetrics, EngineError> {
    let workers = context.workers.count();
    let chunk_bytes = context.budget.available() / (8 * (workers * (DEPTH + 1)) as u64);
    let chunk_bytes = chunk_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
    let stream = StreamBuffers {
        weighted: false,
        chunk_bytes: chunk_bytes.next_multiple_of(CHUNK_BYTES_MIN) as usize,
        depth: DEPTH,
    };
    let columns: Vec<usize> = context.ranks.own().collect();
    let job = EdgeScan {
        context,
        cell_cache,
        wanted,
        is_source,
        visit,
        stream,
        readers: (0..workers).map(|_| Mutex::new(None)).collect(),
    };
    let work = |i: usize, worker: &mut Worker| job.column(columns[i], worker);
    let mut report = PassMetrics::new(Mode::Scatter);
    report.active = context.batches.vertices();
    // Ranks add up their messages, so each counts the vertices that it owns.
    let own = context.ranks.own();
    report.messages = context.batches.cut(own.end) - context.batches.cut(own.start);
    for [edges, cells, read] in each_batch(context, &columns, work)? {
        report.edges += edges;
        report.cells += cells;
        report.bytes_read += read;
    }
    Ok(report)
}

/// Going through arcs as a job: each step is one column.
struct EdgeScan<'p, W, S, V> {
    context: &'p ExecContext<'p>,
    cell_cache: &'p CellCache,
    wanted: W,
    is_source: S,
    visit: V,
    stream: StreamBuffers,
    /// By worker.
    readers: Vec<Mutex<Option<CellStreams>>>,
}

/// The sources and destinations of a decoded block.
type ScanScratch = [Box<[u32; BLOCK_EDGES_MAX]>; 2];

impl<W, S, V> EdgeScan<'_, W, S, V>
where
    W: Fn(usize, &Cell) -> bool + Sync,
    S: Fn(u64) -> bool + Sync,
    V: Fn(SourceEdges<'_>) + Sync,
{
    /// Scans a column; returns its edges, its cells, and the bytes read.
    fn column(&self, column: usize, worker: &mut Worker) -> Result<[u64; 3], EngineError> {
        let (context, graph) = (self.context, self.context.graph);
        let cells = graph.column(column).cells();
        let is_pinned = |position| self.cell_cache.cell(context, column, position);
        let wanted = || {
            let cells = cells.iter().enumerate();
            cells.filter(|(_, cell)| (self.wanted)(column, cell))
        };
        let mut extents = Vec::new();
        for (position, cell) in wanted() {
            if is_pinned(position).is_none() {
                join(&mut extents, graph.data_extent(column, cell));
            }
        }
        let mut readers = lock(&self.readers[worker.index]);
        let readers = match &mut *readers {
            Some(readers) => readers,
            none => none.insert(CellStreams::new(context, self.stream)?),
        };
        readers.cells.start(extents)?;
        let mut scratch = [(); 2].map(|()| Box::new([0; BLOCK_EDGES_MAX]));
        let (mut all_edges, mut all_cells) = (0, 0);
        for (position, cell) in wanted() {
            let broken = || graph.corrupt_cell(column, cell);
            let mut left = cell.data_bytes() as usize;
            let mut edges = 0;
            if let Some((mut bytes, _)) = is_pinned(position) {
                while !bytes.is_empty() {
                    let block = self.block(worker.index, column, cell, bytes, &mut scratch)?;
                    let (used, of_block) = block.ok_or_else(broken)?;
                    bytes = &bytes[used..];
                    edges += of_block;
                }
                left = 0;
                let traffic = context.traffic.of(worker.index);
                traffic.read(DataKind::Edges, Access::Sequential, cell.data_bytes());
            }
            while left > 0 {
                readers.pump(worker.queue.as_mut())?;
                let front = readers.cells.front()?.unwrap_or(&[]);
                let bytes = &front[..front.len().min(left)];
                match self.block(worker.index, column, cell, bytes, &mut scratch)? {
                    Some((used, of_block)) => {
                        readers.cells.consume(used);
                        left -= used;
                        edges += of_block;
                    }
                    None => match worker.queue.wait() {
                        Some(done) => drop(readers.accept(done)?),
                        None => return Err(broken().into()),
                    },
                }
            }
            ensure(edges as u64 == cell.edges(), broken)?;
            all_edges += cell.edges();
            all_cells += 1;
        }
        Ok([all_edges, all_cells, readers.take_bytes_read()])
    }

    /// Scans the block at the start of `bytes`; returns its bytes and edges, `None` if it is incomplete.
    fn block(
        &self,
        worker: usize,
        column: usize,
        cell: &Cell,
        bytes: &[u8],
        scratch: &mut ScanScratch,
    ) -> Result<Option<(usize, usize)>, EngineError> {
        let context = self.context;
        let broken = |error: FormatError| context.broken(column, cell, &error);
        let from = cell.source_batch();
        let offset = context.global_offset(from, column);
        let Some((block, used)) = BlockView::parse(bytes, offset).map_err(broken)? else {
            return Ok(None);
        };
        let [sources, destinations] = scratch;
        let groups = block.sources(sources);
        let sources = &sources[..groups];
        let batches = &context.batches;
        let (first, span) = (batches.start(from), batches.span(from));
        let (base, destinations_end) = (batches.start(column), batches.span(column));
        let mut fits = sources.iter().all(|source| u64::from(*source) < span);
        let wanted = |source: u32| (self.is_source)(first + u64::from(source));
        // Decoding its destinations takes most of the time of a block.
        if !sources.iter().any(|source| wanted(*source)) {
            ensure(fits, || context.graph.corrupt_cell(column, cell))?;
            return Ok(Some((used, block.edges())));
        }
        block.for_each_group(destinations, sources, wanted, |group, list, _| {
            let inside = list
                .iter()
                .all(|local| u64::from(*local) < destinations_end);
            fits &= inside;
            if inside && fits {
                (self.visit)(SourceEdges {
                    worker,
                    source: first + u64::from(sources[group]),
                    first_destination: base,
                    destinations: list,
                });
            }
        });
        ensure(fits, || context.graph.corrupt_cell(column, cell))?;
        Ok(Some((used, block.edges())))
    }
}
