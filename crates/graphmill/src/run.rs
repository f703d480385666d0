//! A plan carried out: open or import the graph, run the algorithm, write the result, account for it.
//!
//! Steps of [`Plan::run`]: 1. places that take no output are refused, and a stored graph is opened, from a cache where the input is edges;
//! a budget too small for the run is refused here; 2. memory for the result's rows is set aside, so that it is there when the work is done; 3. the algorithm; 4. result file and highest values in one walk
//! over the rows, or a part of the result from every rank; 5. metrics.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use graphmill_algorithms::{AlgorithmOptions, Output};
use graphmill_engine::Metrics;
use graphmill_graph::{EdgeKind, GraphDims, StoredGraph};
use graphmill_ingest::{IngestError, input_files};
use graphmill_storage::{
    CancelToken, Clock, DirLock, Disk, Lease, LockMode, Owner, StorageError, write_output,
};
use serde::Serialize;

use crate::checkpoint_dir::CheckpointDir;
use crate::error::Error;
use crate::import_cache::CacheLocation;
use crate::import_config::ImportConfig;
use crate::machine::resources::Machine;
use crate::machine::timeline::{Recording, Timeline};
use crate::open::OpenFor;
use crate::paths::DESCRIPTION;
use crate::plan::Plan;
use crate::progress::{Progress, ProgressFn};
use crate::result::block::Block;
use crate::result::format::is_folder;
use crate::result::top_k::{TopK, TopRow};
use crate::result_error::ResultError;
use crate::session::Session;
use crate::start::StartOptions;
use crate::summary::{Summary, TOP_ROWS};
use crate::{algorithms, info, open};

/// What a run took, and the highest values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Name of the value's column.
    pub column: &'static str,
    /// Vertices of the graph.
    pub vertices: u64,
    /// Arcs of the graph: an undirected edge is two.
    pub arcs: u64,
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

/// The JSON of `--metrics`.
#[derive(Serialize)]
struct MetricsReport<'a> {
    algorithm: &'a str,
    graph: GraphCounts,
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

#[derive(Serialize)]
struct GraphCounts {
    vertices: u64,
    arcs: u64,
}

/// A result that is written.
struct WrittenResult {
    /// Bytes of the file, or of all parts.
    bytes: Option<u64>,
    summary: Summary,
    /// The memory of the ids in the summary.
    _long_ids: Vec<Lease>,
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
        let clock = machine.clock();
        let began = clock.now();
        machine.check_same_start(&StartOptions::of_run(&self.config))?;
        let is_first = machine.rank() == 0;
        if is_first {
            self.check_paths(machine)?;
        }
        let recording = (self.config.metrics.as_ref()).map(|_| Recording::begin(machine));
        let wants_each = each.is_some();
        let wants_rows = self.config.output.is_some() || wants_each;
        let wants_summary = self.wants_summary();
        let given = algorithms::values(self.entry, &self.config.options);
        let sizes = |graph: &GraphDims| (self.entry.sizes)(graph, &given);
        let purpose = OpenFor::Run {
            sizes: &sizes,
            wants_rows,
        };
        let (graph, settings, _hold) = self.open_and_resolve(machine, purpose, watcher)?;
        let file = self.output_file();
        let folder = file.filter(|path| is_folder(path));
        if let Some(folder) = folder.filter(|_| !is_first) {
            // It may have a disk of its own.
            machine.check_output(folder)?;
        }
        let measure = graph.measure();
        let opened = clock.now();

        let row_bytes = open::rows(&measure, wants_rows);
        let set_aside = machine
            .budget()
            .lease("the rows of the result", row_bytes)?;
        let count = match wants_summary {
            true => self.config.top.max(TOP_ROWS),
            false => 0,
        };
        let highest = (count as u64).min(measure.batches.vertices());
        let _highest = machine
            .budget()
            .lease("the highest rows", TopK::memory(highest))?;
        let beside = file.unwrap_or(graph.path());
        let sizes = sizes(&measure);
        *checkpoints = self.checkpoints(machine, &graph, &machine.tmp(beside), watcher)?;
        let policy = checkpoints.as_ref().map(CheckpointDir::asked);
        let asked = (self.config.engine, sizes, policy);
        let trials = u64::from(self.config.trials.max(1));
        let passes_max = (self.entry.passes_max)(&given).map(|most| most * trials);
        let mut session = machine.session_beside(beside, &graph, asked, passes_max, watcher)?;
        if let Some(checkpoints) = checkpoints {
            checkpoints.report_resumed(session.resumed(), watcher);
        }
        let (output, trials) = self.run_trials(&mut session, &settings, clock)?;
        let finished = clock.now();
        session.share_metrics()?;
        let metrics = session.metrics().clone();
        // A resumed run must replay the calls of the run before, even if no one reads the summary.
        let sizes = match self.entry.group_sizes {
            Some(group_sizes) if wants_summary || checkpoints.is_some() => {
                Some(group_sizes(&mut session, &output)?)
            }
            _ => None,
        };
        session.end_calls()?;
        drop(set_aside);
        self.warn_of(&metrics, watcher);
        let written = self.write_result(
            &mut session,
            (&output, sizes.as_ref()),
            &graph,
            (is_first, count),
            each,
            watcher,
        )?;
        if let Some(checkpoints) = checkpoints {
            checkpoints.end(machine, &mut session, watcher)?;
        }
        let timelines = recording.map_or(Ok(Vec::new()), |recording| recording.end(machine))?;
        let ended = clock.now();

        let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
        let run = Run {
            algorithm: self.entry.name,
            column: output.column,
            vertices: graph.vertices(),
            arcs: graph.arcs(),
            read: info::read(&graph.meta().options),
            top: (written.summary.top.iter())
                .take(self.config.top)
                .cloned()
                .collect(),
            summary: written.summary.shown(self.config.top),
            peak_memory: machine.budget().peak(),
            trials,
            seconds: Seconds {
                open: seconds(began, opened),
                load: metrics.loading,
                run: seconds(opened, finished) - metrics.loading,
                write: seconds(finished, ended),
            },
            result_bytes: written.bytes,
            timelines,
            metrics,
        };
        if let Some(path) = self.config.metrics.as_ref().filter(|_| is_first) {
            self.write_metrics(&**machine.disk(), &run, path)?;
        }
        Ok(run)
    }

    /// Runs the algorithm as often as asked; returns the last output, and the seconds of each trial.
    fn run_trials(
        &self,
        session: &mut Session,
        settings: &AlgorithmOptions,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Output, Vec<f64>), Error> {
        let mut trials = Vec::new();
        loop {
            let (began, loading) = (clock.now(), session.metrics().loading);
            let output = (self.entry.run)(session, settings)?;
            let loading = session.metrics().loading - loading;
            trials.push((clock.now() - began).as_secs_f64() - loading);
            if trials.len() >= self.config.trials as usize {
                return Ok((output, trials));
            }
        }
    }

    /// Warns of an option without effect, and of a tolerance that was not reached.
    fn warn_of(&self, metrics: &Metrics, watcher: &ProgressFn) {
        if let Some(option) = self.idle_option(metrics) {
            watcher(&Progress::Warning(&format!(
                "{option} was of no use: it is for edges in memory, and the run went over them on disk or as they are packed"
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
    /// `count` is the number of rows of the summary, `sizes` are the sizes of groups.
    fn write_result(
        &self,
        session: &mut Session,
        (output, sizes): (&Output, Option<&Output>),
        graph: &StoredGraph,
        (is_first, count): (bool, usize),
        each: Option<&mut dyn FnMut(&Block)>,
        watcher: &ProgressFn,
    ) -> Result<WrittenResult, Error> {
        let folder = self.output_file().filter(|path| is_folder(path));
        let mut done = 0;
        let mut note = |rows: u64, total: u64| {
            done += rows;
            watcher(&Progress::Part {
                what: "result",
                done,
                total,
                unit: "rows",
            });
        };
        let mut result_bytes = match folder {
            Some(folder) => {
                let batches = graph.batches();
                let own = session.local_batches().map(|batch| batches.range(batch));
                let own = own.map(|range| range.end - range.start).sum();
                Some(session.write_parts(output, folder, |rows| note(rows, own))?)
            }
            None => None,
        };
        if !is_first {
            session.serve()?;
        }
        let (mut summary, mut long_ids) = (Summary::default(), Vec::new());
        if is_first && self.wants_summary() {
            (summary, long_ids) = session.summarize(output, sizes, count)?;
        }
        let path = self.config.output.as_ref();
        if let Some(path) = path.filter(|_| is_first && folder.is_none()) {
            let note = |rows| note(rows, graph.vertices());
            result_bytes = Some(session.write(output, path, note)?);
        }
        if let Some(each) = each.filter(|_| is_first) {
            session.each_block(output, each)?;
        }
        if is_first {
            session.stop_serving()?;
        }
        Ok(WrittenResult {
            bytes: result_bytes,
            summary,
            _long_ids: long_ids,
        })
    }

    /// Opens the stored graph and resolves the options for the algorithm.
    ///
    /// A cached graph stays locked while the returned hold lives.
    pub(crate) fn open_and_resolve(
        &self,
        machine: &Machine,
        purpose: OpenFor<'_>,
        watcher: &ProgressFn,
    ) -> Result<(Arc<StoredGraph>, AlgorithmOptions, Option<DirLock>), Error> {
        let (graph, hold) = self.open(machine, purpose, watcher)?;
        let settings =
            algorithms::settings(self.entry, &self.config.options, &graph, machine.budget())?;
        let is_weighted = self.entry.is_weighted(&settings);
        let notice = match graph.edge_kind() {
            EdgeKind::None if is_weighted => {
                "the graph has no weights, each arc counts 1 (--weights f32 or f64 reads a third column)"
            }
            EdgeKind::F32 | EdgeKind::F64 if self.entry.can_be_weighted() && !is_weighted => {
                "the weights of the graph are ignored, each arc counts 1 (--weighted goes by them)"
            }
            _ => "",
        };
        if !notice.is_empty() {
            watcher(&Progress::Warning(&format!(
                "{}: {notice}",
                self.entry.name
            )));
        }
        Ok((graph, settings, hold))
    }

    /// Opens the stored graph that is the input, or that all ranks import from it.
    ///
    /// A cached graph stays locked for the run.
    fn open(
        &self,
        machine: &Machine,
        purpose: OpenFor<'_>,
        watcher: &ProgressFn,
    ) -> Result<(Arc<StoredGraph>, Option<DirLock>), Error> {
        let disk = machine.disk();
        let inputs = machine.inputs(&self.config.input)?;
        // Of several files that a pattern stands for, the pattern names the cache.
        let input = match &inputs[..] {
            [input] => input,
            _ => &self.config.input,
        };
        for list in &self.config.import.vertices {
            machine.input(list)?;
        }
        if disk.exists(&input.join(DESCRIPTION))? {
            if self.config.import != ImportConfig::default() {
                return Err(Error::AlreadyStored {
                    path: input.clone(),
                });
            }
            // It may be one of the cache.
            let hold = disk.hold(input, LockMode::Shared, Owner::Anybody);
            let hold = hold.ok().flatten();
            return Ok((machine.graph_for(input, purpose)?, hold));
        }
        self.open_cached(machine, purpose, (&inputs, input), watcher)
    }

    /// Opens the graph that is cached beside `input`; imports it from the files `inputs` if there is none.
    fn open_cached(
        &self,
        machine: &Machine,
        purpose: OpenFor<'_>,
        (inputs, input): (&[PathBuf], &Path),
        watcher: &ProgressFn,
    ) -> Result<(Arc<StoredGraph>, Option<DirLock>), Error> {
        let disk = machine.disk();
        let mut files = input_files(&**disk, inputs)?;
        files.extend(self.config.import.vertices.clone());
        let names = files
            .iter()
            .map(|file| NAME_BYTES + file.as_os_str().len() as u64);
        let names = machine
            .budget()
            .lease("the names of the input's files", names.sum())?;
        let options = format!("{:?}", self.config.import);
        let cache = CacheLocation::of(&**disk, input, &files, &options)?;
        let path = cache.graph();
        // Held before it is looked for, so that it is not removed in between.
        let hold = cache.hold(&**disk)?;
        let is_there = disk.exists(&path.join(DESCRIPTION))?;
        // Ranks with disks of their own number files in ways of their own. Each has a whole graph there, by whatever job it was made.
        let found = machine.gather(path.as_os_str().as_encoded_bytes())?;
        let is_shared = found.iter().all(|other| *other == found[0]);
        let found = machine.gather(&[u8::from(is_there)])?;
        let is_there = match is_shared {
            true => found.contains(&vec![1]),
            false => is_there,
        };
        if is_there {
            watcher(&Progress::Note(&format!(
                "using {}, imported before",
                path.display()
            )));
            let graph = self.imported(machine, &path, purpose, watcher)?;
            for line in info::read(&graph.meta().options) {
                watcher(&Progress::Note(&line));
            }
            return Ok((graph, hold));
        }
        let enough = || machine.enough_for(purpose, &files, &self.config.import);
        machine.check_any(purpose, &enough)?;
        watcher(&Progress::Note(&format!(
            "importing {} into {}",
            input.display(),
            path.display()
        )));
        let by_all = is_shared && found.len() > 1;
        self.import_to_cache(machine, &cache, (inputs, input), by_all, &enough, watcher)?;
        drop((files, names));
        let hold = cache.hold(&**disk)?;
        cache.remove_stale(disk);
        Ok((self.imported(machine, &path, purpose, watcher)?, hold))
    }

    /// Imports into the cache; `enough` returns the budget that the run needs.
    fn import_to_cache(
        &self,
        machine: &Machine,
        cache: &CacheLocation,
        (inputs, input): (&[PathBuf], &Path),
        by_all: bool,
        enough: &dyn Fn() -> Result<u64, Error>,
        watcher: &ProgressFn,
    ) -> Result<(), Error> {
        let path = cache.graph();
        // The lock keeps another process from replacing the directory while this one writes it.
        let _folder = cache.make(&**machine.disk())?;
        // Checkpoints of the import lie in the cache, which deletes stale ones. Among other temporary files they would stay if the input changed.
        let mut import = self.config.import.clone();
        if machine.tmp_asked().is_some() {
            import.keep_every = None;
        }
        let importing = match by_all {
            true => machine.clone(),
            false => machine.alone(),
        };
        if let Err(error) = importing.import_anywhere(inputs, &path, &import, watcher) {
            // Another run may have made the same graph meanwhile.
            let is_there = machine.disk().exists(&path.join(DESCRIPTION))?;
            if is_there && by_all {
                // Ranks that failed are lost to each other.
                return Err(Error::ImportedMeanwhile { path });
            }
            if !is_there {
                // An empty directory is deleted, whichever process made it.
                let _ = machine.disk().remove_dir(&cache.folder);
                return Err(match error {
                    Error::Ingest(IngestError::Storage(StorageError::Path { source, .. }))
                        if is_forbidden(&source) =>
                    {
                        Error::NoCache {
                            input: input.to_path_buf(),
                            folder: cache.folder.clone(),
                            source,
                        }
                    }
                    // The reported minimum suffices for the run, too.
                    Error::Ingest(IngestError::TooLittleMemory {
                        what,
                        needed,
                        available,
                        least,
                    }) => Error::Ingest(IngestError::TooLittleMemory {
                        what,
                        needed,
                        available,
                        least: least.max(enough()?),
                    }),
                    error => error,
                });
            }
        }
        Ok(())
    }

    /// Opens a graph of the cache; every run on it reports what its import skipped.
    fn imported(
        &self,
        machine: &Machine,
        path: &Path,
        purpose: OpenFor<'_>,
        watcher: &ProgressFn,
    ) -> Result<Arc<StoredGraph>, Error> {
        let graph = machine.graph_for(path, purpose)?;
        let dropped = &graph.meta().dropped;
        for (reason, what) in [
            ("malformed_lines", "malformed lines skipped"),
            (
                "malformed_vertex_lines",
                "malformed lines of vertices skipped",
            ),
        ] {
            if let Some(count) = dropped.get(reason).filter(|count| **count > 0) {
                watcher(&Progress::Warning(&format!(
                    "{}: {what} when it was imported: {count}",
                    self.config.input.display()
                )));
            }
        }
        Ok(graph)
    }

    fn write_metrics(&self, disk: &dyn Disk, run: &Run, path: &Path) -> Result<(), Error> {
        let account = MetricsReport {
            algorithm: self.entry.name,
            graph: GraphCounts {
                vertices: run.vertices,
                arcs: run.arcs,
            },
            read: &run.read,
            executor: "column",
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
        };
        let mut text = serde_json::to_vec_pretty(&account)
            .map_err(std::io::Error::from)
            .map_err(ResultError::Write)?;
        text.push(b'\n');
        Ok(write_output(disk, path, &text)?)
    }
}

/// Bytes of memory that the name of a file takes in addition to its text.
const NAME_BYTES: u64 = 48;

/// Whether nothing may be written in some place.
fn is_forbidden(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}
