//! The machine a run works on: what it may take of it, and the ports through which it does.
//!
//! [`MachineConfig`] is what was asked; [`Machine`] is what came of it, with one budget, one disk and one set of workers for
//! everything that is done with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_engine::Charge;
use graphmill_fabric::{CountedFabric, Fabric, all_gather};
use graphmill_storage::{
    Budget, Clock, CountedDisk, Disk, IoChoice, Placement, Stop, StorageError, SystemClock, Tiers,
    Workers, open_disk,
};

use crate::error::Error;

/// What may be taken of the machine. The default takes [`default_memory`] and [`default_threads`].
#[derive(Debug, Clone, Default)]
pub struct MachineConfig {
    /// Bytes of memory; a hard promise.
    pub memory: Option<u64>,
    /// Threads that work, at least 1.
    pub threads: Option<usize>,
    /// Folder for temporary files; beside the output when absent.
    pub tmp: Option<PathBuf>,
    /// How the disk is reached.
    pub io: IoChoice,
    /// Which kind of data of a run lies on which tier of memory.
    pub placement: Placement,
    /// Time that a run spends for bytes on the slow tier, to say what one would cost that is not there.
    pub charge: Option<Charge>,
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
    budget: Budget,
    disk: Arc<dyn Disk>,
    workers: Arc<Workers>,
    tiers: Tiers,
    charge: Option<Charge>,
    clock: Arc<dyn Clock>,
    stop: Stop,
    tmp: Option<PathBuf>,
    fabric: Option<Arc<CountedFabric<Arc<dyn Fabric>>>>,
    /// The disk, which it counts for.
    counted: Arc<CountedDisk>,
}

impl Machine {
    /// Starts the threads and opens the disk. Work ends soon after `stop` is requested.
    ///
    /// # Errors
    /// The system has no more threads, or not the way to the disk or the tier of memory that was asked for.
    pub fn open(config: &MachineConfig, stop: Stop) -> Result<Machine, StorageError> {
        let real = match &config.simulated {
            Some(simulated) => Arc::clone(&simulated.disk),
            None => open_disk(config.io)?,
        };
        let counted = Arc::new(CountedDisk::new(real));
        let disk: Arc<dyn Disk> = Arc::clone(&counted) as _;
        let threads = config.threads.unwrap_or_else(default_threads).max(1);
        let workers = match &config.simulated {
            Some(simulated) => Workers::simulated(simulated.seed, threads, Arc::clone(&disk))?,
            None => Workers::threads(threads, Arc::clone(&disk))?,
        };
        Ok(Machine {
            budget: Budget::new(config.memory.unwrap_or_else(default_memory)),
            workers: Arc::new(workers),
            disk,
            counted,
            tiers: Tiers::open(&config.placement)?,
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
            Some(fabric) => all_gather(&**fabric, mine, &|| match self.stop.requested() {
                true => Err(Error::Stopped),
                false => Ok(()),
            }),
            None => Ok(vec![mine.to_vec()]),
        }
    }

    /// The memory that everything large is leased from.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The files.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The threads.
    pub fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    /// The tiers of memory.
    pub fn tiers(&self) -> &Tiers {
        &self.tiers
    }

    /// What bytes on the slow tier are charged.
    pub(crate) fn charge(&self) -> Option<Charge> {
        self.charge
    }

    /// The time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The wish that work ends.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The folder for temporary files that was asked for.
    pub(crate) fn tmp_asked(&self) -> Option<&Path> {
        self.tmp.as_deref()
    }

    /// Folder for temporary files of work whose output goes to `output`: the one asked for, else that of the output.
    pub(crate) fn tmp(&self, output: &Path) -> PathBuf {
        self.tmp.clone().unwrap_or_else(|| folder_of(output))
    }
}

/// The folder that a path lies in.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Bytes of memory a run may take when nobody says: half of what this process could get.
///
/// That is half of the least of the machine's memory and the limits of the cgroups the process is in (version 1 or 2), so that a
/// container and the rest of the machine keep room. 1 GiB where neither can be read.
pub fn default_memory() -> u64 {
    memory_total().map_or(1 << 30, |total| total / 2)
}

/// Bytes of memory of the machine, or of the tightest cgroup around this process; none where neither can be read.
pub fn memory_total() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| of_meminfo(&text));
    machine.into_iter().chain(memory_limit()).min()
}

/// Bytes of memory that the tightest cgroup around this process may take; none where no cgroup says.
pub fn memory_limit() -> Option<u64> {
    let text = |path: &Path| std::fs::read_to_string(path).ok();
    let groups = text(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups).into_iter();
    limits
        .filter_map(|path| text(&path)?.trim().parse().ok())
        .min()
}

/// Threads of a run when nobody says: the processors this process may use.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn of_meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files that hold the memory limits of the process's cgroup and of every one above it.
///
/// `groups` is /proc/self/cgroup: `0::/a/b` under version 2, `9:memory:/a/b` under version 1. A limit of "max" is not a number
/// and is left out by the caller; version 1 has a huge number instead.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (root, name) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(
            group
                .ancestors()
                .map(|group| Path::new(root).join(group).join(name)),
        );
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_meminfo_is_in_bytes() {
        let text = "MemTotal:       24675020 kB\nMemFree:         100 kB\n";
        assert_eq!(of_meminfo(text), Some(24_675_020 * 1024));
        assert_eq!(of_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(of_meminfo("MemTotal: many kB\n"), None);
    }

    #[test]
    fn limits_of_every_enclosing_cgroup_are_looked_at() {
        let files =
            limit_files("12:cpu,cpuacct:/x\n9:memory:/docker/abc\n0::/user.slice\nbroken\n");
        let files: Vec<_> = files.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
    }

    #[test]
    fn this_machine_has_memory_and_a_processor() {
        assert!(default_memory() > 0);
        assert!(default_threads() > 0);
    }
}
