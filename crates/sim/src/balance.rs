//! Balance by stealing: the chunks that each rank of a simulated cluster processes (Chaos, section 5.4).
//!
//! The import and the engine are the real ones. Each rank is a machine of its own with one thread, whose work takes simulated time. So
//! the count of chunks does not depend on the machine that simulates.

use std::fmt;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use graphmill::advanced::{Clock, SimulatedMachine, StealBias};
use graphmill::generate::{Generated, GraphRule, KroneckerLabels};
use graphmill::{
    CancelToken, Config, EdgeKind, Error, ImportConfig, Layout, Machine, MachineConfig, Plan,
    unwatched,
};
use graphmill_fabric::{NetworkModel, SimFabric, simulated};
use graphmill_storage::{Disk, SimDisk, SimulatedClock, SplitMix64};
use serde_json::{Value, json};

use crate::paced::PacedRank;

/// Maximum time of a frame.
const FRAME_MAX: Duration = Duration::from_micros(100);
/// Bytes of memory of a rank.
const MEMORY: u64 = 256 << 20;
const CHUNK_BYTES: u64 = 4096;
const GRAPH: &str = "/graph";

/// A graph whose static cut leaves one rank with most edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkewedGraph {
    /// All edges leave the batch of one of four ranks.
    OneBatch,
    /// A Kronecker graph whose labels are as drawn, cut among eight ranks.
    Kronecker,
}

/// The chunks that each rank processed with one bias.
#[derive(Debug, Clone, PartialEq)]
pub struct BalanceRun {
    /// The bias of stealing.
    pub steal: StealBias,
    /// Chunks by rank.
    pub chunks: Vec<u64>,
}

impl BalanceRun {
    /// Returns the chunks of the busiest rank over the mean.
    pub fn busiest_over_mean(&self) -> f64 {
        let most = self.chunks.iter().max().copied().unwrap_or_default();
        let sum: u64 = self.chunks.iter().sum();
        (most * self.chunks.len() as u64) as f64 / sum as f64
    }
}

/// The balance on one graph, without stealing and with it.
#[derive(Debug, Clone)]
pub struct BalanceReport {
    /// The seed of the graph and of the cluster.
    pub seed: u64,
    /// The graph.
    pub graph: SkewedGraph,
    /// Without stealing, then with the bias of the paper.
    pub runs: Vec<BalanceRun>,
}

/// Returns the configuration of a machine with one thread.
fn machine(disk: &SimDisk, clock: Arc<dyn Clock>, seed: u64) -> MachineConfig {
    MachineConfig {
        memory: Some(MEMORY),
        threads: Some(1),
        simulated: Some(SimulatedMachine {
            disk: Arc::new(disk.clone()),
            clock,
            seed,
        }),
        ..MachineConfig::default()
    }
}

impl SkewedGraph {
    /// All of them.
    pub const ALL: [SkewedGraph; 2] = [SkewedGraph::OneBatch, SkewedGraph::Kronecker];

    fn ranks(self) -> usize {
        match self {
            SkewedGraph::OneBatch => 4,
            SkewedGraph::Kronecker => 8,
        }
    }

    /// Returns the logarithm of the number of vertices; each rank owns one batch.
    fn scale(self) -> u8 {
        match self {
            SkewedGraph::OneBatch => 12,
            SkewedGraph::Kronecker => 13,
        }
    }

    /// Makes a disk with the stored graph.
    fn disk(self, seed: u64) -> Result<SimDisk, Error> {
        let disk = SimDisk::new(seed);
        let vertices = 1 << self.scale();
        let batch = vertices / self.ranks() as u64;
        let machine = machine(&disk, Arc::new(SimulatedClock::default()), seed);
        let machine = Machine::open(&machine, CancelToken::new())?;
        let import = ImportConfig {
            layout: Layout::Stream,
            chunk_size: Some(CHUNK_BYTES),
            batch_size: Some(batch),
            ..ImportConfig::default()
        };
        let graph = Path::new(GRAPH);
        match self {
            SkewedGraph::OneBatch => {
                let mut random = SplitMix64::new(seed);
                let mut edges = Vec::new();
                for _ in 0..2_700_000 {
                    edges.extend((random.below(batch) as u32).to_le_bytes());
                    edges.extend((random.below(vertices) as u32).to_le_bytes());
                }
                let path = PathBuf::from("/edges.u32");
                disk.write_small(&path, &edges)?;
                machine.import(from_ref(&path), graph, &import, &unwatched())?;
                disk.remove_file(&path)?;
            }
            SkewedGraph::Kronecker => {
                let rule = GraphRule::Kronecker {
                    scale: self.scale(),
                    // With fewer edges the requests of a window are a large part of the chunks of a rank.
                    degree: 1024,
                    labels: KroneckerLabels::Drawn,
                };
                let rule = Generated::new(rule, seed, EdgeKind::None)?;
                machine.generate(&rule, graph, &import, &unwatched())?;
            }
        }
        Ok(disk)
    }

    /// Runs a pass of `PageRank` over the graph.
    fn run(self, disk: &SimDisk, seed: u64, steal: StealBias) -> Result<BalanceRun, Error> {
        let of_rank = |rank: usize, fabric: SimFabric| {
            let disk = disk.copied(rank as u64);
            let paced = Arc::new(PacedRank::new(fabric, disk.clone()));
            let mut config = Config::new("pagerank", GRAPH).option("iterations", "1");
            config.machine = machine(&disk, Arc::clone(&paced) as _, seed ^ rank as u64);
            config.engine.steal = steal;
            config.checkpoints.keep = 0;
            Plan::new(config)?.run_as(paced, &CancelToken::new(), &unwatched())
        };
        let network = NetworkModel {
            delay_max: FRAME_MAX,
            ..NetworkModel::default()
        };
        let runs: Vec<_> = thread::scope(|scope| {
            let fabrics = simulated(seed, self.ranks(), network).into_iter();
            let start = |(rank, fabric)| scope.spawn(move || of_rank(rank, fabric));
            let started: Vec<_> = fabrics.enumerate().map(start).collect();
            started.into_iter().map(|thread| thread.join()).collect()
        });
        let mut chunks = Vec::new();
        for run in runs {
            let run = run.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            if chunks.is_empty() {
                chunks = run.metrics.ranks.iter().map(|of| of.chunks).collect();
            }
        }
        Ok(BalanceRun { steal, chunks })
    }
}

/// Runs one pass over a graph whose cut is skewed, without stealing and with it.
///
/// # Errors
/// The import or a run fails.
pub fn balance(seed: u64, graph: SkewedGraph) -> Result<BalanceReport, Error> {
    let disk = graph.disk(seed)?;
    let run = |steal| graph.run(&disk, seed, steal);
    let runs = vec![run(StealBias::NEVER)?, run(StealBias::PAPER)?];
    Ok(BalanceReport { seed, graph, runs })
}

impl BalanceReport {
    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let run = |run: &BalanceRun| {
            json!({
                "steal": run.steal.to_string(),
                "chunks": run.chunks,
                "busiest_over_mean": run.busiest_over_mean(),
            })
        };
        let runs: Vec<Value> = self.runs.iter().map(run).collect();
        json!({"seed": self.seed, "graph": self.graph.to_string(), "runs": runs})
    }
}

impl fmt::Display for SkewedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkewedGraph::OneBatch => write!(f, "all edges leave one batch"),
            SkewedGraph::Kronecker => write!(f, "kronecker, labels drawn"),
        }
    }
}

impl fmt::Display for BalanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, ranks) = (self.seed, self.graph.ranks());
        writeln!(f, "seed {seed}: {}, {ranks} ranks", self.graph)?;
        for run in &self.runs {
            let chunks: Vec<String> = run.chunks.iter().map(u64::to_string).collect();
            let (steal, chunks) = (run.steal, chunks.join(" "));
            let busiest = run.busiest_over_mean();
            writeln!(
                f,
                "  --steal {steal}: chunks {chunks}; busiest/mean {busiest:.2}"
            )?;
        }
        Ok(())
    }
}
