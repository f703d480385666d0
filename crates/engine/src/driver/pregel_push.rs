//! The push version: senders put messages into the mailboxes of the receivers, all workers at once.
//!
//! There are mailboxes that a superstep empties and others that it fills (`mailboxes.rs`). Over lists in memory a vertex goes to its
//! neighbours as soon as it is computed. Where many vertices are, edges are on disk, or their lists do not fit, broadcasts wait in a
//! set of their own for an edge pass from those who called, and nothing is read for others.
//!
//! A run can end between two supersteps and resume later: the messages in the mailboxes move to a vertex array first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use graphmill_raw::{Element, Mailboxes, lock};
use graphmill_storage::{DataKind, Job, JobError, Step as Stepped, StorageError, Worker};

use crate::cache::adjacency::{AdjacencyLists, value_of, with_words};
use crate::config::Combiner;
use crate::context::{ExecContext, run};
use crate::driver::mailboxes::SharedMailboxes;
use crate::driver::pregel_step::{AggregateSum, PregelStep, combining, message_in};
use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::program::vertex::VertexProgram;
use crate::schedule::numa::NumaQueue;
use crate::state::row_set::RowSet;
use crate::state::rows::{ColumnAccess, OutDegree, Rows, Write};
use crate::state::vertex_array::VertexArray;
use crate::value::{Accumulator, EdgeValue, Reduce};

/// Maximum number of sleeping vertices with a message that a worker lists.
///
/// If there are more, the worker scans all vertices.
const LISTED: usize = 1 << 14;
/// Broadcasts wait for an edge pass if more than one vertex in 16 computes.
///
/// The pass then moves little for silent vertices, and the mailboxes of one column lie in the cache.
const MANY: u64 = 16;
/// Edges of a list whose mailboxes are on their way.
const EDGES_AHEAD: usize = 16;

/// Sets of mailboxes, at most.
const SETS: usize = 3;

/// Bytes of one mailbox.
fn one_box<P: VertexProgram>() -> usize {
    Mailboxes::<P::Message>::bytes(1).iter().sum()
}

/// Returns the footprint of a program whose passes have the footprint `passes`.
pub(crate) fn sizes<P: VertexProgram>(passes: ProgramFootprint) -> ProgramFootprint {
    passes.with_rows::<OutDegree>().keeping(
        size_of::<P::Value>() + size_of::<P::Message>(),
        SETS * one_box::<P>(),
    )
}

/// Where messages go.
struct MailboxPair<M> {
    /// Of those that even supersteps take and odd ones send, and the others.
    sets: [SharedMailboxes<M>; 2],
    /// Broadcasts that wait for an edge pass, from the first superstep on that makes one.
    out: OnceLock<SharedMailboxes<M>>,
}

impl<M> MailboxPair<M> {
    /// The messages sent to a superstep.
    fn to(&self, superstep: u64) -> &SharedMailboxes<M> {
        &self.sets[superstep as usize % 2]
    }
}

impl Engine {
    pub(crate) fn push<P: VertexProgram>(
        &mut self,
        step: &mut PregelStep<P>,
        values: VertexArray<P::Value>,
        limit: u64,
    ) -> Result<(), EngineError> {
        let mut waken = self.full_set()?;
        // No vertex has a message in the first superstep.
        let mut mail = None;
        loop {
            let name = call_name::<P>("pregel");
            let (facts, [left]) = self.logged_many(&name, |engine| {
                let left = engine.run_push(step, values, (waken, mail), limit)?;
                Ok(((step.facts.superstep, step.facts.aggregated), [left]))
            })?;
            (step.facts.superstep, step.facts.aggregated) = facts;
            if left.is_empty() || step.facts.superstep >= limit {
                return Ok(());
            }
            waken = left;
            mail = Some(self.vertex_array(&call_name::<P>("mail"))?);
        }
    }

    /// Runs supersteps of the vertices in `waken`, from the current one on.
    ///
    /// If it ends early, it returns the vertices of the next superstep, whose messages are then in the mail array.
    fn run_push<P: VertexProgram>(
        &mut self,
        step: &mut PregelStep<P>,
        values: VertexArray<P::Value>,
        (mut waken, mail): (ActiveSet, Option<VertexArray<P::Message>>),
        limit: u64,
    ) -> Result<ActiveSet, EngineError> {
        self.make_room_to_push::<P>(&values, mail.is_some())?;
        let sets = [self.shared_mailboxes()?, self.shared_mailboxes()?];
        let rows = (values.write(), OutDegree);
        let mut needs = Vec::new();
        rows.needs(&mut needs);
        self.load_degrees(&needs)?;
        self.evict_for_rows(&needs);
        let combiner = self.common.options.combiner;
        // Whether lists were in memory when that was asked for.
        let mut has_lists = None;
        if combiner != Combiner::Auto {
            has_lists = Some(self.push_lists(P::Edge::WEIGHTED, &values)?);
        }
        let out = OnceLock::new();
        let post = Arc::new(MailboxPair { sets, out });
        if let Some(mail) = mail {
            self.restore_mail(step, &post, mail, &waken)?;
        }
        while step.facts.superstep < limit && !waken.is_empty() {
            self.evict_for_rows(&needs);
            let many = combiner == Combiner::Auto && waken.len() > self.vertices() / MANY;
            if !many && has_lists.is_none() {
                // Supersteps of more vertices need a set more beside the lists.
                self.borrowed = self.borrowed.max(self.leased_set::<P>());
                has_lists = Some(self.push_lists(P::Edge::WEIGHTED, &values)?);
            }
            if many || has_lists != Some(true) || self.cache.orientation(false).lists.is_none() {
                self.make_set_that_waits(&post)?;
            }
            let began = self.common.clock.now();
            let (mut next, mut callers) = (self.active.empty(), self.active.empty());
            let context = ExecContext::new(&self.common, &self.stored);
            let lists = &self.cache.orientation(false).lists;
            let batches: Vec<usize> = waken.batches().collect();
            let pass = Pushing {
                context: &context,
                step,
                lists: lists.as_ref().filter(|_| !many && has_lists == Some(true)),
                needs: &needs,
                post: &post,
                waken: &waken,
                awake: &next,
                callers: &callers,
                tallies: batches.iter().map(|_| Mutex::new(Reduce::ZERO)).collect(),
                deal: NumaQueue::new(&batches, context.batches.len()),
                batches,
                reached: Reached::new(context.workers.count()),
            };
            let done = pass.superstep();
            let ((aggregate, _), report, reached) = self.checked(done)?;
            self.end_pass(began, report);
            for set in [&mut next, &mut callers] {
                set.agree_len()?;
            }
            if !callers.is_empty() {
                let broadcasts = Broadcasts::<P> {
                    program: Arc::clone(&step.program),
                    post: Arc::clone(&post),
                    to: step.facts.superstep + 1,
                };
                let forward = Direction::Forward;
                let ((), reached) = self.process_edges(&broadcasts, (), (), &callers, forward)?;
                // The mailboxes that it has emptied and filled count with the superstep to come.
                self.common.traffic.shared(|worker, part| {
                    let bytes = part(callers.len() + reached.len()) * one_box::<P>() as u64;
                    worker.change(DataKind::Messages, Access::Random, bytes);
                });
                next.union(&reached)?;
            }
            if next.len() < self.vertices() {
                let sent = &post.to(step.facts.superstep + 1).boxes;
                reached.wake(&mut next, |v| {
                    let mail = sent.peek(v);
                    let is_nothing = mail.is_some_and(|mail| mail.bit_eq(&P::IDENTITY));
                    if is_nothing {
                        // Or its mailbox would not look empty to the next who sends there.
                        sent.take(v);
                    }
                    mail.is_some() && !is_nothing
                })?;
            }
            waken = next;
            self.advance_superstep(step, aggregate)?;
            if self.is_pause_due()? && step.facts.superstep < limit && !waken.is_empty() {
                self.keep_mail(step, post, &waken)?;
                return Ok(waken);
            }
        }
        self.empty_set()
    }

    /// Frees memory for mailboxes and values.
    fn make_room_to_push<P: VertexProgram>(
        &mut self,
        values: &VertexArray<P::Value>,
        has_mail: bool,
    ) -> Result<(), EngineError> {
        let vertices = self.vertices() as usize;
        let leased = |kind, bytes| self.common.tiers.leased(kind, (vertices * bytes) as u64);
        let one_set = self.leased_set::<P>();
        let rows = leased(DataKind::Vertices, size_of::<P::Value>());
        let of_mail = match has_mail {
            false => leased(DataKind::Vertices, size_of::<P::Message>()),
            true => 0,
        };
        let tiers = &self.common.tiers;
        let all_sets = (SETS * vertices * one_box::<P>()) as u64;
        tiers
            .check_nodes(DataKind::Messages, all_sets)
            .map_err(StorageError::from)?;
        let boxes = SETS as u64 * one_set + of_mail;
        // The result comes after the mailboxes.
        let besides = (self.common.shape).reserve(self.common.sizes.with_result(0), 0);
        if self.common.budget.available() < boxes + besides {
            self.release();
        }
        let resident = self.common.arrays.in_memory(values.id());
        if !resident || self.common.budget.available() < boxes + besides {
            return Err(EngineError::PushNeedsMemory {
                bytes: rows + boxes,
                besides,
                budget: self.common.budget.total(),
            });
        }
        Ok(())
    }

    /// Moves messages from the mail array to the mailboxes of the current superstep.
    fn restore_mail<P: VertexProgram>(
        &mut self,
        step: &PregelStep<P>,
        post: &MailboxPair<P::Message>,
        mail: VertexArray<P::Message>,
        waken: &ActiveSet,
    ) -> Result<(), EngineError> {
        let sent = post.to(step.facts.superstep);
        let program = &step.program;
        self.process_vertices(mail.read(), Some(waken), |v, mail| {
            if !mail.bit_eq(&P::IDENTITY) {
                let combine = |into: &mut P::Message, mail| program.combine(into, mail);
                sent.boxes.put(v as usize, *mail, combine);
            }
        })
    }

    /// Moves what was sent to a superstep to the array of mail.
    fn keep_mail<P: VertexProgram>(
        &mut self,
        step: &PregelStep<P>,
        post: Arc<MailboxPair<P::Message>>,
        waken: &ActiveSet,
    ) -> Result<(), EngineError> {
        let which = step.facts.superstep as usize % 2;
        let sent = Arc::into_inner(post).and_then(|post| post.sets.into_iter().nth(which));
        let sent = sent.ok_or(EngineError::Broken)?;
        let mail = self.vertex_array(&call_name::<P>("mail"))?;
        self.process_vertices(mail.write(), Some(waken), |v, mail| {
            *mail = sent.boxes.take(v as usize).unwrap_or(P::IDENTITY);
        })
    }

    /// Whether the lists of edges are in memory that senders go along.
    pub(crate) fn push_lists<T>(
        &mut self,
        weighted: bool,
        values: &VertexArray<T>,
    ) -> Result<bool, EngineError> {
        let forward = Direction::Forward;
        Ok(self.common.ranks.alone()
            && self.lists_are_worth_it(weighted, forward, u64::MAX)?
            && self.lists_for(weighted, forward, values, false)?)
    }

    /// Returns the bytes of the budget that a set of mailboxes takes.
    fn leased_set<P: VertexProgram>(&self) -> u64 {
        let bytes = self.vertices().saturating_mul(one_box::<P>() as u64);
        self.common.tiers.leased(DataKind::Messages, bytes)
    }

    /// Makes the mailboxes of broadcasts that wait, unless they are there.
    ///
    /// It evicts what they do not fit beside.
    fn make_set_that_waits<M: Element>(
        &mut self,
        post: &MailboxPair<M>,
    ) -> Result<(), StorageError> {
        if post.out.get().is_some() {
            return Ok(());
        }
        let bytes = Mailboxes::<M>::bytes(self.vertices() as usize)
            .iter()
            .sum::<usize>() as u64;
        let leased = self.common.tiers.leased(DataKind::Messages, bytes);
        let of_nodes = self.common.tiers.free_on_nodes(DataKind::Messages);
        let sizes = self.common.sizes.with_result(0);
        let least = leased.saturating_add(self.common.shape.reserve(sizes, 0));
        if self.common.budget.available() < least || of_nodes < bytes {
            self.release();
        }
        let set = self.shared_mailboxes()?;
        let _ = post.out.set(set);
        Ok(())
    }

    /// Returns a set of empty mailboxes for all vertices.
    fn shared_mailboxes<M: Element>(&self) -> Result<SharedMailboxes<M>, StorageError> {
        let (tiers, budget) = (&self.common.tiers, &self.common.budget);
        let buffer = |bytes| tiers.buffer(DataKind::Messages, budget, "mailboxes", bytes);
        let vertices = self.vertices() as usize;
        let [states, messages] = Mailboxes::<M>::bytes(vertices);
        let (states, first) = buffer(states)?.into_parts();
        let (messages, second) = buffer(messages)?.into_parts();
        Ok(SharedMailboxes {
            boxes: Mailboxes::new(vertices, [states, messages]),
            alone: self.common.workers.count() == 1,
            _leases: [first, second],
        })
    }
}

/// One superstep as a job: each step is one batch.
struct Pushing<'p, P: VertexProgram> {
    context: &'p ExecContext<'p>,
    step: &'p PregelStep<P>,
    lists: Option<&'p AdjacencyLists>,
    needs: &'p [ColumnAccess],
    post: &'p MailboxPair<P::Message>,
    waken: &'p ActiveSet,
    /// The vertices that do not vote to halt.
    awake: &'p ActiveSet,
    /// Those whose broadcasts wait.
    callers: &'p ActiveSet,
    batches: Vec<usize>,
    deal: NumaQueue<'p>,
    /// By batch, with the edges that were gone along.
    tallies: Vec<Mutex<(AggregateSum<P::Aggregate>, u64)>>,
    reached: Reached,
}

impl<P: VertexProgram> Pushing<'_, P> {
    /// Runs the superstep: returns its aggregate and the vertices that received messages.
    fn superstep(self) -> Result<(AggregateSum<P::Aggregate>, PassMetrics, Reached), EngineError> {
        run(self.context, &self)?;
        let mut sum = <(AggregateSum<P::Aggregate>, u64)>::ZERO;
        for of_batch in &self.tallies {
            sum.add(*lock(of_batch));
        }
        let (tally, edges) = sum;
        let report = PassMetrics::in_memory(Mode::Push, [self.waken.len(), tally.1, edges]);
        Ok((tally, report, self.reached))
    }

    /// Computes the woken vertices of a batch.
    fn batch<const WORDS: usize>(&self, position: usize, worker: usize) -> Result<(), EngineError> {
        let (context, step) = (self.context, self.step);
        let superstep = step.facts.superstep;
        let (now, next) = (self.post.to(superstep), self.post.to(superstep + 1));
        let program = &*step.program;
        let combine = |into: &mut P::Message, message| program.combine(into, message);
        let batch = self.batches[position];
        let start = context.batches.start(batch);
        let mut io = lock(&context.row_io[worker]);
        let waken = self.waken.batch(batch)?;
        let some = RowSet::of(&waken);
        let mut open = (context.arrays).open(batch, self.needs, some.as_ref(), &mut io)?;
        let mut reached = lock(&self.reached.by_worker[worker]);
        let mut tally = <(AggregateSum<P::Aggregate>, u64)>::ZERO;
        {
            let mut awake = self.awake.batch(batch)?;
            let waits = self.lists.is_none();
            let mut callers = waits.then(|| self.callers.batch(batch)).transpose()?;
            let mut rows = <(Write<P::Value>, OutDegree)>::slices(&mut open.guards);
            let current = CurrentCall::new();
            waken.for_each(|i| {
                let v = start as usize + i;
                current.at(v as u64);
                let (value, degree) = <(Write<P::Value>, OutDegree)>::row(&mut rows, i);
                let mut put = |to: usize, message| {
                    if next.put(to, message, combine) {
                        self.reached.note(&mut reached, to as u64);
                    }
                };
                let mail = now.boxes.take(v).and_then(message_in::<P>);
                let computed = match P::SENDS {
                    true => {
                        let mut sends = |to: u64, message| match to < context.batches.vertices() {
                            true => put(to as usize, message),
                            false => step.note_unknown_receiver(to),
                        };
                        step.compute(v as u64, value, degree, (mail, &[]), &mut sends)
                    }
                    false => step.compute(v as u64, value, degree, (mail, &[]), &mut step.refuse()),
                };
                match (computed.broadcast, self.lists) {
                    (Some(message), Some(lists)) => {
                        let (list, on) = lists.with_next::<WORDS>(v, EDGES_AHEAD);
                        for (i, record) in list.iter().enumerate() {
                            if let Some(later) = on.get(i + EDGES_AHEAD) {
                                next.boxes.prefetch(later[0] as usize);
                            }
                            let carried = program.on_edge(message, value_of(record));
                            put(record[0] as usize, carried);
                        }
                        tally.1 += list.len() as u64;
                    }
                    (Some(message), None) => {
                        if let Some(out) = self.post.out.get() {
                            out.boxes.put(v, message, combine);
                        }
                        callers.iter_mut().for_each(|callers| callers.insert(i));
                    }
                    (None, _) => (),
                }
                tally.0.add(computed.tally);
                if computed.awake == Activate::Yes {
                    awake.insert(i);
                }
            });
        }
        *lock(&self.tallies[position]) = tally;
        let woken = self.waken.count_in(batch);
        let all = woken == context.batches.span(batch);
        context.count_rows(worker, self.needs, woken, all);
        let traffic = context.traffic.of(worker);
        let one_box = one_box::<P>() as u64;
        traffic.change(DataKind::Messages, Access::of(all), woken * one_box);
        let ((_, broadcasts), edges) = tally;
        match self.lists {
            Some(lists) => lists.count(traffic, broadcasts, edges),
            None => {
                let bytes = broadcasts * one_box;
                traffic.write(DataKind::Messages, Access::of(all), bytes);
            }
        }
        traffic.change(DataKind::Messages, Access::Random, edges * one_box);
        (context.arrays).close(open, self.needs, None, &mut io)
    }
}

impl<P: VertexProgram> Job for Pushing<'_, P> {
    fn step(&self, worker: &mut Worker) -> Result<Stepped, JobError> {
        self.context.ranks.check_stop()?;
        let Some(position) = self.deal.take() else {
            return Ok(Stepped::Finished);
        };
        match self.lists {
            Some(lists) => {
                with_words!(lists, |WORDS| self.batch::<WORDS>(position, worker.index))?;
            }
            None => self.batch::<1>(position, worker.index)?,
        }
        Ok(Stepped::Worked)
    }
}

/// A pass of broadcasts that wait, into the mailboxes of a superstep.
struct Broadcasts<P: VertexProgram> {
    program: Arc<P>,
    post: Arc<MailboxPair<P::Message>>,
    to: u64,
}

impl<P: VertexProgram> EdgeProgram for Broadcasts<P> {
    type SignalRows = ();
    type ApplyRows = ();
    type Sum = ();

    combining!(self, self.program);
    #[inline(always)]
    fn signal(&self, v: u64, (): ()) -> Option<P::Message> {
        self.post.out.get()?.boxes.take(v as usize)
    }
    #[inline(always)]
    fn apply(&self, v: u64, (): (), mail: P::Message) -> ((), Activate) {
        let combine = |into: &mut P::Message, message| self.program.combine(into, message);
        let boxes = &self.post.to(self.to).boxes;
        boxes.put(v as usize, mail, combine);
        match boxes.peek(v as usize) {
            Some(mail) if mail.bit_eq(&P::IDENTITY) => {
                boxes.take(v as usize);
                ((), Activate::No)
            }
            _ => ((), Activate::Yes),
        }
    }
}

/// The vertices that received a message, while they are few.
struct Reached {
    by_worker: Vec<Mutex<Vec<u64>>>,
    /// There were too many to list.
    many: AtomicBool,
}

impl Reached {
    fn new(workers: usize) -> Self {
        Reached {
            by_worker: (0..workers).map(|_| Mutex::default()).collect(),
            many: AtomicBool::new(false),
        }
    }

    #[inline(always)]
    fn note(&self, list: &mut Vec<u64>, v: u64) {
        if list.len() < LISTED {
            list.push(v);
        } else {
            self.many.store(true, Ordering::Relaxed);
        }
    }

    /// Adds those to a set who found something.
    fn wake(
        &self,
        set: &mut ActiveSet,
        has_mail: impl Fn(usize) -> bool,
    ) -> Result<(), EngineError> {
        if self.many.load(Ordering::Relaxed) {
            return set.insert_where(|v| has_mail(v as usize));
        }
        for list in &self.by_worker {
            for v in lock(list).iter().filter(|v| has_mail(**v as usize)) {
                set.insert(*v)?;
            }
        }
        Ok(())
    }
}
