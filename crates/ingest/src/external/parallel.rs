//! Numbered tasks on all workers, each worker with a state of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_raw::lock;
use graphmill_storage::{CancelToken, Job, JobError, Step, Worker};

use crate::error::IngestError;
use crate::options::ImportResources;

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

impl<S, M, W> Job for NumberedTasks<'_, S, M, W>
where
    S: Send,
    M: Fn() -> Result<S, IngestError> + Sync,
    W: Fn(&mut S, u64) -> Result<(), IngestError> + Sync,
{
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        let Some(state) = self.states.get(worker.index) else {
            return Ok(Step::Finished);
        };
        let task = self.next.fetch_add(1, Relaxed);
        if task >= self.count {
            return Ok(Step::Finished);
        }
        let work = || {
            IngestError::check_stop(self.stop)?;
            let mut state = lock(state);
            let state = match &mut *state {
                Some(state) => state,
                none => none.insert((self.make)()?),
            };
            (self.work)(state, task)
        };
        work().map_err(|error| {
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
    resources: ImportResources<'_>,
    lanes: usize,
    tasks: u64,
    make: M,
    work: W,
) -> Result<Vec<S>, IngestError>
where
    S: Send,
    M: Fn() -> Result<S, IngestError> + Sync,
    W: Fn(&mut S, u64) -> Result<(), IngestError> + Sync,
{
    let lanes = resources.workers.count().min(lanes);
    let job = NumberedTasks {
        count: tasks,
        next: AtomicU64::new(0),
        states: (0..lanes).map(|_| Mutex::new(None)).collect(),
        make,
        work,
        stop: resources.stop,
        failure: Mutex::new(None),
    };
    let outcome = resources.workers.run(&job);
    if let Some((_, error)) = lock(&job.failure).take() {
        return Err(error);
    }
    outcome?;
    let states = job.states.iter();
    Ok(states.filter_map(|state| lock(state).take()).collect())
}
