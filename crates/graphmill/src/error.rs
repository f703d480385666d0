//! What can go wrong between a question and its answer.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use graphmill_algorithms::AlgorithmError;
use graphmill_engine::EngineError;
use graphmill_fabric::FabricError;
use graphmill_graph::FormatError;
use graphmill_ingest::IngestError;
use graphmill_storage::{BudgetError, PlacementError, StorageError, is_of_disk};

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
        "this is one of {ranks} ranks of an MPI job, and there is no plugin for MPI: run `graphmill mpi build` once, with the MPI of the job (looked for {})",
        paths(places)
    )]
    NoPlugin {
        /// Ranks of the job.
        ranks: usize,
        /// Where it was looked for.
        places: Vec<PathBuf>,
    },
    /// There is no home directory for the plugin.
    #[error("there is no home directory for the plugin: name a file (-o)")]
    NoPlaceForPlugin,
    /// What one process does is asked of several.
    #[error(
        "this is one of {ranks} ranks of an MPI job, and only `import` and `run` are done by several: start it without mpirun or srun"
    )]
    OneProcess {
        /// Ranks of the job.
        ranks: usize,
    },
    /// Slurm started several processes that do not know of each other, and would each do all of the work.
    #[error(
        "srun started {tasks} tasks without MPI, of which each would do all of this by itself: start them with --mpi=pmix or --mpi=pmi2; \
         for {tasks} works of their own, unset SLURM_STEP_NUM_TASKS"
    )]
    Strangers {
        /// Tasks of the step.
        tasks: usize,
    },
    /// Ranks were started differently.
    #[error(
        "cannot work with rank {rank}: its {option} is not that of rank 0: start all ranks with the same program and options"
    )]
    RanksDiffer {
        /// Which rank.
        rank: usize,
        /// What differs.
        option: String,
    },
    /// The plugin for MPI could not be compiled.
    #[error("the plugin for MPI cannot be compiled by {compiler}: {what}")]
    PluginBuild {
        /// The compiler.
        compiler: String,
        /// What it said.
        what: String,
    },
    /// The registry has no such algorithm.
    #[error("there is no algorithm {name:?}: there are {}", known.join(", "))]
    UnknownAlgorithm {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The algorithm has no such option.
    #[error("{algorithm} has no option {name:?}{}", list(" (it has ", known, ")"))]
    UnknownOption {
        /// The algorithm.
        algorithm: &'static str,
        /// What was given.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The algorithm cannot run without an option.
    #[error("{algorithm} needs --{name}: {help}")]
    MissingOption {
        /// The algorithm.
        algorithm: &'static str,
        /// The option.
        name: &'static str,
        /// What it does.
        help: &'static str,
    },
    /// The graph has no such vertex.
    #[error("--{option} {id}: the graph has no such vertex{}", if *integers { " (its ids are integers)" } else { "" })]
    NoSuchVertex {
        /// The option that names it.
        option: &'static str,
        /// What it names.
        id: String,
        /// Whether the graph's ids are integers.
        integers: bool,
    },
    /// A URL where a file is expected.
    #[error("{}: a URL is not read; download the file first, or read it with DuckDB into a Parquet file", path.display())]
    Url {
        /// What was given.
        path: PathBuf,
    },

    /// A pattern that no file matches.
    #[error("{}: no file matches this pattern", path.display())]
    NoMatch {
        /// The pattern.
        path: PathBuf,
    },

    /// The input is neither a stored graph nor a file or directory of edges.
    #[error("{}: there is no such file or directory", path.display())]
    NoInput {
        /// What was given.
        path: PathBuf,
    },
    /// Edges that come from a pipe or a device.
    #[error(
        "{} is a pipe or a device: edges are read more than once, from wherever they lie: write them to a file, and name that, or give - and pipe them in",
        path.display()
    )]
    NotAFile {
        /// What was given.
        path: PathBuf,
    },
    /// A stored graph was given together with ways to read edges.
    #[error(
        "{} is a stored graph: how its edges are read was settled when it was imported; leave out those options, or import again",
        path.display()
    )]
    AlreadyStored {
        /// The stored graph.
        path: PathBuf,
    },
    /// A stored graph was given where edges belong.
    #[error(
        "{} is a stored graph already: run on it as it is, or import the edges that it was made of again",
        path.display()
    )]
    NotEdges {
        /// The stored graph.
        path: PathBuf,
    },
    /// An output would lie in a directory that does not exist.
    #[error("{}: there is no directory {}: make it first, or name another", path.display(), folder.display())]
    NoFolder {
        /// The output.
        path: PathBuf,
        /// Its directory.
        folder: PathBuf,
    },
    /// There is no writing beside the edges, where the graph imported from them would be kept.
    #[error(
        "cannot keep the graph of {} in {}: {source}: import it to where you may write (graphmill import {} -o GRAPH), and run on that",
        input.display(), folder.display(), input.display()
    )]
    NoCache {
        /// The edges.
        input: PathBuf,
        /// The directory beside them.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A graph that ranks were to make is there by now.
    #[error("{}: another run has imported it meanwhile: run again", path.display())]
    ImportedMeanwhile {
        /// The stored graph.
        path: PathBuf,
    },
    /// There is no writing where an output would go.
    #[error("{}: cannot write in {}: {source}: name another place", path.display(), folder.display())]
    NoOutput {
        /// The output.
        path: PathBuf,
        /// Its directory.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no writing where temporary files would go.
    #[error("cannot make temporary files in {}: {source}: name another directory for them (--tmp)", folder.display())]
    NoScratch {
        /// Where they would go.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Temporary files would lie in memory, beside the budget.
    #[error(
        "cannot keep temporary files in {}: it is memory (tmpfs), which --memory does not count: name a directory on a disk (--tmp)",
        directory.display()
    )]
    TmpInMemory {
        /// Where they would go.
        directory: PathBuf,
    },
    /// A count or a rate with which nothing would ever be done.
    #[error("{option}: nothing is done with none: give a number above 0")]
    NoRate {
        /// The option.
        option: &'static str,
    },
    /// More ranks than an estimate looks at.
    #[error("--ranks {ranks}: an estimate is for {most} at most")]
    TooManyRanks {
        /// Ranks.
        ranks: usize,
        /// At most.
        most: usize,
    },
    /// A directory for checkpoints holds something else, such as checkpoints of another run.
    #[error("{}: {what}: {todo}", path.display())]
    Checkpoints {
        /// Where that is.
        path: PathBuf,
        /// The mismatch that was found.
        what: String,
        /// What to do.
        todo: &'static str,
    },
    /// A directory for checkpoints in which another run writes.
    #[error("{}: another run writes its checkpoints there: name another directory (--checkpoint-dir), or wait", path.display())]
    CheckpointsHeld {
        /// Where that is.
        path: PathBuf,
    },
    /// An option that has no effect without another.
    #[error("{option} means nothing without {needs}: leave it out, or ask for both")]
    Meaningless {
        /// The option.
        option: &'static str,
        /// What it belongs to.
        needs: &'static str,
    },
    /// A method that goes over edges in memory, where they are to stream from disk.
    #[error(
        "{option} goes over edges in memory, but they are to stream from disk (--place edges=stream): leave out one of the two"
    )]
    Streamed {
        /// The option.
        option: &'static str,
    },
    /// The highest of values that are vertices.
    #[error(
        "--top: the values of {algorithm} are vertices here, of which none is higher than another: leave it out"
    )]
    NoHighest {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// Two kinds of output would be mixed.
    #[error("{option} prints on standard output, where the result goes: leave out one of the two")]
    BothOnStdout {
        /// The option.
        option: &'static str,
    },
    /// Standard input of a rank of an MPI job.
    #[error(
        "cannot read edges from standard input: it reaches one rank of an MPI job only: write them to a file, and name that"
    )]
    StdinOfRanks,
    /// Edges from standard input cannot be kept for the time of the work.
    #[error("cannot keep standard input in {}: {source}: name another directory for it (--tmp)", folder.display())]
    NoSpool {
        /// Where it would go.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Standard input cannot be read.
    #[error("cannot read standard input: {source}: write the edges to a file, and name that")]
    Stdin {
        /// What the system said.
        source: io::Error,
    },
    /// Standard input is asked for twice.
    #[error("cannot read standard input twice: give - once")]
    StdinTwice,
    /// An output would replace something that the run needs.
    #[error("{} is {what}: name another output", path.display())]
    OutputIs {
        /// The output.
        path: PathBuf,
        /// What it would replace.
        what: &'static str,
    },
    /// Somebody asked to stop.
    #[error("interrupted")]
    Stopped,
    /// The user stopped a run that can be resumed.
    #[error(
        "interrupted; the same command{} resumes (checkpoints are in {})",
        if *needs_resume { " with --resume" } else { "" },
        folder.display()
    )]
    Interrupted {
        /// Where checkpoints of it are.
        folder: PathBuf,
        /// True if the command has to say `--resume`.
        needs_resume: bool,
    },
    /// The user stopped an import that can be resumed.
    #[error("interrupted; the same command resumes (checkpoints are beside the graph and in {})", folder.display())]
    InterruptedImport {
        /// Where what was done is kept.
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

    /// Whether somebody asked to stop, this rank or another, and nothing else went wrong.
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

    /// True if the user stopped work that can be resumed.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            Error::Interrupted { .. } | Error::InterruptedImport { .. }
        )
    }

    /// Whether that is the end of a rank that was asked to, or of one that heard of it.
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

    /// Whether a disk is full or fails.
    pub(crate) fn is_of_disk(&self) -> bool {
        if let Error::Ingest(IngestError::TooLittleDisk { .. }) = self {
            return true;
        }
        let mut cause = self.source();
        while let Some(error) = cause {
            if error.downcast_ref().is_some_and(is_of_disk) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// True if existing checkpoints cannot be resumed from.
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

    /// Whether it was asked for wrongly: another question may well be answered.
    pub fn is_usage(&self) -> bool {
        matches!(
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
                | Error::Algorithm(AlgorithmError::Missing { .. } | AlgorithmError::Value { .. })
                | Error::Ingest(
                    IngestError::Generator { .. }
                        | IngestError::BatchSize { .. }
                        | IngestError::Plan { .. }
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

fn paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(", ")
}

fn list(before: &str, names: &[&str], after: &str) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!("{before}{}{after}", names.join(", "))
    }
}

/// Whether a rank is lost that ended as it was asked to.
pub(crate) fn is_end_as_asked(lost: &FabricError) -> bool {
    let asked = Error::Stopped.to_string();
    matches!(lost, FabricError::Lost { cause, .. } if *cause == asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_is_told_from_failed_wherever_it_comes_from() {
        let lost = |cause: String| FabricError::Lost { rank: 1, cause };
        let asked = Error::Interrupted {
            folder: PathBuf::new(),
            needs_resume: false,
        };
        let stopped: [Error; 8] = [
            lost(asked.to_others()).into(),
            lost(IngestError::Stopped.to_string()).into(),
            EngineError::from(lost(EngineError::Stopped.to_string())).into(),
            Error::Stopped,
            IngestError::Stopped.into(),
            EngineError::Stopped.into(),
            AlgorithmError::from(EngineError::Stopped).into(),
            ValidateError::Stopped.into(),
        ];
        assert!(stopped.iter().all(Error::is_stopped));
        let no_file = Error::NoInput {
            path: "interrupted".into(),
        };
        let failed: [Error; 5] = [
            lost("it was killed".into()).into(),
            lost(no_file.to_others()).into(),
            IngestError::SumTooLarge.into(),
            EngineError::Broken.into(),
            AlgorithmError::from(EngineError::Broken).into(),
        ];
        assert!(!failed.iter().any(Error::is_stopped));
    }

    #[test]
    fn a_full_disk_is_known_wherever_it_is_found() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let found: [Error; 4] = [
            ResultError::from(csv::Error::from(full())).into(),
            ResultError::from(full()).into(),
            IngestError::TooLittleDisk {
                folder: PathBuf::new(),
                needed: 2,
                free: 1,
            }
            .into(),
            AlgorithmError::from(EngineError::from(StorageError::Path {
                action: "write",
                path: PathBuf::new(),
                source: full(),
            }))
            .into(),
        ];
        assert!(found.iter().all(Error::is_of_disk));
        assert!(!Error::Stopped.is_of_disk() && !Error::from(EngineError::Broken).is_of_disk());
    }
}
