//! Space, memory, traffic and time of an import and of a run, before anything is done (DFOGraph, section 4.5).
//!
//! A [`EstimateRequest`] names a graph, stored or known by its numbers, an algorithm and a [`Cluster`]; the [`Estimate`] has bytes from the crates
//! that would do the work, and the time that the slowest of disk, network and cores takes for each phase.

use std::collections::BTreeMap;
use std::path::PathBuf;

use graphmill_algorithms::AlgorithmError;
use graphmill_engine::{
    CombineChoice, DispatchChoice, ExecutorChoice, PassTraffic, RunEstimate, RunEstimateRequest,
    UpdateResidency, estimate_run,
};
pub use graphmill_graph::DegreeModel;
use graphmill_graph::{EdgeKind, GraphProfile, Layout};
pub use graphmill_ingest::Input;
use graphmill_ingest::{
    ImportEstimate, ImportEstimateRequest, ImportOptions, ImportTraffic, Phase, estimate,
};
use graphmill_storage::{CancelToken, MemoryBudget, Placement, Tiers};
use serde::Serialize;

use crate::algorithms;
use crate::error::Error;
use crate::machine::resources::Machine;
use crate::plan::check_executor;
use crate::summary::{TOP_ROWS, result_bytes};

/// A request for an estimate.
#[derive(Clone, Debug)]
pub struct EstimateRequest {
    /// The graph.
    pub graph: GraphSource,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Its options, as for a run.
    pub options: BTreeMap<String, String>,
    /// Passes over all edges; `None` for the default of the algorithm, or one.
    ///
    /// If `None`, `wcc` is planned as it runs by default: it unites the ends of all edges in one pass.
    pub iterations: Option<u64>,
    /// How messages on disk get to the columns that need them.
    pub dispatch: DispatchChoice,
    /// Which executor runs passes over edges.
    pub executor: ExecutorChoice,
    /// Where passes over chunks have accumulators.
    pub updates: UpdateResidency,
    /// Whether the bucket executor combines messages; `None` for its default.
    pub combine: Option<CombineChoice>,
    /// Which kind of data of the run lies on which tier of memory.
    pub placement: Placement,
    /// The machines.
    pub cluster: Cluster,
}

/// A graph, stored or not.
#[derive(Clone, Debug)]
pub enum GraphSource {
    /// The directory of a stored graph.
    Stored(PathBuf),
    /// One that is to be made.
    Expected(Expected),
}

/// A graph by its numbers.
#[derive(Clone, Debug)]
pub struct Expected {
    /// How edges are spread over vertices.
    pub like: DegreeModel,
    /// Ids of vertices are below this.
    pub vertices: u64,
    /// Edges.
    pub edges: u64,
    /// Whether an edge goes one way.
    pub directed: bool,
    /// Where edges come from.
    pub input: Input,
    /// True if the import has the option --vertices-below: all integers below `vertices` are vertices.
    pub vertices_below: bool,
    /// What an edge carries.
    pub weights: EdgeKind,
    /// Vertices of a batch, exactly.
    pub batch_size: Option<u64>,
    /// As of an import.
    pub csr_ratio: Option<u32>,
    /// Bytes of a chunk in the stream layout, at most.
    pub chunk_size: Option<u64>,
}

/// What the machines can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// Ranks.
    pub ranks: usize,
    /// Threads of each.
    pub threads: usize,
    /// Bytes of memory of each.
    pub memory: u64,
    /// Whether all ranks share one disk; otherwise each has its own.
    pub shared_disk: bool,
    /// Bytes a second that a disk reads and writes, both together.
    pub disk_rate: f64,
    /// Bytes a second that a rank sends, while it receives as many.
    pub network_rate: f64,
    /// Arcs a second that a thread imports.
    pub import_rate: f64,
    /// Arcs a second that a thread goes along in a pass.
    pub pass_rate: f64,
}

impl Cluster {
    /// The largest memory in bytes that an estimate uses: sums beyond it would overflow 64 bits.
    const MEMORY_MAX: u64 = 1 << 56;
    /// The largest number of ranks, each estimated against all others.
    pub const RANKS_MAX: usize = 4096;

    fn check(&self) -> Result<(), Error> {
        let rates = [
            ("--disk-rate", self.disk_rate),
            ("--network-rate", self.network_rate),
            ("--import-rate", self.import_rate),
            ("--pass-rate", self.pass_rate),
        ];
        let counts = [
            ("--ranks", self.ranks as f64),
            ("--threads", self.threads as f64),
            ("--memory", self.memory as f64),
        ];
        for (option, number) in rates.into_iter().chain(counts) {
            if !(number > 0.0 && number.is_finite()) {
                return Err(Error::NoRate { option });
            }
        }
        match self.ranks > Self::RANKS_MAX {
            true => Err(Error::TooManyRanks {
                ranks: self.ranks,
                most: Self::RANKS_MAX,
            }),
            false => Ok(()),
        }
    }
}

/// What comes of it.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// The graph.
    pub graph: GraphStats,
    /// The machines.
    pub cluster: Cluster,
    /// The import; none of a graph that is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<ImportStats>,
    /// The run.
    pub run: RunStats,
}

/// A graph on disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GraphStats {
    /// |V|.
    pub vertices: u64,
    /// Stored edges.
    pub arcs: u64,
    /// Batches of vertices.
    pub batches: u64,
    /// Cells that are not empty.
    pub cells: u64,
    /// Bytes of blocks of edges.
    pub block_bytes: u64,
    /// Bytes of the indices of cells, with their bitmaps.
    pub index_bytes: u64,
    /// Bytes of weights, or of records.
    pub weight_bytes: u64,
    /// True if edges carry records.
    #[serde(skip)]
    pub has_records: bool,
    /// Bytes of degrees, fan-out lists, directories and ids.
    pub other_bytes: u64,
    /// Bytes of all files.
    pub disk_bytes: u64,
}

/// Bytes that go over disk and network, and the seconds that takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Bytes read from disk.
    pub bytes_read: u64,
    /// Bytes written to disk.
    pub bytes_written: u64,
    /// Bytes sent to other ranks.
    pub bytes_sent: u64,
    /// Seconds, of the slowest of disk, network and cores.
    pub seconds: f64,
    /// Seconds of each of these.
    pub seconds_disk: f64,
    /// See there.
    pub seconds_network: f64,
    /// See there.
    pub seconds_cores: f64,
}

impl Cost {
    /// Adds another cost `times` times: its bytes, and its seconds as `seconds` combines them.
    fn add(&mut self, other: &Cost, times: u64, seconds: impl Fn(f64, f64) -> f64) {
        let bytes = |sum: u64, more: u64| sum.saturating_add(more.saturating_mul(times));
        *self = Cost {
            bytes_read: bytes(self.bytes_read, other.bytes_read),
            bytes_written: bytes(self.bytes_written, other.bytes_written),
            bytes_sent: bytes(self.bytes_sent, other.bytes_sent),
            seconds: seconds(self.seconds, other.seconds),
            seconds_disk: seconds(self.seconds_disk, other.seconds_disk),
            seconds_network: seconds(self.seconds_network, other.seconds_network),
            seconds_cores: seconds(self.seconds_cores, other.seconds_cores),
        };
    }

    /// What the slowest part is.
    #[must_use]
    pub fn bound(&self) -> &'static str {
        let parts = [
            (self.seconds_disk, "disk"),
            (self.seconds_network, "network"),
            (self.seconds_cores, "cores"),
        ];
        let slowest = parts.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let slowest = slowest.filter(|part| part.0 > 0.0);
        slowest.map_or("", |part| part.1)
    }
}

/// The cost of a stage of an import or a run, of all ranks and of each.
///
/// A stage ends when its slowest rank does.
#[derive(Clone, Debug, Serialize)]
pub struct StageCost {
    /// What it is called.
    pub name: &'static str,
    /// All ranks together.
    #[serde(flatten)]
    pub all: Cost,
    /// In order of rank.
    pub per_rank: Vec<Cost>,
}

/// An import.
#[derive(Clone, Debug, Serialize)]
pub struct ImportStats {
    /// Its steps in order, then all of them as `all`.
    pub steps: Vec<StageCost>,
    /// All together.
    pub all: StageCost,
    /// Bytes of temporary files, which lie beside the graph until it is finished.
    pub temporary_bytes: u64,
    /// Whether ids are sorted on disk, since memory holds no bitmap of them.
    pub sorts_ids: bool,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct RunStats {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Passes over all edges.
    pub iterations: u64,
    /// Before the passes, and once in the first of them.
    pub start: StageCost,
    /// The last pass; those before it may be others, until messages are dispatched.
    pub pass: StageCost,
    /// All together.
    pub all: StageCost,
    /// Whether rows, and messages, stay in memory at all ranks.
    pub vertex_state_resident: bool,
    /// See there.
    pub messages_resident: bool,
    /// Bytes of cells that stay in memory, of `cell_bytes`.
    pub cached_cell_bytes: u64,
    /// See there.
    pub cell_bytes: u64,
    /// The least memory that every rank can do with.
    pub least_memory: u64,
    /// The same where somebody wants the rows of the result.
    pub least_memory_with_rows: u64,
    /// Bytes of temporary files of all ranks.
    pub temporary_bytes: u64,
}

impl EstimateRequest {
    /// Answers it. Of a stored graph directories and fan-out lists are read, of others nothing.
    ///
    /// # Errors
    /// There is no such algorithm or graph; numbers are 0 or beyond what can be stored; a rank has too little memory, with the least that
    /// would do.
    pub fn answer(&self, stop: &CancelToken) -> Result<Estimate, Error> {
        let entry = algorithms::find(&self.algorithm)?;
        let values = algorithms::values(entry, &self.options);
        match (entry.check_options)(&values) {
            // An estimate does without them.
            Ok(()) | Err(AlgorithmError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.cluster.check()?;
        if self.executor != ExecutorChoice::Bucket && self.combine.is_some() {
            return Err(Error::Meaningless {
                option: "--combine",
                needs: "--executor bucket",
            });
        }
        let cluster = Cluster {
            memory: self.cluster.memory.min(Cluster::MEMORY_MAX),
            ..self.cluster
        };
        let (outline, imported, budget, disk_bytes) = match &self.graph {
            GraphSource::Stored(path) => {
                let machine = Machine::with_one_thread(stop)?;
                let graph = machine.graph(path)?;
                algorithms::check_edge_vertices(entry, &graph)?;
                check_executor(self.executor, &graph)?;
                self.check_updates(graph.layout())?;
                let outline = GraphProfile::of_stored(&graph, machine.budget());
                let disk_bytes = machine.disk_bytes(path)?;
                (outline, None, machine.budget().clone(), Some(disk_bytes))
            }
            GraphSource::Expected(expected) => {
                let layout = self.executor.layout().unwrap_or_default();
                self.check_updates(layout)?;
                let imported = expected.import(&cluster, layout, entry.edge_vertices)?;
                let outline = imported.outline.clone();
                // Nothing is leased of it: no file is read.
                (outline, Some(imported), MemoryBudget::new(0), None)
            }
        };
        let cuts = outline.cuts(cluster.ranks);
        let senders = outline.senders(&cuts, &budget)?;
        let mut options = entry.options.iter();
        let default = options.find(|option| option.name == "iterations");
        let default = default.and_then(|option| option.default?.parse().ok());
        let iterations = self.iterations.or(default).unwrap_or(1);
        let run = estimate_run(&RunEstimateRequest {
            outline: &outline,
            cuts: &cuts,
            senders: &senders,
            threads: cluster.threads,
            memory: cluster.memory,
            sizes: (entry.sizes)(&outline.measure, &values),
            results: [false, true]
                .map(|rows| result_bytes(&outline.measure, entry.shape, rows, TOP_ROWS)),
            dispatch: self.dispatch,
            updates: self.updates,
            buckets: (self.executor == ExecutorChoice::Bucket)
                .then(|| self.combine.unwrap_or_default()),
            // If edges have vertices, messages go to them and back.
            passes: iterations.saturating_mul(1 + u64::from(entry.edge_vertices)),
            at_once: self.iterations.is_none(),
            tiers: &Tiers::planned(&self.placement),
            budget: &budget,
        })?;
        Ok(Estimate {
            graph: facts(&outline, disk_bytes),
            cluster,
            import: imported.map(|imported| import_facts(&imported, &cluster)),
            run: run_facts(entry.name, iterations, &run, &cluster),
        })
    }
}

impl EstimateRequest {
    /// Refuses an option of the stream executor for a graph of columns.
    fn check_updates(&self, layout: Layout) -> Result<(), Error> {
        match layout == Layout::Column && self.updates != UpdateResidency::default() {
            true => Err(Error::Meaningless {
                option: "--updates",
                needs: "--executor stream",
            }),
            false => Ok(()),
        }
    }
}

impl Expected {
    /// Estimates the import; with `edge_vertices` each edge becomes a vertex.
    fn import(
        &self,
        cluster: &Cluster,
        layout: Layout,
        edge_vertices: bool,
    ) -> Result<ImportEstimate, Error> {
        let defaults = ImportOptions::new("");
        let options = ImportOptions {
            layout,
            chunk_size: self.chunk_size,
            directed: self.directed,
            edge_vertices,
            batch_size: self.batch_size,
            csr_ratio: self.csr_ratio.unwrap_or(defaults.csr_ratio),
            ..defaults
        };
        let misfit = match (self.weights, self.input) {
            (EdgeKind::F32 | EdgeKind::F64, Input::Pairs(_)) => Some((
                "--weights",
                "generated edges (--input generated), since raw pairs carry none",
            )),
            _ if self.chunk_size.is_some() && layout == Layout::Column => {
                Some(("--chunk-size", "--executor stream"))
            }
            (EdgeKind::Record(_), Input::Drawn) => Some((
                "--edge-data",
                "files (--input files), since generated edges carry no records",
            )),
            _ => None,
        };
        if let Some((option, needs)) = misfit {
            return Err(Error::Meaningless { option, needs });
        }
        Ok(estimate(&ImportEstimateRequest {
            like: self.like,
            vertices: self.vertices,
            edges: self.edges,
            input: self.input,
            vertices_below: self.vertices_below,
            weights: self.weights,
            options: &options,
            ranks: cluster.ranks,
            shared: cluster.shared_disk,
            threads: cluster.threads,
            memory: cluster.memory,
        })?)
    }
}

/// Returns the statistics of a graph; `disk_bytes` are the bytes of its files, if it is stored.
fn facts(outline: &GraphProfile, disk_bytes: Option<u64>) -> GraphStats {
    let files = &outline.files;
    let expected = files.all();
    let disk_bytes = disk_bytes.unwrap_or(expected);
    GraphStats {
        vertices: outline.measure.batches.vertices(),
        arcs: outline.arcs,
        batches: outline.columns.len() as u64,
        cells: outline.measure.cells,
        block_bytes: files.data,
        index_bytes: files.index.saturating_add(files.bitmaps),
        weight_bytes: files.weights,
        has_records: outline.measure.edge.is_record(),
        other_bytes: (files.of_all())
            .saturating_add_signed(disk_bytes.wrapping_sub(expected) as i64),
        disk_bytes,
    }
}

/// Returns the cost of a stage from the traffic and the arcs of each rank, at `rate` arcs a thread.
fn part(
    name: &'static str,
    each: &[(PassTraffic, u64)],
    rate: f64,
    cluster: &Cluster,
) -> StageCost {
    let disk = |traffic: &PassTraffic| traffic.read as f64 + traffic.written as f64;
    let shared: f64 = each.iter().map(|(traffic, _)| disk(traffic)).sum();
    let cost = |(traffic, arcs): &(PassTraffic, u64)| {
        let moved = match cluster.shared_disk {
            true => shared,
            false => disk(traffic),
        };
        let seconds_disk = moved / cluster.disk_rate;
        let seconds_network = traffic.sent as f64 / cluster.network_rate;
        let seconds_cores = *arcs as f64 / (rate * cluster.threads as f64);
        Cost {
            bytes_read: traffic.read,
            bytes_written: traffic.written,
            bytes_sent: traffic.sent,
            seconds: seconds_disk.max(seconds_network).max(seconds_cores),
            seconds_disk,
            seconds_network,
            seconds_cores,
        }
    };
    let per_rank: Vec<Cost> = each.iter().map(cost).collect();
    let mut all = Cost::default();
    for cost in &per_rank {
        all.add(cost, 1, f64::max);
    }
    StageCost {
        name,
        all,
        per_rank,
    }
}

/// Parts that come one after the other: ranks wait for each other between them.
fn in_all<'p>(parts: impl IntoIterator<Item = (&'p StageCost, u64)>, ranks: usize) -> StageCost {
    let mut sum = StageCost {
        name: "in all",
        all: Cost::default(),
        per_rank: vec![Cost::default(); ranks],
    };
    for (part, times) in parts {
        let seconds = |sum: f64, more: f64| sum + more * times as f64;
        sum.all.add(&part.all, times, seconds);
        for (rank, cost) in sum.per_rank.iter_mut().zip(&part.per_rank) {
            rank.add(cost, times, seconds);
        }
    }
    sum
}

fn import_facts(imported: &ImportEstimate, cluster: &Cluster) -> ImportStats {
    let traffic = |moved: ImportTraffic| PassTraffic {
        read: moved.read,
        written: moved.written,
        sent: moved.sent,
    };
    // The rate is that of all steps together.
    let working = imported.phases.iter().filter(|phase| phase.arcs > 0);
    let rate = cluster.import_rate * working.count() as f64;
    let step = |phase: &Phase| {
        let other = (traffic(phase.other), phase.arcs);
        let mut each = vec![other; cluster.ranks];
        each[0] = (traffic(phase.first), phase.arcs);
        part(phase.name, &each, rate, cluster)
    };
    let steps: Vec<StageCost> = imported.phases.iter().map(step).collect();
    ImportStats {
        all: in_all(steps.iter().map(|step| (step, 1)), cluster.ranks),
        steps,
        temporary_bytes: imported.temporary_bytes,
        sorts_ids: imported.sorts_ids,
    }
}

fn run_facts(
    algorithm: &'static str,
    iterations: u64,
    run: &[RunEstimate],
    cluster: &Cluster,
) -> RunStats {
    let rate = cluster.pass_rate;
    let each: Vec<_> = run.iter().map(|rank| (rank.start, 0)).collect();
    let start = part("start", &each, rate, cluster);
    let pass_after = |passes: u64| {
        let of_rank = |rank: &RunEstimate| {
            // Fewer workers than threads take as long as all of them with more arcs.
            let idle = cluster.threads as f64 / rank.workers as f64;
            let arcs = (rank.arcs as f64 * idle) as u64;
            match passes < rank.early_passes {
                true => (rank.early, arcs),
                false => (rank.pass, arcs),
            }
        };
        let each: Vec<_> = run.iter().map(of_rank).collect();
        part("a pass", &each, rate, cluster)
    };
    // Passes are alike from one after which some rank dispatches messages to the next such.
    let mut changes: Vec<u64> = run.iter().map(|rank| rank.early_passes).collect();
    changes.push(iterations);
    changes.sort_unstable();
    let (mut passes, mut done) = (Vec::new(), 0);
    for change in changes {
        if change > done {
            passes.push((pass_after(done), change - done));
            done = change;
        }
    }
    let parts = passes.iter().map(|(part, times)| (part, *times));
    let all = in_all([(&start, 1)].into_iter().chain(parts), cluster.ranks);
    let least = |which: usize| run.iter().map(|rank| rank.least_memory[which]).max();
    let sum = |of: fn(&RunEstimate) -> u64| run.iter().map(of).fold(0, u64::saturating_add);
    RunStats {
        algorithm,
        iterations,
        all,
        start,
        pass: pass_after(iterations.saturating_sub(1)),
        vertex_state_resident: run.iter().all(|rank| rank.vertex_state_resident),
        messages_resident: run.iter().all(|rank| rank.messages_resident),
        cached_cell_bytes: sum(|rank| rank.cached_cell_bytes),
        cell_bytes: sum(|rank| rank.cell_bytes),
        least_memory: least(0).unwrap_or(0),
        least_memory_with_rows: least(1).unwrap_or(0),
        temporary_bytes: sum(|rank| rank.temporary_bytes),
    }
}
