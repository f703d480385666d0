//! The simulated disk fails when, where and how a test says, and is otherwise the same for the same seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "unwraps are how tests fail"
)]

use std::path::Path;

use crate::disks::byte_at;
use graphmill_storage::{
    Disk, Fault, FaultKind, MemoryBudget, On, Open, Operation, SimDisk, StorageError,
};

const PIECES: u64 = 8;

fn fault(kind: FaultKind, on: On, nth: u64, for_good: bool) -> Fault {
    Fault {
        kind,
        on,
        nth,
        for_good,
    }
}

/// Writes a file, syncs it, reads it back; the order in which the reads completed, and what they read.
fn job(disk: &SimDisk, name: &str) -> Result<(Vec<u64>, Vec<u8>), StorageError> {
    let budget = MemoryBudget::new(1 << 20);
    disk.create_dir_all(Path::new("/d"))?;
    let file = disk.open(&Path::new("/d").join(name), Open::Create)?;
    let mut queue = disk.queue(3)?;
    for offset in (0..PIECES).map(|piece| piece * 8192) {
        let mut buffer = budget.buffer("test", 8192)?;
        buffer
            .iter_mut()
            .enumerate()
            .for_each(|(i, byte)| *byte = byte_at(offset + i as u64));
        queue.submit(
            Operation::Write {
                file: file.clone(),
                offset,
                buffer,
                range: 0..8192,
            },
            offset,
        );
    }
    let mut error = None;
    while let Some(done) = queue.wait() {
        error = error.or(done.result.err());
    }
    assert_eq!(
        budget.available(),
        budget.total(),
        "buffers come back, whatever fails"
    );
    error.map_or(Ok(()), Err)?;
    queue.submit(Operation::Sync { file: file.clone() }, 0);
    queue.wait().map_or(Ok(0), |done| done.result)?;
    let mut order = Vec::new();
    let mut bytes = vec![0; 8192 * PIECES as usize];
    for offset in (0..PIECES).map(|piece| piece * 8192) {
        let buffer = budget.buffer("test", 8192)?;
        queue.submit(
            Operation::Read {
                file: file.clone(),
                offset,
                buffer,
                range: 0..8192,
            },
            offset,
        );
    }
    while let Some(done) = queue.wait() {
        let read = done.result?;
        let buffer = done.buffer.expect("a read has a buffer");
        bytes[done.token as usize..][..read].copy_from_slice(&buffer[..read]);
        order.push(done.token / 8192);
    }
    disk.write_small(&Path::new("/d").join(format!("{name}.done")), b"done")?;
    Ok((order, bytes))
}

fn right(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .enumerate()
        .all(|(i, &byte)| byte == byte_at(i as u64))
}

#[test]
fn completion_order_follows_the_seed() {
    let run = |seed| job(&SimDisk::new(seed), "file").unwrap();
    let orders: std::collections::BTreeSet<Vec<u64>> = (0..20)
        .map(|seed| {
            let (order, bytes) = run(seed);
            assert_eq!(run(seed).0, order, "seed {seed} gives one order");
            assert!(right(&bytes), "seed {seed}");
            order
        })
        .collect();
    assert!(orders.len() > 10, "seeds differ: {orders:?}");
    assert!(orders.iter().any(|order| !order.is_sorted()));
}

#[test]
fn fault_once_at_any_operation_then_succeeds() {
    let whole = SimDisk::new(1);
    job(&whole, "file").unwrap();
    let operations = whole.operations();
    assert!(operations >= 2 * PIECES + 4);
    for kind in [FaultKind::Eio, FaultKind::Enospc] {
        for nth in 1..=operations {
            let disk = SimDisk::new(1);
            disk.inject(fault(kind, On::Any, nth, false));
            let error = job(&disk, "file").unwrap_err();
            let text = error.to_string();
            assert!(text.contains("/d"), "operation {nth}: {text}");
            assert!(
                text.contains(if kind == FaultKind::Eio {
                    "os error 5"
                } else {
                    "os error 28"
                }),
                "{text}"
            );
            assert!(right(&job(&disk, "second").unwrap().1));
        }
    }
}

#[test]
fn permanent_fault_stays_until_healed() {
    let disk = SimDisk::new(1);
    job(&disk, "before").unwrap();
    disk.inject(fault(FaultKind::Enospc, On::Write, 3, true));
    assert!(job(&disk, "first").is_err());
    assert!(job(&disk, "second").is_err());
    disk.heal();
    job(&disk, "third").unwrap();
}

#[test]
fn fault_hits_its_kind_of_operation_only() {
    let disk = SimDisk::new(1);
    // Making the folder syncs, too.
    job(&disk, "before").unwrap();
    disk.inject(fault(FaultKind::Eio, On::Sync, 1, false));
    let error = job(&disk, "file").unwrap_err();
    assert!(
        matches!(error, StorageError::Transfer { action: "sync", .. }),
        "{error}"
    );
    disk.inject(fault(FaultKind::Eio, On::Name, 2, false));
    let error = job(&disk, "file").unwrap_err();
    assert!(
        matches!(error, StorageError::Path { action: "open", .. }),
        "{error}"
    );
    disk.inject(fault(FaultKind::Eio, On::Read, PIECES, false));
    let error = job(&disk, "second").unwrap_err();
    assert!(
        matches!(error, StorageError::Transfer { action: "read", .. }),
        "{error}"
    );
}

#[test]
fn short_reads_and_writes_are_continued() {
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        for nth in [1, 2, 4, 9] {
            disk.inject(fault(FaultKind::Short, On::Write, nth, false));
            disk.inject(fault(FaultKind::Short, On::Read, nth, false));
        }
        assert!(right(&job(&disk, "file").unwrap().1), "seed {seed}");
    }
}

#[test]
fn disk_without_progress_is_an_error() {
    // Every write moves a part of the rest, so the last page is never moved whole.
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        disk.inject(fault(FaultKind::Short, On::Write, 1, true));
        let result = job(&disk, "file");
        assert!(
            matches!(
                result,
                Err(StorageError::Transfer {
                    action: "write",
                    ..
                })
            ),
            "{result:?}"
        );
    }
}

#[test]
fn bit_flip_is_silent() {
    for on in [On::Read, On::Write] {
        let disk = SimDisk::new(1);
        disk.inject(fault(FaultKind::FlipBit, on, 2, false));
        let (_, bytes) = job(&disk, "file").unwrap();
        let flipped: u32 = (0..)
            .zip(&bytes)
            .map(|(i, byte)| (byte ^ byte_at(i)).count_ones())
            .sum();
        assert_eq!(flipped, 1, "{on:?}");
    }
    let disk = SimDisk::new(1);
    disk.write_small(Path::new("/small"), &[0; 100]).unwrap();
    disk.inject(fault(FaultKind::FlipBit, On::Read, 1, false));
    let flipped = |bytes: Vec<u8>| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
    assert_eq!(
        flipped(disk.read_small(Path::new("/small"), 100).unwrap()),
        1
    );
    assert_eq!(
        flipped(disk.read_small(Path::new("/small"), 100).unwrap()),
        0,
        "the file itself is whole"
    );
}

#[test]
fn read_sees_completed_writes_only() {
    // Submitted together, the read overtakes the write for some seeds.
    let first_bytes: std::collections::BTreeSet<u8> = (0..30)
        .map(|seed| {
            let disk = SimDisk::new(seed);
            let file = disk.open(Path::new("/file"), Open::Create).unwrap();
            disk.set_len(&file, 4096).unwrap();
            let budget = MemoryBudget::new(8192);
            let mut queue = disk.queue(2).unwrap();
            let mut written = budget.buffer("test", 4096).unwrap();
            written.fill(1);
            queue.submit(
                Operation::Write {
                    file: file.clone(),
                    offset: 0,
                    buffer: written,
                    range: 0..4096,
                },
                0,
            );
            let buffer = budget.buffer("test", 4096).unwrap();
            queue.submit(
                Operation::Read {
                    file,
                    offset: 0,
                    buffer,
                    range: 0..4096,
                },
                1,
            );
            let read = std::iter::from_fn(|| queue.wait())
                .find(|done| done.token == 1)
                .unwrap();
            read.buffer.unwrap()[0]
        })
        .collect();
    assert_eq!(first_bytes.len(), 2);
}
