//! Work that several ranks do together: as threads of this process, each with its share of memory and threads, or one of them in this process.

use std::sync::Arc;
use std::thread;

use graphmill_algorithms::AlgorithmError;
use graphmill_engine::EngineError;
use graphmill_fabric::{Fabric, FabricError, local};
use graphmill_ingest::IngestError;
use graphmill_storage::{CancelToken, StorageError};

use crate::error::{Error, is_end_as_asked};
use crate::machine::limits::{default_memory, default_threads};
use crate::machine::resources::{Machine, MachineConfig};
use crate::plan::Plan;
use crate::progress::{ProgressFn, unwatched};
use crate::result::block::Block;
use crate::run::Run;
use crate::spool::{Spool, is_stdin};

/// Runs work on `ranks` ranks of this process, each on a machine with its share of `config`.
///
/// Rank 0 runs `first` on the calling thread and returns its outcome. The others run `others`.
///
/// # Errors
/// The work of any rank fails; the error is that of the first rank that failed.
pub fn run_on_ranks<T>(
    config: &MachineConfig,
    ranks: usize,
    stop: &CancelToken,
    first: impl FnOnce(&Machine) -> Result<T, Error>,
    others: impl Fn(&Machine) -> Result<(), Error> + Sync,
) -> Result<T, Error> {
    if ranks <= 1 {
        return first(&Machine::open(config, stop.clone())?);
    }
    let first = |fabric, share: &MachineConfig| run_as_rank(fabric, share, stop, first);
    let others = |fabric, share: &MachineConfig| run_as_rank(fabric, share, stop, &others);
    Ok(on_threads(config, ranks, first, others)?.0)
}

/// Runs work on `ranks` ranks as [`run_on_ranks`] does; all ranks stay in the job after it.
///
/// Returns the outcome of each rank.
pub(crate) fn start_on_ranks<T: Send>(
    config: &MachineConfig,
    ranks: usize,
    stop: &CancelToken,
    work: impl Fn(&Machine) -> Result<T, Error> + Sync,
) -> Result<Vec<(T, Option<Membership>)>, Error> {
    if ranks <= 1 {
        return Ok(vec![(work(&Machine::open(config, stop.clone())?)?, None)]);
    }
    let join = |fabric: Arc<dyn Fabric>, share: &MachineConfig| {
        let done = work_as_rank(&fabric, share, stop, &work)?;
        Ok((done, Some(Membership(fabric))))
    };
    let (first, others) = on_threads(config, ranks, join, join)?;
    Ok(std::iter::once(first).chain(others).collect())
}

/// A rank of a job; it leaves the job when this is dropped.
pub(crate) struct Membership(Arc<dyn Fabric>);

impl Membership {
    /// Ends the job: the other ranks fail.
    pub(crate) fn fail(&self, error: &Error) {
        self.0.fail(&error.to_others());
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs `first` as rank 0 on this thread, and `others` as the other ranks.
///
/// Each gets its way to the other ranks and its share of the machine.
fn on_threads<T, U: Send>(
    config: &MachineConfig,
    ranks: usize,
    first: impl FnOnce(Arc<dyn Fabric>, &MachineConfig) -> Result<T, Error>,
    others: impl Fn(Arc<dyn Fabric>, &MachineConfig) -> Result<U, Error> + Sync,
) -> Result<(T, Vec<U>), Error> {
    let share = MachineConfig {
        memory: Some(config.memory.unwrap_or_else(default_memory) / ranks as u64),
        threads: Some((config.threads.unwrap_or_else(default_threads) / ranks).max(1)),
        ranks_here: config.ranks_here.max(1) * ranks,
        ..config.clone()
    };
    let (share, others) = (&share, &others);
    thread::scope(|scope| {
        let mut fabrics = local(ranks, share.threads.unwrap_or(1)).into_iter();
        let fabric_of_first = fabrics.next();
        let mut started = Vec::new();
        for fabric in fabrics {
            let work = move || others(Arc::new(fabric), share);
            let thread = thread::Builder::new().spawn_scoped(scope, work);
            // One that is not started has left the others already.
            started.push(thread.map_err(|source| StorageError::Thread { source })?);
        }
        let done = match fabric_of_first {
            Some(fabric) => first(Arc::new(fabric), share),
            None => Err(Error::Stopped),
        };
        // The error of another rank keeps that rank's words.
        let ended = started.into_iter().map(|thread| thread.join());
        let (mut done_by_others, mut failed) = (Vec::new(), Vec::new());
        for end in ended {
            let (done, error) = match end {
                Ok(Ok(done)) => (Some(done), None),
                Ok(Err(error)) => (None, Some(error)),
                // Rank 0 has heard of the panic.
                Err(_) => (None, None),
            };
            done_by_others.extend(done);
            failed.push(error);
        }
        let error = match done {
            Ok(done) => match failed.iter_mut().find_map(Option::take) {
                None => return Ok((done, done_by_others)),
                Some(error) => error,
            },
            Err(error) => error,
        };
        // Nor is a full disk hidden behind a wish to end.
        if error.is_end_as_asked() {
            let met = |other: &Option<Error>| other.as_ref().is_some_and(Error::is_of_disk);
            let of_disk = failed.iter_mut().find(|other| met(other));
            return Err(of_disk.and_then(Option::take).unwrap_or(error));
        }
        let of_rank = match error.between_ranks() {
            Some(FabricError::Lost { rank, .. }) => rank.checked_sub(1),
            _ => None,
        };
        let of_rank = of_rank.and_then(|number| failed.get_mut(number)?.take());
        Err(of_rank.unwrap_or(error))
    })
    .map_err(|error| of_all(error, ranks as u64))
}

/// Runs work as one rank of a job on a machine with the resources of `config`.
///
/// All ranks run the same work. It reports the outcome to the others.
///
/// # Errors
/// The work fails.
pub fn run_as_rank<T>(
    fabric: Arc<dyn Fabric>,
    config: &MachineConfig,
    stop: &CancelToken,
    work: impl FnOnce(&Machine) -> Result<T, Error>,
) -> Result<T, Error> {
    let done = work_as_rank(&fabric, config, stop, work)?;
    fabric.leave();
    Ok(done)
}

/// Runs work as one rank, which stays in the job unless the work fails.
pub(crate) fn work_as_rank<T>(
    fabric: &Arc<dyn Fabric>,
    config: &MachineConfig,
    stop: &CancelToken,
    work: impl FnOnce(&Machine) -> Result<T, Error>,
) -> Result<T, Error> {
    // Work of this rank alone ends too when another is lost.
    let stop = match fabric.lost_flag() {
        Some(lost) => stop.or(lost),
        None => stop.clone(),
    };
    let machine = Machine::open(config, stop).map_err(Error::from);
    let done = machine.and_then(|machine| work(&machine.with_fabric(Arc::clone(fabric))));
    done.map_err(|error| match fabric.lost() {
        Some(lost) => told_by(lost, fabric.rank(), error),
        None => error,
    })
    .inspect_err(|error| fabric.fail(&error.to_others()))
}

/// Returns the error that a rank reports if it fails after another rank was lost.
///
/// It reports the lost rank, because its own error may follow from that, such as missing files. It reports its own error if that is
/// common to all ranks, is a usage error, or comes from its own disk. All ranks end as stopped if one was asked to stop.
fn told_by(lost: FabricError, own: usize, error: Error) -> Error {
    match &lost {
        FabricError::Lost { rank, .. } if *rank == own => error,
        FabricError::Lost { cause, .. } if error.is_usage() || *cause == error.to_string() => error,
        _ if error.is_of_disk() => error,
        _ if is_end_as_asked(&lost) => match error.is_interrupted() {
            true => error,
            false => Error::Stopped,
        },
        _ => lost.into(),
    }
}

impl Plan {
    /// Does what the plan says on as many ranks as it says, and hands the rows to `each`.
    pub(crate) fn run_on_ranks(
        &self,
        stop: &CancelToken,
        watcher: &ProgressFn,
        each: Option<&mut dyn FnMut(&Block)>,
    ) -> Result<Run, Error> {
        let inputs = std::slice::from_ref(&self.config.input);
        let spool = Spool::of(inputs, &self.machine(), self.output_file(), stop)?;
        let plan = &self.on_spool(&spool);
        let first = |machine: &Machine| plan.run_rank(machine, watcher, each);
        let others = |machine: &Machine| plan.run_rank(machine, &unwatched(), None).map(drop);
        run_on_ranks(&self.machine(), self.config.ranks, stop, first, others)
    }

    /// Runs the plan as one rank of a job whose ranks all have the same plan.
    ///
    /// Rank 0 writes the result and reports everything.
    ///
    /// # Errors
    /// As for [`Plan::run`]; another rank is lost.
    pub fn run_as(
        &self,
        fabric: Arc<dyn Fabric>,
        stop: &CancelToken,
        watcher: &ProgressFn,
    ) -> Result<Run, Error> {
        if is_stdin(&self.config.input) {
            return Err(Error::StdinOfRanks);
        }
        let work = |machine: &Machine| self.run_rank(machine, watcher, None);
        run_as_rank(fabric, &self.machine(), stop, work)
    }
}

/// Returns the memory error for all ranks, given that of the share of one rank.
fn of_all(mut error: Error, ranks: u64) -> Error {
    match &mut error {
        Error::Engine(EngineError::TooSmall { least, budget, .. })
        | Error::Algorithm(AlgorithmError::Engine(EngineError::TooSmall {
            least, budget, ..
        })) => {
            (*least, *budget) = (*least * ranks, *budget * ranks);
        }
        Error::Ingest(IngestError::TooLittleMemory {
            needed,
            available,
            least,
            ..
        }) => {
            for bytes in [needed, available, least] {
                *bytes *= ranks;
            }
        }
        _ => {}
    }
    error
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn full_disk_is_reported_and_missing_files_are_not() {
        let met = |kind: io::ErrorKind| {
            Error::from(EngineError::from(StorageError::Path {
                action: "write",
                path: "rows".into(),
                source: kind.into(),
            }))
        };
        let told = |cause: &str, error| {
            let cause = cause.to_string();
            told_by(FabricError::Lost { rank: 1, cause }, 0, error)
        };
        let asked = Error::Stopped.to_others();
        for cause in [&*asked, "it was killed"] {
            assert!(told(cause, met(io::ErrorKind::StorageFull)).is_of_disk());
            let told = told(cause, met(io::ErrorKind::NotFound));
            assert_eq!(told.is_stopped(), cause == asked, "{told}");
            assert_eq!(told.between_ranks().is_some(), cause != asked, "{told}");
        }
    }

    #[test]
    fn full_disk_is_reported_before_a_cancel() {
        let config = MachineConfig {
            memory: Some(64 << 20),
            threads: Some(2),
            ..MachineConfig::default()
        };
        let full = || StorageError::Path {
            action: "write",
            path: "rows".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        let asked = run_on_ranks(
            &config,
            2,
            &CancelToken::new(),
            |_| -> Result<(), Error> { Err(Error::Stopped) },
            |_| Err(full().into()),
        );
        assert!(asked.is_err_and(|error| error.is_of_disk()));
    }
}
