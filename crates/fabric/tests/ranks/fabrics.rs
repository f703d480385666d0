//! What holds on every fabric: threads of one process, and ranks that take turns by a seed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use graphmill_fabric::{
    Channel, Fabric, FabricError, FabricOperation, FramedSender, NetworkModel, Shuffle, all_gather,
    all_reduce, barrier, local, receive_all, simulated,
};
use graphmill_raw::AlignedBuffer;

/// Returns fabrics of each kind, with this number of ranks.
fn fabrics(ranks: usize) -> Vec<Vec<Box<dyn Fabric>>> {
    fn boxed<F: Fabric + 'static>(fabrics: Vec<F>) -> Vec<Box<dyn Fabric>> {
        let boxed = |fabric| Box::new(fabric) as Box<dyn Fabric>;
        fabrics.into_iter().map(boxed).collect()
    }
    let mut all = vec![boxed(local(ranks, 1))];
    all.extend((0..20).map(|seed| boxed(simulated(seed, ranks, NetworkModel::default()))));
    all
}

/// Each rank on a thread of its own.
fn each<T: Send>(fabrics: Vec<Box<dyn Fabric>>, work: impl Fn(&dyn Fabric) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let start = |fabric: Box<dyn Fabric>| scope.spawn(move || work(&*fabric));
        let threads: Vec<_> = fabrics.into_iter().map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn patient() -> Result<(), FabricError> {
    Ok(())
}

fn frame(bytes: &[u8]) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(bytes.len()).unwrap();
    buffer.copy_from_slice(bytes);
    buffer
}

fn send(to: usize, channel: Channel, bytes: &[u8]) -> FabricOperation {
    FabricOperation::Send {
        to,
        channel,
        buffer: frame(bytes),
        range: 0..bytes.len(),
    }
}

fn receive(from: usize, channel: Channel, room: usize) -> FabricOperation {
    FabricOperation::Receive {
        from,
        channel,
        buffer: frame(&vec![0; room]),
    }
}

#[test]
fn all_gather_returns_bytes_in_rank_order() {
    for ranks in 1..10 {
        let said = |rank: usize| vec![rank as u8; rank * 30_000];
        let expected: Vec<Vec<u8>> = (0..ranks).map(said).collect();
        for fabrics in fabrics(ranks) {
            let heard = each(fabrics, |fabric| {
                let all = all_gather(fabric, &said(fabric.rank()), &patient).unwrap();
                barrier(fabric, &patient).unwrap();
                fabric.leave();
                all
            });
            assert!(heard.iter().all(|all| *all == expected), "{ranks}");
        }
    }
}

#[test]
fn frames_of_a_channel_arrive_in_order() {
    let (frames, channels) = (100_u64, 3);
    for fabrics in fabrics(2) {
        let sums = each(fabrics, |fabric| {
            let other = 1 - fabric.rank();
            for number in 0..frames * channels {
                let channel = (number % channels) as Channel;
                let operation = match fabric.rank() {
                    0 => send(other, channel, &number.to_le_bytes()),
                    _ => receive(other, channel, 16),
                };
                fabric.submit(operation, number);
            }
            let mut sum = 0;
            while fabric.in_flight() > 0 {
                let Some(completion) = fabric.wait(Duration::from_secs(1)) else {
                    continue;
                };
                assert_eq!(completion.result, Ok(8));
                let buffer = completion.buffer.unwrap();
                let number = u64::from_le_bytes(buffer[..8].try_into().unwrap());
                // The memory given first has the frame sent first.
                assert_eq!(number, completion.token);
                sum += number;
            }
            fabric.leave();
            sum
        });
        let all = frames * channels;
        assert_eq!(sums, [all * (all - 1) / 2; 2]);
    }
}

#[test]
fn frame_stays_with_its_sender_until_received() {
    for fabrics in fabrics(2) {
        each(fabrics, |fabric| {
            let gathered = |bytes: &[u8]| all_gather(fabric, bytes, &patient).unwrap();
            if fabric.rank() == 0 {
                let mut buffer = frame(b"bytes");
                buffer[0] = b'B';
                let operation = FabricOperation::Send {
                    to: 1,
                    channel: 0,
                    buffer,
                    range: 1..5,
                };
                fabric.submit(operation, 7);
                assert!(fabric.wait(Duration::from_millis(100)).is_none());
                assert_eq!(fabric.in_flight(), 1);
            } else {
                assert!(fabric.wait(Duration::from_millis(200)).is_none());
                fabric.submit(receive(0, 0, 4), 8);
            }
            let end = loop {
                if let Some(end) = fabric.wait(Duration::from_secs(1)) {
                    break end;
                }
            };
            assert_eq!(end.result, Ok(4));
            if fabric.rank() == 1 {
                assert_eq!((end.token, &end.buffer.unwrap()[..]), (8, &b"ytes"[..]));
            }
            assert_eq!(gathered(b"x"), [b"x", b"x"]);
            fabric.leave();
        });
    }
}

#[test]
fn failed_rank_is_named_to_all() {
    for fabrics in fabrics(4) {
        let ends = each(fabrics, |fabric| {
            if fabric.rank() == 2 {
                fabric.fail("its disk is full");
                return None;
            }
            barrier(fabric, &patient).err()
        });
        let lost = FabricError::Lost {
            rank: 2,
            cause: "its disk is full".into(),
        };
        for (rank, end) in ends.into_iter().enumerate() {
            assert_eq!(end, (rank != 2).then(|| lost.clone()), "{rank}");
        }
    }
}

#[test]
fn rank_that_drops_its_fabric_is_lost() {
    for fabrics in fabrics(3) {
        let ends = each(fabrics, |fabric| match fabric.rank() {
            1 => None,
            _ => barrier(fabric, &patient).err(),
        });
        for rank in [0, 2] {
            let end = ends[rank].clone().unwrap();
            assert!(matches!(end, FabricError::Lost { rank: 1, .. }), "{end}");
        }
    }
}

#[test]
fn frames_too_long_or_misaddressed_are_errors() {
    for fabrics in fabrics(1) {
        each(fabrics, |fabric| {
            let beyond = FabricOperation::Send {
                to: 0,
                channel: 0,
                buffer: frame(&[0; 4]),
                range: 0..5,
            };
            let wait = || fabric.wait(Duration::from_secs(1)).unwrap();
            for operation in [send(1, 0, &[0; 4]), beyond, receive(3, 0, 0)] {
                fabric.submit(operation, 0);
                let end = wait().result;
                assert!(matches!(end, Err(FabricError::Misuse { .. })), "{end:?}");
            }
            fabric.submit(send(0, 0, &[0; 5]), 0);
            fabric.submit(receive(0, 0, 4), 1);
            assert_eq!(wait().result, Ok(5));
            let end = wait().result;
            assert!(matches!(end, Err(FabricError::TooLong { from: 0, .. })));
            fabric.leave();
        });
    }
}

#[test]
fn receive_from_a_finished_rank_is_an_error() {
    for fabrics in fabrics(2) {
        each(fabrics, |fabric| {
            barrier(fabric, &patient).unwrap();
            if fabric.rank() == 1 {
                fabric.submit(receive(0, 0, 8), 0);
                let end = loop {
                    if let Some(end) = fabric.wait(Duration::from_secs(1)) {
                        break end.result;
                    }
                };
                assert_eq!(end, Err(FabricError::Left { rank: 0 }));
            }
            fabric.leave();
        });
    }
}

#[test]
fn shuffle_delivers_while_all_send() {
    for ranks in 1..6 {
        // Simulated ranks have one thread each.
        for fabrics in fabrics(ranks).into_iter().take(1) {
            let heard = each(fabrics, |fabric| {
                let courier = Shuffle::new(fabric, 100).unwrap();
                let (rank, mut came) = (fabric.rank(), vec![Vec::new(); ranks]);
                std::thread::scope(|scope| {
                    let threads = [0, 1].map(|thread| {
                        let courier = &courier;
                        scope.spawn(move || {
                            for number in (thread..200).step_by(2) {
                                let to = (rank + number % ranks) % ranks;
                                if to != rank {
                                    let bytes = vec![number as u8; number % 101];
                                    courier.send(to, number as u64, &bytes).unwrap();
                                }
                            }
                        })
                    });
                    let courier = &courier;
                    scope.spawn(move || {
                        threads
                            .into_iter()
                            .for_each(|thread| thread.join().unwrap());
                        courier.end().unwrap();
                    });
                    let take = |from: usize, label: u64, bytes: &[u8]| {
                        assert_eq!(bytes, vec![label as u8; label as usize % 101]);
                        came[from].push(label as usize);
                        Ok::<_, FabricError>(())
                    };
                    courier.take_in(take, &patient).unwrap();
                });
                barrier(fabric, &patient).unwrap();
                fabric.leave();
                came
            });
            for (rank, came) in heard.into_iter().enumerate() {
                for (from, mut came) in came.into_iter().enumerate() {
                    came.sort_unstable();
                    let for_me = |number: &usize| (from + number % ranks) % ranks == rank;
                    let expected = (0..200).filter(|number| from != rank && for_me(number));
                    assert!(came.into_iter().eq(expected), "{from} to {rank}");
                }
            }
        }
    }
}

#[test]
fn shuffle_ends_if_a_receiver_fails() {
    for fabrics in fabrics(3).into_iter().take(1) {
        let outcomes = each(fabrics, |fabric| {
            let courier = Shuffle::new(fabric, 8).unwrap();
            let outcome = std::thread::scope(|scope| {
                let courier = &courier;
                let sender = scope.spawn(move || {
                    let to = (fabric.rank() + 1) % 3;
                    (0..1000).try_for_each(|number| courier.send(to, number, b"parcel"))?;
                    courier.end()
                });
                let take = |_, label, _: &[u8]| match fabric.rank() {
                    1 if label == 50 => Err(FabricError::Misuse { what: "full" }),
                    _ => Ok(()),
                };
                let taken = courier.take_in(take, &patient);
                if let Err(error) = &taken {
                    fabric.fail(&error.to_string());
                }
                sender.join().unwrap().and(taken)
            });
            fabric.leave();
            outcome
        });
        assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    }
}

#[test]
fn all_reduce_folds_elementwise() {
    for (ranks, count) in [(1, 3), (2, 0), (2, 1), (3, 2), (4, 1000), (5, 40_003)] {
        let number = |rank: usize, place: usize| (rank * rank + 1) as u64 * place as u64;
        for fabrics in fabrics(ranks).into_iter().take(4) {
            let folded = each(fabrics, |fabric| {
                let mine = |place| number(fabric.rank(), place);
                let mut sums: Vec<u64> = (0..count).map(mine).collect();
                let mut most = sums.clone();
                all_reduce(fabric, &mut sums, |a, b| a + b, &patient).unwrap();
                all_reduce(fabric, &mut most, u64::max, &patient).unwrap();
                fabric.leave();
                (sums, most)
            });
            let sum = |place| (0..ranks).map(|rank| number(rank, place)).sum::<u64>();
            for (sums, most) in folded {
                assert!(sums.into_iter().eq((0..count).map(sum)));
                assert!(
                    most.into_iter()
                        .eq((0..count).map(|place| number(ranks - 1, place)))
                );
            }
        }
    }
}

#[test]
fn stream_bytes_arrive_in_order() {
    for bytes in [0, 1, 65_535, 65_536, 300_000] {
        let all: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        for fabrics in fabrics(2).into_iter().take(4) {
            let came = each(fabrics, |fabric| {
                let mut came = Vec::<u8>::new();
                if fabric.rank() == 0 {
                    let take = |bytes: &[u8]| {
                        came.extend(bytes);
                        Ok::<_, FabricError>(())
                    };
                    receive_all(fabric, 1, &patient, take).unwrap();
                } else {
                    let mut flow = FramedSender::new(fabric, 0);
                    for part in all.chunks(1000) {
                        flow.put(part, &patient).unwrap();
                    }
                    flow.end(&patient).unwrap();
                }
                fabric.leave();
                came
            });
            assert!(came[0] == all, "{bytes}");
        }
    }
}
