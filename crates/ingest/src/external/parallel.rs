//! Numbered tasks on all workers, each worker with a state of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_raw::lock;
use graphmill_storage::{JobError, Step, Worker};

use crate::error::IngestError;
use crate::options::ImportResources;

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
    let states: Vec<Mutex<Option<S>>> = (0..lanes).map(|_| Mutex::new(None)).collect();
    let next = AtomicU64::new(0);
    // The failed task with the smallest number, and why it failed.
    let failure: Mutex<Option<(u64, IngestError)>> = Mutex::new(None);
    let outcome = resources.workers.run(&|worker: &mut Worker| {
        let Some(state) = states.get(worker.index) else {
            return Ok(Step::Finished);
        };
        let task = next.fetch_add(1, Relaxed);
        if task >= tasks {
            return Ok(Step::Finished);
        }
        let attempt = || {
            IngestError::check_stop(resources.stop)?;
            let mut state = lock(state);
            let state = match &mut *state {
                Some(state) => state,
                none => none.insert(make()?),
            };
            work(state, task)
        };
        attempt().map_err(|error| {
            let text = error.to_string();
            let mut failure = lock(&failure);
            if failure.as_ref().is_none_or(|(first, _)| task < *first) {
                *failure = Some((task, error));
            }
            JobError::from(text)
        })?;
        Ok(Step::Worked)
    });
    if let Some((_, error)) = lock(&failure).take() {
        return Err(error);
    }
    outcome?;
    Ok(states
        .iter()
        .filter_map(|state| lock(state).take())
        .collect())
}
