//! Memory that is refused at leases all along a run, on any rank: the run does without, or ends with an error that says what to do.

use std::path::Path;
use std::sync::Arc;

use graphmill_algorithms::{bfs, pagerank, sssp, wcc};
use graphmill_engine::{EdgeResidency, Engine, EngineConfig, EngineError};
use graphmill_fabric::Fabric;
use graphmill_graph::StoredGraph;
use graphmill_storage::{IoChoice, MemoryBudget, WorkerPool, open_disk};

use crate::{Mode, Plain, Ranks, engines, gathered, is_soak, random, ranking, settings};

/// A program, and the bits of what it answers.
type Job = fn(&mut Engine) -> Result<Vec<u64>, EngineError>;

const JOBS: [(&str, Job); 4] = [
    ("pagerank", |engine| {
        let ranks = pagerank::run::<f64>(engine, &ranking(3))?;
        let ranks = gathered(engine, ranks)?;
        Ok(ranks.into_iter().map(f64::to_bits).collect())
    }),
    ("bfs", |engine| {
        let depths = bfs::run(engine, 3)?;
        let depths = gathered(engine, depths)?;
        Ok(depths.into_iter().map(u64::from).collect())
    }),
    ("wcc", |engine| {
        let labels = engines(wcc::run::<u64>(engine, wcc::WccMethod::Labels))?;
        gathered(engine, labels)
    }),
    ("sssp", |engine| {
        let method = sssp::SsspMethod::BellmanFord;
        let found = engines(sssp::run::<f64>(engine, 3, method))?;
        let found = gathered(engine, found)?;
        Ok(found.into_iter().map(f64::to_bits).collect())
    }),
];

/// One rank, which is refused memory at the `nth` lease; and whether it came to that.
fn rank(
    graph: &Path,
    (mode, memory, nth): (Mode, u64, u64),
    fabric: Option<Arc<dyn Fabric>>,
    job: Job,
) -> (Result<Vec<u64>, EngineError>, bool) {
    let scratch = tempfile::tempdir().unwrap();
    let disk = open_disk(mode.io).unwrap();
    let stored = StoredGraph::open(&disk, &MemoryBudget::new(1 << 30), graph).unwrap();
    let workers = WorkerPool::threads(mode.threads, disk.clone()).unwrap();
    let budget = MemoryBudget::new(memory);
    budget.fail_nth(nth);
    let settings = EngineConfig {
        budget: budget.clone(),
        ..settings(disk, workers, scratch.path(), mode, memory, fabric.clone())
    };
    let done = Engine::new(Arc::new(stored), settings).and_then(|mut engine| job(&mut engine));
    if let Some(fabric) = fabric {
        match &done {
            Ok(_) => fabric.leave(),
            Err(error) => fabric.fail(&error.to_string()),
        }
    }
    assert_eq!(budget.available(), memory, "all leases are given back");
    let is_ahead = nth > 0 && (0..nth).any(|_| budget.lease("a look", 1).is_err());
    (done, !is_ahead)
}

/// What rank 0 says, and whether an unlucky rank was refused memory at the `nth` lease.
fn attempt(
    graph: &Path,
    (mode, memory): (Mode, u64),
    (unlucky, nth): (usize, u64),
    job: Job,
) -> (Result<Vec<u64>, EngineError>, bool) {
    let fabrics = mode.ranks.fabrics();
    let mut outcomes: Vec<_> = std::thread::scope(|scope| {
        let ranks = fabrics.into_iter().enumerate().map(|(number, fabric)| {
            let nth = if number == unlucky { nth } else { 0 };
            scope.spawn(move || rank(graph, (mode, memory, nth), fabric, job))
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let (_, has_come) = outcomes[unlucky];
    (outcomes.swap_remove(0).0, has_come)
}

#[test]
fn refused_lease_is_done_without_or_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let graph = Plain::undirected("random", 20_000, random(7, 20_000, 60_000));
    let disk = open_disk(IoChoice::Auto).unwrap();
    graph.store(&disk, &path, 1000, u64::MAX, false);
    let (mut refused, mut done_without) = (0, 0);
    for (turn, (name, job)) in JOBS.into_iter().enumerate() {
        // Each job with all of these where everything is asked for, else with every other.
        let places = [
            (Ranks::One, EdgeResidency::Auto, 1 << 27),
            (Ranks::Local(2), EdgeResidency::Disk, 1 << 16),
            (Ranks::One, EdgeResidency::Disk, 1 << 16),
            (Ranks::Local(2), EdgeResidency::Auto, 1 << 27),
        ];
        let places = places.into_iter().enumerate();
        let places = places.filter(|(number, _)| is_soak() || number / 2 == turn % 2);
        for (_, (ranks, edges, more)) in places {
            let mode = Mode {
                ranks,
                edges,
                ..Mode::USUAL
            };
            let budgets = (10..).map(|step| step << 16);
            let (least, wanted) = budgets
                .map(|memory: u64| (memory, attempt(&path, (mode, memory), (0, 0), job).0))
                .find_map(|(memory, outcome)| Some((memory, outcome.ok()?)))
                .unwrap();
            // More of the first ones than of the others, which are alike.
            let some = (1..).map(|number: u64| number + number * number / 8);
            for unlucky in 0..mode.ranks.fabrics().len() {
                for nth in some.clone() {
                    let memory = least + more;
                    let (outcome, has_come) = attempt(&path, (mode, memory), (unlucky, nth), job);
                    match outcome {
                        Ok(found) => {
                            assert!(found == wanted, "{name}, {mode:?}, lease {nth}");
                            done_without += usize::from(has_come);
                        }
                        Err(error) => {
                            let said = error.to_string();
                            assert!(said.contains("--memory"), "{name}, lease {nth}: {said}");
                            refused += 1;
                        }
                    }
                    if !has_come {
                        break;
                    }
                }
            }
        }
    }
    assert!(
        refused > if is_soak() { 300 } else { 150 } && done_without > 1,
        "{refused} refused, {done_without} done without"
    );
}
