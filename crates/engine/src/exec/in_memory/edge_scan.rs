//! A scan of all arcs of a rank, in any order: each worker claims columns and scans their cells as they arrive.

use std::sync::Mutex;

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, Cell, FormatError};
use graphmill_raw::lock;
use graphmill_storage::{DataKind, Worker};

use crate::cache::cells::CellCache;
use crate::context::{ExecContext, each_batch};
use crate::error::{EngineError, ensure, made};
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::graph_view::join;
use crate::memory::stream_buffers::StreamBuffers;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;

/// Reads in flight of a worker.
const DEPTH: usize = 4;
/// Bytes of one read, at most and at least.
const CHUNK_BYTES_MAX: u64 = 1 << 20;
const CHUNK_BYTES_MIN: u64 = 1 << 16;

/// Bytes of the budget with which [`visit`] can do, where no weights are asked for.
pub(crate) fn least(workers: usize) -> u64 {
    stream_buffers(0).bytes() * workers as u64
}

/// Returns the buffers of one scanner in about `room` bytes, or the smallest ones.
pub(crate) fn stream_buffers(room: u64) -> StreamBuffers {
    let chunk_bytes = (room / (DEPTH + 1) as u64).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
    StreamBuffers {
        weighted: false,
        chunk_bytes: chunk_bytes.next_multiple_of(CHUNK_BYTES_MIN) as usize,
        depth: DEPTH,
    }
}

/// The edges of one source in one block of a cell.
pub(crate) struct SourceEdges<'b> {
    /// The worker that scans them.
    pub(crate) worker: usize,
    pub(crate) source: u64,
    /// What destinations are counted from.
    first_destination: u64,
    /// The destinations, which ascend, from the first of their batch.
    pub(crate) locals: &'b [u32],
}

impl SourceEdges<'_> {
    /// Returns the destinations, which ascend.
    #[inline(always)]
    pub(crate) fn destinations(&self) -> impl ExactSizeIterator<Item = u64> {
        let global = |local: &u32| self.first_destination + u64::from(*local);
        self.locals.iter().map(global)
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
    let room = context.budget.available() / (8 * workers) as u64;
    let stream = stream_buffers(room);
    let columns: Vec<usize> = context.ranks.own().collect();
    let scanners: Vec<_> = (0..workers).map(|_| Mutex::new(None)).collect();
    let work = |i: usize, worker: &mut Worker| {
        let column = columns[i];
        let cells = context.own_cells(column).iter().enumerate();
        let cells = cells.filter(|(_, cell)| wanted(column, cell));
        let cells = cells.map(|(position, cell)| (column, position, cell));
        let cells: Vec<_> = cells.collect();
        let mut scanner = lock(&scanners[worker.index]);
        let new = || CellScanner::new(context, cell_cache, stream);
        let scanner = made(&mut scanner, new)?;
        let mut visitor = EachList {
            is_source: &is_source,
            visit: &visit,
        };
        scanner.scan(&cells, worker, &mut visitor)
    };
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

/// What a scan does with cells and with the lists in them.
pub(crate) trait CellVisitor {
    /// Prepares for the lists of a cell.
    fn begin(&mut self, column: usize, cell: &Cell, worker: usize) -> Result<(), EngineError>;
    /// True if it visits the list of a source.
    fn wants(&self, source: u64) -> bool;
    /// Takes the list of one source in one block.
    fn visit(&mut self, list: SourceEdges<'_>);
}

/// Two functions as a visitor.
struct EachList<'v, S, V> {
    is_source: &'v S,
    visit: &'v V,
}

impl<S: Fn(u64) -> bool, V: Fn(SourceEdges<'_>)> CellVisitor for EachList<'_, S, V> {
    fn begin(&mut self, _: usize, _: &Cell, _: usize) -> Result<(), EngineError> {
        Ok(())
    }
    #[inline(always)]
    fn wants(&self, source: u64) -> bool {
        (self.is_source)(source)
    }
    #[inline(always)]
    fn visit(&mut self, list: SourceEdges<'_>) {
        (self.visit)(list);
    }
}

/// Reads and decodes cells for one worker.
pub(crate) struct CellScanner<'p> {
    context: &'p ExecContext<'p>,
    cell_cache: &'p CellCache,
    streams: CellStreams,
    /// The sources and destinations of a decoded block.
    scratch: [Box<[u32; BLOCK_EDGES_MAX]>; 2],
}

impl<'p> CellScanner<'p> {
    pub(crate) fn new(
        context: &'p ExecContext<'p>,
        cell_cache: &'p CellCache,
        stream: StreamBuffers,
    ) -> Result<Self, EngineError> {
        Ok(CellScanner {
            context,
            cell_cache,
            streams: CellStreams::new(context, stream)?,
            scratch: [(); 2].map(|()| Box::new([0; BLOCK_EDGES_MAX])),
        })
    }

    /// Scans cells, each with its column and its position there.
    ///
    /// Returns the edges, the cells, and the bytes read.
    pub(crate) fn scan(
        &mut self,
        cells: &[(usize, usize, &Cell)],
        worker: &mut Worker,
        visitor: &mut impl CellVisitor,
    ) -> Result<[u64; 3], EngineError> {
        let (context, graph, cell_cache) = (self.context, self.context.graph, self.cell_cache);
        let mut extents = Vec::new();
        for &(column, position, cell) in cells {
            if cell_cache.cell(context, column, position).is_none() {
                join(&mut extents, graph.data_extent(column, cell));
            }
        }
        self.streams.cells.start(extents)?;
        let (mut all_edges, mut all_cells) = (0, 0);
        for &(column, position, cell) in cells {
            context.ranks.check_stop()?;
            let broken = || graph.corrupt_cell(column, cell);
            let at = (worker.index, column, cell);
            let mut left = cell.data_bytes() as usize;
            let mut edges = 0;
            visitor.begin(column, cell, worker.index)?;
            if let Some((mut bytes, _)) = cell_cache.cell(context, column, position) {
                while !bytes.is_empty() {
                    let block = decode(context, &mut self.scratch, at, bytes, visitor)?;
                    let (used, of_block) = block.ok_or_else(broken)?;
                    bytes = &bytes[used..];
                    edges += of_block;
                }
                left = 0;
                let traffic = context.traffic.of(worker.index);
                traffic.read(DataKind::Edges, Access::Sequential, cell.data_bytes());
            }
            while left > 0 {
                self.streams.pump(worker.queue.as_mut())?;
                let front = self.streams.cells.front()?.unwrap_or(&[]);
                let bytes = &front[..front.len().min(left)];
                match decode(context, &mut self.scratch, at, bytes, visitor)? {
                    Some((used, of_block)) => {
                        self.streams.cells.consume(used);
                        left -= used;
                        edges += of_block;
                    }
                    None => match worker.queue.wait() {
                        Some(done) => drop(self.streams.accept(done)?),
                        None => return Err(broken().into()),
                    },
                }
            }
            ensure(edges as u64 == cell.edges(), broken)?;
            all_edges += cell.edges();
            all_cells += 1;
        }
        Ok([all_edges, all_cells, self.streams.take_bytes_read()])
    }
}

/// Decodes the block at the start of `bytes` of a cell, and shows its lists to the visitor.
///
/// Returns its bytes and edges, or `None` if it is incomplete.
fn decode(
    context: &ExecContext,
    [sources, destinations]: &mut [Box<[u32; BLOCK_EDGES_MAX]>; 2],
    (worker, column, cell): (usize, usize, &Cell),
    bytes: &[u8],
    visitor: &mut impl CellVisitor,
) -> Result<Option<(usize, usize)>, EngineError> {
    let broken = |error: FormatError| context.broken(column, cell, &error);
    let from = cell.source_batch();
    let offset = context.global_offset(from, column);
    let Some((block, used)) = BlockView::parse(bytes, offset).map_err(broken)? else {
        return Ok(None);
    };
    let groups = block.sources(sources);
    let sources = &sources[..groups];
    let batches = &context.batches;
    let (first, span) = (batches.start(from), batches.span(from));
    let (base, destinations_end) = (batches.start(column), batches.span(column));
    let mut fits = sources.iter().all(|source| u64::from(*source) < span);
    let global = |source: &u32| first + u64::from(*source);
    // Decoding its destinations takes most of the time of a block.
    if sources.iter().any(|source| visitor.wants(global(source))) {
        let all = |_| true;
        block.for_each_group(destinations, sources, all, |group, locals, _| {
            let source = global(&sources[group]);
            if !visitor.wants(source) {
                return;
            }
            let mut inside = locals.iter().map(|local| u64::from(*local));
            fits &= inside.all(|local| local < destinations_end);
            if fits {
                visitor.visit(SourceEdges {
                    worker,
                    source,
                    first_destination: base,
                    locals,
                });
            }
        });
    }
    ensure(fits, || context.graph.corrupt_cell(column, cell))?;
    Ok(Some((used, block.edges())))
}
