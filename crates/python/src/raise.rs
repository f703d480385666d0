//! Errors as exceptions of `graphmill.errors`, a class for each kind.

use graphmill::{Error, ErrorKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The exception of an error.
pub(crate) fn error(py: Python<'_>, error: &Error) -> PyErr {
    failure(py, error.kind(), &error.to_string())
}

/// The exception of a wrong request.
pub(crate) fn usage(py: Python<'_>, text: &str) -> PyErr {
    failure(py, ErrorKind::Usage, text)
}

/// The exception of a kind of error.
pub(crate) fn failure(py: Python<'_>, kind: ErrorKind, text: &str) -> PyErr {
    let name = match kind {
        ErrorKind::Usage => "UsageError",
        ErrorKind::Memory => "MemoryBudgetError",
        ErrorKind::Disk => "DiskError",
        ErrorKind::Input => "InputError",
        ErrorKind::Ranks => "RankError",
        ErrorKind::Stopped => "Cancelled",
        _ => "GraphmillError",
    };
    let raised = py.import("graphmill.errors").and_then(|errors| {
        let text = errors.getattr("in_python")?.call1((text,))?;
        errors.getattr(name)?.call1((text,))
    });
    match raised {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(text.to_string()),
    }
}
