//! The configuration of a run: its input, its algorithm, and its options.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use graphmill_algorithms::FOREIGN;
use graphmill_algorithms::foreign_program::ForeignProgram;
use graphmill_engine::{CheckpointInterval, EngineOptions, ExecutorChoice};

use crate::import_config::ImportConfig;
use crate::machine::resources::MachineConfig;

/// The request for a run. The command and Rust callers use the same.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the algorithm, as [`algorithms`](crate::algorithms) lists it.
    pub algorithm: String,
    /// A program in another language that runs in place of an algorithm.
    pub program: Option<Arc<ForeignProgram>>,
    /// The algorithm's options by name.
    ///
    /// A flag has the value "true". A list of vertices is their ids with commas between. A backslash escapes
    /// the character after it.
    pub options: BTreeMap<String, String>,
    /// A stored graph, or a file or directory of edges: these are imported into a cache beside them first.
    pub input: PathBuf,
    /// How edges are read, where the input is not a stored graph.
    pub import: ImportConfig,
    /// The result file; its name gives the format.
    ///
    /// `-` is CSV to standard output. With a slash at the end it is a directory to which each rank writes a
    /// part, in Parquet unless the name gives another format.
    pub output: Option<PathBuf>,
    /// JSON file for what the run took.
    pub metrics: Option<PathBuf>,
    /// The number of highest values to keep.
    ///
    /// For values that name groups, such as components, it is the number of largest groups. It has no effect
    /// for values that are other vertices, which have no order.
    pub top: usize,
    /// True to compute a summary of the result ([`Run::summary`](crate::Run::summary)).
    ///
    /// Metrics and `top` compute one too.
    pub summary: bool,
    /// Ranks that work on the graph together, each with its share of memory and threads; 0 is 1.
    pub ranks: usize,
    /// The number of measured runs of the algorithm over the open graph; 0 is 1.
    ///
    /// The result is that of the last.
    pub trials: u32,
    /// What may be taken of the machine.
    pub machine: MachineConfig,
    /// Which executor runs passes over edges.
    pub executor: ExecutorChoice,
    /// What the engine otherwise chooses by cost.
    pub engine: EngineOptions,
    /// The checkpoints of the run, from which a killed run resumes.
    pub checkpoints: CheckpointConfig,
}

impl Config {
    /// `algorithm` on `input`, everything else as usual.
    pub fn new(algorithm: impl Into<String>, input: impl Into<PathBuf>) -> Config {
        Config {
            algorithm: algorithm.into(),
            program: None,
            options: BTreeMap::new(),
            input: input.into(),
            import: ImportConfig::default(),
            output: None,
            metrics: None,
            top: 0,
            summary: false,
            ranks: 1,
            trials: 1,
            machine: MachineConfig::default(),
            executor: ExecutorChoice::default(),
            engine: EngineOptions::default(),
            checkpoints: CheckpointConfig::default(),
        }
    }

    /// A run of a program in another language.
    pub fn of_program(program: ForeignProgram, input: impl Into<PathBuf>) -> Config {
        Config {
            program: Some(Arc::new(program)),
            ..Config::new(FOREIGN.name, input)
        }
    }

    /// The same with one option of the algorithm set.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Config {
        self.options.insert(name.into(), value.into());
        self
    }
}

/// The checkpoints of a run, from which a killed run resumes.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointConfig {
    /// The directory of the checkpoints; created if missing, deleted when the run finishes.
    ///
    /// `None`: a directory among the temporary files, named after the run. The same run resumes from it.
    pub folder: Option<PathBuf>,
    /// How often.
    pub every: CheckpointInterval,
    /// How many are kept; none are published where it is 0.
    pub keep: usize,
    /// True to resume from the newest in `folder`, if there is any; else there must be none.
    pub resume: bool,
}

impl Default for CheckpointConfig {
    /// Of runs whose rows are on disk, in a directory of their own; the newest is kept.
    fn default() -> CheckpointConfig {
        CheckpointConfig {
            folder: None,
            every: CheckpointInterval::Paged,
            keep: 1,
            resume: false,
        }
    }
}
