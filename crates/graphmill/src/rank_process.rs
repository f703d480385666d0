//! This process as a rank of an MPI job: for many runs, one after the other.

use std::sync::Arc;

use graphmill_fabric::Fabric;
use graphmill_storage::CancelToken;

use crate::error::Error;
use crate::launch::work_as_rank;
use crate::machine::mpi::MpiJob;
use crate::machine::resources::{Machine, MachineConfig};

/// This process as a rank of an MPI job.
///
/// All ranks make the same calls in the same order. After a call that failed they are lost to each other.
#[derive(Clone)]
pub struct RankProcess {
    job: MpiJob,
    fabric: Arc<dyn Fabric>,
}

impl RankProcess {
    /// Starts MPI, once in a process, if the environment says that this process is a rank of a job.
    ///
    /// # Errors
    /// As for [`MpiJob::start`].
    pub fn of_environment() -> Result<Option<RankProcess>, Error> {
        let start = |job: MpiJob| {
            let fabric = job.start()?;
            Ok(RankProcess { job, fabric })
        };
        MpiJob::of_environment().map(start).transpose()
    }

    /// The number of this rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.fabric.rank()
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.fabric.ranks()
    }

    /// The resources of this rank: its share where nothing was asked for.
    ///
    /// # Errors
    /// More than one rank was asked for in this process.
    pub fn share(&self, asked: &MachineConfig, ranks: usize) -> Result<MachineConfig, Error> {
        match ranks {
            0 | 1 => Ok(self.job.share(asked.clone())),
            _ => Err(Error::Meaningless {
                option: "--ranks",
                needs: "a process that is no rank of an MPI job",
            }),
        }
    }

    /// Runs work as this rank; all ranks run the same work.
    ///
    /// # Errors
    /// The work fails, or another rank is lost.
    pub fn run<T>(
        &self,
        config: &MachineConfig,
        stop: &CancelToken,
        work: impl FnOnce(&Machine) -> Result<T, Error>,
    ) -> Result<T, Error> {
        work_as_rank(&self.fabric, config, stop, work)
    }

    /// Runs work as rank 0 alone; returns its text on all ranks.
    ///
    /// # Errors
    /// As for [`RankProcess::run`].
    pub fn run_first(
        &self,
        config: &MachineConfig,
        stop: &CancelToken,
        work: impl FnOnce(&Machine) -> Result<String, Error>,
    ) -> Result<String, Error> {
        self.run(config, stop, |machine| {
            let text = match machine.rank() {
                0 => work(&machine.alone())?,
                _ => String::new(),
            };
            let texts = machine.gather(text.as_bytes())?;
            let first = texts.into_iter().next().unwrap_or_default();
            Ok(String::from_utf8_lossy(&first).into_owned())
        })
    }

    /// Ends the job: the calls of the other ranks fail.
    pub fn fail(&self, cause: &str) {
        self.fabric.fail(cause);
    }

    /// Leaves the job; this rank makes no more calls.
    pub fn leave(&self) {
        self.fabric.leave();
    }
}
