//! Edges from arrays and lists of the interpreter.

use graphmill::{EdgeArrays, Error};
use numpy::{Element, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::raise;

/// Makes edges of the arrays of their ends, and of their weights.
pub(crate) fn edges(
    py: Python<'_>,
    [sources, targets]: [&Bound<'_, PyAny>; 2],
    weights: Option<&Bound<'_, PyAny>>,
    vertices: Option<u64>,
) -> PyResult<EdgeArrays> {
    let (sources, targets) = (integers(sources)?, integers(targets)?);
    if sources.len() != targets.len() {
        let text = format!(
            "there are {} sources and {} targets",
            sources.len(),
            targets.len()
        );
        return Err(raise::usage(py, &text));
    }
    let weights = weights.map(floats).transpose()?;
    let made = py.detach(|| {
        let edges = sources.into_iter().zip(targets).collect();
        EdgeArrays::new(edges, weights, vertices)
    });
    made.map_err(|error| raise::error(py, &Error::from(error)))
}

/// Integers of an array or of any sequence.
fn integers(values: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    fn array<T: Element + Copy>(values: &Bound<'_, PyAny>) -> Option<Vec<T>> {
        if !is_array(values) {
            return None;
        }
        let array: PyReadonlyArray1<'_, T> = values.extract().ok()?;
        Some(array.as_array().iter().copied().collect())
    }
    if let Some(values) = array::<i64>(values) {
        return Ok(values);
    }
    if let Some(values) = array::<i32>(values) {
        return Ok(values.into_iter().map(i64::from).collect());
    }
    if let Some(values) = array::<u32>(values) {
        return Ok(values.into_iter().map(i64::from).collect());
    }
    values.extract().map_err(|_| {
        PyTypeError::new_err("the ends of edges are integers of at most 64 bits, with a sign")
    })
}

/// True for an array of NumPy, which is there then; without it, looking for one panics.
fn is_array(values: &Bound<'_, PyAny>) -> bool {
    let module = values.get_type().module();
    module.is_ok_and(|module| module.to_string_lossy() == "numpy")
}

/// Floats of an array or of any sequence.
fn floats(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if is_array(values)
        && let Ok(array) = values.extract::<PyReadonlyArray1<'_, f64>>()
    {
        return Ok(array.as_array().iter().copied().collect());
    }
    values.extract()
}
