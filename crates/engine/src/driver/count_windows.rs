//! A round of a count program by windows: what it needs in memory, and the passes before it.

use std::marker::PhantomData;
use std::sync::Mutex;

use graphmill_graph::Cell;
use graphmill_raw::{AtomicScalar, lock};
use graphmill_storage::Lease;

use crate::cache::cells::CellCache;
use crate::config::EdgeResidency;
use crate::context::{ExecContext, Orientations};
use crate::engine::Engine;
use crate::error::{EngineError, ensure};
use crate::exec::column::edge_pass;
use crate::exec::column::kernel::pass::Pass;
use crate::exec::column::scratch::ColumnScratch;
use crate::exec::label_windows::{
    LabelSource, WindowRound, WindowScratch, WindowSizes, window_bytes,
};
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::count::CountProgram;
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::state::graph_values::GraphValue;
use crate::state::row_file::RowFileIo;
use crate::state::rows::{ColumnAccess, Read, Rows, Write};
use crate::state::vertex_array::VertexArray;
use crate::workspace::take_workspace;

/// Buffers of a worker for the rows of a batch, at most.
const BUFFERS: usize = 4;
/// Only neighbours of changed vertices count, if at most one vertex in 16 changed.
const FEW_ONE_IN: u64 = 16;

impl Engine {
    /// Runs a round window by window; `arcs` has the number of arcs into each vertex of a directed graph.
    pub(crate) fn count_by_windows<P: CountProgram + 'static>(
        &mut self,
        program: &P,
        [from, to]: [VertexArray<P::Label>; 2],
        arcs: Option<VertexArray<u64>>,
        changed: &ActiveSet,
    ) -> Result<ActiveSet, EngineError> {
        if let Some(arcs) = arcs.filter(|_| !self.arcs_are_counted) {
            self.count_arcs(arcs)?;
        }
        let counting = match changed.len() <= self.vertices() / FEW_ONE_IN {
            true => Some(self.neighbours_of(changed)?),
            false => None,
        };
        let began = self.common.clock.now();
        let mut of_counts = vec![ColumnAccess::Graph(GraphValue::OutDegree)];
        of_counts.extend(arcs.map(|arcs| ColumnAccess::Read(arcs.id())));
        let of_labels = vec![ColumnAccess::Write(to.id()), ColumnAccess::Read(from.id())];
        // Degrees come before windows, which take the rest of the memory.
        self.load_degrees(&of_counts)?;
        let (windows, held) = self.make_windows::<P>(from, [&of_counts, &of_labels])?;
        let mut report = PassMetrics::new(Mode::Gather);
        let sent = match self.common.ranks.alone() {
            true => None,
            false => Some(self.send_labels::<P>(from, &mut report)?),
        };
        drop(held);
        let scratch = self.window_scratch(windows)?;
        report.add_traffic(self.cache.take_traffic());
        let mut next = self.active.empty();
        let stored = ExecContext::new(&self.common, &self.stored);
        let transposed = self.transposed.as_ref();
        let transposed = transposed.map(|view| ExecContext::new(&self.common, view));
        let cells = |transposed| &self.cache.orientation(transposed).cell_cache;
        let labels = match sent.as_ref().map(|sent| &sent.messages) {
            None => LabelSource::Rows([ColumnAccess::Read(from.id())]),
            Some(Some(messages)) => LabelSource::Messages(messages),
            Some(None) => return Err(EngineError::ForeignArray),
        };
        let round = WindowRound {
            context: &stored,
            program,
            sides: [
                Some((&stored, cells(false))),
                transposed.as_ref().map(|context| (context, cells(true))),
            ],
            labels,
            rows: [of_counts, of_labels],
            counting: counting.as_ref(),
            next: &next,
            scratch,
        };
        let ran = round.run();
        drop(round);
        let ran = self.checked(ran)?;
        if let Some(messages) = sent.and_then(|sent| sent.messages) {
            report.add_traffic(messages.take_traffic());
        }
        (report.active, report.edges, report.cells) = (changed.len(), ran.edges, ran.cells);
        report.bytes_read += ran.bytes_read;
        next.agree_len()?;
        self.end_pass(began, report);
        Ok(next)
    }

    /// Counts the arcs into each vertex of a directed graph.
    pub(crate) fn count_arcs(&mut self, arcs: VertexArray<u64>) -> Result<(), EngineError> {
        self.vertices_pass(arcs.write(), None, None, |_, arcs| {
            *arcs = 0;
            ((), Activate::No)
        })?;
        let mut all = self.active.empty();
        all.insert_all()?;
        let (own, rows) = (self.common.ranks.own(), ((), arcs.write()));
        let count = CountReaching(|arcs: &mut u64, count| *arcs = count);
        self.edges_pass::<CountReaching<Write<u64>>>(&count, rows, &all, Direction::Forward, &own)?;
        self.arcs_are_counted = true;
        Ok(())
    }

    /// Returns the neighbours of some vertices.
    fn neighbours_of(&mut self, vertices: &ActiveSet) -> Result<ActiveSet, EngineError> {
        let (own, mut reached) = (self.common.ranks.own(), self.active.empty());
        let count = CountReaching::<()>(|(), _| ());
        for direction in self.neighbour_directions() {
            let (_, more) = self.edges_pass(&count, ((), ()), vertices, *direction, &own)?;
            reached.union(&more)?;
        }
        Ok(reached)
    }

    /// Divides the memory into windows, and cells in memory; evicts what windows have no room beside.
    ///
    /// The lease holds the memory that the workers take later.
    fn make_windows<P: CountProgram>(
        &mut self,
        from: VertexArray<P::Label>,
        [of_counts, of_labels]: [&[ColumnAccess]; 2],
    ) -> Result<(WindowSizes, Lease), EngineError> {
        self.workspaces = None;
        self.active.trim();
        let sides = 1 + self.transposed.iter().count();
        let arrays = &self.common.arrays;
        let label = arrays.staged_bytes(&[ColumnAccess::Read(from.id())]);
        // The numbers of labels, and the labels of one more batch.
        let more = [0, label].map(|label| label + size_of::<u32>());
        let staged = arrays.staged_bytes(of_counts) + more[0];
        let staged = staged.max(arrays.staged_bytes(of_labels) + more[1]);
        let batches = self.common.batches.len() as u64;
        if !arrays.resident(of_counts) {
            for io in self.common.row_io.iter().take(batches as usize) {
                lock(io).frames(&self.stored.graph, &self.common.budget)?;
            }
        }
        let sends = ProgramFootprint {
            rows: label,
            ..ProgramFootprint::of::<SendLabels<P>>()
        };
        let besides = |engine: &Engine| {
            let (shape, workers) = (&engine.common.shape, engine.common.workers.count() as u64);
            // The frames of degrees are there already.
            let frames = workers.min(batches) * RowFileIo::FRAMES_BYTES;
            let staging = shape.staging_bytes(staged, BUFFERS).saturating_sub(frames);
            let staging = staging + shape.set_of_vertices;
            match engine.common.ranks.alone() {
                true => (
                    staging + workers * WindowSizes::besides::<P::Label>(sides),
                    0,
                ),
                // The pass that sends labels needs no streams, and leaves their memory.
                false => {
                    let table = WindowSizes::table_bytes::<P::Label>();
                    (staging + workers * table, shape.least(sends))
                }
            }
        };
        self.use_workers_that_fit(|engine| {
            let (besides, later) = besides(engine);
            besides + later + engine.common.workers.count() as u64 * WindowSizes::BYTES_MIN
        });
        let (workers, (besides, later)) = (self.common.workers.count() as u64, besides(self));
        let (budget, least) = (self.common.budget.clone(), workers * WindowSizes::BYTES_MIN);
        let needed = besides + later + least;
        let free = |engine: &Engine| {
            let cached = engine.cache.leased_bytes() + engine.cache.lists_leased_bytes();
            budget.available() + cached
        };
        if free(self) < needed {
            self.release();
        }
        let free = free(self);
        ensure(free >= needed, || EngineError::TooSmall {
            what: "a window of labels",
            least: budget.total() + needed - free,
            budget: budget.total(),
        })?;
        let left = free - (besides + later);
        let is_alone = self.common.ranks.alone();
        let caches = is_alone && self.common.options.edges != EdgeResidency::Disk;
        let cells = caches.then(|| self.memory_of_cells());
        // The messages of other ranks profit more from memory.
        let of_windows = if is_alone {
            left
        } else {
            (left / 4).max(least)
        };
        let longest = self.longest_window::<P::Label>();
        let sizes = WindowSizes::divide(of_windows, cells, longest, workers);
        let bytes = self.common.options.window_bytes.unwrap_or(sizes.bytes);
        let borrowed = self.borrowed;
        self.evict_to_free(besides + later + workers * bytes);
        // The lease lasts as long as the round: its passes need not leave as much free.
        self.borrowed = borrowed;
        let held = budget.lease("windows of labels", besides + workers * bytes);
        let held = held.map_err(|error| self.too_small(error.into()))?;
        let transposed = self
            .transposed
            .as_ref()
            .filter(|_| !self.stored.graph.symmetric());
        let views = [Some(&self.stored), transposed].into_iter().flatten();
        for (view, transposed) in views.zip([false, true]) {
            let context = ExecContext::new(&self.common, view);
            if caches
                && self
                    .cache
                    .orientation(transposed)
                    .is_fully_cached()
                    .is_none()
            {
                let room = budget.available();
                self.cache.pin(&context, transposed, false, room)?;
            }
        }
        self.take_loading();
        self.count_held();
        Ok((WindowSizes { bytes, ..sizes }, held))
    }

    /// Returns the memory of all workers for a round by windows.
    fn window_scratch<'r, L: AtomicScalar>(
        &self,
        sizes: WindowSizes,
    ) -> Result<Vec<Mutex<WindowScratch<'r, L>>>, EngineError> {
        let of_worker = |_| Ok(Mutex::new(WindowScratch::new(sizes, &self.common.budget)?));
        let scratch: Result<_, EngineError> =
            (0..self.common.workers.count()).map(of_worker).collect();
        scratch.map_err(|error| self.too_small(error))
    }

    /// Returns the bytes of the budget that hold all cells that windows read.
    fn memory_of_cells(&self) -> u64 {
        let views = std::iter::once(&self.stored).chain(&self.transposed);
        let contexts = views.map(|view| ExecContext::new(&self.common, view));
        let bytes = contexts.map(|context| CellCache::memory(&context, false));
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the bytes of the longest window that is of use: of one batch.
    fn longest_window<L>(&self) -> u64 {
        let context = ExecContext::new(&self.common, &self.stored);
        let edges = |cells: &[Cell]| cells.iter().map(Cell::edges).sum::<u64>();
        let labels = |batch| {
            let of_sources = || context.cells_at(context.cells_from(batch));
            let more: u64 = match self.graph().symmetric() {
                true => 0,
                false => of_sources().map(|(_, _, cell)| cell.edges()).sum(),
            };
            edges(context.own_cells(batch)) + more
        };
        let bytes = |batch| {
            let vertices = self.common.batches.span(batch);
            window_bytes(vertices, labels(batch), size_of::<L>())
        };
        self.common.ranks.own().map(bytes).max().unwrap_or(0)
    }

    /// Sends the labels of all vertices to the ranks that need them; returns the buffers that hold them.
    pub(crate) fn send_labels<P: CountProgram + 'static>(
        &mut self,
        labels: VertexArray<P::Label>,
        report: &mut PassMetrics,
    ) -> Result<Box<ColumnScratch<SendLabels<P>>>, EngineError> {
        let mut all = self.active.empty();
        all.insert_all()?;
        let [signal, _] = self.prepare_rows(Some(&all), labels.read(), ())?;
        let mut scratch = take_workspace::<SendLabels<P>, _>(&mut self.workspaces, &self.active);
        let stored = ExecContext::new(&self.common, &self.stored);
        let pass = Pass {
            context: &stored,
            orientations: Orientations {
                stored,
                transposed: None,
            },
            direction: Direction::Forward,
            program: &SendLabels(PhantomData),
            signal: &signal,
            apply: &[],
            active: &all,
            folding: &self.common.ranks.own(),
            borrowed: self.borrowed,
        };
        let sent = edge_pass::send(pass, &mut scratch, &mut self.cache, report);
        self.count_held();
        self.metrics.messages_resident &= scratch.messages_resident();
        self.checked(sent)?;
        Ok(scratch)
    }
}

/// A pass that sends the labels of all vertices to the ranks that need them.
pub(crate) struct SendLabels<P>(PhantomData<fn() -> P>);

impl<P: CountProgram> EdgeProgram for SendLabels<P> {
    type SignalRows = Read<P::Label>;
    type ApplyRows = ();
    type Edge = ();
    type Message = P::Label;
    type EdgeMessage = ();
    type Accumulator = u8;
    type Sum = ();
    const IDENTITY: u8 = 0;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, label: &P::Label) -> Option<P::Label> {
        Some(*label)
    }
    fn on_edge(&self, _: P::Label, (): ()) {}
    fn fold(&self, _: &mut u8, (): ()) {}
    fn merge(&self, _: &mut u8, _: u8) {}
    fn apply(&self, _: u64, (): (), _: u8) -> ((), Activate) {
        ((), Activate::No)
    }
}

/// A pass that counts the arcs that reach each vertex, and activates it.
///
/// The function takes the count into the row.
pub(crate) struct CountReaching<R: Rows>(for<'r> fn(R::Row<'r>, u64));

impl<R: Rows> EdgeProgram for CountReaching<R> {
    type SignalRows = ();
    type ApplyRows = R;
    type Edge = ();
    type Message = u8;
    type EdgeMessage = ();
    type Accumulator = u64;
    type Sum = ();
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (): ()) -> Option<u8> {
        Some(0)
    }
    #[inline(always)]
    fn on_edge(&self, _: u8, (): ()) {}
    #[inline(always)]
    fn fold(&self, count: &mut u64, (): ()) {
        *count += 1;
    }
    #[inline(always)]
    fn merge(&self, count: &mut u64, later: u64) {
        *count += later;
    }
    fn apply(&self, _: u64, row: R::Row<'_>, count: u64) -> ((), Activate) {
        self.0(row, count);
        ((), Activate::Yes)
    }
}
