//! What can go wrong between a question and its answer.

use std::error::Error as _;
use std::io;
use std::iter::successors;
use std::path::PathBuf;

use graphmill_algorithms::AlgorithmError;
use graphmill_engine::EngineError;
use graphmill_fabric::FabricError;
use graphmill_graph::{FormatError, Layout};
use graphmill_ingest::IngestError;
use graphmill_storage::{BudgetError, CancelToken, PlacementError, StorageError, is_of_disk};

use crate::result_error::ResultError;
use crate::validate_error::ValidateError;

/// Why something was not done: what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The other ranks.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// This process is a rank of an MPI job, and the plugin for MPI is not compiled.
    #[error(
        "cannot run as one of {ranks} ranks of an MPI job: there is no plugin for MPI (looked for {}); run `graphmill mpi build` once, with the MPI of the job",
        paths(places)
    )]
    NoPlugin {
        /// Ranks of the job.
        ranks: usize,
        /// The paths that were searched.
        places: Vec<PathBuf>,
    },
    /// There is no home directory for the plugin.
    #[error("cannot write the plugin for MPI: there is no home directory; name a file (-o)")]
    NoPlaceForPlugin,
    /// The command runs in one process only, and this is one of several.
    #[error(
        "cannot run as one of {ranks} ranks of an MPI job: only `import` and `run` are done by several; start it without mpirun or srun"
    )]
    OneProcess {
        /// Ranks of the job.
        ranks: usize,
    },
    /// Slurm started several processes without MPI, and each would do all of the work.
    #[error(
        "cannot run as one of {tasks} tasks of srun: it started them without MPI, so each would do all of the work; \
         start them with --mpi=pmix or --mpi=pmi2, or unset SLURM_STEP_NUM_TASKS for {tasks} separate runs"
    )]
    Strangers {
        /// Tasks of the step.
        tasks: usize,
    },
    /// Ranks were started differently.
    #[error(
        "cannot work with rank {rank}: its {option} is not that of rank 0; start all ranks with the same program and options"
    )]
    RanksDiffer {
        /// The rank.
        rank: usize,
        /// The option that differs.
        option: String,
    },
    /// The plugin for MPI could not be compiled.
    #[error("cannot compile the plugin for MPI with {compiler}: {what}")]
    PluginBuild {
        /// The compiler.
        compiler: String,
        /// Its error.
        what: String,
    },
    /// The result is closed, or reading its rows failed before and its ranks are gone.
    #[error(
        "cannot read the result: it is closed, or reading it failed or was interrupted before; run the algorithm again"
    )]
    AnswerBroken,
    /// The registry has no such algorithm.
    #[error("cannot run {name:?}: there is no such algorithm; give one of {}", known.join(", "))]
    UnknownAlgorithm {
        /// The requested name.
        name: String,
        /// The algorithms of the registry.
        known: Vec<&'static str>,
    },
    /// The algorithm has no such option.
    #[error("{algorithm} has no option {name:?}{}", known_options(known))]
    UnknownOption {
        /// The algorithm.
        algorithm: &'static str,
        /// The given option.
        name: String,
        /// The options of the algorithm.
        known: Vec<&'static str>,
    },
    /// The algorithm cannot run without an option.
    #[error("{algorithm} requires --{name}: {help}")]
    MissingOption {
        /// The algorithm.
        algorithm: &'static str,
        /// The option.
        name: &'static str,
        /// What it does.
        help: &'static str,
    },
    /// The graph has no vertex of an id.
    #[error("the graph has no vertex {id:?}; give the id as the edges have it")]
    NoVertex {
        /// The id.
        id: String,
    },
    /// A row of a file of values does not fit the graph.
    #[error("cannot read {}, {place}: {what}; correct the file", path.display())]
    VertexFile {
        /// The file.
        path: PathBuf,
        /// The line of text, or the row of a Parquet file or a directory; both from 1.
        place: String,
        /// The mismatch.
        what: String,
    },
    /// The graph has no such vertex.
    #[error("--{option} {id}: the graph has no such vertex{}", if *integers { " (its ids are integers)" } else { "" })]
    NoSuchVertex {
        /// The option that names it.
        option: &'static str,
        /// The id.
        id: String,
        /// True if the graph's ids are integers.
        integers: bool,
    },
    /// A URL where a file is expected.
    #[error("cannot read {}: it is a URL; download the file first, or read it with DuckDB into a Parquet file", path.display())]
    Url {
        /// What was given.
        path: PathBuf,
    },

    /// A pattern that no file matches.
    #[error("cannot read {}: no file matches this pattern", path.display())]
    NoMatch {
        /// The pattern.
        path: PathBuf,
    },

    /// The input is neither a stored graph nor a file or directory of edges.
    #[error("cannot read {}: there is no such file or directory", path.display())]
    NoInput {
        /// What was given.
        path: PathBuf,
    },
    /// Edges that come from a pipe or a device.
    #[error(
        "cannot read {}: it is a pipe or a device, and edges are read more than once; write them to a file, and name that, or give - and pipe them in",
        path.display()
    )]
    NotAFile {
        /// What was given.
        path: PathBuf,
    },
    /// A stored graph was given together with ways to read edges.
    #[error(
        "cannot read {} with these options: it is a stored graph, whose import settled how its edges are read; leave them out, or import again",
        path.display()
    )]
    AlreadyStored {
        /// The stored graph.
        path: PathBuf,
    },
    /// A stored graph was given where edges belong.
    #[error(
        "cannot import {}: it is a stored graph already; run on it as it is, or import its edges again",
        path.display()
    )]
    NotEdges {
        /// The stored graph.
        path: PathBuf,
    },
    /// The directory of an output does not exist.
    #[error("cannot create {}: there is no directory {}; make it first, or name another", path.display(), folder.display())]
    NoFolder {
        /// The output.
        path: PathBuf,
        /// Its directory.
        folder: PathBuf,
    },
    /// The directory of the edges, which would keep the imported graph, cannot be written.
    #[error(
        "cannot keep the graph of {} in {}: {source}; import it to where you may write (graphmill import {} -o GRAPH), and run on that",
        input.display(), folder.display(), input.display()
    )]
    NoCache {
        /// The edges.
        input: PathBuf,
        /// Their directory.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another run made the graph meanwhile.
    #[error("cannot import {}: another run has imported it meanwhile; run again", path.display())]
    ImportedMeanwhile {
        /// The stored graph.
        path: PathBuf,
    },
    /// The directory of an output cannot be written.
    #[error("cannot create {} in {}: {source}; name another place", path.display(), folder.display())]
    NoOutput {
        /// The output.
        path: PathBuf,
        /// Its directory.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory of temporary files cannot be written.
    #[error("cannot make temporary files in {}: {source}; name another directory for them (--tmp)", folder.display())]
    NoScratch {
        /// The directory.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Temporary files would lie in memory that the budget does not count.
    #[error(
        "cannot keep temporary files in {}: it is memory (tmpfs), which --memory does not count; name a directory on a disk (--tmp)",
        directory.display()
    )]
    TmpInMemory {
        /// The directory.
        directory: PathBuf,
    },
    /// A count or a rate is 0.
    #[error("{option} must be positive")]
    NoRate {
        /// The option.
        option: &'static str,
    },
    /// An estimate is for fewer ranks.
    #[error("--ranks {ranks} must be at most {most}")]
    TooManyRanks {
        /// Requested ranks.
        ranks: usize,
        /// Maximum number of ranks.
        most: usize,
    },
    /// A directory for checkpoints holds something else, such as checkpoints of another run.
    #[error("cannot use {} for checkpoints: {what}; {todo}", path.display())]
    Checkpoints {
        /// The directory or file.
        path: PathBuf,
        /// The mismatch that was found.
        what: String,
        /// What to do.
        todo: &'static str,
    },
    /// A directory for checkpoints in which another run writes.
    #[error("cannot use {} for checkpoints: another run writes its checkpoints there; name another directory (--checkpoint-dir), or wait", path.display())]
    CheckpointsHeld {
        /// The directory.
        path: PathBuf,
    },
    /// Edges are to carry a weight and a record of fields.
    #[error("--edge-data conflicts with --weights: name the column of the weights in --edge-data")]
    TwoKindsOfData,
    /// An algorithm goes by weights, and edges carry records.
    #[error(
        "cannot run {algorithm} on {}: it goes by weights, but the edges carry the record {fields}; import them with --weights f32 or f64 (--weight-column names the column)",
        graph.display()
    )]
    NoWeights {
        /// The name of the algorithm.
        algorithm: &'static str,
        /// The stored graph.
        graph: PathBuf,
        /// The fields of the record.
        fields: String,
    },
    /// An algorithm goes by weights, and edges are to carry records.
    #[error(
        "cannot run {algorithm} with --edge-data: it goes by weights; give --weights f32 or f64 instead (--weight-column names the column)"
    )]
    RecordsAsWeights {
        /// The name of the algorithm.
        algorithm: &'static str,
    },
    /// An option requires another.
    #[error("{option} requires {needs}: leave it out, or give both")]
    Meaningless {
        /// The option.
        option: &'static str,
        /// The option or setting that it requires.
        needs: &'static str,
    },
    /// A stored graph has another layout than the executor needs.
    #[error(
        "cannot run this executor on {path}: its layout is {layout}; leave out --executor, or import the edges with another --layout",
        layout = match layout { Layout::Column => "column", Layout::Stream => "stream" }
    )]
    OtherLayout {
        /// The graph.
        path: PathBuf,
        /// Its layout.
        layout: Layout,
    },
    /// A method reads edges in memory, and edges are to stream from disk.
    #[error(
        "{option} conflicts with --place edges=stream: it goes over edges in memory; leave out one of the two"
    )]
    Streamed {
        /// The option.
        option: &'static str,
    },
    /// The highest values are requested, and values are vertices, or there is one row.
    #[error(
        "--top conflicts with {algorithm}: its values here are vertices or one row of numbers, which have no highest; leave it out"
    )]
    NoHighest {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// Two outputs would be mixed on standard output.
    #[error(
        "{option} conflicts with a result on standard output: it prints there too; leave out one of the two"
    )]
    BothOnStdout {
        /// The option.
        option: &'static str,
    },
    /// A rank of an MPI job would read standard input.
    #[error(
        "cannot read edges from standard input: it reaches one rank of an MPI job only; write them to a file, and name that"
    )]
    StdinOfRanks,
    /// Edges from standard input cannot be stored in a temporary file.
    #[error("cannot keep standard input in {}: {source}; name another directory for it (--tmp)", folder.display())]
    NoSpool {
        /// The directory of the file.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Standard input cannot be read.
    #[error("cannot read standard input: {source}; write the edges to a file, and name that")]
    Stdin {
        /// The system's error.
        source: io::Error,
    },
    /// Standard input is given twice.
    #[error("cannot read standard input twice: it can be read once; give - once")]
    StdinTwice,
    /// An output would replace something that the run needs.
    #[error("cannot write {}: it is {what}; name another output", path.display())]
    OutputIs {
        /// The output.
        path: PathBuf,
        /// What it would replace.
        what: &'static str,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Stopped,
    /// The user stopped a run that can be resumed.
    #[error(
        "interrupted; the same command{} resumes (checkpoints are in {})",
        if *needs_resume { " with --resume" } else { "" },
        folder.display()
    )]
    Interrupted {
        /// The directory of its checkpoints.
        folder: PathBuf,
        /// True if the command has to say `--resume`.
        needs_resume: bool,
    },
    /// The user stopped an import that can be resumed.
    #[error("interrupted; the same command resumes (checkpoints are beside the graph and in {})", folder.display())]
    InterruptedImport {
        /// The directory of its checkpoints that are not beside the graph.
        folder: PathBuf,
    },
    /// Import from edges.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// A stored graph.
    #[error(transparent)]
    Graph(#[from] FormatError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An algorithm's options, or a pass of it.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// A result file.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// A comparison.
    #[error(transparent)]
    Validate(#[from] ValidateError),
    /// The memory budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// Which data lies on which tier of memory.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Disk, threads or tiers of memory.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Error {
    /// Returns the error between ranks, if this is one.
    pub(crate) fn between_ranks(&self) -> Option<&FabricError> {
        match self {
            Error::Fabric(error)
            | Error::Ingest(IngestError::Fabric(error))
            | Error::Engine(EngineError::Fabric(error))
            | Error::Algorithm(AlgorithmError::Engine(EngineError::Fabric(error))) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the user asked this rank or another to stop, and nothing else failed.
    pub fn is_stopped(&self) -> bool {
        matches!(
            self,
            Error::Stopped
                | Error::Ingest(IngestError::Stopped)
                | Error::Engine(EngineError::Stopped)
                | Error::Validate(ValidateError::Stopped)
                | Error::Algorithm(AlgorithmError::Engine(EngineError::Stopped))
        ) || matches!(self.between_ranks(), Some(lost) if is_end_as_asked(lost))
    }

    /// Returns true if the user stopped work that can be resumed.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            Error::Interrupted { .. } | Error::InterruptedImport { .. }
        )
    }

    /// Returns true if this rank was asked to stop, or learned of such a request.
    pub(crate) fn is_end_as_asked(&self) -> bool {
        self.is_stopped() || self.is_interrupted()
    }

    /// Returns the message for the other ranks when this rank ends with the error.
    ///
    /// A rank that the user stopped reports only that.
    pub(crate) fn to_others(&self) -> String {
        match self.is_end_as_asked() {
            true => Error::Stopped.to_string(),
            false => self.to_string(),
        }
    }

    /// Returns true if a disk is full or fails.
    pub(crate) fn is_of_disk(&self) -> bool {
        let mut causes = successors(self.source(), |error| (*error).source());
        matches!(self, Error::Ingest(IngestError::TooLittleDisk { .. }))
            || causes.any(|error| error.downcast_ref().is_some_and(is_of_disk))
    }

    /// Returns true if existing checkpoints cannot be resumed from.
    pub(crate) fn is_of_checkpoints(&self) -> bool {
        let (Error::Engine(error) | Error::Algorithm(AlgorithmError::Engine(error))) = self else {
            return false;
        };
        matches!(
            error,
            EngineError::OtherRun { .. }
                | EngineError::NoSoundVersion { .. }
                | EngineError::VersionsElsewhere { .. }
        )
    }

    /// Returns true if the request is wrong: another command may succeed.
    pub fn is_usage(&self) -> bool {
        let of_import = matches!(self, Error::Ingest(error) if error.is_usage());
        of_import
            || matches!(
                self,
                Error::UnknownAlgorithm { .. }
                    | Error::UnknownOption { .. }
                    | Error::MissingOption { .. }
                    | Error::NoSuchVertex { .. }
                    | Error::NoInput { .. }
                    | Error::NotAFile { .. }
                    | Error::NotEdges { .. }
                    | Error::NoFolder { .. }
                    | Error::OutputIs { .. }
                    | Error::Meaningless { .. }
                    | Error::OtherLayout { .. }
                    | Error::TwoKindsOfData
                    | Error::NoWeights { .. }
                    | Error::RecordsAsWeights { .. }
                    | Error::BothOnStdout { .. }
                    | Error::StdinOfRanks
                    | Error::StdinTwice
                    | Error::Checkpoints { .. }
                    | Error::CheckpointsHeld { .. }
                    | Error::NoRate { .. }
                    | Error::TmpInMemory { .. }
                    | Error::TooManyRanks { .. }
                    | Error::OneProcess { .. }
                    | Error::Strangers { .. }
                    | Error::RanksDiffer { .. }
                    | Error::Streamed { .. }
                    | Error::NoHighest { .. }
                    | Error::AlreadyStored { .. }
                    | Error::Placement(_)
                    | Error::Storage(StorageError::Placement(PlacementError::NoNode { .. }))
                    | Error::Result(ResultError::UnknownFormat { .. })
                    | Error::Algorithm(
                        AlgorithmError::Missing { .. } | AlgorithmError::Value { .. }
                    )
                    | Error::Validate(
                        ValidateError::Share { .. }
                            | ValidateError::IsGraph { .. }
                            | ValidateError::NoFile { .. }
                            | ValidateError::NoParts { .. }
                    )
            )
    }
}

/// Fails if work is to stop.
pub(crate) fn check_stop(stop: &CancelToken) -> Result<(), Error> {
    match stop.is_cancelled() {
        true => Err(Error::Stopped),
        false => Ok(()),
    }
}

/// Returns paths with commas between them.
pub(crate) fn paths(paths: &[PathBuf]) -> String {
    let paths = paths.iter().map(|path| path.display().to_string());
    paths.collect::<Vec<_>>().join(", ")
}

fn known_options(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        names => format!(" (it has {})", names.join(", ")),
    }
}

/// Returns true if the lost rank ended because the user asked it to stop.
pub(crate) fn is_end_as_asked(lost: &FabricError) -> bool {
    let asked = Error::Stopped.to_string();
    matches!(lost, FabricError::Lost { cause, .. } if *cause == asked)
}

#[cfg(test)]
mod tests;
