//! Streams of record batches from objects of the interpreter.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader};

/// Record batches in order.
type BatchReader = Box<dyn RecordBatchReader + Send>;

/// The record batches of an object: a stream of Arrow, or an iterable of such objects.
pub(crate) fn batches(data: &Bound<'_, PyAny>) -> PyResult<BatchReader> {
    if let Some(batches) = of_object(data)? {
        return Ok(batches);
    }
    let Ok(iterator) = data.try_iter() else {
        let text = format!(
            "edges come from an object with __arrow_c_stream__, or from an iterable of such objects, not from {}",
            data.get_type().name()?
        );
        return Err(PyTypeError::new_err(text));
    };
    IteratorReader::new(iterator).map(|batches| Box::new(batches) as BatchReader)
}

/// The batches of one object; `None` if it has none of the interfaces of Arrow.
fn of_object(data: &Bound<'_, PyAny>) -> PyResult<Option<BatchReader>> {
    if data.hasattr("__arrow_c_stream__")? {
        let reader: PyRecordBatchReader = data.extract()?;
        return Ok(Some(reader.into_reader()?));
    }
    if data.hasattr("__arrow_c_array__")? {
        let batch = data.extract::<PyRecordBatch>()?.into_inner();
        return Ok(Some(Box::new(OneBatch::new(batch))));
    }
    Ok(None)
}

/// A stream of one batch.
pub(crate) struct OneBatch(Option<RecordBatch>, SchemaRef);

impl OneBatch {
    pub(crate) fn new(batch: RecordBatch) -> OneBatch {
        let schema = batch.schema();
        OneBatch(Some(batch), schema)
    }
}

impl Iterator for OneBatch {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl RecordBatchReader for OneBatch {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.1)
    }
}

/// The batches of the objects of an iterator, one object after the other.
struct IteratorReader {
    iterator: Py<PyIterator>,
    schema: SchemaRef,
    current: BatchReader,
}

impl IteratorReader {
    /// Takes the first object, whose columns all others must have.
    fn new(mut iterator: Bound<'_, PyIterator>) -> PyResult<IteratorReader> {
        let first = iterator.next().transpose()?;
        let first =
            first.ok_or_else(|| PyValueError::new_err("the iterable has no batch of edges"))?;
        let current = member(&first)?;
        Ok(IteratorReader {
            schema: current.schema(),
            iterator: iterator.unbind(),
            current,
        })
    }

    /// Goes to the next object; false at the end.
    fn advance(&mut self) -> PyResult<bool> {
        Python::attach(|py| {
            let next = self.iterator.bind(py).clone().next().transpose()?;
            let Some(next) = next else { return Ok(false) };
            self.current = member(&next)?;
            let (found, wanted) = (self.current.schema(), &self.schema);
            if found.fields() != wanted.fields() {
                let text = format!("a batch has the columns {found}, and the first one {wanted}");
                return Err(PyValueError::new_err(text));
            }
            Ok(true)
        })
    }
}

/// The batches of an object that an iterable has.
fn member(object: &Bound<'_, PyAny>) -> PyResult<BatchReader> {
    let batches = of_object(object)?;
    batches.ok_or_else(|| {
        let name = object.get_type().name();
        let name = name.map(|name| name.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!(
            "the iterable has an object without __arrow_c_stream__: {name}"
        ))
    })
}

impl Iterator for IteratorReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.next() {
                return Some(batch);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
            }
        }
    }
}

impl RecordBatchReader for IteratorReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
