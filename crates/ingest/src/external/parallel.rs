//! Numbered tasks on all workers, each worker with a state of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_raw::lock;
use graphmill_storage::{CancelToken, Job, JobError, Step, Worker, WorkerPool};

use crate::error::IngestError;

struct NumberedTasks<'a, S, M, W> {
    count: u64,
    next: AtomicU64,
    states: Vec<Mutex<Option<S>>>,
    make: M,
    work: W,
    stop: &'a CancelToken,
    /// The failed task with the smallest number, and why it failed.
    failure: Mutex<Option<(u64, IngestError)>>,
}

impl<S, M, W> NumberedTasks<'_, S, M, W>
where
    S: Send,
    M: Fn() -> Result<S, IngestError> + Sync,
    W: Fn(&mut S, u64) -> Result<(), IngestError> + Sync,
{
    fn task(&self, worker: usize, task: u64) -> Result<(), IngestError> {
        if self.stop.is_cancelled() {
            return Err(IngestError::Stopped);
        }
        let mut state = lock(&self.states[worker]);
        let state = match &mut *state {
            Some(state) => state,
            none => none.insert((self.make)()?),
        };
        (self.work)(state, task)
    }
}

impl<S, M, W> Job for NumberedTasks<'_, S, M, W>
where
    S: Send,
    M: Fn() -> Result<S, IngestError> + Sync,
    W: Fn(&mut S, u64) -> Result<(), IngestError> + Sync,
{
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        if worker.index >= self.states.len() {
            return Ok(Step::Finished);
        }
        let task = self.next.fetch_add(1, Relaxed);
        if task >= self.count {
            return Ok(Step::Finished);
        }
        self.task(worker.index, task).map_err(|error| {
            let text = error.to_string();
            let mut failure = lock(&self.failure);
            if failure.as_ref().is_none_or(|(first, _)| task < *first) {
                *failure = Some((task, error));
            }
            JobError::from(text)
        })?;
        Ok(Step::Worked)
    }
}

/// Runs `work` once for each of `tasks` tasks on at most `lanes` workers.
///
/// `make` creates a worker's state before its first task. Returns the states of the workers that took part.
pub(crate) fn run<S, M, W>(
    workers: &WorkerPool,
    lanes: usize,
    stop: &CancelToken,
    tasks: u64,
    make: M,
    work: W,
) -> Result<Vec<S>, IngestError>
where
    S: Send,
    M: Fn() -> Result<S, IngestError> + Sync,
    W: Fn(&mut S, u64) -> Result<(), IngestError> + Sync,
{
    let states = (0..workers.count().min(lanes))
        .map(|_| Mutex::new(None))
        .collect();
    let job = NumberedTasks {
        count: tasks,
        next: AtomicU64::new(0),
        states,
        make,
        work,
        stop,
        failure: Mutex::new(None),
    };
    let outcome = workers.run(&job);
    if let Some((_, error)) = lock(&job.failure).take() {
        return Err(error);
    }
    outcome?;
    let states = job.states.iter();
    Ok(states.filter_map(|state| lock(state).take()).collect())
}
