//! Resolves a request into a plan before it opens anything.
//!
//! Names become entries of the registry, absent settings become numbers, mistakes become errors.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use graphmill_algorithms::{Entry, ResultShape};
use graphmill_engine::{
    BucketOptions, Combiner, EdgeResidency, EngineOptions, ExecutorChoice, LinkChoice, Metrics,
};
use graphmill_graph::{Layout, StoredGraph};
use graphmill_storage::{DataKind, Placement, PlacementError, Tier};

use crate::algorithms;
use crate::config::Config;
use crate::error::Error;
use crate::import_config::ImportConfig;
use crate::machine::limits::{default_memory, default_threads};
use crate::machine::resources::MachineConfig;
use crate::result::format::{ResultFormat, is_folder, is_stdout};
use crate::spool::Spool;

/// Passes from which on sorted columns answer sooner than unsorted chunks, with the import.
pub(crate) const COLUMNS_PAY_OFF: u64 = 8;
/// Bytes of memory below which a run goes over columns, which need less.
const CHUNKS_MEMORY: u64 = 256 << 20;

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
    pub fn new(mut config: Config) -> Result<Plan, Error> {
        let entry = algorithms::entry(&config)?;
        config.import.edge_vertices = entry.edge_vertices;
        algorithms::check(entry, &config.options)?;
        if let Some(output) = &config.output {
            ResultFormat::of(output)?;
        }
        let placement = &config.machine.placement;
        let slow = DataKind::ALL.iter().any(|kind| placement.is_slow(*kind));
        if config.machine.charge.is_some() && !slow {
            return Err(PlacementError::NothingToCharge.into());
        }
        let method = config.options.get("method").map(String::as_str);
        if config.engine.combiner != Combiner::Auto && method != Some("pregel-push") {
            return Err(Error::Meaningless {
                option: "--combiner",
                needs: "--method pregel-push",
            });
        }
        config.import.check(config.import.edge_kind())?;
        let given = algorithms::given(entry, &config);
        if config.import.edge_kind().is_record() && entry.is_weighted(&given) {
            let algorithm = entry.name;
            return Err(Error::RecordsAsWeights { algorithm });
        }
        check_stream_options(&config)?;
        match (config.executor, config.engine.buckets) {
            (ExecutorChoice::Bucket, None) => {
                config.engine.buckets = Some(BucketOptions::default());
            }
            (ExecutorChoice::Bucket, Some(_)) | (_, None) => (),
            (_, Some(_)) => {
                return Err(Error::Meaningless {
                    option: "--link, --link-rate, --combine, --bucket-threads, --plain-datagrams, --datagram-address or --dpdk-device",
                    needs: "--executor bucket",
                });
            }
        }
        let has_device = |of: BucketOptions| of.device.is_some() && of.link != LinkChoice::Dpdk;
        if config.engine.buckets.is_some_and(has_device) {
            return Err(Error::Meaningless {
                option: "--dpdk-device",
                needs: "--link dpdk",
            });
        }
        if config.executor == ExecutorChoice::Stream {
            config.import.layout = Layout::Stream;
        }
        let streams = *placement.at(DataKind::Edges) == Tier::Stream
            || config.engine.edges == EdgeResidency::Disk;
        if method == Some("afforest") && streams {
            let option = "--method afforest";
            return Err(Error::Streamed { option });
        }
        let is_one_row = matches!(entry.shape, ResultShape::Numbers(_));
        if config.top > 0 && (is_one_row || gives_vertices(&config.options)) {
            let algorithm = entry.name;
            return Err(Error::NoHighest { algorithm });
        }
        let threads = config.machine.threads;
        Ok(Plan {
            entry,
            memory: config.machine.memory.unwrap_or_else(default_memory),
            threads: threads.unwrap_or_else(default_threads).max(1),
            config,
        })
    }

    /// Refuses a stored graph whose layout is not that of the executor, or of an option.
    pub(crate) fn check_layout(&self, graph: &StoredGraph) -> Result<(), Error> {
        check_executor(self.config.executor, graph)?;
        if graph.layout() == Layout::Column {
            let as_column = Config {
                executor: ExecutorChoice::Column,
                ..self.config.clone()
            };
            return check_stream_options(&as_column);
        }
        Ok(())
    }

    /// Returns the plan over unsorted chunks, if that answers sooner on files of edges of `bytes` bytes.
    ///
    /// So it is where the folds of the program are exact and its passes are few, and nothing is said of columns.
    pub(crate) fn over_chunks(&self, bytes: u64) -> Option<Plan> {
        let config = &self.config;
        let given = algorithms::given(self.entry, config);
        let passes = (self.entry.few_passes)(&given)?;
        let is_open = config.executor == ExecutorChoice::Auto
            && config.import.layout == Layout::Column
            && u64::from(config.trials) * passes < COLUMNS_PAY_OFF
            && config.engine == EngineOptions::default()
            && config.machine.placement == Placement::default();
        let import = ImportConfig {
            layout: Layout::Stream,
            ..config.import.clone()
        };
        // Chunks on their way and a row of each vertex are in memory.
        let fits = self.memory >= CHUNKS_MEMORY.max(bytes / 8);
        let fits = is_open && fits && import.check(import.edge_kind()).is_ok();
        fits.then(|| Plan {
            config: Config {
                executor: ExecutorChoice::Stream,
                import,
                ..config.clone()
            },
            ..self.clone()
        })
    }

    /// An option that says how to go over lists of edges in memory, where a run had none.
    pub(crate) fn idle_option(&self, run: &Metrics) -> Option<&'static str> {
        let is_idle = run.adjacency_bytes == 0 && run.passes() > 0;
        (is_idle && self.config.options.contains_key("delta")).then_some("--delta")
    }

    /// Returns the plan with the file that standard input was written to; it writes no checkpoints.
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

    /// The result's file, or directory of parts, unless it goes to standard output.
    pub(crate) fn output_file(&self) -> Option<&Path> {
        let output = self.config.output.as_deref();
        output.filter(|path| !is_stdout(path))
    }

    /// The directory of the parts of the result.
    pub(crate) fn output_folder(&self) -> Option<&Path> {
        self.output_file().filter(|path| is_folder(path))
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

/// Refuses a stored graph whose layout is not that of the executor.
pub(crate) fn check_executor(executor: ExecutorChoice, graph: &StoredGraph) -> Result<(), Error> {
    let layout = graph.layout();
    match executor.layout().is_some_and(|wanted| wanted != layout) {
        true => Err(Error::OtherLayout {
            path: graph.path().to_path_buf(),
            layout,
        }),
        false => Ok(()),
    }
}

/// Refuses options of the stream executor where another one is asked for.
fn check_stream_options(config: &Config) -> Result<(), Error> {
    let defaults = EngineOptions::default();
    let given = [
        ("--updates", config.engine.updates != defaults.updates),
        ("--window", config.engine.window.is_some()),
        ("--steal", config.engine.steal != defaults.steal),
        ("--chunk-size", config.import.chunk_size.is_some()),
    ];
    let option = given.into_iter().find(|(_, is_given)| *is_given);
    match option.filter(|_| config.executor.layout() == Some(Layout::Column)) {
        None => Ok(()),
        Some((option, _)) => Err(Error::Meaningless {
            option,
            needs: "--executor stream",
        }),
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
