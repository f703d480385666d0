//! [`Engine::settle`]: a label program to its end, over lists in memory where they are, else pass by pass.

use graphmill_graph::EdgeKind;
use graphmill_raw::Word;
use graphmill_storage::{Clock, Kind};

use crate::active::ActiveSet;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::machine::Machine;
use crate::metrics::{Metrics, Superstep};
use crate::program::{
    Accumulator, Activate, Direction, EdgeProgram, EdgeValue, Label, LabelProgram, Sum,
};
use crate::recovery::calls::pauses;
use crate::resident::lists::with_words;
use crate::resident::pile::{Block, Store};
use crate::resident::round::{Ground, WordOf};
use crate::resident::{buckets, levels};
use crate::room::Sizes;
use crate::rows::{Need, Read, Write};
use crate::settings::{EdgesAt, KernelChoice, OnPass};
use crate::traffic::{Access, Traffic};
use crate::vertex_array::{VertexArray, elements_mut};

impl Engine {
    /// Spreads the labels of the active vertices along their edges, in `direction`, until each vertex has the least label that
    /// reaches it. Where labels are in memory, and so are the lists of edges or there is room for them and the work is worth
    /// loading them, it is done there at once; else in passes.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, or the user asked to stop.
    pub fn settle<P>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        mut active: ActiveSet,
        direction: Direction,
    ) -> Result<(), EngineError>
    where
        P: LabelProgram,
        P::Label: Accumulator,
    {
        let (mut walked, mut no_room) = (0, false);
        let of_all = (self.graph().arcs(), self.vertices());
        let weighted = P::Edge::WEIGHTED;
        // Lists are of all vertices.
        no_room |= !self.common.ranks.alone();
        loop {
            active = self.in_passes(program, labels, active, direction, |engine, active| {
                engine.decide("whether lists are there", |engine| {
                    let is_worth_it =
                        !no_room && engine.lists_are_worth_it(weighted, direction, walked);
                    let are_there = is_worth_it
                        && engine.lists_for(weighted, direction, &labels, P::UNIFORM)?;
                    no_room |= is_worth_it && !are_there;
                    walked += active.len() * (of_all.0 / of_all.1 + 1);
                    Ok(!are_there)
                })
            })?;
            if active.is_empty() {
                return Ok(());
            }
            let ((), [left]) = self.call_of_many(std::any::type_name::<P>(), |engine| {
                let left = engine.settle_in_memory(program, labels, &active, direction)?;
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

    /// [`Engine::settle`] in passes alone: in each, all vertices send whose labels the one before lowered.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, or the user asked to stop.
    pub fn settle_in_passes<P>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        active: ActiveSet,
        direction: Direction,
    ) -> Result<(), EngineError>
    where
        P: LabelProgram,
        P::Label: Accumulator,
    {
        self.in_passes(program, labels, active, direction, |_, _| Ok(true))
            .map(drop)
    }

    /// Passes as long as there are active vertices and `goes_on` says so; the vertices that are active then.
    fn in_passes<P>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        mut active: ActiveSet,
        direction: Direction,
        mut goes_on: impl FnMut(&mut Engine, &ActiveSet) -> Result<bool, EngineError>,
    ) -> Result<ActiveSet, EngineError>
    where
        P: LabelProgram,
        P::Label: Accumulator,
    {
        self.common.arrays.check_own(labels.id())?;
        let mut level = None;
        let mut limit = self.pass_limit("a label program");
        while !active.is_empty() && goes_on(self, &active)? {
            limit.pass()?;
            let (read, write) = (labels.read(), labels.write());
            active = if P::UNIFORM {
                let of_level = match level {
                    Some(label) => label,
                    None => {
                        let any = |_, label: &P::Label| Least(*label);
                        self.process_vertices(read, Some(&active), any)?.0
                    }
                };
                let next = program.along(of_level, P::Edge::ONE);
                level = Some(next);
                let mark = Mark::<P>(next);
                self.process_edges(&mark, (), write, &active, direction)?.1
            } else {
                let lower = Lower(*program);
                self.process_edges(&lower, read, write, &active, direction)?
                    .1
            };
        }
        Ok(active)
    }

    /// Whether lists of edges are in memory or worth loading: as they are when so many edges were walked without them, or the engine
    /// was told to.
    pub(crate) fn lists_are_worth_it(
        &self,
        weighted: bool,
        direction: Direction,
        walked: u64,
    ) -> bool {
        let weighted = self.of_weights(weighted);
        let turned = self.goes_turned(direction);
        let are_there = || self.held.has_lists(&self.machine(turned), turned, weighted);
        match self.common.edges {
            EdgesAt::Auto => walked > self.graph().arcs() / WORTH || are_there(),
            EdgesAt::Memory => true,
            EdgesAt::Disk => are_there(),
        }
    }

    /// Whether the lists of edges are in memory that work on these rows needs; loads them where there is room. Where the work may pull,
    /// those of the other way round serve it too: they are loaded if edges are to be in memory, or it is told to pull.
    pub(crate) fn lists_for<T>(
        &mut self,
        weighted: bool,
        direction: Direction,
        rows: &VertexArray<T>,
        may_pull: bool,
    ) -> Result<bool, EngineError> {
        let turned = self.goes_turned(direction);
        let weighted = self.of_weights(weighted);
        if turned && self.turned.is_none() || !self.common.arrays.resident(&[Need::Read(rows.id())])
        {
            return Ok(false);
        }
        let work = self.work_over_lists();
        let leave = work.max(self.borrowed);
        if !self.held.has_lists(&self.machine(turned), turned, weighted)
            && !self.load_lists(turned, weighted, leave)?
        {
            return Ok(false);
        }
        if self.common.budget.available() < work {
            self.workspaces = None;
        }
        let is_told =
            self.common.edges == EdgesAt::Memory || self.common.kernel == KernelChoice::Gather;
        if may_pull
            && is_told
            && self.turned.is_some()
            && !self.held.has_lists(&self.machine(!turned), !turned, false)
        {
            self.load_lists(!turned, false, leave)?;
        }
        Ok(self.common.budget.available() >= work)
    }

    /// Bytes that work over lists takes besides them and its labels.
    fn work_over_lists(&self) -> u64 {
        let vertices = self.vertices();
        Store::memory(vertices, self.common.workers.count()) + levels::memory(vertices)
    }

    /// Bytes of a budget that has room for lists as work without weights along the edges needs them, where this one has not. `None` where
    /// there are none for another reason, or the labels themselves are not in memory.
    #[must_use]
    pub fn least_over_lists<T>(&self, labels: &VertexArray<T>) -> Option<u64> {
        if !self.common.arrays.resident(&[Need::Read(labels.id())]) {
            return None;
        }
        let leave = self.work_over_lists().max(self.borrowed);
        let lack = (self.held).lists_lack(&self.machine(false), false, false, leave);
        let lack = lack.filter(|bytes| *bytes > 0)?;
        Some(self.common.budget.total().saturating_add(lack))
    }

    /// Whether edges have the weights that are asked for.
    fn of_weights(&self, weighted: bool) -> bool {
        weighted && self.graph().edge_kind() != EdgeKind::None
    }

    /// Loads lists where they fit and leave so many bytes; whether they did. The passes to come share out what is left anew.
    fn load_lists(
        &mut self,
        turned: bool,
        weighted: bool,
        leave: u64,
    ) -> Result<bool, EngineError> {
        self.workspaces = None;
        self.active.trim();
        let machine = self.machine(turned);
        if self.held.lists_lack(&machine, turned, weighted, leave) != Some(0) {
            return Ok(false);
        }
        let way = self.turned.as_ref().filter(|_| turned);
        let machine = Machine::new(&self.common, way.unwrap_or(&self.stored));
        let loaded = self.held.load_lists(&machine, turned, weighted, leave);
        self.take_loading();
        self.count_held();
        loaded
    }

    /// Whether a direction goes against the arcs as they are stored.
    fn goes_turned(&self, direction: Direction) -> bool {
        direction == Direction::Backward && !self.graph().symmetric()
    }

    /// Settles labels over lists; the vertices whose labels are still to be sent where it ended before, or none.
    fn settle_in_memory<P: LabelProgram>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        active: &ActiveSet,
        direction: Direction,
    ) -> Result<ActiveSet, EngineError> {
        let turned = self.goes_turned(direction);
        let mut rows = self.common.arrays.take(labels.id())?;
        let mut left = self.active.empty();
        let outcome = self.settle_rows(program, rows.all(), active, turned, &mut left);
        self.common.arrays.put(labels.id(), rows);
        self.broken = outcome.is_err();
        outcome.map_err(|error| self.too_small(error))?;
        Ok(left)
    }

    fn settle_rows<P: LabelProgram>(
        &mut self,
        program: &P,
        rows: &mut [u8],
        active: &ActiveSet,
        turned: bool,
        left: &mut ActiveSet,
    ) -> Result<(), EngineError> {
        let symmetric = self.graph().symmetric();
        let way = self.turned.as_ref().filter(|_| turned);
        let machine = Machine::new(&self.common, way.unwrap_or(&self.stored));
        let held = &self.held;
        let Some(lists) = &held.way(turned).lists else {
            return Err(EngineError::NoReaders);
        };
        let against = if symmetric { turned } else { !turned };
        let ground = Ground {
            machine: &machine,
            program,
            lists,
            against: held.way(against).lists.as_ref(),
            labels: WordOf::<P>::shared(elements_mut(rows)),
        };
        let workers = machine.workers.count();
        let store = Store::new(&machine.budget, machine.batches.vertices(), workers)?;
        let first = store.blocks_of(active)?;
        let traffic = &self.common.traffic;
        let label = size_of::<P::Label>() as u64;
        // Each edge looks at a label, and whoever sends one was given it.
        let count = |pass: &Superstep| {
            traffic.shared(|worker, part| {
                lists.count(worker, part(pass.messages), part(pass.edges));
                let (edges, messages) = (part(pass.edges), part(pass.messages));
                worker.read(Kind::Vertices, Access::Random, edges * label);
                worker.write(Kind::Vertices, Access::Random, messages * label);
            });
        };
        let (metrics, on_pass) = (&mut self.metrics, &self.on_pass);
        let (clock, ranks) = (&*self.common.clock, &*self.common.ranks);
        let mut list = listed(clock, on_pass, metrics, traffic, count);
        let recovery = &mut self.recovery;
        let tell = |pass| {
            list(pass);
            pauses(recovery, clock.now(), ranks)
        };
        let leave = |blocks: &[Block]| left.insert_these(blocks.iter().flatten());
        match P::UNIFORM {
            true => with_words!(lists, |WORDS| levels::settle::<P, WORDS>(
                &ground, &store, first, tell, leave
            )),
            false => with_words!(lists, |WORDS| buckets::settle::<P, WORDS>(
                &ground, &store, first, tell, leave
            )),
        }
    }
}

/// Counts the passes of a loop in which labels travel one edge further in each: on a sound graph of |V| vertices it ends after |V| passes.
#[derive(Debug)]
pub struct PassLimit {
    what: &'static str,
    passes: u64,
    vertices: u64,
}

impl PassLimit {
    pub(crate) fn new(what: &'static str, vertices: u64) -> PassLimit {
        let passes = 0;
        PassLimit {
            what,
            passes,
            vertices,
        }
    }
    /// Counts one more pass.
    ///
    /// # Errors
    /// Returns `Unsettled` if that is one more than |V| + 1: labels travel round a cycle for ever.
    pub fn pass(&mut self) -> Result<(), EngineError> {
        if self.passes <= self.vertices {
            self.passes += 1;
            return Ok(());
        }
        Err(EngineError::Unsettled {
            what: self.what,
            passes: self.passes,
            vertices: self.vertices,
        })
    }
}

/// What lists each pass that it is told of, as long as the time since the one before, with what `count` says that it moved.
pub(crate) fn listed<'e>(
    clock: &'e dyn Clock,
    on_pass: &'e Option<OnPass>,
    metrics: &'e mut Metrics,
    traffic: &'e Traffic,
    count: impl Fn(&Superstep) + 'e,
) -> impl FnMut(Superstep) + 'e {
    let mut began = clock.now();
    move |mut pass| {
        count(&pass);
        (pass.tiers, pass.seconds_charged) = traffic.take();
        let now = clock.now();
        pass.seconds = (now - std::mem::replace(&mut began, now)).as_secs_f64();
        if let Some(tell) = on_pass {
            tell(metrics.pass_number(), &pass);
        }
        metrics.push(pass);
    }
}

/// Lists are worth loading when so many parts of all edges were walked.
const WORTH: u64 = 32;

/// The least of some labels.
#[derive(Clone, Copy)]
struct Least<L>(L);

impl<L: Label> Sum for Least<L> {
    const ZERO: Self = Least(L::NONE);
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
        Some(Least(label))
    }
}

/// A pass of a uniform program: whoever is reached for the first time takes the level's label.
struct Mark<P: LabelProgram>(P::Label);

impl<P: LabelProgram> EdgeProgram for Mark<P> {
    type SignalRows = ();
    type ApplyRows = Write<P::Label>;
    type Edge = ();
    type Message = u8;
    type Carried = u8;
    type Accumulator = u8;
    type Sum = ();
    const IDENTITY: u8 = 0;
    const EXACT: bool = true;
    const PULLS: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (): ()) -> Option<u8> {
        Some(1)
    }
    #[inline(always)]
    fn along(&self, call: u8, (): ()) -> u8 {
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
        if self.0 < *label {
            *label = self.0;
            ((), Activate::Yes)
        } else {
            ((), Activate::No)
        }
    }
    #[inline(always)]
    fn wants(&self, _: u64, label: &mut P::Label) -> bool {
        self.0 < *label
    }
    #[inline(always)]
    fn enough(&self, reached: &u8) -> bool {
        *reached != 0
    }
}

/// A pass of any label program: whoever hears of a lesser label takes it.
struct Lower<P>(P);

impl<P: LabelProgram> EdgeProgram for Lower<P>
where
    P::Label: Accumulator,
{
    type SignalRows = Read<P::Label>;
    type ApplyRows = Write<P::Label>;
    type Edge = P::Edge;
    type Message = P::Label;
    type Carried = P::Label;
    type Accumulator = P::Label;
    type Sum = ();
    const IDENTITY: P::Label = P::Label::NONE;
    const EXACT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, label: &P::Label) -> Option<P::Label> {
        Some(*label)
    }
    #[inline(always)]
    fn along(&self, label: P::Label, edge: P::Edge) -> P::Label {
        self.0.along(label, edge)
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
        if least < *label {
            *label = least;
            ((), Activate::Yes)
        } else {
            ((), Activate::No)
        }
    }
}

/// What the passes of a label program hold for each vertex.
#[must_use]
pub fn sizes_of<P>() -> Sizes
where
    P: LabelProgram,
    P::Label: Accumulator,
{
    match P::UNIFORM {
        true => Sizes::of::<Mark<P>>(),
        false => Sizes::of::<Lower<P>>(),
    }
}
