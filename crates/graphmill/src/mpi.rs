//! MPI jobs: whether this process is a rank of one, its share of the machine, and the plugin through which MPI is reached.
//!
//! The command neither needs nor links MPI. A plugin, compiled once against the MPI of a site ([`build_plugin`]), is loaded where the
//! environment says that a job was started.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use graphmill_fabric::{Fabric, MPI_PLUGIN, MpiFabric};
use graphmill_storage::{IoChoice, open_disk};

use crate::Error;
use crate::machine::{MachineConfig, default_memory, default_threads};

/// The environment variable that names the plugin.
const PLUGIN: &str = "GRAPHMILL_MPI";
/// What the plugin is called beside the command, and in the user's folder.
const FILE: &str = "graphmill-mpi.so";

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

/// An MPI job that this process is a rank of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiJob {
    /// How many ranks there are.
    pub ranks: usize,
    /// Which of them this process is, as far as that is said.
    pub rank: Option<usize>,
    /// How many of them are on this machine.
    pub here: usize,
    /// Processors that Slurm gives each of them.
    pub processors: Option<usize>,
    /// A folder on this machine that Slurm gives the job.
    pub tmp: Option<PathBuf>,
}

impl MpiJob {
    /// The job, if whoever started this process says that it is one of several.
    #[must_use]
    pub fn of_environment() -> Option<MpiJob> {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<MpiJob> {
        let number = |name: &str| -> Option<usize> {
            // Slurm says 4(x2),3 for machines with 4, 4 and 3 ranks.
            let text = variable(name)?;
            let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        };
        let first = |names: &[&str]| names.iter().find_map(|name| number(name));
        // Under Slurm with PMIx only that says that there is a job; srun starts what is none too.
        let by_slurm = || variable("PMIX_RANK").and_then(|_| number("SLURM_STEP_NUM_TASKS"));
        let ranks = first(&RANKS).or_else(by_slurm)?;
        let here = first(&HERE).or_else(|| number("SLURM_STEP_TASKS_PER_NODE"));
        let folder = |name: &str| variable(name).filter(|folder| !folder.is_empty());
        (ranks > 1).then(|| MpiJob {
            ranks,
            rank: first(&RANK).or_else(|| number("PMIX_RANK")),
            here: here.unwrap_or(1).clamp(1, ranks),
            processors: number("SLURM_CPUS_PER_TASK"),
            tmp: folder("SLURM_TMPDIR").map(PathBuf::from),
        })
    }

    /// What one rank may take of the machine, where that was not asked for: its share of what all processes of the machine may.
    #[must_use]
    pub fn share(&self, asked: MachineConfig) -> MachineConfig {
        let threads = || {
            let processors = (self.processors).unwrap_or(default_threads() / self.here);
            processors.clamp(1, default_threads())
        };
        MachineConfig {
            memory: Some((asked.memory).unwrap_or_else(|| default_memory() / self.here as u64)),
            threads: Some(asked.threads.unwrap_or_else(threads)),
            tmp: asked.tmp.clone().or_else(|| self.tmp.clone()),
            ..asked
        }
    }

    /// Starts MPI, once in a process: the way to the other ranks.
    ///
    /// # Errors
    /// There is no plugin, it does not go with this command, or MPI does not start.
    pub fn start(&self) -> Result<Arc<dyn Fabric>, Error> {
        let disk = open_disk(IoChoice::Threads)?;
        for place in places() {
            if disk.exists(&place)? {
                return Ok(Arc::new(MpiFabric::start(&place)?));
            }
        }
        Err(Error::NoPlugin {
            ranks: self.ranks,
            places: places(),
        })
    }
}

/// Where the plugin may be: where the environment says; else beside the command, or in the user's folder.
fn places() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(PLUGIN) {
        return vec![PathBuf::from(named)];
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|command| Some(command.parent()?.join(FILE)));
    beside.into_iter().chain(of_user()).collect()
}

/// The user's own.
fn of_user() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    Some(data.or_else(home)?.join("graphmill").join(FILE))
}

/// Compiles the plugin with the compiler of an MPI (`mpicc`), to `to` or to where it is looked for; returns where it is.
///
/// # Errors
/// There is no such compiler, it fails, or nothing can be written there.
pub fn build_plugin(compiler: &str, to: Option<&Path>) -> Result<PathBuf, Error> {
    let disk = open_disk(IoChoice::Threads)?;
    let named = to.map(Path::to_path_buf);
    let named = named.or_else(|| std::env::var_os(PLUGIN).map(PathBuf::from));
    let to = named.or_else(of_user).ok_or(Error::NoPlaceForPlugin)?;
    if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        disk.create_dir_all(folder)?;
    }
    // Aside, so that what is there stays whole where it fails.
    let aside = to.with_extension(format!("so.{}", std::process::id()));
    let failed = |what: String| Error::PluginBuild {
        compiler: compiler.to_string(),
        what,
    };
    let compiled = compile(compiler, &aside).map_err(|error| failed(error.to_string()));
    let renamed = compiled.and_then(|output| match output.status.success() {
        true => Ok(disk.rename(&aside, &to)?),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    });
    if renamed.is_err() {
        let _ = disk.remove_file(&aside);
    }
    renamed.map(|()| to)
}

fn compile(compiler: &str, to: &Path) -> std::io::Result<std::process::Output> {
    let mut command = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O2", "-x", "c", "-", "-o"])
        .arg(to)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = command.stdin.take() {
        // A compiler that does not read says why in its own words.
        let _ = stdin.write_all(MPI_PLUGIN.as_bytes());
    }
    command.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(environment: &[(&str, &str)]) -> Option<MpiJob> {
        MpiJob::of(|name| {
            let found = environment.iter().find(|variable| variable.0 == name);
            found.map(|variable| variable.1.to_string())
        })
    }

    #[test]
    fn whoever_starts_ranks_is_understood() {
        let of = |rank, ranks, here| {
            Some(MpiJob {
                ranks,
                rank,
                here,
                processors: None,
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
        // A step without MPI.
        assert_eq!(job(&slurm[1..]), None);
        let more = [
            ("PMI_SIZE", "2"),
            ("SLURM_CPUS_PER_TASK", "6"),
            ("SLURM_TMPDIR", "/local"),
        ];
        let found = job(&more).unwrap();
        assert_eq!(
            (found.processors, found.tmp),
            (Some(6), Some("/local".into()))
        );
    }

    #[test]
    fn a_rank_takes_its_share_of_what_was_not_asked_for() {
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
