//! Datagrams of strangers: none changes a sum, none panics, and all are counted.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::time::Duration;

use graphmill_fabric::bucket::{BUCKET_BYTES, LossyLink, LossyModel, TAG_BYTES};
use graphmill_raw::SplitMix64;

use crate::alone;
use crate::cluster::{Cluster, LINK};

const LANES: [usize; 2] = [2, 1];
const PLACES: [(usize, usize); 3] = [(0, 0), (0, 1), (1, 0)];
/// The fields of a header: their offsets and lengths in bytes.
const FIELDS: [(usize, usize); 15] = [
    (0, 2),
    (2, 1),
    (3, 1),
    (4, 2),
    (6, 2),
    (8, 8),
    (16, 1),
    (17, 1),
    (18, 1),
    (19, 1),
    (20, 2),
    (22, 2),
    (24, 8),
    (32, 4),
    (36, 4),
];

fn cluster(is_sealed: bool, disturb: impl Fn(&LossyLink) + 'static) -> Cluster {
    Cluster {
        disturb: Some(Box::new(disturb)),
        ..Cluster::new(1, &LANES, LINK, is_sealed)
    }
}

/// Checks sums in supersteps with messages that are short, and with jumbo messages.
fn check(cluster: &Cluster) {
    let mut random = SplitMix64::new(1);
    cluster.check(&mut random, 2, 8, 1000);
    cluster.check(&mut random, 2, 3000, 50);
    assert!(
        cluster.refused() > 0,
        "lanes count the datagrams that they refuse"
    );
}

/// Calls `forge` with a copy of a datagram on its way and the lane that it is for, then puts it there.
fn forged(
    link: &LossyLink,
    random: &mut SplitMix64,
    forge: impl FnOnce(&mut Vec<u8>, &mut SplitMix64),
) {
    let Some((place, mut bytes)) = link.flying(random) else {
        return;
    };
    forge(&mut bytes, random);
    let (rank, lane) = PLACES[place];
    link.inject(rank, lane, &bytes);
}

#[test]
fn random_bytes_are_refused() {
    let _alone = alone();
    for is_sealed in [true, false] {
        let random = RefCell::new(SplitMix64::new(5));
        check(&cluster(is_sealed, move |link| {
            let random = &mut *random.borrow_mut();
            for (rank, lane) in PLACES {
                let lengths = [BUCKET_BYTES as u64, random.below(3000), 0, 65_507];
                let length = lengths[random.below(4) as usize] as usize;
                let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
                link.inject(rank, lane, &bytes);
            }
        }));
    }
}

#[test]
fn every_truncation_is_refused() {
    let _alone = alone();
    for is_sealed in [true, false] {
        let (length, random) = (Cell::new(0), RefCell::new(SplitMix64::new(6)));
        check(&cluster(is_sealed, move |link| {
            for _ in 0..3 {
                let now = length.get();
                length.set((now + 1) % BUCKET_BYTES);
                forged(link, &mut random.borrow_mut(), |bytes, _| {
                    bytes.truncate(now)
                });
            }
        }));
    }
}

#[test]
fn fields_at_their_extremes_are_refused() {
    let _alone = alone();
    for is_sealed in [true, false] {
        let (number, random) = (Cell::new(0), RefCell::new(SplitMix64::new(7)));
        check(&cluster(is_sealed, move |link| {
            for _ in 0..3 {
                let now = number.get();
                number.set(now + 1);
                let (at, bytes) = FIELDS[now % FIELDS.len()];
                let value = [0, 1, u64::MAX, u64::MAX / 2, 1 << 32][now / FIELDS.len() % 5];
                forged(link, &mut random.borrow_mut(), |datagram, random| {
                    datagram[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                    // A seal from nowhere, or that of the datagram.
                    if random.below(2) == 0 {
                        let tag = datagram.len() - TAG_BYTES;
                        datagram[tag..].fill(0);
                    }
                });
            }
        }));
    }
}

#[test]
fn replayed_buckets_are_folded_once() {
    let _alone = alone();
    for is_sealed in [true, false] {
        let kept = RefCell::new(Vec::<(usize, Vec<u8>)>::new());
        let random = RefCell::new(SplitMix64::new(8));
        let cluster = cluster(is_sealed, move |link| {
            let (kept, random) = (&mut *kept.borrow_mut(), &mut *random.borrow_mut());
            kept.extend(link.flying(random));
            for _ in 0..3.min(kept.len()) {
                let (place, bytes) = &kept[random.below(kept.len() as u64) as usize];
                // To its lane, and to others.
                let (rank, lane) = PLACES[[*place, 0, 1, 2][random.below(4) as usize]];
                link.inject(rank, lane, bytes);
            }
        });
        check(&cluster);
        let counters = cluster.ranks.iter().map(|rank| &rank.state.counters);
        let doubled: u64 = counters
            .map(|all| all.doubled.load(Ordering::Relaxed))
            .sum();
        assert!(doubled > 0, "lanes count the buckets that come twice");
    }
}

#[test]
fn buckets_of_other_starts_are_refused() {
    let _alone = alone();
    for is_sealed in [true, false] {
        let late = LossyModel {
            late: 900,
            late_by: Duration::from_millis(5),
            ..LINK
        };
        let first = Cluster::new(2, &LANES, late, is_sealed);
        first.check(&mut SplitMix64::new(2), 1, 8, 1000);
        assert!(first.link.next_arrival().is_some(), "some are on their way");
        let again = Cluster::start(first.link.clone(), &LANES, 4, is_sealed);
        again.check(&mut SplitMix64::new(3), 4, 8, 1000);
        assert!(again.refused() > 0);
    }
}

#[test]
fn flood_takes_no_memory_and_changes_nothing() {
    let _alone = alone();
    let cluster = cluster(true, |link| {
        let bytes = [7; BUCKET_BYTES];
        for (rank, lane) in PLACES {
            (0..50).for_each(|_| link.inject(rank, lane, &bytes));
        }
    });
    let mut random = SplitMix64::new(9);
    cluster.check(&mut random, 2, 8, 500);
    assert!(cluster.refused() > 1000);
}
