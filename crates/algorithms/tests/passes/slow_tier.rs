//! What bytes on a slow tier are charged goes by while workers work, to the nanosecond.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use graphmill_algorithms::{bfs, pagerank, wcc};
use graphmill_engine::{
    EdgeResidency, Engine, EngineConfig, EngineOptions, ProgramFootprint, TierModel,
};
use graphmill_graph::StoredGraph;
use graphmill_storage::{
    CancelToken, Clock, IoChoice, MemoryBudget, Placement, Tiers, WorkerPool, open_disk,
};

use crate::{Plain, random};

/// A clock that moves by waits alone and remembers them.
#[derive(Debug, Default)]
struct Waits(Mutex<Vec<Duration>>);

impl Clock for Waits {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().iter().sum()
    }
    fn wait(&self, time: Duration) {
        self.0.lock().unwrap().push(time);
    }
}

#[test]
fn slow_tier_time_passes_at_ends_of_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let graph = Plain::undirected("random", 2000, random(3, 2000, 9000));
    let disk = open_disk(IoChoice::Auto).unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 100, u64::MAX, false);
    let graph = StoredGraph::open(&disk, &MemoryBudget::new(1 << 28), &path).unwrap();
    let clock = Arc::new(Waits::default());
    let placement = Placement::parse(&["slow"], Some("model")).unwrap();
    let settings = EngineConfig {
        budget: MemoryBudget::new(1 << 28),
        tiers: Tiers::open(&placement, 1).unwrap(),
        workers: Arc::new(WorkerPool::threads(1, disk.clone()).unwrap()),
        disk,
        clock: clock.clone(),
        stop: CancelToken::new(),
        scratch: folder.path().to_path_buf(),
        fabric: None,
        options: EngineOptions {
            edges: EdgeResidency::Memory,
            ..EngineOptions::default()
        },
        sizes: ProgramFootprint::USUAL,
        charge: Some(TierModel {
            dram_bandwidth: 1e6,
            ..TierModel::PAPER
        }),
        on_pass: None,
        checkpoints: None,
    };
    let mut engine = Engine::new(Arc::new(graph), settings).unwrap();
    let ranking = pagerank::Options {
        method: pagerank::PageRankMethod::Passes,
        damping: 0.85,
        iterations: 3,
        tolerance: None,
        dangling: pagerank::Dangling::Redistribute,
        sources: Vec::new(),
        vectors: pagerank::Vectors::default(),
        weighted: false,
    };
    pagerank::run::<f64>(&mut engine, &ranking).unwrap();
    bfs::run(&mut engine, 0).unwrap();
    wcc::run::<u32>(&mut engine, wcc::WccMethod::Labels).unwrap();

    let metrics = engine.metrics();
    let charged = metrics
        .passes
        .iter()
        .map(|pass| pass.simulated_tier_seconds);
    assert!(charged.clone().all(|seconds| seconds > 0.0));
    let (charged, spent): (f64, _) = (charged.sum(), clock.now().as_secs_f64());
    assert!(
        (charged - spent).abs() < 1e-6,
        "{charged} s charged, {spent} s spent"
    );
    let waits = clock.0.lock().unwrap();
    let waits = waits.iter().filter(|wait| !wait.is_zero()).count();
    let passes = metrics.passes.len();
    assert!(
        waits > 5 * passes,
        "{waits} waits in {passes} passes of twenty batches"
    );
}
