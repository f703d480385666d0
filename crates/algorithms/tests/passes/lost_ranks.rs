//! Ranks that are lost at any moment of the work: every rank ends, by the right answer or by an error that says who is lost.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use graphmill_algorithms::{bfs, pagerank, wcc};
use graphmill_engine::{ComponentsMethod, DispatchChoice, Engine, EngineConfig, EngineError};
use graphmill_fabric::{Fabric, FabricError, NetworkModel, SimFabric, simulated};
use graphmill_graph::StoredGraph;
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, SplitMix64, WorkerPool};

use crate::{Mode, Plain, engines, gathered, random, ranking, settings};

const SEEDS: u64 = 20;

#[test]
fn crashed_rank_is_named_by_all() {
    work_over(Fault::Crash);
}

#[test]
fn broken_connection_is_named_by_all() {
    work_over(Fault::Break);
}

#[test]
fn silent_rank_is_named_by_all() {
    work_over(Fault::Silence);
}

/// What happens to a rank, or to two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Crash,
    Break,
    Silence,
}

impl Fault {
    fn network(self, [rank, other]: [usize; 2], at: Duration) -> NetworkModel {
        let mut network = NetworkModel::default();
        match self {
            Fault::Crash => network.crashes[0] = Some((rank, at)),
            Fault::Break => network.broken = Some(([rank, other], at)),
            Fault::Silence => network.silent = Some((rank, at)),
        }
        network
    }
}

/// Works by many seeds, each time undisturbed and then with a fault before that would have ended.
fn work_over(fault: Fault) {
    let (mut cases, mut failed) = (0, 0);
    for seed in 0..SEEDS {
        for (nth, algorithm) in (0..).zip(ALGORITHMS) {
            let mut random = SplitMix64::new(ALGORITHMS.len() as u64 * seed + nth);
            let ranks = 3 + random.below(3) as usize;
            let sound = Case {
                seed,
                algorithm,
                ranks,
                messages_in_memory: (seed + nth).is_multiple_of(2),
                stops_at_once: random.below(2) == 0,
                network: NetworkModel::default(),
            };
            let (ends, time) = sound.run();
            for end in ends {
                let end = end.unwrap_or_else(|error| panic!("{sound:?}: {error}"));
                sound.check(&end);
            }
            let rank = random.below(ranks as u64) as usize;
            let other = (rank + 1 + random.below(ranks as u64 - 1) as usize) % ranks;
            let at = Duration::from_nanos(random.below(time.as_nanos() as u64));
            let network = fault.network([rank, other], at);
            let case = Case { network, ..sound };
            let (ends, _) = case.run();
            cases += 1;
            failed += usize::from(ends.iter().any(Result::is_err));
            for (own, end) in ends.into_iter().enumerate() {
                match end {
                    Ok(end) => case.check(&end),
                    Err(EngineError::Fabric(FabricError::Lost { rank: lost, .. })) => {
                        let is_named = match fault {
                            // Each of the two finds the other lost.
                            Fault::Break => lost != own && [rank, other].contains(&lost),
                            Fault::Crash | Fault::Silence => lost == rank,
                        };
                        assert!(is_named, "{case:?}: rank {own} names rank {lost}");
                    }
                    Err(error) => panic!("{case:?}: rank {own} ends by: {error}"),
                }
            }
        }
    }
    assert!(2 * failed >= cases, "{failed} of {cases} cases failed");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    PageRank,
    Bfs,
    Wcc,
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::PageRank, Algorithm::Bfs, Algorithm::Wcc];

impl Algorithm {
    /// Bits of what it finds for all vertices at rank 0, nothing at the others.
    fn run(self, engine: &mut Engine) -> Result<Vec<u64>, EngineError> {
        match self {
            Algorithm::PageRank => {
                let ranks = pagerank::run::<f64>(engine, &ranking(3))?;
                let ranks = gathered(engine, ranks)?;
                Ok(ranks.into_iter().map(f64::to_bits).collect())
            }
            Algorithm::Bfs => {
                let depths = bfs::run(engine, SOURCE)?;
                let depths = gathered(engine, depths)?;
                Ok(depths.into_iter().map(u64::from).collect())
            }
            Algorithm::Wcc => {
                let method = wcc::WccMethod::Unite(ComponentsMethod::Auto);
                let components = engines(wcc::run::<u64>(engine, method))?;
                gathered(engine, components)
            }
        }
    }

    /// So few bytes that messages are on disk.
    fn little_memory(self) -> u64 {
        match self {
            Algorithm::PageRank => 9_490_000,
            Algorithm::Bfs => 7_810_000,
            Algorithm::Wcc => 8_890_000,
        }
    }

    /// What one rank alone finds.
    fn answer(self) -> &'static [u64] {
        static ANSWERS: LazyLock<[Vec<u64>; 3]> = LazyLock::new(|| {
            ALGORITHMS.map(|algorithm| {
                let disk = on_a_disk(1);
                let workers = WorkerPool::simulated(1, 1, disk.clone()).unwrap();
                let graph = open(&disk);
                let settings = settings(disk, workers, Path::new("/"), Mode::USUAL, 1 << 30, None);
                algorithm
                    .run(&mut Engine::new(graph, settings).unwrap())
                    .unwrap()
            })
        });
        &ANSWERS[self as usize]
    }
}

/// One run by ranks on a simulated network.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    algorithm: Algorithm,
    ranks: usize,
    messages_in_memory: bool,
    /// Whether what a rank does alone ends too once another is lost.
    stops_at_once: bool,
    network: NetworkModel,
}

/// What a rank found.
struct Found {
    rank: usize,
    values: Vec<u64>,
    messages_in_memory: bool,
    has_pushed: bool,
}

impl Case {
    /// How each rank ends, and when the last one does.
    fn run(self) -> (Vec<Result<Found, EngineError>>, Duration) {
        let disk = on_a_disk(self.seed);
        std::thread::scope(|scope| {
            let fabrics = simulated(self.seed, self.ranks, self.network).into_iter();
            let threads: Vec<_> = fabrics
                .map(|fabric| scope.spawn(|| self.work(fabric, &disk)))
                .collect();
            let ends = threads.into_iter().enumerate().map(|(rank, thread)| {
                let end = thread.join();
                end.unwrap_or_else(|_| panic!("{self:?}: rank {rank} panicked"))
            });
            let (ends, times): (Vec<_>, Vec<_>) = ends.unzip();
            (ends, times.into_iter().max().unwrap_or_default())
        })
    }

    /// What one rank does; all its work is in its turns, so that a seed is a run.
    fn work(
        self,
        fabric: SimFabric,
        disk: &Arc<dyn Disk>,
    ) -> (Result<Found, EngineError>, Duration) {
        let (rank, fabric) = (fabric.rank(), Arc::new(fabric));
        let lost = fabric.lost_flag().filter(|_| self.stops_at_once);
        let stop = lost.map_or_else(CancelToken::new, |lost| CancelToken::new().or(lost));
        let scratch = PathBuf::from(format!("/rank-{rank}"));
        disk.create_dir_all(&scratch).unwrap();
        let workers = WorkerPool::simulated(self.seed, 2, disk.clone()).unwrap();
        let mode = Mode {
            dispatch: DispatchChoice::Push,
            ..Mode::USUAL
        };
        let memory = match self.messages_in_memory {
            true => 1 << 30,
            false => self.algorithm.little_memory(),
        };
        let way: Arc<dyn Fabric> = fabric.clone();
        let settings = EngineConfig {
            stop,
            ..settings(disk.clone(), workers, &scratch, mode, memory, Some(way))
        };
        let end = Engine::new(open(disk), settings).and_then(|mut engine| {
            let values = self.algorithm.run(&mut engine)?;
            let metrics = engine.metrics();
            let mut passes = metrics.passes.iter();
            Ok(Found {
                rank,
                values,
                messages_in_memory: metrics.messages_resident,
                has_pushed: passes.any(|pass| pass.messages_pushed > 0),
            })
        });
        let end = end.map_err(|error| match (error, fabric.lost()) {
            (EngineError::Stopped, Some(lost)) => lost.into(),
            (error, _) => error,
        });
        let now = fabric.now();
        match &end {
            Ok(_) => fabric.leave(),
            Err(error) => fabric.fail(&error.to_string()),
        }
        (end, now)
    }

    /// Whether a rank that came to the end found what there is to be found, in the way that was meant.
    fn check(self, found: &Found) {
        let answer = match found.rank {
            0 => self.algorithm.answer(),
            _ => &[],
        };
        assert!(found.values == answer, "{self:?}: another answer");
        assert_eq!(
            found.messages_in_memory, self.messages_in_memory,
            "{self:?}"
        );
        // The search reaches few vertices at a time, and no rank pushes their messages.
        let pushes = !self.messages_in_memory && self.algorithm != Algorithm::Bfs;
        assert_eq!(found.has_pushed, pushes, "{self:?}");
    }
}

const VERTICES: u64 = 200_000;
/// A vertex from which many are reached.
const SOURCE: u64 = 0;
const GRAPH: &str = "/graph";
const FOLDERS: [&str; 2] = [GRAPH, "/graph/columns"];

/// A disk of its own, by a seed, with the graph on it.
fn on_a_disk(seed: u64) -> Arc<dyn Disk> {
    static FILES: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(|| {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let of_source = (1..100).map(|v| (SOURCE, v * VERTICES / 100, 1.0));
        let edges = random(1, VERTICES, 600_000).into_iter().chain(of_source);
        let graph = Plain::directed("random", VERTICES, edges);
        graph.store(&disk, Path::new(GRAPH), 1 << 13, u64::MAX, false);
        let listed = FOLDERS.map(|folder| disk.list(Path::new(folder)).unwrap());
        let files = listed.into_iter().flatten();
        files
            .filter(|path| !disk.is_dir(path).unwrap())
            .map(|path| (path.clone(), disk.read_small(&path, u64::MAX).unwrap()))
            .collect()
    });
    let disk = SimDisk::new(seed);
    for folder in FOLDERS {
        disk.create_dir_all(Path::new(folder)).unwrap();
    }
    for (path, bytes) in FILES.iter() {
        disk.write_small(path, bytes).unwrap();
    }
    Arc::new(disk)
}

fn open(disk: &Arc<dyn Disk>) -> Arc<StoredGraph> {
    let graph = StoredGraph::open(disk, &MemoryBudget::new(1 << 30), Path::new(GRAPH));
    Arc::new(graph.unwrap())
}
