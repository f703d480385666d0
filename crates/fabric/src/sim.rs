//! Ranks that take turns by a seed, on a network in virtual time, with delays and faults.
//!
//! Each rank is a thread, and one of them runs at a time. It gives up its turn when it waits, and sometimes when it polls for completions.
//! The seed chooses the next rank. While all ranks wait, time advances to the next event: a frame arrives, a wait reaches its limit, or a
//! rank crashes. So the same seed, faults and program give the same run, frame by frame.
//!
//! A frame takes a time drawn from the seed, but on each line it stays behind the frames before it. The report of a lost rank also takes
//! such a time, drawn for each of the other ranks. Until the report arrives, they continue.
//!
//! - A rank that fails reports this, with the cause. A rank that fails because another is lost names that one, as over MPI.
//! - If a rank crashes, its own operations fail at once, and a report reaches the others.
//! - If the connection of two ranks breaks, each of them finds the other lost. Reports from these two reach the others.
//! - A silent rank is lost to each other rank separately, once that rank has received nothing from it for `SILENCE`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use graphmill_raw::{SplitMix64, lock};

use crate::bucket::{BucketLink, LossyModel};
use crate::error::FabricError;
use crate::pending::{Pending, PendingFrames, deliver};
use crate::port::{Fabric, FabricCompletion, FabricOperation, Line, SILENCE, SILENT};
use crate::sim::datagrams::SimDatagrams;

mod datagrams;
mod port;

/// Number of expired waits in a row, with no other event, after which a simulation is stuck.
const STUCK_LIMITS: u64 = 10_000;

/// The properties of a simulated network.
#[derive(Clone, Copy, Debug)]
pub struct NetworkModel {
    /// Maximum time that a frame takes, or the report of a lost rank.
    pub delay_max: Duration,
    /// Ranks that crash, each with its time.
    pub crashes: [Option<(usize, Duration)>; 2],
    /// Two ranks whose connection breaks, with the time.
    pub broken: Option<([usize; 2], Duration)>,
    /// A rank that sends and receives nothing from a time on, with that time.
    pub silent: Option<(usize, Duration)>,
    /// How datagrams travel.
    pub datagrams: LossyModel,
    /// Datagrams from a rank to a rank, or to all, are lost.
    pub cut: Option<(usize, Option<usize>)>,
}

impl Default for NetworkModel {
    /// Returns a network that delays frames by up to a millisecond and has no faults.
    fn default() -> Self {
        NetworkModel {
            delay_max: Duration::from_millis(1),
            crashes: [None; 2],
            broken: None,
            silent: None,
            datagrams: LossyModel {
                delay: Duration::from_micros(50),
                ..LossyModel::default()
            },
            cut: None,
        }
    }
}

/// One of the simulated ranks.
///
/// The caller moves it to a thread of its own, where its first call waits for its turn.
#[derive(Debug)]
pub struct SimFabric {
    turns: TurnTaker,
}

/// What a rank takes its turns by.
#[derive(Clone, Debug)]
struct TurnTaker {
    rank: usize,
    world: Arc<NetworkState>,
}

#[derive(Debug)]
struct NetworkState {
    state: Mutex<SimState>,
    /// One for each rank, where its threads wait for its turn.
    turns: Vec<Condvar>,
}

impl NetworkState {
    /// Wakes all threads of the rank whose turn it is: one may hold what another needs.
    fn wake(&self, turn: Option<usize>) {
        if let Some(next) = turn.and_then(|rank| self.turns.get(rank)) {
            next.notify_all();
        }
    }
}

#[derive(Debug)]
struct SimState {
    seed: u64,
    random: SplitMix64,
    network: NetworkModel,
    now: Duration,
    /// Pending events by time; a number orders events of the same time.
    events: BTreeMap<(Duration, u64), Event>,
    events_made: u64,
    /// The arrival of the last frame of each line.
    arrivals: BTreeMap<Line, Duration>,
    ranks: Vec<SimRank>,
    turn: Option<usize>,
    limits_in_a_row: u64,
    datagrams: SimDatagrams,
}

#[derive(Debug)]
enum Event {
    /// A frame arrives.
    Arrive(Line, Pending),
    /// Rank `to` learns from `from` that `rank` is lost; `from` is `to` if it finds this itself.
    Hear {
        from: usize,
        to: usize,
        rank: usize,
        cause: String,
    },
    Crash {
        rank: usize,
    },
    /// A datagram comes from a rank for a lane of another.
    Datagram([usize; 3], Vec<u8>),
}

#[derive(Debug, Default)]
struct SimRank {
    lines: PendingFrames,
    complete: VecDeque<FabricCompletion>,
    in_flight: usize,
    is: RankState,
    lost: Option<FabricError>,
    has_lost: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RankState {
    /// Its thread has not called yet.
    #[default]
    Missing,
    /// It can run.
    Ready,
    /// It waits for a completion, at most until this time.
    Waiting(Duration),
    /// It takes no more turns: it is done with the others, or failed.
    Left,
}

/// Makes the fabrics of `ranks` ranks on a network, all driven by one seed.
pub fn simulated(seed: u64, ranks: usize, network: NetworkModel) -> Vec<SimFabric> {
    let mut state = SimState {
        seed,
        random: SplitMix64::new(seed),
        network,
        now: Duration::ZERO,
        events: BTreeMap::new(),
        events_made: 0,
        arrivals: BTreeMap::new(),
        ranks: (0..ranks).map(|_| SimRank::default()).collect(),
        turn: None,
        limits_in_a_row: 0,
        datagrams: SimDatagrams::default(),
    };
    for (rank, at) in network.crashes.into_iter().flatten() {
        state.happen(at, Event::Crash { rank });
    }
    if let Some(([one, other], at)) = network.broken {
        for [of, lost] in [[one, other], [other, one]] {
            state.tell(at, [of, of], lost, "the connection to it broke");
        }
    }
    if let Some((rank, since)) = network.silent {
        for of in 0..ranks {
            state.tell(since + SILENCE, [of, of], rank, SILENT);
        }
    }
    let world = Arc::new(NetworkState {
        state: Mutex::new(state),
        turns: (0..ranks).map(|_| Condvar::new()).collect(),
    });
    let fabric = |rank| SimFabric {
        turns: TurnTaker {
            rank,
            world: Arc::clone(&world),
        },
    };
    (0..ranks).map(fabric).collect()
}

impl SimState {
    fn happen(&mut self, at: Duration, event: Event) {
        self.events.insert((at, self.events_made), event);
        self.events_made += 1;
    }

    /// Plans the event that a rank learns that another is lost.
    fn tell(&mut self, at: Duration, [from, to]: [usize; 2], rank: usize, cause: &str) {
        let cause = cause.to_string();
        let event = Event::Hear {
            from,
            to,
            rank,
            cause,
        };
        self.happen(at, event);
    }

    /// Draws the arrival time of a frame or report that is sent now.
    fn arrival(&mut self) -> Duration {
        let nanos = self.network.delay_max.as_nanos() as u64;
        self.now + Duration::from_nanos(self.random.below(nanos + 1))
    }

    fn submit(&mut self, own: usize, operation: FabricOperation, token: u64) {
        self.ranks[own].in_flight += 1;
        let checked = operation.check(self.ranks.len());
        let refusal = checked.err().or_else(|| self.ranks[own].lost.clone());
        let added = Pending { operation, token };
        if let Some(error) = refusal {
            return self.complete(own, added.done(Err(error)));
        }
        let line @ (rank, ..) = added.operation.line(own);
        match added.operation {
            FabricOperation::Send { .. } => {
                let arrival = self.arrival();
                let last = self.arrivals.entry(line).or_default();
                *last = (*last).max(arrival);
                let at = *last;
                self.happen(at, Event::Arrive(line, added));
            }
            FabricOperation::Receive { .. } if self.has_left(rank) => {
                self.complete(own, added.done(Err(FabricError::Left { rank })));
            }
            FabricOperation::Receive { .. } => self.add(line, added),
        }
    }

    fn complete(&mut self, rank: usize, completion: FabricCompletion) {
        self.ranks[rank].complete.push_back(completion);
        if let RankState::Waiting(_) = self.ranks[rank].is {
            self.ranks[rank].is = RankState::Ready;
        }
    }

    /// Adds a frame that has arrived, or memory for one.
    fn add(&mut self, line @ (from, to, _): Line, added: Pending) {
        if let Some((sent, awaited)) = self.ranks[to].lines.add(line, added) {
            let [of_sender, of_receiver] = deliver(from, sent, awaited);
            self.complete(from, of_sender);
            self.complete(to, of_receiver);
        }
    }

    /// Puts a datagram into the queue of a lane, unless one of its ranks is silent or lost.
    fn receive(&mut self, [from, to, lane]: [usize; 3], bytes: Vec<u8>) {
        if self.is_silent(from, to).is_none() && self.ranks[to].lost.is_none() {
            self.datagrams.put(to, lane, bytes);
            if let RankState::Waiting(_) = self.ranks[to].is {
                self.ranks[to].is = RankState::Ready;
            }
        }
    }

    /// Carries out the next event.
    fn turn_up(&mut self, event: Event) {
        match event {
            // The frame waits until the silent rank is lost.
            Event::Arrive((from, to, _), _) if let Some(until) = self.is_silent(from, to) => {
                self.happen(until, event);
            }
            Event::Arrive((from, rank, _), sent) if self.has_left(rank) => {
                self.complete(from, sent.done(Err(FabricError::Left { rank })));
            }
            Event::Arrive(line, sent) => self.add(line, sent),
            Event::Datagram(way, bytes) => self.receive(way, bytes),
            Event::Hear { from, to, .. } if self.is_silent(from, to).is_some() => {}
            // A rank that has left waits for no other rank, and none waits for it.
            Event::Hear { rank, .. } | Event::Crash { rank } if self.has_left(rank) => {}
            Event::Hear {
                to, rank, cause, ..
            } => self.lose(to, rank, &cause),
            Event::Crash { rank } => self.fail(rank, "it crashed"),
        }
    }

    /// Returns true if a rank is done with the others, and did not fail.
    fn has_left(&self, rank: usize) -> bool {
        let place = &self.ranks[rank];
        place.is == RankState::Left && place.lost.is_none()
    }

    /// Returns the end of the silence between two ranks, if one of them is silent now.
    fn is_silent(&self, from: usize, to: usize) -> Option<Duration> {
        let (rank, since) = self.network.silent?;
        let is_now = (since..since + SILENCE).contains(&self.now);
        (is_now && from != to && [from, to].contains(&rank)).then_some(since + SILENCE)
    }

    /// Marks `rank` as lost to rank `own`, and ends the operations of `own`.
    ///
    /// It does nothing if `own` has lost a rank before or is done. `rank` may be `own` itself.
    fn lose(&mut self, own: usize, rank: usize, cause: &str) {
        let place = &mut self.ranks[own];
        if place.lost.is_some() || place.is == RankState::Left {
            return;
        }
        let error = FabricError::lost(rank, cause);
        place.lost = Some(error.clone());
        place.has_lost.store(true, Ordering::Relaxed);
        let mut ended = self.ranks[own].lines.drain_awaited(|_| true);
        // Frames that others sent to it wait until those ranks learn of the loss.
        let is_own = |event: &Event| matches!(event, Event::Arrive((from, ..), _) if *from == own);
        let under_way = self.events.extract_if(.., |_, event| is_own(event));
        ended.extend(under_way.filter_map(|(_, event)| match event {
            Event::Arrive(_, sent) => Some(sent),
            _ => None,
        }));
        for place in &mut self.ranks {
            let sent = place.lines.drain_sent(|from| from == own);
            ended.extend(sent.into_iter().map(|(_, frame)| frame));
        }
        for operation in ended {
            self.complete(own, operation.done(Err(error.clone())));
        }
    }

    /// Makes rank `own` fail, and reports that to the others, or the rank that `own` lost.
    fn fail(&mut self, own: usize, cause: &str) {
        let (rank, cause) = match &self.ranks[own].lost {
            Some(FabricError::Lost { rank, cause }) => (*rank, cause.clone()),
            _ => (own, cause.to_string()),
        };
        self.lose(own, rank, &cause);
        for to in (0..self.ranks.len()).filter(|to| *to != own) {
            let at = self.arrival();
            self.tell(at, [own, to], rank, &cause);
        }
    }

    /// Records that a rank is done. If it has lost a rank, the others learn of that instead.
    fn leave(&mut self, own: usize) {
        if self.ranks[own].lost.is_some() {
            return;
        }
        let error = FabricError::Left { rank: own };
        for of in 0..self.ranks.len() {
            let choose = |from| from == own || of == own;
            for (from, frame) in self.ranks[of].lines.drain_sent(choose) {
                self.complete(from, frame.done(Err(error.clone())));
            }
            for memory in self.ranks[of].lines.drain_awaited(choose) {
                self.complete(of, memory.done(Err(error.clone())));
            }
        }
    }

    /// Gives the turn to a rank that can run; advances time while none can.
    fn pass_on(&mut self) {
        loop {
            if self.ranks.iter().any(|rank| rank.is == RankState::Missing) {
                self.turn = None;
                return;
            }
            let ready: Vec<usize> = (0..self.ranks.len())
                .filter(|rank| self.ranks[*rank].is == RankState::Ready)
                .collect();
            if !ready.is_empty() {
                let chosen = self.random.below(ready.len() as u64) as usize;
                self.turn = Some(ready[chosen]);
                return;
            }
            let limits = self.ranks.iter().filter_map(|rank| match rank.is {
                RankState::Waiting(until) => Some(until),
                _ => None,
            });
            let limit = limits.min();
            let next = self.events.first_key_value().map(|(key, _)| key.0);
            match (next, limit) {
                (Some(at), limit) if limit.is_none_or(|limit| at <= limit) => {
                    self.now = self.now.max(at);
                    self.limits_in_a_row = 0;
                    if let Some((_, event)) = self.events.pop_first() {
                        self.turn_up(event);
                    }
                }
                (_, Some(limit)) => {
                    self.now = limit;
                    self.limits_in_a_row += 1;
                    for place in &mut self.ranks {
                        if place.is == RankState::Waiting(limit) {
                            place.is = RankState::Ready;
                        }
                    }
                }
                (_, None) => {
                    self.turn = None;
                    return;
                }
            }
        }
    }

    fn is_stuck(&self) -> bool {
        self.limits_in_a_row > STUCK_LIMITS && self.events.is_empty()
    }
}

impl SimFabric {
    /// Returns the virtual time.
    pub fn now(&self) -> Duration {
        self.turn().now
    }

    /// Returns the virtual time, without a turn: it stands still while a rank can run.
    pub fn glance(&self) -> Duration {
        lock(&self.turns.world.state).now
    }

    fn turn(&self) -> MutexGuard<'_, SimState> {
        self.turns.turn()
    }
}

impl TurnTaker {
    /// Waits for the turn of this rank.
    fn turn(&self) -> MutexGuard<'_, SimState> {
        let mut state = lock(&self.world.state);
        if state.ranks[self.rank].is == RankState::Missing {
            state.ranks[self.rank].is = RankState::Ready;
            state.pass_on();
            self.world.wake(state.turn);
        }
        let is_other = |state: &mut SimState| state.turn != Some(self.rank);
        let state = self.world.turns[self.rank].wait_while(state, is_other);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets other ranks run until it is this rank's turn again.
    fn yield_as(&self, doing: RankState) {
        self.pass_on(self.turn(), doing);
        if doing != RankState::Left {
            drop(self.turn());
        }
    }

    fn pass_on(&self, mut state: MutexGuard<'_, SimState>, doing: RankState) {
        state.ranks[self.rank].is = doing;
        state.pass_on();
        let turn = state.turn;
        drop(state);
        self.world.wake(turn);
    }
}

impl Fabric for SimFabric {
    fn rank(&self) -> usize {
        self.turns.rank
    }

    fn ranks(&self) -> usize {
        self.turn().ranks.len()
    }

    fn submit(&self, operation: FabricOperation, token: u64) {
        self.turn().submit(self.turns.rank, operation, token);
    }

    fn poll(&self) -> Option<FabricCompletion> {
        // A rank that polls without waiting must sometimes let others run.
        if self.turn().random.below(4) == 0 {
            self.turns.yield_as(RankState::Ready);
        }
        let place = &mut self.turn().ranks[self.turns.rank];
        let completion = place.complete.pop_front()?;
        place.in_flight -= 1;
        Some(completion)
    }

    fn wait(&self, limit: Duration) -> Option<FabricCompletion> {
        let state = self.turn();
        let until = state.now + limit;
        let is_there = !state.ranks[self.turns.rank].complete.is_empty();
        drop(state);
        if !is_there {
            self.turns.yield_as(RankState::Waiting(until));
        }
        let state = self.turn();
        let stuck = state.is_stuck().then_some(state.seed);
        drop(state);
        if let Some(seed) = stuck {
            self.fail(&format!("all ranks wait for each other (seed {seed})"));
        }
        self.poll()
    }

    fn in_flight(&self) -> usize {
        self.turn().ranks[self.turns.rank].in_flight
    }

    fn lost(&self) -> Option<FabricError> {
        self.turn().ranks[self.turns.rank].lost.clone()
    }

    fn lost_flag(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.turn().ranks[self.turns.rank].has_lost))
    }

    fn bucket_link(
        &self,
        _: u64,
        lanes: &[usize],
        datagrams_max: usize,
    ) -> Option<Box<dyn BucketLink>> {
        let datagrams = &mut self.turn().datagrams;
        datagrams.resize(lanes, datagrams_max);
        Some(Box::new(self.turns.clone()))
    }

    fn fail(&self, cause: &str) {
        self.turn().fail(self.turns.rank, cause);
    }

    fn leave(&self) {
        self.turn().leave(self.turns.rank);
        self.turns.yield_as(RankState::Left);
    }
}

impl Drop for SimFabric {
    fn drop(&mut self) {
        let mut state = lock(&self.turns.world.state);
        match state.ranks[self.turns.rank].is {
            RankState::Left => return,
            // It never had a turn, and takes none now: its thread did not call.
            RankState::Missing => {}
            RankState::Ready | RankState::Waiting(_) => {
                drop(state);
                state = self.turn();
            }
        }
        state.fail(self.turns.rank, "it ended without a word");
        self.turns.pass_on(state, RankState::Left);
    }
}
