//! The scatter phase: chunks of arcs and the messages of their sources, to bins of updates (Chaos, section 5.1).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use graphmill_graph::ChunkRun;
use graphmill_raw::lock;
use graphmill_storage::{Buffer, Job, JobError, Step, Worker};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::stream::bins::{Bin, Bins, updates_of};
use crate::exec::stream::help::Offers;
use crate::exec::stream::kernel::{ArcRun, StreamKernel};
use crate::exec::stream::peers::Peers;
use crate::exec::stream::protocol::AcceptedHelp;
use crate::exec::stream::service::{Arrived, ChunkService};
use crate::frontier::active_set::ActiveSet;
use crate::messages::batch::SignalledMessages;

/// The messages of one batch whose chunks are processed.
struct SignalledBatch {
    batch: usize,
    messages: SignalledMessages,
    /// It is another rank's.
    is_foreign: bool,
    /// Helpers that were accepted.
    helpers: AtomicUsize,
}

impl SignalledBatch {
    fn new(batch: usize, messages: SignalledMessages, is_foreign: bool) -> Arc<Self> {
        Arc::new(SignalledBatch {
            batch,
            messages,
            is_foreign,
            helpers: AtomicUsize::new(0),
        })
    }
}

/// A batch that was signalled; `None` if it has no messages.
type OpenBatch = Option<Arc<SignalledBatch>>;

/// A scatter phase as a job.
pub(crate) struct ScatterPhase<'p> {
    context: &'p ExecContext<'p>,
    kernel: &'p dyn StreamKernel,
    service: &'p ChunkService<'p>,
    bins: &'p Bins,
    /// The batches of this rank with active vertices that have not signalled.
    waiting: Mutex<VecDeque<usize>>,
    open: Mutex<Vec<Arc<SignalledBatch>>>,
    /// Buffers for the messages of more batches.
    free: Mutex<Vec<Buffer>>,
    /// Workers that signal a batch or process a chunk.
    busy: AtomicUsize,
    /// The help that this rank gives once its own batches are done.
    help: Mutex<ScatterHelp>,
    /// The next bin to empty at the end of the phase.
    next_bin: AtomicUsize,
    counts: Mutex<ScatterCounts>,
}

/// The help that a rank gives to others.
struct ScatterHelp {
    offers: Offers,
    /// A batch whose messages are on their way.
    incoming: Option<AcceptedHelp>,
}

/// What a scatter phase did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScatterCounts {
    pub(crate) messages: u64,
    pub(crate) edges: u64,
    pub(crate) chunks: u64,
}

impl<'p> ScatterPhase<'p> {
    /// Returns the phase; `free` are buffers for messages of as many batches.
    pub(crate) fn new(
        kernel: &'p dyn StreamKernel,
        service: &'p ChunkService<'p>,
        bins: &'p Bins,
        active: &ActiveSet,
        free: Vec<Buffer>,
    ) -> Self {
        ScatterPhase {
            context: service.context,
            kernel,
            waiting: Mutex::new(active.batches().collect()),
            service,
            bins,
            open: Mutex::default(),
            free: Mutex::new(free),
            busy: AtomicUsize::new(0),
            help: Mutex::new(ScatterHelp {
                offers: Offers::new(service),
                incoming: None,
            }),
            next_bin: AtomicUsize::new(0),
            counts: Mutex::default(),
        }
    }

    /// Returns the buffers for messages, and what the phase did.
    pub(crate) fn into_parts(self) -> (Vec<Buffer>, ScatterCounts) {
        let mut free = self.free.into_inner().unwrap_or_default();
        free.extend(self.service.take_returned());
        let open = self.open.into_inner().unwrap_or_default();
        let open = open.into_iter().filter_map(Arc::into_inner);
        free.extend(open.map(|open| open.messages.buffer));
        (free, self.counts.into_inner().unwrap_or_default())
    }

    /// Signals the next batch of this rank; returns false if there is none, or no buffer for it.
    fn open_next(&self, worker: usize) -> Result<bool, EngineError> {
        self.close_done();
        // One buffer stays for a copy that goes to a helper.
        let others = usize::from(!self.context.ranks.alone());
        let has_buffer = lock(&self.free).len() > others;
        Ok(has_buffer && self.open_waiting(worker, VecDeque::pop_front)?.is_some())
    }

    /// Signals a batch that waits and opens it.
    ///
    /// Returns `None` if there is none, or no buffer for it.
    fn open_waiting(
        &self,
        worker: usize,
        take: impl FnOnce(&mut VecDeque<usize>) -> Option<usize>,
    ) -> Result<Option<OpenBatch>, EngineError> {
        let Some(buffer) = lock(&self.free).pop() else {
            return Ok(None);
        };
        let mut waiting = lock(&self.waiting);
        let Some(batch) = take(&mut waiting) else {
            lock(&self.free).push(buffer);
            return Ok(None);
        };
        // Who finds no batch waiting from now on finds the worker busy, or the batch open.
        self.busy.fetch_add(1, Ordering::Relaxed);
        drop(waiting);
        let opened = self.signal(batch, buffer, worker);
        self.busy.fetch_sub(1, Ordering::Release);
        opened.map(Some)
    }

    /// Signals a batch and opens it; returns `None` if it has no messages.
    fn signal(
        &self,
        batch: usize,
        mut buffer: Buffer,
        worker: usize,
    ) -> Result<OpenBatch, EngineError> {
        let span = self.context.batches.span(batch) as usize;
        let count = self.kernel.signal(batch, &mut buffer, worker)?;
        lock(&self.counts).messages += count;
        if count == 0 {
            lock(&self.free).push(buffer);
            return Ok(None);
        }
        let messages = SignalledMessages {
            buffer,
            span,
            count,
        };
        let open = SignalledBatch::new(batch, messages, false);
        lock(&self.open).push(Arc::clone(&open));
        self.service.open(batch);
        Ok(Some(open))
    }

    /// Frees the messages of batches whose chunks are processed.
    fn close_done(&self) {
        let mut open = lock(&self.open);
        let done = open.extract_if(.., |of| {
            Arc::strong_count(of) == 1 && self.service.is_done(of.batch)
        });
        for of in done.filter_map(Arc::into_inner) {
            self.service.close(of.batch);
            lock(&self.free).push(of.messages.buffer);
        }
    }

    /// Bins the updates of all arcs of a chunk.
    fn process(&self, arrived: &Arrived, worker: usize) -> Result<(), EngineError> {
        let found = lock(&self.open)
            .iter()
            .find(|of| of.batch == arrived.batch)
            .cloned();
        let open = found.ok_or(EngineError::Broken)?;
        let (view, data) = self.service.arcs(arrived)?;
        let mut runs: VecDeque<ChunkRun> = view.runs().collect();
        // Workers begin with different runs, so that they seldom want the same bin.
        let count = runs.len().max(1);
        runs.rotate_left(worker * count / self.context.workers.count() % count);
        let (mut edges, mut refused) = (0, 0);
        while let Some(run) = runs.pop_front() {
            let bin = match self.bins.try_bin(run.destination_batch) {
                Some(bin) => bin,
                None if refused < runs.len() => {
                    refused += 1;
                    runs.push_back(run);
                    continue;
                }
                // All other bins are with other workers too.
                None => self.bins.bin(run.destination_batch),
            };
            refused = 0;
            let input = ArcRun {
                view: &view,
                run,
                source_batch: arrived.batch,
                messages: &open.messages,
                data,
            };
            edges += self.bin_run(bin, input)?;
        }
        let mut counts = lock(&self.counts);
        counts.edges += edges;
        counts.chunks += 1;
        Ok(())
    }

    /// Bins the updates of one run, and empties the bin whenever it is full.
    fn bin_run(
        &self,
        mut bin: impl std::ops::DerefMut<Target = Bin>,
        mut input: ArcRun<'_>,
    ) -> Result<u64, EngineError> {
        let capacity = self.bins.capacity;
        let (mut left, mut edges) = (input.run.count, 0);
        while left > 0 {
            let before = bin.count;
            input.run.count = left.min(capacity - before);
            self.kernel.append(&input, &mut bin, capacity);
            edges += (bin.count - before) as u64;
            if bin.count == capacity {
                self.empty(input.run.destination_batch, &mut bin)?;
            }
            left -= input.run.count;
            input.run.first += input.run.count;
        }
        Ok(edges)
    }

    /// Folds a bin, or writes it if the accumulators of its batch are not in memory.
    fn empty(&self, batch: usize, bin: &mut Bin) -> Result<(), EngineError> {
        let (capacity, width) = (self.bins.capacity, self.bins.width);
        if bin.count == 0 {
            return Ok(());
        }
        match &mut *self.bins.resident(batch) {
            Some(resident) => {
                let updates = updates_of(bin, capacity, width);
                self.kernel.fold(batch, updates, resident)?;
            }
            None => {
                let sizes = (bin.count, capacity, width);
                self.service.put(batch, &mut bin.buffer, sizes)?;
            }
        }
        bin.count = 0;
        Ok(())
    }

    /// Answers a rank that offers help; returns false if there is none.
    fn answer_offer(&self, worker: usize) -> Result<bool, EngineError> {
        lock(&self.free).extend(self.service.take_returned());
        // A helper gets a copy of the messages.
        let Some(mut copy) = lock(&self.free).pop() else {
            return Ok(false);
        };
        let Some(rank) = self.service.with_peers(Peers::take_offer).flatten() else {
            lock(&self.free).push(copy);
            return Ok(false);
        };
        let accepted = match self.batch_in_need() {
            Some(open) => Some(open),
            None => {
                let in_need = |waiting: &mut VecDeque<usize>| {
                    let last = waiting.iter().rposition(|batch| self.accepts(*batch, 1))?;
                    waiting.remove(last)
                };
                self.open_waiting(worker, in_need)?.flatten()
            }
        };
        let Some(open) = accepted else {
            lock(&self.free).push(copy);
            self.service
                .with_peers(|peers| peers.answer_offer(rank, None))
                .transpose()?;
            return Ok(true);
        };
        open.helpers.fetch_add(1, Ordering::Relaxed);
        let bytes = self.message_bytes(open.batch);
        copy[..bytes].copy_from_slice(&open.messages.buffer[..bytes]);
        let answer = Some((open.batch, open.messages.count));
        let answered = self.service.with_peers(|peers| {
            peers.answer_offer(rank, answer)?;
            peers.send_part(rank, copy, bytes);
            Ok::<_, EngineError>(())
        });
        answered.transpose()?;
        Ok(true)
    }

    /// An open batch of this rank that one more helper would end sooner: the one with most bytes left.
    fn batch_in_need(&self) -> Option<Arc<SignalledBatch>> {
        let open = lock(&self.open);
        let own = open.iter().filter(|of| !of.is_foreign);
        let most = own.max_by_key(|of| self.service.bytes_left(of.batch))?;
        let workers = 1 + most.helpers.load(Ordering::Relaxed);
        (self.accepts(most.batch, workers)).then(|| Arc::clone(most))
    }

    fn accepts(&self, batch: usize, workers: usize) -> bool {
        let left = self.service.bytes_left(batch);
        let messages = self.message_bytes(batch) as u64;
        (self.context.options.steal).accepts(messages, left, workers)
    }

    fn message_bytes(&self, batch: usize) -> usize {
        let span = self.context.batches.span(batch) as usize;
        self.kernel.message_bytes(span)
    }

    /// Continues the help to other ranks; returns true if there is no more to give.
    fn help(&self) -> Result<bool, EngineError> {
        let help = &mut *lock(&self.help);
        if let Some(of) = help.incoming {
            let Some(buffer) = self.service.take_received((of.owner, of.batch)) else {
                return Ok(false);
            };
            help.incoming = None;
            let messages = SignalledMessages {
                buffer,
                span: self.context.batches.span(of.batch) as usize,
                count: of.count,
            };
            let open = SignalledBatch::new(of.batch, messages, true);
            let mut all = lock(&self.open);
            all.push(open);
            // Who finds the batch open finds its requests too.
            self.service.open(of.batch);
        }
        if !lock(&self.open).is_empty() {
            return Ok(false);
        }
        // Copies for helpers of this rank may have all buffers.
        let Some(buffer) = lock(&self.free).pop() else {
            return Ok(false);
        };
        match help.offers.next(self.service)? {
            Some(accepted) => {
                let bytes = self.message_bytes(accepted.batch);
                let of = (accepted.owner, accepted.batch);
                self.service
                    .with_peers(|peers| peers.receive_part(of, buffer, bytes));
                help.incoming = Some(accepted);
            }
            None => lock(&self.free).push(buffer),
        }
        Ok(help.offers.are_over())
    }

    /// True if no worker of this rank adds to a bin any more.
    fn is_scattered(&self) -> Result<bool, EngineError> {
        let is_idle = lock(&self.waiting).is_empty() && self.busy.load(Ordering::Acquire) == 0;
        self.close_done();
        let own = lock(&self.open).iter().any(|of| !of.is_foreign);
        Ok(is_idle && !own && self.help()?)
    }
}

impl Job for ScatterPhase<'_> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.context.ranks.check_stop()?;
        if !self.context.ranks.alone() && self.answer_offer(worker.index)? {
            return Ok(Step::Worked);
        }
        if let Some(arrived) = self.service.take(None)? {
            self.process(&arrived, worker.index)?;
            self.service.release(arrived);
            return Ok(Step::Worked);
        }
        if self.open_next(worker.index)? {
            return Ok(Step::Worked);
        }
        if !self.is_scattered()? {
            return Ok(self.service.idle()?);
        }
        let batch = self.next_bin.fetch_add(1, Ordering::Relaxed);
        if batch >= self.bins.len() {
            return Ok(Step::Finished);
        }
        let mut bin = self.bins.bin(batch);
        self.empty(batch, &mut bin)?;
        Ok(Step::Worked)
    }
}
