//! One attempt: ranks on simulated machines.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use graphmill::ExecutorChoice;
use graphmill::advanced::{BucketOptions, EdgeResidency, SimulatedMachine};
use graphmill::{
    CancelToken, CheckpointConfig, Config, Error, Machine, MachineConfig, Plan, Progress,
    ProgressFn, unwatched,
};
use graphmill_fabric::{Fabric, simulated};
use graphmill_storage::{Clock, Disk, SimDisk, SplitMix64};

use crate::clock::Ticking;
use crate::fault::Faults;
use crate::scenario::{Scenario, VECTOR};

/// The paths of all files.
pub(crate) const EDGES: &str = "/edges.txt";
pub(crate) const GRAPH: &str = "/graph";
pub(crate) const RESULT: &str = "/result.csv";
const CHECKPOINTS: &str = "/checkpoints";
/// Bytes of memory that are enough.
const ENOUGH: u64 = 64 << 20;
/// Bytes of memory that are never enough.
const TOO_LITTLE: u64 = 1;

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The bytes of the result.
    Done(Vec<u8>),
    /// The errors of the failed ranks.
    Failed(Vec<String>),
    /// A rank panicked.
    Panicked(String),
}

impl Outcome {
    /// Returns the errors of the failed ranks; none if the result is the `wanted` one.
    ///
    /// # Errors
    /// The result is another one, or a rank panicked.
    pub(crate) fn errors(self, case: &Scenario, wanted: &[u8]) -> Result<Vec<String>, String> {
        match self {
            Outcome::Done(bytes) if case.are_same(&bytes, wanted) => Ok(Vec::new()),
            Outcome::Done(_) => Err("wrong answer".to_string()),
            Outcome::Failed(errors) => Ok(errors),
            Outcome::Panicked(text) => Err(format!("panic: {text}")),
        }
    }
}

impl Scenario {
    fn machine(
        &self,
        disk: &SimDisk,
        clock: &Arc<Ticking>,
        memory: u64,
        seed: u64,
    ) -> MachineConfig {
        MachineConfig {
            memory: Some(memory),
            threads: Some(self.threads),
            simulated: Some(SimulatedMachine {
                disk: Arc::new(disk.clone()),
                clock: Arc::clone(clock) as Arc<dyn Clock>,
                seed,
            }),
            ..MachineConfig::default()
        }
    }

    /// Makes a disk with the edges.
    pub(crate) fn disk(&self) -> Result<SimDisk, Error> {
        let disk = SimDisk::new(self.seed);
        let line = |(from, to, weight): &(u64, u64, u32)| format!("{from} {to} {weight}\n");
        let text: String = self.edges.iter().map(line).collect();
        disk.write_small(Path::new(EDGES), text.as_bytes())?;
        if ["set", "vector", "priors"]
            .map(|name| self.option(name))
            .contains(&VECTOR)
        {
            let rows = self.vector().into_iter().rev();
            let text: String = rows.map(|(id, value)| format!("{id} {value}\n")).collect();
            disk.write_small(Path::new(VECTOR), text.as_bytes())?;
        }
        Ok(disk)
    }

    /// Imports the graph with one rank.
    pub(crate) fn import(&self, disk: &SimDisk, faults: &Faults, seed: u64) -> Outcome {
        let (stop, clock) = (CancelToken::new(), Arc::new(Ticking::new(seed)));
        faults.inject(from_ref(disk), from_ref(&clock), from_ref(&stop));
        let work = || {
            let machine = self.machine(disk, &clock, ENOUGH, seed);
            let machine = Machine::open(&machine, stop.clone())?;
            let edges = [PathBuf::from(EDGES)];
            machine.import(&edges, Path::new(GRAPH), &self.import, &unwatched())?;
            Ok(Vec::new())
        };
        catch(work)
    }

    /// Returns the configuration of the question, for ranks that resume from their disks.
    fn config(&self, machine: MachineConfig) -> Config {
        let mut config = Config::new(self.algorithm, GRAPH);
        for (name, value) in &self.options {
            config = config.option(*name, value);
        }
        config.output = Some(PathBuf::from(RESULT));
        config.machine = machine;
        if let Some(chunks) = self.chunks {
            config.engine.updates = chunks.updates;
            config.engine.steal = chunks.steal;
            config.engine.window = chunks.window;
        }
        if self.buckets.is_some() {
            config.executor = ExecutorChoice::Bucket;
        }
        config.engine.buckets = self.buckets.map(|combine| BucketOptions {
            combine,
            ..BucketOptions::default()
        });
        if self.over_lists {
            config.engine.edges = EdgeResidency::Memory;
        }
        config.checkpoints = CheckpointConfig {
            folder: self.named.then(|| PathBuf::from(CHECKPOINTS)),
            every: self.every,
            keep: self.keep,
            resume: self.named,
        };
        config
    }

    /// Returns the result of a run without faults and without checkpoints.
    ///
    /// # Errors
    /// The run has none.
    pub(crate) fn undisturbed(&self, disk: &SimDisk) -> Result<Vec<u8>, String> {
        let work = || {
            let clock = Arc::new(Ticking::new(self.seed));
            let mut config = self.config(self.machine(disk, &clock, ENOUGH, self.seed));
            config.checkpoints.keep = 0;
            Plan::new(config)?.run(&CancelToken::new(), &unwatched())?;
            Ok(disk.read_small(Path::new(RESULT), u64::MAX)?)
        };
        match catch(work) {
            Outcome::Done(bytes) => Ok(bytes),
            other => Err(format!("undisturbed: {other:?}")),
        }
    }

    /// Returns the least memory of a rank.
    pub(crate) fn least(&self, disk: &SimDisk) -> u64 {
        let refused = |memory| {
            let outcome = self.attempt(&[disk.copied(0)], memory, &Faults::default(), 0);
            let Outcome::Failed(errors) = outcome else {
                return None;
            };
            let least = errors.iter().filter_map(|error| {
                let (_, least) = error.split_once("at least ")?;
                digits(least)
            });
            least.max()
        };
        let least = refused(TOO_LITTLE);
        // A run in buckets is refused with the directories of the graph first.
        let of_buckets = (least.filter(|_| self.buckets.is_some())).and_then(refused);
        of_buckets.or(least).unwrap_or(ENOUGH)
    }

    /// Returns the memory of a rank: some have more than the others.
    fn memory_of(&self, rank: usize, memory: u64) -> u64 {
        let mut random = SplitMix64::new(self.seed ^ (rank as u64) << 32);
        let more = [0, 0, 1 << 14, 1 << 18][random.below(4) as usize];
        memory + if memory == TOO_LITTLE { 0 } else { more }
    }

    /// Runs an attempt on these disks: one for each rank, or one for all.
    pub(crate) fn attempt(
        &self,
        disks: &[SimDisk],
        memory: u64,
        faults: &Faults,
        seed: u64,
    ) -> Outcome {
        // Each rank is a process, which receives its own signals.
        let stops: Vec<CancelToken> = (0..self.ranks).map(|_| CancelToken::new()).collect();
        let clock = |rank| Arc::new(Ticking::new(seed ^ rank as u64));
        let clocks: Vec<_> = (0..self.ranks).map(clock).collect();
        faults.inject(disks, &clocks, &stops);
        let passes = AtomicU64::new(0);
        let (asked, after) = (stops[0].clone(), faults.stop_after);
        let resumed = Arc::clone(&faults.resumed);
        let watcher: ProgressFn = Arc::new(move |progress| match progress {
            Progress::Superstep { .. }
                if Some(passes.fetch_add(1, Ordering::Relaxed) + 1) == after =>
            {
                asked.request();
            }
            Progress::Note(text) => {
                let checkpoint = text.split_once(", after ").map(|(_, rest)| digits(rest));
                if let Some(checkpoint) = checkpoint.flatten() {
                    resumed.store(checkpoint, Ordering::Relaxed);
                }
            }
            _ => {}
        });
        let work = |rank: usize, fabric: Option<Arc<dyn Fabric>>| {
            let disk = disks.get(rank).unwrap_or(&disks[0]);
            let memory = self.memory_of(rank, memory);
            let machine = self.machine(disk, &clocks[rank], memory, seed ^ rank as u64);
            let plan = Plan::new(self.config(machine))?;
            match fabric {
                Some(fabric) => plan.run_as(fabric, &stops[rank], &watcher)?,
                None => plan.run(&stops[rank], &watcher)?,
            };
            Ok(Vec::new())
        };
        let outcomes = match self.ranks {
            1 => vec![catch(|| work(0, None))],
            ranks => thread::scope(|scope| {
                let started: Vec<_> = simulated(seed, ranks, faults.network)
                    .into_iter()
                    .enumerate()
                    .map(|(rank, fabric)| {
                        let work = &work;
                        scope.spawn(move || catch(|| work(rank, Some(Arc::new(fabric)))))
                    })
                    .collect();
                let gone = |_| Outcome::Panicked("a rank's thread is gone".to_string());
                let ended = started.into_iter().map(|thread| thread.join());
                ended.map(|outcome| outcome.unwrap_or_else(gone)).collect()
            }),
        };
        let mut failed = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Done(_) => {}
                Outcome::Failed(errors) => failed.extend(errors),
                Outcome::Panicked(_) => return outcome,
            }
        }
        match failed.is_empty() {
            true => catch(|| Ok(disks[0].read_small(Path::new(RESULT), u64::MAX)?)),
            false => Outcome::Failed(failed),
        }
    }
}

/// Parses the number that a text begins with.
fn digits(text: &str) -> Option<u64> {
    let number: String = text.chars().take_while(char::is_ascii_digit).collect();
    number.parse().ok()
}

fn catch(work: impl FnOnce() -> Result<Vec<u8>, Error>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(bytes)) => Outcome::Done(bytes),
        Ok(Err(error)) => Outcome::Failed(vec![error.to_string()]),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Outcome::Panicked(text.unwrap_or_default())
        }
    }
}

/// Returns the numbers of the checkpoints that all these disks have.
pub(crate) fn checkpoints(disks: &[SimDisk], ranks: usize) -> Vec<u64> {
    let of_rank = |rank: usize| {
        let disk = disks.get(rank).unwrap_or(&disks[0]);
        let all = disk.list(Path::new("/")).unwrap_or_default();
        let is_it = |path: &&PathBuf| path.to_string_lossy().contains("checkpoints");
        let base = all.iter().find(is_it).cloned().unwrap_or_default();
        let folder = base.join(format!("rank-{rank:05}"));
        let number = |path: PathBuf| {
            let name = path.file_name()?.to_str()?.strip_prefix("checkpoint-")?;
            name.parse::<u64>().ok()
        };
        let there = disk.list(&folder).unwrap_or_default();
        there.into_iter().filter_map(number).collect::<Vec<_>>()
    };
    let mut common = of_rank(0);
    for rank in 1..ranks {
        let there = of_rank(rank);
        common.retain(|number| there.contains(number));
    }
    common.sort_unstable();
    common
}
