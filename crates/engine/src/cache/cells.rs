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
use graphmill_storage::{DataKind, Job, JobError, Lease, Step, Worker};

use crate::context::{ExecContext, run};
use crate::error::EngineError;
use crate::graph_view::{CellBytes, join};
use crate::schedule::numa::NumaQueue;

/// Bytes of one read while the cells are filled in.
const CHUNK_BYTES: usize = 1 << 20;
const DEPTH: usize = 4;

/// Unless all cells are cached, bitmaps are cached if they take at most 1/8 of the memory.
const BITMAPS_SHARE: u64 = 8;

/// Stretches of a column at most.
pub(crate) const STRETCHES: usize = 16;

/// The cached cells of a graph.
#[derive(Default)]
pub(crate) struct CellCache {
    /// Cells, their weights, lists of blocks, bitmaps.
    bytes: Option<[(AlignedBuffer, Lease); 4]>,
    stretches: CachedRuns,
    /// Where the lists of blocks, and the bitmaps, of each column begin.
    index_starts: [Vec<usize>; 2],
    /// The fan-out lists of all vertices, when they fit.
    fanout: Option<FanoutTable>,
    all: bool,
    all_block_lists: bool,
    /// With their weights.
    weighted: bool,
    /// Bytes that filling read.
    read: u64,
}

/// The cached runs of all columns, one column after the other.
///
/// A column has one for each cell, but at most [`STRETCHES`].
#[derive(Default)]
struct CachedRuns {
    all: Vec<CachedRun>,
    /// The first of each column, and the end.
    firsts: Vec<usize>,
    _lease: Option<Lease>,
}

/// The cached prefix of a run of cells.
#[derive(Clone, Copy, Default)]
struct CachedRun {
    /// Number of its first cells that are cached.
    cells: usize,
    /// Offset of their bytes among all cached bytes.
    data: usize,
    weights: usize,
}

impl CachedRuns {
    /// Bytes of the budget that they take.
    fn memory(machine: &ExecContext) -> u64 {
        let columns = machine.batches.len();
        let stretches: usize = (0..columns)
            .map(|column| machine.own_cells(column).len().min(STRETCHES))
            .sum();
        (stretches * size_of::<CachedRun>() + (columns + 1) * size_of::<usize>()) as u64
    }

    /// Creates an empty cache.
    fn new(machine: &ExecContext) -> Result<Self, EngineError> {
        let lease = machine
            .budget
            .lease("pinned cells", Self::memory(machine))?;
        let mut firsts = vec![0];
        let mut end = 0;
        for column in 0..machine.batches.len() {
            end += machine.own_cells(column).len().min(STRETCHES);
            firsts.push(end);
        }
        Ok(CachedRuns {
            all: vec![CachedRun::default(); end],
            firsts,
            _lease: Some(lease),
        })
    }

    /// Returns the runs of a column, each with the positions of its cells.
    fn of(
        &self,
        column: usize,
        cells: usize,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let first = self.firsts[column];
        let count = self.firsts[column + 1] - first;
        (0..count).map(move |i| {
            (
                first + i,
                begin(i, cells, count)..begin(i + 1, cells, count),
            )
        })
    }

    /// That of the cell at a position, and the position of its first cell.
    #[inline]
    fn at(&self, column: usize, cells: usize, position: usize) -> Option<(&CachedRun, usize)> {
        let first = *self.firsts.get(column)?;
        let count = self.firsts.get(column + 1)? - first;
        let i = position * count / cells;
        Some((self.all.get(first + i)?, begin(i, cells, count)))
    }
}

/// Returns the first cell of run `i` of `count` runs over `cells` cells.
#[inline]
fn begin(i: usize, cells: usize, count: usize) -> usize {
    (i * cells).div_ceil(count)
}

/// Returns the bytes of an edge's weight, if weights are cached.
fn edge_bytes(machine: &ExecContext, weighted: bool) -> u64 {
    match weighted {
        true => machine.graph.edge_kind().bytes() as u64,
        false => 0,
    }
}

/// Bytes of a cell with its weights.
fn cell_bytes(machine: &ExecContext, weighted: bool) -> impl Fn(&Cell) -> u64 + Copy + use<> {
    let edge_bytes = edge_bytes(machine, weighted);
    move |cell| cell.data_bytes() + cell.edges() * edge_bytes
}

/// Bytes of all cells with their weights, of all lists of blocks, and of all bitmaps.
fn sums(machine: &ExecContext, weighted: bool) -> [u64; 3] {
    let cell_bytes = cell_bytes(machine, weighted);
    [
        machine.all_own_cells().map(cell_bytes).sum(),
        machine.all_own_cells().map(Cell::block_list_bytes).sum(),
        machine.all_own_cells().map(Cell::bitmap_bytes).sum(),
    ]
}

/// True if bitmaps are worth `bitmaps` of the `room` bytes in which cells of `cells` bytes are cached.
///
/// That is if everything fits, or if not even all cells fit and bitmaps take little. Otherwise cells
/// are the better use, since every pass reads them.
pub(crate) fn are_bitmaps_pinned(bitmaps: u64, cells: u64, room: u64) -> bool {
    bitmaps.saturating_add(cells) <= room || cells > room && bitmaps <= room / BITMAPS_SHARE
}

/// Returns the bytes that rounding up each kind of cached data to whole pages takes.
fn rounding_bytes(machine: &ExecContext) -> u64 {
    4 * 4096 + CellCache::loading(machine) + CachedRuns::memory(machine)
}

impl CellCache {
    /// Returns the bytes of the budget that hold all cells.
    pub(crate) fn memory(machine: &ExecContext, weighted: bool) -> u64 {
        let [data, lists, _] = sums(machine, weighted);
        let fanout = FanoutTable::memory(machine.graph.forward(), &(0..machine.batches.vertices()));
        let data = machine.tiers.leased(DataKind::Edges, data);
        let [fanout, lists] = [fanout, lists].map(|of| machine.tiers.leased(DataKind::Index, of));
        rounding_bytes(machine) + fanout + (data + lists).max(2 * lists)
    }

    /// Returns the bytes of the budget that only the filling takes: a stream for each worker.
    pub(crate) fn loading(machine: &ExecContext) -> u64 {
        Self::loading_by(machine.workers.count())
    }

    /// Returns what [`CellCache::loading`] does, for a number of workers.
    pub(crate) fn loading_by(workers: usize) -> u64 {
        ExtentReader::memory(CHUNK_BYTES, DEPTH) * workers as u64
    }

    /// Fills at most `bytes` of the budget.
    pub(crate) fn fill(
        machine: &ExecContext,
        weighted: bool,
        bytes: u64,
    ) -> Result<Self, EngineError> {
        let graph = &machine.graph;
        let count = machine.batches.len();
        let cell_bytes = cell_bytes(machine, weighted);
        let edge_bytes = edge_bytes(machine, weighted);
        let [data_bytes, lists_bytes, bitmaps_bytes] = sums(machine, weighted);
        let [lists_leased, bitmaps_leased] =
            [lists_bytes, bitmaps_bytes].map(|of| machine.tiers.leased(DataKind::Index, of));
        let data_leased = machine.tiers.leased(DataKind::Edges, data_bytes);
        let room = bytes.saturating_sub(rounding_bytes(machine));
        if room == 0 {
            return Ok(CellCache {
                all: data_bytes == 0,
                all_block_lists: lists_bytes == 0,
                weighted,
                ..CellCache::default()
            });
        }
        let lists = 0..machine.batches.vertices();
        let fanout_bytes = FanoutTable::memory(graph.forward(), &lists);
        let fanout_bytes = machine.tiers.leased(DataKind::Index, fanout_bytes);
        let mut lists_read = 0;
        let (fanout, room) = if fanout_bytes <= room / 4 {
            let mut frames = lock(&machine.frames);
            let side = graph.forward().side();
            let table = FanoutTable::load(
                graph,
                side,
                &mut frames,
                (&machine.tiers, &machine.budget),
                lists,
            )?;
            lists_read = frames.take_bytes_read();
            (Some(table), room - fanout_bytes)
        } else {
            (None, room)
        };
        let all_block_lists = lists_leased <= room / 2;
        let room = match all_block_lists {
            true => room - lists_leased,
            false => room,
        };
        let all_bitmaps = are_bitmaps_pinned(bitmaps_leased, data_leased, room);
        let room = match all_bitmaps {
            true => room - bitmaps_leased,
            false => room,
        };
        // Data on a tier outside the budget always fits.
        let room = match data_leased {
            0 => data_bytes,
            _ => room,
        };
        let whole = data_bytes <= room;
        let share = |of: u64| match whole {
            true => of,
            false => (u128::from(of) * u128::from(room) / u128::from(data_bytes.max(1))) as u64,
        };
        let mut stretches = CachedRuns::new(machine)?;
        let bytes_of = |column: usize, cells: Range<usize>| {
            let cells = &machine.own_cells(column)[cells];
            cells.iter().map(cell_bytes).sum::<u64>()
        };
        let mut taken = 0;
        for d in 0..count {
            let cells = machine.own_cells(d);
            // The rest of a run's share, too small for its next cell, goes to the next run.
            let mut left = 0;
            for (i, stretch) in stretches.of(d, cells.len()) {
                left += share(bytes_of(d, stretch.clone()));
                for cell in &cells[stretch] {
                    if cell_bytes(cell) > left {
                        break;
                    }
                    left -= cell_bytes(cell);
                    taken += cell_bytes(cell);
                    stretches.all[i].cells += 1;
                }
            }
        }
        // The rest of all columns goes to the first cells that fit.
        let mut all = all_block_lists;
        for d in 0..count {
            let cells = machine.own_cells(d);
            for (i, stretch) in stretches.of(d, cells.len()) {
                let pinned = &mut stretches.all[i].cells;
                for cell in &cells[stretch.start + *pinned..stretch.end] {
                    if taken + cell_bytes(cell) > room {
                        break;
                    }
                    taken += cell_bytes(cell);
                    *pinned += 1;
                }
                all &= *pinned == stretch.len();
            }
        }
        // Offsets of the bytes of each cached run, and of the lists and bitmaps of each column.
        let (mut data, mut weights, mut indices) = (0, 0, [0; 2]);
        let mut index_starts = [Vec::with_capacity(count), Vec::with_capacity(count)];
        let mut column_starts = [Vec::with_capacity(count), Vec::with_capacity(count)];
        for d in 0..count {
            let cells = machine.own_cells(d);
            index_starts[0].push(indices[0]);
            index_starts[1].push(indices[1]);
            column_starts[0].push(data);
            column_starts[1].push(weights);
            for (i, stretch) in stretches.of(d, cells.len()) {
                let held = &mut stretches.all[i];
                (held.data, held.weights) = (data, weights);
                for cell in &cells[stretch][..held.cells] {
                    data += cell.data_bytes() as usize;
                    weights += (cell.edges() * edge_bytes) as usize;
                }
            }
            if all_block_lists {
                indices[0] += cells.iter().map(Cell::block_list_bytes).sum::<u64>() as usize;
            }
            if all_bitmaps {
                indices[1] += cells.iter().map(Cell::bitmap_bytes).sum::<u64>() as usize;
            }
        }
        let groups = groups(machine, &stretches);
        let firsts: Vec<usize> = groups.iter().map(|group| group.start).collect();
        let filling =
            |kind, starts: &[usize], end| FillBuffer::new(machine, kind, starts, end, &groups);
        let job = CacheFill {
            machine,
            stretches: &stretches,
            groups: &groups,
            data: filling(DataKind::Edges, &column_starts[0], data)?,
            weights: filling(DataKind::Edges, &column_starts[1], weights)?,
            block_lists: filling(DataKind::Index, &index_starts[0], indices[0])?,
            bitmaps: filling(DataKind::Index, &index_starts[1], indices[1])?,
            deal: NumaQueue::new(&firsts, count),
            read: AtomicU64::new(0),
        };
        run(machine, &job)?;
        let CacheFill {
            data,
            weights,
            block_lists,
            bitmaps,
            read,
            ..
        } = job;
        let held = |filling: FillBuffer| (filling.bytes.into_buffer(), filling.lease);
        Ok(CellCache {
            bytes: Some([data, weights, block_lists, bitmaps].map(held)),
            index_starts,
            stretches,
            all,
            all_block_lists,
            weighted,
            fanout,
            read: read.into_inner() + lists_read,
        })
    }

    /// The fan-out lists of all vertices, if they are in memory.
    pub(crate) fn fanout(&self) -> Option<&FanoutTable> {
        self.fanout.as_ref()
    }
    /// True if every cell and its list of blocks is in memory.
    pub(crate) fn all(&self) -> bool {
        self.all
    }
    /// True if the lists of blocks of all cells are in memory.
    pub(crate) fn block_lists(&self) -> bool {
        self.all_block_lists
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
        let [data, weights, block_lists, _] = held.each_ref().map(|(bytes, _)| bytes.len() as u64);
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
    /// Bytes that filling read.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// Returns the bytes and the weights of a cell, by its position in its column, if it is cached.
    #[inline]
    pub(crate) fn cell(
        &self,
        machine: &ExecContext,
        column: usize,
        position: usize,
    ) -> Option<(&[u8], &[u8])> {
        let [(data, _), (weights, _), ..] = self.bytes.as_ref()?;
        let cells = machine.own_cells(column);
        let cell = cells.get(position)?;
        let (stretch, first) = self.stretches.at(column, cells.len(), position)?;
        if position - first >= stretch.cells {
            return None;
        }
        let first = cells.get(first)?;
        let from = stretch.data + (cell.data().start - first.data().start) as usize;
        let data = data.get(from..from + cell.data_bytes() as usize)?;
        let edge_bytes = machine.graph.edge_kind().bytes() as u64;
        let before = (cell.first_edge() - first.first_edge()) * edge_bytes;
        let from = stretch.weights + before as usize;
        let weights = weights.get(from..from + (cell.edges() * edge_bytes) as usize);
        Some((data, weights.unwrap_or(&[])))
    }

    /// Returns the block list of a cell, if block lists are cached.
    #[inline]
    pub(crate) fn block_list(
        &self,
        machine: &ExecContext,
        column: usize,
        position: usize,
    ) -> Option<&[u8]> {
        self.of_index(machine, 0, column, position, Cell::block_list)
    }

    /// Returns the bitmap of a cell, if bitmaps are cached; empty if it has none.
    #[inline]
    pub(crate) fn bitmap(
        &self,
        machine: &ExecContext,
        column: usize,
        position: usize,
    ) -> Option<&[u8]> {
        self.of_index(machine, 1, column, position, Cell::bitmap)
    }

    #[inline]
    fn of_index(
        &self,
        machine: &ExecContext,
        part: usize,
        column: usize,
        position: usize,
        range: impl Fn(&Cell) -> Range<u64>,
    ) -> Option<&[u8]> {
        let [_, _, parts @ ..] = self.bytes.as_ref()?;
        let cells = machine.own_cells(column);
        let (first, of_cell) = (range(cells.first()?), range(cells.get(position)?));
        let from = self.index_starts[part].get(column)? + (of_cell.start - first.start) as usize;
        let bytes = (of_cell.end - of_cell.start) as usize;
        parts[part].0.get(from..from + bytes)
    }
}

/// Bytes of one kind while they are filled in.
struct FillBuffer {
    bytes: BorrowedSegments<u8>,
    lease: Lease,
}

impl FillBuffer {
    /// Room for bytes of all columns up to `end`, which begin at `starts`, to be filled group by group.
    fn new(
        machine: &ExecContext,
        kind: DataKind,
        starts: &[usize],
        end: usize,
        groups: &[Range<usize>],
    ) -> Result<Self, EngineError> {
        let (tiers, budget) = (&machine.tiers, &machine.budget);
        let (memory, lease) = tiers
            .buffer(kind, budget, "pinned cells", end)?
            .into_parts();
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
fn groups(machine: &ExecContext, stretches: &CachedRuns) -> Vec<Range<usize>> {
    let graph = &machine.graph;
    let whole = |d: usize| {
        let mut of = stretches.of(d, machine.own_cells(d).len());
        of.all(|(i, stretch)| stretches.all[i].cells == stretch.len())
    };
    let bytes = |d: usize| {
        let cells = machine.own_cells(d).iter();
        cells.map(Cell::data_bytes).sum::<u64>()
    };
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut held = 0;
    for column in 0..machine.batches.len() {
        let joins = groups.last().is_some_and(|group| {
            let same_file = graph.column(group.start).file() == graph.column(column).file();
            same_file && held < CHUNK_BYTES as u64 && whole(column - 1) && whole(column)
        });
        match groups.last_mut() {
            Some(group) if joins => group.end = column + 1,
            _ => {
                groups.push(column..column + 1);
                held = 0;
            }
        }
        held += bytes(column);
    }
    groups
}

/// Filling as a job: each step is one group of columns.
struct CacheFill<'p> {
    machine: &'p ExecContext<'p>,
    stretches: &'p CachedRuns,
    groups: &'p [Range<usize>],
    data: FillBuffer,
    weights: FillBuffer,
    block_lists: FillBuffer,
    bitmaps: FillBuffer,
    deal: NumaQueue<'p>,
    read: AtomicU64,
}

impl CacheFill<'_> {
    fn group(&self, number: usize, worker: &mut Worker) -> Result<(), EngineError> {
        let graph = &self.machine.graph;
        let (mut block_lists, mut bitmaps) = (Vec::new(), Vec::new());
        let (mut data, mut weights) = (Vec::new(), Vec::new());
        for d in self.groups[number].clone() {
            let cells = self.machine.own_cells(d);
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
        let mut reader = ExtentReader::new(graph, &self.machine.budget, CHUNK_BYTES, DEPTH)?;
        for (into, extents) in [
            (&self.block_lists, block_lists),
            (&self.bitmaps, bitmaps),
            (&self.data, data),
            (&self.weights, weights),
        ] {
            let Some(mut into) = into.bytes.write(number) else {
                continue;
            };
            if into.is_empty() {
                continue;
            }
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
        self.read
            .fetch_add(reader.take_bytes_read(), Ordering::Relaxed);
        Ok(())
    }
}

impl Job for CacheFill<'_> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.machine.check_stop()?;
        let Some(number) = self.deal.take() else {
            return Ok(Step::Finished);
        };
        self.group(number, worker)?;
        Ok(Step::Worked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_give_way_to_pinning_all_cells() {
        for (bitmaps, cells, room, pinned) in [
            (0, 0, 0, true),
            (10, 90, 100, true),
            // All cells fit, but not beside them.
            (11, 90, 100, false),
            (1, 100, 100, false),
            // Some cells are read anyway.
            (12, 101, 100, true),
            (13, 101, 100, false),
            (12, u64::MAX, 100, true),
        ] {
            let found = are_bitmaps_pinned(bitmaps, cells, room);
            assert_eq!(found, pinned, "{bitmaps} and {cells} in {room}");
        }
    }
}
