//! Work on a thread of its own, which the interpreter starts, watches, cancels and waits for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use graphmill::{CancelToken, Error, ErrorKind, Progress, ProgressFn};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::raise;

/// What a job ends with: a function that makes the object for the interpreter.
pub(crate) type JobOutcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The outcome that is a text.
pub(crate) fn text_outcome(text: String) -> JobOutcome {
    Box::new(|py| Ok(text.into_pyobject(py)?.into_any().unbind()))
}

/// Work on a thread of its own.
#[pyclass(frozen, module = "graphmill._graphmill")]
pub(crate) struct NativeJob {
    shared: Arc<JobShared>,
    stop: CancelToken,
    /// The process that has the thread: a fork has none.
    process: u32,
}

/// What the thread and the interpreter share.
#[derive(Default)]
struct JobShared {
    state: Mutex<JobState>,
    ended: Condvar,
}

#[derive(Default)]
struct JobState {
    is_done: bool,
    outcome: Option<Result<JobOutcome, (ErrorKind, String)>>,
    /// The current part of the work, its units that are done, all of them, and their name.
    part: Option<(String, u64, u64, &'static str)>,
    /// Lines that were not read yet, each with whether it is a warning.
    lines: Vec<(bool, String)>,
}

impl JobShared {
    fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a watcher would see.
    fn note(&self, progress: &Progress<'_>) {
        let mut state = self.state();
        match *progress {
            Progress::Note(text) => state.lines.push((false, text.to_string())),
            Progress::Warning(text) => state.lines.push((true, text.to_string())),
            Progress::Part {
                what,
                done,
                total,
                unit,
            } => state.part = Some((what.to_string(), done, total, unit)),
            Progress::Superstep { number, most, .. } => {
                let total = most.unwrap_or_default();
                state.part = Some(("run".to_string(), number, total, "passes"));
            }
        }
    }

    fn end(&self, outcome: Result<JobOutcome, (ErrorKind, String)>) {
        let mut state = self.state();
        (state.outcome, state.is_done) = (Some(outcome), true);
        self.ended.notify_all();
    }
}

/// Ends a job whose work panicked.
struct EndOnPanic(Arc<JobShared>);

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            let text = "graphmill failed by a mistake of its own; its message is above";
            self.0.end(Err((ErrorKind::Other, text.to_string())));
        }
    }
}

impl NativeJob {
    /// Starts `work` on a thread of its own.
    pub(crate) fn start(
        py: Python<'_>,
        stop: CancelToken,
        work: impl FnOnce(&CancelToken, &ProgressFn) -> Result<JobOutcome, Error> + Send + 'static,
    ) -> PyResult<NativeJob> {
        let shared = Arc::new(JobShared::default());
        let (for_watcher, for_work) = (Arc::clone(&shared), Arc::clone(&shared));
        let watcher: ProgressFn = Arc::new(move |progress| for_watcher.note(progress));
        let token = stop.clone();
        let work = move || {
            let guard = EndOnPanic(for_work);
            let done = work(&token, &watcher);
            let done = done.map_err(|error| (error.kind(), error.to_string()));
            guard.0.end(done);
        };
        let thread = thread::Builder::new().name("graphmill".to_string());
        let started = py.detach(|| thread.spawn(work));
        started.map_err(|error| {
            let text = format!(
                "cannot start a thread: {error}; raise the limit of threads (ulimit -u, pids.max)"
            );
            PyRuntimeError::new_err(text)
        })?;
        Ok(NativeJob {
            shared,
            stop,
            process: std::process::id(),
        })
    }
}

#[pymethods]
impl NativeJob {
    /// Waits for that time, at most; returns whether the work has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        if self.process != std::process::id() {
            let text = "this process was forked after the job began, which goes on in its parent: start a job here";
            return Err(raise::failure(py, ErrorKind::Other, text));
        }
        Ok(py.detach(|| {
            let state = self.shared.state();
            let waited = self
                .shared
                .ended
                .wait_timeout_while(state, time, |state| !state.is_done);
            waited.unwrap_or_else(PoisonError::into_inner).0.is_done
        }))
    }

    /// Asks the work to end; with `at_once` it does not end its pass and keep a checkpoint first.
    #[pyo3(signature = (at_once=false))]
    fn cancel(&self, at_once: bool) {
        if self.process != std::process::id() {
            return;
        }
        match at_once {
            true => self.stop.force(),
            false => self.stop.request(),
        }
    }

    /// The current part, its units that are done, all of them (0 if not known), and their name.
    fn progress(&self) -> Option<(String, u64, u64, &'static str)> {
        if self.process != std::process::id() {
            return None;
        }
        self.shared.state().part.clone()
    }

    /// The lines since the last call, each with whether it is a warning.
    fn lines(&self) -> Vec<(bool, String)> {
        if self.process != std::process::id() {
            return Vec::new();
        }
        std::mem::take(&mut self.shared.state().lines)
    }

    /// The outcome of work that has ended; it is given once. Raises the error that the work ended with.
    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let outcome = self.shared.state().outcome.take();
        match outcome {
            None => Err(PyRuntimeError::new_err("the job has no outcome")),
            Some(Err((kind, text))) => Err(raise::failure(py, kind, &text)),
            Some(Ok(outcome)) => outcome(py),
        }
    }
}
