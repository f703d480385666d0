//! One phase, scatter or gather, as discrete events: one event each time a chunk leaves a device.
//!
//! A device (disk, either direction of an interface, the cores of a machine) serves one chunk at a time, whole, first come
//! first served. A worker is all cores of a machine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use graphmill_engine::chaos_model::RequestTimes;
use graphmill_storage::SplitMix64;

use super::hardware::{CHUNK, ClusterSetup, Design};
use super::plan::{ChunkMap, ChunkPile, PhasePlan, PhaseReport, StateAt};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChunkTransfer {
    worker: usize,
    batch: usize,
    engine: usize,
    bytes: u64,
    is_state: bool,
    /// When the request would have been sent if the disk took no time.
    asked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PhaseEvent {
    /// A disk has read a chunk.
    Served(ChunkTransfer),
    /// An interface has sent it.
    Sent(ChunkTransfer),
    /// The worker has it.
    Arrived(ChunkTransfer),
    /// An interface has sent a chunk to write.
    Put {
        engine: usize,
        batch: usize,
        bytes: u64,
    },
    /// The cores have caught up, and the worker may ask for a chunk more.
    Ready { worker: usize },
    /// The state of a batch has come.
    Loaded { worker: usize, batch: usize },
    /// A worker has processed all its chunks of a batch.
    Ended { worker: usize, batch: usize },
    /// A batch is closed, or a helper has returned its accumulators.
    Released { worker: usize, batch: usize },
}

/// A worker's part of a batch.
#[derive(Debug)]
struct Task {
    batch: usize,
    is_owner: bool,
    begun: u64,
    loaded: u64,
    state_left: u64,
    state_pending: u64,
    /// Engines that may have chunks.
    engines: Vec<usize>,
    pending: u64,
    is_ended: bool,
}

#[derive(Debug, Default)]
struct MachineState {
    own: VecDeque<usize>,
    own_open: usize,
    tasks: Vec<Task>,
    in_flight: usize,
    cores_free: u64,
    output: f64,
    own_ended: u64,
    /// Time in which rows are written.
    applying: u64,
}

#[derive(Debug, Default)]
struct BatchState {
    workers: Vec<usize>,
    ended: usize,
}

/// The simulation of a phase.
pub(super) struct PhaseRun<'a> {
    setup: &'a ClusterSetup,
    plan: PhasePlan<'a>,
    input: ChunkMap,
    window: usize,
    times: &'a mut RequestTimes,
    random: &'a mut SplitMix64,
    now: u64,
    number: u64,
    events: BinaryHeap<Reverse<(u64, u64, PhaseEvent)>>,
    workers: Vec<MachineState>,
    batches: Vec<BatchState>,
    disk: Vec<u64>,
    up: Vec<u64>,
    down: Vec<u64>,
    directory: u64,
    last_write: u64,
    report: PhaseReport,
}

fn nanos(bytes: u64, rate: f64) -> u64 {
    (bytes as f64 / rate * 1e9) as u64
}

/// Uses a device from `at` on; returns when it is done.
fn reserve(free: &mut u64, at: u64, takes: u64) -> u64 {
    *free = at.max(*free) + takes;
    *free
}

impl<'a> PhaseRun<'a> {
    /// Runs a phase over `input`, which it consumes.
    pub(super) fn run(
        setup: &'a ClusterSetup,
        plan: PhasePlan<'a>,
        input: ChunkMap,
        times: &'a mut RequestTimes,
        random: &'a mut SplitMix64,
    ) -> PhaseReport {
        let (machines, batches) = (setup.machines, plan.owners.len());
        let workers = match setup.design {
            Design::Chaos => 1,
            Design::Ours => setup.hardware.cores as usize,
        };
        let mut run = PhaseRun {
            window: times.window(machines, workers, setup.window),
            setup,
            input,
            times,
            random,
            now: 0,
            number: 0,
            events: BinaryHeap::new(),
            workers: (0..machines).map(|_| MachineState::default()).collect(),
            batches: (0..batches).map(|_| BatchState::default()).collect(),
            disk: vec![0; machines],
            up: vec![0; machines],
            down: vec![0; machines],
            directory: 0,
            last_write: 0,
            report: PhaseReport {
                output: vec![vec![ChunkPile::default(); machines]; plan.targets.len()],
                ..PhaseReport::default()
            },
            plan,
        };
        for (batch, &owner) in run.plan.owners.iter().enumerate() {
            run.workers[owner].own.push_back(batch);
            run.workers[owner].own_open += 1;
        }
        (0..machines).for_each(|worker| run.next_own(worker));
        let mut end = 0;
        while let Some(Reverse((at, _, event))) = run.events.pop() {
            run.now = at;
            end = at;
            run.handle(event);
        }
        // Partial bins are written, and all workers meet.
        for worker in 0..machines {
            let rest = run.workers[worker].output;
            run.put(worker, rest as u64);
        }
        while let Some(Reverse((at, _, event))) = run.events.pop() {
            run.now = at;
            run.handle(event);
        }
        let mut report = run.report;
        report.nanos = end.max(run.last_write) + setup.hardware.round_trip;
        let used = report.split.own + report.split.stolen + report.split.copied;
        report.split.idle = (report.nanos * machines as u64).saturating_sub(used);
        report
    }

    fn at(&mut self, time: u64, event: PhaseEvent) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, event)));
    }

    fn disk(&mut self, engine: usize, at: u64, bytes: u64) -> u64 {
        let takes = nanos(bytes, self.setup.hardware.disk);
        self.report.bytes += bytes;
        self.report.disk_busy += takes;
        reserve(&mut self.disk[engine], at, takes)
    }

    fn network(&self, bytes: u64) -> u64 {
        nanos(bytes, self.setup.hardware.network)
    }

    fn any_engine(&mut self) -> usize {
        self.random.below(self.setup.machines as u64) as usize
    }

    fn handle(&mut self, event: PhaseEvent) {
        let trip = self.setup.hardware.round_trip / 2;
        match event {
            PhaseEvent::Served(chunk) if chunk.worker == chunk.engine => {
                self.arrive(chunk);
            }
            PhaseEvent::Served(chunk) => {
                let takes = self.network(chunk.bytes);
                let sent = reserve(&mut self.up[chunk.engine], self.now, takes);
                self.at(sent, PhaseEvent::Sent(chunk));
            }
            PhaseEvent::Sent(chunk) => {
                // The receiver takes in the first bytes while the sender sends the last.
                let takes = self.network(chunk.bytes);
                let from = self.now + trip - takes.min(self.now + trip);
                let came = reserve(&mut self.down[chunk.worker], from, takes);
                self.at(came.max(self.now + trip), PhaseEvent::Arrived(chunk));
            }
            PhaseEvent::Arrived(chunk) => self.arrive(chunk),
            PhaseEvent::Put {
                engine,
                batch,
                bytes,
            } => {
                let takes = self.network(bytes);
                let from = self.now + trip - takes.min(self.now + trip);
                let came = reserve(&mut self.down[engine], from, takes);
                self.write(engine, batch, came, bytes);
            }
            PhaseEvent::Ready { worker } => {
                self.workers[worker].in_flight -= 1;
                self.ask(worker);
            }
            PhaseEvent::Loaded { worker, batch } => {
                self.task(worker, batch).loaded = self.now;
                self.ask(worker);
            }
            PhaseEvent::Ended { worker, batch } => self.ended(worker, batch),
            PhaseEvent::Released { worker, batch } => self.released(worker, batch),
        }
    }

    fn task(&mut self, worker: usize, batch: usize) -> &mut Task {
        let tasks = &mut self.workers[worker].tasks;
        let at = tasks.iter().position(|task| task.batch == batch);
        &mut tasks[at.unwrap_or(0)]
    }

    fn next_own(&mut self, worker: usize) {
        if let Some(batch) = self.workers[worker].own.pop_front() {
            self.begin(worker, batch, true, self.now);
        }
    }

    /// Begins a batch: the worker loads its state.
    fn begin(&mut self, worker: usize, batch: usize, is_owner: bool, at: u64) {
        let (place, bytes) = match is_owner {
            true => self.plan.owner_state,
            false => self.plan.helper_state,
        };
        let from_engines = matches!(place, StateAt::Engines);
        self.workers[worker].tasks.push(Task {
            batch,
            is_owner,
            begun: self.now,
            loaded: u64::MAX,
            state_left: if from_engines { bytes } else { 0 },
            state_pending: 0,
            engines: match self.setup.local {
                true => vec![self.plan.owners[batch]],
                false => (0..self.setup.machines).collect(),
            },
            pending: 0,
            is_ended: false,
        });
        self.batches[batch].workers.push(worker);
        let loaded = match place {
            StateAt::Engines if bytes > 0 => return self.ask(worker),
            StateAt::Engines | StateAt::Memory => at,
            StateAt::OwnDisk => self.disk(worker, at, bytes),
            StateAt::Owner => {
                let owner = self.plan.owners[batch];
                let takes = self.network(bytes);
                let sent = reserve(&mut self.up[owner], at, takes);
                reserve(&mut self.down[worker], sent - takes, takes)
            }
        };
        self.at(loaded, PhaseEvent::Loaded { worker, batch });
    }

    /// Asks for chunks until the window is full.
    fn ask(&mut self, worker: usize) {
        while self.workers[worker].in_flight < self.window {
            let Some(task) = self.workers[worker].tasks.last_mut() else {
                return;
            };
            let batch = task.batch;
            if task.state_left > 0 {
                let bytes = task.state_left.min(CHUNK);
                task.state_left -= bytes;
                task.state_pending += 1;
                let engine = match self.setup.local {
                    true => worker,
                    false => self.any_engine(),
                };
                self.request(worker, batch, engine, bytes, true, 0);
                continue;
            }
            if task.loaded > self.now || task.is_ended {
                return;
            }
            let mut refused = 0;
            let found = loop {
                if task.engines.is_empty() {
                    break None;
                }
                let at = self.random.below(task.engines.len() as u64) as usize;
                let engine = task.engines[at];
                let pile = &mut self.input[batch][engine];
                if let Some(bytes) = pile.bytes.checked_div(pile.chunks) {
                    pile.chunks -= 1;
                    pile.bytes -= bytes;
                    task.pending += 1;
                    break Some((engine, bytes));
                }
                task.engines.swap_remove(at);
                refused += 1;
            };
            let delay = refused * self.setup.hardware.round_trip;
            match found {
                Some((engine, bytes)) => self.request(worker, batch, engine, bytes, false, delay),
                None => return self.dry(worker, batch),
            }
        }
    }

    /// Notes that a batch has no chunk left to ask for.
    fn dry(&mut self, worker: usize, batch: usize) {
        let done = self.workers[worker].cores_free.max(self.now);
        let task = self.task(worker, batch);
        let is_owner = task.is_owner;
        if task.pending == 0 && !task.is_ended {
            task.is_ended = true;
            self.at(done, PhaseEvent::Ended { worker, batch });
        }
        if is_owner {
            self.next_own(worker);
        }
    }

    fn request(
        &mut self,
        worker: usize,
        batch: usize,
        engine: usize,
        bytes: u64,
        is_state: bool,
        delay: u64,
    ) {
        let trip = self.setup.hardware.round_trip;
        self.workers[worker].in_flight += 1;
        let mut asked = self.now + delay;
        if let Some(service) = self.setup.directory {
            asked = reserve(&mut self.directory, asked + trip / 2, service) + trip / 2;
        }
        if worker != engine {
            asked += trip / 2;
        }
        let served = self.disk(engine, asked, bytes);
        let chunk = ChunkTransfer {
            worker,
            batch,
            engine,
            bytes,
            is_state,
            asked: served - (asked - self.now),
        };
        self.at(served, PhaseEvent::Served(chunk));
    }

    /// A chunk is at its worker, which processes it and asks for the next.
    fn arrive(&mut self, chunk: ChunkTransfer) {
        let (worker, batch) = (chunk.worker, chunk.batch);
        let service = nanos(chunk.bytes, self.setup.hardware.disk);
        let of = std::time::Duration::from_nanos;
        // Local chunks take no network: with them phi would be too small for the others.
        if worker != chunk.engine {
            self.times.record(of(self.now - chunk.asked), of(service));
        }
        let mut free_slot = self.now;
        if chunk.is_state {
            let now = self.now;
            let task = self.task(worker, batch);
            task.state_pending -= 1;
            if task.state_pending == 0 && task.state_left == 0 {
                task.loaded = now;
            }
        } else {
            let takes = nanos(chunk.bytes, self.setup.records() * self.plan.record);
            let done = reserve(&mut self.workers[worker].cores_free, self.now, takes);
            free_slot = done.saturating_sub(takes * self.window as u64);
            self.workers[worker].output += chunk.bytes as f64 * self.plan.output;
            while self.workers[worker].output >= CHUNK as f64 {
                self.workers[worker].output -= CHUNK as f64;
                self.put(worker, CHUNK);
            }
            let task = self.task(worker, batch);
            task.pending -= 1;
            if task.pending == 0 && task.engines.is_empty() && !task.is_ended {
                task.is_ended = true;
                self.at(done, PhaseEvent::Ended { worker, batch });
            }
        }
        if free_slot > self.now {
            return self.at(free_slot, PhaseEvent::Ready { worker });
        }
        self.workers[worker].in_flight -= 1;
        self.ask(worker);
    }

    /// Sends a chunk of output to an engine drawn uniformly.
    fn put(&mut self, worker: usize, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let draw = self.random.unit();
        let last = self.plan.targets.len() - 1;
        let batch = self
            .plan
            .targets
            .partition_point(|&end| end <= draw)
            .min(last);
        let engine = match self.setup.local {
            true => self.plan.target_owners[batch],
            false => self.any_engine(),
        };
        let trip = self.setup.hardware.round_trip;
        let mut from = self.now;
        if let Some(service) = self.setup.directory {
            from = reserve(&mut self.directory, from + trip / 2, service) + trip / 2;
        }
        if engine == worker {
            return self.write(engine, batch, from, bytes);
        }
        let takes = self.network(bytes);
        let sent = reserve(&mut self.up[worker], from, takes);
        self.at(
            sent,
            PhaseEvent::Put {
                engine,
                batch,
                bytes,
            },
        );
    }

    fn write(&mut self, engine: usize, batch: usize, at: u64, bytes: u64) {
        let done = self.disk(engine, at, bytes);
        self.last_write = self.last_write.max(done);
        let pile = &mut self.report.output[batch][engine];
        pile.chunks += 1;
        pile.bytes += bytes;
    }

    /// A worker has processed its part; the last one lets the owner close the batch.
    fn ended(&mut self, worker: usize, batch: usize) {
        let now = self.now;
        let task = self.task(worker, batch);
        let (is_owner, begun, loaded) = (task.is_owner, task.begun, task.loaded.min(now));
        task.begun = now;
        if !is_owner {
            self.report.split.copied += loaded - begun;
            self.report.split.stolen += now - loaded;
        }
        self.batches[batch].ended += 1;
        let workers = self.batches[batch].workers.clone();
        let owner = self.plan.owners[batch];
        if is_owner {
            self.workers[worker].own_ended = now;
        }
        if self.plan.returned == 0 && !is_owner {
            self.at(now, PhaseEvent::Released { worker, batch });
        }
        // The owner closes a batch after it has begun it.
        if self.batches[batch].ended < workers.len() || !workers.contains(&owner) {
            return;
        }
        let mut merged = now;
        if self.plan.returned > 0 {
            for &helper in workers.iter().filter(|&&helper| helper != owner) {
                let takes = self.network(self.plan.returned);
                let sent = reserve(&mut self.up[helper], now, takes);
                let came = reserve(&mut self.down[owner], sent - takes, takes);
                let cores = nanos(self.plan.vertices, self.setup.merges());
                merged = reserve(&mut self.workers[owner].cores_free, came, cores);
                self.at(
                    came,
                    PhaseEvent::Released {
                        worker: helper,
                        batch,
                    },
                );
            }
        }
        let applied = self.apply(owner, merged);
        self.workers[owner].applying += applied - merged;
        self.at(
            applied,
            PhaseEvent::Released {
                worker: owner,
                batch,
            },
        );
    }

    /// Writes the rows of a batch; returns when they are written.
    fn apply(&mut self, owner: usize, at: u64) -> u64 {
        let (place, mut bytes) = self.plan.applied;
        let mut end = at;
        if matches!(place, StateAt::Memory) {
            return end;
        }
        while bytes > 0 {
            let part = bytes.min(CHUNK);
            bytes -= part;
            let engine = match place {
                StateAt::Engines if !self.setup.local => self.any_engine(),
                _ => owner,
            };
            let mut from = at;
            if engine != owner {
                let takes = self.network(part);
                from = reserve(&mut self.up[owner], at, takes);
            }
            end = end.max(self.disk(engine, from, part));
        }
        end
    }

    fn released(&mut self, worker: usize, batch: usize) {
        let state = &mut self.workers[worker];
        let Some(at) = state.tasks.iter().position(|task| task.batch == batch) else {
            return;
        };
        let task = state.tasks.remove(at);
        if task.is_owner {
            state.own_open -= 1;
            if state.own_open == 0 {
                let own = state.own_ended + state.applying;
                self.report.split.own += own;
                self.report.split.copied += self.now.saturating_sub(own);
            }
        } else {
            self.report.split.copied += self.now - task.begun;
        }
        if self.workers[worker].own_open == 0 {
            self.offer(worker);
        }
    }

    /// Offers help to the owners of the batches that have chunks left, in random order.
    fn offer(&mut self, worker: usize) {
        let mut batches: Vec<usize> = (0..self.plan.owners.len())
            .filter(|&batch| self.plan.owners[batch] != worker)
            .collect();
        let mut asked = 0;
        while !batches.is_empty() {
            let drawn = self.random.below(batches.len() as u64) as usize;
            let batch = batches.swap_remove(drawn);
            let owner = self.plan.owners[batch];
            let at_owner = self.input[batch][owner].bytes;
            let left = match self.setup.local {
                true => at_owner,
                false => at_owner * self.setup.machines as u64,
            };
            asked += 1;
            let helpers = self.batches[batch].workers.len();
            if self
                .setup
                .bias
                .accepts(self.plan.helper_state.1, left, helpers)
            {
                let at = self.now + asked * self.setup.hardware.round_trip;
                return self.begin(worker, batch, false, at);
            }
        }
    }
}
