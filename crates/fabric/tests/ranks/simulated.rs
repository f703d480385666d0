//! The simulated network: one seed is one run, and each rank hears of a fault in its time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use graphmill_fabric::{
    Fabric, FabricError, FabricOperation, NetworkModel, SimFabric, all_gather, barrier, simulated,
};
use graphmill_raw::{AlignedBuffer, SplitMix64};

/// What became of ranks that say their number to all, again and again.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Who heard all, and when.
    heard: Vec<(usize, Duration)>,
    /// Who ended by an error, and when.
    ends: Vec<(usize, Duration, FabricError)>,
}

fn run(seed: u64, ranks: usize, network: NetworkModel) -> Outcome {
    let outcome = Mutex::new(Outcome::default());
    let rank = |fabric: SimFabric| {
        let (rank, said) = (fabric.rank(), [fabric.rank() as u8; 100]);
        for _ in 0..20 {
            let gathered = all_gather(&fabric, &said, &|| Ok(()));
            let now = fabric.now();
            if let Err(error) = gathered {
                assert!(fabric.lost_flag().unwrap().load(Ordering::Relaxed));
                fabric.fail(&format!("rank {rank} got no further"));
                outcome.lock().unwrap().ends.push((rank, now, error));
                break;
            }
            outcome.lock().unwrap().heard.push((rank, now));
        }
        // A rank that failed is lost all the same.
        fabric.leave();
    };
    std::thread::scope(|scope| {
        for fabric in simulated(seed, ranks, network) {
            scope.spawn(|| rank(fabric));
        }
    });
    outcome.into_inner().unwrap()
}

const RANKS: usize = 4;

/// A rank, another one, and a time before ranks have said all, by a seed.
fn drawn(seed: u64) -> ([usize; 2], Duration) {
    let mut random = SplitMix64::new(seed);
    let rank = random.below(RANKS as u64) as usize;
    let other = (rank + 1 + random.below(RANKS as u64 - 1) as usize) % RANKS;
    let at = Duration::from_nanos(random.below(10_000_000));
    ([rank, other], at)
}

/// The same network with a rank that crashes, a connection that breaks, or a rank that goes silent.
fn faulty([rank, other]: [usize; 2], at: Duration) -> [NetworkModel; 3] {
    let sound = NetworkModel::default();
    [
        NetworkModel {
            crashes: [Some((rank, at)), None],
            ..sound
        },
        NetworkModel {
            broken: Some(([rank, other], at)),
            ..sound
        },
        NetworkModel {
            silent: Some((rank, at)),
            ..sound
        },
    ]
}

#[test]
fn seed_fixes_a_run() {
    let runs: Vec<_> = (0..5)
        .map(|seed| {
            let first = run(seed, 5, NetworkModel::default());
            assert_eq!(first, run(seed, 5, NetworkModel::default()));
            assert_eq!((first.heard.len(), first.ends.len()), (100, 0));
            first
        })
        .collect();
    assert!(runs.iter().any(|run| *run != runs[0]), "seeds differ");
}

#[test]
fn seed_fixes_a_run_with_faults() {
    for seed in 0..10 {
        let (pair, at) = drawn(seed);
        let sound = run(seed, RANKS, NetworkModel::default());
        for network in faulty(pair, at) {
            let first = run(seed, RANKS, network);
            assert_eq!(first, run(seed, RANKS, network), "seed {seed}");
            let before = |outcome: &Outcome| {
                let heard = outcome.heard.iter().filter(|(_, when)| *when < at);
                heard.copied().collect::<Vec<_>>()
            };
            assert_eq!(before(&first), before(&sound), "seed {seed}, {network:?}");
        }
    }
}

#[test]
fn crashed_rank_is_named_by_all() {
    let mut apart = 0;
    for seed in 0..60 {
        let (pair, at) = drawn(seed);
        let [network, ..] = faulty(pair, at);
        let Outcome { ends, .. } = run(seed, RANKS, network);
        assert_eq!(ends.len(), RANKS, "seed {seed}: {ends:?}");
        let mut told = Vec::new();
        for (rank, when, error) in &ends {
            let (rank_lost, cause) = (pair[0], "it crashed".to_string());
            let lost = FabricError::Lost {
                rank: rank_lost,
                cause,
            };
            assert_eq!(*error, lost, "seed {seed}, rank {rank}");
            if *rank == rank_lost {
                assert_eq!(*when, at, "seed {seed}");
            } else {
                told.push(*when);
            }
        }
        let soon = at..=at + network.delay_max;
        assert!(
            told.iter().all(|when| soon.contains(when)),
            "seed {seed}: {at:?}, {ends:?}"
        );
        apart += usize::from(told[0] != told[1] && told[1] != told[2]);
    }
    assert!(apart > 30, "{apart} times all were told at other times");
}

#[test]
fn broken_connection_ends_all_and_names_its_ends() {
    let mut named = [0; 2];
    let mut apart = 0;
    for seed in 0..60 {
        let (pair, at) = drawn(seed);
        let [_, network, _] = faulty(pair, at);
        let Outcome { ends, .. } = run(seed, RANKS, network);
        assert_eq!(ends.len(), RANKS, "seed {seed}: {ends:?}");
        let mut told = Vec::new();
        for (rank, when, error) in &ends {
            let FabricError::Lost { rank: lost, cause } = error else {
                panic!("seed {seed}, rank {rank}: {error}");
            };
            assert_eq!(cause, "the connection to it broke", "seed {seed}");
            match pair.iter().position(|end| end == rank) {
                Some(end) => assert_eq!((*when, *lost), (at, pair[1 - end]), "seed {seed}"),
                None => {
                    let end = pair.iter().position(|end| end == lost);
                    named[end.unwrap()] += 1;
                    told.push(*when);
                }
            }
        }
        let soon = at..=at + network.delay_max;
        assert!(
            told.iter().all(|when| soon.contains(when)),
            "seed {seed}: {at:?}, {ends:?}"
        );
        apart += usize::from(told[0] != told[1]);
    }
    assert!(named.iter().all(|times| *times > 20), "{named:?}");
    assert!(apart > 30, "{apart} times the others heard at other times");
}

#[test]
fn silent_rank_ends_all_after_the_timeout() {
    for seed in 0..60 {
        let (pair, since) = drawn(seed);
        let [.., network] = faulty(pair, since);
        let Outcome { heard, ends } = run(seed, RANKS, network);
        assert_eq!(ends.len(), RANKS, "seed {seed}: {ends:?}");
        for (_, when, end) in ends {
            let cause = "nothing was heard of it for 15 s".to_string();
            let lost = FabricError::Lost {
                rank: pair[0],
                cause,
            };
            assert_eq!((when - since, end), (Duration::from_secs(15), lost));
        }
        // What was under way before may still be heard of those that could do without the silent one.
        let soon = since + Duration::from_millis(10);
        assert!(heard.iter().all(|(_, when)| *when <= soon), "{heard:?}");
    }
}

#[test]
fn silent_rank_neither_sends_nor_receives_failures() {
    let (silent, full) = (1, "its disk is full");
    for failing in [silent, 2] {
        let network = NetworkModel {
            silent: Some((silent, Duration::ZERO)),
            ..NetworkModel::default()
        };
        let end = |fabric: SimFabric| {
            if fabric.rank() == failing {
                fabric.fail(full);
            }
            barrier::<FabricError>(&fabric, &|| Ok(())).unwrap_err()
        };
        let ends = std::thread::scope(|scope| {
            let fabrics = simulated(failing as u64, RANKS, network).into_iter();
            let ranks: Vec<_> = fabrics.map(|of| scope.spawn(|| end(of))).collect();
            let ends = ranks.into_iter().map(|rank| rank.join().unwrap());
            ends.collect::<Vec<_>>()
        });
        for (rank, end) in ends.into_iter().enumerate() {
            let hears = rank == failing || ![rank, failing].contains(&silent);
            let (rank, cause) = match hears {
                true => (failing, full),
                false => (silent, "nothing was heard of it for 15 s"),
            };
            let cause = cause.to_string();
            assert_eq!(end, FabricError::Lost { rank, cause });
        }
    }
}

#[test]
fn frames_in_flight_are_lost_on_a_broken_connection() {
    let network = NetworkModel {
        delay_max: Duration::from_secs(1),
        broken: Some(([0, 1], Duration::from_nanos(1))),
        ..NetworkModel::default()
    };
    let work = |fabric: SimFabric| {
        let (other, channel) = (1 - fabric.rank(), 0);
        for token in 0..10 {
            let buffer = AlignedBuffer::zeroed(8).unwrap();
            let operation = match fabric.rank() {
                0 => FabricOperation::Send {
                    to: other,
                    channel,
                    buffer,
                    range: 0..8,
                },
                _ => FabricOperation::Receive {
                    from: other,
                    channel,
                    buffer,
                },
            };
            fabric.submit(operation, token);
        }
        while fabric.in_flight() > 0 {
            let end = fabric.wait(Duration::from_secs(1)).unwrap();
            let lost = end.result.unwrap_err();
            assert!(matches!(lost, FabricError::Lost { rank, .. } if rank == other));
        }
        assert_eq!(fabric.now(), Duration::from_nanos(1));
    };
    std::thread::scope(|scope| {
        for fabric in simulated(5, 2, network) {
            scope.spawn(move || work(fabric));
        }
    });
}

#[test]
fn faults_after_the_end_are_ignored() {
    for network in faulty([1, 2], Duration::from_secs(3600)) {
        let Outcome { heard, ends } = run(3, RANKS, network);
        assert_eq!((heard.len(), ends.len()), (20 * RANKS, 0), "{ends:?}");
    }
}

#[test]
fn rank_that_has_left_is_not_lost() {
    for network in faulty([2, 0], Duration::from_millis(1)) {
        let work = |fabric: SimFabric| {
            if fabric.rank() != 2 {
                assert!(fabric.wait(Duration::from_secs(20)).is_none());
                assert_eq!(fabric.lost(), None, "{network:?}");
            }
            fabric.leave();
        };
        std::thread::scope(|scope| {
            for fabric in simulated(4, RANKS, network) {
                scope.spawn(move || work(fabric));
            }
        });
    }
}

#[test]
fn deadlock_of_ranks_is_an_error() {
    let ends = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for fabric in simulated(7, 3, NetworkModel::default()) {
            let ends = &ends;
            scope.spawn(move || {
                // One does not come.
                let end = match fabric.rank() {
                    0 => loop {
                        if fabric.in_flight() == 0 {
                            let room = AlignedBuffer::zeroed(8).unwrap();
                            fabric.submit(
                                FabricOperation::Receive {
                                    from: 1,
                                    channel: 0,
                                    buffer: room,
                                },
                                0,
                            );
                        }
                        if let Some(end) = fabric.wait(Duration::from_millis(10)) {
                            break end.result.map(drop);
                        }
                    },
                    _ => barrier(&fabric, &|| Ok(())),
                };
                ends.lock().unwrap().push(end);
            });
        }
    });
    for end in ends.into_inner().unwrap() {
        assert!(end.unwrap_err().to_string().contains("seed 7"));
    }
}
