//! What this machine gives: sequential direct reads through each backend, and the cost of running a job.
//!
//! `cargo bench -p graphmill-storage -- FILE [MIB]` reads FILE, which it first makes, of MIB (2048) MiB, if there is none.
#![allow(clippy::unwrap_used, reason = "a benchmark ends at its first error")]

use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{
    Clock, Disk, IoChoice, Job, JobError, MemoryBudget, Open, Operation, Step, SystemClock, Worker,
    WorkerPool, open_disk,
};

const CHUNK_BYTES: usize = 1 << 20;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let file = arguments
        .next()
        .unwrap_or_else(|| "target/rates.tmp".into());
    let mib = arguments.next().map_or(2048, |mib| mib.parse().unwrap());
    let disks: Vec<(&str, Arc<dyn Disk>)> = vec![
        ("uring", open_disk(IoChoice::Uring).unwrap()),
        ("threads", open_disk(IoChoice::Threads).unwrap()),
    ];
    let clock = SystemClock::new();
    if !disks[0].1.exists(Path::new(&file)).unwrap() {
        let seconds = write(&*disks[0].1, &clock, Path::new(&file), mib);
        println!(
            "write, uring, depth 8: {:.2} GB/s",
            gigabytes(mib) / seconds
        );
    }
    for round in 0..3 {
        for depth in [8, 16] {
            for (name, disk) in &disks {
                let (bytes, seconds) = read(&**disk, &clock, Path::new(&file), depth);
                println!(
                    "round {round}: read, {name}, depth {depth}: {:.2} GB/s",
                    bytes as f64 / 1e9 / seconds
                );
            }
        }
    }
    for count in [1, 2] {
        let workers = WorkerPool::threads(count, disks[0].1.clone()).unwrap();
        for round in 0..3 {
            let runs = 10_000;
            let began = clock.now();
            (0..runs).for_each(|_| workers.run(&Nothing).unwrap());
            println!(
                "round {round}: empty job, {count} workers: {:?}",
                (clock.now() - began) / runs
            );
        }
    }
}

struct Nothing;

impl Job for Nothing {
    fn step(&self, _: &mut Worker) -> Result<Step, JobError> {
        Ok(Step::Finished)
    }
}

fn gigabytes(mib: u64) -> f64 {
    (mib << 20) as f64 / 1e9
}

fn write(disk: &dyn Disk, clock: &SystemClock, path: &Path, mib: u64) -> f64 {
    let budget = MemoryBudget::new(1 << 30);
    let began = clock.now();
    let file = disk.open(path, Open::Create).unwrap();
    let mut queue = disk.queue(8).unwrap();
    let mut spare: Vec<_> = (0..8)
        .map(|_| budget.buffer("bench", CHUNK_BYTES).unwrap())
        .collect();
    for chunk in 0..mib {
        let mut buffer = spare.pop().unwrap_or_else(|| {
            let done = queue.wait().unwrap();
            done.result.unwrap();
            done.buffer.unwrap()
        });
        buffer.typed_mut::<u64>()[0] = chunk;
        queue.submit(
            Operation::Write {
                file: file.clone(),
                offset: chunk << 20,
                buffer,
                range: 0..CHUNK_BYTES,
            },
            0,
        );
    }
    while let Some(done) = queue.wait() {
        done.result.unwrap();
    }
    disk.sync(&file).unwrap();
    (clock.now() - began).as_secs_f64()
}

fn read(disk: &dyn Disk, clock: &SystemClock, path: &Path, depth: usize) -> (u64, f64) {
    let budget = MemoryBudget::new(1 << 30);
    let began = clock.now();
    let file = disk.open(path, Open::Read).unwrap();
    let length = file.len().unwrap();
    let mut queue = disk.queue(depth).unwrap();
    let mut next = 0;
    let mut bytes = 0;
    for _ in 0..depth {
        let buffer = budget.buffer("bench", CHUNK_BYTES).unwrap();
        queue.submit(
            Operation::Read {
                file: file.clone(),
                offset: next,
                buffer,
                range: 0..CHUNK_BYTES,
            },
            0,
        );
        next += CHUNK_BYTES as u64;
    }
    while let Some(done) = queue.wait() {
        bytes += done.result.unwrap() as u64;
        if next < length {
            let buffer = done.buffer.unwrap();
            queue.submit(
                Operation::Read {
                    file: file.clone(),
                    offset: next,
                    buffer,
                    range: 0..CHUNK_BYTES,
                },
                0,
            );
            next += CHUNK_BYTES as u64;
        }
    }
    (bytes, (clock.now() - began).as_secs_f64())
}
