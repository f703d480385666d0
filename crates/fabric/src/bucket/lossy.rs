//! A link in virtual time, which loses, doubles, delays and changes datagrams by a seed.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graphmill_raw::{SplitMix64, lock};

use crate::bucket::link::{BucketLink, LinkPorts, Port};
use crate::bucket::state::firsts;

/// Datagrams that a lane holds at most; more are lost.
const QUEUE_MAX: usize = 4096;
/// Datagrams that one call receives at most.
const BURST: usize = 64;

/// The properties of a simulated link. Shares are parts of 1,000.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossyModel {
    /// Datagrams that are lost.
    pub lost: u64,
    /// Datagrams that come twice.
    pub doubled: u64,
    /// Datagrams with a changed bit.
    pub changed: u64,
    /// Datagrams that come later than others.
    pub late: u64,
    /// The time that a datagram takes.
    pub delay: Duration,
    /// The time that a late datagram takes in addition, at most.
    pub late_by: Duration,
    /// The time that a rank takes to send one datagram.
    pub gap: Duration,
}

impl LossyModel {
    /// Draws the copies of a datagram that arrive, each with the time that it takes.
    pub(crate) fn copies(&self, random: &mut SplitMix64, sent: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let happens = |random: &mut SplitMix64, share: u64| random.below(1000) < share;
        let mut copies = Vec::new();
        for _ in 0..1 + u64::from(happens(random, self.doubled)) {
            if happens(random, self.lost) {
                continue;
            }
            let (mut takes, mut bytes) = (self.delay, sent.to_vec());
            if happens(random, self.late) {
                let nanos = self.late_by.as_nanos() as u64;
                takes += Duration::from_nanos(random.below(nanos + 1));
            }
            if happens(random, self.changed) {
                let bit = random.below(8 * bytes.len() as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            copies.push((takes, bytes));
        }
        copies
    }
}

/// A simulated link between all lanes of all ranks.
#[derive(Clone, Debug)]
pub struct LossyLink {
    state: Arc<Mutex<LossyState>>,
}

#[derive(Debug)]
struct LossyState {
    now: Duration,
    random: SplitMix64,
    model: LossyModel,
    /// Datagrams on their way by time; a number orders datagrams of the same time.
    flying: BTreeMap<(Duration, u64), (usize, Vec<u8>)>,
    made: u64,
    /// When each rank can send its next datagram.
    ready: Vec<Duration>,
    /// Of each lane of each rank, the datagrams that have come.
    queues: Vec<VecDeque<Vec<u8>>>,
    /// The first queue of each rank.
    firsts: Vec<usize>,
}

impl LossyLink {
    /// Makes a link between ranks with such numbers of lanes.
    #[must_use]
    pub fn new(seed: u64, lanes: &[usize], model: LossyModel) -> Self {
        let state = LossyState {
            now: Duration::ZERO,
            random: SplitMix64::new(seed),
            model,
            flying: BTreeMap::new(),
            made: 0,
            ready: vec![Duration::ZERO; lanes.len()],
            firsts: firsts(lanes),
            queues: (0..lanes.iter().sum()).map(|_| VecDeque::new()).collect(),
        };
        LossyLink {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The time of the link.
    #[must_use]
    pub fn now(&self) -> Duration {
        lock(&self.state).now
    }

    /// Moves time forward, and with it the datagrams that arrive until then.
    pub fn advance(&self, to: Duration) {
        let state = &mut *lock(&self.state);
        state.now = state.now.max(to);
        while let Some(next) = state.flying.first_entry()
            && next.key().0 <= state.now
        {
            let (queue, bytes) = next.remove();
            if state.queues[queue].len() < QUEUE_MAX {
                state.queues[queue].push_back(bytes);
            }
        }
    }

    /// Puts bytes from anywhere into the queue of a lane, as if they had arrived.
    pub fn inject(&self, to: usize, lane: usize, bytes: &[u8]) {
        let state = &mut *lock(&self.state);
        let queue = state.firsts[to] + lane;
        state.queues[queue].push_back(bytes.to_vec());
    }

    /// Returns a copy of one of the datagrams on their way, and the place of its lane among all lanes.
    #[must_use]
    pub fn flying(&self, random: &mut SplitMix64) -> Option<(usize, Vec<u8>)> {
        let flying = &lock(&self.state).flying;
        let one = random.below(flying.len().max(1) as u64) as usize;
        flying.values().nth(one).cloned()
    }

    /// Returns the time at which the next datagram arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Duration> {
        lock(&self.state).flying.keys().next().map(|key| key.0)
    }
}

impl BucketLink for LossyLink {
    fn ports(&self, rank: usize, senders: usize, lanes: usize) -> LinkPorts {
        let port = |lane| -> Box<dyn Port> {
            let link = self.clone();
            Box::new(LossyPort { link, rank, lane })
        };
        LinkPorts {
            senders: (0..senders).map(|_| port(None)).collect(),
            lanes: (0..lanes).map(|lane| port(Some(lane))).collect(),
        }
    }
}

impl LossyState {
    fn send(&mut self, rank: usize, queue: usize, bytes: &[u8]) {
        self.ready[rank] = self.ready[rank].max(self.now) + self.model.gap;
        for (takes, bytes) in self.model.copies(&mut self.random, bytes) {
            let at = self.ready[rank] + takes;
            self.flying.insert((at, self.made), (queue, bytes));
            self.made += 1;
        }
    }
}

/// A port of a simulated link.
#[derive(Debug)]
struct LossyPort {
    link: LossyLink,
    rank: usize,
    /// The lane that it receives for; none if it only sends.
    lane: Option<usize>,
}

impl Port for LossyPort {
    fn send(&mut self, to: usize, lane: usize, buckets: &[&[u8]]) -> io::Result<usize> {
        let state = &mut *lock(&self.link.state);
        let queue = state.firsts[to] + lane;
        for bucket in buckets {
            state.send(self.rank, queue, bucket);
        }
        Ok(buckets.len())
    }

    fn receive(&mut self, visit: &mut dyn FnMut(&mut [u8])) -> io::Result<usize> {
        let Some(lane) = self.lane else {
            return Ok(0);
        };
        let mut came = {
            let state = &mut *lock(&self.link.state);
            let queue = state.firsts[self.rank] + lane;
            let count = state.queues[queue].len().min(BURST);
            state.queues[queue].drain(..count).collect::<Vec<_>>()
        };
        came.iter_mut().for_each(|bytes| visit(bytes));
        Ok(came.len())
    }

    fn wait(&mut self, _: u32, _: Duration) {}
}
