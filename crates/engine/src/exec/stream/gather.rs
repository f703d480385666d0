//! The gather phase: update chunks to accumulators, and accumulators to rows (Chaos, sections 5.2 and 5.3).
//!
//! A worker takes a batch and streams the batch's update chunks into accumulators. A worker without a batch joins one that still has
//! chunks, with accumulators of its own. The last worker of a batch merges them. If the batch is this rank's, the worker then
//! merges the accumulators of helpers and applies the batch. Otherwise it sends the accumulators to the owner.

use std::collections::VecDeque;
use std::sync::Mutex;

use graphmill_raw::{failpoint, lock};
use graphmill_storage::{Job, JobError, Step, Worker};

use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::apply_batch::BatchApply;
use crate::exec::column::kernel::pass::Pass;
use crate::exec::stream::bins::{AccumulatorSet, Bins, fold};
use crate::exec::stream::help::Offers;
use crate::exec::stream::peers::Peers;
use crate::exec::stream::service::{Arrived, ChunkService};
use crate::frontier::active_set::ActiveSet;
use crate::program::current_call::CurrentCall;
use crate::program::edge::{ApplyTo, EdgeProgram};
use crate::value::{Accumulator, Reduce};

/// A batch that workers gather.
struct GatheredBatch<A> {
    batch: usize,
    /// Workers at it.
    workers: usize,
    /// The accumulators of workers that are done with it.
    merged: Option<AccumulatorSet<A>>,
    /// The ranks that help with it.
    helpers: Vec<Awaited>,
    /// The rank that it is of, if that is another one.
    owner: Option<usize>,
}

/// The batch of one worker.
struct Current<A> {
    batch: usize,
    gathered: AccumulatorSet<A>,
    /// The batch has no chunks left, and lacks the accumulators of the helpers.
    is_drained: bool,
    awaited: Vec<Awaited>,
}

impl<A> Current<A> {
    fn new(batch: usize, gathered: AccumulatorSet<A>) -> Self {
        Current {
            batch,
            gathered,
            is_drained: false,
            awaited: Vec::new(),
        }
    }
}

/// A helper whose accumulators are to be merged.
struct Awaited {
    rank: usize,
    /// There is memory for them.
    is_asked: bool,
}

/// A gather phase as a job.
pub(crate) struct GatherPhase<'p, P: EdgeProgram> {
    pass: Pass<'p, P>,
    service: &'p ChunkService<'p>,
    bins: &'p Bins<P::Accumulator>,
    waiting: Mutex<VecDeque<usize>>,
    open: Mutex<Vec<GatheredBatch<P::Accumulator>>>,
    /// Accumulators for batches that have none in memory.
    idle: Mutex<Vec<AccumulatorSet<P::Accumulator>>>,
    currents: Vec<Mutex<Option<Current<P::Accumulator>>>>,
    /// The help that this rank gives once its own batches are done.
    offers: Mutex<Offers>,
    sums: Vec<Mutex<P::Sum>>,
    activated: &'p ActiveSet,
}

impl<'p, P: EdgeProgram> GatherPhase<'p, P> {
    /// Returns the phase; `idle` are accumulators at `IDENTITY`, one set for each worker or none.
    pub(crate) fn new(
        pass: Pass<'p, P>,
        service: &'p ChunkService<'p>,
        bins: &'p Bins<P::Accumulator>,
        idle: Vec<AccumulatorSet<P::Accumulator>>,
        activated: &'p ActiveSet,
    ) -> Self {
        let context = pass.context;
        let workers = context.workers.count();
        let batches = context.batches.len();
        GatherPhase {
            pass,
            service,
            bins,
            waiting: Mutex::new(context.ranks.own().collect()),
            open: Mutex::default(),
            idle: Mutex::new(idle),
            currents: (0..workers).map(|_| Mutex::new(None)).collect(),
            offers: Mutex::new(Offers::new(service)),
            sums: (0..batches).map(|_| Mutex::new(P::Sum::ZERO)).collect(),
            activated,
        }
    }

    /// Returns the idle accumulators, and puts the sums of this rank's batches in `output`.
    ///
    /// The phase is over, so accumulators for owners are sent.
    pub(crate) fn into_idle(self, output: &mut Vec<P::Sum>) -> Vec<AccumulatorSet<P::Accumulator>> {
        let own = self.pass.context.ranks.own();
        *output = own.map(|batch| *lock(&self.sums[batch])).collect();
        self.reclaim();
        self.idle.into_inner().unwrap_or_default()
    }

    /// Takes back the accumulators that were sent.
    fn reclaim(&self) {
        for buffer in self
            .service
            .with_peers(Peers::take_returned)
            .into_iter()
            .flatten()
        {
            let mut accumulators = Accumulators::from_buffer(buffer);
            accumulators.fill(P::IDENTITY);
            lock(&self.idle).push(AccumulatorSet::passing(accumulators));
        }
    }

    /// Takes the next batch of this rank; `None` if there is none, or no accumulators for it.
    fn begin(&self) -> Option<Current<P::Accumulator>> {
        let mut open = lock(&self.open);
        let mut waiting = lock(&self.waiting);
        let batch = *waiting.front()?;
        let resident = self.bins.resident(batch).take();
        let gathered = resident.or_else(|| self.idle_set())?;
        waiting.pop_front();
        Some(self.open(&mut open, batch, None, gathered))
    }

    fn open(
        &self,
        open: &mut Vec<GatheredBatch<P::Accumulator>>,
        batch: usize,
        owner: Option<usize>,
        gathered: AccumulatorSet<P::Accumulator>,
    ) -> Current<P::Accumulator> {
        open.push(GatheredBatch {
            batch,
            workers: 1,
            merged: None,
            helpers: Vec::new(),
            owner,
        });
        self.service.open(batch);
        Current::new(batch, gathered)
    }

    /// Joins the batch of another worker that has chunks left.
    fn join(&self) -> Option<Current<P::Accumulator>> {
        let mut open = lock(&self.open);
        let is_open = |of: &&mut GatheredBatch<_>| !self.service.is_drained(of.batch);
        let of = open.iter_mut().find(is_open)?;
        let gathered = self.idle_set()?;
        of.workers += 1;
        Some(Current::new(of.batch, gathered))
    }

    /// Continues the help to other ranks; returns a batch of another rank to work on.
    fn help(&self) -> Result<Option<Current<P::Accumulator>>, EngineError> {
        let mut offers = lock(&self.offers);
        let mut open = lock(&self.open);
        if !open.is_empty() || !lock(&self.waiting).is_empty() {
            return Ok(None);
        }
        let Some(help) = offers.next(self.service)? else {
            return Ok(None);
        };
        // What was sent before is delivered.
        self.reclaim();
        let gathered = self.idle_set().ok_or(EngineError::Broken)?;
        Ok(Some(self.open(
            &mut open,
            help.batch,
            Some(help.owner),
            gathered,
        )))
    }

    /// Answers a rank that offers help; returns false if there is none.
    fn answer_offer(&self) -> Result<bool, EngineError> {
        let context = self.pass.context;
        if context.ranks.alone() {
            return Ok(false);
        }
        let Some(rank) = self.service.with_peers(Peers::take_offer).flatten() else {
            return Ok(false);
        };
        let mut open = lock(&self.open);
        let own = open.iter_mut().filter(|of| of.owner.is_none());
        let most = own.max_by_key(|of| self.service.bytes_left(of.batch));
        let set = Accumulators::<P::Accumulator>::bytes(context.shape.entries);
        let accepted = most.filter(|of| {
            let left = self.service.bytes_left(of.batch);
            let workers = 1 + of.helpers.len();
            context.options.steal.accepts(set, left, workers)
        });
        let batch = accepted.map(|of| {
            of.helpers.push(Awaited {
                rank,
                is_asked: false,
            });
            (of.batch, 0)
        });
        self.service
            .with_peers(|peers| peers.answer_offer(rank, batch))
            .transpose()?;
        Ok(true)
    }

    fn idle_set(&self) -> Option<AccumulatorSet<P::Accumulator>> {
        lock(&self.idle).pop()
    }

    /// Folds an update chunk.
    fn process(
        &self,
        arrived: &Arrived,
        current: &mut Current<P::Accumulator>,
    ) -> Result<(), EngineError> {
        let updates = self.service.updates::<P::Accumulator>(arrived)?;
        let start = self.pass.context.batches.start(current.batch);
        current.gathered.is_touched = true;
        let accumulators = &mut current.gathered.accumulators;
        fold(self.pass.program, start, updates, accumulators);
        Ok(())
    }

    /// Ends a worker's part of a batch; returns the batch if the worker is the last one at it.
    fn leave(
        &self,
        current: Current<P::Accumulator>,
    ) -> Result<Option<Current<P::Accumulator>>, EngineError> {
        let Current {
            batch,
            mut gathered,
            ..
        } = current;
        loop {
            let mut open = lock(&self.open);
            let position = open.iter().position(|of| of.batch == batch);
            let position = position.ok_or(EngineError::Broken)?;
            let of = &mut open[position];
            match of.merged.take() {
                // Two sets are merged without the lock.
                Some(other) => {
                    drop(open);
                    gathered = self.merge(batch, gathered, other);
                }
                None if of.workers > 1 => {
                    of.workers -= 1;
                    of.merged = Some(gathered);
                    return Ok(None);
                }
                None => {
                    self.service.close(batch);
                    let of = &mut open[position];
                    if let Some(owner) = of.owner {
                        open.swap_remove(position);
                        let bytes = gathered.accumulators.as_bytes().len();
                        let buffer = gathered.accumulators.into_buffer();
                        self.service
                            .with_peers(|peers| peers.send_part(owner, buffer, bytes));
                        return Ok(None);
                    }
                    return Ok(Some(Current {
                        batch,
                        gathered,
                        is_drained: true,
                        awaited: std::mem::take(&mut of.helpers),
                    }));
                }
            }
        }
    }

    /// Merges the accumulators of helpers that have arrived, and asks the next helper for its own.
    ///
    /// Returns true if all are merged.
    fn merge_helpers(&self, current: &mut Current<P::Accumulator>) -> Result<bool, EngineError> {
        loop {
            let Some(helper) = current.awaited.last_mut() else {
                return Ok(true);
            };
            let rank = helper.rank;
            if !helper.is_asked {
                let Some(set) = self.idle_set() else {
                    return Ok(false);
                };
                let bytes = set.accumulators.as_bytes().len();
                helper.is_asked = true;
                let buffer = set.accumulators.into_buffer();
                self.service
                    .with_peers(|peers| peers.receive_part(rank, buffer, bytes));
            }
            let Some(buffer) = self
                .service
                .with_peers(|peers| peers.take_received(rank))
                .flatten()
            else {
                return Ok(false);
            };
            current.awaited.pop();
            let came = AccumulatorSet {
                is_touched: true,
                ..AccumulatorSet::passing(Accumulators::from_buffer(buffer))
            };
            failpoint!(HelpLost: came = {
                let mut came = came;
                came.accumulators.fill(P::IDENTITY);
                came
            });
            failpoint!(HelpMergedTwice => {
                let pairs = current.gathered.accumulators.iter_mut().zip(&*came.accumulators);
                pairs.for_each(|(total, later)| self.pass.program.merge(total, *later));
            });
            let later = self.merge_into(current.batch, &mut current.gathered, came);
            self.put_back(current.batch, later);
        }
    }

    /// Applies a batch whose accumulators are complete.
    fn apply(&self, current: Current<P::Accumulator>, worker: usize) -> Result<(), EngineError> {
        let Current {
            batch,
            mut gathered,
            ..
        } = current;
        if gathered.is_touched || P::APPLY_TO == ApplyTo::All {
            let of_batch = BatchApply {
                context: self.pass.context,
                program: self.pass.program,
                needs: self.pass.apply,
                activated: self.activated,
            };
            let sum = of_batch.apply(batch, &mut gathered.accumulators, None, worker)?;
            *lock(&self.sums[batch]) = sum;
        }
        self.put_back(batch, gathered);
        lock(&self.open).retain(|of| of.batch != batch);
        Ok(())
    }

    /// Merges two sets of one batch into the one that stays in memory.
    fn merge(
        &self,
        batch: usize,
        one: AccumulatorSet<P::Accumulator>,
        other: AccumulatorSet<P::Accumulator>,
    ) -> AccumulatorSet<P::Accumulator> {
        let (mut total, later) = match other.is_resident {
            true => (other, one),
            false => (one, other),
        };
        let later = self.merge_into(batch, &mut total, later);
        self.put_back(batch, later);
        total
    }

    /// Merges a set of a batch into another one; returns the first, at `IDENTITY`.
    fn merge_into(
        &self,
        batch: usize,
        total: &mut AccumulatorSet<P::Accumulator>,
        mut later: AccumulatorSet<P::Accumulator>,
    ) -> AccumulatorSet<P::Accumulator> {
        total.is_touched |= later.is_touched;
        let current = CurrentCall::new();
        let start = self.pass.context.batches.start(batch);
        let pairs = total.accumulators.iter_mut().zip(&mut *later.accumulators);
        for (i, (total, later)) in pairs.enumerate() {
            if !later.bit_eq(&P::IDENTITY) {
                current.at(start + i as u64);
                self.pass.program.merge(total, *later);
                *later = P::IDENTITY;
            }
        }
        later
    }

    /// Keeps accumulators, which are at `IDENTITY`, for later batches and passes.
    fn put_back(&self, batch: usize, mut set: AccumulatorSet<P::Accumulator>) {
        set.is_touched = false;
        match set.is_resident {
            true => *self.bins.resident(batch) = Some(set),
            false => lock(&self.idle).push(set),
        }
    }

    /// True if this rank has no batch left, and no other rank needs its help.
    fn is_over(&self) -> bool {
        let offers = lock(&self.offers);
        let is_done = lock(&self.open).is_empty() && lock(&self.waiting).is_empty();
        is_done && offers.are_over()
    }

    /// Continues the batch of a worker; returns true if the worker did something.
    fn go_on(
        &self,
        current: &mut Option<Current<P::Accumulator>>,
        worker: usize,
    ) -> Result<bool, EngineError> {
        let Some(of_worker) = current else {
            return Ok(false);
        };
        if of_worker.is_drained {
            if !self.merge_helpers(of_worker)? {
                return Ok(false);
            }
            if let Some(done) = current.take() {
                self.apply(done, worker)?;
            }
            return Ok(true);
        }
        if let Some(arrived) = self.service.take(Some(of_worker.batch))? {
            self.process(&arrived, of_worker)?;
            self.service.release(arrived);
            return Ok(true);
        }
        if !self.service.is_drained(of_worker.batch) {
            return Ok(false);
        }
        if let Some(done) = current.take() {
            *current = self.leave(done)?;
        }
        Ok(true)
    }
}

impl<P: EdgeProgram> Job for GatherPhase<'_, P> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.pass.context.ranks.check_stop()?;
        if self.answer_offer()? {
            return Ok(Step::Worked);
        }
        let current = &mut *lock(&self.currents[worker.index]);
        if current.is_none() {
            *current = self.begin().or_else(|| self.join());
        }
        if current.is_none() {
            *current = self.help()?;
            if current.is_none() && self.is_over() {
                return Ok(Step::Finished);
            }
        }
        Ok(match self.go_on(current, worker.index)? {
            true => Step::Worked,
            false => self.service.idle()?,
        })
    }
}
