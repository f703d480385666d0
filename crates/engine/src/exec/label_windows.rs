//! A round of a count program whose lists do not fit in memory: window by window.
//!
//! Each worker takes batches, and cuts their vertices into windows whose labels fit in its memory. For each window it scans the cells
//! with edges of these vertices, puts the labels of the other ends in, and counts them. A vertex with more labels than fit is a window
//! of its own. Its labels are counted range by range: a scan counts the least labels that fit, and the next scan those after them.

use std::ops::Range;
use std::sync::Mutex;

use graphmill_graph::Cell;
use graphmill_raw::{AtomicScalar, lock};
use graphmill_storage::{Buffer, DataKind, Lease, MemoryBudget, Worker};

use crate::cache::cells::CellCache;
use crate::context::{ExecContext, each_batch};
use crate::error::{EngineError, ensure, made};
use crate::exec::in_memory::edge_scan::{CellScanner, CellVisitor, SourceEdges, stream_buffers};
use crate::exec::label_table::{LabelRange, LabelTable};
use crate::frontier::active_set::ActiveSet;
use crate::memory::stream_buffers::StreamBuffers;
use crate::messages::batch::BatchMessages;
use crate::messages::buffer::MessageBuffer;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::count::CountProgram;
use crate::program::current_call::CurrentCall;
use crate::state::rows::{ColumnAccess, OutDegree, Read, Rows, Write};
use crate::state::vertex_array::{BatchRows, elements_mut};

/// Where the labels of a batch are.
pub(crate) enum LabelSource<'r, L: AtomicScalar> {
    /// In an array: there is one rank.
    Rows([ColumnAccess; 1]),
    /// In messages from all ranks.
    Messages(&'r MessageBuffer<L>),
}

/// The labels of one batch.
enum BatchLabels<'r, L: AtomicScalar> {
    Rows(BatchRows<'r>),
    Messages(BatchMessages<'r, L>),
    None,
}

impl<L: AtomicScalar> BatchLabels<'_, L> {
    #[inline(always)]
    fn slice(&self) -> &[L] {
        match self {
            BatchLabels::Rows(rows) => rows.guards.first().map_or(&[], |guard| guard.read()),
            BatchLabels::Messages(messages) => messages.slice().values,
            BatchLabels::None => &[],
        }
    }
}

/// The rows that say how many labels reach each vertex; the second column is for directed graphs only.
type CountRows = (OutDegree, Read<u64>);
/// The next labels, and the labels.
type LabelRows<L> = (Write<L>, Read<L>);

/// A round over the windows of one rank.
pub(crate) struct WindowRound<'r, P: CountProgram> {
    pub(crate) context: &'r ExecContext<'r>,
    pub(crate) program: &'r P,
    /// The graph as stored, and transposed if it is directed and that is stored too.
    pub(crate) sides: [Option<(&'r ExecContext<'r>, &'r CellCache)>; 2],
    pub(crate) labels: LabelSource<'r, P::Label>,
    /// Of [`CountRows`], and of [`LabelRows`].
    pub(crate) rows: [Vec<ColumnAccess>; 2],
    /// The vertices that count; all if there is none.
    pub(crate) counting: Option<&'r ActiveSet>,
    /// Receives the vertices that change.
    pub(crate) next: &'r ActiveSet,
    pub(crate) scratch: Vec<Mutex<WindowScratch<'r, P::Label>>>,
}

/// The sizes of the memory of one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSizes {
    /// Bytes of a window.
    pub(crate) bytes: u64,
    pub(crate) stream: StreamBuffers,
}

impl WindowSizes {
    /// Bytes of a window, at least.
    pub(crate) const BYTES_MIN: u64 = 1 << 19;

    /// Divides `left` bytes among the windows of workers, and cells in memory that take `cells` bytes.
    ///
    /// The cells have their part if that is at most half. No window is larger than `longest`.
    pub(crate) fn divide(left: u64, cells: Option<u64>, longest: u64, workers: u64) -> Self {
        let cells = cells.filter(|cells| *cells <= left / 2).unwrap_or(0);
        let bytes = (left - cells) / workers.max(1);
        WindowSizes {
            bytes: bytes.min(longest).max(Self::BYTES_MIN),
            stream: stream_buffers(0),
        }
    }

    /// Returns the bytes that a worker takes beside its window.
    ///
    /// These are a stream for each of `sides` sides of the graph, and a table of labels.
    pub(crate) fn besides<L: AtomicScalar>(sides: usize) -> u64 {
        sides as u64 * stream_buffers(0).bytes() + Self::table_bytes::<L>()
    }

    /// Returns the bytes of a worker's table of labels.
    pub(crate) fn table_bytes<L: AtomicScalar>() -> u64 {
        LabelTable::<L>::bytes(PLACES)
    }
}

/// Returns the bytes of a window that holds all labels of a number of vertices.
pub(crate) fn window_bytes(vertices: u64, labels: u64, label: usize) -> u64 {
    let slots = vertices * SLOT_BYTES as u64;
    slots.saturating_add(labels.saturating_mul(label as u64))
}

/// The memory of one worker.
pub(crate) struct WindowScratch<'r, L: AtomicScalar> {
    sizes: WindowSizes,
    table: LabelTable<L>,
    /// Of the table.
    _lease: Lease,
    /// A window; it is made when it is needed.
    window: Option<Buffer>,
    /// One for each side; they are made when they are needed.
    scanners: [Option<CellScanner<'r>>; 2],
}

/// The cells of one side of the graph that have edges of a batch.
struct BatchCells<'r> {
    side: usize,
    /// The batch has the sources of their edges.
    has_sources: bool,
    cells: Vec<(usize, usize, &'r Cell)>,
}

impl<'r, P: CountProgram> WindowRound<'r, P> {
    /// Gives each vertex of this rank its next label.
    pub(crate) fn run(&self) -> Result<PassMetrics, EngineError> {
        let batches: Vec<usize> = self.context.ranks.own().collect();
        let work = |i: usize, worker: &mut Worker| self.batch(batches[i], worker);
        let mut report = PassMetrics::new(Mode::Gather);
        for [edges, cells, read] in each_batch(self.context, &batches, work)? {
            report.edges += edges;
            report.cells += cells;
            report.bytes_read += read;
        }
        Ok(report)
    }

    fn batch(&self, batch: usize, worker: &mut Worker) -> Result<[u64; 3], EngineError> {
        let (context, index) = (self.context, worker.index);
        let io = || lock(&context.row_io[index]);
        let span = context.batches.span(batch) as usize;
        let mut counts = context.budget.buffer(COUNTS, span * size_of::<u32>())?;
        let counts = &mut counts.typed_mut::<u32>()[..span];
        self.count_labels(batch, index, counts)?;
        let [_, rows] = &self.rows;
        let mut open = (context.arrays).open(batch, rows, None, &mut io())?;
        let cells = self.cells_of(batch);
        let mut done = [0; 3];
        {
            let mut next = self.next.batch(batch)?;
            let (new, old) = LabelRows::<P::Label>::slices(&mut open.guards);
            let (new, old) = (&mut new[..span], &old[..span]);
            new.copy_from_slice(old);
            let scratch = &mut *lock(&self.scratch[index]);
            let mut from = 0;
            while from < span {
                let (window, labels) = scratch.cut(from..span, counts);
                from = window.end;
                if labels == 0 {
                    continue;
                }
                let mut fill = WindowFill {
                    round: self,
                    batch,
                    window,
                    cells: &cells,
                    done: &mut done,
                };
                fill.count(scratch, worker, counts, |i, label| {
                    if label != old[i] {
                        new[i] = label;
                        next.insert(i);
                    }
                })?;
            }
        }
        context.count_rows(index, rows, span as u64, true);
        context.arrays.close(open, rows, None, &mut io())?;
        Ok(done)
    }

    /// Counts the labels that reach each vertex of a batch, up to more than a window holds.
    fn count_labels(
        &self,
        batch: usize,
        worker: usize,
        counts: &mut [u32],
    ) -> Result<(), EngineError> {
        let (context, [rows, _]) = (self.context, &self.rows);
        let io = || lock(&context.row_io[worker]);
        let mut open = context.arrays.open(batch, rows, None, &mut io())?;
        let counting = self.counting.map(|set| set.batch(batch)).transpose()?;
        let (mut degrees, arcs) = CountRows::slices(&mut open.guards);
        for (i, count) in counts.iter_mut().enumerate() {
            let labels = match &counting {
                Some(set) if !set.contains(i) => 0,
                _ => OutDegree::row(&mut degrees, i) + arcs.get(i).copied().unwrap_or(0),
            };
            *count = labels.min(LabelTable::<P::Label>::LABELS_MAX + 1) as u32;
        }
        context.count_rows(worker, rows, counts.len() as u64, true);
        Ok(())
    }

    /// Returns the cells with edges of a batch, on each side.
    fn cells_of(&self, batch: usize) -> Vec<BatchCells<'r>> {
        let columns = self
            .sides
            .iter()
            .flatten()
            .enumerate()
            .map(|(side, (context, _))| {
                let cells = context.own_cells(batch).iter().enumerate();
                BatchCells {
                    side,
                    has_sources: false,
                    cells: cells
                        .map(|(position, cell)| (batch, position, cell))
                        .collect(),
                }
            });
        let mut all: Vec<_> = columns.collect();
        // Without the transposed graph, the arcs from a vertex are in cells of many columns.
        if !self.context.graph.symmetric() && self.sides[1].is_none() {
            let places = self.context.cells_from(batch);
            all.push(BatchCells {
                side: 0,
                has_sources: true,
                cells: self.context.cells_at(places).collect(),
            });
        }
        all
    }

    /// Returns the labels of a batch.
    fn labels_of(
        &self,
        batch: usize,
        worker: usize,
    ) -> Result<BatchLabels<'r, P::Label>, EngineError> {
        let context = self.context;
        match &self.labels {
            LabelSource::Rows(rows) => {
                let io = &mut lock(&context.row_io[worker]);
                Ok(BatchLabels::Rows(
                    context.arrays.open(batch, rows, None, io)?,
                ))
            }
            LabelSource::Messages(messages) => match messages.prefetch(batch, worker)? {
                true => Ok(BatchLabels::Messages(messages.read(batch, worker)?)),
                false => Ok(BatchLabels::None),
            },
        }
    }

    /// Takes back labels that [`WindowRound::labels_of`] returned.
    fn release(
        &self,
        batch: usize,
        labels: BatchLabels<'r, P::Label>,
        worker: usize,
    ) -> Result<(), EngineError> {
        match (&self.labels, labels) {
            (LabelSource::Messages(messages), BatchLabels::Messages(labels)) => {
                messages.release(batch, labels, false, worker)
            }
            _ => Ok(()),
        }
    }
}

impl<L: AtomicScalar> WindowScratch<'_, L> {
    pub(crate) fn new(sizes: WindowSizes, budget: &MemoryBudget) -> Result<Self, EngineError> {
        let lease = budget.lease("counts of labels", WindowSizes::table_bytes::<L>())?;
        Ok(WindowScratch {
            sizes,
            table: LabelTable::new(PLACES),
            _lease: lease,
            window: None,
            scanners: [None, None],
        })
    }

    /// Returns the first vertices whose labels fit in the window, and the number of labels.
    fn cut(&self, rest: Range<usize>, counts: &[u32]) -> (Range<usize>, u64) {
        let mut labels = 0;
        for i in rest.clone() {
            let more = labels + u64::from(counts[i]);
            if !self.fits(i + 1 - rest.start, more) {
                return match i - rest.start {
                    0 => (i..i + 1, more),
                    _ => (rest.start..i, labels),
                };
            }
            labels = more;
        }
        (rest, labels)
    }

    fn fits(&self, vertices: usize, labels: u64) -> bool {
        let bytes = window_bytes(vertices as u64, labels, size_of::<L>());
        bytes <= self.sizes.bytes && labels <= LabelTable::<L>::LABELS_MAX
    }
}

/// Places of a worker's table.
const PLACES: usize = 1 << 15;
/// Bytes of a vertex in a window: where its next label goes, and where its labels end.
const SLOT_BYTES: usize = size_of::<[u32; 2]>();

/// One window while it is filled and counted.
struct WindowFill<'w, 'r, P: CountProgram> {
    round: &'w WindowRound<'r, P>,
    batch: usize,
    /// Its vertices, from the first of the batch.
    window: Range<usize>,
    cells: &'w [BatchCells<'r>],
    /// Edges, cells, and bytes read.
    done: &'w mut [u64; 3],
}

impl<'r, P: CountProgram> WindowFill<'_, 'r, P> {
    /// Calls `choose` with each vertex that has labels, and its next label.
    fn count(
        &mut self,
        scratch: &mut WindowScratch<'r, P::Label>,
        worker: &mut Worker,
        counts: &[u32],
        mut choose: impl FnMut(usize, P::Label),
    ) -> Result<(), EngineError> {
        let (context, program, window) =
            (self.round.context, self.round.program, self.window.clone());
        let (budget, bytes) = (&context.budget, scratch.sizes.bytes);
        let start = context.batches.start(self.batch);
        let counts = &counts[window.clone()];
        let all = counts.iter().map(|count| u64::from(*count)).sum();
        if !scratch.fits(window.len(), all) {
            scratch.window = None;
            let _lease = budget.lease(WINDOW, bytes)?;
            let mut range = LabelRange::<P>::new(bytes as usize);
            loop {
                let mut put = |i: usize, label| {
                    if i == 0 {
                        range.put(label);
                    }
                };
                self.scan(scratch, worker, &mut put)?;
                let current = CurrentCall::new();
                current.at(start + window.start as u64);
                if range.end(program) {
                    choose(window.start, program.choose(range.choice));
                    return Ok(());
                }
            }
        }
        let mut buffer = match scratch.window.take() {
            Some(buffer) => buffer,
            None => budget.buffer(WINDOW, bytes as usize)?,
        };
        let (slots, labels) = buffer.split_at_mut(window.len() * SLOT_BYTES);
        let slots: &mut [[u32; 2]] = elements_mut(slots);
        let labels: &mut [P::Label] = elements_mut(labels);
        let mut end = 0;
        for (slot, count) in slots.iter_mut().zip(counts) {
            *slot = [end, end + count];
            end += count;
        }
        let mut put = |i: usize, label| {
            // Vertices that do not count have no room.
            if let Some([next, end]) = slots.get_mut(i)
                && next < end
                && let Some(at) = labels.get_mut(*next as usize)
            {
                *at = label;
                *next += 1;
            }
        };
        self.scan(scratch, worker, &mut put)?;
        let are_full = slots.iter().all(|[next, end]| next == end);
        ensure(are_full, || context.graph.degrees_disagree(self.batch))?;
        let mut from = 0;
        let current = CurrentCall::new();
        for (i, [_, end]) in window.zip(&*slots) {
            current.at(start + i as u64);
            let of_vertex = &mut labels[from..*end as usize];
            if let Some(label) = scratch.table.choose(program, of_vertex) {
                choose(i, label);
            }
            from = *end as usize;
        }
        scratch.window = Some(buffer);
        Ok(())
    }

    /// Calls `put` with a vertex of the window, from its first one, and a label that reaches it.
    ///
    /// It may call it with an index beyond the window.
    fn scan(
        &mut self,
        scratch: &mut WindowScratch<'r, P::Label>,
        worker: &mut Worker,
        put: &mut impl FnMut(usize, P::Label),
    ) -> Result<(), EngineError> {
        let round = self.round;
        let (batches, stream) = (&round.context.batches, scratch.sizes.stream);
        for BatchCells {
            side,
            has_sources,
            cells,
        } in self.cells
        {
            let Some((context, cell_cache)) = round.sides[*side] else {
                continue;
            };
            let new = || CellScanner::new(context, cell_cache, stream);
            let scanner = made(&mut scratch.scanners[*side], new)?;
            let mut visitor = PutLabels {
                round,
                has_sources: *has_sources,
                start: batches.start(self.batch),
                window: &self.window,
                labels: (0, BatchLabels::None),
                labels_start: 0,
                put: &mut *put,
            };
            let done = scanner.scan(cells, worker, &mut visitor)?;
            let (batch, labels) = visitor.labels;
            round.release(batch, labels, worker.index)?;
            for (sum, more) in self.done.iter_mut().zip(done) {
                *sum += more;
            }
            let label_bytes = done[0] * size_of::<P::Label>() as u64;
            let traffic = round.context.traffic.of(worker.index);
            traffic.read(DataKind::Vertices, Access::Random, label_bytes);
        }
        Ok(())
    }
}

/// The names of memory in errors.
const WINDOW: &str = "a window of labels";
const COUNTS: &str = "the numbers of labels";

/// Puts the labels that lists bring into a window.
struct PutLabels<'v, 'r, P: CountProgram, F> {
    round: &'v WindowRound<'r, P>,
    /// The vertices of the window are the sources of lists, not the destinations.
    has_sources: bool,
    /// The first vertex of the batch of the window.
    start: u64,
    window: &'v Range<usize>,
    /// A batch with its labels, and its first vertex.
    labels: (usize, BatchLabels<'r, P::Label>),
    labels_start: u64,
    put: &'v mut F,
}

impl<P: CountProgram, F: FnMut(usize, P::Label)> CellVisitor for PutLabels<'_, '_, P, F> {
    fn begin(&mut self, column: usize, cell: &Cell, worker: usize) -> Result<(), EngineError> {
        let batch = match self.has_sources {
            true => column,
            false => cell.source_batch(),
        };
        let (before, labels) = std::mem::replace(&mut self.labels, (0, BatchLabels::None));
        self.round.release(before, labels, worker)?;
        self.labels = (batch, self.round.labels_of(batch, worker)?);
        self.labels_start = self.round.context.batches.start(batch);
        Ok(())
    }
    #[inline(always)]
    fn wants(&self, source: u64) -> bool {
        !self.has_sources || self.window.contains(&((source - self.start) as usize))
    }
    #[inline(always)]
    fn visit(&mut self, list: SourceEdges<'_>) {
        let labels = self.labels.1.slice();
        if self.has_sources {
            let i = (list.source - self.start) as usize - self.window.start;
            for local in list.locals {
                if let Some(label) = labels.get(*local as usize) {
                    (self.put)(i, *label);
                }
            }
        } else if let Some(label) = labels.get((list.source - self.labels_start) as usize) {
            for local in list.locals {
                (self.put)((*local as usize).wrapping_sub(self.window.start), *label);
            }
        }
    }
}
