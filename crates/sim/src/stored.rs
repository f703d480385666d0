//! A graph that this machine has stored, on simulated ranks by the bucket executor.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use graphmill::advanced::{BucketOptions, CombineChoice, SimulatedMachine};
use graphmill::{CancelToken, Config, ExecutorChoice, MachineConfig, Plan, unwatched};
use graphmill_fabric::{Fabric, SimFabric, simulated};
use graphmill_storage::{Clock, Disk, SimDisk, SplitMix64};

use crate::cluster::{GRAPH, RESULT};
use crate::fault::Faults;

/// Memory of a rank.
const MEMORY: u64 = 512 << 20;

/// The virtual time of the network: a thread that is busy, or looks for work, takes none.
#[derive(Debug)]
struct NetworkClock(Arc<SimFabric>);

impl Clock for NetworkClock {
    fn now(&self) -> Duration {
        self.0.glance()
    }
    fn wait(&self, _: Duration) {
        thread::yield_now();
    }
}

/// Simulated ranks and their datagrams.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedBuckets {
    /// Number of ranks.
    pub ranks: usize,
    /// Threads of each rank.
    pub threads: usize,
    /// When messages are combined.
    pub combine: CombineChoice,
    /// Draws which datagrams get lost, come twice, come late and are changed.
    pub seed: u64,
}

impl SimulatedBuckets {
    /// Runs an algorithm on the stored graph at `graph`; returns the bytes of the result in CSV.
    ///
    /// # Errors
    /// The graph cannot be read, or a rank fails.
    pub fn run(
        self,
        graph: &Path,
        algorithm: &str,
        options: &[(&str, &str)],
    ) -> Result<Vec<u8>, String> {
        let disk = SimDisk::new(self.seed);
        copy(graph, Path::new(GRAPH), &disk)?;
        let mut faults = Faults::default();
        faults.draw_datagrams(&mut SplitMix64::new(self.seed));
        let fabrics = simulated(self.seed, self.ranks, faults.network);
        let work = |fabric: SimFabric| {
            let fabric = Arc::new(fabric);
            let mut config = Config::new(algorithm, GRAPH);
            for (name, value) in options {
                config = config.option(*name, *value);
            }
            config.output = Some(PathBuf::from(RESULT));
            config.machine = self.machine(&disk, &fabric);
            config.checkpoints.keep = 0;
            config.executor = ExecutorChoice::Bucket;
            config.engine.buckets = Some(BucketOptions {
                combine: self.combine,
                ..BucketOptions::default()
            });
            let (plan, token) = (Plan::new(config)?, CancelToken::new());
            plan.run_as(fabric, &token, &unwatched())
        };
        let outcomes: Vec<_> = thread::scope(|scope| {
            let work = &work;
            let start = |fabric| scope.spawn(move || work(fabric));
            let started: Vec<_> = fabrics.into_iter().map(start).collect();
            started
                .into_iter()
                .map(thread::ScopedJoinHandle::join)
                .collect()
        });
        for outcome in outcomes {
            let outcome = outcome.map_err(|_| "a rank panicked".to_string())?;
            outcome.map_err(|error| error.to_string())?;
        }
        let result = disk.read_small(Path::new(RESULT), u64::MAX);
        result.map_err(|error| error.to_string())
    }

    fn machine(&self, disk: &SimDisk, fabric: &Arc<SimFabric>) -> MachineConfig {
        MachineConfig {
            memory: Some(MEMORY),
            threads: Some(self.threads),
            simulated: Some(SimulatedMachine {
                disk: Arc::new(disk.clone()),
                clock: Arc::new(NetworkClock(Arc::clone(fabric))),
                seed: self.seed ^ fabric.rank() as u64,
            }),
            ..MachineConfig::default()
        }
    }
}

/// Copies a directory of this machine to a simulated disk.
#[expect(clippy::disallowed_methods, reason = "the graph is on a real disk")]
fn copy(from: &Path, to: &Path, disk: &SimDisk) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", from.display());
    disk.create_dir_all(to).map_err(|error| error.to_string())?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let place = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &place, disk)?;
            continue;
        }
        let bytes = fs::read(&path).map_err(failed)?;
        let written = disk.write_small(&place, &bytes);
        written.map_err(|error| error.to_string())?;
    }
    Ok(())
}
