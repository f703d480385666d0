//! Jobs run to their end on threads and in simulation; errors and panics end them; waiting workers wake up.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "unwraps are how tests fail"
)]

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use crate::disks::{all, byte_at, file_of};
use graphmill_storage::{
    FileHandle, IoChoice, Job, JobError, MemoryBudget, Open, Operation, SimDisk, Step,
    StorageError, Worker, WorkerPool, open_disk,
};

/// A job made of a function.
struct Steps<F>(F);

impl<F: Fn(&mut Worker) -> Result<Step, JobError> + Sync> Job for Steps<F> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        (self.0)(worker)
    }
}

/// One, two and five workers on threads, and three in simulation with several seeds.
fn all_workers() -> Vec<WorkerPool> {
    let threads = [1, 2, 5]
        .map(|count| WorkerPool::threads(count, open_disk(IoChoice::Threads).unwrap()).unwrap());
    let simulated =
        (0..5).map(|seed| WorkerPool::simulated(seed, 3, Arc::new(SimDisk::new(seed))).unwrap());
    threads.into_iter().chain(simulated).collect()
}

#[test]
fn job_step_runs_once() {
    for workers in all_workers() {
        for parts in [0, 1, 1000] {
            let next = AtomicUsize::new(0);
            let done: Vec<AtomicU64> = (0..parts).map(|_| AtomicU64::new(0)).collect();
            let finished = AtomicUsize::new(0);
            let job = Steps(|worker: &mut Worker| {
                assert!(worker.index < workers.count());
                match done.get(next.fetch_add(1, SeqCst)) {
                    Some(part) => {
                        part.fetch_add(1, SeqCst);
                        Ok(Step::Worked)
                    }
                    None => {
                        finished.fetch_add(1, SeqCst);
                        Ok(Step::Finished)
                    }
                }
            });
            workers.run(&job).unwrap();
            assert!(done.iter().all(|part| part.load(SeqCst) == 1));
            assert_eq!(
                finished.load(SeqCst),
                workers.count(),
                "each worker finishes once"
            );
        }
    }
}

#[test]
fn first_error_ends_the_job_and_is_returned() {
    #[derive(Debug, thiserror::Error, PartialEq)]
    #[error("planted at {0}")]
    struct Planted(u64);
    for workers in all_workers() {
        let steps = AtomicU64::new(0);
        let job = Steps(|_: &mut Worker| match steps.fetch_add(1, SeqCst) {
            20 => Err(Box::new(Planted(20)) as JobError),
            // Without the error no worker would ever finish.
            _ => Ok(Step::Worked),
        });
        let Err(StorageError::Job(error)) = workers.run(&job) else {
            panic!("no error")
        };
        assert_eq!(error.downcast_ref(), Some(&Planted(20)));
        workers
            .run(&Steps(|_: &mut Worker| Ok(Step::Finished)))
            .unwrap();
    }
}

#[test]
fn panic_becomes_an_error_and_the_pool_survives() {
    for workers in all_workers() {
        let last = workers.count() - 1;
        let job = Steps(|worker: &mut Worker| {
            assert!(worker.index != last, "planted {}", 7);
            Ok(Step::Waiting)
        });
        match workers.run(&job) {
            Err(StorageError::Panic { worker, message }) => {
                assert_eq!((worker, message.as_str()), (last, "planted 7"))
            }
            other => panic!("{other:?}"),
        }
        workers
            .run(&Steps(|_: &mut Worker| Ok(Step::Finished)))
            .unwrap();
    }
}

#[test]
fn waiting_worker_wakes_when_others_work() {
    for workers in all_workers() {
        // A relay: part n is for worker n mod count, and only after part n - 1.
        let parts = 300;
        let next = AtomicUsize::new(0);
        let job = Steps(|worker: &mut Worker| {
            let part = next.load(SeqCst);
            if part >= parts {
                return Ok(Step::Finished);
            }
            if part % workers.count() != worker.index {
                return Ok(Step::Waiting);
            }
            next.store(part + 1, SeqCst);
            Ok(Step::Worked)
        });
        workers.run(&job).unwrap();
        assert_eq!(next.load(SeqCst), parts);
    }
}

#[test]
fn waiting_worker_wakes_on_completion() {
    /// Each worker reads its share of the file and adds up its bytes.
    struct Reduce {
        file: FileHandle,
        budget: MemoryBudget,
        next: AtomicU64,
        sum: AtomicU64,
        waited: AtomicBool,
    }
    impl Job for Reduce {
        fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
            if let Some(done) = worker.queue.poll() {
                let read = done.result?;
                let buffer = done.buffer.ok_or("no buffer")?;
                self.sum.fetch_add(
                    buffer[..read].iter().map(|&byte| u64::from(byte)).sum(),
                    SeqCst,
                );
                return Ok(Step::Worked);
            }
            let offset = self.next.fetch_add(4096, SeqCst);
            if offset < self.file.len()? {
                let buffer = self.budget.buffer("test", 4096)?;
                worker.queue.submit(
                    Operation::Read {
                        file: self.file.clone(),
                        offset,
                        buffer,
                        range: 0..4096,
                    },
                    offset,
                );
                return Ok(Step::Worked);
            }
            if worker.queue.in_flight() == 0 {
                return Ok(Step::Finished);
            }
            self.waited.store(true, SeqCst);
            Ok(Step::Waiting)
        }
    }
    let length = 200_001;
    let expected: u64 = (0..length).map(|i| u64::from(byte_at(i))).sum();
    for place in all() {
        let file = file_of(&place, "file", length, 65536);
        let file = place.disk.open(file.path(), Open::Read).unwrap();
        for workers in [
            WorkerPool::threads(3, place.disk.clone()).unwrap(),
            WorkerPool::simulated(9, 3, place.disk.clone()).unwrap(),
        ] {
            let job = Reduce {
                file: file.clone(),
                budget: MemoryBudget::new(1 << 20),
                next: AtomicU64::new(0),
                sum: AtomicU64::new(0),
                waited: AtomicBool::new(false),
            };
            workers.run(&job).unwrap();
            assert_eq!(job.sum.load(SeqCst), expected, "{}", place.name);
            assert_eq!(job.budget.available(), job.budget.total());
        }
    }
}

#[test]
fn failed_job_leaks_no_operation_into_the_next() {
    for place in all() {
        let file = file_of(&place, "file", 1 << 20, 1 << 18);
        for workers in [
            WorkerPool::threads(2, place.disk.clone()).unwrap(),
            WorkerPool::simulated(9, 2, place.disk.clone()).unwrap(),
        ] {
            let budget = MemoryBudget::new(1 << 20);
            let failing = Steps(|worker: &mut Worker| {
                for offset in (0..1 << 19).step_by(1 << 16) {
                    let buffer = budget.buffer("test", 1 << 16)?;
                    let range = 0..1 << 16;
                    worker.queue.submit(
                        Operation::Read {
                            file: file.clone(),
                            offset,
                            buffer,
                            range,
                        },
                        offset,
                    );
                }
                Err("planted".into())
            });
            assert!(workers.run(&failing).is_err());
            assert_eq!(budget.available(), budget.total(), "{}", place.name);
            let clean = Steps(|worker: &mut Worker| {
                assert_eq!(worker.queue.in_flight(), 0);
                Ok(Step::Finished)
            });
            workers.run(&clean).unwrap();
        }
    }
}

#[test]
fn simulation_takes_turns_by_its_seed() {
    let turns = |seed| {
        let workers = WorkerPool::simulated(seed, 3, Arc::new(SimDisk::new(0))).unwrap();
        let turns = Mutex::new(Vec::new());
        let job = Steps(|worker: &mut Worker| {
            let mut turns = turns.lock().unwrap();
            turns.push(worker.index);
            Ok(if turns.len() < 50 {
                Step::Worked
            } else {
                Step::Finished
            })
        });
        workers.run(&job).unwrap();
        turns.into_inner().unwrap()
    };
    assert_eq!(turns(1), turns(1));
    assert_ne!(turns(1), turns(2));
    assert!((0..3).all(|worker| turns(1).contains(&worker)));
}

#[test]
fn simulation_deadlock_is_an_error() {
    let workers = WorkerPool::simulated(4, 2, Arc::new(SimDisk::new(0))).unwrap();
    let result = workers.run(&Steps(|_: &mut Worker| Ok(Step::Waiting)));
    assert!(
        matches!(result, Err(StorageError::Stuck { seed: 4 })),
        "{result:?}"
    );
}
