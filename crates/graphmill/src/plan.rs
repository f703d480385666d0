//! From what is asked to what will be done: names become entries of the registry, absent settings become numbers, mistakes become
//! errors before anything is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use graphmill_algorithms::Entry;
use graphmill_engine::{Combiner, EdgesAt, Metrics};
use graphmill_storage::{Kind, PlacementError, Where};

use crate::checkpoints::Checkpoints;
use crate::import::ImportConfig;
use crate::machine::{MachineConfig, default_memory, default_threads};
use crate::result::{Format, is_stdout};
use crate::session::Tuning;
use crate::spool::Spool;
use crate::algorithm;
use crate::error::Error;

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

/// A [`Config`] that was found to make sense, with nothing left open. `Display` prints it.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) config: Config,
    pub(crate) entry: &'static Entry,
    /// Bytes.
    pub(crate) memory: u64,
    pub(crate) threads: usize,
}

impl Plan {
    /// Resolves and checks a configuration.
    ///
    /// # Errors
    /// There is no such algorithm, option or result format; an option is missing, has a value that it cannot have, or means nothing
    /// here.
    pub fn new(config: Config) -> Result<Plan, Error> {
        let entry = algorithm::find(&config.algorithm)?;
        algorithm::check(entry, &config.options)?;
        if let Some(output) = &config.output {
            Format::of(output)?;
        }
        let placement = &config.machine.placement;
        let slow = Kind::ALL.iter().any(|kind| placement.is_slow(*kind));
        if config.machine.charge.is_some() && !slow {
            return Err(PlacementError::NothingToCharge.into());
        }
        let method = config.options.get("method").map(String::as_str);
        if config.tuning.combiner != Combiner::Auto && method != Some("pregel-push") {
            return Err(Error::Meaningless {
                option: "--combiner",
                needs: "--method pregel-push",
            });
        }
        config.import.check(config.import.weights)?;
        let streams =
            *placement.at(Kind::Edges) == Where::Stream || config.tuning.edges == EdgesAt::Disk;
        if method == Some("afforest") && streams {
            return Err(Error::Streamed {
                option: "--method afforest",
            });
        }
        if config.top > 0 && gives_vertices(&config.options) {
            return Err(Error::NoHighest {
                algorithm: entry.name,
            });
        }
        Ok(Plan {
            entry,
            memory: config.machine.memory.unwrap_or_else(default_memory),
            threads: config
                .machine
                .threads
                .unwrap_or_else(default_threads)
                .max(1),
            config,
        })
    }

    /// An option that says how to go over lists of edges in memory, where a run had none.
    pub(crate) fn idle_option(&self, run: &Metrics) -> Option<&'static str> {
        let is_idle = run.lists_bytes == 0 && run.passes() > 0;
        (is_idle && self.config.options.contains_key("delta")).then_some("--delta")
    }

    /// The same plan with the file that standard input was written to; of that no run goes on.
    pub(crate) fn on_spool(&self, spool: &Spool) -> Plan {
        let mut plan = self.clone();
        if let ([input], true) = (spool.inputs(), spool.is_used()) {
            plan.config.input = input.clone();
            plan.config.checkpoints.keep = 0;
        }
        plan
    }

    /// Whether somebody asks for a summary of the result.
    pub(crate) fn wants_summary(&self) -> bool {
        self.config.summary || self.config.top > 0 || self.config.metrics.is_some()
    }

    /// The result's file, or folder of parts, unless it goes to standard output.
    pub(crate) fn output_file(&self) -> Option<&Path> {
        let output = self.config.output.as_deref();
        output.filter(|path| !is_stdout(path))
    }

    /// The machine's share, resolved.
    pub(crate) fn machine(&self) -> MachineConfig {
        MachineConfig {
            memory: Some(self.memory),
            threads: Some(self.threads),
            ..self.config.machine.clone()
        }
    }
}

/// Whether the values of the result are vertices that name no groups.
fn gives_vertices(options: &BTreeMap<String, String>) -> bool {
    options.get("parents").is_some_and(|flag| flag == "true")
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.entry.name, self.config.input.display())?;
        for (name, value) in &self.config.options {
            write!(f, ", {name} {value}")?;
        }
        let memory = self.memory >> 20;
        write!(f, ", {memory} MiB of memory, {} threads", self.threads)?;
        match &self.config.output {
            Some(output) => write!(f, ", result to {}", output.display()),
            None => Ok(()),
        }
    }
}
