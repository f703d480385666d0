//! This process as a rank of an MPI job: started with the first call that needs it, left when Python ends.

use std::sync::OnceLock;

use graphmill::advanced::RankProcess;
use pyo3::prelude::*;

use crate::raise;

static PROCESS: OnceLock<Option<RankProcess>> = OnceLock::new();

/// The rank of a job that this process is; `None` outside a job.
///
/// Starts MPI with the first call, which holds the interpreter.
pub(crate) fn process(py: Python<'_>) -> PyResult<Option<&'static RankProcess>> {
    if let Some(process) = PROCESS.get() {
        return Ok(process.as_ref());
    }
    let started = RankProcess::of_environment().map_err(|error| raise::error(py, &error))?;
    if started.is_some() {
        py.import("graphmill._ranks")?.call_method0("install")?;
    }
    Ok(PROCESS.get_or_init(|| started).as_ref())
}

/// The number of this rank, and of all ranks.
#[pyfunction]
pub(crate) fn ranks(py: Python<'_>) -> PyResult<(usize, usize)> {
    let process = process(py)?;
    Ok(process.map_or((0, 1), |process| (process.rank(), process.ranks())))
}

/// Ends the job because of an error: the calls of the other ranks fail.
#[pyfunction]
pub(crate) fn fail_ranks(py: Python<'_>, cause: &str) {
    if let Some(Some(process)) = PROCESS.get() {
        py.detach(|| process.fail(cause));
    }
}

/// Leaves the job.
#[pyfunction]
pub(crate) fn leave_ranks(py: Python<'_>) {
    if let Some(Some(process)) = PROCESS.get() {
        py.detach(|| process.leave());
    }
}
