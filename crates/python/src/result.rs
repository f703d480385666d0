//! The rows of a finished run: as an Arrow stream, one by one, or written to a file.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use graphmill::advanced::{StorageError, Values};
use graphmill::{Answer, Block, CancelToken, Error, VertexId};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyString, PyTuple};
use pyo3_arrow::PyRecordBatchReader;
use serde_json::json;

use crate::job::{NativeJob, text_outcome};
use crate::table::record_batch;
use crate::{raise, values};

/// Vertices whose rows are read at a time.
const PLACES: u64 = 1 << 18;
/// The same for rows as tuples.
const ROW_PLACES: u64 = 1 << 12;

/// A run that keeps its rows.
#[pyclass(frozen, module = "graphmill._graphmill")]
pub(crate) struct NativeResult {
    answer: Arc<OpenAnswer>,
}

/// The run, until it is closed.
struct OpenAnswer {
    answer: Mutex<Option<Answer>>,
    stop: CancelToken,
    /// The process that has the threads and the files of the run: a fork must not touch them.
    process: u32,
}

impl OpenAnswer {
    fn new(answer: Answer, stop: CancelToken) -> OpenAnswer {
        OpenAnswer {
            answer: Mutex::new(Some(answer)),
            stop,
            process: std::process::id(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Answer>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the run.
    fn close(&self) {
        if self.process == std::process::id() {
            drop(self.lock().take());
        }
    }

    /// Calls `work` with the run, unless it was closed.
    fn with<T>(&self, work: impl FnOnce(&mut Answer) -> Result<T, Error>) -> Result<T, Error> {
        if self.process != std::process::id() {
            return Err(StorageError::Forked.into());
        }
        match &mut *self.lock() {
            Some(answer) => work(answer),
            None => Err(Error::AnswerBroken),
        }
    }

    /// Calls `work` with the run; a request to stop was for the work before.
    fn read<T>(&self, work: impl FnOnce(&mut Answer) -> Result<T, Error>) -> Result<T, Error> {
        self.with(|answer| {
            self.stop.clear();
            work(answer)
        })
    }
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        self.close();
        if self.process != std::process::id() {
            // Another thread of the parent may have held the lock.
            std::mem::forget(std::mem::take(&mut self.answer));
        }
    }
}

impl Drop for NativeResult {
    fn drop(&mut self) {
        // Other work of the interpreter does not wait for memory and files to go.
        if Arc::strong_count(&self.answer) == 1 {
            let answer = &self.answer;
            Python::try_attach(|py| py.detach(|| answer.close()));
        }
    }
}

impl NativeResult {
    pub(crate) fn new(answer: Answer, stop: CancelToken) -> NativeResult {
        NativeResult {
            answer: Arc::new(OpenAnswer::new(answer, stop)),
        }
    }

    /// Reads from the run while the interpreter does other work.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Answer) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| self.answer.read(work));
        done.map_err(|error| raise::error(py, &error))
    }

    /// Starts work on the run.
    fn start(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Answer) -> Result<String, Error> + Send + 'static,
    ) -> PyResult<NativeJob> {
        // A request to stop was for the work before.
        self.answer.stop.clear();
        let answer = Arc::clone(&self.answer);
        NativeJob::start(py, self.answer.stop.clone(), move |_, _| {
            answer.with(work).map(text_outcome)
        })
    }
}

#[pymethods]
impl NativeResult {
    /// What the run took, as JSON.
    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |answer| Ok(answer.metrics().to_string()))
    }

    /// The number of vertices, the names of the columns, and the class of ids: `int`, `str` or `UUID`.
    fn shape(&self, py: Python<'_>) -> PyResult<(u64, Vec<String>, &'static str)> {
        let (vertices, schema) = self.schema(py)?;
        let names = schema.fields().iter().map(|field| field.name().clone());
        let first = schema.fields().first();
        let class = match first.map(|ids| ids.data_type()) {
            Some(DataType::FixedSizeBinary(_)) => "UUID",
            Some(ids) if ids.is_integer() => "int",
            _ => "str",
        };
        Ok((vertices, names.collect(), class))
    }

    /// Starts writing the rows to a file.
    ///
    /// The outcome is the number of its bytes.
    fn start_write(&self, py: Python<'_>, path: PathBuf) -> PyResult<NativeJob> {
        self.start(py, move |answer| Ok(answer.write(&path)?.to_string()))
    }

    /// Starts to look for the highest values.
    ///
    /// The outcome is JSON: the summary of the result with that many rows, and the names of the two columns of these.
    fn start_summary(&self, py: Python<'_>, count: usize) -> PyResult<NativeJob> {
        self.start(py, move |answer| {
            let summary = answer.summary(count)?;
            Ok(json!([summary.json(), summary.columns]).to_string())
        })
    }

    /// The row of a vertex as a tuple; `None` if the graph has no such vertex.
    fn row<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let id = vertex_id(id)?;
        let row = self.read(py, |answer| answer.row_of(id))?;
        row.map(|block| values::row(py, &block, 0)).transpose()
    }

    /// The rows from a place in the order of ids on, as tuples, and the place after them.
    fn rows<'py>(&self, py: Python<'py>, place: u64) -> PyResult<(Vec<Bound<'py, PyTuple>>, u64)> {
        let end = place.saturating_add(ROW_PLACES);
        let mut blocks = Vec::new();
        self.read(py, |answer| {
            answer.each_block(place..end, |block| blocks.push(block.clone()))
        })?;
        let rows = blocks.iter().flat_map(|block| {
            let rows = 0..block.rows();
            rows.map(move |row| values::row(py, block, row))
        });
        Ok((rows.collect::<PyResult<_>>()?, end))
    }

    /// The columns as NumPy arrays.
    ///
    /// Texts are objects. Integers become floats if some are missing, with NaN in their place.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        // Without it, making an array panics.
        py.import("numpy")?;
        let (vertices, schema) = self.schema(py)?;
        let mut batches = Vec::new();
        let mut reader = self.reader(schema.clone(), vertices);
        while let Some(batch) = py.detach(|| reader.next()) {
            batches.push(batch.map_err(|error| raise::usage(py, &error.to_string()))?);
        }
        values::columns(py, &schema, &batches)
    }

    /// All rows in ascending order of ids, as a capsule of the Arrow C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (vertices, schema) = self.schema(py)?;
        let reader = self.reader(schema, vertices);
        let reader = Bound::new(py, PyRecordBatchReader::new(Box::new(reader)))?;
        reader.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// Frees the memory and the temporary files of the run, and deletes its checkpoints.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.answer.close());
    }
}

impl NativeResult {
    /// Reads all rows.
    fn reader(&self, schema: SchemaRef, vertices: u64) -> RowReader {
        RowReader {
            answer: Arc::clone(&self.answer),
            schema,
            next: 0,
            end: vertices,
            ready: VecDeque::new(),
        }
    }

    /// The number of vertices, and the columns.
    fn schema(&self, py: Python<'_>) -> PyResult<(u64, SchemaRef)> {
        let told = self.read(py, |answer| {
            let run = answer.run();
            let (column, vertices) = (run.column, run.vertices);
            let block = answer.empty_block().ok_or(Error::AnswerBroken)?;
            let is_one_row = matches!(block.values, Values::Numbers(_));
            let vertices = if is_one_row { 1 } else { vertices };
            Ok((vertices, record_batch(&block, column)))
        })?;
        let batch = told
            .1
            .map_err(|error| raise::usage(py, &error.to_string()))?;
        Ok((told.0, batch.schema()))
    }
}

/// The id of a vertex: an integer, a text or a UUID.
fn vertex_id(id: &Bound<'_, PyAny>) -> PyResult<VertexId> {
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(VertexId::from(text.to_str()?));
    }
    let is_bool = id.is_instance_of::<PyBool>();
    if let Ok(number) = id.extract::<u64>()
        && !is_bool
    {
        return Ok(VertexId::from(number));
    }
    if let Ok(number) = id.extract::<i64>()
        && !is_bool
    {
        return Ok(VertexId::from(number));
    }
    if let Ok(bytes) = id.getattr("bytes")
        && let Ok(bytes) = bytes.extract::<[u8; 16]>()
    {
        return Ok(VertexId::Uuid(bytes));
    }
    Err(PyTypeError::new_err(format!(
        "the id of a vertex is an int, a str or a uuid.UUID, not {}",
        id.get_type().name()?
    )))
}

/// Reads the rows of a run, some at a time.
struct RowReader {
    answer: Arc<OpenAnswer>,
    schema: SchemaRef,
    /// The place of the next vertex in the order of ids.
    next: u64,
    end: u64,
    ready: VecDeque<Result<RecordBatch, ArrowError>>,
}

impl Iterator for RowReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.next < self.end {
            let places = self.next..self.end.min(self.next + PLACES);
            self.next = places.end;
            let ready = &mut self.ready;
            let read = self.answer.read(|answer| {
                let column = answer.run().column;
                answer.each_block(places, |block: &Block| {
                    ready.push_back(record_batch(block, column));
                })
            });
            if let Err(error) = read {
                self.next = self.end;
                return Some(Err(ArrowError::ExternalError(Box::new(error))));
            }
        }
        self.ready.pop_front()
    }
}

impl RecordBatchReader for RowReader {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
