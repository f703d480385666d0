//! A whole job: binning of the input, then the passes of an algorithm.

use graphmill_engine::chaos_model::{RequestTimes, StealBias};
use graphmill_storage::SplitMix64;

use super::algorithms::AlgorithmWork;
use super::graph::ModelGraph;
use super::hardware::{CHUNK, ClusterSetup, Design};
use super::phase::PhaseRun;
use super::plan::{ChunkMap, ChunkPile, PhasePlan, PhaseReport, StateAt, TimeSplit};

/// Bytes of the things that are stored.
#[derive(Clone, Copy, Debug)]
struct RecordBytes {
    input: f64,
    edge: f64,
    update: f64,
    /// The row of a vertex.
    row: f64,
    /// An accumulator, or the message of a vertex.
    value: f64,
}

impl RecordBytes {
    fn new(design: Design, graph: &ModelGraph, weighted: bool) -> Self {
        let (id, row) = match graph.is_compact() {
            true => (4.0, 12.0),
            false => (8.0, 16.0),
        };
        let input = 2.0 * id + if weighted { id } else { 0.0 };
        let (edge, update) = match design {
            Design::Chaos => (input, 2.0 * id),
            Design::Ours => (5.0 + if weighted { 4.0 } else { 0.0 }, 8.0),
        };
        RecordBytes {
            input,
            edge,
            update,
            row,
            value: id,
        }
    }
}

/// The result of a job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JobReport {
    pub(super) seconds: f64,
    /// Seconds to bin the input.
    pub(super) binning: f64,
    /// Bytes that all disks read and wrote.
    pub(super) bytes: f64,
    /// Seconds that a disk was busy, in the mean.
    pub(super) disk_busy: f64,
    /// Seconds of a worker, in the mean: own batches, others' batches, copying and merging, idle.
    pub(super) split: [f64; 4],
    /// Share of the updates that are folded in memory.
    pub(super) folded: f64,
}

/// A job under way.
struct ModelJob<'a> {
    setup: &'a ClusterSetup,
    bytes: RecordBytes,
    graph: ModelGraph,
    /// How many times smaller the simulated graph is.
    scale: f64,
    owners: Vec<usize>,
    /// Cumulative shares of the edges of all batches.
    all: Vec<f64>,
    /// The same of batches without accumulators in memory.
    spilled: Vec<f64>,
    /// Share of the vertices, and of the updates, with accumulators in memory.
    resident: f64,
    rows_in_memory: bool,
    times: RequestTimes,
    random: SplitMix64,
    report: JobReport,
}

/// Runs an algorithm on a graph.
pub(super) fn run_job(setup: &ClusterSetup, graph: ModelGraph, work: &AlgorithmWork) -> JobReport {
    let mut run = ModelJob::new(setup, graph, work.weighted);
    let edges = run.bin();
    run.report.binning = run.report.seconds;
    for &(share, times) in work.passes {
        run.pass(&edges, share, times);
    }
    run.report
}

fn cumulative(shares: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums: Vec<f64> = shares
        .map(|share| {
            sum += share;
            sum
        })
        .collect();
    let all = sum.max(f64::MIN_POSITIVE);
    sums.iter_mut().for_each(|sum| *sum /= all);
    sums
}

impl<'a> ModelJob<'a> {
    fn new(setup: &'a ClusterSetup, graph: ModelGraph, weighted: bool) -> Self {
        let bytes = RecordBytes::new(setup.design, &graph, weighted);
        let machines = setup.machines as f64;
        let memory = setup.hardware.memory;
        let rows = graph.vertices * bytes.row / machines;
        let rows_in_memory = setup.design == Design::Ours && rows <= memory / 2.0;
        // The least multiple of the machines such that the vertices of a batch fit in memory.
        let fitting = match setup.design {
            Design::Chaos => (rows / memory).ceil() as usize,
            Design::Ours => 1,
        };
        let batches = setup.machines * fitting.max(1) * setup.design.batches();
        let shares = graph.shares(batches);
        // Runs of equally many batches. Where edges have nine tenths of the weight, the owner of most vertices gets most
        // accumulators: PR of ours takes 1.45 times as long at 32 machines.
        let owners = (0..batches)
            .map(|batch| batch * setup.machines / batches)
            .collect();
        let left = memory - if rows_in_memory { rows } else { 0.0 };
        let resident = match setup.design {
            Design::Chaos => 0.0,
            Design::Ours => (left / (graph.vertices * bytes.value)).min(1.0),
        };
        // Accumulators of the batches with most edges stay in memory.
        let mut order: Vec<usize> = (0..batches).collect();
        order.sort_by(|&one, &other| shares[other].total_cmp(&shares[one]));
        let mut spilled = shares.clone();
        let kept = (resident * batches as f64) as usize;
        order
            .iter()
            .take(kept)
            .for_each(|&batch| spilled[batch] = 0.0);
        let folded = 1.0 - spilled.iter().sum::<f64>();
        ModelJob {
            scale: (graph.edges * bytes.edge / CHUNK as f64 / machines / setup.sample).max(1.0),
            all: cumulative(shares.into_iter()),
            spilled: cumulative(spilled.into_iter()),
            times: RequestTimes::default(),
            random: SplitMix64::new(setup.seed),
            report: JobReport {
                folded: if folded < 1e-9 { 0.0 } else { folded },
                ..JobReport::default()
            },
            setup,
            bytes,
            graph,
            owners,
            resident,
            rows_in_memory,
        }
    }

    /// Bytes of a batch that take this many for each vertex.
    fn of_batch(&self, bytes: f64) -> u64 {
        (self.graph.vertices * bytes / self.scale / self.owners.len() as f64) as u64
    }

    /// Adds a phase that happens `times` times; returns what it wrote.
    fn add(&mut self, report: PhaseReport, times: f64) -> ChunkMap {
        let factor = self.scale * times;
        let seconds = |nanos: u64| nanos as f64 * 1e-9 * factor;
        let machines = self.setup.machines as f64;
        let sum = &mut self.report;
        sum.seconds += seconds(report.nanos);
        sum.bytes += report.bytes as f64 * factor;
        sum.disk_busy += seconds(report.disk_busy) / machines;
        let TimeSplit {
            own,
            stolen,
            copied,
            idle,
        } = report.split;
        for (sum, nanos) in sum.split.iter_mut().zip([own, stolen, copied, idle]) {
            *sum += seconds(nanos) / machines;
        }
        report.output
    }

    fn run(&mut self, setup: &ClusterSetup, plan: PhasePlan<'_>, input: ChunkMap) -> PhaseReport {
        PhaseRun::run(setup, plan, input, &mut self.times, &mut self.random)
    }

    /// Reads the input, which lies evenly on all disks, and writes chunks of edges.
    fn bin(&mut self) -> ChunkMap {
        let machines = self.setup.machines;
        let bytes = (self.graph.edges * self.bytes.input / self.scale / machines as f64) as u64;
        let chunks = bytes.div_ceil(CHUNK);
        let mut input = vec![vec![ChunkPile::default(); machines]; machines];
        for (machine, engines) in input.iter_mut().enumerate() {
            engines[machine] = ChunkPile { chunks, bytes };
        }
        let each: Vec<usize> = (0..machines).collect();
        let (owners, targets) = (self.owners.clone(), self.all.clone());
        let plan = PhasePlan {
            record: self.bytes.input,
            output: self.bytes.edge / self.bytes.input,
            ..PhasePlan::new(&each, &targets, &owners)
        };
        // All machines have equally much to read.
        let setup = ClusterSetup {
            bias: StealBias::NEVER,
            ..*self.setup
        };
        let report = self.run(&setup, plan, input);
        self.add(report, 1.0)
    }

    /// A pass in which `share` of the edges send an update, `times` times.
    fn pass(&mut self, edges: &ChunkMap, share: f64, times: f64) {
        let is_chaos = self.setup.design == Design::Chaos;
        let (row, value) = (
            self.of_batch(self.bytes.row),
            self.of_batch(self.bytes.value),
        );
        let rows = match (is_chaos, self.rows_in_memory) {
            (true, _) => StateAt::Engines,
            (false, true) => StateAt::Memory,
            (false, false) => StateAt::OwnDisk,
        };
        let (owners, all, spilled) = (self.owners.clone(), self.all.clone(), self.spilled.clone());
        let written = share * (1.0 - self.report.folded);
        let scatter = PhasePlan {
            owner_state: (rows, row),
            helper_state: match is_chaos {
                true => (StateAt::Engines, row),
                false => (StateAt::Owner, value),
            },
            record: self.bytes.edge,
            output: written * self.bytes.update / self.bytes.edge,
            ..PhasePlan::new(&owners, &spilled, &owners)
        };
        let report = self.run(self.setup, scatter, edges.clone());
        let updates = self.add(report, times);
        if self.report.folded > 0.0 && share > 0.0 {
            self.hand_over(share, times);
        }
        let gather = PhasePlan {
            vertices: self.of_batch(1.0),
            // The paper loads the vertex set again; rows of their owner are read once, to apply.
            owner_state: (rows, row),
            helper_state: match is_chaos {
                true => (StateAt::Engines, row),
                // A helper begins with empty accumulators; the owner weighs what it gets back.
                false => (StateAt::Memory, value),
            },
            returned: value,
            applied: (rows, row),
            record: self.bytes.update,
            ..PhasePlan::new(&owners, &all, &owners)
        };
        let report = self.run(self.setup, gather, updates);
        self.add(report, times);
        if self.setup.checkpoints {
            let bytes = self.graph.vertices * self.bytes.row * times;
            self.report.bytes += bytes;
            let rate = self.setup.hardware.disk * self.setup.machines as f64;
            self.report.seconds += bytes / rate;
        }
    }

    /// Accumulators of others' batches go to their owners, which merge them.
    fn hand_over(&mut self, share: f64, times: f64) {
        let machines = self.setup.machines as f64;
        let of_vertex = self.bytes.value;
        // One accumulator of each vertex, or one for each update where there are fewer.
        let updates = share * self.report.folded * self.graph.edges / machines;
        let sent = (self.resident * self.graph.vertices * of_vertex).min(updates * 8.0);
        let batches = self.owners.len();
        let mut owned = vec![0usize; self.setup.machines];
        self.owners.iter().for_each(|&owner| owned[owner] += 1);
        let most = owned.iter().copied().max().unwrap_or(0) as f64 / batches as f64;
        // The busiest owner gets its part from all others.
        let received = sent * (machines - 1.0) * most;
        let outgoing = sent * (machines - 1.0) / machines;
        let seconds = received.max(outgoing) / self.setup.hardware.network
            + received / of_vertex / self.setup.merges();
        self.report.seconds += seconds * times;
        self.report.split[2] += seconds * times;
    }
}
