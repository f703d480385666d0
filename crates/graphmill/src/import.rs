//! From files of edges, or a rule, to a stored graph: the import's options in one place, and the sources behind them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use graphmill_fabric::Fabric;
use graphmill_ingest::{
    EdgeSource, FileSource, ImportOptions, ImportReport, ImportTraffic, IngestError, check_memory,
    import, input_files,
};
use graphmill_storage::write_output;
use serde::Serialize;

use crate::error::{Error, paths};
use crate::import_config::ImportConfig;
use crate::machine::resources::Machine;
use crate::paths::DESCRIPTION;
use crate::progress::{ImportReporter, Progress, ProgressFn};
use crate::result_error::ResultError;
use crate::start::StartOptions;

/// The JSON of `--metrics`.
#[derive(Serialize)]
struct ImportMetrics {
    graph: GraphSize,
    /// How the input was read.
    read: Vec<String>,
    ranks: usize,
    memory_budget: u64,
    peak_memory: u64,
    temporary_bytes: u64,
    seconds: BTreeMap<&'static str, f64>,
    bytes_read: u64,
    bytes_written: u64,
    bytes_sent: u64,
    per_rank: Vec<MovedBytes>,
}

#[derive(Serialize)]
pub(crate) struct GraphSize {
    pub(crate) vertices: u64,
    pub(crate) arcs: u64,
}

#[derive(Serialize)]
struct MovedBytes {
    bytes_read: u64,
    bytes_written: u64,
    bytes_sent: u64,
}

impl Machine {
    /// Imports `inputs`, files of edges or directories of them, into the new stored graph `graph`.
    ///
    /// With several ranks ([`run_on_ranks`](crate::advanced::run_on_ranks), [`run_as_rank`](crate::advanced::run_as_rank)) each reads and writes a part.
    ///
    /// # Errors
    /// A file cannot be read or makes no sense, is a pipe, a device or a stored graph; weights are to be merged and there are none;
    /// the disk fails, the budget is too small, work was to stop, something has the graph's name, or its directory is not there. Nothing
    /// is left behind then but what [is kept](ImportConfig::keep_every).
    pub fn import(
        &self,
        inputs: &[PathBuf],
        graph: &Path,
        config: &ImportConfig,
        watcher: &ProgressFn,
    ) -> Result<ImportReport, Error> {
        self.import_alike(inputs, graph, config, None, watcher)
    }

    /// Imports like [`Machine::import`]; rank 0 writes the metrics of the import to `metrics`, as JSON.
    ///
    /// docs/reference/metrics.md lists the fields.
    ///
    /// # Errors
    /// As for [`Machine::import`]; the file cannot be written.
    pub fn import_measured(
        &self,
        inputs: &[PathBuf],
        graph: &Path,
        config: &ImportConfig,
        metrics: &Path,
        watcher: &ProgressFn,
    ) -> Result<ImportReport, Error> {
        let report = self.import_alike(inputs, graph, config, Some(metrics), watcher)?;
        if self.rank() > 0 {
            return Ok(report);
        }
        let sum = |of: fn(&ImportTraffic) -> u64| report.each_rank.iter().map(of).sum();
        let moved = |moved: &ImportTraffic| MovedBytes {
            bytes_read: moved.read,
            bytes_written: moved.written,
            bytes_sent: moved.sent,
        };
        let account = ImportMetrics {
            graph: GraphSize {
                vertices: report.vertices,
                arcs: report.arcs,
            },
            read: report.read.clone(),
            ranks: report.each_rank.len(),
            memory_budget: self.budget().total(),
            peak_memory: report.peak_memory,
            temporary_bytes: report.temporary_bytes,
            seconds: (report.steps.iter())
                .map(|(step, time)| (*step, time.as_secs_f64()))
                .collect(),
            bytes_read: sum(|moved| moved.read),
            bytes_written: sum(|moved| moved.written),
            bytes_sent: sum(|moved| moved.sent),
            per_rank: report.each_rank.iter().map(moved).collect(),
        };
        self.write_json(metrics, &account)?;
        Ok(report)
    }

    /// Writes the JSON of `--metrics`.
    pub(crate) fn write_json(&self, path: &Path, object: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(object).map_err(std::io::Error::from);
        let mut text = text.map_err(ResultError::Write)?;
        text.push(b'\n');
        Ok(write_output(&**self.disk(), path, &text)?)
    }

    /// Imports where all ranks were started alike.
    fn import_alike(
        &self,
        inputs: &[PathBuf],
        graph: &Path,
        config: &ImportConfig,
        metrics: Option<&Path>,
        watcher: &ProgressFn,
    ) -> Result<ImportReport, Error> {
        self.check_same_start(&StartOptions::of_import(inputs, graph, config, metrics))?;
        if let Some(metrics) = metrics.filter(|_| self.rank() == 0) {
            self.check_folder(metrics)?;
            self.check_writing(metrics)?;
        }
        self.check_folder(graph)?;
        self.import_anywhere(inputs, graph, config, watcher)
    }

    /// The same, and directories above the graph are made where they are missing.
    pub(crate) fn import_anywhere(
        &self,
        inputs: &[PathBuf],
        graph: &Path,
        config: &ImportConfig,
        watcher: &ProgressFn,
    ) -> Result<ImportReport, Error> {
        config.check(config.edge_kind())?;
        self.check_tmp()?;
        for list in &config.vertices {
            self.input(list)?;
        }
        let found: Result<Vec<_>, Error> = inputs.iter().map(|of| self.inputs(of)).collect();
        let inputs = found?.concat();
        for path in &inputs {
            if self.disk().exists(&path.join(DESCRIPTION))? {
                let path = path.clone();
                return Err(Error::NotEdges { path });
            }
        }
        let options = config.reading();
        let listed = input_files(&**self.disk(), &[&inputs[..], &config.vertices].concat())?;
        self.check_import_memory(&listed, graph, config)?;
        let source = FileSource::open(self.disk(), self.budget(), &inputs, &options, self.stop())?;
        if let [first, others @ ..] = source.left_out() {
            let more = match others.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            watcher(&Progress::Warning(&format!(
                "{}{more}: left out, not files of edges",
                first.display()
            )));
        }
        let lists = [source.vertex_files(), &config.vertices].concat();
        let mut vertices = None;
        if !lists.is_empty() {
            let (disk, budget, ids) = (self.disk(), self.budget(), source.ids());
            let stop = self.stop();
            let opened = FileSource::open_vertices(disk, budget, &lists, ids, &options, stop);
            vertices = Some(opened?);
        }
        let sources = [Some(&source), vertices.as_ref()].into_iter().flatten();
        let read = sources.flat_map(|source| source.notices(config.directed));
        let read: Vec<String> = read.collect();
        for line in &read {
            watcher(&Progress::Note(line));
        }
        let vertices = vertices.as_ref().map(|source| source as &dyn EdgeSource);
        let options = ImportOptions {
            read,
            ..config.options(graph, self.tmp_asked())
        };
        let report = self.import_sources((&source, vertices), options, "bytes", watcher)?;
        if report.edges == 0 {
            let text = format!("{}: no edges were read", paths(&inputs));
            watcher(&Progress::Warning(&text));
        }
        Ok(report)
    }

    /// Imports the edges of `source` into the new stored graph `graph`.
    ///
    /// How files are read is without effect.
    ///
    /// # Errors
    /// As for [`Machine::import`].
    pub fn import_edges(
        &self,
        source: &dyn EdgeSource,
        graph: &Path,
        config: &ImportConfig,
        watcher: &ProgressFn,
    ) -> Result<ImportReport, Error> {
        config.check(source.weights())?;
        let options = config.options(graph, self.tmp_asked());
        self.import_sources((source, None), options, "edges", watcher)
    }

    /// Imports edges, and vertices without edges; `unit` is what their progress counts.
    fn import_sources(
        &self,
        (source, vertices): (&dyn EdgeSource, Option<&dyn EdgeSource>),
        options: ImportOptions,
        unit: &'static str,
        watcher: &ProgressFn,
    ) -> Result<ImportReport, Error> {
        let progress = ImportReporter::new(watcher, unit);
        let machine = self.for_ingest(&progress);
        let imported = import(machine, source, vertices, &options);
        let mut report = imported.map_err(|error| progress.ended_with(error))?;
        report.read = options.read;
        Ok(report)
    }

    /// Rejects a budget that is too small for an import of the files `listed`.
    fn check_import_memory(
        &self,
        listed: &[PathBuf],
        graph: &Path,
        config: &ImportConfig,
    ) -> Result<(), Error> {
        let list_bytes = FileSource::list_bytes(listed);
        let checked = check_memory(
            self.budget(),
            self.workers(),
            FileSource::reader_bytes_by_name(listed),
            config.edge_kind(),
            !config.vertices.is_empty(),
            &config.options(graph, self.tmp_asked()),
        );
        checked.map_err(|mut error| {
            // The list of files stays beside what the import takes.
            if let IngestError::TooLittleMemory { needed, least, .. } = &mut error {
                *needed += list_bytes;
                *least += list_bytes;
            }
            error.into()
        })
    }

    /// What an import runs on.
    pub(crate) fn for_ingest<'a>(
        &'a self,
        progress: &'a ImportReporter<'a>,
    ) -> graphmill_ingest::ImportResources<'a> {
        graphmill_ingest::ImportResources {
            disk: self.disk(),
            workers: self.workers(),
            budget: self.budget(),
            clock: &**self.clock(),
            stop: self.stop(),
            progress,
            fabric: self.fabric().map(|fabric| &**fabric as &dyn Fabric),
        }
    }
}
