//! Threads as a port: a job's steps run on N threads, or on one thread in an order drawn from a seed.
//!
//! A job is one object that all workers share. Each worker calls [`Job::step`] repeatedly until it returns
//! [`Step::Finished`]. A step runs to its end and never waits for another worker. The first error or panic ends the job.
//!
//! Between jobs a worker's queue is empty: the pool waits for operations that a job left in flight, and drops them.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use graphmill_raw::{EventCount, ForkJoinPool, SplitMix64, lock};

use crate::disk::port::{Disk, Queue};
use crate::error::{JobError, StorageError};

/// Number of operations that a worker's queue carries out at a time.
const QUEUE_DEPTH: usize = 32;
/// Maximum time that a worker waits for an event of another worker.
const NEWS_WAIT_MAX: Duration = Duration::from_millis(1);
/// Number of waiting steps in a row, without disk work, after which a simulation is stuck.
const STUCK_STEPS: u64 = 100_000;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The worker did something; there may be more.
    Worked,
    /// The worker waits for a completion in its queue or for another worker.
    Waiting,
    /// This worker has nothing more to do in this job.
    Finished,
}

/// Work for all workers at once; they divide it by the job's own atomics and locks.
pub trait Job: Sync {
    /// Does a part of the work.
    ///
    /// # Errors
    /// An error of the job; the first one ends the job.
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError>;
}

/// A job of one function.
impl<F: Fn(&mut Worker) -> Result<Step, JobError> + Sync> Job for F {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self(worker)
    }
}

/// One of the workers, as passed to a step.
#[derive(Debug)]
pub struct Worker {
    /// Its number, below [`WorkerPool::count`].
    pub index: usize,
    /// Its own queue of disk operations.
    pub queue: Box<dyn Queue>,
}

/// A fixed number of workers.
#[derive(Debug)]
pub struct WorkerPool {
    workers: Vec<Mutex<Worker>>,
    order: StepOrder,
    /// The system's path of each worker's thread, once it has worked.
    threads: Vec<OnceLock<Option<PathBuf>>>,
}

#[derive(Debug)]
enum StepOrder {
    Threads(Arc<ForkJoinPool>),
    Simulated {
        seed: u64,
        random: Mutex<SplitMix64>,
    },
}

impl WorkerPool {
    /// Starts `count` workers, at least 1, among them the thread that calls [`WorkerPool::run`].
    ///
    /// The other threads live as long as `self`.
    ///
    /// # Errors
    /// The system refuses a thread or a queue.
    pub fn threads(count: usize, disk: Arc<dyn Disk>) -> Result<Self, StorageError> {
        WorkerPool::on_threads(team(count)?, count, &*disk)
    }

    /// The same, on threads that all such pools of this process with the same count share.
    ///
    /// Jobs of these pools take turns. So a job must not wait for one of another pool, as ranks of one process do.
    ///
    /// # Errors
    /// As for [`WorkerPool::threads`].
    pub fn sharing_threads(count: usize, disk: Arc<dyn Disk>) -> Result<Self, StorageError> {
        static TEAMS: Mutex<BTreeMap<usize, Weak<ForkJoinPool>>> = Mutex::new(BTreeMap::new());
        let mut teams = lock(&TEAMS);
        let known = teams.get(&count).and_then(Weak::upgrade);
        let shared = match known.filter(|team| team.is_of_this_process()) {
            Some(team) => team,
            None => team(count)?,
        };
        teams.insert(count, Arc::downgrade(&shared));
        drop(teams);
        WorkerPool::on_threads(shared, count, &*disk)
    }

    fn on_threads(
        team: Arc<ForkJoinPool>,
        count: usize,
        disk: &dyn Disk,
    ) -> Result<Self, StorageError> {
        Ok(WorkerPool {
            workers: workers(count, disk)?,
            order: StepOrder::Threads(team),
            threads: vec![OnceLock::new(); count.max(1)],
        })
    }

    /// Makes `count` workers, at least 1, that take turns on the calling thread in an order from `seed`.
    ///
    /// # Errors
    /// The disk gives no more queues.
    pub fn simulated(seed: u64, count: usize, disk: Arc<dyn Disk>) -> Result<Self, StorageError> {
        let random = Mutex::new(SplitMix64::new(seed));
        let order = StepOrder::Simulated { seed, random };
        Ok(WorkerPool {
            workers: workers(count, &*disk)?,
            order,
            threads: Vec::new(),
        })
    }

    /// Returns the number of workers.
    pub fn count(&self) -> usize {
        self.workers.len()
    }

    /// Returns the processor time of the workers' threads so far; 0 if the system does not report it.
    pub fn busy(&self) -> Duration {
        let of_thread = |thread: &PathBuf| {
            let told = fs::read_to_string(Path::new("/proc").join(thread).join("schedstat"));
            told.ok()?.split_whitespace().next()?.parse::<u64>().ok()
        };
        let threads = self.threads.iter();
        let threads = threads.filter_map(|thread| thread.get()?.as_ref());
        Duration::from_nanos(threads.filter_map(of_thread).sum())
    }

    /// Runs a job until every worker has finished.
    ///
    /// Calls from several threads take turns; a call from inside a job never returns.
    ///
    /// # Errors
    /// - [`StorageError::Job`]: the first error of a step.
    /// - [`StorageError::Panic`]: a step panicked.
    /// - [`StorageError::Forked`]: another process started the threads.
    /// - [`StorageError::Stuck`]: in a simulation only.
    ///
    /// The other workers end their steps first.
    pub fn run(&self, job: &dyn Job) -> Result<(), StorageError> {
        self.run_on(&self.workers, job)
    }

    /// Runs a job on these workers, which are the first ones.
    fn run_on(&self, workers: &[Mutex<Worker>], job: &dyn Job) -> Result<(), StorageError> {
        let run = JobRun::default();
        match &self.order {
            StepOrder::Threads(team) if !team.is_of_this_process() => {
                return Err(StorageError::Forked);
            }
            StepOrder::Threads(team) => team.broadcast(&|index| {
                if let Some(worker) = workers.get(index) {
                    self.threads[index].get_or_init(|| fs::read_link("/proc/thread-self").ok());
                    run.work(job, &mut lock(worker));
                }
            }),
            StepOrder::Simulated { seed, random } => {
                run.simulate(job, workers, *seed, &mut lock(random))
            }
        }
        let failure = lock(&run.failure).take();
        failure.map_or(Ok(()), Err)
    }
}

/// The first workers of a pool: a job runs on these alone, and takes memory for no others.
#[derive(Clone, Debug)]
pub struct WorkerSubset {
    pool: Arc<WorkerPool>,
    count: usize,
}

impl WorkerSubset {
    /// The first `count` workers of a pool, at least 1 and at most all.
    pub fn new(pool: &Arc<WorkerPool>, count: usize) -> Self {
        WorkerSubset {
            pool: Arc::clone(pool),
            count: count.clamp(1, pool.count()),
        }
    }

    /// The first `count` of these workers, at least 1.
    pub fn first(&self, count: usize) -> Self {
        WorkerSubset::new(&self.pool, count.min(self.count))
    }

    /// Returns the number of workers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs a job until each of these workers has finished.
    ///
    /// # Errors
    /// As for [`WorkerPool::run`].
    pub fn run(&self, job: &dyn Job) -> Result<(), StorageError> {
        self.pool.run_on(&self.pool.workers[..self.count], job)
    }
}

fn team(count: usize) -> Result<Arc<ForkJoinPool>, StorageError> {
    let team = ForkJoinPool::new(count.max(1), "worker");
    let team = team.map_err(|source| StorageError::Thread { source })?;
    Ok(Arc::new(team))
}

fn workers(count: usize, disk: &dyn Disk) -> Result<Vec<Mutex<Worker>>, StorageError> {
    let worker = |index| {
        let queue = disk.queue(QUEUE_DEPTH)?;
        Ok(Mutex::new(Worker { index, queue }))
    };
    (0..count.max(1)).map(worker).collect()
}

/// State that the workers share during one job.
#[derive(Debug, Default)]
struct JobRun {
    failed: AtomicBool,
    failure: Mutex<Option<StorageError>>,
    /// The steps that did something: the events that waiting workers wait for.
    event: EventCount,
}

impl JobRun {
    /// Runs one worker's part of a job, on its own thread.
    fn work(&self, job: &dyn Job, worker: &mut Worker) {
        while !self.failed.load(Ordering::Relaxed) {
            let key = self.event.key();
            match self.step(job, worker) {
                Step::Worked => self.event.notify_all(),
                Step::Waiting if worker.queue.in_flight() > 0 => worker.queue.block(),
                Step::Waiting => self.event.wait(key, NEWS_WAIT_MAX),
                Step::Finished => {
                    self.event.notify_all();
                    break;
                }
            }
        }
        empty(worker);
    }

    /// Runs all workers' parts, one step at a time.
    fn simulate(
        &self,
        job: &dyn Job,
        workers: &[Mutex<Worker>],
        seed: u64,
        random: &mut SplitMix64,
    ) {
        let mut busy: Vec<_> = workers.iter().map(|worker| lock(worker)).collect();
        let mut idle_steps = 0_u64;
        while !busy.is_empty() && !self.failed.load(Ordering::Relaxed) {
            let chosen = random.below(busy.len() as u64) as usize;
            match self.step(job, &mut busy[chosen]) {
                Step::Worked => idle_steps = 0,
                Step::Finished => {
                    idle_steps = 0;
                    empty(&mut busy.swap_remove(chosen));
                }
                Step::Waiting => {
                    idle_steps += 1;
                    if idle_steps > STUCK_STEPS {
                        self.fail(StorageError::Stuck { seed });
                    } else if idle_steps.is_multiple_of(64) {
                        // All workers only wait, so the simulated disk completes an operation.
                        busy.iter_mut().for_each(|worker| worker.queue.block());
                    }
                }
            }
        }
        busy.iter_mut().for_each(|worker| empty(worker));
    }

    /// Runs one step; a step that fails is the worker's last.
    fn step(&self, job: &dyn Job, worker: &mut Worker) -> Step {
        let failure = match catch_unwind(AssertUnwindSafe(|| job.step(worker))) {
            Ok(Ok(step)) => return step,
            Ok(Err(error)) => StorageError::Job(error),
            Err(panic) => StorageError::Panic {
                worker: worker.index,
                message: message_of(&*panic),
            },
        };
        self.fail(failure);
        Step::Finished
    }

    fn fail(&self, failure: StorageError) {
        lock(&self.failure).get_or_insert(failure);
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// Waits for the operations of this job and drops them; the next job starts with an empty queue.
fn empty(worker: &mut Worker) {
    while worker.queue.wait().is_some() {}
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
