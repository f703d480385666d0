//! Decisions before a pass: its kernel and direction, what stays in the cache, and how memory is shared out.

use graphmill_graph::EdgeKind;
use graphmill_storage::DataKind;

use crate::cache::cells::CellCache;
use crate::cache::degree_sketch::DegreeSketch;
use crate::cache::graph_cache::GraphCache;
use crate::config::{DispatchChoice, EdgeResidency};
use crate::context::{ExecContext, Orientations};
use crate::error::EngineError;
use crate::exchange::filter::filter_budgets;
use crate::exec::column::kernel::pass::Pass;
use crate::exec::column::phase::sparse::adjacency::AdjacencyScratch;
use crate::exec::column::scratch::ColumnScratch;
use crate::graph_view::CellBytes;
use crate::memory::plan::{HELD_MIN, PassMemory};
use crate::messages::buffer::MessageBuffer;
use crate::metrics::run::Mode;
use crate::planner::kernel::{KernelPlan, PassStats, choose_kernel};
use crate::planner::routing;
use crate::planner::routing::{RoutingDecision, RoutingPlanner};
use crate::planner::routing_memory::{RoutingBudget, routing_budget};
use crate::planner::routing_stats::graph_bytes;
use crate::program::edge::{Direction, EdgeProgram, Reach};
use crate::program::footprint::ProgramFootprint;
use crate::schedule::tasks::column_groups;
use crate::value::EdgeValue;

/// Degrees are scanned if their sketch takes at most one part in 16 of the free budget.
const CLASSES_SHARE: u64 = 16;

/// Sparse passes before the lists of all vertices are decoded, where the budget has room for that.
const SEEKS_BEFORE_LISTS: u32 = 16;

impl<P: EdgeProgram> ColumnScratch<P> {
    /// Chooses the kernel of a pass, caches the cells that are worth it and evicts what it must.
    ///
    /// The first pass does so for all passes.
    pub(crate) fn choose(
        &mut self,
        pass: &Pass<'_, P>,
        held: &mut GraphCache,
    ) -> Result<KernelPlan, EngineError> {
        let ways = pass.ways;
        if self.messages.is_none() {
            self.prepare(pass, held)?;
        }
        if !pass.machine.ranks.alone() {
            return self.choose_together(pass, held);
        }
        loop {
            let facts = self.facts(pass, held)?;
            let KernelPlan { mode, turned } = choose_kernel(&facts);
            let is_pinned = held.orientation(turned).is_fully_cached().is_some();
            let seeks = mode == Mode::Sparse
                && (is_pinned || !self.is_cache_worthwhile(ways, turned, held));
            if seeks && self.sparse(pass, turned, facts.edges, held)? {
                return Ok(KernelPlan { mode, turned });
            }
            if is_pinned {
                let both = PassStats {
                    both_resident: true,
                    ..facts
                };
                if choose_kernel(&both).turned && !turned {
                    held.pulls_missed += 1;
                }
                self.dense(&ways.orientation(turned), turned, held)?;
                // A sparse pass whose queues might not fit is a dense one.
                let mode = dense_mode(mode);
                return Ok(KernelPlan { mode, turned });
            }
            // The newly cached data may make another choice the better one.
            self.pin(ways, turned, held)?;
        }
    }

    /// Chooses the kernel when other ranks take part: all use the same one, but each has its own cache.
    fn choose_together(
        &mut self,
        pass: &Pass<'_, P>,
        held: &mut GraphCache,
    ) -> Result<KernelPlan, EngineError> {
        let (ways, ranks) = (pass.ways, &pass.machine.ranks);
        let facts = self.facts(pass, held)?;
        let turned = Self::goes_turned(pass);
        let (machine, of_way) = (ways.orientation(turned), held.orientation(turned));
        let (CellBytes { block_lists, cells }, has_fanout) = of_way.in_memory(self.weighted);
        let scanned = held.orientation(false).in_memory(self.weighted).0.cells;
        let [guesses, lacks] = [of_way.degrees.is_none(), !has_fanout].map(u64::from);
        let PassStats { edges, workers, .. } = facts;
        let mine = [edges, workers, block_lists, cells, scanned, guesses, lacks];
        let [edges, workers, block_lists, cells, scanned, guesses, lacks] = ranks.total(mine)?;
        self.seek.placed = lacks > 0;
        let in_memory = CellBytes { block_lists, cells };
        let KernelPlan { mode, turned } = choose_kernel(&PassStats {
            edges: edges.min(facts.arcs),
            workers: workers / ranks.count() as u64,
            on_disk: machine.on_disk(self.weighted, in_memory, lacks == 0),
            scanned: ways.stored.cells_on_disk(self.weighted, scanned),
            // A gather reads cells in the columns of other ranks, which this rank does not hold.
            pulls: false,
            both_resident: false,
            decoded: false,
            ..facts
        });
        if mode == Mode::Sparse {
            if held.orientation(turned).is_fully_cached().is_none()
                && self.is_cache_worthwhile(ways, turned, held)
            {
                self.pin(ways, turned, held)?;
            }
            // What one rank only guesses is no bound.
            let most = if guesses == 0 { edges } else { u64::MAX };
            let fits = self.sparse(pass, turned, most, held)?;
            if ranks.total([u64::from(!fits)])? == [0] {
                return Ok(KernelPlan { mode, turned });
            }
            // It may have fitted here, and not elsewhere.
            self.seek.reserved = None;
        }
        if held.orientation(turned).is_fully_cached().is_none() {
            self.pin(ways, turned, held)?;
        }
        self.dense(&ways.orientation(turned), turned, held)?;
        let mode = dense_mode(mode);
        if mode == Mode::Gather {
            self.streams(&ways.orientation(turned))?;
        }
        Ok(KernelPlan { mode, turned })
    }

    /// True if a pass follows transposed arcs, where the graph has them.
    fn goes_turned(pass: &Pass<'_, P>) -> bool {
        let symmetric = pass.machine.graph.symmetric();
        pass.direction == Direction::Backward && !symmetric && pass.ways.turned.is_some()
    }

    /// What the choice of a pass's mode depends on.
    fn facts(&self, pass: &Pass<'_, P>, held: &GraphCache) -> Result<PassStats, EngineError> {
        // A lookup follows arcs from the senders.
        let (ways, seeks_turned) = (pass.ways, Self::goes_turned(pass));
        let machine = &ways.orientation(seeks_turned);
        let of_way = held.orientation(seeks_turned);
        let (in_memory, has_fanout) = of_way.in_memory(self.weighted);
        let scanned = held.orientation(false).in_memory(self.weighted).0.cells;
        let mut facts = PassStats {
            direction: pass.direction,
            symmetric: ways.stored.graph.symmetric(),
            turned: ways.turned.is_some(),
            pulls: P::EARLY_EXIT,
            every: P::REACH == Reach::Every,
            active: pass.active.len(),
            edges: 0,
            vertices: machine.batches.vertices(),
            arcs: machine.graph.arcs(),
            columns: machine.batches.len() as u64,
            workers: machine.workers.count() as u64,
            seekable: Self::seekable(&ways.stored),
            on_disk: machine.on_disk(self.weighted, in_memory, has_fanout),
            scanned: ways.stored.cells_on_disk(self.weighted, scanned),
            both_resident: held.both(),
            decoded: self.follows(machine, of_way),
            gamma: machine.options.gamma,
            kernel: machine.options.kernel,
            sparse: machine.options.sparse,
        };
        let enough = match of_way.is_fully_cached() {
            Some(true) => facts.edges_enough(),
            // What they take to read matters too.
            _ => 0,
        };
        facts.edges = match &of_way.degrees {
            Some(degrees) if facts.active < facts.vertices => {
                degrees.edges(machine, pass.active, enough)?
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
        ways: Orientations<'_>,
        turned: bool,
        held: &mut GraphCache,
    ) -> bool {
        let machine = &ways.orientation(turned);
        if machine.options.edges == EdgeResidency::Memory {
            return true;
        }
        let room = machine.budget.available().saturating_sub(self.keep);
        held.is_cache_worthwhile(machine, turned, self.weighted, room)
    }

    /// Prepares a sparse pass over one orientation, of vertices with at most the given edges if known.
    ///
    /// Returns `false` if its queues might not fit.
    fn sparse(
        &mut self,
        pass: &Pass<'_, P>,
        turned: bool,
        edges: u64,
        held: &mut GraphCache,
    ) -> Result<bool, EngineError> {
        let machine = &pass.ways.orientation(turned);
        let pass = &Pass { machine, ..*pass };
        let all = held.orientation(turned).is_fully_cached() == Some(true);
        if !all {
            self.streams(machine)?;
        }
        // What dense passes, and those over the other way round, have not taken yet stays theirs.
        let sparse_bytes = machine.shape.sparse_bytes(pass.staged_bytes());
        let mut leave = sparse_bytes.max(pass.borrowed);
        if let Some(room) = self.room {
            leave += room.sets.saturating_sub(self.slot.free.len()) as u64 * room.set_bytes;
            if !all || pass.ways.turned.is_some() {
                let streams = room.readers.saturating_sub(self.slot.readers.len());
                leave += streams as u64 * room.stream.bytes();
            }
        }
        self.count_sparse_pass(machine, turned, leave, held)?;
        let of_way = held.orientation(turned);
        if self.follows(machine, of_way) {
            return Ok(true);
        }
        let edges = of_way.degrees.as_ref().map_or(u64::MAX, |_| edges);
        let streams = self.slot.readers.len();
        Ok(self.seek.reserve(pass, &of_way.pins, edges, streams, leave))
    }

    /// Counts a sparse pass, and loads all adjacency lists after enough of them.
    ///
    /// That needs all cells in memory and memory to spare. Lists that are there are used at once.
    fn count_sparse_pass(
        &mut self,
        machine: &ExecContext,
        turned: bool,
        leave: u64,
        held: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let of_way = held.orientation(turned);
        if self.follows(machine, of_way) {
            return Ok(());
        }
        let are_there = of_way.has_lists(machine, self.weighted);
        let seeks = &mut self.seeks[usize::from(turned)];
        *seeks += 1;
        if !are_there && (*seeks < SEEKS_BEFORE_LISTS || of_way.is_fully_cached() != Some(true)) {
            return Ok(());
        }
        let spare = machine.budget.available().saturating_sub(leave) / 2;
        let room = match self.follow {
            Some(_) => 0,
            None => AdjacencyScratch::<P>::memory(machine.batches.vertices()),
        };
        // Half of the free memory stays free.
        let leave = machine.budget.available() - spare + room;
        let are_there = are_there
            || held.adjacency_shortfall(machine, turned, self.weighted, leave) == Some(0)
                && held.load_lists(machine, turned, self.weighted, leave)?;
        if are_there && self.follow.is_none() && room <= spare {
            self.follow = Some(AdjacencyScratch::new(machine)?);
        }
        Ok(())
    }

    /// Divides the memory that vertex rows leave: accumulators, streams, then messages, then cells.
    ///
    /// Cells that another program left in the cache stay if they leave enough for these.
    fn prepare(&mut self, pass: &Pass<'_, P>, held: &mut GraphCache) -> Result<(), EngineError> {
        let machine = &pass.ways.stored;
        let (shape, budget) = (machine.shape, &machine.budget);
        self.weighted = P::Edge::WEIGHTED && machine.graph.edge_kind() != EdgeKind::None;
        let own = ProgramFootprint {
            rows: pass.staged_bytes(),
            weighted: self.weighted,
            ..ProgramFootprint::of::<P>()
        };
        let most = budget.available() + held.leased_bytes() + held.lists_leased_bytes();
        let sizes = shape.with_rows(own, shape.row_bytes(pass.borrowed), most);
        held.release_unsuited(self.weighted);
        Self::load_tables(pass.ways, sizes, held)?;
        self.pin_unpaid(pass, sizes, held)?;
        let room = Self::divide(machine, sizes, held)?;
        let filtered = held.orientation(false).needs.is_some();
        let (room, for_dispatch) =
            match self.memory_with_routing(machine, sizes, &room, filtered)? {
                Some(beside) => {
                    self.has_fewer_strips = !beside.is_free;
                    (beside.room, beside.bytes)
                }
                None => (room, 0),
            };
        let held = room.held.map(|held| {
            let mut of_workers = vec![held; machine.workers.count()];
            // Messages from other ranks, and to them.
            let peers = room.peers.min(machine.ranks.count() - 1);
            of_workers.extend(std::iter::repeat_n(HELD_MIN, 2 * peers));
            of_workers
        });
        self.messages = Some(MessageBuffer::new(machine, held.as_deref())?);
        self.keep = room.besides + for_dispatch;
        self.for_dispatch = for_dispatch;
        self.room = Some(room);
        self.slot.group = room.group;
        Ok(())
    }

    /// Loads classes of degrees, and lists of who needs what, if they take little and leave enough.
    fn load_tables(
        ways: Orientations<'_>,
        sizes: ProgramFootprint,
        held: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let machine = &ways.stored;
        let (shape, budget) = (machine.shape, &machine.budget);
        let classes = DegreeSketch::memory(machine) * ways.each().count() as u64;
        let free = budget.available() + held.leased_bytes();
        if P::REACH == Reach::Reached
            && classes <= free / CLASSES_SHARE
            && shape.fits_beside(sizes, classes, free)
        {
            if classes > budget.available() {
                held.release_cells();
            }
            held.load_degrees(ways)?;
        }
        if !machine.ranks.alone() && held.orientation(false).needs.is_none() {
            let ranks = &machine.ranks;
            let count = ways.each().count() as u64;
            let free = budget.available() + held.leased_bytes();
            let (own, of_ways) = (ranks.own(), (count, free));
            let mut rooms = filter_budgets(&machine.batches, own, ranks.count(), of_ways);
            let room = rooms.find(|room| shape.fits_beside(sizes, room * count, free));
            if let Some(room) = room {
                if room * count > budget.available() {
                    held.release_cells();
                }
                held.load_filters(ways, room)?;
            }
        }
        Ok(())
    }

    /// Loads edges that the budget does not pay for: loading takes memory that messages have afterwards.
    fn pin_unpaid(
        &self,
        pass: &Pass<'_, P>,
        sizes: ProgramFootprint,
        held: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let machine = &pass.ways.stored;
        let turned = Self::goes_turned(pass);
        if machine.options.edges != EdgeResidency::Memory
            || is_paid(machine)
            || held.orientation(turned).is_fully_cached().is_some()
        {
            return Ok(());
        }
        let (way, free) = (&pass.ways.orientation(turned), machine.budget.available());
        let all = CellCache::memory(way, self.weighted);
        let takes = in_memory(machine, sizes, free).map(|room| room.takes);
        let leave = takes.filter(|takes| takes.saturating_add(all) <= free);
        let leave = leave.unwrap_or(machine.shape.least(sizes));
        let room = free.saturating_sub(leave) + CellCache::loading_by(way.workers.count());
        held.pin(way, turned, self.weighted, room.min(free))
    }

    /// Returns the memory of passes, after evicting what they have no room beside.
    fn divide(
        machine: &ExecContext,
        sizes: ProgramFootprint,
        held: &mut GraphCache,
    ) -> Result<PassMemory, EngineError> {
        let (shape, budget) = (machine.shape, &machine.budget);
        let in_memory = |free: u64| in_memory(machine, sizes, free);
        // Cells stay where they leave room for messages; lists, which only some programs use, make that room first.
        let beside = |held: &GraphCache, given_back: u64| {
            let free = budget.available() + given_back;
            in_memory(free + held.leased_bytes()).filter(|room| room.takes <= free)
        };
        let room = beside(held, 0)
            .or_else(|| {
                let room = beside(held, held.lists_leased_bytes())?;
                held.release_lists();
                Some(room)
            })
            .or_else(|| match is_paid(machine) {
                true => {
                    held.release_cells();
                    in_memory(budget.available())
                }
                false => shape.plan(sizes, budget.available()),
            })
            .or_else(|| {
                held.release_lists();
                shape.plan(sizes, budget.available())
            })
            .or_else(|| {
                held.release();
                shape.plan(sizes, budget.available())
            });
        room.ok_or_else(|| EngineError::TooSmall {
            what: "an edge pass",
            least: budget.total() - budget.available() + shape.least(sizes),
            budget: budget.total(),
        })
    }

    /// Returns the memory of passes that may route messages; `None` if it is better not to route any.
    fn memory_with_routing(
        &self,
        machine: &ExecContext,
        sizes: ProgramFootprint,
        room: &PassMemory,
        filtered: bool,
    ) -> Result<Option<RoutingBudget>, EngineError> {
        let graph = |group| {
            let runs = column_groups(machine, group).len();
            let cells = machine.all_own_cells().count() as u64;
            graph_bytes(&machine.batches, machine.workers.count(), cells, runs)
        };
        let (dispatch, free) = (machine.options.dispatch, machine.budget.available());
        let shape = &machine.shape;
        let Some(beside) = routing_budget(dispatch, shape, sizes, room, free, graph) else {
            return Ok(None);
        };
        // Less memory means more groups, and each group reads messages.
        let groups = [beside.room.group, room.group];
        let message = (sizes.message, filtered);
        let pays = beside.is_free || routing::pays(machine, groups, message)?;
        Ok(pays.then_some(beside))
    }

    /// Plans the routing of a dense pass along one orientation; returns also the bytes that planning moved.
    pub(crate) fn dispatch(
        &mut self,
        pass: &Pass<'_, P>,
        turned: bool,
        filtered: bool,
    ) -> Result<RoutingDecision, EngineError> {
        let machine = pass.machine;
        if self.messages_resident() || machine.options.dispatch == DispatchChoice::None {
            return Ok(RoutingDecision::default());
        }
        let dispatcher = &mut self.dispatchers[usize::from(turned)];
        let dispatcher = match dispatcher {
            Some(dispatcher) => dispatcher,
            None => {
                let file = ["dispatch", "dispatch-turned"][usize::from(turned)];
                let runs = column_groups(machine, self.slot.group);
                let how = [filtered, self.has_fewer_strips];
                dispatcher.insert(RoutingPlanner::new(machine, &runs, file, how)?)
            }
        };
        let own = pass.active.own_len();
        let active = [own, pass.active.len().saturating_sub(own)];
        let held = self.room.and_then(|room| room.held);
        let waits =
            pass.is_dense() && routing::waits(P::ORDER_INDEPENDENT, &machine.ranks.own(), held);
        let width = size_of::<P::Message>();
        let before = machine.budget.available();
        let dispatched = dispatcher.choose(machine, active, (width, waits), self.for_dispatch)?;
        // What it took, it need not find free again.
        if before != machine.budget.available() {
            self.keep = self.keep.saturating_sub(self.for_dispatch);
            self.for_dispatch = 0;
        }
        Ok(dispatched)
    }

    /// Fills the rest of the budget with cells of one orientation.
    fn pin(
        &mut self,
        ways: Orientations<'_>,
        turned: bool,
        held: &mut GraphCache,
    ) -> Result<(), EngineError> {
        let machine = &ways.orientation(turned);
        let before = machine.budget.available();
        self.slot.readers.clear();
        self.keep += machine.budget.available() - before;
        let free = machine.budget.available().saturating_sub(self.keep);
        let room = match machine.options.edges {
            EdgeResidency::Disk => 0,
            EdgeResidency::Auto | EdgeResidency::Memory => free,
        };
        held.pin(machine, turned, self.weighted, room)
    }
}

/// True if the budget pays for edges.
fn is_paid(machine: &ExecContext) -> bool {
    machine.tiers.leased(DataKind::Edges, 1) > 0
}

/// Returns the memory of passes in `free` bytes if their messages stay in memory.
fn in_memory(machine: &ExecContext, sizes: ProgramFootprint, free: u64) -> Option<PassMemory> {
    let room = machine.shape.plan(sizes, free);
    room.filter(|room| room.held.is_none())
}

/// Returns the mode of a dense pass where this one was chosen.
fn dense_mode(mode: Mode) -> Mode {
    match mode {
        Mode::Gather => Mode::Gather,
        _ => Mode::Scatter,
    }
}
