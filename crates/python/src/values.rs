//! Rows as Python tuples, and columns as NumPy arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use graphmill::Block;
use graphmill::advanced::{IdColumn, Values};
use graphmill::prelude::NumberValue;
use numpy::{Element, PyArray1};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeDecodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

type Object<'py> = Bound<'py, PyAny>;

/// A text id, which is UTF-8 as a rule.
fn text(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| PyUnicodeDecodeError::new_err(error.to_string()))
}

/// An object of the class of UUIDs.
fn uuid<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Object<'py>> {
    let keywords = PyDict::new(py);
    keywords.set_item("bytes", PyBytes::new(py, bytes))?;
    let class = py.import("uuid")?.getattr("UUID")?;
    class.call((), Some(&keywords))
}

fn id<'py>(py: Python<'py>, ids: &IdColumn, row: usize) -> PyResult<Object<'py>> {
    match ids {
        IdColumn::Integers(ids) => ids[row].into_bound_py_any(py),
        IdColumn::Signed(ids) => ids[row].into_bound_py_any(py),
        IdColumn::Texts(texts) => text(texts.get(row))?.into_bound_py_any(py),
        IdColumn::Uuids(ids) => uuid(py, &ids[row]),
    }
}

/// A row of a block: a vertex and its value, an edge and its weight, or numbers.
pub(crate) fn row<'py>(
    py: Python<'py>,
    block: &Block,
    row: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let value = match &block.values {
        Values::Numbers(numbers) => {
            let numbers = numbers.columns().map(|(_, number)| match number {
                NumberValue::Integer(number) => number.into_bound_py_any(py),
                NumberValue::Float(number) => number.into_bound_py_any(py),
            });
            return PyTuple::new(py, numbers.collect::<PyResult<Vec<_>>>()?);
        }
        Values::Edges {
            destinations,
            weights,
        } => {
            let source = id(py, &block.ids, row)?;
            let weight = weights[row].into_bound_py_any(py)?;
            return PyTuple::new(py, [source, id(py, destinations, row)?, weight]);
        }
        _ if !block.is_reached(row) => None::<u64>.into_bound_py_any(py)?,
        Values::F32(values) => values[row].into_bound_py_any(py)?,
        Values::F64(values) => values[row].into_bound_py_any(py)?,
        Values::U32(values) => values[row].into_bound_py_any(py)?,
        Values::U64(values) => values[row].into_bound_py_any(py)?,
        Values::Vertex(vertices) => id(py, vertices, row)?,
    };
    PyTuple::new(py, [id(py, &block.ids, row)?, value])
}

/// The columns of some batches as NumPy arrays.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    schema: &Schema,
    batches: &[RecordBatch],
) -> PyResult<Vec<Object<'py>>> {
    let column = |(at, field): (usize, &std::sync::Arc<arrow_schema::Field>)| {
        let arrays = batches.iter().map(|batch| batch.column(at));
        let arrays: Vec<&ArrayRef> = arrays.collect();
        match field.data_type() {
            DataType::Int32 => numbers::<Int32Type>(py, &arrays, |n| Some(f64::from(n))),
            DataType::UInt32 => numbers::<UInt32Type>(py, &arrays, |n| Some(f64::from(n))),
            DataType::UInt64 => {
                numbers::<UInt64Type>(py, &arrays, |n| (n <= EXACT).then_some(n as f64))
            }
            DataType::Int64 => {
                let float = |n: i64| (n.unsigned_abs() <= EXACT).then_some(n as f64);
                numbers::<Int64Type>(py, &arrays, float)
            }
            DataType::Float32 => numbers::<Float32Type>(py, &arrays, |n| Some(f64::from(n))),
            DataType::Float64 => numbers::<Float64Type>(py, &arrays, Some),
            DataType::Utf8 => {
                let texts = arrays.iter().flat_map(|array| array.as_string::<i32>());
                objects(py, texts.map(|text| text.into_bound_py_any(py)))
            }
            DataType::FixedSizeBinary(_) => {
                let ids = arrays.iter().flat_map(|array| array.as_fixed_size_binary());
                objects(
                    py,
                    ids.map(|id| match id {
                        Some(id) => uuid(py, id),
                        None => Ok(py.None().into_bound(py)),
                    }),
                )
            }
            other => Err(PyTypeError::new_err(format!("no NumPy array of {other}"))),
        }
    };
    schema.fields().iter().enumerate().map(column).collect()
}

/// Integers to here are floats without rounding.
const EXACT: u64 = 1 << 53;

fn numbers<'py, T: ArrowPrimitiveType<Native: Element>>(
    py: Python<'py>,
    arrays: &[&ArrayRef],
    float: impl Fn(T::Native) -> Option<f64>,
) -> PyResult<Object<'py>> {
    let arrays: Vec<&PrimitiveArray<T>> = arrays.iter().map(|a| a.as_primitive()).collect();
    if arrays.iter().all(|array| array.null_count() == 0) {
        let values = arrays.iter().flat_map(|array| array.values()).copied();
        return Ok(PyArray1::from_vec(py, values.collect()).into_any());
    }
    let values = arrays.iter().flat_map(|array| array.iter());
    let values = values.map(|value| value.map_or(Some(f64::NAN), &float));
    let values: Option<Vec<f64>> = values.collect();
    let values = values.ok_or_else(|| {
        let text = "a column with missing values has integers beyond 2^53, which no float holds: use to_arrow";
        PyOverflowError::new_err(text)
    })?;
    Ok(PyArray1::from_vec(py, values).into_any())
}

fn objects<'py>(
    py: Python<'py>,
    values: impl Iterator<Item = PyResult<Object<'py>>>,
) -> PyResult<Object<'py>> {
    let list = PyList::empty(py);
    for value in values {
        list.append(value?)?;
    }
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("empty", (list.len(), "object"))?;
    array.set_item(pyo3::types::PySlice::full(py), list)?;
    Ok(array)
}
