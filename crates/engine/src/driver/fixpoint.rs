//! [`Engine::run_to_fixpoint`]: a label program to its end, over lists in memory where they are, else pass by pass.

use graphmill_graph::EdgeKind;
use graphmill_raw::AtomicScalar;
use graphmill_storage::{Buffer, DataKind};

use crate::cache::adjacency::{AdjacencyLists, with_words};
use crate::cache::cells::CellCache;
use crate::config::{EdgeResidency, KernelChoice};
use crate::context::ExecContext;
use crate::driver::pass_list::listed;
use crate::driver::replay::pauses;
use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::exec::in_memory::bucket_queue::{BlockPool, VertexBlock};
use crate::exec::in_memory::pass_limit::PassLimit;
use crate::exec::in_memory::peers::SearchPeers;
use crate::exec::in_memory::round::{RoundContext, WordOf};
use crate::exec::in_memory::{delta_stepping, direction_optimizing};
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::PassMetrics;
use crate::metrics::traffic::Access;
use crate::program::current_call::catch_at;
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::program::monotone::{Label, MonotoneProgram};
use crate::state::row_file::RowFileIo;
use crate::state::rows::{Read, Write};
use crate::state::vertex_array::{VertexArray, elements_mut};
use crate::value::{EdgeValue, Reduce};

impl Engine {
    /// Propagates the labels of the active vertices until each vertex has the least that reaches it.
    ///
    /// Labels follow edges in `direction`. The work runs in memory if the labels and the adjacency lists are there, or if the lists
    /// fit and are worth loading; otherwise it runs in passes.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, the user asked to stop, or edges carry other data than the
    /// program reads.
    pub fn run_to_fixpoint<P: MonotoneProgram>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        mut active: ActiveSet,
        direction: Direction,
    ) -> Result<(), EngineError> {
        let (mut walked, mut no_room) = (0, false);
        let of_all = (self.graph().arcs(), self.vertices());
        let weighted = P::Edge::WEIGHTED;
        loop {
            let mut scans = false;
            active = self.in_passes(program, labels, active, direction, |engine, active| {
                let are_there = engine.logged_decision("whether lists are there", |engine| {
                    let is_worth_it =
                        !no_room && engine.lists_are_worth_it(weighted, direction, walked)?;
                    let are_there = is_worth_it
                        && engine.lists_for(weighted, direction, &labels, P::UNIT_STEP)?;
                    no_room |= is_worth_it && !are_there;
                    walked += active.len() * (of_all.0 / of_all.1 + 1);
                    Ok(are_there)
                })?;
                scans = !are_there
                    && P::UNIT_STEP
                    && engine.logged_decision("whether to scan for a level", |engine| {
                        engine.scan_is_worth_it(&labels, active)
                    })?;
                Ok(!are_there && !scans)
            })?;
            if active.is_empty() {
                return Ok(());
            }
            let name = call_name::<P>("run_to_fixpoint");
            let ((), [left]) = self.logged_many(&name, |engine| {
                let left = match scans {
                    true => engine.settle_by_scan(program, labels, &active)?,
                    false => engine.settle_in_memory(program, labels, &active, direction, None)?,
                };
                Ok(((), [left]))
            })?;
            active = left;
        }
    }

    /// A limit for a loop of passes of one's own; `what` says in an error what does not end.
    #[must_use]
    pub fn pass_limit(&self, what: &'static str) -> PassLimit {
        PassLimit::new(what, self.vertices())
    }

    /// Runs [`Engine::run_to_fixpoint`] in passes alone.
    ///
    /// In each pass, the vertices whose labels the pass before lowered send.
    ///
    /// # Errors
    /// As for [`Engine::run_to_fixpoint`].
    pub fn run_to_fixpoint_by_passes<P: MonotoneProgram>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        active: ActiveSet,
        direction: Direction,
    ) -> Result<(), EngineError> {
        self.in_passes(program, labels, active, direction, |_, _| Ok(true))
            .map(drop)
    }

    /// Runs passes while there are active vertices and `goes_on` returns true; returns the active ones.
    fn in_passes<P: MonotoneProgram>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        mut active: ActiveSet,
        direction: Direction,
        mut goes_on: impl FnMut(&mut Engine, &ActiveSet) -> Result<bool, EngineError>,
    ) -> Result<ActiveSet, EngineError> {
        self.check_edges::<P::Edge, P>()?;
        self.common.arrays.check_own(labels.id())?;
        let mut level = None;
        let mut limit = self.pass_limit("a label program");
        while !active.is_empty() && goes_on(self, &active)? {
            limit.pass()?;
            let (read, write) = (labels.read(), labels.write());
            active = if P::UNIT_STEP {
                let of_level = match level {
                    Some(label) => label,
                    None => {
                        let any = |_, label: &P::Label| LeastLabel(*label);
                        self.process_vertices(read, Some(&active), any)?.0
                    }
                };
                let first = || active.first().ok().flatten();
                let next = catch_at(first, || program.on_edge(of_level, P::Edge::ONE));
                let next = next.map_err(|error| self.with_ids(error))?;
                level = Some(next);
                let mark = Mark::<P>(next);
                self.process_edges(&mark, (), write, &active, direction)?.1
            } else {
                (self.process_edges(&Lower(*program), read, write, &active, direction)?).1
            };
        }
        Ok(active)
    }

    /// True if adjacency lists are in memory or worth loading.
    ///
    /// They are worth it once enough edges were walked without them, or if the configuration asks for them. All ranks decide alike.
    pub(crate) fn lists_are_worth_it(
        &self,
        weighted: bool,
        direction: Direction,
        walked: u64,
    ) -> Result<bool, EngineError> {
        let are_there = || {
            // Of several ranks each looks before the first pass only, as they have to agree.
            let looks = self.common.ranks.alone() || walked == 0;
            let lacks = || u64::from(!self.has_lists(weighted, direction));
            Ok(looks && self.common.ranks.total([lacks()])? == [0])
        };
        match self.common.options.edges {
            EdgeResidency::Auto if walked > self.graph().arcs() / WORTH => Ok(true),
            EdgeResidency::Auto | EdgeResidency::Disk => are_there(),
            EdgeResidency::Memory => Ok(true),
        }
    }

    /// True if the lists of this rank are in memory.
    fn has_lists(&self, weighted: bool, direction: Direction) -> bool {
        let weighted = self.of_weights(weighted);
        let transposed = self.goes_transposed(direction);
        (self.cache.orientation(transposed)).has_lists(&self.context(transposed), weighted)
    }

    /// Returns true if the adjacency lists for work on these rows are in memory; loads them if they fit.
    ///
    /// Work that may pull also uses the lists of the other orientation. They are loaded if the configuration
    /// asks for edges in memory, or for pulls. Of several ranks all have lists, or none loads them.
    pub(crate) fn lists_for<T>(
        &mut self,
        weighted: bool,
        direction: Direction,
        rows: &VertexArray<T>,
        may_pull: bool,
    ) -> Result<bool, EngineError> {
        if self.common.ranks.alone() {
            return self.own_lists_for(weighted, direction, rows, may_pull);
        }
        let transposed = self.goes_transposed(direction);
        let leave = self.work_over_lists(size_of::<T>()).max(self.borrowed);
        let fits = || {
            let context = &self.context(transposed);
            let weighted = self.of_weights(weighted);
            let lack = (self.cache).adjacency_shortfall(context, transposed, weighted, leave);
            self.has_lists(weighted, direction) || lack == Some(0)
        };
        let is_possible = !transposed || self.transposed.is_some();
        let has_rows = self.common.arrays.in_memory(rows.id());
        let lacks = u64::from(!(is_possible && has_rows && fits()));
        if self.common.ranks.total([lacks])? != [0] {
            return Ok(false);
        }
        let is_loaded = self.own_lists_for(weighted, direction, rows, may_pull)?;
        let has_incoming = self.cache.orientation(transposed).incoming.is_some();
        let lacks = [!is_loaded, !has_incoming].map(u64::from);
        let [lacks, lack_incoming] = self.common.ranks.total(lacks)?;
        if lacks > 0 {
            self.cache.release_lists();
        } else if lack_incoming > 0 {
            self.cache.release_incoming();
        }
        Ok(lacks == 0)
    }

    /// As [`Engine::lists_for`], for this rank.
    fn own_lists_for<T>(
        &mut self,
        weighted: bool,
        direction: Direction,
        rows: &VertexArray<T>,
        may_pull: bool,
    ) -> Result<bool, EngineError> {
        let transposed = self.goes_transposed(direction);
        if transposed && self.transposed.is_none() || !self.common.arrays.in_memory(rows.id()) {
            return Ok(false);
        }
        let work = self.work_over_lists(size_of::<T>());
        let leave = work.max(self.borrowed);
        if !self.has_lists(weighted, direction)
            && !self.load_lists(transposed, self.of_weights(weighted), leave)?
        {
            return Ok(false);
        }
        if self.common.budget.available() < work {
            self.workspaces = None;
        }
        let is_told = self.common.options.edges == EdgeResidency::Memory
            || self.common.options.kernel == KernelChoice::Gather;
        if !self.common.ranks.alone() {
            if may_pull && (is_told || self.graph().symmetric()) {
                let view = self.transposed.as_ref().filter(|_| transposed);
                let context = ExecContext::new(&self.common, view.unwrap_or(&self.stored));
                self.cache.load_incoming(&context, transposed, leave)?;
                self.take_loading();
            }
        } else if may_pull
            && is_told
            && self.transposed.is_some()
            && !self
                .cache
                .orientation(!transposed)
                .has_lists(&self.context(!transposed), false)
        {
            self.load_lists(!transposed, false, leave)?;
        }
        Ok(self.common.budget.available() >= work)
    }

    /// Returns the bytes that `workers` workers take for work over lists.
    fn buffers_over_lists(&self, workers: usize) -> u64 {
        let rows = RowFileIo::memory(self.common.arrays.pages().page_bytes());
        let lists = AdjacencyLists::loading_by_worker(&self.context(false));
        BlockPool::memory(self.vertices(), workers)
            + CellCache::loading_by(workers)
            + workers as u64 * (rows + lists)
    }

    /// Returns the bytes that work over lists takes, without the lists and the labels of this rank.
    pub(crate) fn work_over_lists(&self, label_bytes: usize) -> u64 {
        let vertices = self.vertices();
        let of_all = match self.common.ranks.alone() {
            true => 0,
            false => vertices * label_bytes as u64 + SearchPeers::memory(vertices),
        };
        BlockPool::memory(vertices, self.common.workers.count())
            + direction_optimizing::memory(vertices)
            + of_all
    }

    /// True if edges have the weights that are asked for.
    fn of_weights(&self, weighted: bool) -> bool {
        weighted && self.graph().edge_kind() != EdgeKind::None
    }

    /// Loads lists if they fit and leave `leave` bytes; returns true if so.
    ///
    /// Later passes divide the remaining memory again.
    fn load_lists(
        &mut self,
        transposed: bool,
        weighted: bool,
        leave: u64,
    ) -> Result<bool, EngineError> {
        self.workspaces = None;
        self.active.trim();
        let context = self.context(transposed);
        let lack = (self.cache).adjacency_shortfall(&context, transposed, weighted, leave);
        if lack != Some(0) {
            return Ok(false);
        }
        let view = self.transposed.as_ref().filter(|_| transposed);
        let context = ExecContext::new(&self.common, view.unwrap_or(&self.stored));
        let loaded = self.cache.load_lists(&context, transposed, weighted, leave);
        self.take_loading();
        self.count_held();
        loaded
    }

    /// True if a direction is against the arcs as stored.
    fn goes_transposed(&self, direction: Direction) -> bool {
        direction == Direction::Backward && !self.graph().symmetric()
    }

    /// Runs labels to the fixpoint over lists; returns the vertices yet to send if it ended early.
    ///
    /// `pending` are the lists of the vertices that are pending, if not all are in memory.
    pub(crate) fn settle_in_memory<P: MonotoneProgram>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        active: &ActiveSet,
        direction: Direction,
        pending: Option<&AdjacencyLists>,
    ) -> Result<ActiveSet, EngineError> {
        let transposed = self.goes_transposed(direction);
        let mut rows = self.common.arrays.take(labels.id())?;
        let mut left = self.active.empty();
        let sets = [active, &left];
        let outcome = self.settle_rows(program, rows.all(), sets, transposed, pending);
        self.common.arrays.put(labels.id(), rows);
        self.checked(outcome)?;
        left.agree_len()?;
        Ok(left)
    }

    fn settle_rows<P: MonotoneProgram>(
        &mut self,
        program: &P,
        rows: &mut [u8],
        [active, left]: [&ActiveSet; 2],
        transposed: bool,
        pending: Option<&AdjacencyLists>,
    ) -> Result<(), EngineError> {
        let symmetric = self.graph().symmetric();
        let view = self.transposed.as_ref().filter(|_| transposed);
        let context = ExecContext::new(&self.common, view.unwrap_or(&self.stored));
        let cache = &self.cache;
        let cached = cache.orientation(transposed).lists.as_ref();
        let Some(lists) = pending.or(cached) else {
            return Err(EngineError::NoReaders);
        };
        let peers = SearchPeers::new(&context)?;
        let against = match &peers {
            Some(_) => cache.orientation(transposed).incoming.as_ref(),
            None if symmetric => Some(lists),
            None => cache.orientation(!transposed).lists.as_ref(),
        };
        let own = elements_mut::<WordOf<P>>(rows);
        let mut of_all = match &peers {
            Some(peers) => Some(self.labels_of_all::<P>(own, peers)?),
            None => None,
        };
        let labels = match &mut of_all {
            Some(of_all) => of_all.typed_mut(),
            None => &mut *own,
        };
        let ground = RoundContext {
            context: &context,
            program,
            lists,
            against,
            labels: WordOf::<P>::shared(labels),
            peers: peers.as_ref(),
        };
        let workers = context.workers.count();
        let store = BlockPool::new(&context.budget, context.batches.vertices(), workers)?;
        let first = store.blocks_of(active)?;
        let traffic = &self.common.traffic;
        let label = size_of::<P::Label>() as u64;
        // Each edge reads a label, and each sender was given one.
        let count = |pass: &PassMetrics| {
            traffic.shared(|worker, part| {
                lists.count(worker, part(pass.messages), part(pass.edges));
                let (edges, messages) = (part(pass.edges), part(pass.messages));
                worker.read(DataKind::Vertices, Access::Random, edges * label);
                worker.write(DataKind::Vertices, Access::Random, messages * label);
            });
        };
        let (metrics, on_pass) = (&mut self.metrics, &self.common.on_pass);
        let (clock, ranks) = (&*self.common.clock, &*self.common.ranks);
        let mut list = listed(clock, on_pass, metrics, traffic, count);
        let recovery = &mut self.recovery;
        let tell = |mut pass: PassMetrics| {
            [pass.messages_sent, pass.bytes_sent] = context.take_sent();
            list(pass);
            pauses(recovery, clock.now(), ranks)
        };
        let leave = |blocks: &[VertexBlock]| {
            let vertices = blocks.iter().flatten().copied();
            left.add_own(vertices.filter(|v| ground.owns(*v)).map(u64::from))
        };
        let outcome = match P::UNIT_STEP {
            true => {
                let first = (first, pending.is_some());
                with_words!(lists, |WORDS| direction_optimizing::settle::<P, WORDS>(
                    &ground, &store, first, tell, leave
                ))
            }
            false => with_words!(lists, |WORDS| delta_stepping::settle::<P, WORDS>(
                &ground, &store, first, tell, leave
            )),
        };
        if let (Some(of_all), Some(peers)) = (of_all, &peers) {
            own.copy_from_slice(&of_all.typed()[peers.own().clone()]);
        }
        outcome
    }

    /// Returns a copy of the labels of all vertices: this rank's own, and no label for the others.
    fn labels_of_all<P: MonotoneProgram>(
        &self,
        own: &[WordOf<P>],
        peers: &SearchPeers<'_>,
    ) -> Result<Buffer, EngineError> {
        let (tiers, budget) = (&self.common.tiers, &self.common.budget);
        let vertices = self.vertices() as usize;
        let bytes = vertices * size_of::<WordOf<P>>();
        let mut labels =
            tiers.buffer(DataKind::Vertices, budget, "labels of all vertices", bytes)?;
        let words = &mut labels.typed_mut::<WordOf<P>>()[..vertices];
        words.fill(P::Label::NONE.word());
        words[peers.own().clone()].copy_from_slice(own);
        Ok(labels)
    }
}

/// Returns the least budget with which unweighted lists fit, if this one is too small.
///
/// `None` if there are no lists for another reason, or if the labels are not in memory.
#[must_use]
pub fn adjacency_min_memory<T>(engine: &Engine, labels: &VertexArray<T>) -> Option<u64> {
    if !engine.common.arrays.in_memory(labels.id()) {
        return None;
    }
    // A larger budget may have more workers, up to all threads.
    let common = &engine.common;
    let [threads, workers] = [common.settings.workers.count(), common.workers.count()];
    let now = engine.buffers_over_lists(workers);
    let of_each = (workers..=threads).map(|workers| engine.buffers_over_lists(workers));
    let all = of_each.max().unwrap_or(now);
    let work = engine.work_over_lists(size_of::<T>());
    let leave = work.max(engine.borrowed) + all - now;
    let lack = (engine.cache).adjacency_shortfall(&engine.context(false), false, false, leave);
    let lack = lack.filter(|bytes| *bytes > 0)?;
    Some(engine.common.budget.total().saturating_add(lack))
}

/// Lists are worth loading once a 32nd of all edges was walked.
const WORTH: u64 = 32;

/// The least of some labels.
#[derive(Clone, Copy)]
struct LeastLabel<L>(L);

impl<L: Label> Reduce for LeastLabel<L> {
    const ZERO: Self = LeastLabel(L::NONE);
    #[inline(always)]
    fn add(&mut self, later: Self) {
        if later.0 < self.0 {
            *self = later;
        }
    }
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.0.as_bytes());
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (label, rest) = L::read_from_prefix(from).ok()?;
        *from = rest;
        Some(LeastLabel(label))
    }
}

/// A pass of a uniform program: each vertex reached for the first time takes the level's label.
struct Mark<P: MonotoneProgram>(P::Label);

impl<P: MonotoneProgram> EdgeProgram for Mark<P> {
    type SignalRows = ();
    type ApplyRows = Write<P::Label>;
    type Edge = ();
    type Message = u8;
    type EdgeMessage = u8;
    type Accumulator = u8;
    type Sum = ();
    const IDENTITY: u8 = 0;
    const ORDER_INDEPENDENT: bool = true;
    const EARLY_EXIT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (): ()) -> Option<u8> {
        Some(1)
    }
    #[inline(always)]
    fn on_edge(&self, call: u8, (): ()) -> u8 {
        call
    }
    #[inline(always)]
    fn fold(&self, reached: &mut u8, call: u8) {
        *reached = call;
    }
    #[inline(always)]
    fn merge(&self, reached: &mut u8, later: u8) {
        *reached |= later;
    }
    #[inline(always)]
    fn apply(&self, _: u64, label: &mut P::Label, _: u8) -> ((), Activate) {
        let is_less = self.0 < *label;
        if is_less {
            *label = self.0;
        }
        ((), Activate::when(is_less))
    }
    #[inline(always)]
    fn is_pending(&self, _: u64, label: &mut P::Label) -> bool {
        self.0 < *label
    }
    #[inline(always)]
    fn is_final(&self, reached: &u8) -> bool {
        *reached != 0
    }
}

/// A pass of any label program: each vertex takes the least label that it receives.
struct Lower<P>(P);

impl<P: MonotoneProgram> EdgeProgram for Lower<P> {
    type SignalRows = Read<P::Label>;
    type ApplyRows = Write<P::Label>;
    type Edge = P::Edge;
    type Message = P::Label;
    type EdgeMessage = P::Label;
    type Accumulator = P::Label;
    type Sum = ();
    const IDENTITY: P::Label = P::Label::NONE;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, label: &P::Label) -> Option<P::Label> {
        Some(*label)
    }
    #[inline(always)]
    fn on_edge(&self, label: P::Label, edge: P::Edge) -> P::Label {
        self.0.on_edge(label, edge)
    }
    #[inline(always)]
    fn fold(&self, least: &mut P::Label, label: P::Label) {
        if label < *least {
            *least = label;
        }
    }
    #[inline(always)]
    fn merge(&self, least: &mut P::Label, later: P::Label) {
        self.fold(least, later);
    }
    #[inline(always)]
    fn apply(&self, _: u64, label: &mut P::Label, least: P::Label) -> ((), Activate) {
        let is_less = least < *label;
        if is_less {
            *label = least;
        }
        ((), Activate::when(is_less))
    }
}

/// Returns the footprint of the passes of a label program.
#[must_use]
pub fn footprint_of<P: MonotoneProgram>() -> ProgramFootprint {
    match P::UNIT_STEP {
        true => ProgramFootprint::of::<Mark<P>>(),
        false => ProgramFootprint::of::<Lower<P>>(),
    }
}
