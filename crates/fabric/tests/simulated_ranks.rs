//! What the simulation says of itself: one seed, one run; what breaks is told to all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Mutex;
use std::time::Duration;

use graphmill_fabric::{Fabric, FabricError, Network, SimFabric, all_gather, barrier, simulated};

/// What happens when ranks say their number to all, again and again: who heard it when.
fn run(seed: u64, ranks: usize, network: Network) -> (Vec<(usize, Duration)>, Vec<FabricError>) {
    let (heard, ends) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let rank = |fabric: SimFabric| {
        let said = [fabric.rank() as u8; 100];
        for _ in 0..20 {
            match all_gather(&fabric, &said, &|| Ok(())) {
                Ok(_) => {
                    let now = fabric.now();
                    heard.lock().unwrap().push((fabric.rank(), now));
                }
                Err(error) => {
                    ends.lock().unwrap().push(error);
                    return;
                }
            }
        }
        fabric.leave();
    };
    std::thread::scope(|scope| {
        for fabric in simulated(seed, ranks, network) {
            scope.spawn(|| rank(fabric));
        }
    });
    (heard.into_inner().unwrap(), ends.into_inner().unwrap())
}

#[test]
fn a_seed_is_a_run() {
    let runs: Vec<_> = (0..5)
        .map(|seed| {
            let first = run(seed, 5, Network::default());
            assert_eq!(first, run(seed, 5, Network::default()));
            assert_eq!((first.0.len(), first.1.len()), (100, 0));
            first
        })
        .collect();
    assert!(runs.iter().any(|run| *run != runs[0]), "seeds differ");
}

#[test]
fn a_rank_that_crashes_ends_all() {
    for seed in 0..20 {
        let network = Network {
            crash: Some((1, Duration::from_millis(seed))),
            ..Network::default()
        };
        let (_, ends) = run(seed, 4, network);
        assert_eq!(ends.len(), 4, "seed {seed}");
        let lost = |end: &FabricError| matches!(end, FabricError::Lost { rank: 1, cause } if cause == "it crashed");
        assert!(ends.iter().all(lost), "{ends:?}");
    }
}

#[test]
fn a_rank_that_goes_silent_ends_all_a_while_later() {
    for millis in 0..20 {
        let since = Duration::from_millis(millis);
        let network = Network {
            silent: Some((1, since)),
            ..Network::default()
        };
        let (heard, ends) = run(millis, 4, network);
        assert_eq!(ends.len(), 4, "from {since:?} on");
        for end in ends {
            let said = end.to_string();
            assert!(
                said.contains("rank 1 is lost: nothing was heard of it for 15 s"),
                "{said}"
            );
        }
        // What was under way before may still be heard of those that could do without the silent one.
        assert!(
            heard
                .iter()
                .all(|heard| heard.1 <= since + Duration::from_millis(10)),
            "{heard:?}"
        );
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_told() {
    let ends = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for fabric in simulated(7, 3, Network::default()) {
            let ends = &ends;
            scope.spawn(move || {
                // One does not come.
                let end = match fabric.rank() {
                    0 => loop {
                        if fabric.in_flight() == 0 {
                            let room = graphmill_raw::AlignedBuffer::zeroed(8).unwrap();
                            fabric.submit(
                                graphmill_fabric::Operation::Receive {
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
