//! A pass as a job: each thread takes the steps of its roles in turn, lanes first, and none of them waits.
//!
//! A rank is done when its lanes have all messages and its own buckets were sent. It says so to all ranks, and answers resends until all
//! have said so.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use graphmill_fabric::bucket::yields;
use graphmill_fabric::{Channel, FabricError, FabricOperation, protocol_error};
use graphmill_raw::{AlignedBuffer, lock};
use graphmill_storage::{Step, Worker};

use crate::context::{ExecContext, run};
use crate::error::{EngineError, ensure};
use crate::exec::bucket::emit::{CellTasks, Emitter};
use crate::exec::bucket::kernel::{BucketKernel, LaneAccumulators};
use crate::exec::bucket::plane::{BucketPlane, SILENCE};

/// The channel of the words of ranks that are done.
const DONE: Channel = 12;
/// Bytes of such a word.
const WORD_BYTES: usize = size_of::<u32>();
/// Time that an idle thread waits for a datagram.
const WAIT: Duration = Duration::from_micros(200);
/// Time that an idle thread without a lane sleeps.
const SLEEP: Duration = Duration::from_micros(300);
/// Steps after which a busy rank asks whether all are done: a flood keeps none from its end.
const STEPS: u32 = 1024;

/// The end of a superstep, on which all ranks agree.
struct DoneRanks {
    said: bool,
    heard: BTreeSet<usize>,
    in_flight: usize,
}

/// One pass.
pub(crate) struct BucketJob<'p> {
    pub(crate) context: &'p ExecContext<'p>,
    pub(crate) plane: &'p BucketPlane,
    pub(crate) kernel: &'p dyn BucketKernel,
    pub(crate) tasks: CellTasks<'p>,
    pub(crate) emitters: Vec<Mutex<Emitter>>,
    pub(crate) lanes: &'p [Mutex<LaneAccumulators>],
    superstep: u32,
    done: Mutex<DoneRanks>,
    is_over: AtomicBool,
    /// Steps of the first thread.
    steps: AtomicU32,
    /// Of each thread, its idle steps in a row.
    idle: Vec<AtomicU32>,
}

impl<'p> BucketJob<'p> {
    pub(crate) fn new(
        superstep: u32,
        plane: &'p BucketPlane,
        kernel: &'p dyn BucketKernel,
        tasks: CellTasks<'p>,
        emitters: Vec<Mutex<Emitter>>,
        lanes: &'p [Mutex<LaneAccumulators>],
    ) -> Self {
        BucketJob {
            context: tasks.context,
            plane,
            kernel,
            emitters,
            lanes,
            superstep,
            done: Mutex::new(DoneRanks {
                said: false,
                heard: BTreeSet::new(),
                in_flight: 0,
            }),
            is_over: AtomicBool::new(false),
            steps: AtomicU32::new(0),
            idle: (0..tasks.context.workers.count())
                .map(|_| AtomicU32::new(0))
                .collect(),
            tasks,
        }
    }

    /// Runs the pass until all ranks are done.
    pub(crate) fn run(&self) -> Result<(), EngineError> {
        let exchange = &self.plane.exchange;
        exchange.begin(self.superstep, self.kernel.width() as u32);
        // From here on every rank acknowledges, however long it signalled.
        self.context.ranks.total([0])?;
        self.await_words()?;
        let begun = self.context.clock.now();
        run(self.context, &|worker: &mut Worker| {
            Ok(self.step(worker.index)?)
        })?;
        exchange.end();
        let took = self.context.clock.now().saturating_sub(begun);
        let nanos = &exchange.state.counters.exchange_nanos;
        nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn step(&self, thread: usize) -> Result<Step, EngineError> {
        self.context.ranks.check_stop()?;
        if self.is_over.load(Ordering::Acquire) {
            return Ok(Step::Finished);
        }
        let (exchange, roles) = (&self.plane.exchange, self.plane.roles);
        let threads = self.context.workers.count();
        let [workers, senders, lanes] = [0, 1, 2].map(|role| roles.of(role, thread, threads));
        let link = |source| EngineError::Link { source };
        let mut has_moved = false;
        let mut first_lane = None;
        let begun = self.context.clock.now();
        for lane in lanes {
            first_lane.get_or_insert(lane);
            let accumulators = &mut *lock(&self.lanes[lane]);
            let fold = &mut |messages: &[u8]| self.kernel.fold(accumulators, messages);
            let step = lock(&exchange.lanes[lane]).step(&exchange.state, begun, fold);
            has_moved |= step.map_err(link)?;
        }
        let now = self.end_role(2, begun, has_moved);
        let mut has_sent = false;
        for sender in senders {
            let mut sender = lock(&exchange.senders[sender]);
            has_sent |= sender.step(&exchange.state, now).map_err(link)?;
            if let Some(rank) = sender.silent_rank(&exchange.state, now, SILENCE) {
                let cause = "it acknowledged no bucket for 20 s; if it runs, see --datagram-address and firewalls";
                let cause = cause.into();
                return Err(FabricError::Lost { rank, cause }.into());
            }
        }
        let sent = self.end_role(1, now, has_sent);
        let mut has_emitted = false;
        let is_idle = self.idle[thread].load(Ordering::Relaxed) > 0;
        for worker in workers {
            let mut outbox = lock(&exchange.workers[worker]);
            let mut emitter = lock(&self.emitters[worker]);
            has_emitted |= self.tasks.step(&mut emitter, &mut outbox, is_idle)?;
        }
        self.end_role(0, sent, has_emitted);
        has_moved |= has_sent | has_emitted;
        let is_due = thread == 0
            && (!has_moved || self.steps.fetch_add(1, Ordering::Relaxed) % STEPS == STEPS - 1);
        if is_due {
            self.agree()?;
        }
        if has_moved {
            self.idle[thread].store(0, Ordering::Relaxed);
            return Ok(Step::Worked);
        }
        // Neither datagrams nor buckets of other threads wake a thread, so an idle one looks again soon.
        let idle = self.idle[thread].fetch_add(1, Ordering::Relaxed);
        match first_lane {
            Some(lane) => lock(&exchange.lanes[lane]).wait(idle, WAIT),
            None if yields(idle) => {}
            None => self.context.clock.wait(SLEEP),
        }
        Ok(Step::Worked)
    }

    /// Counts the time of a role since `begun` if it did something; returns its end.
    fn end_role(&self, role: usize, begun: Duration, has_moved: bool) -> Duration {
        if !has_moved {
            return begun;
        }
        let now = self.context.clock.now();
        let nanos = now.saturating_sub(begun).as_nanos() as u64;
        let counters = &self.plane.exchange.state.counters;
        counters.role_nanos[role].fetch_add(nanos, Ordering::Relaxed);
        now
    }

    /// Submits a receive of the word of each other rank.
    fn await_words(&self) -> Result<(), EngineError> {
        let ranks = &self.context.ranks;
        let Some(fabric) = ranks.fabric.as_deref() else {
            return Ok(());
        };
        let done = &mut *lock(&self.done);
        for from in (0..ranks.count()).filter(|rank| *rank != ranks.rank()) {
            let buffer = AlignedBuffer::zeroed(WORD_BYTES)?;
            let receive = FabricOperation::Receive {
                from,
                channel: DONE,
                buffer,
            };
            fabric.submit(receive, from as u64);
            done.in_flight += 1;
        }
        Ok(())
    }

    /// Says that this rank is done once it is, and hears which others are.
    fn agree(&self) -> Result<(), EngineError> {
        let ranks = &self.context.ranks;
        let done = &mut *lock(&self.done);
        let own = ranks.rank();
        let others = ranks.count() - 1;
        if !done.said && self.plane.exchange.is_complete() {
            done.said = true;
            for to in (0..ranks.count()).filter(|rank| *rank != own) {
                let mut buffer = AlignedBuffer::zeroed(WORD_BYTES)?;
                buffer[..WORD_BYTES].copy_from_slice(&self.superstep.to_le_bytes());
                let send = FabricOperation::Send {
                    to,
                    channel: DONE,
                    buffer,
                    range: 0..WORD_BYTES,
                };
                if let Some(fabric) = ranks.fabric.as_deref() {
                    fabric.submit(send, (ranks.count() + to) as u64);
                    done.in_flight += 1;
                }
            }
        }
        while let Some(completion) = ranks.fabric.as_deref().and_then(|fabric| fabric.poll()) {
            done.in_flight -= 1;
            completion.result?;
            let from = completion.token as usize;
            if from < ranks.count() {
                let word = completion.buffer.ok_or_else(protocol_error)?;
                ensure(
                    word[..WORD_BYTES] == self.superstep.to_le_bytes(),
                    protocol_error,
                )?;
                done.heard.insert(from);
            }
        }
        if done.said && done.heard.len() == others && done.in_flight == 0 {
            self.is_over.store(true, Ordering::Release);
        }
        Ok(())
    }
}
