//! Where an import works: temporary files, the graph so far, and what is kept of both when it does not come to its end.

use std::path::Path;

use graphmill_graph::FormatError;
use graphmill_storage::Scratch;

use super::job::JobIdentity;
use super::staging::StagingDir;
use super::step_log::StepLog;
use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::options::{ImportOptions, Machine};

pub(crate) struct ImportDirs<'a> {
    // In this order: the folder that says whose they are goes last.
    pub(crate) staging: StagingDir<'a>,
    pub(crate) temporary: Scratch,
    /// What was done, where it is kept.
    pub(crate) log: Option<StepLog<'a>>,
}

impl<'a> ImportDirs<'a> {
    /// Of an import that makes its graph in `parent`: that of a job, with what was kept of it, if no other process works there; else a
    /// new one.
    pub(crate) fn open(
        machine: Machine<'a>,
        comm: ImportCommunicator<'a>,
        parent: &Path,
        job: Option<JobIdentity>,
        options: &ImportOptions,
    ) -> Result<Self, IngestError> {
        let folder = options.temporary.as_deref().unwrap_or(parent);
        let ports = (machine.disk, machine.clock);
        let named = match &job {
            Some(job) => {
                StepLog::remove_dead(machine, folder, job);
                comm.gather(Vec::new())?;
                job.folder(ports, folder, &comm)?
            }
            None => None,
        };
        let kept = job.as_ref().filter(|_| named.is_some());
        let staging = StagingDir::create(ports, parent, comm, kept)?;
        if job.is_some() && !staging.is_of_job() {
            let apart = if named.is_some() { parent } else { folder };
            machine.progress.keeps_nothing(apart);
        }
        let job = job.filter(|_| staging.is_of_job());
        let temporary = match named.filter(|_| staging.is_of_job()) {
            Some(named) => named,
            None => Scratch::create(machine.disk, folder, "temporary")?,
        };
        if options.turns_round() && staging.makers().iter().any(|maker| *maker != 0) {
            return Err(IngestError::NotShared {
                folder: parent.to_path_buf(),
                option: "--reverse",
            });
        }
        let mut log = None;
        if let (Some(job), Some(every)) = (job, options.keep_every) {
            let folders = (temporary.path(), staging.path());
            let job = job.text(staging.makers());
            let (opened, is_new) = StepLog::open(machine, folders, job, every)?;
            // In this order: records without their files are none, and what has neither goes with any import, should this one be killed.
            if is_new {
                staging.clear()?;
            }
            comm.gather(Vec::new())?;
            if is_new {
                opened.supersede()?;
            }
            // Who says that it has begun finds nothing of another import there.
            comm.gather(Vec::new())?;
            if is_new {
                opened.begin();
            }
            log = Some(opened);
        }
        Ok(ImportDirs {
            staging,
            temporary,
            log,
        })
    }

    /// Has all of it go when the import ends, unless there is something to go on with; whether there is. `made` is what came of it: nobody
    /// goes on with what turned out to be damaged.
    pub(crate) fn settle(&self, made: &Result<(), IngestError>) -> bool {
        let Some(log) = &self.log else {
            return false;
        };
        let is_of_what_was_kept = match made {
            Err(IngestError::Damaged { .. }) => true,
            Err(IngestError::Graph(error)) => !matches!(
                error,
                FormatError::Storage(_) | FormatError::Budget(_) | FormatError::Memory(_)
            ),
            _ => false,
        };
        // Where no record was written, what was to say that there are some goes.
        if is_of_what_was_kept || !log.has_any() {
            // What cannot be removed is met again.
            let _ = log.remove_all_records();
        }
        let has_any = log.has_any();
        self.temporary.stay(has_any);
        self.staging.stay(has_any || log.have_others());
        has_any
    }

    /// Gives the graph its name; all else goes. `taken` says what is wrong where something has that name already.
    pub(crate) fn end(
        self,
        output: &Path,
        taken: impl FnOnce() -> Result<Option<IngestError>, IngestError>,
    ) -> Result<(), IngestError> {
        if let Some(log) = &self.log {
            log.end();
        }
        self.staging.rename(output, taken)?;
        self.temporary.stay(false);
        if let Some(log) = &self.log {
            // Where it is killed before or meanwhile, what is left goes with the next import. The graph is there, whatever becomes of this.
            let _ = log.remove_all_records();
        }
        Ok(())
    }
}
