//! The read-only context that all phases share: one orientation of a graph, and the engine's state.

use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex};

use graphmill_graph::{
    Batches, Cell, EdgeKind, FanoutTable, FileKind, FormatError, PageCache, StoredGraph,
};
use graphmill_raw::lock;
use graphmill_storage::{DataKind, Job, JobError, Step, StorageError, Worker, WorkerSubset};

use crate::comm::communicator::Communicator;
use crate::comm::wire::Wire;
use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::graph_view::{CellBytes, CellPosition, GraphView, UncachedBytes};
use crate::memory::plan::GraphShape;
use crate::metrics::traffic::{Access, MemoryTraffic};
use crate::program::current_call::catch;
use crate::schedule::numa::NumaQueue;
use crate::schedule::tasks::ColumnLayout;
use crate::state::array_store::ArrayStore;
use crate::state::row_file::RowFileIo;
use crate::state::rows::ColumnAccess;

impl ColumnLayout for ExecContext<'_> {
    fn batches(&self) -> &Batches {
        &self.batches
    }
    fn own(&self) -> Range<usize> {
        self.ranks.own()
    }
    fn strips(&self, batch: usize) -> usize {
        self.graph.column(batch).strips().len().max(1)
    }
    fn strip_sources(&self, batch: usize, strip: usize) -> Range<usize> {
        (self.graph.column(batch)).strip_sources(strip, self.batches.len())
    }
    fn each_cell(&self, batch: usize, strip: usize, f: &mut dyn FnMut(usize, f64)) {
        let cells = self.graph.column(batch).strip_cells(strip);
        cells.iter().for_each(|cell| f(cell.source_batch(), 1.0));
    }
}

/// The engine state that does not depend on the direction of arcs.
pub(crate) struct EngineState {
    pub(crate) settings: EngineConfig,
    /// The workers whose buffers the budget holds.
    pub(crate) workers: WorkerSubset,
    pub(crate) ranks: Arc<Communicator>,
    /// Each rank has the chunks in the file of its number; otherwise all ranks have all files.
    pub(crate) chunks_by_file: bool,
    /// Frames to and from other ranks, where there are any.
    pub(crate) wire: Option<Mutex<Wire>>,
    pub(crate) batches: Arc<Batches>,
    pub(crate) shape: GraphShape,
    /// The bytes that workers move in memory.
    pub(crate) traffic: MemoryTraffic,
    pub(crate) arrays: ArrayStore,
    /// One a worker.
    pub(crate) row_io: Vec<Mutex<RowFileIo>>,
    /// Cached frames of the stored graph for lookups.
    pub(crate) frames: Mutex<PageCache>,
}

impl Deref for EngineState {
    type Target = EngineConfig;
    #[inline(always)]
    fn deref(&self) -> &EngineConfig {
        &self.settings
    }
}

impl EngineState {
    /// True if rows of `bytes` more bytes stay in memory, as was decided when the engine opened.
    pub(crate) fn stays_in_memory(&self, bytes: usize) -> bool {
        let made: usize = self.arrays.row_bytes_made().iter().sum();
        self.shape.rows_fit && made + bytes <= self.sizes.arrays
    }

    /// Returns the bytes of a row that may be on disk once `resident` more bytes of it are in memory.
    pub(crate) fn on_disk_with(&self, resident: usize) -> usize {
        let [in_memory, on_disk] = self.arrays.row_bytes_made();
        let to_come = self
            .sizes
            .arrays
            .saturating_sub(in_memory + on_disk + resident);
        on_disk + to_come
    }
}

/// The context of a phase.
#[derive(Clone, Copy)]
pub(crate) struct ExecContext<'e> {
    common: &'e EngineState,
    pub(crate) view: &'e GraphView,
    pub(crate) graph: &'e Arc<StoredGraph>,
}

impl Deref for ExecContext<'_> {
    type Target = EngineState;
    #[inline(always)]
    fn deref(&self) -> &EngineState {
        self.common
    }
}

impl<'e> ExecContext<'e> {
    pub(crate) fn new(common: &'e EngineState, view: &'e GraphView) -> Self {
        ExecContext {
            common,
            view,
            graph: &view.graph,
        }
    }
    /// Returns the free bytes that messages can take, if the cache gives back `given_back` bytes.
    ///
    /// Messages that are bound to nodes take no more than these have left.
    pub(crate) fn message_memory(&self, given_back: u64) -> u64 {
        let (tiers, free) = (&self.tiers, self.budget.available());
        let of_nodes = tiers.free_on_nodes(DataKind::Messages);
        let of_nodes = match tiers.share_nodes(DataKind::Edges, DataKind::Messages) {
            true => of_nodes.saturating_add(given_back),
            false => of_nodes,
        };
        free.saturating_add(given_back).min(of_nodes)
    }
    /// The cells of a source batch, in order of columns.
    pub(crate) fn cells_from(&self, batch: usize) -> &'e [CellPosition] {
        let (places, begins) = &self.view.cells_by_source;
        &places[begins[batch]..begins[batch + 1]]
    }
    /// The cells of a column that this rank holds.
    ///
    /// These are all of an own column and none of others; under the bucket executor, those from own sources.
    #[inline]
    pub(crate) fn own_cells(&self, column: usize) -> &'e [Cell] {
        let cells = self.graph.column(column).cells();
        part_of_rank(
            cells,
            column,
            &self.ranks.own(),
            self.options.buckets.is_some(),
        )
    }
    /// All cells that this rank holds.
    pub(crate) fn all_own_cells(&self) -> impl Iterator<Item = &'e Cell> {
        (0..self.batches.len()).flat_map(|column| self.own_cells(column))
    }
    /// The cells at some places: column, position in it, and the cell.
    pub(crate) fn cells_at(
        &self,
        places: &'e [CellPosition],
    ) -> impl Iterator<Item = (usize, usize, &'e Cell)> + use<'e> {
        let graph = self.graph;
        places.iter().filter_map(|place| {
            let (column, position) = (place.column as usize, place.position as usize);
            let cell = graph.column(column).cells().get(position)?;
            Some((column, position, cell))
        })
    }
    /// The cells of a source batch in the columns of this rank.
    pub(crate) fn own_cells_from(
        &self,
        batch: usize,
    ) -> impl Iterator<Item = (usize, usize, &'e Cell)> + use<'e> {
        let own = self.ranks.own();
        let cells = self.cells_at(self.cells_from(batch));
        cells.filter(move |(column, ..)| own.contains(column))
    }
    /// Calls `f` with each column that holds edges of a vertex, ascending.
    ///
    /// Compiled once, not for each program.
    pub(crate) fn fanout_of(
        &self,
        table: Option<&FanoutTable>,
        frames: &mut PageCache,
        v: u64,
        f: &mut dyn FnMut(usize),
    ) -> Result<(), FormatError> {
        match table {
            Some(table) => table.each(v, f),
            None => (self.graph).destination_batches(self.graph.forward(), frames, v, f),
        }
    }
    /// Returns the bytes that a sparse pass may have to read.
    ///
    /// `cache` are the bytes of cells and block lists in memory.
    pub(crate) fn on_disk(
        &self,
        weighted: bool,
        cache: CellBytes,
        has_fanout: bool,
    ) -> UncachedBytes {
        let all = &self.view.bytes;
        UncachedBytes {
            block_lists: all.block_lists.saturating_sub(cache.block_lists),
            cells: self.cells_on_disk(weighted, cache.cells),
            all_cells: self.cells_on_disk(weighted, 0),
            fanout: match has_fanout {
                true => 0,
                false => self.graph.forward().bytes(FileKind::Fanout),
            },
            files: 1 + u64::from(weighted),
        }
    }
    /// Returns the bytes of all cells, with weights if asked for, that are not in memory.
    pub(crate) fn cells_on_disk(&self, weighted: bool, cache: u64) -> u64 {
        let weights = self.graph.arcs() * self.weight_bytes(weighted) as u64;
        (self.view.bytes.cells + weights).saturating_sub(cache)
    }
    /// Returns the kind of weights that a pass reads.
    pub(crate) fn weight_kind(&self, weighted: bool) -> EdgeKind {
        match weighted {
            true => self.graph.edge_kind(),
            false => EdgeKind::None,
        }
    }
    /// Returns the bytes that a pass reads of the weight of each edge.
    #[inline]
    pub(crate) fn weight_bytes(&self, weighted: bool) -> usize {
        self.weight_kind(weighted).bytes()
    }
    /// First vertex of the destination batch minus that of the source batch.
    pub(crate) fn global_offset(&self, source_batch: usize, destination_batch: usize) -> i64 {
        self.batches.start(destination_batch) as i64 - self.batches.start(source_batch) as i64
    }
    /// The error for a cell one of whose blocks makes no sense.
    pub(crate) fn broken(&self, column: usize, cell: &Cell, found: &FormatError) -> EngineError {
        let extent = self.graph.data_extent(column, cell);
        self.graph
            .corrupt(extent.file, extent.bytes.start, found.to_string())
            .into()
    }
    /// Counts rows that a worker had in its hands, of all vertices of a batch or of some.
    pub(crate) fn count_rows(&self, worker: usize, needs: &[ColumnAccess], rows: u64, all: bool) {
        let (read, written) = self.arrays.resident_bytes(needs);
        let (traffic, access) = (self.traffic.of(worker), Access::of(all));
        traffic.read(DataKind::Vertices, access, rows * read);
        traffic.write(DataKind::Vertices, access, rows * written);
    }
    /// Messages, and bytes, sent to other ranks since the last call.
    pub(crate) fn take_sent(&self) -> [u64; 2] {
        let wire = self.wire.as_ref();
        wire.map_or([0; 2], |wire| std::mem::take(&mut lock(wire).sent))
    }
}

/// The stored graph, and the transposed one if it is stored and both fold alike.
#[derive(Clone, Copy)]
pub(crate) struct Orientations<'e> {
    pub(crate) stored: ExecContext<'e>,
    pub(crate) transposed: Option<ExecContext<'e>>,
}

impl<'e> Orientations<'e> {
    /// One of the two.
    pub(crate) fn orientation(self, transposed: bool) -> ExecContext<'e> {
        self.transposed
            .filter(|_| transposed)
            .unwrap_or(self.stored)
    }
    /// Both, or the one.
    pub(crate) fn each(self) -> impl Iterator<Item = ExecContext<'e>> {
        [Some(self.stored), self.transposed].into_iter().flatten()
    }
}

/// Runs a job and gives back the engine's own error where that is what stopped it.
pub(crate) fn run(context: &ExecContext, job: &dyn Job) -> Result<(), EngineError> {
    // A panic of a program ends the job.
    let catching = |worker: &mut Worker| -> Result<Step, JobError> {
        let mut failed = None;
        let step = catch(|| {
            let step = job.step(worker);
            Ok(step.map_err(|error| failed = Some(error)).ok())
        })?;
        step.ok_or_else(|| failed.unwrap_or_else(|| EngineError::Broken.into()))
    };
    // Workers spend what they owe for the slow tier.
    let traffic = &context.traffic;
    let delayed = |worker: &mut Worker| -> Result<Step, JobError> {
        let step = catching(worker)?;
        traffic.spend(worker.index);
        Ok(step)
    };
    let outcome = match traffic.charges() {
        true => context.workers.run(&delayed),
        false => context.workers.run(&catching),
    };
    outcome.map_err(|error| match error {
        StorageError::Job(error) => match error.downcast::<EngineError>() {
            Ok(error) => *error,
            Err(error) => EngineError::Worker(error.to_string()),
        },
        error => error.into(),
    })
}

/// Runs `work` for each of some batches, which ascend; returns what it returned, in their order.
///
/// `work` takes the position of a batch among them. Workers take batches of their own memory node first.
pub(crate) fn each_batch<A: Send>(
    context: &ExecContext,
    batches: &[usize],
    work: impl Fn(usize, &mut Worker) -> Result<A, EngineError> + Sync,
) -> Result<Vec<A>, EngineError> {
    let queue = NumaQueue::new(batches, context.batches.len());
    let done: Vec<_> = batches.iter().map(|_| Mutex::new(None)).collect();
    // Each step is one batch.
    let step = |worker: &mut Worker| -> Result<Step, JobError> {
        context.ranks.check_stop()?;
        let Some(position) = queue.take() else {
            return Ok(Step::Finished);
        };
        *lock(&done[position]) = Some(work(position, worker)?);
        Ok(Step::Worked)
    };
    run(context, &step)?;
    Ok(done.iter().filter_map(|done| lock(done).take()).collect())
}

/// Returns the cells of a column that a rank holds.
///
/// These are all if it owns the column; if `by_rows`, the cells from its own batches.
pub(crate) fn part_of_rank<'c>(
    cells: &'c [Cell],
    column: usize,
    own: &Range<usize>,
    by_rows: bool,
) -> &'c [Cell] {
    if by_rows {
        // Cells ascend by source batch.
        let [from, to] =
            [own.start, own.end].map(|end| cells.partition_point(|cell| cell.source_batch() < end));
        return &cells[from..to];
    }
    match own.contains(&column) {
        true => cells,
        false => &[],
    }
}
