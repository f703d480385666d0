//! Buckets over a link that loses, doubles, delays and changes datagrams: every message is folded once, whatever happens.

use std::collections::BTreeMap;
use std::time::Duration;

use graphmill_fabric::bucket::{
    BUCKET_BYTES, BucketExchange, BucketSeal, ExchangeShape, KEY_BYTES, LossyLink, LossyModel,
};
use graphmill_raw::{AlignedBuffer, SplitMix64, lock};

const US: Duration = Duration::from_micros(1);
/// The link of 10 Gbit/s: a datagram of 1,514 bytes takes 1.2 us.
const LINK: LossyModel = LossyModel {
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

/// Ranks that exchange messages in virtual time, one step after the other.
struct Cluster {
    link: LossyLink,
    ranks: Vec<BucketExchange>,
    places: usize,
}

/// What each destination got: its lane among all, its index, and the sum of the values.
type Sums = BTreeMap<(usize, u32), u64>;

impl Cluster {
    fn new(seed: u64, lanes: &[usize], model: LossyModel, is_sealed: bool) -> Self {
        let link = LossyLink::new(seed, lanes, model);
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
                true => BucketSeal::sealed(&[3; KEY_BYTES]).expect("a key"),
                false => BucketSeal::plain(3),
            };
            let ports = link.ports(rank, shape.senders, lanes[rank]);
            BucketExchange::new(shape, seal, ports, memory).expect("memory for all buckets")
        };
        Cluster {
            ranks: (0..lanes.len()).map(exchange).collect(),
            places: lanes.iter().sum(),
            link,
        }
    }

    /// Sends `messages` of each worker of each rank, with values of `width` bytes; returns what came.
    fn superstep(&self, number: u32, width: usize, messages: &[Vec<(usize, u32, u64)>]) -> Sums {
        let mut sums = Sums::new();
        self.ranks
            .iter()
            .for_each(|rank| rank.begin(number, width as u32));
        let mut next = vec![0; messages.len()];
        let mut has_ended = vec![false; messages.len()];
        let mut steps = 0;
        while !self.ranks.iter().all(BucketExchange::is_complete) {
            steps += 1;
            assert!(steps < 3_000_000, "it never ends");
            let mut has_moved = false;
            for (rank, exchange) in self.ranks.iter().enumerate() {
                for (lane, own) in exchange.lanes.iter().enumerate() {
                    let place = exchange.state.place_of(rank, lane);
                    let moved = lock(own).step(&exchange.state, &mut |bytes| {
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
                        outbox.end();
                    }
                }
            }
            let now = self.link.now();
            if !has_moved {
                let arrival = self.link.next_arrival();
                let wait = arrival.map_or(100 * US, |at| at.saturating_sub(now).min(100 * US));
                self.link.advance(now + wait.max(US));
            }
        }
        self.ranks.iter().for_each(BucketExchange::end);
        sums
    }

    /// Draws messages for each worker: in runs to one lane, as a walk of cells gives them.
    fn draw(&self, random: &mut SplitMix64, count: usize) -> Vec<Vec<(usize, u32, u64)>> {
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
    fn check(
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

    fn refused(&self) -> u64 {
        let counters = self
            .ranks
            .iter()
            .flat_map(|rank| &rank.state.counters.refused);
        counters
            .map(|count| count.load(std::sync::atomic::Ordering::Relaxed))
            .sum()
    }
}

#[test]
fn lossy_streams_fold_every_message_once() {
    let mut mixes = 0;
    for lost in [0, 1, 10, 50, 100, 300] {
        for (doubled, changed) in [(0, 0), (20, 0), (50, 10)] {
            for late in [0, 50, 300] {
                mixes += 1;
                let model = LossyModel {
                    lost,
                    doubled,
                    changed,
                    late,
                    ..LINK
                };
                let seeds = if std::env::var_os("GRAPHMILL_SOAK").is_some() {
                    20
                } else {
                    2
                };
                for seed in 0..seeds {
                    let mut random = SplitMix64::new(seed);
                    let cluster = Cluster::new(seed, &[1, 2, 1], model, seed % 2 == 0);
                    cluster.check(&mut random, 4, 8, 3000);
                    assert!(changed > 0 || cluster.refused() == 0, "{model:?}");
                }
            }
        }
    }
    assert_eq!(mixes, 54);
}

#[test]
fn lossy_streams_put_jumbo_messages_together() {
    let model = LossyModel {
        lost: 50,
        doubled: 50,
        late: 200,
        ..LINK
    };
    for (seed, width) in [(1, 1413), (2, 1500), (3, 2048), (4, 10_000)] {
        let mut random = SplitMix64::new(seed);
        let cluster = Cluster::new(seed, &[2, 1], model, true);
        cluster.check(&mut random, 4, width, 300);
    }
}

#[test]
fn lossy_streams_take_little_longer_than_others() {
    let time = |lost| {
        let mut all: Vec<Duration> = (0..5)
            .map(|seed| {
                let model = LossyModel {
                    lost,
                    doubled: 50,
                    late: 50,
                    ..LINK
                };
                let cluster = Cluster::new(seed, &[1, 1], model, false);
                let mut random = SplitMix64::new(seed);
                let messages = cluster.draw(&mut random, 200_000);
                cluster.superstep(0, 8, &messages);
                cluster.link.now()
            })
            .collect();
        all.sort_unstable();
        all[2]
    };
    let [none, one, ten] = [0, 10, 100].map(time);
    println!("no loss {none:?}, 1 % {one:?}, 10 % {ten:?}");
    assert!(one <= 4 * none, "{one:?} against {none:?}");
    assert!(ten <= 25 * none, "{ten:?} against {none:?}");
}
