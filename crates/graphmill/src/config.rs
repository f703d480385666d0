//! The configuration of a run: its input, its algorithm, and its settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use graphmill_engine::Every;

use crate::import_config::ImportConfig;
use crate::machine::resources::MachineConfig;
use crate::session::Tuning;

/// What is asked of a run. The same for Rust and for the command.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the algorithm, as [`algorithms`](crate::algorithms) lists it.
    pub algorithm: String,
    /// The algorithm's options by name; a flag has the value "true", a list of vertices their ids with commas between, where a
    /// backslash takes the character after it as a part of the id.
    pub options: BTreeMap<String, String>,
    /// A stored graph, or a file or folder of edges: these are imported into a cache beside them first.
    pub input: PathBuf,
    /// How edges are read, where the input is not a stored graph.
    pub import: ImportConfig,
    /// Result file; its name says the format. `-` is CSV to standard output. With a slash at the end it is a folder to which each rank writes a part, of Parquet
    /// unless the name says otherwise.
    pub output: Option<PathBuf>,
    /// JSON file for what the run took.
    pub metrics: Option<PathBuf>,
    /// How many of the highest values to keep, or of the largest groups where values name groups, as components do; none where values
    /// are other vertices, of which none is higher than another.
    pub top: usize,
    /// Whether to say what the result is in a few numbers ([`Run::summary`](crate::Run::summary)), which metrics and `top` do too.
    pub summary: bool,
    /// Ranks that work on the graph together, each with its share of memory and threads; 0 is 1.
    pub ranks: usize,
    /// How often the algorithm runs over the open graph, to measure it; the result is that of the last time. 0 is 1.
    pub trials: u32,
    /// What may be taken of the machine.
    pub machine: MachineConfig,
    /// What is for the engine to choose unless it is told.
    pub tuning: Tuning,
    /// Where versions of the run are published, that a killed one goes on with.
    pub checkpoints: Checkpoints,
}

impl Config {
    /// `algorithm` on `input`, everything else as usual.
    pub fn new(algorithm: impl Into<String>, input: impl Into<PathBuf>) -> Config {
        Config {
            algorithm: algorithm.into(),
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
            tuning: Tuning::default(),
            checkpoints: Checkpoints::default(),
        }
    }

    /// The same with one option of the algorithm set.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Config {
        self.options.insert(name.into(), value.into());
        self
    }
}

/// Versions of a run, which one that was killed goes on with.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoints {
    /// The folder that they are published in; it is made, and goes when the run has come to its end. Without one it is among the temporary
    /// files, named after the run, and the same run goes on with what is there.
    pub folder: Option<PathBuf>,
    /// How often.
    pub every: Every,
    /// How many are kept; none are published where it is 0.
    pub keep: usize,
    /// Go on with the newest in `folder`, if there is any; else there must be none.
    pub resume: bool,
}

impl Default for Checkpoints {
    /// Of runs whose rows are on disk, in a folder of their own; the newest is kept.
    fn default() -> Checkpoints {
        Checkpoints {
            folder: None,
            every: Every::Paged,
            keep: 1,
            resume: false,
        }
    }
}
