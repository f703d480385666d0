//! Buckets over a link that loses, doubles, delays and changes datagrams: every message is folded once, whatever happens.

use std::time::Duration;

use graphmill_fabric::bucket::LossyModel;
use graphmill_raw::SplitMix64;

use crate::alone;
use crate::cluster::{Cluster, LINK};

#[test]
fn fold_every_message_once() {
    let _alone = alone();
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
fn put_jumbo_messages_together() {
    let _alone = alone();
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
fn take_little_longer_than_others() {
    let _alone = alone();
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
