//! PageRank by the bucket executor: what each role takes for a message.

use std::error::Error;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use graphmill_engine::{
    Activate, ApplyTo, BucketOptions, CombineChoice, Direction, EdgeProgram, Engine, EngineConfig,
    EngineError, EngineOptions, LinkChoice, OutDegree, ProgramFootprint, Read, Write, job,
};
use graphmill_fabric::{Fabric, local};
use graphmill_graph::StoredGraph;
use graphmill_storage::{
    CancelToken, Clock, IoChoice, MemoryBudget, SystemClock, Tiers, WorkerPool, open_disk,
};

use crate::vertex_target::{cpu_time, on_threads};

/// Bytes of memory of a rank.
const MEMORY: u64 = 4 << 30;

/// A value of messages.
pub(crate) trait RankValue:
    graphmill_engine::Accumulator + Into<f64> + std::ops::AddAssign
{
    const ZERO: Self;
    fn of(value: f64) -> Self;
}

impl RankValue for f32 {
    const ZERO: f32 = 0.0;
    fn of(value: f64) -> f32 {
        value as f32
    }
}

impl RankValue for f64 {
    const ZERO: f64 = 0.0;
    fn of(value: f64) -> f64 {
        value
    }
}

/// PageRank (BlitzG, Algorithms 1 and 2) whose shares are divided by the out-degree.
struct PageRank<R> {
    vertices: f64,
    real: PhantomData<R>,
}

impl<R: RankValue> EdgeProgram for PageRank<R> {
    type SignalRows = (Read<R>, OutDegree);
    type ApplyRows = Write<R>;
    type Edge = ();
    type Message = R;
    type EdgeMessage = R;
    type Accumulator = R;
    type Sum = ();
    const IDENTITY: R = R::ZERO;
    const APPLY_TO: ApplyTo = ApplyTo::All;

    fn signal(&self, _: u64, (rank, degree): (&R, u64)) -> Option<R> {
        (degree > 0).then(|| R::of((*rank).into() / degree as f64))
    }
    #[inline(always)]
    fn on_edge(&self, share: R, (): ()) -> R {
        share
    }
    #[inline(always)]
    fn fold(&self, sum: &mut R, share: R) {
        *sum += share;
    }
    #[inline(always)]
    fn merge(&self, sum: &mut R, later: R) {
        *sum += later;
    }
    fn apply(&self, _: u64, rank: &mut R, sum: R) -> ((), Activate) {
        *rank = R::of(0.15 / self.vertices + 0.85 * sum.into());
        ((), Activate::Yes)
    }
}

/// What a run of the bucket executor took, all ranks together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BucketTimes {
    /// Seconds of the roles: fill buckets, send them, accumulate.
    pub(crate) roles: [f64; 3],
    pub(crate) messages: u64,
    /// Of these, messages to other ranks.
    pub(crate) sent: u64,
    pub(crate) bytes_sent: u64,
    /// Of one rank.
    pub(crate) peak_memory: u64,
    /// Wall-clock seconds of the passes.
    pub(crate) wall: f64,
}

/// A clock that goes while the calling thread has a processor.
///
/// Each thread has its own time. One thread runs each rank, so it compares its own times alone.
#[derive(Debug)]
struct CpuClock;

impl Clock for CpuClock {
    fn now(&self) -> Duration {
        cpu_time()
    }
    fn wait(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// A run that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketRun {
    pub(crate) ranks: usize,
    pub(crate) plain: bool,
    pub(crate) iterations: usize,
    pub(crate) rate: Option<u64>,
    /// Times count while a thread has a processor, so other processes have no effect.
    pub(crate) by_cpu: bool,
}

impl BucketRun {
    /// Runs it: without combining, one thread a rank.
    pub(crate) fn run<R: RankValue>(&self, graph: &Path) -> Result<BucketTimes, Box<dyn Error>> {
        let fabrics: Vec<Option<Arc<dyn Fabric>>> = match self.ranks {
            1 => vec![None],
            ranks => (local(ranks, 1).into_iter())
                .map(|fabric| Some(Arc::new(fabric) as Arc<dyn Fabric>))
                .collect(),
        };
        let rank = |fabric| {
            self.rank::<R>(graph, fabric)
                .map_err(|error| error.to_string())
        };
        let ranks = on_threads(fabrics, rank);
        ranks
            .into_iter()
            .next()
            .ok_or("no ranks")?
            .map_err(Into::into)
    }

    fn rank<R: RankValue>(
        &self,
        graph: &Path,
        fabric: Option<Arc<dyn Fabric>>,
    ) -> Result<BucketTimes, Box<dyn Error>> {
        let (disk, budget) = (open_disk(IoChoice::Threads)?, MemoryBudget::new(MEMORY));
        let graph = Arc::new(StoredGraph::open(&disk, &budget, graph)?);
        let scratch = tempfile::tempdir()?;
        let mut engine = Engine::new(
            graph,
            EngineConfig {
                tiers: Tiers::default(),
                workers: Arc::new(WorkerPool::threads(1, disk.clone())?),
                disk,
                clock: match self.by_cpu {
                    true => Arc::new(CpuClock),
                    false => Arc::new(SystemClock::new()),
                },
                stop: CancelToken::new(),
                scratch: scratch.path().to_path_buf(),
                fabric: fabric.clone(),
                options: EngineOptions {
                    buckets: Some(BucketOptions {
                        link: LinkChoice::Udp,
                        plain: self.plain,
                        combine: CombineChoice::Never,
                        rate: self.rate,
                        ..BucketOptions::default()
                    }),
                    ..EngineOptions::default()
                },
                sizes: ProgramFootprint::of::<PageRank<R>>(),
                charge: None,
                on_pass: None,
                checkpoints: None,
                budget: budget.clone(),
            },
        )?;
        let ran = self
            .passes::<R>(&mut engine)
            .and_then(|()| job::share_metrics(&mut engine));
        if let Some(fabric) = &fabric {
            match &ran {
                Ok(()) => fabric.leave(),
                Err(error) => fabric.fail(&error.to_string()),
            }
        }
        ran?;
        let metrics = engine.metrics();
        let datagrams = metrics
            .datagrams
            .as_ref()
            .ok_or("no metrics of datagrams")?;
        let role = |name| datagrams.role_seconds.get(name).copied().unwrap_or(0.0);
        let mut times = BucketTimes {
            roles: ["work", "send", "accumulate"].map(role),
            peak_memory: budget.peak(),
            ..BucketTimes::default()
        };
        for pass in metrics.passes.iter().filter(|pass| pass.edges > 0) {
            times.messages += pass.edges;
            times.sent += pass.messages_sent;
            times.bytes_sent += pass.bytes_sent;
            times.wall += pass.seconds;
        }
        Ok(times)
    }

    fn passes<R: RankValue>(&self, engine: &mut Engine) -> Result<(), EngineError> {
        let vertices = engine.graph().vertices() as f64;
        let ranks = engine.vertex_array::<R>("ranks")?;
        let mut active = engine.select_vertices(ranks.write(), None, |_, rank| {
            *rank = R::of(1.0 / vertices);
            true
        })?;
        let program = PageRank::<R> {
            vertices,
            real: PhantomData,
        };
        for _ in 0..self.iterations {
            let rows = (ranks.read(), OutDegree);
            (_, active) =
                engine.process_edges(&program, rows, ranks.write(), &active, Direction::Forward)?;
        }
        Ok(())
    }
}

/// Nanoseconds of each step for a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageCosts {
    /// On one rank: nothing is sent.
    pub(crate) generate: f64,
    pub(crate) accumulate: f64,
    /// Between two ranks: generate, number, seal and send, receive, open and accumulate.
    pub(crate) paths: [[f64; 3]; 2],
}

/// Measures each step on one rank, and over UDP between two: plain, and sealed.
pub(crate) fn costs<R: RankValue>(
    graph: &Path,
    iterations: usize,
    by_cpu: bool,
) -> Result<MessageCosts, Box<dyn Error>> {
    let of = |ranks, plain| {
        let run = BucketRun {
            ranks,
            plain,
            iterations,
            rate: None,
            by_cpu,
        };
        run.run::<R>(graph)
    };
    let one = of(1, true)?;
    let ns = |seconds: f64, messages: u64| seconds * 1e9 / messages.max(1) as f64;
    let accumulate = ns(one.roles[2], one.messages);
    let mut paths = [[0.0; 3]; 2];
    for (path, plain) in paths.iter_mut().zip([true, false]) {
        let two = of(2, plain)?;
        let own = (two.messages - two.sent) as f64 * accumulate / 1e9;
        *path = [
            ns(two.roles[0], two.messages),
            ns(two.roles[1], two.sent),
            ns(two.roles[2] - own, two.sent),
        ];
    }
    Ok(MessageCosts {
        generate: ns(one.roles[0], one.messages),
        accumulate,
        paths,
    })
}
