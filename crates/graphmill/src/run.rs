//! A plan carried out: open or import the graph, run the algorithm, write the result, account for it.
//!
//! Steps of [`Plan::run`]: 1. places that take no output are refused, and a stored graph is opened, from a cache where the input is edges;
//! a budget too small for the run or for its result is refused here; 2. the algorithm; 3. result file and highest values in one walk
//! over the rows, or a part of the result from every rank; 4. metrics.

use std::sync::Arc;
use std::time::Duration;

use graphmill_algorithms::{AlgorithmOptions, Output};
use graphmill_engine::{EngineOptions, Metrics, job};
use graphmill_graph::{GraphDims, Layout, StoredGraph};
use graphmill_storage::{CancelToken, Clock, DirLock, Lease};
use serde::Serialize;

use crate::checkpoint_dir::CheckpointDir;
use crate::error::Error;
use crate::import::GraphSize;
use crate::machine::resources::Machine;
use crate::machine::timeline::{Recording, Timeline};
use crate::open::OpenFor;
use crate::plan::Plan;
use crate::progress::{Progress, ProgressFn, rows_written};
use crate::result::block::Block;
use crate::result::top_k::TopRow;
use crate::session::Session;
use crate::start::StartOptions;
use crate::summary::{Summary, TOP_ROWS, result_bytes};
use crate::{algorithms, info};

/// What a run took, and the highest values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Name of the value's column.
    pub column: &'static str,
    /// Vertices of the graph that have ids.
    pub vertices: u64,
    /// Arcs of the graph: an undirected edge is two.
    pub arcs: u64,
    /// The executor of passes over edges: `column` or `stream`.
    pub executor: &'static str,
    /// How the input of the graph was read, a line for each way.
    pub read: Vec<String>,
    /// The vertices with the highest values, or the largest groups, as many as asked for.
    pub top: Vec<TopRow>,
    /// What the result says in a few numbers, where it was asked for.
    pub summary: Summary,
    /// Seconds of each time that the algorithm ran, without loading.
    pub trials: Vec<f64>,
    /// What the passes did.
    pub metrics: Metrics,
    /// The most bytes of memory that were leased at one time.
    pub peak_memory: u64,
    /// Wall-clock seconds of each part.
    pub seconds: Seconds,
    /// Bytes of the result file, or of all its parts.
    pub result_bytes: Option<u64>,
    /// How busy each rank was until the result was written, where metrics were asked for.
    pub timelines: Vec<Timeline>,
}

/// Wall-clock seconds of the parts of a run.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Seconds {
    /// Opening the graph, importing it included.
    pub open: f64,
    /// Loading edges into memory.
    pub load: f64,
    /// The algorithm, without loading.
    pub run: f64,
    /// Writing the result.
    pub write: f64,
}

/// A run whose algorithm has ended, with the rows of its result in its session.
pub(crate) struct Solved {
    pub(crate) session: Session,
    pub(crate) output: Output,
    /// The sizes of the groups that the result names.
    pub(crate) sizes: Option<Output>,
    /// What it took up to here.
    pub(crate) run: Run,
    /// When the algorithm ended.
    finished: Duration,
    /// Keeps a cached graph locked.
    _hold: Option<DirLock>,
}

/// The JSON of `--metrics`.
#[derive(Serialize)]
pub(crate) struct MetricsReport<'a> {
    algorithm: &'a str,
    graph: GraphSize,
    /// How the input of the graph was read.
    read: &'a [String],
    executor: &'a str,
    threads: usize,
    ranks: usize,
    memory_budget: u64,
    peak_memory: u64,
    seconds: Seconds,
    /// Of each time that the algorithm ran, where it ran more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    trials: Option<&'a [f64]>,
    /// Billions of edges traversed a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    gteps: Option<f64>,
    #[serde(flatten)]
    passes: &'a Metrics,
    timelines: &'a [Timeline],
    summary: serde_json::Value,
}

/// The name of the executor that runs passes over a graph.
fn executor_of(graph: &StoredGraph, engine: &EngineOptions) -> &'static str {
    match graph.layout() {
        Layout::Column if engine.buckets.is_some() => "bucket",
        Layout::Column => "column",
        Layout::Stream => "stream",
    }
}

impl Plan {
    /// Does what the plan says; ends early, with nothing left behind, when `stop` is requested.
    ///
    /// # Errors
    /// Input, disk, memory or options are not what they should be; see [`Error`].
    pub fn run(&self, stop: &CancelToken, watcher: &ProgressFn) -> Result<Run, Error> {
        self.run_on_ranks(stop, watcher, None)
    }

    /// The same, and hands every row to `each` on its way out, a block at a time in ascending order of ids.
    ///
    /// # Errors
    /// As for [`Plan::run`].
    pub fn run_with(
        &self,
        stop: &CancelToken,
        watcher: &ProgressFn,
        mut each: impl FnMut(&Block),
    ) -> Result<Run, Error> {
        self.run_on_ranks(stop, watcher, Some(&mut each))
    }

    /// What one rank does. Rank 0 alone writes a file.
    pub(crate) fn run_rank(
        &self,
        machine: &Machine,
        watcher: &ProgressFn,
        each: Option<&mut dyn FnMut(&Block)>,
    ) -> Result<Run, Error> {
        let mut checkpoints = None;
        let done = self.execute(machine, watcher, each, &mut checkpoints);
        done.map_err(|error| match &checkpoints {
            Some(checkpoints) => checkpoints.left(error, watcher),
            None => error,
        })
    }

    /// The same, with checkpoints from where they can be written.
    fn execute(
        &self,
        machine: &Machine,
        watcher: &ProgressFn,
        each: Option<&mut dyn FnMut(&Block)>,
        checkpoints: &mut Option<CheckpointDir>,
    ) -> Result<Run, Error> {
        let recording = self.begin(machine)?;
        let wants_rows = self.config.output.is_some() || each.is_some();
        let mut solved = self.solve(machine, wants_rows, watcher, checkpoints)?;
        let (result_bytes, summary, _highest) =
            self.write_result(&mut solved, machine.rank() == 0, each, watcher)?;
        if let Some(checkpoints) = checkpoints {
            checkpoints.end(machine, &mut solved.session, watcher)?;
        }
        let timelines = recording.map_or(Ok(Vec::new()), |recording| recording.end(machine))?;
        let mut run = solved.run;
        run.top = summary.top[..self.config.top.min(summary.top.len())].to_vec();
        run.summary = summary.shown(self.config.top);
        run.peak_memory = machine.budget().peak();
        run.seconds.write = (machine.clock().now() - solved.finished).as_secs_f64();
        run.result_bytes = result_bytes;
        run.timelines = timelines;
        if let Some(path) = self.config.metrics.as_ref().filter(|_| machine.rank() == 0) {
            machine.write_json(path, &self.report(&run))?;
        }
        Ok(run)
    }

    /// Checks that all ranks have the same plan, and that its paths can be written.
    pub(crate) fn begin(&self, machine: &Machine) -> Result<Option<Recording>, Error> {
        machine.check_same_start(&StartOptions::of_run(&self.config))?;
        if machine.rank() == 0 {
            self.check_paths(machine)?;
        }
        Ok((self.config.metrics.as_ref()).map(|_| Recording::begin(machine)))
    }

    /// Opens the graph and runs the algorithm; the rows of the result may be read from then on.
    ///
    /// `wants_rows`: memory is reserved for them.
    pub(crate) fn solve(
        &self,
        machine: &Machine,
        wants_rows: bool,
        watcher: &ProgressFn,
        checkpoints: &mut Option<CheckpointDir>,
    ) -> Result<Solved, Error> {
        let clock = machine.clock();
        let began = clock.now();
        let count = self.summary_rows();
        let given = algorithms::given(self.entry, &self.config);
        let sizes = |graph: &GraphDims| {
            let result = result_bytes(graph, self.entry.shape, wants_rows, count);
            (self.entry.sizes)(graph, &given).with_result(result)
        };
        let in_buckets = self.config.engine.buckets.is_some();
        let purpose = OpenFor::Run(&sizes, in_buckets);
        let (graph, settings, hold) = self.open_and_resolve(machine, purpose, watcher)?;
        // Another rank may have a disk of its own.
        if let Some(folder) = self.output_folder().filter(|_| machine.rank() > 0) {
            machine.check_output(folder)?;
        }
        let measure = graph.measure();
        let opened = clock.now();

        let beside = self.output_file().unwrap_or(graph.path());
        let sizes = sizes(&measure);
        *checkpoints = self.checkpoints(machine, &graph, &machine.tmp(beside), watcher)?;
        let policy = checkpoints.as_ref().map(|dir| dir.asked.clone());
        let asked = (self.config.engine, sizes, policy);
        let trials = u64::from(self.config.trials.max(1));
        let passes_max = (self.entry.passes_max)(&given).map(|most| most * trials);
        let mut session = machine.session_beside(beside, &graph, asked, passes_max, watcher)?;
        if let Some(checkpoints) = checkpoints {
            checkpoints.report_resumed(job::resumed(&session), watcher);
        }
        let (output, trials) = self.run_trials(&mut session, &settings, clock)?;
        let finished = clock.now();
        job::share_metrics(&mut session)?;
        let metrics = session.metrics().clone();
        // A resumed run must replay the calls of the run before, even if no one reads the summary.
        let wants_sizes = count > 0 || checkpoints.is_some();
        let group_sizes = self.entry.group_sizes.filter(|_| wants_sizes);
        let sizes = group_sizes.map(|sizes| sizes(&mut session, &output));
        let sizes = sizes.transpose()?;
        job::end_calls(&mut session, "end_passes")?;
        self.warn_of(&metrics, watcher);
        // The result has the memory of the passes.
        job::release(&mut session);

        let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
        let run = Run {
            algorithm: self.entry.name,
            column: output.column,
            vertices: graph.named_vertices(),
            arcs: graph.arcs(),
            executor: executor_of(&graph, &self.config.engine),
            read: info::read(&graph.meta().options),
            top: Vec::new(),
            summary: Summary::default(),
            peak_memory: machine.budget().peak(),
            trials,
            seconds: Seconds {
                open: seconds(began, opened),
                load: metrics.loading,
                run: seconds(opened, finished) - metrics.loading,
                write: 0.0,
            },
            result_bytes: None,
            timelines: Vec::new(),
            metrics,
        };
        Ok(Solved {
            session,
            output,
            sizes,
            run,
            finished,
            _hold: hold,
        })
    }

    /// The rows of the summary that is computed: none unless one is asked for.
    pub(crate) fn summary_rows(&self) -> usize {
        match self.wants_summary() {
            true => self.config.top.max(TOP_ROWS),
            false => 0,
        }
    }

    /// Runs the algorithm as often as asked; returns the last output, and the seconds of each trial.
    fn run_trials(
        &self,
        session: &mut Session,
        settings: &AlgorithmOptions,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Output, Vec<f64>), Error> {
        let mut settings = settings.clone();
        self.fill_vertex_options(session, &mut settings)?;
        let mut trials = Vec::new();
        loop {
            let (began, loading) = (clock.now(), session.metrics().loading);
            let output = (self.entry.run)(session, &settings)?;
            let loading = session.metrics().loading - loading;
            trials.push((clock.now() - began).as_secs_f64() - loading);
            if trials.len() >= self.config.trials as usize {
                return Ok((output, trials));
            }
        }
    }

    /// Warns of an option without effect, and of a tolerance that was not reached.
    fn warn_of(&self, metrics: &Metrics, watcher: &ProgressFn) {
        if metrics.push_became_pull {
            watcher(&Progress::Warning(
                "push ran as pull: several ranks have no mailboxes in common; give --ranks 1 for push",
            ));
        }
        if let Some(option) = self.idle_option(metrics) {
            watcher(&Progress::Warning(&format!(
                "{option} had no effect: it is for edges in memory, and the run read them from disk or packed"
            )));
        }
        if let Some(end) = metrics.convergence.filter(|end| !end.reached) {
            watcher(&Progress::Warning(&format!(
                "{}: --tolerance {:e} is not reached: the last iteration still changed the values by {:e} in all; give more --iterations",
                self.entry.name,
                end.tolerance.unwrap_or_default(),
                end.residual
            )));
        }
    }

    /// Writes the result, and hands its rows to `each`; all ranks call it.
    ///
    /// Returns the bytes of the file or of all parts, the summary, and the leases for its highest rows.
    fn write_result(
        &self,
        solved: &mut Solved,
        is_first: bool,
        each: Option<&mut dyn FnMut(&Block)>,
        watcher: &ProgressFn,
    ) -> Result<(Option<u64>, Summary, Vec<Lease>), Error> {
        let graph = Arc::clone(&solved.session.graph);
        let (session, output) = (&mut solved.session, &solved.output);
        let folder = self.output_folder();
        let mut result_bytes = match folder {
            Some(folder) => {
                let batches = graph.batches();
                let own = job::local_batches(session).map(|batch| batches.range(batch));
                let named = graph.named_vertices();
                let own = own.map(|range| range.end.min(named) - range.start.min(named));
                let own = own.sum();
                Some(session.write_parts(output, folder, rows_written(watcher, own))?)
            }
            None => None,
        };
        if !is_first {
            job::serve(session, 0)?;
            return Ok((result_bytes, Summary::default(), Vec::new()));
        }
        let (mut summary, mut highest) = (Summary::default(), Vec::new());
        if self.wants_summary() {
            (summary, highest) =
                self.summarize(session, output, solved.sizes.as_ref(), self.summary_rows())?;
            // The rows have their memory.
            if let Some(sizes) = solved.sizes.take() {
                session.free_sizes(&sizes)?;
            }
        }
        let path = self.config.output.as_ref();
        if let Some(path) = path.filter(|_| folder.is_none()) {
            let note = rows_written(watcher, graph.named_vertices());
            result_bytes = Some(session.write_served(output, path, note)?);
        }
        if let Some(each) = each {
            session.each_served_block(output, None, each)?;
        }
        job::stop_serving(session)?;
        Ok((result_bytes, summary, highest))
    }

    /// Computes the summary of a result with its `count` highest rows; rank 0 calls it.
    pub(crate) fn summarize(
        &self,
        session: &mut Session,
        output: &Output,
        sizes: Option<&Output>,
        count: usize,
    ) -> Result<(Summary, Vec<Lease>), Error> {
        let (mut summary, highest) = session.summarize(output, sizes, count)?;
        summary.count_trees(self.entry.shape, session.graph.vertices());
        Ok((summary, highest))
    }

    /// What a run took, for JSON.
    pub(crate) fn report<'a>(&self, run: &'a Run) -> MetricsReport<'a> {
        MetricsReport {
            algorithm: self.entry.name,
            graph: GraphSize {
                vertices: run.vertices,
                arcs: run.arcs,
            },
            read: &run.read,
            executor: run.executor,
            threads: self.threads,
            ranks: run.metrics.ranks.len().max(1),
            memory_budget: self.memory,
            peak_memory: run.peak_memory,
            seconds: run.seconds,
            trials: (run.trials.len() > 1).then_some(&run.trials),
            gteps: run.metrics.gteps(),
            passes: &run.metrics,
            timelines: &run.timelines,
            summary: run.summary.json(),
        }
    }
}
