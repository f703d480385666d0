//! The engine: a stored graph, its vertex arrays, and the passes over them.

use std::any::{Any, TypeId, type_name};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use graphmill_graph::{EdgeKind, FieldType, FormatError, Layout, StoredGraph};
use graphmill_raw::Element;
use graphmill_storage::{DataKind, MemoryBudget, StorageError};

use crate::cache::graph_cache::GraphCache;
use crate::checkpoint::checkpointer::Checkpointer;
use crate::context::{EngineState, ExecContext, Orientations};
use crate::driver_log::call_name;
use crate::error::{EngineError, ensure};
use crate::exec::bucket;
use crate::exec::bucket::plane::BucketPlane;
use crate::exec::bucket::superstep::BucketBuffers;
use crate::exec::column::edge_pass;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::column::scratch::ColumnScratch;
use crate::exec::send_pass::{asks, pass};
use crate::exec::stream::scratch::PassBuffers;
use crate::exec::stream::superstep;
use crate::exec::vertex_pass::RowPass;
use crate::frontier::active_set::{ActiveSet, ActiveSetPool};
use crate::graph_view::GraphView;
use crate::metrics::run::{Convergence, Metrics, Mode, PassMetrics};
use crate::program::ask::AskProgram;
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::program::message::MessageProgram;
use crate::state::rows::{ColumnAccess, Rows};
use crate::state::vertex_array::VertexArray;
use crate::value::{EdgeValue, Reduce};
use crate::workspace::take_workspace;

/// Number of frames that are cached while all degrees are read in order.
pub(crate) const LOOKING_FRAMES: usize = 2;

/// A stored graph with vertex arrays, ready for passes.
pub struct Engine {
    pub(crate) common: EngineState,
    pub(crate) stored: GraphView,
    /// The transposed graph, if the graph is directed and was imported with it.
    pub(crate) transposed: Option<GraphView>,
    pub(crate) active: Arc<ActiveSetPool>,
    pub(crate) metrics: Metrics,
    /// A pass failed.
    pub(crate) broken: bool,
    /// A budget that is enough for the usual program.
    pub(crate) enough: u64,
    /// [`Engine::sample_mean_weight`], once it was asked for.
    pub(crate) mean_weight: Option<Option<f64>>,
    /// [`Engine::sample_degree`], once it was asked for.
    pub(crate) usual_degree: Option<f64>,
    /// The cached parts of the graph that passes of any kind use.
    pub(crate) cache: GraphCache,
    /// Buffers that passes of one kind keep from one to the next, by the kind of program.
    pub(crate) workspaces: Option<(TypeId, Box<dyn Any + Send>)>,
    /// The data plane of the bucket executor.
    pub(crate) buckets: Option<BucketPlane>,
    /// Number of supersteps of the stream or the bucket executor so far.
    pub(crate) supersteps: u64,
    /// Bytes that passes over vertices, and of sends, took at most.
    pub(crate) borrowed: u64,
    /// Count programs work window by window, because their lists did not fit.
    pub(crate) counts_by_windows: bool,
    /// The arcs into each vertex are counted, for count programs.
    pub(crate) arcs_are_counted: bool,
    /// The checkpointer, if the run writes checkpoints.
    pub(crate) recovery: Option<Checkpointer>,
}

impl Engine {
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
        let bytes = self.common.arrays.vertices() * size_of::<T>() as u64;
        let on_disk = self.common.on_disk_with(size_of::<T>());
        let reserve = self.common.shape.reserve(self.common.sizes, on_disk);
        let stays = self.common.stays_in_memory(size_of::<T>());
        if !self.common.arrays.has_room(bytes, reserve) {
            // Rows come before cells.
            self.release();
        }
        let array = (self.common.arrays).make(name, if stays { 0 } else { reserve })?;
        if let Some(recovery) = &mut self.recovery {
            let is_paged = !self.common.arrays.all_resident();
            // What one rank has no room for is published by all.
            if self.common.ranks.total([u64::from(is_paged)])? != [0] {
                recovery.record_paged_rows();
            }
        }
        self.metrics.vertex_state_resident &= self.common.arrays.in_memory(array.id());
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
        let name = call_name::<(R, A)>("process_vertices");
        let (sum, []) = self.logged_passes(0, &name, |engine| {
            Ok((engine.vertices_pass(rows, active, None, work)?, []))
        })?;
        Ok(sum)
    }

    /// Returns the active vertices, or all vertices, for whose rows `choose(v, row)` is true.
    ///
    /// # Errors
    /// Disk or budget failed, or the user asked to stop.
    pub fn select_vertices<R: Rows>(
        &mut self,
        rows: R,
        active: Option<&ActiveSet>,
        choose: impl Fn(u64, R::Row<'_>) -> bool + Sync,
    ) -> Result<ActiveSet, EngineError> {
        let name = call_name::<R>("select_vertices");
        let ((), [chosen]) = self.logged_passes(0, &name, |engine| {
            let mut chosen = engine.active.empty();
            engine.vertices_pass(rows, active, Some(&chosen), |v, row| {
                ((), Activate::when(choose(v, row)))
            })?;
            chosen.agree_len()?;
            Ok(((), [chosen]))
        })?;
        Ok(chosen)
    }

    /// Checks the rows that the two phases of a pass name, and loads what the graph keeps of them.
    pub(crate) fn prepare_rows(
        &mut self,
        active: Option<&ActiveSet>,
        first: impl Rows,
        second: impl Rows,
    ) -> Result<[Vec<ColumnAccess>; 2], EngineError> {
        let is_own = active.is_none_or(|active| active.is_of(&self.active));
        ensure(is_own, || EngineError::ForeignSet)?;
        let mut needs = [Vec::new(), Vec::new()];
        first.needs(&mut needs[0]);
        second.needs(&mut needs[1]);
        for of_phase in &needs {
            self.common.arrays.check(of_phase)?;
        }
        self.load_degrees(&needs.concat())?;
        Ok(needs)
    }

    pub(crate) fn vertices_pass<R: Rows, A: Reduce>(
        &mut self,
        rows: R,
        active: Option<&ActiveSet>,
        activated: Option<&ActiveSet>,
        work: impl Fn(u64, R::Row<'_>) -> (A, Activate) + Sync,
    ) -> Result<A, EngineError> {
        let began = self.common.clock.now();
        let [needs, _] = self.prepare_rows(active, rows, ())?;
        let enough = self.evict_for_rows(&needs).max(self.enough);
        let pass = RowPass {
            context: &ExecContext::new(&self.common, &self.stored),
            needs: &needs,
            active,
            activated,
        };
        let done = pass.run::<R, A>(work);
        self.broken = done.is_err();
        let sums = done.map_err(|error| too_small(error, &self.common.budget, enough))?;
        // Nothing to add up is nothing to agree on.
        let (sum, []) = match size_of::<A>() {
            0 => (A::ZERO, []),
            _ => self.common.ranks.agree([sums], [])?,
        };
        let mut report = PassMetrics::new(Mode::Vertices);
        report.active = active.map_or(self.vertices(), ActiveSet::len);
        self.end_pass(began, report);
        Ok(sum)
    }

    /// Runs one edge pass: active vertices send messages along their edges, in `direction`.
    ///
    /// Returns the sum of what `apply` returned, batch by batch, and the vertices it activated.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, the user asked to stop, or edges carry other data than the
    /// program reads.
    pub fn process_edges<P: EdgeProgram + 'static>(
        &mut self,
        program: &P,
        signal_rows: P::SignalRows,
        apply_rows: P::ApplyRows,
        active: &ActiveSet,
        direction: Direction,
    ) -> Result<(P::Sum, ActiveSet), EngineError> {
        self.check_edges::<P::Edge, P>()?;
        let name = call_name::<P>("process_edges");
        let (sum, [activated]) = self.logged_passes(1, &name, |engine| {
            let rows = (signal_rows, apply_rows);
            let own = engine.common.ranks.own();
            let done = engine.edges_pass(program, rows, active, direction, &own)?;
            Ok((done.0, [done.1]))
        })?;
        Ok((sum, activated))
    }

    /// Fails unless the edges carry what the edge values of program `P` are made from.
    pub(crate) fn check_edges<E: EdgeValue, P: 'static>(&self) -> Result<(), EngineError> {
        let graph = self.graph();
        let list = |fields: &[(&str, FieldType)]| {
            let texts = fields.iter().map(|(name, kind)| format!("{name}:{kind}"));
            texts.collect::<Vec<_>>().join(",")
        };
        let (fields, stored) = (graph.edge_fields().list().iter(), graph.edge_kind());
        let fields: Vec<_> = fields.map(|field| (&*field.name, field.kind)).collect();
        if fields == E::FIELDS || E::FIELDS.is_empty() && !E::WEIGHTED {
            return Ok(());
        }
        let (reads, option) = match list(E::FIELDS) {
            wanted if wanted.is_empty() => ("a weight".into(), "--weights f32 or f64".into()),
            wanted => (
                format!("the record {wanted}"),
                format!("--edge-data {wanted}"),
            ),
        };
        Err(EngineError::EdgeData {
            program: type_name::<P>(),
            graph: graph.path().to_path_buf(),
            reads,
            carried: match stored {
                EdgeKind::None => "nothing".into(),
                EdgeKind::F32 | EdgeKind::F64 => "a weight".into(),
                EdgeKind::Record(_) => format!("the record {}", list(&fields)),
            },
            option,
        })
    }

    /// Runs an edge pass that is needed for some of this rank's batches only.
    pub(crate) fn edges_pass<P: EdgeProgram + 'static>(
        &mut self,
        program: &P,
        (signal_rows, apply_rows): (P::SignalRows, P::ApplyRows),
        active: &ActiveSet,
        direction: Direction,
        folding: &Range<usize>,
    ) -> Result<(P::Sum, ActiveSet), EngineError> {
        let began = self.common.clock.now();
        let [signal, apply] = self.prepare_rows(Some(active), signal_rows, apply_rows)?;
        let kind = TypeId::of::<P>();
        if self.workspaces.as_ref().is_none_or(|(of, _)| *of != kind) {
            let staged = |needs| self.common.arrays.staged_bytes(needs);
            let sizes = ProgramFootprint {
                rows: staged(&signal).max(staged(&apply)),
                ..ProgramFootprint::of::<P>()
            };
            self.use_workers_that_fit(|engine| {
                let least = engine.common.shape.least(sizes);
                let of_nodes = engine.common.tiers.check_nodes(DataKind::Messages, least);
                if of_nodes.is_ok() { least } else { u64::MAX }
            });
        }
        if self.graph().layout() == Layout::Stream && direction == Direction::Backward {
            self.transpose_chunks()?;
        }
        if self.buckets.is_some() {
            let is_against = direction == Direction::Backward && !self.graph().symmetric();
            let held = self.hold_rows(is_against && self.transposed.is_some());
            self.checked(held)?;
        }
        let context = |view| ExecContext::new(&self.common, view);
        let stored = context(&self.stored);
        let pass = Pass {
            context: &stored,
            orientations: Orientations {
                stored,
                transposed: self.transposed.as_ref().map(context),
            },
            direction,
            program,
            signal: &signal,
            apply: &apply,
            active,
            folding,
            borrowed: self.borrowed,
        };
        let mut done = PassOutput {
            sums: Vec::new(),
            activated: self.active.empty(),
            report: PassMetrics::new(Mode::Scatter),
        };
        let outcome = match (self.stored.graph.layout(), &self.buckets) {
            (Layout::Column, Some(plane)) => {
                let mut workspace =
                    take_workspace::<P, Option<BucketBuffers>>(&mut self.workspaces, &self.active);
                let outcome = bucket::superstep::edges(
                    pass,
                    self.supersteps,
                    (plane, &self.cache),
                    &mut workspace,
                    &mut done,
                );
                self.workspaces = Some((kind, workspace));
                self.supersteps += 1;
                outcome
            }
            (Layout::Column, None) => {
                let mut workspace =
                    take_workspace::<P, ColumnScratch<P>>(&mut self.workspaces, &self.active);
                let outcome = edge_pass::edges(pass, &mut workspace, &mut self.cache, &mut done);
                self.metrics.messages_resident &= workspace.messages_resident();
                self.workspaces = Some((kind, workspace));
                outcome
            }
            (Layout::Stream, _) => {
                let mut workspace =
                    take_workspace::<P, Option<PassBuffers>>(&mut self.workspaces, &self.active);
                let number = self.supersteps;
                let outcome = superstep::edges(pass, number, &mut workspace, &mut done);
                self.metrics.messages_resident &= workspace
                    .as_ref()
                    .as_ref()
                    .is_none_or(PassBuffers::is_resident);
                self.workspaces = Some((kind, workspace));
                self.supersteps += 1;
                outcome
            }
        };
        self.count_held();
        self.checked(outcome)?;
        let (sums, mut activated) = (done.sums, done.activated);
        let agreed = self.common.ranks.agree([sums], [activated.own_len()]);
        let (sum, [total]) = self.checked(agreed)?;
        activated.set_global_len(total);
        self.end_pass(began, done.report);
        Ok((sum, activated))
    }

    /// Runs one pass of addressed messages: each active vertex, or each of all, sends to any vertices.
    ///
    /// Vertices that are reached fold their messages. Returns the sum of what the program's functions returned, batch by batch,
    /// senders first; then the senders that are active next; then the vertices that were reached.
    ///
    /// # Errors
    /// Disk or budget failed, the user asked to stop, or a message was for no vertex.
    pub fn process_messages<P: MessageProgram>(
        &mut self,
        program: &P,
        send_rows: P::SendRows,
        apply_rows: P::ApplyRows,
        active: Option<&ActiveSet>,
    ) -> Result<(P::Sum, [ActiveSet; 2]), EngineError> {
        let name = call_name::<P>("process_messages");
        self.logged_passes(1, &name, |engine| {
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
        let [send, apply] = &self.prepare_rows(active, send_rows, apply_rows)?;
        let sets = [self.active.empty(), self.active.empty()];
        let takes = |engine: &Engine| pass::least::<P>(&engine.context(false), send, apply);
        self.use_workers_that_fit(takes);
        self.evict_to_free(takes(self));
        let context = ExecContext::new(&self.common, &self.stored);
        let sent = pass::pass(&context, program, send, apply, active, sets);
        let (sums, mut sets, mut report) = self.checked(sent)?;
        let mine = sets.each_ref().map(ActiveSet::own_len);
        let agreed = self.common.ranks.agree(sums, mine);
        let (sum, totals) = self.checked(agreed)?;
        for (set, total) in sets.iter_mut().zip(totals) {
            set.set_global_len(total);
        }
        report.active = active.map_or(self.vertices(), ActiveSet::len);
        self.end_pass(began, report);
        Ok((sum, sets))
    }

    /// Runs one pass of asks: each active vertex, or each of all, asks at most one vertex.
    ///
    /// It takes the answer, which comes from rows as they were before the first `take`. Returns the sum of what `take` returned, batch by batch, and the
    /// vertices that it activated.
    ///
    /// # Errors
    /// Disk or budget failed, the user asked to stop, or a vertex asked one that the graph does not have.
    pub fn process_asks<P: AskProgram>(
        &mut self,
        program: &P,
        ask_rows: P::AskRows,
        answer_rows: P::AnswerRows,
        take_rows: P::TakeRows,
        active: Option<&ActiveSet>,
    ) -> Result<(P::Sum, ActiveSet), EngineError> {
        let name = call_name::<P>("process_asks");
        let (sum, [activated]) = self.logged_passes(1, &name, |engine| {
            engine.asks_pass(program, (ask_rows, answer_rows, take_rows), active)
        })?;
        Ok((sum, activated))
    }

    fn asks_pass<P: AskProgram>(
        &mut self,
        program: &P,
        rows: (P::AskRows, P::AnswerRows, P::TakeRows),
        active: Option<&ActiveSet>,
    ) -> Result<(P::Sum, [ActiveSet; 1]), EngineError> {
        let began = self.common.clock.now();
        let [ask, answer] = self.prepare_rows(active, rows.0, rows.1)?;
        let [take, _] = self.prepare_rows(active, rows.2, ())?;
        let rows = [ask, answer, take];
        let next = self.active.empty();
        let takes = |engine: &Engine| asks::least::<P>(&engine.context(false), &rows);
        self.use_workers_that_fit(takes);
        self.evict_to_free(takes(self));
        let context = ExecContext::new(&self.common, &self.stored);
        let done = asks::pass(&context, program, &rows, active, next);
        let (sums, mut next, mut report) = self.checked(done)?;
        let agreed = self.common.ranks.agree([sums], [next.own_len()]);
        let (sum, [total]) = self.checked(agreed)?;
        next.set_global_len(total);
        report.active = active.map_or(self.vertices(), ActiveSet::len);
        self.end_pass(began, report);
        Ok((sum, [next]))
    }

    /// The directions in which messages reach all neighbours: both, unless each arc has its opposite.
    #[must_use]
    pub fn neighbour_directions(&self) -> &'static [Direction] {
        match self.graph().symmetric() {
            true => &[Direction::Forward],
            false => &[Direction::Forward, Direction::Backward],
        }
    }

    /// Returns the context of one orientation of the graph.
    pub(crate) fn context(&self, transposed: bool) -> ExecContext<'_> {
        let view = self.transposed.as_ref().filter(|_| transposed);
        ExecContext::new(&self.common, view.unwrap_or(&self.stored))
    }

    /// Passes on the outcome of a part of a pass, and notes whether it failed.
    pub(crate) fn checked<T>(&mut self, outcome: Result<T, EngineError>) -> Result<T, EngineError> {
        self.broken = outcome.is_err();
        outcome.map_err(|error| self.too_small(error))
    }

    pub(crate) fn too_small(&self, error: EngineError) -> EngineError {
        too_small(error, &self.common.budget, self.enough)
    }

    /// Returns the seconds spent loading edges into memory since the last call.
    pub(crate) fn take_loading(&mut self) -> f64 {
        let loading = std::mem::take(&mut self.cache.loading).as_secs_f64();
        self.metrics.loading += loading;
        loading
    }

    pub(crate) fn end_pass(&mut self, began: Duration, mut edge_pass: PassMetrics) {
        self.common.arrays.publish();
        let loading = self.take_loading();
        edge_pass.add_traffic(self.common.arrays.take_traffic());
        (edge_pass.tiers, edge_pass.simulated_tier_seconds) = self.common.traffic.take();
        edge_pass.seconds = (self.common.clock.now() - began).as_secs_f64() - loading;
        if let Some(tell) = &self.common.on_pass {
            tell(self.metrics.pass_number(), &edge_pass);
        }
        self.metrics.push(edge_pass);
    }
}

/// Which rank this engine is of, and of how many.
#[must_use]
pub fn rank(engine: &Engine) -> (usize, usize) {
    (engine.common.ranks.rank(), engine.common.ranks.count())
}

/// Notes how near to a fixed point a run ended, for [`Engine::metrics`].
pub fn note_convergence(engine: &mut Engine, convergence: Convergence) {
    engine.metrics.convergence = Some(convergence);
}

/// Says what budget would be enough, where a lease was refused and the budget is smaller than that.
///
/// A pass that says what it needs may be the smallest of its program.
pub(crate) fn too_small(mut error: EngineError, budget: &MemoryBudget, enough: u64) -> EngineError {
    if let EngineError::TooSmall { least, .. } = &mut error {
        *least = enough.max(*least);
        return error;
    }
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
