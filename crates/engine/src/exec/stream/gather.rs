//! The gather phase: update chunks to accumulators, and accumulators to rows (Chaos, sections 5.2 and 5.3).
//!
//! A worker takes a batch and streams the batch's update chunks into accumulators. A worker without a batch joins one that still has
//! chunks, with accumulators of its own. The last worker of a batch merges them. If the batch is this rank's, the worker then
//! merges the accumulators of helpers and applies the batch. Otherwise it sends the accumulators to the owner.

use std::collections::VecDeque;
use std::sync::Mutex;

use graphmill_raw::{AlignedBuffer, failpoint, lock};
use graphmill_storage::{Job, JobError, Step, Worker};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::stream::bins::{AccumulatorSet, Bins};
use crate::exec::stream::help::Offers;
use crate::exec::stream::kernel::StreamKernel;
use crate::exec::stream::peers::Peers;
use crate::exec::stream::service::{Arrived, ChunkService};

/// A batch that workers gather.
struct GatheredBatch {
    batch: usize,
    /// Workers at it.
    workers: usize,
    /// The accumulators of workers that are done with it.
    merged: Option<AccumulatorSet>,
    /// The ranks that help with it.
    helpers: Vec<usize>,
    /// The rank that it is of, if that is another one.
    owner: Option<usize>,
}

/// The batch of one worker.
struct Current {
    batch: usize,
    gathered: AccumulatorSet,
    /// The batch has no chunks left, and lacks the accumulators of the helpers.
    is_drained: bool,
    /// The helpers whose accumulators are to be merged.
    awaited: Vec<usize>,
    /// There is memory for the accumulators of the last of them.
    is_asked: bool,
}

impl Current {
    fn new(batch: usize, gathered: AccumulatorSet) -> Self {
        Current {
            batch,
            gathered,
            is_drained: false,
            awaited: Vec::new(),
            is_asked: false,
        }
    }
}

/// A gather phase as a job.
pub(crate) struct GatherPhase<'p> {
    context: &'p ExecContext<'p>,
    kernel: &'p dyn StreamKernel,
    service: &'p ChunkService<'p>,
    bins: &'p Bins,
    /// The batches of this rank that no worker has begun, and the ranks that help with each.
    waiting: Mutex<VecDeque<(usize, Vec<usize>)>>,
    open: Mutex<Vec<GatheredBatch>>,
    /// Accumulators for batches that have none in memory.
    idle: Mutex<Vec<AccumulatorSet>>,
    currents: Vec<Mutex<Option<Current>>>,
    /// The help that this rank gives once its own batches are done.
    offers: Mutex<Offers>,
}

impl<'p> GatherPhase<'p> {
    /// Returns the phase; `idle` are clear accumulators.
    pub(crate) fn new(
        kernel: &'p dyn StreamKernel,
        service: &'p ChunkService<'p>,
        bins: &'p Bins,
        idle: Vec<AccumulatorSet>,
    ) -> Self {
        let context = service.context;
        let workers = context.workers.count();
        GatherPhase {
            context,
            kernel,
            service,
            bins,
            waiting: Mutex::new(context.ranks.own().map(|of| (of, Vec::new())).collect()),
            open: Mutex::default(),
            idle: Mutex::new(idle),
            currents: (0..workers).map(|_| Mutex::new(None)).collect(),
            offers: Mutex::new(Offers::new(service)),
        }
    }

    /// Returns the idle accumulators. The phase is over, so accumulators for owners are sent.
    pub(crate) fn into_idle(self) -> Vec<AccumulatorSet> {
        self.reclaim();
        self.idle.into_inner().unwrap_or_default()
    }

    /// Takes back the accumulators that were sent.
    fn reclaim(&self) {
        for buffer in self.service.take_returned() {
            let mut set = AccumulatorSet::passing(buffer);
            self.kernel.clear(&mut set);
            lock(&self.idle).push(set);
        }
    }

    /// Takes the next batch of this rank; `None` if there is none, or no accumulators for it.
    fn begin(&self) -> Option<Current> {
        let mut open = lock(&self.open);
        let mut waiting = lock(&self.waiting);
        let (batch, helpers) = waiting.front_mut()?;
        let resident = self.bins.resident(*batch).take();
        let gathered = resident.or_else(|| self.idle_set())?;
        let (batch, helpers) = (*batch, std::mem::take(helpers));
        waiting.pop_front();
        Some(self.open(&mut open, batch, (None, helpers), gathered))
    }

    fn open(
        &self,
        open: &mut Vec<GatheredBatch>,
        batch: usize,
        (owner, helpers): (Option<usize>, Vec<usize>),
        gathered: AccumulatorSet,
    ) -> Current {
        open.push(GatheredBatch {
            batch,
            workers: 1,
            merged: None,
            helpers,
            owner,
        });
        if !gathered.is_resident {
            // With its accumulators in memory a batch has no update chunks at any rank.
            self.service.open(batch);
        }
        Current::new(batch, gathered)
    }

    /// Joins the batch of another worker that has chunks left.
    fn join(&self) -> Option<Current> {
        let mut open = lock(&self.open);
        let is_open = |of: &&mut GatheredBatch| !self.service.is_drained(of.batch);
        let of = open.iter_mut().find(is_open)?;
        let gathered = self.idle_set()?;
        of.workers += 1;
        Some(Current::new(of.batch, gathered))
    }

    /// Continues the help to other ranks; returns a batch of another rank to work on.
    fn help(&self) -> Result<Option<Current>, EngineError> {
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
        let owner = (Some(help.owner), Vec::new());
        Ok(Some(self.open(&mut open, help.batch, owner, gathered)))
    }

    /// Answers a rank that offers help; returns false if there is none.
    fn answer_offer(&self) -> Result<bool, EngineError> {
        let context = self.context;
        if context.ranks.alone() {
            return Ok(false);
        }
        let Some(rank) = self.service.with_peers(Peers::take_offer).flatten() else {
            return Ok(false);
        };
        let mut open = lock(&self.open);
        let mut waiting = lock(&self.waiting);
        let own = open.iter_mut().filter(|of| of.owner.is_none());
        let begun = own.map(|of| (of.batch, &mut of.helpers));
        let all = begun.chain(waiting.iter_mut().map(|of| (of.0, &mut of.1)));
        let set = AlignedBuffer::footprint(context.shape.entries * self.bins.width);
        let left = all.map(|of| (self.service.bytes_left(of.0), of));
        let in_need = left.filter(|(left, (_, helpers))| {
            let workers = 1 + helpers.len();
            context.options.steal.accepts(set, *left, workers)
        });
        let most = in_need.max_by_key(|(left, _)| *left);
        let batch = most.map(|(_, (batch, helpers))| {
            helpers.push(rank);
            (batch, 0)
        });
        self.service
            .with_peers(|peers| peers.answer_offer(rank, batch))
            .transpose()?;
        Ok(true)
    }

    fn idle_set(&self) -> Option<AccumulatorSet> {
        lock(&self.idle).pop()
    }

    /// Folds an update chunk.
    fn process(&self, arrived: &Arrived, current: &mut Current) -> Result<(), EngineError> {
        let updates = self.service.updates(arrived, self.bins.width)?;
        (self.kernel).fold(current.batch, updates, &mut current.gathered)
    }

    /// Ends a worker's part of a batch; returns the batch if the worker is the last one at it.
    fn leave(&self, current: Current) -> Result<Option<Current>, EngineError> {
        let (batch, mut gathered) = (current.batch, current.gathered);
        loop {
            let mut open = lock(&self.open);
            let position = open.iter().position(|of| of.batch == batch);
            let position = position.ok_or(EngineError::Broken)?;
            let of = &mut open[position];
            match of.merged.take() {
                // Two sets are merged without the lock.
                Some(mut other) => {
                    drop(open);
                    if other.is_resident {
                        std::mem::swap(&mut gathered, &mut other);
                    }
                    self.kernel.merge(batch, &mut gathered, &mut other);
                    self.put_back(batch, other);
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
                        let (bytes, buffer) = (gathered.memory.len(), gathered.memory);
                        self.service
                            .with_peers(|peers| peers.send_part(owner, buffer, bytes));
                        return Ok(None);
                    }
                    return Ok(Some(Current {
                        is_drained: true,
                        awaited: std::mem::take(&mut of.helpers),
                        ..Current::new(batch, gathered)
                    }));
                }
            }
        }
    }

    /// Merges the accumulators of helpers that have arrived, and asks the next helper for its own.
    ///
    /// Returns true if all are merged.
    fn merge_helpers(&self, current: &mut Current) -> Result<bool, EngineError> {
        loop {
            let Some(helper) = current.awaited.last() else {
                return Ok(true);
            };
            let of = (*helper, current.batch);
            if !current.is_asked {
                let Some(set) = self.idle_set() else {
                    return Ok(false);
                };
                let (bytes, buffer) = (set.memory.len(), set.memory);
                current.is_asked = true;
                self.service
                    .with_peers(|peers| peers.receive_part(of, buffer, bytes));
            }
            let Some(buffer) = self.service.take_received(of) else {
                return Ok(false);
            };
            current.awaited.pop();
            current.is_asked = false;
            let mut came = AccumulatorSet {
                is_touched: true,
                ..AccumulatorSet::passing(buffer)
            };
            failpoint!(HelpLost => self.kernel.clear(&mut came));
            failpoint!(HelpMergedTwice => {
                let bytes = came.memory.to_vec();
                self.kernel.merge(current.batch, &mut current.gathered, &mut came);
                came.memory.copy_from_slice(&bytes);
            });
            (self.kernel).merge(current.batch, &mut current.gathered, &mut came);
            self.put_back(current.batch, came);
        }
    }

    /// Applies a batch whose accumulators are complete.
    fn apply(&self, current: Current, worker: usize) -> Result<(), EngineError> {
        let (batch, mut gathered) = (current.batch, current.gathered);
        if gathered.is_touched || self.kernel.applies_all() {
            self.kernel.apply(batch, &mut gathered, worker)?;
        }
        self.put_back(batch, gathered);
        lock(&self.open).retain(|of| of.batch != batch);
        Ok(())
    }

    /// Keeps clear accumulators for later batches and passes.
    fn put_back(&self, batch: usize, mut set: AccumulatorSet) {
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
    fn go_on(&self, current: &mut Option<Current>, worker: usize) -> Result<bool, EngineError> {
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

impl Job for GatherPhase<'_> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.context.ranks.check_stop()?;
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
