//! MPI jobs: whether this process is a rank of one, its share of the machine, and the plugin through which MPI is reached.
//!
//! The command neither needs nor links MPI. A plugin, compiled once against the MPI of a site ([`build_plugin`](crate::advanced::build_plugin)), is loaded where the
//! environment says that a job was started.

use std::path::PathBuf;
use std::sync::Arc;

use graphmill_fabric::{Fabric, MPI_PLUGIN, MpiFabric};
use graphmill_storage::{IoChoice, open_disk};

use crate::error::Error;
use crate::machine::limits::{default_memory, default_threads};
use crate::machine::resources::MachineConfig;

/// How many ranks there are, as those say who start them: Open MPI, MPICH and its kin, MVAPICH.
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];
/// Which of them this process is.
const RANK: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"];
/// And how many of them on this machine.
const HERE: [&str; 3] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
];

/// Processes that start ranks, and bind them to processors.
const STARTERS: [&str; 8] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "orted",
    "prted",
    "hydra_pmi_proxy",
    "slurmstepd",
];

/// An MPI job that this process is a rank of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiJob {
    /// How many ranks there are.
    pub ranks: usize,
    /// The rank of this process in the job, if the launcher sets it.
    pub rank: Option<usize>,
    /// How many of them are on this machine.
    pub here: usize,
    /// Processors that Slurm gives each of them.
    pub processors: Option<usize>,
    /// Processors that Slurm gives all of them on this machine.
    pub processors_here: Option<usize>,
    /// Bytes of memory that Slurm gives all of them on this machine.
    pub memory: Option<u64>,
    /// A directory on this machine for what a Slurm job has temporarily.
    pub tmp: Option<PathBuf>,
}

/// Processors of this machine, by the system's account of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Processors {
    /// That this process may use.
    own: usize,
    /// That what started it may use: more, where each rank was bound to some of these.
    of_job: usize,
}

impl MpiJob {
    /// Returns the job, if the environment says that this process is one of several.
    #[must_use]
    pub fn of_environment() -> Option<MpiJob> {
        Self::of(|name| std::env::var(name).ok())
    }

    /// Returns the number of processes that Slurm started without a common MPI job.
    ///
    /// This happens if `srun` was not given an MPI type (`--mpi`).
    #[must_use]
    pub fn strangers() -> Option<usize> {
        Self::strangers_of(|name| std::env::var(name).ok())
    }

    fn strangers_of(variable: impl Fn(&str) -> Option<String>) -> Option<usize> {
        let tasks = variable("SLURM_STEP_NUM_TASKS")?.parse().ok()?;
        let is_step = tasks > 1 && variable("SLURM_PROCID").is_some();
        let says_more = |name: &&str| variable(name).is_some();
        (is_step && !RANKS.iter().chain(&["PMIX_RANK"]).any(says_more)).then_some(tasks)
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<MpiJob> {
        let number = |name: &str| -> Option<usize> { variable(name)?.parse().ok() };
        // Of the machines of a Slurm job, of this one.
        let node = number("SLURM_NODEID").unwrap_or(0);
        let of_machine = |name: &str| expanded(&variable(name)?, node);
        let first = |names: &[&str]| names.iter().find_map(|name| number(name));
        // Under Slurm with PMIx only this variable shows a job; srun starts single processes too.
        let by_slurm = || variable("PMIX_RANK").and_then(|_| number("SLURM_STEP_NUM_TASKS"));
        let ranks = first(&RANKS).or_else(by_slurm)?;
        let here = first(&HERE).or_else(|| of_machine("SLURM_STEP_TASKS_PER_NODE"));
        let of_processors = || {
            let each = number("SLURM_MEM_PER_CPU")?;
            Some(each.saturating_mul(number("SLURM_CPUS_ON_NODE")?))
        };
        // 0 is all that there is.
        let mebibytes = number("SLURM_MEM_PER_NODE").or_else(of_processors);
        let mebibytes = mebibytes.filter(|mebibytes| *mebibytes > 0);
        let of_slurm = |_: &String| variable("SLURM_JOB_ID").is_some();
        let folder = |name: &str| variable(name).filter(|folder| !folder.is_empty());
        (ranks > 1).then(|| MpiJob {
            ranks,
            rank: first(&RANK).or_else(|| number("PMIX_RANK")),
            here: here.unwrap_or(1).clamp(1, ranks),
            processors: number("SLURM_CPUS_PER_TASK"),
            processors_here: number("SLURM_CPUS_ON_NODE"),
            memory: mebibytes.map(|mebibytes| (mebibytes as u64).saturating_mul(1 << 20)),
            tmp: folder("SLURM_TMPDIR")
                .or_else(|| folder("TMPDIR").filter(of_slurm))
                .map(PathBuf::from),
        })
    }

    /// Returns the default resources of one rank: its share of what all processes of the machine may use.
    #[must_use]
    pub fn share(&self, asked: MachineConfig) -> MachineConfig {
        self.share_of(asked, Processors::of_system())
    }

    fn share_of(&self, asked: MachineConfig, processors: Processors) -> MachineConfig {
        let threads = || self.each(processors).clamp(1, processors.own.max(1));
        // As half of the machine's, half of what Slurm gives.
        let memory = || match self.memory {
            Some(memory) => default_memory().min(memory / 2) / self.here as u64,
            None => default_memory() / self.here as u64,
        };
        MachineConfig {
            memory: Some(asked.memory.unwrap_or_else(memory)),
            threads: Some(asked.threads.unwrap_or_else(threads)),
            tmp: asked.tmp.clone().or_else(|| self.tmp.clone()),
            ranks_here: self.here,
            ..asked
        }
    }

    /// Returns advice for the launcher of the ranks if each may use fewer processors than are available.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        self.advice_of(Processors::of_system())
    }

    /// Processors that there are for each rank.
    fn each(&self, processors: Processors) -> usize {
        let all = self.processors_here.unwrap_or(processors.of_job);
        (self.processors).unwrap_or(all.min(processors.of_job) / self.here)
    }

    fn advice_of(&self, processors: Processors) -> Option<String> {
        let (own, each) = (processors.own, self.each(processors));
        (own < each).then(|| {
            format!(
                "each rank is bound to {own} of the processors; start ranks with --bind-to none (mpirun) or --cpu-bind=none (srun) for up to \
                 {each} threads each"
            )
        })
    }

    /// Starts MPI, once in a process: the way to the other ranks.
    ///
    /// # Errors
    /// There is no plugin, it does not go with this command, or MPI does not start.
    pub fn start(&self) -> Result<Arc<dyn Fabric>, Error> {
        let disk = open_disk(IoChoice::Threads)?;
        for place in MPI_PLUGIN.places() {
            if disk.exists(&place)? {
                return Ok(Arc::new(MpiFabric::start(&place)?));
            }
        }
        Err(Error::NoPlugin {
            ranks: self.ranks,
            places: MPI_PLUGIN.places(),
        })
    }
}

/// A number of the list that Slurm has of machines, as 4(x2),3 for three.
fn expanded(list: &str, machine: usize) -> Option<usize> {
    let mut before = 0;
    for part in list.split(',') {
        let (number, times) = match part.split_once("(x") {
            Some((number, times)) => (number, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        before += times;
        if machine < before {
            return number.parse().ok();
        }
    }
    None
}

impl Processors {
    fn of_system() -> Processors {
        let own = default_threads();
        let status = |of: &str| std::fs::read_to_string(format!("/proc/{of}/status")).ok();
        let mine = status("self");
        let mut above = mine.clone();
        while let Some(text) = above {
            above = parent(&text).and_then(|process| status(&process));
            let name = above.as_deref().and_then(|text| field(text, "Name:"));
            if name.is_some_and(|name| STARTERS.contains(&name.as_str())) {
                let [mine, all] = [&mine, &above].map(|text| allowed(text.as_deref()?));
                // Where it may use no more than this process, a container leaves all of them no more.
                let of_job = all.filter(|_| all > mine).unwrap_or(own).max(own);
                return Processors { own, of_job };
            }
        }
        Processors { own, of_job: own }
    }
}

/// How many processors a process may use, as its status says: Cpus_allowed_list: 0-3,8.
fn allowed(status: &str) -> Option<usize> {
    let list = field(status, "Cpus_allowed_list:")?;
    let count = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.split(',').map(count).sum()
}

fn parent(status: &str) -> Option<String> {
    field(status, "PPid:").filter(|process| process != "0")
}

fn field(status: &str, name: &str) -> Option<String> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an environment of so few variables says.
    fn says(environment: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| {
            let found = environment.iter().find(|variable| variable.0 == name);
            found.map(|variable| variable.1.to_string())
        }
    }

    fn job(environment: &[(&str, &str)]) -> Option<MpiJob> {
        MpiJob::of(says(environment))
    }

    #[test]
    fn mpi_launchers_are_recognised() {
        let of = |rank, ranks, here| {
            Some(MpiJob {
                ranks,
                rank,
                here,
                processors: None,
                processors_here: None,
                memory: None,
                tmp: None,
            })
        };
        assert_eq!(job(&[]), None);
        assert_eq!(job(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
        let open_mpi = [
            ("OMPI_COMM_WORLD_SIZE", "8"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
            ("OMPI_COMM_WORLD_RANK", "5"),
        ];
        assert_eq!(job(&open_mpi), of(Some(5), 8, 4));
        assert_eq!(
            job(&[("PMI_SIZE", "3"), ("MPI_LOCALNRANKS", "3")]),
            of(None, 3, 3)
        );
        let slurm = [
            ("PMIX_RANK", "2"),
            ("SLURM_STEP_NUM_TASKS", "11"),
            ("SLURM_STEP_TASKS_PER_NODE", "4(x2),3"),
        ];
        assert_eq!(job(&slurm), of(Some(2), 11, 4));
        let last = [&slurm[..], &[("SLURM_NODEID", "2")]].concat();
        assert_eq!(job(&last), of(Some(2), 11, 3));
        // A step without MPI.
        assert_eq!(job(&slurm[1..]), None);
        let more = [
            ("PMI_SIZE", "2"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_CPUS_PER_TASK", "6"),
            ("SLURM_MEM_PER_CPU", "1000"),
            ("SLURM_CPUS_ON_NODE", "12"),
            ("TMPDIR", "/scratch"),
            ("SLURM_TMPDIR", "/local"),
        ];
        let found = job(&more).unwrap();
        assert_eq!(found.processors, Some(6));
        assert_eq!(found.memory, Some(12_000 << 20));
        assert_eq!(found.tmp, Some("/local".into()));
        assert_eq!(job(&more[..6]).unwrap().tmp, Some("/scratch".into()));
        // Elsewhere, TMPDIR may be memory.
        assert_eq!(job(&[more[0], more[5]]).unwrap().tmp, None);
    }

    #[test]
    fn slurm_tasks_without_mpi_are_detected() {
        let strangers = |environment: &[(&str, &str)]| MpiJob::strangers_of(says(environment));
        let step = [("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "3")];
        assert_eq!(strangers(&step), Some(8));
        assert_eq!(strangers(&step[..1]), None);
        for knows in ["PMIX_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"] {
            assert_eq!(strangers(&[step[0], step[1], (knows, "3")]), None);
        }
        assert_eq!(strangers(&[("SLURM_STEP_NUM_TASKS", "1"), step[1]]), None);
    }

    #[test]
    fn bound_ranks_do_not_share_processors() {
        let job = job(&[("PMI_SIZE", "8"), ("MPI_LOCALNRANKS", "8")]).unwrap();
        let threads = |own, of_job| {
            let share = job.share_of(MachineConfig::default(), Processors { own, of_job });
            share.threads
        };
        // A container; a socket of two; a core of 64; 8 processors each.
        assert_eq!(threads(16, 16), Some(2));
        assert_eq!(threads(32, 64), Some(8));
        assert_eq!(threads(1, 64), Some(1));
        assert_eq!(threads(8, 64), Some(8));
        assert_eq!(threads(4, 4), Some(1));
        // Slurm has 16 of 64 processors for the job, and binds no process.
        let of_slurm = MpiJob {
            processors_here: Some(16),
            ..job.clone()
        };
        let processors = Processors {
            own: 16,
            of_job: 64,
        };
        let share = of_slurm.share_of(MachineConfig::default(), processors);
        assert_eq!(share.threads, Some(2));
        let advice = |own, of_job| job.advice_of(Processors { own, of_job });
        assert!(advice(1, 64).unwrap().contains("up to 8 threads"));
        assert_eq!(
            [advice(32, 64), advice(16, 16), advice(4, 4)],
            [const { None }; 3]
        );
    }

    #[test]
    fn process_status_is_parsed() {
        let status = "Name:\tx\nPPid:\t17\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8,10-11\n";
        assert_eq!(allowed(status), Some(7));
        assert_eq!(parent(status), Some("17".to_string()));
        assert_eq!(parent("PPid:\t0\n"), None);
        assert!(Processors::of_system().of_job >= default_threads());
    }

    #[test]
    fn rank_takes_its_share_of_the_machine() {
        let job = job(&[("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "4")]).unwrap();
        let share = job.share(MachineConfig::default());
        assert_eq!(share.memory, Some(default_memory() / 4));
        let asked = MachineConfig {
            memory: Some(7),
            threads: Some(3),
            ..MachineConfig::default()
        };
        let share = job.share(asked);
        assert_eq!((share.memory, share.threads), (Some(7), Some(3)));
    }
}
