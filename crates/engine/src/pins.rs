//! Cells held in memory for a whole run.
//!
//! Passes go round the cells in a cycle, which defeats a least-recently-used cache; so what the budget leaves is
//! filled once with a fixed set: the indices of all cells when they fit, then the same share of each column, from
//! its first cell on, so that every column streams the rest while its pinned part is worked on.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_graph::{Cell, Column, Extent, ExtentReader, FanoutTable};
use graphmill_raw::{AlignedBuffer, Segments};
use graphmill_storage::{Job, JobError, Lease, Step, Worker};

use crate::active::lock;
use crate::error::EngineError;
use crate::machine::{Machine, run};

/// Bytes of one read while the cells are filled in.
const CHUNK_BYTES: usize = 1 << 20;
const DEPTH: usize = 4;

/// The pinned cells of a graph.
pub(crate) struct Pins {
    /// Cells of each column that are pinned: the first so many.
    cells: Vec<usize>,
    data: Held,
    weights: Held,
    indices: Held,
    /// The fan-out lists of all vertices, when they fit.
    fanout: Option<FanoutTable>,
    all: bool,
    all_indices: bool,
}

/// Bytes of one kind, column after column.
struct Held {
    bytes: AlignedBuffer,
    /// Where the bytes of each column begin.
    starts: Vec<usize>,
    _lease: Lease,
}

impl Held {
    #[inline]
    fn get(&self, column: usize, from: u64, bytes: u64) -> Option<&[u8]> {
        let from = self.starts.get(column)? + from as usize;
        self.bytes.get(from..from + bytes as usize)
    }
}

impl Pins {
    /// Fills at most `bytes` of the budget.
    pub(crate) fn fill(machine: &Machine, weighted: bool, bytes: u64) -> Result<Self, EngineError> {
        let graph = &machine.graph;
        let count = machine.batches.len();
        let edge_bytes = if weighted {
            graph.edge_kind().bytes() as u64
        } else {
            0
        };
        let cell_bytes = |cell: &Cell| cell.data_bytes() + cell.edges() * edge_bytes;
        let mut index_bytes = 0;
        let mut data_bytes = 0;
        for column in (0..count).map(|d| graph.column(d)) {
            index_bytes += column.cells().iter().map(Cell::index_bytes).sum::<u64>();
            data_bytes += column.cells().iter().map(cell_bytes).sum::<u64>();
        }
        // Each kind is rounded up to whole pages, and each worker reads through a stream of its own.
        let pages = 3 * 4096;
        let streams = ExtentReader::memory(CHUNK_BYTES, DEPTH) * machine.workers.count() as u64;
        let room = bytes.saturating_sub(pages + streams);
        let lists = 0..machine.batches.vertices();
        let fanout_bytes = FanoutTable::memory(graph.forward(), &lists);
        let (fanout, room) = if fanout_bytes <= room / 4 {
            let mut frames = lock(&machine.frames);
            let side = graph.forward().side();
            let table = FanoutTable::load(graph, side, &mut frames, &machine.budget, lists)?;
            (Some(table), room - fanout_bytes)
        } else {
            (None, room)
        };
        let indices = index_bytes <= room / 2;
        let room = if indices { room - index_bytes } else { room };
        let whole_of = |column: &Column, cells: usize| {
            column.cells()[..cells].iter().map(cell_bytes).sum::<u64>()
        };
        let mut cells = Vec::with_capacity(count);
        let mut taken = 0;
        let all_indices = indices;
        let mut all = indices;
        for column in (0..count).map(|d| graph.column(d)) {
            let whole = whole_of(column, column.cells().len());
            let mut left = if data_bytes <= room {
                whole
            } else {
                (u128::from(whole) * u128::from(room) / u128::from(data_bytes.max(1))) as u64
            };
            let mut pinned = 0;
            for cell in column.cells() {
                if cell_bytes(cell) > left {
                    break;
                }
                left -= cell_bytes(cell);
                pinned += 1;
            }
            taken += whole_of(column, pinned);
            cells.push(pinned);
        }
        // What is left of the shares of columns whose next cell is too large for them goes to the first that it fits.
        for (d, pinned) in cells.iter_mut().enumerate() {
            let column = graph.column(d);
            for cell in &column.cells()[*pinned..] {
                if taken + cell_bytes(cell) > room {
                    break;
                }
                taken += cell_bytes(cell);
                *pinned += 1;
            }
            all &= *pinned == column.cells().len();
        }
        let sizes = |of: &dyn Fn(&Cell) -> u64| -> Vec<u64> {
            (0..count)
                .map(|d| graph.column(d).cells().iter().take(cells[d]).map(of).sum())
                .collect()
        };
        let index_sizes: Vec<u64> = (0..count)
            .map(|d| {
                if indices {
                    graph.column(d).cells().iter().map(Cell::index_bytes).sum()
                } else {
                    0
                }
            })
            .collect();
        let groups = groups(machine, &cells);
        let data = Filling::new(machine, sizes(&Cell::data_bytes), &groups)?;
        let weights = Filling::new(machine, sizes(&|cell| cell.edges() * edge_bytes), &groups)?;
        let indices = Filling::new(machine, index_sizes, &groups)?;
        let job = Fill {
            machine,
            cells: &cells,
            groups: &groups,
            data: &data,
            weights: &weights,
            indices: &indices,
            next: AtomicUsize::new(0),
        };
        if bytes > pages + streams {
            run(machine, &job)?;
        }
        Ok(Pins {
            data: data.held(),
            weights: weights.held(),
            indices: indices.held(),
            cells,
            all,
            all_indices,
            fanout,
        })
    }

    /// The fan-out lists of all vertices, if they are in memory.
    pub(crate) fn fanout(&self) -> Option<&FanoutTable> {
        self.fanout.as_ref()
    }
    /// Whether every cell and its index is in memory.
    pub(crate) fn all(&self) -> bool {
        self.all
    }
    /// Whether the indices of all cells are in memory.
    pub(crate) fn indices(&self) -> bool {
        self.all_indices
    }
    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        [&self.data, &self.weights, &self.indices]
            .iter()
            .map(|held| held.bytes.len() as u64)
            .sum()
    }

    /// The bytes and the weights of a cell, by its position in its column, if it is pinned.
    #[inline]
    pub(crate) fn cell(
        &self,
        machine: &Machine,
        column: usize,
        position: usize,
    ) -> Option<(&[u8], &[u8])> {
        if position >= *self.cells.get(column)? {
            return None;
        }
        let cells = machine.graph.column(column).cells();
        let (first, cell) = (cells.first()?, cells.get(position)?);
        let data = self.data.get(
            column,
            cell.data().start - first.data().start,
            cell.data_bytes(),
        )?;
        let edge_bytes = machine.graph.edge_kind().bytes() as u64;
        let before = cell.first_edge() - first.first_edge();
        let weights = self
            .weights
            .get(column, before * edge_bytes, cell.edges() * edge_bytes)
            .unwrap_or(&[]);
        Some((data, weights))
    }

    /// The index of a cell, if indices are pinned.
    #[inline]
    pub(crate) fn index(&self, machine: &Machine, column: usize, position: usize) -> Option<&[u8]> {
        let cells = machine.graph.column(column).cells();
        let (first, cell) = (cells.first()?, cells.get(position)?);
        self.indices.get(
            column,
            cell.index().start - first.index().start,
            cell.index_bytes(),
        )
    }
}

/// Bytes of one kind while they are filled in.
struct Filling {
    bytes: Segments<u8>,
    starts: Vec<usize>,
    lease: Lease,
}

impl Filling {
    /// Room for so many bytes of each column, to be filled group by group.
    fn new(
        machine: &Machine,
        sizes: Vec<u64>,
        groups: &[Range<usize>],
    ) -> Result<Self, EngineError> {
        let mut starts = vec![0];
        let mut end = 0;
        for size in sizes {
            end += size as usize;
            starts.push(end);
        }
        let (memory, lease) = machine.budget.buffer("pinned cells", end)?.into_parts();
        let begin = |column: usize| starts.get(column).copied().unwrap_or(0);
        let cuts = groups
            .iter()
            .map(|group| begin(group.start))
            .chain([end])
            .collect();
        Ok(Filling {
            bytes: Segments::new(memory, cuts),
            starts,
            lease,
        })
    }
    fn held(self) -> Held {
        Held {
            bytes: self.bytes.into_buffer(),
            starts: self.starts,
            _lease: self.lease,
        }
    }
}

/// Neighbouring columns that are filled in one go: tiny ones share their frames, and lie as close in memory as on disk
/// when they are pinned whole.
fn groups(machine: &Machine, pinned: &[usize]) -> Vec<Range<usize>> {
    let graph = &machine.graph;
    let whole = |d: usize| pinned[d] == graph.column(d).cells().len();
    let bytes = |d: usize| {
        graph
            .column(d)
            .cells()
            .iter()
            .map(Cell::data_bytes)
            .sum::<u64>()
    };
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut held = 0;
    for column in 0..pinned.len() {
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
struct Fill<'p> {
    machine: &'p Machine<'p>,
    cells: &'p [usize],
    groups: &'p [Range<usize>],
    data: &'p Filling,
    weights: &'p Filling,
    indices: &'p Filling,
    next: AtomicUsize,
}

impl Fill<'_> {
    fn group(&self, number: usize, worker: &mut Worker) -> Result<(), EngineError> {
        let graph = &self.machine.graph;
        let columns = self.groups[number].clone();
        let mut reader = ExtentReader::new(graph, &self.machine.budget, CHUNK_BYTES, DEPTH)?;
        let mut load = |into: &Filling, extent: Option<Extent>| -> Result<(), EngineError> {
            let Some(mut into) = into.bytes.write(number) else {
                return Ok(());
            };
            let (Some(extent), false) = (extent, into.is_empty()) else {
                return Ok(());
            };
            let mut filled = 0;
            reader.start(vec![extent])?;
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
            Ok(())
        };
        // From the first cell of the group to the last that is held, all in one file.
        let span = |held: &dyn Fn(usize) -> usize, of: &dyn Fn(usize, &Cell) -> Extent| {
            let cells = |d: usize| &graph.column(d).cells()[..held(d)];
            let first = columns
                .clone()
                .find_map(|d| Some(of(d, cells(d).first()?)))?;
            let last = columns
                .clone()
                .rev()
                .find_map(|d| Some(of(d, cells(d).last()?)))?;
            Some(Extent {
                file: first.file,
                bytes: first.bytes.start..last.bytes.end,
            })
        };
        let all = |d: usize| graph.column(d).cells().len();
        let pinned = |d: usize| self.cells[d];
        load(
            self.indices,
            span(&all, &|d, cell| graph.index_extent(d, cell)),
        )?;
        load(
            self.data,
            span(&pinned, &|d, cell| graph.data_extent(d, cell)),
        )?;
        load(
            self.weights,
            span(&pinned, &|d, cell| graph.weights_extent(d, cell)),
        )
    }
}

impl Job for Fill<'_> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.machine.check_stop()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.groups.len() {
            return Ok(Step::Finished);
        }
        self.group(number, worker)?;
        Ok(Step::Worked)
    }
}
