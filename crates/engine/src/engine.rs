//! The engine: a stored graph, its vertex arrays, and the passes over them.

use std::any::{Any, TypeId, type_name};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graphmill_graph::{
    Column, EdgeKind, FRAME_BYTES, FormatError, GraphDims, PageCache, StoredGraph, partition,
};
use graphmill_raw::{AlignedBuffer, Element, lock};
use graphmill_storage::{MemoryBudget, StorageError, Tiers};

use crate::cache::graph_cache::GraphCache;
use crate::checkpoint::checkpointer::Checkpointer;
use crate::comm::communicator::{Communicator, mismatch};
use crate::comm::wire::Wire;
use crate::config::{EngineConfig, PassCallback};
use crate::context::{EngineState, ExecContext, Orientations, run};
use crate::error::EngineError;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::column::scratch::ColumnScratch;
use crate::exec::column::superstep;
use crate::exec::send_pass::pass;
use crate::exec::vertex_pass::VertexPass;
use crate::frontier::active_set::{ActiveSet, ActiveSetPool};
use crate::graph_view::GraphView;
use crate::memory::plan::GraphShape;
use crate::metrics::run::{Convergence, Metrics, Mode, PassMetrics, RankMetrics};
use crate::metrics::traffic::{MemoryTraffic, placed_at};
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::program::message::MessageProgram;
use crate::state::array_store::ArrayStore;
use crate::state::row_file::{RowFile, RowFileIo, page_bytes};
use crate::state::rows::{ColumnAccess, Rows};
use crate::state::vertex_array::VertexArray;
use crate::value::Reduce;

/// Frames of the stored graph that are cached for lookups.
const FRAMES: usize = 32;
/// Number of frames that are cached while all degrees are read in order.
pub(crate) const LOOKING_FRAMES: usize = 2;

/// A stored graph with vertex arrays, ready for passes.
pub struct Engine {
    pub(crate) common: EngineState,
    pub(crate) stored: GraphView,
    /// The transposed graph, if the graph is directed and was imported with it.
    pub(crate) turned: Option<GraphView>,
    pub(crate) active: Arc<ActiveSetPool>,
    pub(crate) on_pass: Option<PassCallback>,
    pub(crate) metrics: Metrics,
    /// A pass failed.
    pub(crate) broken: bool,
    /// A budget that is enough for the usual program.
    enough: u64,
    /// [`Engine::sample_mean_weight`], once it was asked for.
    pub(crate) mean_weight: Option<Option<f64>>,
    /// [`Engine::sample_degree`], once it was asked for.
    pub(crate) usual_degree: Option<f64>,
    /// The cached parts of the graph that passes of any kind use.
    pub(crate) held: GraphCache,
    /// Buffers that passes of one kind keep from one to the next, by the kind of program.
    pub(crate) workspaces: Option<(TypeId, Box<dyn Any + Send>)>,
    /// Bytes that passes over vertices, and of sends, took at most.
    pub(crate) borrowed: u64,
    /// The checkpointer, if the run writes checkpoints.
    pub(crate) recovery: Option<Checkpointer>,
}

impl Engine {
    /// An engine over a graph, with no arrays yet.
    ///
    /// # Errors
    /// The page file cannot be made, or the budget is too small for one batch.
    pub fn new(graph: Arc<StoredGraph>, config: EngineConfig) -> Result<Self, EngineError> {
        let budget = config.budget.clone();
        let used = budget.total() - budget.available();
        let workers = config.workers.count();
        let ranks = Self::ranks(&graph, &config)?;
        let measure = graph.measure_of(config.fabric.is_some().then(|| ranks.own()));
        let enough = used + Self::least(&measure, workers, &config.tiers, config.sizes);
        Self::build(graph, config, ranks, &measure, enough)
            .map_err(|error| too_small(error, &budget, enough))
    }

    /// The ranks, and which batches each of them owns.
    fn ranks(graph: &StoredGraph, config: &EngineConfig) -> Result<Communicator, EngineError> {
        let (fabric, stop) = (config.fabric.clone(), config.stop.clone());
        let batches = 0..graph.batches().len();
        let Some(count) = fabric.as_ref().map(|fabric| fabric.ranks()) else {
            return Ok(Communicator::new(None, vec![0, batches.end], stop));
        };
        // What each has is known by what it says.
        let name = format!("{:016x}-{}", graph.graph_id(), graph.meta().checksum());
        let mut said = name.clone().into_bytes();
        said.extend(
            batches
                .clone()
                .map(|batch| u8::from(graph.has_batch(batch))),
        );
        let strangers = Communicator::new(fabric.clone(), vec![0; count + 1], stop.clone());
        let said = strangers.gather(said)?;
        let parts = |said: &'_ Vec<u8>| {
            let (id, has) = said.split_at_checked(name.len()).unwrap_or_default();
            (id.to_vec(), has.to_vec())
        };
        // All ranks name the same one, whichever of them finds it.
        let (first, first_has) = said.first().map(parts).unwrap_or_default();
        let mut here = Vec::new();
        for (rank, of_rank) in said.iter().enumerate() {
            let (id, has) = parts(of_rank);
            if id != first || has.len() != first_has.len() {
                return Err(EngineError::OtherGraph { rank });
            }
            here.push(has.iter().map(|has| *has == 1).collect());
        }
        let cuts = partition(graph, &here, config.options.alpha);
        let cuts = cuts.ok_or_else(|| EngineError::Spread {
            path: graph.path().to_path_buf(),
            ranks: count,
        })?;
        Ok(Communicator::new(fabric, cuts, stop))
    }

    /// Returns the minimum budget, in bytes, for programs of this footprint, excluding the open graph.
    ///
    /// It depends on the tiers of the data.
    #[must_use]
    pub fn least(graph: &GraphDims, workers: usize, tiers: &Tiers, sizes: ProgramFootprint) -> u64 {
        let shape = GraphShape::of(graph, workers).with_tiers(tiers);
        let own = Self::base_memory(graph, workers)
            // Frames of degrees, and sets of the driver that exist before the first pass.
            + RowFileIo::FRAMES_BYTES * workers as u64
            + 2 * shape.set_of_vertices;
        let sizes = ProgramFootprint {
            weighted: sizes.weighted && graph.edge != EdgeKind::None,
            ..sizes
        };
        // Before the first pass a program may look for the vertex of most arcs.
        let degrees = AlignedBuffer::footprint(shape.widest * size_of::<u64>());
        let looking = LOOKING_FRAMES as u64 * FRAME_BYTES + degrees;
        own + shape.least(sizes).max(looking)
    }

    /// Bytes of the budget that an engine takes before anything is asked of it.
    pub(crate) fn base_memory(graph: &GraphDims, workers: usize) -> u64 {
        RowFileIo::memory(page_bytes(&graph.batches)) * workers as u64
            + (FRAMES as u64) * FRAME_BYTES
            + GraphView::memory(graph)
            + GraphShape::of(graph, workers).wire
            + Checkpointer::MEMORY
    }

    fn build(
        graph: Arc<StoredGraph>,
        config: EngineConfig,
        ranks: Communicator,
        measure: &GraphDims,
        enough: u64,
    ) -> Result<Self, EngineError> {
        let ranks = Arc::new(ranks);
        let batches = Arc::new(measure.batches.clone());
        let page_bytes = page_bytes(&batches);
        let now = config.clock.now();
        let mut recovery = (config.checkpoints)
            .map(|asked| {
                let disk = Arc::clone(&config.disk);
                let when = (now, config.stop.clone());
                Checkpointer::new(disk, &config.budget, &ranks, asked, when, page_bytes)
            })
            .transpose()?;
        let (pages, kept) = match &mut recovery {
            None => {
                let path = config.scratch.join("rows");
                let disk = Arc::clone(&config.disk);
                (RowFile::create(disk, &path, page_bytes)?, None)
            }
            Some(recovery) => {
                let (pages, kept) = recovery.pages(page_bytes)?;
                (pages, Some(kept))
            }
        };
        let mut row_io = Vec::new();
        for _ in 0..config.workers.count() {
            row_io.push(Mutex::new(RowFileIo::new(
                config.disk.as_ref(),
                &config.budget,
                page_bytes,
            )?));
        }
        let frames = Mutex::new(PageCache::new(&graph, &config.budget, FRAMES)?);
        let arrays = ArrayStore::new(
            (Arc::clone(&batches), ranks.own()),
            (pages, kept),
            Arc::clone(&graph),
            config.budget.clone(),
            config.tiers.clone(),
        );
        let turned = graph
            .turned()
            .map(|graph| GraphView::new(Arc::new(graph), &config.budget))
            .transpose()?;
        let workers = config.workers.count();
        let traffic = MemoryTraffic::new(
            workers,
            config.charge,
            &config.tiers,
            (&config.clock, &config.stop),
        );
        let placement = placed_at(&config.tiers);
        let wire = match ranks.alone() {
            true => None,
            false => Some(Wire::new(&config.budget, ranks.count())?),
        };
        let common = EngineState {
            traffic,
            wire: wire.map(Mutex::new),
            ranks: Arc::clone(&ranks),
            shape: GraphShape::of(measure, config.workers.count()).with_tiers(&config.tiers),
            batches: Arc::clone(&batches),
            budget: config.budget.clone(),
            tiers: config.tiers,
            workers: config.workers,
            arrays,
            row_io,
            frames,
            stop: config.stop,
            options: config.options,
            clock: config.clock,
            scratch: config.scratch,
        };
        let active = ActiveSetPool::new(batches, ranks, config.budget.clone());
        if let Some(recovery) = &recovery {
            *active.history() = recovery.history();
        }
        Ok(Engine {
            common,
            stored: GraphView::new(graph, &config.budget)?,
            turned,
            active,
            on_pass: config.on_pass,
            metrics: Metrics {
                placement,
                vertex_state_resident: true,
                messages_resident: true,
                ..Metrics::default()
            },
            broken: false,
            enough,
            mean_weight: None,
            usual_degree: None,
            held: GraphCache::default(),
            workspaces: None,
            borrowed: 0,
            recovery,
        })
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &StoredGraph {
        &self.stored.graph
    }
    /// Returns the metrics of the passes so far.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
    /// Notes how near to a fixed point a run ended, for [`Engine::metrics`].
    pub fn note_convergence(&mut self, convergence: Convergence) {
        self.metrics.convergence = Some(convergence);
    }
    /// Number of vertices.
    #[must_use]
    pub fn vertices(&self) -> u64 {
        self.common.batches.vertices()
    }

    /// The vertex array of that name and type of element; a new one is zeros.
    ///
    /// # Errors
    /// The budget is too small.
    pub fn vertex_array<T: Element>(&mut self, name: &str) -> Result<VertexArray<T>, EngineError> {
        if let Some(array) = self.common.arrays.find(name) {
            return Ok(array);
        }
        let reserve = self.common.shape.reserve();
        let bytes = self.common.arrays.vertices() * size_of::<T>() as u64;
        if !self.common.arrays.has_room(bytes, reserve) {
            // Rows come before cells.
            self.release();
        }
        let array = self.common.arrays.make(name, reserve)?;
        if let Some(recovery) = &mut self.recovery {
            let is_paged = !self.common.arrays.all_resident();
            // What one rank has no room for is published by all.
            if self.common.ranks.total([u64::from(is_paged)])? != [0] {
                recovery.record_paged_rows();
            }
        }
        self.metrics.vertex_state_resident &= self
            .common
            .arrays
            .resident(&[ColumnAccess::Read(array.id())]);
        Ok(array)
    }

    /// A set without vertices.
    ///
    /// # Errors
    /// Fails if the run resumes from a checkpoint and the budget is too small for the members of the set there.
    pub fn empty_set(&self) -> Result<ActiveSet, EngineError> {
        let mut set = self.active.empty();
        if !self.active.history().is_within() {
            set.restore_or_register(0)?;
        }
        Ok(set)
    }
    /// The set of all vertices.
    ///
    /// # Errors
    /// The budget has no room for its bitmap.
    pub fn full_set(&self) -> Result<ActiveSet, EngineError> {
        let mut all = self.empty_set()?;
        all.insert_all().map_err(|error| self.too_small(error))?;
        Ok(all)
    }

    /// Calls `work(v, row)` for each active vertex, or for all, and sums its results batch by batch.
    ///
    /// # Errors
    /// Disk or budget failed, or the user asked to stop.
    pub fn process_vertices<R: Rows, A: Reduce>(
        &mut self,
        rows: R,
        active: Option<&ActiveSet>,
        work: impl Fn(u64, R::Row<'_>) -> A + Sync,
    ) -> Result<A, EngineError> {
        let work = |v, row: R::Row<'_>| (work(v, row), Activate::No);
        let (sum, []) = self.logged_passes(0, type_name::<(R, A)>(), |engine| {
            Ok((engine.vertices_pass(rows, active, None, work)?, []))
        })?;
        Ok(sum)
    }

    /// The vertices of whose rows `choose(v, row)` says so.
    ///
    /// # Errors
    /// Disk or budget failed, or the user asked to stop.
    pub fn select_vertices<R: Rows>(
        &mut self,
        rows: R,
        choose: impl Fn(u64, R::Row<'_>) -> bool + Sync,
    ) -> Result<ActiveSet, EngineError> {
        let ((), [chosen]) = self.logged_passes(0, type_name::<R>(), |engine| {
            let mut chosen = engine.active.empty();
            engine.vertices_pass(rows, None, Some(&chosen), |v, row| {
                let activate = match choose(v, row) {
                    true => Activate::Yes,
                    false => Activate::No,
                };
                ((), activate)
            })?;
            chosen.refresh_counts();
            let [total] = engine.common.ranks.total([chosen.own_len()])?;
            chosen.set_global_len(total);
            Ok(((), [chosen]))
        })?;
        Ok(chosen)
    }

    fn vertices_pass<R: Rows, A: Reduce>(
        &mut self,
        rows: R,
        active: Option<&ActiveSet>,
        activated: Option<&ActiveSet>,
        work: impl Fn(u64, R::Row<'_>) -> (A, Activate) + Sync,
    ) -> Result<A, EngineError> {
        let began = self.common.clock.now();
        if active.is_some_and(|active| !active.is_of(&self.active)) {
            return Err(EngineError::ForeignSet);
        }
        let mut needs = Vec::new();
        rows.needs(&mut needs);
        self.common.arrays.check(&needs)?;
        self.load_degrees(&needs)?;
        self.evict_for_rows(&needs);
        let machine = ExecContext::new(&self.common, &self.stored);
        let job = VertexPass::new(&machine, rows, active, activated, work);
        let done = run(&machine, &job);
        self.broken = done.is_err();
        done.map_err(|error| self.too_small(error))?;
        let sums: Vec<A> = job.sums().collect();
        // Nothing to add up is nothing to agree on.
        let (sum, []) = match size_of::<A>() {
            0 => (A::ZERO, []),
            _ => self.common.ranks.agree([sums], [])?,
        };
        let count = active.map_or(self.vertices(), ActiveSet::len);
        self.end_pass(
            began,
            PassMetrics {
                active: count,
                ..PassMetrics::new(Mode::Vertices)
            },
        );
        Ok(sum)
    }

    /// Runs one edge pass: active vertices send messages along their edges, in `direction`.
    ///
    /// Returns the sum of what `apply` returned, batch by batch, and the vertices it activated.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, or the user asked to stop.
    pub fn process_edges<P: EdgeProgram + 'static>(
        &mut self,
        program: &P,
        signal_rows: P::SignalRows,
        apply_rows: P::ApplyRows,
        active: &ActiveSet,
        direction: Direction,
    ) -> Result<(P::Sum, ActiveSet), EngineError> {
        let (sum, [activated]) = self.logged(type_name::<P>(), |engine| {
            engine.edges_pass(program, signal_rows, apply_rows, active, direction)
        })?;
        Ok((sum, activated))
    }

    fn edges_pass<P: EdgeProgram + 'static>(
        &mut self,
        program: &P,
        signal_rows: P::SignalRows,
        apply_rows: P::ApplyRows,
        active: &ActiveSet,
        direction: Direction,
    ) -> Result<(P::Sum, [ActiveSet; 1]), EngineError> {
        let began = self.common.clock.now();
        if !active.is_of(&self.active) {
            return Err(EngineError::ForeignSet);
        }
        let mut needs = Vec::new();
        signal_rows.needs(&mut needs);
        self.common.arrays.check(&needs)?;
        let signal = needs.len();
        apply_rows.needs(&mut needs);
        self.common.arrays.check(&needs[signal..])?;
        self.load_degrees(&needs)?;
        let kind = TypeId::of::<P>();
        // A program of another kind needs its own buffers; the buffers of the last kind are freed first.
        let mut workspace = match self.workspaces.take() {
            Some((of, workspace)) if of == kind => workspace.downcast::<ColumnScratch<P>>().ok(),
            _ => {
                self.active.trim();
                None
            }
        }
        .unwrap_or_default();
        let stored = ExecContext::new(&self.common, &self.stored);
        let turned = self.turned.as_ref();
        let ways = Orientations {
            stored,
            turned: turned.map(|way| ExecContext::new(&self.common, way)),
        };
        let (signal, apply) = needs.split_at(signal);
        let pass = Pass {
            machine: &stored,
            program,
            signal,
            apply,
            active,
            borrowed: self.borrowed,
        };
        let mut done = PassOutput {
            sums: Vec::new(),
            activated: self.active.empty(),
            report: PassMetrics::new(Mode::Scatter),
        };
        let outcome = superstep::edges(
            pass,
            ways,
            direction,
            &mut workspace,
            &mut self.held,
            &mut done,
        );
        self.count_held();
        self.metrics.messages_resident &= workspace.messages_resident();
        self.workspaces = Some((kind, workspace));
        self.broken = outcome.is_err();
        outcome.map_err(|error| self.too_small(error))?;
        let PassOutput {
            sums,
            mut activated,
            report,
        } = done;
        let agreed = self.common.ranks.agree([sums], [activated.own_len()]);
        self.broken = agreed.is_err();
        let (sum, [total]) = agreed?;
        activated.set_global_len(total);
        self.end_pass(began, report);
        Ok((sum, [activated]))
    }

    /// Runs one pass of addressed messages: each active vertex, or each of all, sends to any vertices.
    ///
    /// Vertices that are reached fold their messages. Returns the sum of what the program's functions returned, batch by batch,
    /// senders first; then the senders that are active next; then the vertices that were reached.
    ///
    /// # Errors
    /// Disk or budget failed, the user asked to stop, or a message was for no vertex.
    pub fn process_sends<P: MessageProgram>(
        &mut self,
        program: &P,
        send_rows: P::SendRows,
        apply_rows: P::ApplyRows,
        active: Option<&ActiveSet>,
    ) -> Result<(P::Sum, [ActiveSet; 2]), EngineError> {
        self.logged(type_name::<P>(), |engine| {
            engine.sends_pass(program, send_rows, apply_rows, active)
        })
    }

    fn sends_pass<P: MessageProgram>(
        &mut self,
        program: &P,
        send_rows: P::SendRows,
        apply_rows: P::ApplyRows,
        active: Option<&ActiveSet>,
    ) -> Result<(P::Sum, [ActiveSet; 2]), EngineError> {
        let began = self.common.clock.now();
        if active.is_some_and(|active| !active.is_of(&self.active)) {
            return Err(EngineError::ForeignSet);
        }
        let mut needs = Vec::new();
        send_rows.needs(&mut needs);
        self.common.arrays.check(&needs)?;
        let send = needs.len();
        apply_rows.needs(&mut needs);
        self.common.arrays.check(&needs[send..])?;
        self.load_degrees(&needs)?;
        let (send, apply) = needs.split_at(send);
        let sets = [self.active.empty(), self.active.empty()];
        self.evict_to_free(pass::least::<P>(&self.machine(false), send, apply));
        let machine = ExecContext::new(&self.common, &self.stored);
        let sent = pass::pass(&machine, program, send, apply, active, sets);
        self.broken = sent.is_err();
        let mut sent = sent.map_err(|error| self.too_small(error))?;
        let mine = [sent.senders.own_len(), sent.reached.own_len()];
        let agreed = self.common.ranks.agree(sent.sums, mine);
        self.broken = agreed.is_err();
        let (sum, [senders, reached]) = agreed?;
        sent.senders.set_global_len(senders);
        sent.reached.set_global_len(reached);
        let count = active.map_or(self.vertices(), ActiveSet::len);
        self.end_pass(
            began,
            PassMetrics {
                active: count,
                messages: sent.messages,
                messages_sent: sent.passed[0],
                bytes_sent: sent.passed[1],
                ..PassMetrics::new(Mode::Send)
            },
        );
        Ok((sum, [sent.senders, sent.reached]))
    }

    /// Returns the context of one orientation of the graph.
    pub(crate) fn machine(&self, turned: bool) -> ExecContext<'_> {
        let way = self.turned.as_ref().filter(|_| turned);
        ExecContext::new(&self.common, way.unwrap_or(&self.stored))
    }

    pub(crate) fn too_small(&self, error: EngineError) -> EngineError {
        too_small(error, &self.common.budget, self.enough)
    }

    /// Adds up what the passes did at all ranks. Every rank calls it once, at the end.
    ///
    /// # Errors
    /// A rank is lost.
    pub fn share_metrics(&mut self) -> Result<(), EngineError> {
        let EngineState {
            ranks,
            wire,
            budget,
            arrays,
            ..
        } = &self.common;
        let Some(wire) = wire else {
            return Ok(());
        };
        let own = ranks.own();
        let sent = |which: usize| lock(wire).to_each().iter().map(|to| to[which]).collect();
        let columns = own.clone().map(|batch| self.stored.graph.column(batch));
        let of_rank = RankMetrics {
            batches: [own.start as u64, own.end as u64],
            vertices: arrays.vertices(),
            edges: columns.map(Column::edges).sum(),
            peak_memory: budget.peak(),
            messages_to: sent(0),
            bytes_to: sent(1),
        };
        let mut counts = self.metrics.put_counts();
        ranks.add_up(&mut counts)?;
        self.metrics.take_counts(&counts);
        let said = ranks.gather(Metrics::put(&of_rank))?;
        self.metrics.take(&said).ok_or_else(mismatch)
    }

    /// Which rank this engine is of, and of how many.
    #[must_use]
    pub fn rank(&self) -> (usize, usize) {
        (self.common.ranks.rank(), self.common.ranks.count())
    }

    /// Returns the seconds spent loading edges into memory since the last call.
    pub(crate) fn take_loading(&mut self) -> f64 {
        let loading = self.held.take_loading().as_secs_f64();
        self.metrics.loading += loading;
        loading
    }

    pub(crate) fn end_pass(&mut self, began: Duration, mut superstep: PassMetrics) {
        self.common.arrays.publish();
        let loading = self.take_loading();
        let (read, written) = self.common.arrays.take_traffic();
        superstep.bytes_read += read;
        superstep.bytes_written += written;
        (superstep.tiers, superstep.simulated_tier_seconds) = self.common.traffic.take();
        superstep.seconds = (self.common.clock.now() - began).as_secs_f64() - loading;
        if let Some(tell) = &self.on_pass {
            tell(self.metrics.pass_number(), &superstep);
        }
        self.metrics.push(superstep);
    }
}

/// Says what budget would be enough, where a lease was refused and the budget is smaller than that.
fn too_small(error: EngineError, budget: &MemoryBudget, enough: u64) -> EngineError {
    let refused = matches!(
        &error,
        EngineError::Budget(_)
            | EngineError::Storage(StorageError::Budget(_))
            | EngineError::Graph(
                FormatError::Budget(_) | FormatError::Storage(StorageError::Budget(_)),
            )
    );
    if refused && enough > budget.total() {
        return EngineError::TooSmall {
            what: "a run",
            least: enough,
            budget: budget.total(),
        };
    }
    error
}
