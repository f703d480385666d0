//! Cells held in memory from pass to pass.
//!
//! Passes go round the cells in a cycle, which defeats a least-recently-used cache; so what the budget leaves is
//! filled once with a fixed set: fan-out lists, lists of blocks, and bitmaps, all of a kind or none, then the same share of each column. That share
//! is spread over the column: each of its cached runs, a few neighbouring cells, is cached from its first cell on.
//! So the disk is never idle for long while workers use cached cells, nor are workers while other cells are read.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_graph::{Cell, ExtentReader, FanoutTable};
use graphmill_raw::{AlignedBuffer, BorrowedSegments, lock};
use graphmill_storage::{DataKind, Lease, Tiers, Worker};

use crate::cache::cached_runs::{CacheShare, CachedRuns};
use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::graph_view::{CellBytes, join, starts};
use crate::schedule::numa;

/// Bytes of one read while the cells are filled in, at most and at least.
const CHUNK_BYTES_MAX: usize = 1 << 20;
const CHUNK_BYTES_MIN: usize = 64 << 10;
const DEPTH: usize = 4;
/// Bytes that all workers read at the same time at most, unless the least chunks are more.
///
/// A buffer has a page more. Many workers keep a disk busy with small chunks, which leave more memory to cells.
const LOADING_BYTES: usize = 4 << 20;

/// Bytes of one read of each of `workers` workers.
fn chunk_bytes(workers: usize) -> usize {
    let pages = LOADING_BYTES / (DEPTH * workers.max(1) * CHUNK_BYTES_MIN);
    (pages * CHUNK_BYTES_MIN).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// The cached cells of a graph.
#[derive(Default)]
pub(crate) struct CellCache {
    /// Lists of blocks, bitmaps, cells, weights.
    bytes: Option<[(AlignedBuffer, Lease); 4]>,
    stretches: CachedRuns,
    /// Where the lists of blocks, and the bitmaps, of each column begin.
    index_starts: [Vec<usize>; 2],
    /// The fan-out lists of all vertices, when they fit.
    pub(crate) fanout: Option<FanoutTable>,
    /// True if every cell and its list of blocks is in memory.
    pub(crate) all: bool,
    /// True if the lists of blocks of all cells are in memory.
    pub(crate) all_block_lists: bool,
    /// With their weights.
    weighted: bool,
    /// Bytes that filling read.
    pub(crate) read: u64,
}

/// Bytes of a cell with its weights.
fn cell_bytes(context: &ExecContext, weighted: bool) -> impl Fn(&Cell) -> u64 + Copy + use<> {
    let edge_bytes = context.weight_bytes(weighted) as u64;
    move |cell| cell.data_bytes() + cell.edges() * edge_bytes
}

/// Bytes of all cells with their weights, of all lists of blocks, and of all bitmaps.
pub(crate) fn sums(context: &ExecContext, weighted: bool) -> [u64; 3] {
    let cell_bytes = cell_bytes(context, weighted);
    [
        context.all_own_cells().map(cell_bytes).sum(),
        context.all_own_cells().map(Cell::block_list_bytes).sum(),
        context.all_own_cells().map(Cell::bitmap_bytes).sum(),
    ]
}

/// Bytes by which each buffer may exceed its data: buffers are whole pages.
const PAGE: u64 = 4096;

/// True if the nodes that index and edges are bound to have these bytes of them.
pub(crate) fn fits_nodes(context: &ExecContext, index: u64, edges: u64) -> bool {
    let of_index = context
        .tiers
        .lease_on_nodes(DataKind::Index, "index", index);
    of_index.is_ok() && context.tiers.free_on_nodes(DataKind::Edges) >= edges
}

/// Returns the bytes that rounding up each kind of cached data to whole pages takes.
fn rounding_bytes(context: &ExecContext) -> u64 {
    let runs = CachedRuns::memory(context.ranks.own().len(), context.batches.len());
    4 * PAGE + CellCache::loading_by(context.workers.count()) + runs
}

impl CellCache {
    /// Returns the bytes of the budget that hold all cells.
    ///
    /// It is `u64::MAX` if the nodes that edges are bound to have less.
    pub(crate) fn memory(context: &ExecContext, weighted: bool) -> u64 {
        let [data, lists, _] = sums(context, weighted);
        let fanout = FanoutTable::memory(context.graph.forward(), &(0..context.batches.vertices()));
        let index =
            AlignedBuffer::footprint(fanout as usize) + AlignedBuffer::footprint(lists as usize);
        if !fits_nodes(context, index, data + 2 * PAGE) {
            return u64::MAX;
        }
        let data = context.tiers.leased(DataKind::Edges, data);
        let [fanout, lists] = [fanout, lists].map(|of| context.tiers.leased(DataKind::Index, of));
        rounding_bytes(context) + fanout + (data + lists).max(2 * lists)
    }

    /// Returns the bytes of the budget that hold `data` bytes of cells with an index of `index` bytes.
    ///
    /// `own` of `columns` columns are this rank's. What the filling takes comes on top ([`CellCache::loading_by`]).
    pub(crate) fn memory_of(
        tiers: &Tiers,
        [own, columns]: [usize; 2],
        index: u64,
        data: u64,
    ) -> u64 {
        let leased = tiers.leased(DataKind::Index, index) + tiers.leased(DataKind::Edges, data);
        leased + CachedRuns::memory(own, columns) + 5 * PAGE
    }

    /// Returns the bytes of the budget that only the filling takes: a stream for each worker.
    pub(crate) fn loading_by(workers: usize) -> u64 {
        ExtentReader::memory(chunk_bytes(workers), DEPTH) * workers as u64
    }

    /// Fills at most `bytes` of the budget.
    pub(crate) fn fill(
        context: &ExecContext,
        weighted: bool,
        bytes: u64,
    ) -> Result<Self, EngineError> {
        let [data_bytes, lists_bytes, bitmaps_bytes] = sums(context, weighted);
        let room = bytes.saturating_sub(rounding_bytes(context));
        let tiers = &context.tiers;
        if room == 0 {
            return Ok(CellCache {
                all: data_bytes == 0,
                all_block_lists: lists_bytes == 0,
                weighted,
                ..CellCache::default()
            });
        }
        let (vertices, side) = (0..context.batches.vertices(), context.graph.forward());
        let index = |of| context.tiers.leased(DataKind::Index, of);
        let fanouts = index(FanoutTable::memory(side, &vertices));
        let (lists, bitmaps) = (index(lists_bytes), index(bitmaps_bytes));
        let cells = context.tiers.leased(DataKind::Edges, data_bytes);
        // The index has less where it is bound to nodes that do.
        let of_nodes = tiers
            .free_on_nodes(DataKind::Index)
            .saturating_sub(3 * PAGE);
        let index_room = room.min(of_nodes);
        let share = CacheShare::new(index_room, [fanouts, lists, bitmaps, cells]);
        let left = room - (index_room - share.left);
        let (mut fanout, mut lists_read) = (None, 0);
        if share.fanout {
            let (mut frames, memory) = (lock(&context.frames), (&context.tiers, &context.budget));
            let (graph, side) = (context.graph, side.side());
            let table = FanoutTable::load(graph, side, &mut frames, memory, vertices)?;
            fanout = Some(table);
            lists_read = frames.take_bytes_read();
        }
        // Data on a tier outside the budget always fits.
        let room = if cells == 0 { data_bytes } else { left };
        // Nor does it fit nodes that have less of it beside the index to come.
        let lists = if share.block_lists { lists_bytes } else { 0 };
        let bitmaps = if share.bitmaps { bitmaps_bytes } else { 0 };
        let index =
            tiers.lease_on_nodes(DataKind::Index, "pinned cells", lists + bitmaps + 2 * PAGE);
        let of_nodes = match index {
            Ok(_index) => tiers
                .free_on_nodes(DataKind::Edges)
                .saturating_sub(2 * PAGE),
            Err(_) => 0,
        };
        let room = room.min(of_nodes);
        let cell_bytes = cell_bytes(context, weighted);
        let mut stretches = CachedRuns::choose(context, cell_bytes, data_bytes, room)?;
        let [data, weights] = stretches.place(context, context.weight_bytes(weighted) as u64);
        let columns = 0..context.batches.len();
        let index_starts = |is_held: bool, bytes: fn(&Cell) -> u64| {
            starts(columns.clone().map(|column| match is_held {
                true => context.own_cells(column).iter().map(bytes).sum::<u64>() as usize,
                false => 0,
            }))
        };
        let index_starts = [
            index_starts(share.block_lists, Cell::block_list_bytes),
            index_starts(share.bitmaps, Cell::bitmap_bytes),
        ];
        let groups = groups(context, &stretches);
        let firsts: Vec<usize> = groups.iter().map(|group| group.start).collect();
        let filling = |kind, starts: &[usize]| FillBuffer::new(context, kind, starts, &groups);
        let job = CacheFill {
            context,
            stretches: &stretches,
            groups: &groups,
            filling: [
                filling(DataKind::Index, &index_starts[0])?,
                filling(DataKind::Index, &index_starts[1])?,
                filling(DataKind::Edges, &data)?,
                filling(DataKind::Edges, &weights)?,
            ],
            read: AtomicU64::new(0),
        };
        each_batch(context, &firsts, |number, worker| job.group(number, worker))?;
        let held = |filling: FillBuffer| (filling.bytes.into_buffer(), filling.lease);
        let read = lists_read + job.read.into_inner();
        let bytes = Some(job.filling.map(held));
        let all = columns
            .clone()
            .all(|column| stretches.has_all(context, column));
        Ok(CellCache {
            bytes,
            index_starts,
            stretches,
            all: all && share.block_lists,
            all_block_lists: share.block_lists,
            weighted,
            fanout,
            read,
        })
    }

    /// True if a program that asks for weights, or does not, can work with them.
    pub(crate) fn suit(&self, weighted: bool) -> bool {
        self.weighted || !weighted
    }
    /// Bytes of lists of blocks, and of cells with the weights that are asked for.
    pub(crate) fn held(&self, weighted: bool) -> CellBytes {
        let Some(held) = &self.bytes else {
            return CellBytes::default();
        };
        let [block_lists, _, data, weights] = held.each_ref().map(|(bytes, _)| bytes.len() as u64);
        CellBytes {
            block_lists,
            cells: data + if weighted { weights } else { 0 },
        }
    }
    /// Bytes of cells, weights and indices.
    pub(crate) fn bytes(&self) -> u64 {
        let held = self.bytes.iter().flatten();
        held.map(|(bytes, _)| bytes.len() as u64).sum()
    }
    /// Bytes of the budget that they take.
    pub(crate) fn leased_bytes(&self) -> u64 {
        let held = self.bytes.iter().flatten();
        held.map(|(_, lease)| lease.bytes()).sum()
    }

    /// Returns the bytes and the weights of a cell, by its position in its column, if it is cached.
    #[inline]
    pub(crate) fn cell(
        &self,
        context: &ExecContext,
        column: usize,
        position: usize,
    ) -> Option<(&[u8], &[u8])> {
        let [.., (data, _), (weights, _)] = self.bytes.as_ref()?;
        let cells = context.own_cells(column);
        let cell = cells.get(position)?;
        let (stretch, first) = self.stretches.at(column, cells.len(), position)?;
        if position - first >= stretch.cells {
            return None;
        }
        let first = cells.get(first)?;
        let from = stretch.data + (cell.data().start - first.data().start) as usize;
        let data = data.get(from..from + cell.data_bytes() as usize)?;
        let edge_bytes = context.graph.edge_kind().bytes() as u64;
        let before = (cell.first_edge() - first.first_edge()) * edge_bytes;
        let from = stretch.weights + before as usize;
        let weights = weights.get(from..from + (cell.edges() * edge_bytes) as usize);
        Some((data, weights.unwrap_or(&[])))
    }

    /// Returns the block list and the bitmap of a cell, each if it is cached; empty if there is none.
    #[inline]
    pub(crate) fn index(
        &self,
        context: &ExecContext,
        column: usize,
        position: usize,
    ) -> [Option<&[u8]>; 2] {
        let cells = context.own_cells(column);
        let of_cell = |part: usize, range: fn(&Cell) -> Range<u64>| {
            let (bytes, _) = &self.bytes.as_ref()?[part];
            let (first, cell) = (range(cells.first()?), range(cells.get(position)?));
            let from = self.index_starts[part].get(column)? + (cell.start - first.start) as usize;
            bytes.get(from..from + (cell.end - cell.start) as usize)
        };
        [of_cell(0, Cell::block_list), of_cell(1, Cell::bitmap)]
    }
}

/// Bytes of one kind while they are filled in.
struct FillBuffer {
    bytes: BorrowedSegments<u8>,
    lease: Lease,
}

impl FillBuffer {
    /// Room for bytes of columns that begin at `starts`, the end last, to be filled group by group.
    fn new(
        context: &ExecContext,
        kind: DataKind,
        starts: &[usize],
        groups: &[Range<usize>],
    ) -> Result<Self, EngineError> {
        let (tiers, budget) = (&context.tiers, &context.budget);
        let end = starts.last().copied().unwrap_or(0);
        // Each file has the columns of a range of batches, as a node has.
        let (parts, columns) = (tiers.parts(kind), context.batches.len());
        let cut = |part| starts.get(numa::first_of(part, parts, columns)).copied();
        let cut = |part| cut(part).unwrap_or(end);
        let buffer = tiers.buffer_in_parts(kind, budget, "pinned cells", end, cut)?;
        let (memory, lease) = buffer.into_parts();
        let begin = |group: &Range<usize>| starts.get(group.start).copied().unwrap_or(0);
        let cuts = groups.iter().map(begin).chain([end]).collect();
        Ok(FillBuffer {
            bytes: BorrowedSegments::new(memory, cuts),
            lease,
        })
    }
}

/// Groups neighbouring columns that are filled in one step.
///
/// Tiny columns share their frames, and lie as close in memory as on disk if they are cached whole.
fn groups(context: &ExecContext, stretches: &CachedRuns) -> Vec<Range<usize>> {
    let graph = &context.graph;
    let whole = |d: usize| stretches.has_all(context, d);
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut held = 0;
    for column in 0..context.batches.len() {
        let joins = groups.last().is_some_and(|group| {
            let same_file = graph.column(group.start).file() == graph.column(column).file();
            same_file && held < CHUNK_BYTES_MAX as u64 && whole(column - 1) && whole(column)
        });
        match groups.last_mut() {
            Some(group) if joins => group.end = column + 1,
            _ => {
                groups.push(column..column + 1);
                held = 0;
            }
        }
        let cells = context.own_cells(column).iter();
        held += cells.map(Cell::data_bytes).sum::<u64>();
    }
    groups
}

/// Filling as a job: each step is one group of columns.
struct CacheFill<'p> {
    context: &'p ExecContext<'p>,
    stretches: &'p CachedRuns,
    groups: &'p [Range<usize>],
    /// Lists of blocks, bitmaps, cells, weights.
    filling: [FillBuffer; 4],
    read: AtomicU64,
}

impl CacheFill<'_> {
    fn group(&self, number: usize, worker: &mut Worker) -> Result<(), EngineError> {
        let graph = &self.context.graph;
        let (mut block_lists, mut bitmaps) = (Vec::new(), Vec::new());
        let (mut data, mut weights) = (Vec::new(), Vec::new());
        for d in self.groups[number].clone() {
            let cells = self.context.own_cells(d);
            for cell in cells {
                join(&mut block_lists, graph.block_list_extent(d, cell));
                join(&mut bitmaps, graph.bitmap_extent(d, cell));
            }
            for (i, stretch) in self.stretches.of(d, cells.len()) {
                for cell in &cells[stretch][..self.stretches.all[i].cells] {
                    join(&mut data, graph.data_extent(d, cell));
                    join(&mut weights, graph.weights_extent(d, cell));
                }
            }
        }
        let chunk_bytes = chunk_bytes(self.context.workers.count());
        let mut reader = ExtentReader::new(graph, &self.context.budget, chunk_bytes, DEPTH)?;
        let extents = [block_lists, bitmaps, data, weights];
        for (into, extents) in self.filling.iter().zip(extents) {
            let into = into.bytes.write(number);
            let Some(mut into) = into.filter(|into| !into.is_empty()) else {
                continue;
            };
            reader.start(extents)?;
            let mut filled = 0;
            while filled < into.len() {
                reader.pump(worker.queue.as_mut())?;
                match reader.front()? {
                    Some(front) if !front.is_empty() => {
                        let read = front.len().min(into.len() - filled);
                        into[filled..filled + read].copy_from_slice(&front[..read]);
                        filled += read;
                        reader.consume(read);
                    }
                    _ => {
                        if let Some(done) = worker.queue.wait() {
                            reader.accept(done)?;
                        }
                    }
                }
            }
        }
        let read = reader.take_bytes_read();
        self.read.fetch_add(read, Ordering::Relaxed);
        Ok(())
    }
}
