//! Bytes written through a queue read back on every disk, at every depth, in any order of completion.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "unwraps are how tests fail"
)]

use crate::disks::{all, byte_at, file_of, read};
use graphmill_storage::{MemoryBudget, Open, Operation, StorageError};

#[test]
fn file_of_any_length_round_trips_at_any_depth() {
    for place in all() {
        for (i, length) in [1, 4095, 4096, 4097, 65536, 300_001]
            .into_iter()
            .enumerate()
        {
            let file = file_of(&place, &format!("file-{i}"), length, 16384);
            assert_eq!(file.len().unwrap(), length, "{}", place.name);
            let file = place.disk.open(file.path(), Open::Read).unwrap();
            for depth in [1, 3, 64] {
                let budget = MemoryBudget::new(1 << 30);
                let mut queue = place.disk.queue(depth).unwrap();
                let mut submitted = 0;
                for offset in (0..length + 20_000).step_by(8192) {
                    let buffer = budget.buffer("test", 3 * 4096).unwrap();
                    queue.submit(
                        Operation::Read {
                            file: file.clone(),
                            offset,
                            buffer,
                            range: 4096..3 * 4096,
                        },
                        offset,
                    );
                    submitted += 1;
                }
                assert_eq!(queue.in_flight(), submitted);
                while let Some(done) = queue.wait() {
                    let offset = done.token;
                    let read = done.result.unwrap();
                    assert_eq!(
                        read as u64,
                        length.saturating_sub(offset).min(8192),
                        "{} at {offset} of {length}",
                        place.name
                    );
                    let buffer = done.buffer.unwrap();
                    let right = |(i, &byte): (usize, &u8)| byte == byte_at(offset + i as u64);
                    assert!(
                        buffer[4096..][..read].iter().enumerate().all(right),
                        "{} at {offset}",
                        place.name
                    );
                    assert!(
                        buffer[..4096].iter().all(|&byte| byte == 0),
                        "bytes outside the range are untouched"
                    );
                    submitted -= 1;
                }
                assert_eq!((submitted, queue.in_flight()), (0, 0));
                assert!(queue.poll().is_none() && queue.wait().is_none());
                queue.block();
                assert_eq!(budget.available(), budget.total(), "every buffer came back");
            }
        }
    }
}

#[test]
fn poll_never_waits_and_block_keeps_the_completion() {
    for place in all() {
        let file = file_of(&place, "file", 8192, 8192);
        let mut queue = place.disk.queue(2).unwrap();
        let buffer = MemoryBudget::new(4096).buffer("test", 4096).unwrap();
        queue.submit(
            Operation::Read {
                file: file.clone(),
                offset: 4096,
                buffer,
                range: 0..4096,
            },
            5,
        );
        queue.block();
        assert_eq!(queue.in_flight(), 1);
        let done = std::iter::repeat_with(|| queue.poll())
            .flatten()
            .next()
            .unwrap();
        assert_eq!((done.token, done.result.unwrap()), (5, 4096));
        assert_eq!(done.buffer.unwrap()[0], byte_at(4096));
    }
}

#[test]
fn syncs_and_empty_transfers_complete() {
    for place in all() {
        let file = file_of(&place, "file", 4096, 4096);
        let mut queue = place.disk.queue(2).unwrap();
        queue.submit(Operation::Sync { file: file.clone() }, 1);
        let buffer = MemoryBudget::new(4096).buffer("test", 4096).unwrap();
        queue.submit(
            Operation::Write {
                file: file.clone(),
                offset: 1 << 40,
                buffer,
                range: 4096..4096,
            },
            2,
        );
        let mut tokens = Vec::new();
        while let Some(done) = queue.wait() {
            assert_eq!(done.result.unwrap(), 0);
            tokens.push((done.token, done.buffer.is_some()));
        }
        tokens.sort_unstable();
        assert_eq!(tokens, [(1, false), (2, true)]);
        assert_eq!(file.len().unwrap(), 4096);
        place.disk.sync(&file).unwrap();
    }
}

#[test]
fn queue_dropped_in_flight_frees_its_memory() {
    for place in all() {
        let file = file_of(&place, "file", 1 << 20, 1 << 18);
        let budget = MemoryBudget::new(1 << 20);
        let mut queue = place.disk.queue(3).unwrap();
        for offset in (0..1 << 20).step_by(1 << 16) {
            let buffer = budget.buffer("test", 1 << 16).unwrap();
            queue.submit(
                Operation::Read {
                    file: file.clone(),
                    offset,
                    buffer,
                    range: 0..1 << 16,
                },
                offset,
            );
        }
        drop(queue);
        assert_eq!(budget.available(), 1 << 20, "{}", place.name);
    }
}

#[test]
fn misaligned_or_outside_operation_is_refused() {
    for place in all() {
        let file = file_of(&place, "file", 4096, 4096);
        let mut queue = place.disk.queue(2).unwrap();
        let cases = [
            (1, 0..4096),
            (0, 1..4097),
            (0, 0..100),
            (0, 4096..12288),
            (u64::MAX - 4095, 0..4096),
            (1 << 63, 0..4096),
        ];
        #[expect(clippy::reversed_empty_ranges, reason = "it is the case tested")]
        for (offset, range) in cases.into_iter().chain([(0, 8192..4096)]) {
            let buffer = MemoryBudget::new(8192).buffer("test", 8192).unwrap();
            queue.submit(
                Operation::Write {
                    file: file.clone(),
                    offset,
                    buffer,
                    range: range.clone(),
                },
                3,
            );
            let done = queue.wait().unwrap();
            assert!(
                matches!(done.result, Err(StorageError::Misaligned { .. })),
                "{} {offset} {range:?}",
                place.name
            );
            assert!(done.buffer.is_some());
        }
        assert_eq!(file.len().unwrap(), 4096, "nothing was written");
    }
}

#[test]
fn error_names_file_operation_and_offset() {
    for place in all()
        .into_iter()
        .filter(|place| !place.name.starts_with("sim"))
    {
        let file = file_of(&place, "file", 4096, 4096);
        let file = place.disk.open(file.path(), Open::Read).unwrap();
        let mut queue = place.disk.queue(2).unwrap();
        let buffer = MemoryBudget::new(8192).buffer("test", 8192).unwrap();
        queue.submit(
            Operation::Write {
                file: file.clone(),
                offset: 12288,
                buffer,
                range: 0..8192,
            },
            3,
        );
        let done = queue.wait().unwrap();
        assert!(
            done.buffer.is_some(),
            "the buffer comes back with the error"
        );
        let text = done.result.unwrap_err().to_string();
        for fact in [
            "write",
            &file.path().display().to_string(),
            "12288",
            "8192",
            "Bad file descriptor",
        ] {
            assert!(text.contains(fact), "{text}");
        }
    }
}

#[test]
fn file_of_another_disk_is_refused() {
    let places = all();
    let (system, sim) = (&places[0], &places[places.len() - 1]);
    let file = file_of(sim, "file", 4096, 4096);
    let mut queue = system.disk.queue(1).unwrap();
    queue.submit(Operation::Sync { file: file.clone() }, 0);
    assert!(matches!(
        queue.wait().unwrap().result,
        Err(StorageError::ForeignFile { .. })
    ));
    assert!(matches!(
        system.disk.set_len(&file, 0),
        Err(StorageError::ForeignFile { .. })
    ));
    assert!(matches!(
        system.disk.sync(&file),
        Err(StorageError::ForeignFile { .. })
    ));
}

#[test]
fn file_system_without_direct_io_is_read() {
    // The kernel's own files take no direct I/O; this one is the same at every read.
    let path = std::path::Path::new("/proc/version");
    let expected = std::fs::read_to_string(path).unwrap();
    for place in all()
        .into_iter()
        .filter(|place| !place.name.starts_with("sim"))
    {
        let file = place.disk.open(path, Open::Read).unwrap();
        let mut queue = place.disk.queue(1).unwrap();
        assert_eq!(
            read(queue.as_mut(), &file, 0, 4096),
            expected.as_bytes(),
            "{}",
            place.name
        );
    }
}

#[test]
fn queue_outlives_the_submitting_thread() {
    for place in all() {
        let file = file_of(&place, "file", 1 << 16, 1 << 16);
        let update = place.disk.open(file.path(), Open::Update).unwrap();
        let mut queue = place.disk.queue(8).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for offset in (0..1 << 16).step_by(4096) {
                    let buffer = MemoryBudget::new(4096).buffer("test", 4096).unwrap();
                    let file = file.clone();
                    queue.submit(
                        Operation::Read {
                            file,
                            offset,
                            buffer,
                            range: 0..4096,
                        },
                        offset,
                    );
                }
                // Writes that extend a file take the kernel's slow way, on threads of its own.
                for offset in (1 << 20..2 << 20).step_by(1 << 16) {
                    let buffer = MemoryBudget::new(1 << 16).buffer("test", 1 << 16).unwrap();
                    let file = update.clone();
                    queue.submit(
                        Operation::Write {
                            file,
                            offset,
                            buffer,
                            range: 0..1 << 16,
                        },
                        offset,
                    );
                }
            });
        });
        let mut taken = 0;
        while let Some(done) = queue.wait() {
            let bytes = if done.token < 1 << 20 { 4096 } else { 1 << 16 };
            assert_eq!(done.result.unwrap(), bytes, "{}", place.name);
            assert!(bytes > 4096 || done.buffer.unwrap()[0] == byte_at(done.token));
            taken += 1;
        }
        assert_eq!(taken, 32, "{}", place.name);
        assert_eq!(file.len().unwrap(), 2 << 20);
    }
}
