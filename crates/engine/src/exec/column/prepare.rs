//! Decisions before a pass: its kernel and direction, what stays in the cache, and how memory is shared out.

use graphmill_graph::EdgeKind;
use graphmill_storage::{DataKind, StorageError};

use crate::cache::cells::CellCache;
use crate::cache::degree_sketch::{DegreeSketch, are_sketches_small};
use crate::cache::graph_cache::GraphCache;
use crate::config::{DispatchChoice, EdgeResidency};
use crate::context::{ExecContext, Orientations};
use crate::error::EngineError;
use crate::exchange::filter::filter_budgets;
use crate::exec::column::kernel::pass::Pass;
use crate::exec::column::phase::sparse::adjacency::AdjacencyScratch;
use crate::exec::column::scratch::ColumnScratch;
use crate::graph_view::CellBytes;
use crate::memory::plan::{PassMemory, WINDOW_BATCHES_MIN};
use crate::messages::buffer::MessageBuffer;
use crate::metrics::run::Mode;
use crate::planner::kernel::{KernelPlan, PassStats, choose_kernel};
use crate::planner::routing::{self, RoutingDecision, RoutingPlanner};
use crate::planner::routing_memory::{RoutingBudget, routing_budget};
use crate::planner::routing_stats::table_bytes;
use crate::program::edge::{ApplyTo, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::schedule::tasks::column_groups;
use crate::value::EdgeValue;

/// Sparse passes before the lists of all vertices are decoded, where the budget has room for that.
const SPARSE_PASSES_BEFORE_LISTS: u32 = 16;

/// Active vertices up to which ranks reserve the queues of a sparse pass before they choose it.
const FEW: u64 = 64;

impl<P: EdgeProgram> ColumnScratch<P> {
    /// Chooses the kernel of a pass, caches the cells that are worth it and evicts what it must.
    ///
    /// The first pass does so for all passes.
    pub(crate) fn choose(
        &mut self,
        pass: &Pass<'_, P>,
        cache: &mut GraphCache,
    ) -> Result<KernelPlan, EngineError> {
        let orientations = pass.orientations;
        if self.messages.is_none() {
            self.prepare(pass, cache)?;
        }
        if !pass.context.ranks.alone() {
            return self.choose_together(pass, cache);
        }
        loop {
            let facts = self.facts(pass, cache)?;
            let KernelPlan { mode, transposed } = choose_kernel(&facts);
            let is_pinned = cache.orientation(transposed).is_fully_cached().is_some();
            let is_sparse = mode == Mode::Sparse
                && (is_pinned || !self.is_cache_worthwhile(orientations, transposed, cache));
            if is_sparse && self.sparse(pass, transposed, facts.edges, cache)? {
                return Ok(KernelPlan { mode, transposed });
            }
            if is_pinned {
                let both = PassStats {
                    both_resident: true,
                    ..facts
                };
                if choose_kernel(&both).transposed && !transposed {
                    cache.pulls_missed += 1;
                }
                self.dense(&orientations.orientation(transposed), transposed, cache)?;
                // A sparse pass whose queues might not fit is a dense one.
                let mode = dense_mode(mode);
                return Ok(KernelPlan { mode, transposed });
            }
            // The newly cached data may make another choice the better one.
            self.pin(orientations, transposed, cache)?;
        }
    }

    /// Chooses the kernel when other ranks take part: all use the same one, but each has its own cache.
    fn choose_together(
        &mut self,
        pass: &Pass<'_, P>,
        cache: &mut GraphCache,
    ) -> Result<KernelPlan, EngineError> {
        let (orientations, ranks) = (pass.orientations, &pass.context.ranks);
        let facts = self.facts(pass, cache)?;
        let transposed = Self::goes_transposed(pass);
        let (context, cached) = (
            orientations.orientation(transposed),
            cache.orientation(transposed),
        );
        let (CellBytes { block_lists, cells }, has_fanout) = cached.in_memory(self.weighted);
        let scanned = cache.orientation(false).in_memory(self.weighted).0.cells;
        let [guesses, lacks] = [cached.degrees.is_none(), !has_fanout].map(u64::from);
        let PassStats { edges, workers, .. } = facts;
        let unready = u64::from(!self.reserve_early(pass, transposed, cache)?);
        let mine = [
            edges,
            workers,
            block_lists,
            cells,
            scanned,
            guesses,
            lacks,
            unready,
        ];
        let all = ranks.total(mine)?;
        let [
            edges,
            workers,
            block_lists,
            cells,
            scanned,
            guesses,
            lacks,
            unready,
        ] = all;
        self.sparse.placed = lacks > 0;
        let in_memory = CellBytes { block_lists, cells };
        let KernelPlan { mode, transposed } = choose_kernel(&PassStats {
            edges: edges.min(facts.arcs),
            workers: workers / ranks.count() as u64,
            on_disk: context.on_disk(self.weighted, in_memory, lacks == 0),
            scanned: orientations.stored.cells_on_disk(self.weighted, scanned),
            // A gather reads cells in the columns of other ranks, which this rank does not cache.
            pulls: false,
            both_resident: false,
            decoded: false,
            ..facts
        });
        if mode == Mode::Sparse && unready == 0 && transposed == Self::goes_transposed(pass) {
            return Ok(KernelPlan { mode, transposed });
        }
        self.sparse.reserved = None;
        if mode == Mode::Sparse {
            if cache.orientation(transposed).is_fully_cached().is_none()
                && self.is_cache_worthwhile(orientations, transposed, cache)
            {
                self.pin(orientations, transposed, cache)?;
            }
            // What one rank only guesses is no bound.
            let most = if guesses == 0 { edges } else { u64::MAX };
            let fits = self.sparse(pass, transposed, most, cache)?;
            if ranks.total([u64::from(!fits)])? == [0] {
                return Ok(KernelPlan { mode, transposed });
            }
            // It may have fitted here, and not elsewhere.
            self.sparse.reserved = None;
        }
        if cache.orientation(transposed).is_fully_cached().is_none() {
            self.pin(orientations, transposed, cache)?;
        }
        self.dense(&orientations.orientation(transposed), transposed, cache)?;
        let mode = dense_mode(mode);
        if mode == Mode::Gather {
            self.streams(&orientations.orientation(transposed))?;
        }
        Ok(KernelPlan { mode, transposed })
    }

    /// Reserves the queues of a sparse pass of few vertices; returns true if they fit.
    ///
    /// If they fit at every rank before the ranks choose, the choice needs no second agreement.
    fn reserve_early(
        &mut self,
        pass: &Pass<'_, P>,
        transposed: bool,
        cache: &mut GraphCache,
    ) -> Result<bool, EngineError> {
        let cached = cache.orientation(transposed);
        let is_possible = pass.active.len() <= FEW
            && cached.is_fully_cached() == Some(true)
            && cached.in_memory(self.weighted).1;
        self.sparse.placed = false; // Every rank that reserves early has all fan-out lists.
        Ok(is_possible && self.sparse(pass, transposed, u64::MAX, cache)?)
    }

    /// True if a pass follows transposed arcs, where the graph has them.
    fn goes_transposed(pass: &Pass<'_, P>) -> bool {
        let symmetric = pass.context.graph.symmetric();
        pass.direction == Direction::Backward
            && !symmetric
            && pass.orientations.transposed.is_some()
    }

    /// What the choice of a pass's mode depends on.
    fn facts(&self, pass: &Pass<'_, P>, cache: &GraphCache) -> Result<PassStats, EngineError> {
        // A lookup follows arcs from the senders.
        let (orientations, sparse_transposed) = (pass.orientations, Self::goes_transposed(pass));
        let context = &orientations.orientation(sparse_transposed);
        let cached = cache.orientation(sparse_transposed);
        let (in_memory, has_fanout) = cached.in_memory(self.weighted);
        let scanned = cache.orientation(false).in_memory(self.weighted).0.cells;
        let mut facts = PassStats {
            direction: pass.direction,
            symmetric: orientations.stored.graph.symmetric(),
            transposed: orientations.transposed.is_some(),
            pulls: P::EARLY_EXIT,
            every: pass.program.apply_to() == ApplyTo::All,
            active: pass.active.len(),
            edges: 0,
            vertices: context.batches.vertices(),
            arcs: context.graph.arcs(),
            columns: context.batches.len() as u64,
            workers: context.workers.count() as u64,
            allows_sparse: Self::allows_sparse(pass.program, &orientations.stored),
            on_disk: context.on_disk(self.weighted, in_memory, has_fanout),
            scanned: orientations.stored.cells_on_disk(self.weighted, scanned),
            both_resident: cache.both(),
            decoded: self.follows(context, cached),
            gamma: context.options.gamma,
            kernel: context.options.kernel,
            sparse: context.options.sparse,
        };
        let enough = match cached.is_fully_cached() {
            Some(true) => facts.edges_enough(),
            // What they take to read matters too.
            _ => 0,
        };
        facts.edges = match &cached.degrees {
            Some(degrees) if facts.active < facts.vertices => {
                degrees.edges(context, pass.active, enough)?
            }
            _ => {
                let mean = facts.arcs.div_ceil(facts.vertices.max(1));
                // Of this rank's, as ranks add up theirs.
                pass.active.own_len().saturating_mul(mean)
            }
        }
        .min(facts.arcs);
        Ok(facts)
    }

    /// True if sparse passes have read enough to fill the cache, or edges belong in memory at any cost.
    fn is_cache_worthwhile(
        &self,
        orientations: Orientations<'_>,
        transposed: bool,
        cache: &mut GraphCache,
    ) -> bool {
        let context = &orientations.orientation(transposed);
        if context.options.edges == EdgeResidency::Memory {
            return true;
        }
        let bytes = context.budget.available().saturating_sub(self.keep);
        cache.is_cache_worthwhile(context, transposed, self.weighted, bytes)
    }

    /// Prepares a sparse pass over one orientation, of vertices with at most the given edges if known.
    ///
    /// Returns `false` if its queues might not fit.
    fn sparse(
        &mut self,
        pass: &Pass<'_, P>,
        transposed: bool,
        edges: u64,
        cache: &mut GraphCache,
    ) -> Result<bool, EngineError> {
        let context = &pass.orientations.orientation(transposed);
        let pass = &Pass { context, ..*pass };
        let all = cache.orientation(transposed).is_fully_cached() == Some(true);
        if !all {
            self.streams(context)?;
        }
        // What dense passes, and those over the other way round, have not taken yet stays theirs.
        let sparse_bytes = context.shape.sparse_bytes(pass.staged_bytes());
        let mut leave = sparse_bytes.max(pass.borrowed);
        if let Some(memory) = self.memory {
            leave += memory
                .sets
                .saturating_sub(self.slot.idle_accumulators.len()) as u64
                * memory.set_bytes;
            if !all || pass.orientations.transposed.is_some() {
                let streams = memory.readers.saturating_sub(self.slot.streams.len());
                leave += streams as u64 * memory.stream.bytes();
            }
        }
        self.count_sparse_pass(pass, transposed, leave, cache)?;
        let cached = cache.orientation(transposed);
        if self.follows(context, cached) {
            return Ok(true);
        }
        let edges = cached.degrees.as_ref().map_or(u64::MAX, |_| edges);
        let streams = self.slot.streams.len();
        Ok(self
            .sparse
            .reserve(pass, &cached.cell_cache, edges, streams, leave))
    }

    /// Counts a sparse pass, and loads all adjacency lists after enough of them.
    ///
    /// That needs all cells in memory and memory to spare. Lists that are there are used at once.
    fn count_sparse_pass(
        &mut self,
        pass: &Pass<'_, P>,
        transposed: bool,
        leave: u64,
        cache: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let (context, cached) = (pass.context, cache.orientation(transposed));
        // The lists of one of several ranks have the arcs into its own vertices only.
        if !context.ranks.alone() || self.follows(context, cached) {
            return Ok(());
        }
        let are_there = cached.has_lists(context, self.weighted);
        let count = &mut self.sparse_passes[usize::from(transposed)];
        *count += 1;
        if !are_there
            && (*count < SPARSE_PASSES_BEFORE_LISTS || cached.is_fully_cached() != Some(true))
        {
            return Ok(());
        }
        let spare = context.budget.available().saturating_sub(leave) / 2;
        let scratch_bytes = match self.adjacency {
            Some(_) => 0,
            None => AdjacencyScratch::<P>::memory(context.batches.vertices()),
        };
        // Half of the free memory stays free.
        let leave = context.budget.available() - spare + scratch_bytes;
        let are_there = are_there
            || cache.adjacency_shortfall(context, transposed, self.weighted, leave) == Some(0)
                && cache.load_lists(context, transposed, self.weighted, leave)?;
        if are_there && self.adjacency.is_none() && scratch_bytes <= spare {
            self.adjacency = Some(AdjacencyScratch::new(context, pass.program.identity())?);
        }
        Ok(())
    }

    /// Divides the memory that vertex rows leave: accumulators, streams, then messages, then cells.
    ///
    /// Cells that another program left in the cache stay if they leave enough for these.
    pub(crate) fn prepare(
        &mut self,
        pass: &Pass<'_, P>,
        cache: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let context = &pass.orientations.stored;
        let (shape, budget) = (context.shape, &context.budget);
        self.weighted = P::Edge::WEIGHTED && context.graph.edge_kind() != EdgeKind::None;
        let own = ProgramFootprint {
            rows: pass.staged_bytes(),
            weighted: self.weighted,
            ..ProgramFootprint::of::<P>()
        };
        let most = budget.available() + cache.leased_bytes() + cache.lists_leased_bytes();
        let sizes = shape.with_rows(own, shape.row_bytes(pass.borrowed), most);
        cache.release_unsuited(self.weighted);
        Self::load_tables(pass.orientations, pass.program.apply_to(), sizes, cache)?;
        self.pin_unpaid(pass, sizes, cache)?;
        let memory = Self::divide(context, sizes, cache)?;
        let filtered = cache.orientation(false).filter.is_some();
        let (memory, table_budget) =
            match self.memory_with_routing(context, sizes, &memory, filtered)? {
                Some(beside) => {
                    self.has_fewer_strips = !beside.is_free;
                    (beside.memory, beside.bytes)
                }
                None => (memory, 0),
            };
        let buffers = memory.window_batches.map(|window_batches| {
            let mut of_cursors = vec![window_batches; context.workers.count()];
            // Messages from other ranks, and to them.
            let peers = memory.peers.min(context.ranks.count() - 1);
            of_cursors.extend(std::iter::repeat_n(WINDOW_BATCHES_MIN, 2 * peers));
            of_cursors
        });
        self.messages = Some(MessageBuffer::new(context, buffers.as_deref())?);
        self.keep = memory.besides + table_budget;
        self.table_budget = table_budget;
        self.memory = Some(memory);
        self.slot.group_strips = memory.group;
        Ok(())
    }

    /// Loads classes of degrees, and lists of who needs what, if they take little and leave enough.
    fn load_tables(
        orientations: Orientations<'_>,
        apply_to: ApplyTo,
        sizes: ProgramFootprint,
        cache: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let context = &orientations.stored;
        let (shape, budget) = (context.shape, &context.budget);
        let classes = DegreeSketch::memory(context) * orientations.each().count() as u64;
        let free = budget.available() + cache.leased_bytes();
        if apply_to == ApplyTo::Touched
            && are_sketches_small(classes, free)
            && shape.fits_beside(sizes, classes, free)
        {
            if classes > budget.available() {
                cache.release_cells();
            }
            cache.load_degrees(orientations)?;
        }
        if !context.ranks.alone() && cache.orientation(false).filter.is_none() {
            let ranks = &context.ranks;
            let count = orientations.each().count() as u64;
            let free = budget.available() + cache.leased_bytes();
            let (own, count_and_free) = (ranks.own(), (count, free));
            let mut budgets = filter_budgets(&context.batches, own, ranks.count(), count_and_free);
            let bytes = budgets.find(|bytes| shape.fits_beside(sizes, bytes * count, free));
            if let Some(bytes) = bytes {
                if bytes * count > budget.available() {
                    cache.release_cells();
                }
                cache.load_filters(orientations, bytes)?;
            }
        }
        Ok(())
    }

    /// Loads edges that the budget does not pay for: loading takes memory that messages have afterwards.
    fn pin_unpaid(
        &self,
        pass: &Pass<'_, P>,
        sizes: ProgramFootprint,
        cache: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let context = &pass.orientations.stored;
        let transposed = Self::goes_transposed(pass);
        if context.options.edges != EdgeResidency::Memory
            || is_paid(context)
            || cache.orientation(transposed).is_fully_cached().is_some()
        {
            return Ok(());
        }
        let orientation = &pass.orientations.orientation(transposed);
        let free = context.budget.available();
        let all = CellCache::memory(orientation, self.weighted);
        let takes = in_memory(context, sizes, free).map(|memory| memory.takes);
        let leave = takes.filter(|takes| takes.saturating_add(all) <= free);
        let leave = leave.unwrap_or(context.shape.least(sizes));
        let bytes = free.saturating_sub(leave) + CellCache::loading_by(orientation.workers.count());
        cache.pin(orientation, transposed, self.weighted, bytes.min(free))
    }

    /// Returns the memory of passes, after evicting what they have no room beside.
    fn divide(
        context: &ExecContext,
        sizes: ProgramFootprint,
        cache: &mut GraphCache,
    ) -> Result<PassMemory, EngineError> {
        let (shape, budget) = (context.shape, &context.budget);
        let in_memory = |free: u64| in_memory(context, sizes, free);
        let plan = || shape.plan(sizes, context.message_memory(0));
        // Cells stay where they leave room for messages; lists, which only some programs use, make that room first.
        let beside = |cache: &GraphCache, given_back: u64| {
            let free = budget.available() + given_back;
            let free_now = free.min(context.message_memory(given_back));
            in_memory(free + cache.leased_bytes()).filter(|memory| memory.takes <= free_now)
        };
        let memory = beside(cache, 0)
            .or_else(|| {
                let memory = beside(cache, cache.lists_leased_bytes())?;
                cache.release_lists();
                Some(memory)
            })
            .or_else(|| match is_paid(context) {
                true => {
                    cache.release_cells();
                    in_memory(budget.available())
                }
                false => plan(),
            })
            .or_else(|| {
                cache.release_lists();
                plan()
            })
            .or_else(|| {
                cache.release();
                plan()
            });
        let Some(memory) = memory else {
            let of_nodes = (context.tiers).check_nodes(DataKind::Messages, shape.least(sizes));
            of_nodes.map_err(StorageError::from)?;
            let least = shape.with_workers(1).least(sizes);
            return Err(EngineError::TooSmall {
                what: "an edge pass",
                least: budget.total() - budget.available() + least,
                budget: budget.total(),
            });
        };
        Ok(memory)
    }

    /// Returns the memory of passes that may route messages; `None` if it is better not to route any.
    fn memory_with_routing(
        &self,
        context: &ExecContext,
        sizes: ProgramFootprint,
        memory: &PassMemory,
        filtered: bool,
    ) -> Result<Option<RoutingBudget>, EngineError> {
        let table = |group_strips| {
            let group_count = column_groups(context, group_strips).len();
            let cells = context.all_own_cells().count() as u64;
            table_bytes(
                &context.batches,
                context.workers.count(),
                cells,
                group_count,
            )
        };
        let (dispatch, free) = (context.options.dispatch, context.message_memory(0));
        let shape = &context.shape;
        let Some(beside) = routing_budget(dispatch, shape, sizes, memory, free, table) else {
            return Ok(None);
        };
        // Less memory means more groups, and each group reads messages.
        let sizes_of_groups = [beside.memory.group, memory.group];
        let message = (sizes.message, filtered);
        let pays = beside.is_free || routing::pays(context, sizes_of_groups, message)?;
        Ok(pays.then_some(beside))
    }

    /// Plans the routing of a dense pass along one orientation; returns also the bytes that planning moved.
    pub(crate) fn plan_routing(
        &mut self,
        pass: &Pass<'_, P>,
        transposed: bool,
        filtered: bool,
    ) -> Result<RoutingDecision, EngineError> {
        let context = pass.context;
        if self.messages_resident() || context.options.dispatch == DispatchChoice::None {
            return Ok(RoutingDecision::default());
        }
        let planner = &mut self.routing_planners[usize::from(transposed)];
        let planner = match planner {
            Some(planner) => planner,
            None => {
                let file = ["dispatch", "dispatch-turned"][usize::from(transposed)];
                let groups = column_groups(context, self.slot.group_strips);
                let how = [filtered, self.has_fewer_strips];
                planner.insert(RoutingPlanner::new(context, &groups, file, how)?)
            }
        };
        let own = pass.active.own_len();
        let active = [own, pass.active.len().saturating_sub(own)];
        let window_batches = self.memory.and_then(|memory| memory.window_batches);
        let (all, exact) = (context.ranks.own(), pass.program.is_exact());
        let waits = pass.has_many_active() && routing::waits(exact, &all, window_batches);
        let width = size_of::<P::Message>();
        let before = context.budget.available();
        let decision = planner.choose(context, active, (width, waits), self.table_budget)?;
        // What it took, it need not find free again.
        if before != context.budget.available() {
            self.keep = self.keep.saturating_sub(self.table_budget);
            self.table_budget = 0;
        }
        Ok(decision)
    }

    /// Fills the rest of the budget with cells of one orientation.
    fn pin(
        &mut self,
        orientations: Orientations<'_>,
        transposed: bool,
        cache: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let context = &orientations.orientation(transposed);
        let before = context.budget.available();
        self.slot.streams.clear();
        self.keep += context.budget.available() - before;
        let free = context.budget.available().saturating_sub(self.keep);
        let bytes = match context.options.edges {
            EdgeResidency::Disk => 0,
            EdgeResidency::Auto | EdgeResidency::Memory => free,
        };
        // Where passes take memory of the same nodes, the cells leave it to them.
        let shared = context
            .tiers
            .share_nodes(DataKind::Edges, DataKind::Messages);
        let of_nodes = context.tiers.free_on_nodes(DataKind::Edges);
        let bytes = match shared {
            true => bytes.min(of_nodes.saturating_sub(self.keep)),
            false => bytes,
        };
        cache.pin(context, transposed, self.weighted, bytes)
    }
}

/// True if the budget pays for edges.
fn is_paid(context: &ExecContext) -> bool {
    context.tiers.leased(DataKind::Edges, 1) > 0
}

/// Returns the memory of passes in `free` bytes if their messages stay in memory.
fn in_memory(context: &ExecContext, sizes: ProgramFootprint, free: u64) -> Option<PassMemory> {
    let given_back = free.saturating_sub(context.budget.available());
    let memory = (context.shape).plan(sizes, free.min(context.message_memory(given_back)));
    memory.filter(|memory| memory.window_batches.is_none())
}

/// Returns the mode of a dense pass where this one was chosen.
fn dense_mode(mode: Mode) -> Mode {
    match mode {
        Mode::Gather => Mode::Gather,
        _ => Mode::Scatter,
    }
}
