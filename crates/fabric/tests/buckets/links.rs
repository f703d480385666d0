//! Buckets over the links of real jobs, with a thread for each rank.

#![expect(clippy::disallowed_methods, reason = "the test waits for real links")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use graphmill_fabric::bucket::{
    BUCKET_BYTES, BucketExchange, BucketLink, BucketSeal, ExchangeShape, KEY_BYTES, LinkPorts,
    LocalLink, RECEIVE_BYTES, UdpSockets,
};
use graphmill_raw::{AlignedBuffer, SplitMix64, lock};

const RANKS: usize = 3;
const LANES: usize = 2;
const MESSAGES: u64 = 200_000;

fn shape(rank: usize) -> ExchangeShape {
    ExchangeShape {
        rank,
        lanes: vec![LANES; RANKS],
        workers: 1,
        senders: 2,
        bucket_bytes: BUCKET_BYTES,
        window: 64,
        written_bytes: 0,
    }
}

/// Sends messages from each rank to all, in supersteps; returns the sums at each.
fn run(ports: Vec<LinkPorts>, seal: fn() -> BucketSeal) -> Vec<BTreeMap<(usize, u32), u64>> {
    let (barrier, complete) = (Barrier::new(RANKS), AtomicUsize::new(0));
    let of_rank = |(rank, ports): (usize, LinkPorts)| {
        let memory = AlignedBuffer::zeroed(shape(rank).bytes()).expect("memory");
        let exchange =
            BucketExchange::new(shape(rank), seal(), ports, memory).expect("an exchange");
        let (clock, mut sums) = (Instant::now(), BTreeMap::new());
        for superstep in 0..3 {
            exchange.begin(superstep, 8);
            barrier.wait();
            let mut random = SplitMix64::new(rank as u64);
            let draw = |_| {
                let place = random.below((RANKS * LANES) as u64) as usize;
                (place, random.below(50) as u32, random.below(1 << 30))
            };
            let messages: Vec<(usize, u32, u64)> = (0..MESSAGES).map(draw).collect();
            let mut next = 0;
            let mut is_complete = false;
            while complete.load(Ordering::Acquire) < RANKS * (superstep as usize + 1) {
                for (lane, own) in exchange.lanes.iter().enumerate() {
                    let fold = &mut |bytes: &[u8]| {
                        for message in bytes.as_chunks::<12>().0 {
                            let id = u32::from_le_bytes(message[..4].try_into().expect("an id"));
                            let value = u64::from_le_bytes(message[4..].try_into().expect("8"));
                            *sums.entry((lane, id)).or_default() += value;
                        }
                        true
                    };
                    lock(own)
                        .step(&exchange.state, clock.elapsed(), fold)
                        .expect("a lane");
                }
                for sender in &exchange.senders {
                    let step = lock(sender).step(&exchange.state, clock.elapsed());
                    step.expect("a sender");
                }
                let mut outbox = lock(&exchange.workers[0]);
                for (place, id, value) in messages[next..].iter().take(400) {
                    let message = [&id.to_le_bytes()[..], &value.to_le_bytes()].concat();
                    if outbox.put(*place, &message) == 0 {
                        break;
                    }
                    next += 1;
                    if next == messages.len() {
                        outbox.end(false);
                        outbox.end(true);
                    }
                }
                drop(outbox);
                if !is_complete && next == messages.len() && exchange.is_complete() {
                    is_complete = true;
                    complete.fetch_add(1, Ordering::AcqRel);
                }
            }
            exchange.end();
            barrier.wait();
        }
        sums
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = ports
            .into_iter()
            .enumerate()
            .map(|ports| scope.spawn(move || of_rank(ports)))
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("a rank"))
            .collect()
    })
}

/// The sum of all values at all ranks.
fn total(sums: &[BTreeMap<(usize, u32), u64>]) -> u64 {
    sums.iter().flat_map(BTreeMap::values).sum()
}

fn sealed() -> BucketSeal {
    BucketSeal::sealed(&[5; KEY_BYTES]).expect("a key")
}

#[test]
fn links_give_the_same_sums() {
    let _alone = crate::alone();
    // A short queue drops many.
    let queues = [20, 4096].map(|longest| LocalLink::new(&[LANES; RANKS], longest));
    let [short, long] = queues.map(|link| {
        let ports = (0..RANKS).map(|rank| link.ports(rank, 2, LANES)).collect();
        run(ports, || BucketSeal::plain(5))
    });
    assert!(short == long && total(&long) > 0);

    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let sockets: Vec<UdpSockets> = (0..RANKS)
        .map(|_| UdpSockets::bind(ip, 2, LANES, BUCKET_BYTES).expect("sockets"))
        .collect();
    let peers: Vec<_> = sockets
        .iter()
        .map(|of| of.addresses().expect("addresses"))
        .collect();
    // Datagrams of strangers, of any length, change nothing.
    let stranger = UdpSocket::bind((ip, 0)).expect("a socket");
    for to in peers.iter().flatten() {
        for bytes in [0, 1, 40, BUCKET_BYTES, 9000] {
            stranger
                .send_to(&vec![0xee; bytes], to)
                .expect("a datagram");
        }
    }
    let ports = sockets.into_iter().map(|of| {
        let buffer = |_| AlignedBuffer::zeroed(RECEIVE_BYTES).expect("memory");
        of.ports(peers.clone(), (0..LANES).map(buffer).collect())
    });
    assert!(run(ports.collect(), sealed) == long);
}
