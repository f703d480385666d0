//! The machine a run works on: what it may take of it, and the ports through which it does.
//!
//! [`MachineConfig`] is what was asked; [`Machine`] is what came of it, with one budget, one disk and one set of workers for
//! everything that is done with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_engine::TierModel;
use graphmill_fabric::{CountedFabric, Fabric, all_gather};
use graphmill_storage::{
    CancelToken, Clock, CountedDisk, Disk, IoChoice, Lease, MemoryBudget, MemoryDisk, MemoryFiles,
    Placement, StorageError, SystemClock, Tiers, WorkerPool, open_disk,
};

use crate::error::{Error, check_stop};
use crate::machine::limits::{default_memory, default_threads};

/// Limits on the use of the machine.
///
/// The default is [`default_memory`](crate::advanced::default_memory) and
/// [`default_threads`](crate::advanced::default_threads).
#[derive(Debug, Clone, Default)]
pub struct MachineConfig {
    /// Bytes of memory; a hard promise.
    pub memory: Option<u64>,
    /// Threads that work, at least 1.
    pub threads: Option<usize>,
    /// Directory for temporary files; beside the output when absent.
    pub tmp: Option<PathBuf>,
    /// How the disk is reached.
    pub io: IoChoice,
    /// Which kind of data of a run lies on which tier of memory.
    pub placement: Placement,
    /// Ranks of one job on this machine, which share the memory of its nodes; 0 is 1.
    pub ranks_here: usize,
    /// Time that a run spends for bytes on the slow tier, to say what one would cost that is not there.
    pub charge: Option<TierModel>,
    /// True if the threads serve no other machine: what they call may itself run something.
    pub own_threads: bool,
    /// Files that lie in memory, which the budget counts.
    pub files: Option<MemoryFiles>,
    /// A simulated machine instead of this one.
    pub simulated: Option<SimulatedMachine>,
}

/// What of a machine is simulated: its disk and its time; its threads take turns by a seed.
#[derive(Debug, Clone)]
pub struct SimulatedMachine {
    /// The files.
    pub disk: Arc<dyn Disk>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Says which thread is next.
    pub seed: u64,
}

/// Memory, disk, threads and time of one run, and the wish that it ends.
#[derive(Debug, Clone)]
pub struct Machine {
    budget: MemoryBudget,
    disk: Arc<dyn Disk>,
    workers: Arc<WorkerPool>,
    tiers: Tiers,
    /// What bytes on the slow tier are charged.
    pub(crate) charge: Option<TierModel>,
    clock: Arc<dyn Clock>,
    stop: CancelToken,
    tmp: Option<PathBuf>,
    fabric: Option<Arc<CountedFabric<Arc<dyn Fabric>>>>,
    /// The disk, which it counts for.
    counted: Arc<CountedDisk>,
    /// Memory of the files that lie there since before.
    _files: Option<Arc<Lease>>,
}

impl Machine {
    /// Starts the threads and opens the disk. Work ends soon after `stop` is requested.
    ///
    /// # Errors
    /// The system has no more threads, or not the way to the disk or the tier of memory that was asked for.
    pub fn open(config: &MachineConfig, stop: CancelToken) -> Result<Machine, StorageError> {
        let real = match &config.simulated {
            Some(simulated) => Arc::clone(&simulated.disk),
            // Files in memory need no queue; few bytes go beside them.
            None if config.files.is_some() && config.io == IoChoice::Auto => {
                open_disk(IoChoice::Threads)?
            }
            None => open_disk(config.io)?,
        };
        let budget = MemoryBudget::new(config.memory.unwrap_or_else(default_memory));
        let (mut real, mut files) = (real, None);
        if let Some(of_memory) = &config.files {
            let here = config.ranks_here.max(1) as u64;
            let lease = budget.lease("the graph in memory", of_memory.bytes() / here)?;
            files = Some(Arc::new(lease));
            real = Arc::new(MemoryDisk::new(of_memory.clone(), real, budget.clone()));
        }
        let counted = Arc::new(CountedDisk::new(real));
        let disk: Arc<dyn Disk> = Arc::clone(&counted) as _;
        let threads = config.threads.unwrap_or_else(default_threads).max(1);
        let workers = match &config.simulated {
            Some(simulated) => WorkerPool::simulated(simulated.seed, threads, Arc::clone(&disk))?,
            // Ranks of one process wait for one another.
            None if config.ranks_here > 1 || config.own_threads => {
                WorkerPool::threads(threads, Arc::clone(&disk))?
            }
            None => WorkerPool::sharing_threads(threads, Arc::clone(&disk))?,
        };
        Ok(Machine {
            budget,
            _files: files,
            workers: Arc::new(workers),
            disk,
            counted,
            tiers: Tiers::open(&config.placement, config.ranks_here)?,
            charge: config.charge,
            clock: match &config.simulated {
                Some(simulated) => Arc::clone(&simulated.clock),
                None => Arc::new(SystemClock::new()),
            },
            stop,
            tmp: config.tmp.clone(),
            fabric: None,
        })
    }

    /// Opens a machine for little work: one thread, all else by default.
    ///
    /// # Errors
    /// As for [`Machine::open`].
    pub fn with_one_thread(stop: &CancelToken) -> Result<Machine, StorageError> {
        let config = MachineConfig {
            threads: Some(1),
            ..MachineConfig::default()
        };
        Machine::open(&config, stop.clone())
    }

    /// The same as one rank of some, each with a machine of its own.
    #[must_use]
    pub(crate) fn with_fabric(self, fabric: Arc<dyn Fabric>) -> Machine {
        Machine {
            fabric: Some(Arc::new(CountedFabric::new(fabric))),
            ..self
        }
    }

    /// The same without the other ranks.
    pub(crate) fn alone(&self) -> Machine {
        Machine {
            fabric: None,
            ..self.clone()
        }
    }

    /// The way to other ranks.
    pub(crate) fn fabric(&self) -> Option<&Arc<CountedFabric<Arc<dyn Fabric>>>> {
        self.fabric.as_ref()
    }

    /// Bytes read from disk and written to it, sent to other ranks and received, so far.
    pub(crate) fn moved(&self) -> [u64; 4] {
        let fabric = self.fabric.as_ref();
        [
            self.counted.bytes_read(),
            self.counted.bytes_written(),
            fabric.map_or(0, |fabric| fabric.bytes_sent()),
            fabric.map_or(0, |fabric| fabric.bytes_received()),
        ]
    }

    /// Which rank this is: 0 where there is one.
    pub(crate) fn rank(&self) -> usize {
        self.fabric.as_ref().map_or(0, |fabric| fabric.rank())
    }

    /// Waits until every rank is here.
    pub(crate) fn meet(&self) -> Result<(), Error> {
        self.gather(&[]).map(drop)
    }

    /// What every rank says, in order.
    pub(crate) fn gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        match &self.fabric {
            Some(fabric) => all_gather(&**fabric, mine, &|| check_stop(&self.stop)),
            None => Ok(vec![mine.to_vec()]),
        }
    }

    /// The memory that everything large is leased from.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The files.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The threads.
    pub fn workers(&self) -> &Arc<WorkerPool> {
        &self.workers
    }

    /// The tiers of memory.
    pub fn tiers(&self) -> &Tiers {
        &self.tiers
    }

    /// The time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The wish that work ends.
    pub fn stop(&self) -> &CancelToken {
        &self.stop
    }

    /// The directory for temporary files that was asked for.
    pub(crate) fn tmp_asked(&self) -> Option<&Path> {
        self.tmp.as_deref()
    }

    /// Returns the directory for temporary files: the configured one, else that of `output`.
    pub(crate) fn tmp(&self, output: &Path) -> PathBuf {
        self.tmp.clone().unwrap_or_else(|| folder_of(output))
    }
}

/// The directory that a path lies in.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
