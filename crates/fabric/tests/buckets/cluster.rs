//! Ranks that exchange messages over a lossy link in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use graphmill_fabric::bucket::{
    BUCKET_BYTES, BucketExchange, BucketLink, BucketSeal, ExchangeShape, KEY_BYTES, LossyLink,
    LossyModel,
};
use graphmill_raw::{AlignedBuffer, SplitMix64, lock};

const US: Duration = Duration::from_micros(1);
/// The link of 10 Gbit/s: a datagram of 1,514 bytes takes 1.2 us.
pub(crate) const LINK: LossyModel = LossyModel {
    lost: 0,
    doubled: 0,
    changed: 0,
    late: 0,
    delay: Duration::from_micros(50),
    late_by: Duration::from_micros(300),
    gap: Duration::from_nanos(1211),
};
const WORKERS: usize = 2;
/// Messages of a worker that a step puts at most.
const QUANTUM: usize = 400;

/// Something that is done to a link in each step.
pub(crate) type Disturb = Box<dyn Fn(&LossyLink)>;

/// Ranks that exchange messages in virtual time, one step after the other.
pub(crate) struct Cluster {
    pub(crate) link: LossyLink,
    pub(crate) ranks: Vec<BucketExchange>,
    pub(crate) places: usize,
    /// Steps of a superstep after which it counts as one that never ends.
    pub(crate) steps_max: usize,
    /// Is called in each step.
    pub(crate) disturb: Option<Disturb>,
}

/// What each destination got: its lane among all, its index, and the sum of the values.
pub(crate) type Sums = BTreeMap<(usize, u32), u64>;

impl Cluster {
    /// Makes ranks with such numbers of lanes, and their link.
    pub(crate) fn new(seed: u64, lanes: &[usize], model: LossyModel, is_sealed: bool) -> Self {
        Cluster::start(LossyLink::new(seed, lanes, model), lanes, 3, is_sealed)
    }

    /// Starts ranks with a key of the job `job` on a link, which may have datagrams of an earlier start.
    pub(crate) fn start(link: LossyLink, lanes: &[usize], job: u8, is_sealed: bool) -> Self {
        let exchange = |rank: usize| {
            let shape = ExchangeShape {
                rank,
                lanes: lanes.to_vec(),
                workers: WORKERS,
                senders: 2,
                bucket_bytes: BUCKET_BYTES,
                window: 64,
                written_bytes: 0,
            };
            let memory = AlignedBuffer::zeroed(shape.bytes()).expect("memory");
            let seal = match is_sealed {
                true => BucketSeal::sealed(&[job; KEY_BYTES]).expect("a key"),
                false => BucketSeal::plain(job.into()),
            };
            let ports = link.ports(rank, shape.senders, lanes[rank]);
            BucketExchange::new(shape, seal, ports, memory).expect("memory for all buckets")
        };
        Cluster {
            ranks: (0..lanes.len()).map(exchange).collect(),
            places: lanes.iter().sum(),
            steps_max: 3_000_000,
            disturb: None,
            link,
        }
    }

    /// Sends `messages` of each worker of each rank, with values of `width` bytes; returns what came.
    pub(crate) fn superstep(
        &self,
        number: u32,
        width: usize,
        messages: &[Vec<(usize, u32, u64)>],
    ) -> Sums {
        let mut sums = Sums::new();
        self.ranks
            .iter()
            .for_each(|rank| rank.begin(number, width as u32));
        let mut next = vec![0; messages.len()];
        let mut has_ended = vec![false; messages.len()];
        let mut steps = 0;
        while !self.ranks.iter().all(BucketExchange::is_complete) {
            steps += 1;
            assert!(steps < self.steps_max, "it never ends");
            let mut has_moved = false;
            for (rank, exchange) in self.ranks.iter().enumerate() {
                for (lane, own) in exchange.lanes.iter().enumerate() {
                    let place = exchange.state.place_of(rank, lane);
                    let moved = lock(own).step(&exchange.state, self.link.now(), &mut |bytes| {
                        for message in bytes.chunks_exact(4 + width) {
                            let id = u32::from_le_bytes(message[..4].try_into().expect("an id"));
                            let mut value = [0; 8];
                            value.copy_from_slice(&message[message.len() - 8..]);
                            *sums.entry((place, id)).or_default() += u64::from_le_bytes(value);
                        }
                        true
                    });
                    has_moved |= moved.expect("a lane");
                }
                for sender in &exchange.senders {
                    let moved = lock(sender).step(&exchange.state, self.link.now());
                    has_moved |= moved.expect("a sender");
                }
                for (worker, outbox) in exchange.workers.iter().enumerate() {
                    let (at, outbox) = (WORKERS * rank + worker, &mut *lock(outbox));
                    for (place, id, value) in messages[at][next[at]..].iter().take(QUANTUM) {
                        let mut message = id.to_le_bytes().to_vec();
                        message.resize(4 + width - 8, 0);
                        message.extend(value.to_le_bytes());
                        if outbox.put(*place, &message) == 0 {
                            break;
                        }
                        next[at] += 1;
                        has_moved = true;
                    }
                    if next[at] == messages[at].len() && !has_ended[at] {
                        has_ended[at] = true;
                        outbox.end(false);
                        outbox.end(true);
                    }
                }
            }
            if let Some(disturb) = &self.disturb {
                disturb(&self.link);
            }
            let now = self.link.now();
            if !has_moved || self.disturb.is_some() {
                let arrival = self.link.next_arrival();
                let wait = arrival.map_or(100 * US, |at| at.saturating_sub(now).min(100 * US));
                self.link.advance(now + wait.max(US));
            }
        }
        self.ranks.iter().for_each(BucketExchange::end);
        sums
    }

    /// Draws messages for each worker: in runs to one lane, as a walk of cells gives them.
    pub(crate) fn draw(
        &self,
        random: &mut SplitMix64,
        count: usize,
    ) -> Vec<Vec<(usize, u32, u64)>> {
        let workers = self.ranks.len() * WORKERS;
        let mut of_worker = |_| {
            let mut messages = Vec::new();
            while messages.len() < count {
                let place = random.below(self.places as u64) as usize;
                for _ in 0..1 + random.below(500) {
                    messages.push((place, random.below(100) as u32, random.below(1 << 40)));
                }
            }
            messages
        };
        (0..workers).map(&mut of_worker).collect()
    }

    /// Runs supersteps and checks each; returns the time that they took.
    pub(crate) fn check(
        &self,
        random: &mut SplitMix64,
        supersteps: u32,
        width: usize,
        count: usize,
    ) -> Duration {
        let began = self.link.now();
        for number in 0..supersteps {
            // Workers, ranks or all may have nothing to send.
            let messages = self.draw(random, [count, 0, 1, count][number as usize % 4]);
            let mut wanted = Sums::new();
            for (place, id, value) in messages.iter().flatten() {
                *wanted.entry((*place, *id)).or_default() += value;
            }
            assert_eq!(
                self.superstep(number, width, &messages),
                wanted,
                "superstep {number}"
            );
        }
        self.link.now() - began
    }

    pub(crate) fn refused(&self) -> u64 {
        let counters = self
            .ranks
            .iter()
            .flat_map(|rank| &rank.state.counters.refused);
        counters
            .map(|count| count.load(std::sync::atomic::Ordering::Relaxed))
            .sum()
    }
}
