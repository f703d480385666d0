//! Vertex programs with uncombined mailboxes ([`VertexProgram::UNCOMBINED`]).
//!
//! A superstep delivers the broadcasts of the last one, then computes. One pass over edges counts the messages to each vertex. The own
//! batches are cut into windows whose mailboxes fit in memory. For each window, a pass over edges puts its messages in, and a pass over
//! rows computes its vertices. So edges and rows may be on disk. What vertices address with `send` stays in memory.
//!
//! A run can end between two supersteps and resume later, unless messages of `send` are on their way.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use graphmill_graph::Batches;
use graphmill_raw::lock;
use graphmill_storage::MemoryBudget;

use crate::checkpoint::checkpointer::Checkpointer;
use crate::driver::mail::{AddressedMessage, MailCount, MailWindow, SentMail};
use crate::driver::pregel_step::{AggregateSum, PregelStep, message_in};
use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::{EngineError, ensure};
use crate::frontier::active_set::ActiveSet;
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::program::message::MessageProgram;
use crate::program::outbox::Outbox;
use crate::program::vertex::VertexProgram;
use crate::state::rows::{OutDegree, Read, Write};
use crate::state::vertex_array::VertexArray;
use crate::value::Reduce;

/// The messages on their way to a superstep.
struct InFlight<P: VertexProgram> {
    /// The vertices whose broadcasts are in [`MailArrays::out`].
    senders: ActiveSet,
    broadcasts: u64,
    sent: Arc<SentMail<P::Message>>,
}

/// The arrays of a run.
struct MailArrays<P: VertexProgram> {
    values: VertexArray<P::Value>,
    /// The number of broadcasts that reach each vertex.
    counts: VertexArray<u64>,
    /// The broadcasts of even supersteps, and of odd ones.
    broadcasts: [VertexArray<P::Message>; 2],
}

impl<P: VertexProgram> MailArrays<P> {
    /// The broadcasts of the superstep before.
    fn out(&self, superstep: u64) -> VertexArray<P::Message> {
        self.next(superstep + 1)
    }
    /// The broadcasts of a superstep.
    fn next(&self, superstep: u64) -> VertexArray<P::Message> {
        self.broadcasts[superstep as usize % 2]
    }
}

/// Returns the footprint of an uncombined program, but for its mailboxes.
pub(crate) fn sizes<P: VertexProgram>() -> ProgramFootprint {
    let passes = ProgramFootprint::of::<CountMail<P>>().or(ProgramFootprint::of::<FillMail<P>>());
    let arrays = size_of::<P::Value>() + size_of::<u64>() + 2 * size_of::<P::Message>();
    passes
        .with_rows::<<ComputeMail<P> as MessageProgram>::SendRows>()
        .with_arrays(arrays)
}

impl Engine {
    /// Runs a program with uncombined mailboxes.
    pub(crate) fn pull_uncombined<P: VertexProgram>(
        &mut self,
        step: &mut PregelStep<P>,
        values: VertexArray<P::Value>,
        limit: u64,
    ) -> Result<(), EngineError> {
        let name = call_name::<P>;
        // A resumed run has the arrays of its checkpoint before its first pass.
        let arrays = MailArrays::<P> {
            values,
            counts: self.vertex_array(&name("mail counts"))?,
            broadcasts: [
                self.vertex_array(&name("next broadcasts"))?,
                self.vertex_array(&name("broadcasts"))?,
            ],
        };
        let (mut waken, mut senders, mut broadcasts) = (self.full_set()?, self.empty_set()?, 0);
        loop {
            let (facts, sets) = self.logged_many(&name("pregel"), |engine| {
                let left = (waken, senders, broadcasts);
                let (sets, broadcasts) = engine.run_uncombined(step, &arrays, left, limit)?;
                let facts = (step.facts.superstep, step.facts.aggregated);
                Ok(((facts, broadcasts), sets))
            })?;
            ((step.facts.superstep, step.facts.aggregated), broadcasts) = facts;
            [waken, senders] = sets;
            self.recovery
                .iter_mut()
                .for_each(Checkpointer::defer_cancel);
            if step.facts.superstep >= limit || waken.is_empty() && broadcasts == 0 {
                return Ok(());
            }
        }
    }

    /// Runs supersteps of the vertices in `waken`, and of those that the broadcasts of `senders` reach.
    ///
    /// If it ends early, it returns these sets and the number of broadcasts for the superstep that is next.
    fn run_uncombined<P: VertexProgram>(
        &mut self,
        step: &mut PregelStep<P>,
        arrays: &MailArrays<P>,
        (mut waken, senders, broadcasts): (ActiveSet, ActiveSet, u64),
        limit: u64,
    ) -> Result<([ActiveSet; 2], u64), EngineError> {
        let batches = self.common.batches.len();
        let mut mail = InFlight::<P> {
            senders,
            broadcasts,
            sent: Arc::new(SentMail::new(batches)),
        };
        while step.facts.superstep < limit {
            let mut counts = vec![MailCount::default(); batches];
            if mail.broadcasts > 0 {
                let count = CountMail::<P> {
                    batches: Arc::clone(&self.common.batches),
                    counts: counts.into_iter().map(Mutex::new).collect(),
                    program: PhantomData,
                };
                let out = arrays.out(step.facts.superstep).read();
                let (to, forward) = (arrays.counts.write(), Direction::Forward);
                let ((), reached) = self.process_edges(&count, out, to, &mail.senders, forward)?;
                waken.union(&reached)?;
                counts = count.counts.iter().map(|count| *lock(count)).collect();
            }
            if waken.is_empty() {
                mail.broadcasts = 0;
                break;
            }
            let sent = Arc::new(SentMail::new(batches));
            let (aggregate, broadcasts, next) =
                self.compute_mail(step, arrays, &mail, &sent, (&waken, &counts))?;
            mail.senders = std::mem::replace(&mut waken, next);
            (mail.broadcasts, mail.sent) = (broadcasts, sent);
            self.advance_superstep(step, aggregate)?;
            if self.is_mail_pause_due(&mail)? {
                break;
            }
        }
        Ok(([waken, mail.senders], mail.broadcasts))
    }

    /// Returns true if the call has to end, to write a checkpoint.
    ///
    /// A checkpoint holds broadcasts, but no messages of `send`. While some are on their way, a request to stop ends the run at once.
    fn is_mail_pause_due<P: VertexProgram>(
        &mut self,
        mail: &InFlight<P>,
    ) -> Result<bool, EngineError> {
        let sent = u64::from(P::SENDS && !mail.sent.is_empty());
        if P::SENDS && self.common.ranks.total([sent])? != [0] {
            (self.recovery.iter_mut()).for_each(|recovery| recovery.patience = None);
            return Ok(false);
        }
        self.is_pause_due()
    }

    /// Computes the vertices in `waken`, window by window, with the messages that reach them.
    ///
    /// Returns the aggregate, the number of broadcasts, and the vertices of the next superstep, broadcasts left out.
    fn compute_mail<P: VertexProgram>(
        &mut self,
        step: &PregelStep<P>,
        arrays: &MailArrays<P>,
        mail: &InFlight<P>,
        sent: &Arc<SentMail<P::Message>>,
        (waken, broadcast_counts): (&ActiveSet, &[MailCount]),
    ) -> Result<(P::Aggregate, u64, ActiveSet), EngineError> {
        let mut counts = broadcast_counts.to_vec();
        for batch in self.common.ranks.own() {
            let count = &mut counts[batch];
            mail.sent.each(batch, |_| {
                // Each may be for the vertex with most.
                (count.messages, count.largest) = (count.messages + 1, count.largest + 1);
            });
        }
        let windows = self.mail_windows::<P>(&counts)?;
        let rounds = u64::MAX - self.common.ranks.least(u64::MAX - windows.len() as u64)?;
        let tallies: Vec<_> = counts.iter().map(|_| Mutex::new(Reduce::ZERO)).collect();
        let tallies: Arc<Vec<Mutex<AggregateSum<P::Aggregate>>>> = Arc::new(tallies);
        let mut next = self.empty_set()?;
        for round in 0..rounds {
            let none = self.common.ranks.own().start;
            let window = windows.get(round as usize).cloned().unwrap_or(none..none);
            let [from, to] = [window.start, window.end].map(|batch| self.common.batches.cut(batch));
            let part = self.members_within(waken, &(from..to))?;
            let boxes = Arc::new(MailWindow::new(&self.common.batches, &window));
            for batch in part.batches() {
                let opened = boxes.open(&self.common.budget, batch, counts[batch]);
                opened.map_err(|error| self.too_small(error.into()))?;
            }
            self.fill_mail(step, arrays, mail, (&boxes, &part, window))?;
            let compute = ComputeMail {
                step: step.clone(),
                batches: Arc::clone(&self.common.batches),
                budget: self.common.budget.clone(),
                boxes,
                sent: Arc::clone(sent),
                tallies: Arc::clone(&tallies),
            };
            let next_broadcasts = arrays.next(step.facts.superstep).write();
            let rows = (arrays.values.write(), next_broadcasts, OutDegree);
            let ((), [awake, reached]) = self.process_messages(&compute, rows, (), Some(&part))?;
            sent.check().map_err(|error| self.too_small(error.into()))?;
            next.union(&awake)?;
            next.union(&reached)?;
        }
        let own = self.common.ranks.own();
        let tallies = own.map(|batch| *lock(&tallies[batch])).collect();
        let ((aggregate, broadcasts), []) = self.common.ranks.agree([tallies], [])?;
        Ok((aggregate, broadcasts, next))
    }

    /// Cuts the own batches into windows whose mailboxes fit in the free memory; evicts cells for them.
    fn mail_windows<P: VertexProgram>(
        &mut self,
        counts: &[MailCount],
    ) -> Result<Vec<Range<usize>>, EngineError> {
        let batches = Arc::clone(&self.common.batches);
        let bytes = |batch: usize| counts[batch].bytes::<P::Message>(batches.span(batch));
        let own = self.common.ranks.own();
        let all: u64 = own.clone().map(bytes).sum();
        let widest = own.clone().map(bytes).max().unwrap_or(0);
        let on_disk = self.common.on_disk_with(0);
        // The result comes after the mailboxes.
        let sizes = self.common.sizes.with_result(0);
        let reserve = self.common.shape.reserve(sizes, on_disk);
        let wanted = all.min(self.common.budget.total() / 4).max(widest);
        self.evict_to_free(reserve.saturating_add(wanted));
        if self.common.budget.available() < reserve.saturating_add(widest) {
            self.release();
        }
        let room = self.common.budget.available().saturating_sub(reserve);
        ensure(room >= widest, || EngineError::MailNeedsMemory {
            bytes: widest,
            besides: reserve,
            budget: self.common.budget.total(),
        })?;
        let room = room.min(wanted);
        let (mut windows, mut used) = (Vec::<Range<usize>>::new(), 0);
        for batch in own {
            let fits = used + bytes(batch) <= room;
            match windows.last_mut() {
                Some(window) if fits => window.end = batch + 1,
                _ => {
                    windows.push(batch..batch + 1);
                    used = 0;
                }
            }
            used += bytes(batch);
        }
        Ok(windows)
    }

    /// Returns the vertices of a set that are in a range of this rank's vertices.
    pub(crate) fn members_within(
        &self,
        set: &ActiveSet,
        window: &Range<u64>,
    ) -> Result<ActiveSet, EngineError> {
        let (batches, mut part) = (&self.common.batches, self.active.empty());
        for batch in set.batches() {
            let start = batches.start(batch);
            let end = start + batches.span(batch);
            if window.start < end && start < window.end {
                let [from, to] = [window.start, window.end].map(|v| v.clamp(start, end) - start);
                let mut members = part.batch(batch)?;
                let of_batch = set.batch(batch)?;
                of_batch.for_each_in(from as usize..to as usize, |i| members.insert(i));
            }
        }
        part.agree_len()?;
        Ok(part)
    }

    /// Fills the mailboxes of a window: first with messages of `send`, then with broadcasts.
    fn fill_mail<P: VertexProgram>(
        &mut self,
        step: &PregelStep<P>,
        arrays: &MailArrays<P>,
        mail: &InFlight<P>,
        (boxes, part, window): (&Arc<MailWindow<P::Message>>, &ActiveSet, Range<usize>),
    ) -> Result<(), EngineError> {
        for batch in window.clone() {
            mail.sent.each(batch, |sent| boxes.count(sent.receiver, 1));
        }
        if mail.broadcasts > 0 {
            self.process_vertices(arrays.counts.write(), Some(part), |v, count| {
                boxes.count(v, std::mem::take(count));
            })?;
        }
        boxes.begin_fill();
        for batch in window.clone() {
            mail.sent.each(batch, |sent| {
                boxes.put(sent.receiver, sent.sender, sent.message);
            });
        }
        if mail.broadcasts > 0 {
            let fill = FillMail {
                program: Arc::clone(&step.program),
                boxes: Arc::clone(boxes),
            };
            let out = arrays.out(step.facts.superstep).read();
            let forward = Direction::Forward;
            self.edges_pass(&fill, (out, ()), &mail.senders, forward, &window)?;
        }
        Ok(())
    }
}

/// A pass that counts the broadcasts to each vertex.
struct CountMail<P: VertexProgram> {
    batches: Arc<Batches>,
    counts: Vec<Mutex<MailCount>>,
    program: PhantomData<fn() -> P>,
}

impl<P: VertexProgram> EdgeProgram for CountMail<P> {
    type SignalRows = Read<P::Message>;
    type ApplyRows = Write<u64>;
    type Edge = ();
    type Message = u8;
    type EdgeMessage = ();
    type Accumulator = u64;
    type Sum = ();
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, out: &P::Message) -> Option<u8> {
        message_in::<P>(*out).map(|_| 0)
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
    fn apply(&self, v: u64, row: &mut u64, count: u64) -> ((), Activate) {
        *row = count;
        let of_batch = &mut *lock(&self.counts[self.batches.batch_of(v)]);
        of_batch.messages += count;
        of_batch.largest = of_batch.largest.max(count);
        ((), Activate::Yes)
    }
}

/// A pass that puts broadcasts into the mailboxes of a window.
struct FillMail<P: VertexProgram> {
    program: Arc<P>,
    boxes: Arc<MailWindow<P::Message>>,
}

impl<P: VertexProgram> EdgeProgram for FillMail<P> {
    type SignalRows = Read<P::Message>;
    type ApplyRows = ();
    type Edge = P::Edge;
    type Message = P::Message;
    type EdgeMessage = ();
    type Accumulator = u8;
    type Sum = ();
    const IDENTITY: u8 = 0;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, out: &P::Message) -> Option<P::Message> {
        message_in::<P>(*out)
    }
    #[inline(always)]
    fn on_edge(&self, _: P::Message, _: P::Edge) {}
    #[inline(always)]
    fn on_arc(&self, sender: u64, receiver: u64, message: P::Message, edge: P::Edge) {
        let message = self.program.on_edge(message, edge);
        self.boxes.put(receiver, sender, message);
    }
    #[inline(always)]
    fn fold(&self, _: &mut u8, (): ()) {}
    #[inline(always)]
    fn merge(&self, _: &mut u8, _: u8) {}
    fn apply(&self, _: u64, (): (), _: u8) -> ((), Activate) {
        ((), Activate::No)
    }
}

/// A pass in which the vertices of a window compute with their messages.
struct ComputeMail<P: VertexProgram> {
    step: PregelStep<P>,
    batches: Arc<Batches>,
    budget: MemoryBudget,
    boxes: Arc<MailWindow<P::Message>>,
    sent: Arc<SentMail<P::Message>>,
    /// By batch, so that sums do not depend on windows.
    tallies: Arc<Vec<Mutex<AggregateSum<P::Aggregate>>>>,
}

impl<P: VertexProgram> MessageProgram for ComputeMail<P> {
    type SendRows = (Write<P::Value>, Write<P::Message>, OutDegree);
    type ApplyRows = ();
    type Message = AddressedMessage<P::Message>;
    type Accumulator = u8;
    type Sum = ();
    const IDENTITY: u8 = 0;

    fn send(
        &self,
        v: u64,
        (value, out, degree): (&mut P::Value, &mut P::Message, u64),
        sink: &mut Outbox<'_, AddressedMessage<P::Message>>,
    ) -> ((), Activate) {
        let step = &self.step;
        let computed = self.boxes.read(v, |messages| match P::SENDS {
            true => {
                let mut sends = |receiver, message| {
                    let sender = v;
                    let sent = AddressedMessage {
                        receiver,
                        sender,
                        message,
                    };
                    sink.send(receiver, sent);
                };
                step.compute(v, value, degree, (None, messages), &mut sends)
            }
            false => step.compute(v, value, degree, (None, messages), &mut step.refuse()),
        });
        let Some(computed) = computed else {
            return ((), Activate::No);
        };
        *out = computed.broadcast.unwrap_or(P::IDENTITY);
        lock(&self.tallies[self.batches.batch_of(v)]).add(computed.tally);
        ((), computed.awake)
    }
    fn fold(&self, reached: &mut u8, sent: AddressedMessage<P::Message>) {
        *reached = 1;
        let batch = self.batches.batch_of(sent.receiver);
        self.sent.keep(&self.budget, batch, sent);
    }
    fn apply(&self, _: u64, (): (), _: u8) -> ((), Activate) {
        ((), Activate::Yes)
    }
}
