//! The native module of the Python package, `graphmill._graphmill`: work beside the interpreter.
//!
//! The modules of `python/graphmill` call it; they have the names, the defaults and the documentation that users see. Every
//! long call starts a [`job::NativeJob`] on a thread of its own, so the interpreter is free while it works.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `arrays.rs` | edges from arrays and lists |
//! | `job.rs` | work on a thread of its own: progress, cancelling, the outcome |
//! | `result.rs` | the rows of a finished run |
//! | `stream.rs` | record batches of any object that has some |
//! | `table.rs` | blocks of rows as Arrow record batches |
//! | `values.rs` | the same as Python objects and NumPy arrays |
//! | `process.rs` | this process as a rank of an MPI job |
//! | `program.rs` | programs of the user, whose functions are addresses |
//! | `raise.rs` | errors as Python exceptions |

mod arrays;
mod job;
mod process;
mod program;
mod raise;
mod result;
mod stream;
mod table;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use graphmill::advanced::{IngestError, MemoryFiles, ReadOptions, Spool, run_on_ranks};
use graphmill::{CancelToken, Config, EdgeSource, Machine, MachineConfig, Plan, unwatched};
use graphmill_cli::{ImportRequest, estimate_request, program_request, run_request};
use graphmill_formats::ArrowEdges;
use pyo3::prelude::*;

use job::{NativeJob, text_outcome};
use process::process;
use program::ProgramSpec;
use result::NativeResult;

/// Starts an import; `words` are what follows `graphmill import` on a command line.
///
/// The outcome is the account of the import, as JSON.
#[pyfunction]
fn start_import(py: Python<'_>, words: Vec<OsString>) -> PyResult<NativeJob> {
    let request = ImportRequest::parse(words).map_err(|text| raise::usage(py, &text))?;
    let process = process(py)?;
    NativeJob::start(py, CancelToken::new(), move |stop, watcher| {
        let ImportRequest {
            inputs,
            graph,
            config,
            machine,
            ranks,
        } = &request;
        if let Some(process) = process {
            let share = process.share(machine, *ranks)?;
            let report = process.run(&share, stop, |machine| {
                machine.import(inputs, graph, config, watcher)
            })?;
            return Ok(text_outcome(request.summary(&report).to_string()));
        }
        let spool = Spool::of(inputs, machine, Some(graph), stop)?;
        let import = |machine: &Machine| machine.import(spool.inputs(), graph, config, watcher);
        let others = |machine: &Machine| {
            let imported = machine.import(spool.inputs(), graph, config, &unwatched());
            imported.map(drop)
        };
        let report = run_on_ranks(machine, *ranks, stop, import, others)?;
        Ok(text_outcome(request.summary(&report).to_string()))
    })
}

/// A graph in the memory of this process.
#[pyclass(frozen, module = "graphmill._graphmill")]
struct MemoryGraph(MemoryFiles);

#[pymethods]
impl MemoryGraph {
    #[new]
    fn new() -> MemoryGraph {
        // No path of the machine begins like this; the name is for errors alone.
        MemoryGraph(MemoryFiles::new("/graphmill (memory)".into()))
    }

    /// The directory of the stored graph.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.root().join("graph")
    }

    /// The bytes of its files.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

/// Starts an import of arrays; `words` are the options of `graphmill import`, with `--output`.
///
/// The outcome is the account of the import, as JSON.
#[pyfunction]
#[pyo3(signature = (words, sources, targets, weights, vertices, files))]
fn start_import_arrays(
    py: Python<'_>,
    words: Vec<OsString>,
    sources: &Bound<'_, PyAny>,
    targets: &Bound<'_, PyAny>,
    weights: Option<&Bound<'_, PyAny>>,
    vertices: Option<u64>,
    files: Option<&MemoryGraph>,
) -> PyResult<NativeJob> {
    let request = import_beside(py, words, files)?;
    let edges = arrays::edges(py, [sources, targets], weights, vertices)?;
    start_source(py, request, edges)
}

/// Starts an import of a stream of Arrow.
///
/// `words` are the options of `graphmill import`, with `--output`.
///
/// The outcome is the account of the import, as JSON.
#[pyfunction]
#[pyo3(signature = (words, data, files))]
fn start_import_stream(
    py: Python<'_>,
    words: Vec<OsString>,
    data: &Bound<'_, PyAny>,
    files: Option<&MemoryGraph>,
) -> PyResult<NativeJob> {
    let mut request = import_beside(py, words, files)?;
    // A generator may run something, and the rows of a result are read by threads.
    request.machine.own_threads = true;
    let batches = stream::batches(data)?;
    start_source(py, request, move |options| {
        let edges = ArrowEdges::new(batches, "the stream of edges", options)?;
        Ok(Box::new(edges) as Box<dyn EdgeSource>)
    })
}

/// Starts an import of a source that is made from the options of its reading.
fn start_source(
    py: Python<'_>,
    request: ImportRequest,
    make: impl FnOnce(&ReadOptions) -> Result<Box<dyn EdgeSource>, IngestError> + Send + 'static,
) -> PyResult<NativeJob> {
    // Each rank of a job has a graph in memory of its own.
    let is_own = request.machine.files.is_some();
    let process = process(py)?.filter(|_| !is_own);
    NativeJob::start(py, CancelToken::new(), move |stop, watcher| {
        let import = |machine: &Machine| {
            let edges = make(&request.config.reading())?;
            let report = machine.import_edges(&*edges, &request.graph, &request.config, watcher)?;
            Ok(request.summary(&report).to_string())
        };
        let text = match process {
            Some(process) => {
                let share = process.share(&request.machine, request.ranks)?;
                process.run_first(&share, stop, import)?
            }
            None => import(&Machine::open(&request.machine, stop.clone())?)?,
        };
        Ok(text_outcome(text))
    })
}

/// Parses the options of an import whose edges are no files.
fn import_beside(
    py: Python<'_>,
    mut words: Vec<OsString>,
    files: Option<&MemoryGraph>,
) -> PyResult<ImportRequest> {
    // The parser wants an input.
    words.push("-".into());
    let mut request = ImportRequest::parse(words).map_err(|text| raise::usage(py, &text))?;
    if request.ranks > 1 {
        let text = "one rank imports edges that are not in files: leave out --ranks";
        return Err(raise::usage(py, text));
    }
    if let Some(files) = files {
        request.machine.files = Some(files.0.clone());
        request.config.keep_every = None;
    }
    Ok(request)
}

/// Bytes of a graph in memory that one thread runs sooner than two, which have to wait for each other.
const SMALL: u64 = 1 << 20;

/// Starts a run; `words` are what follows `graphmill run ALGORITHM` on a command line.
///
/// The outcome is a [`NativeResult`].
#[pyfunction]
#[pyo3(signature = (algorithm, words, files=None))]
fn start_run(
    py: Python<'_>,
    algorithm: &str,
    words: Vec<OsString>,
    files: Option<&MemoryGraph>,
) -> PyResult<NativeJob> {
    let config = run_request(algorithm, words).map_err(|text| raise::usage(py, &text))?;
    start_plan(py, config, files)
}

/// Starts a run of a program of the user; `words` are options of `graphmill run` with the graph.
///
/// The outcome is a [`NativeResult`].
#[pyfunction]
#[pyo3(signature = (program, words, files=None))]
fn start_program(
    py: Python<'_>,
    program: ProgramSpec,
    words: Vec<OsString>,
    files: Option<&MemoryGraph>,
) -> PyResult<NativeJob> {
    let config = program
        .program()
        .and_then(|program| program_request(program, words));
    let config = config.map_err(|text| raise::usage(py, &text))?;
    start_plan(py, config, files)
}

/// Starts what a request asks for.
fn start_plan(
    py: Python<'_>,
    mut config: Config,
    files: Option<&MemoryGraph>,
) -> PyResult<NativeJob> {
    config.machine.files = files.map(|files| files.0.clone());
    if files.is_some_and(|files| files.0.bytes() <= SMALL) {
        config.machine.threads.get_or_insert(1);
    }
    let process = process(py)?;
    if let Some(process) = process {
        let share = process.share(&config.machine, config.ranks);
        config.machine = share.map_err(|error| raise::error(py, &error))?;
    }
    let plan = Plan::new(config).map_err(|error| raise::error(py, &error))?;
    NativeJob::start(py, CancelToken::new(), move |stop, watcher| {
        let answer = match process {
            Some(process) => plan.answer_as(process, stop, watcher)?,
            None => plan.answer(stop, watcher)?,
        };
        let result = NativeResult::new(answer, stop.clone());
        Ok(Box::new(|py| Ok(Py::new(py, result)?.into_any())))
    })
}

/// The facts about a stored graph, as JSON.
#[pyfunction]
#[pyo3(signature = (graph, files=None))]
fn info(py: Python<'_>, graph: PathBuf, files: Option<&MemoryGraph>) -> PyResult<String> {
    let files = files.map(|files| files.0.clone());
    let told = py.detach(|| {
        let one = MachineConfig {
            threads: Some(1),
            files,
            ..MachineConfig::default()
        };
        Machine::open(&one, CancelToken::new())?.info(&graph)
    });
    let told = told.map_err(|error| raise::error(py, &error))?;
    Ok(serde_json::to_string(&told).unwrap_or_default())
}

/// Sources, targets and weights.
type EdgeLists = (Vec<u64>, Vec<u64>, Option<Vec<f64>>);

/// The edges of a stored graph, each once, between ordinals of ids; and their weights, if it has any.
#[pyfunction]
#[pyo3(signature = (graph, files=None))]
fn edges(py: Python<'_>, graph: PathBuf, files: Option<&MemoryGraph>) -> PyResult<EdgeLists> {
    let files = files.map(|files| files.0.clone());
    let read = py.detach(|| {
        let one = MachineConfig {
            threads: Some(1),
            files,
            ..MachineConfig::default()
        };
        Machine::open(&one, CancelToken::new())?.edges(&graph)
    });
    let edges = read.map_err(|error| raise::error(py, &error))?;
    let has_weights = !edges.weights.is_empty();
    Ok((
        edges.sources,
        edges.destinations,
        has_weights.then_some(edges.weights),
    ))
}

/// What a run would take, as JSON; `words` are what follows `graphmill estimate`.
#[pyfunction]
fn estimate(py: Python<'_>, words: Vec<OsString>) -> PyResult<String> {
    let request = estimate_request(words).map_err(|text| raise::usage(py, &text))?;
    let answer = py.detach(|| request.answer(&CancelToken::new()));
    let answer = answer.map_err(|error| raise::error(py, &error))?;
    Ok(serde_json::to_string(&answer).unwrap_or_default())
}

/// The text of rank 0 on all ranks of a job of processes; all call it.
#[pyfunction]
fn text_of_first(py: Python<'_>, text: String) -> PyResult<String> {
    let Some(process) = process(py)? else {
        return Ok(text);
    };
    let one = MachineConfig {
        threads: Some(1),
        ..MachineConfig::default()
    };
    let shared = py.detach(|| process.run_first(&one, &CancelToken::new(), |_| Ok(text)));
    shared.map_err(|error| raise::error(py, &error))
}

/// Runs the command line `words`, whose first is the program; returns the exit code.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| graphmill_cli::main(words))
}

/// The native module.
#[pymodule]
fn _graphmill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<NativeJob>()?;
    module.add_class::<NativeResult>()?;
    module.add_class::<MemoryGraph>()?;
    module.add_function(wrap_pyfunction!(start_import_arrays, module)?)?;
    module.add_function(wrap_pyfunction!(start_import_stream, module)?)?;
    module.add_function(wrap_pyfunction!(start_import, module)?)?;
    module.add_function(wrap_pyfunction!(start_program, module)?)?;
    module.add_function(wrap_pyfunction!(start_run, module)?)?;
    module.add_function(wrap_pyfunction!(text_of_first, module)?)?;
    module.add_function(wrap_pyfunction!(process::fail_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(process::leave_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(process::ranks, module)?)?;
    module.add_function(wrap_pyfunction!(edges, module)?)?;
    module.add_function(wrap_pyfunction!(estimate, module)?)?;
    module.add_function(wrap_pyfunction!(info, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)
}
