//! The directories of an import: temporary files, the partial graph, and the checkpoint of both.

use std::path::Path;

use graphmill_graph::{FormatError, Layout};
use graphmill_storage::WorkDir;

use super::job::JobIdentity;
use super::staging::StagingDir;
use super::step_log::StepLog;
use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::options::{ImportOptions, ImportResources};

pub(crate) struct ImportDirs<'a> {
    // Drop order: the directory with the job record goes last.
    pub(crate) staging: StagingDir<'a>,
    pub(crate) temporary: WorkDir,
    /// The log of the checkpoint, if one is written.
    pub(crate) log: Option<StepLog<'a>>,
}

impl<'a> ImportDirs<'a> {
    /// Opens the directories of an import that makes its graph in `parent`.
    ///
    /// They are the job's, with its checkpoint, if no other process works there; else new ones.
    pub(crate) fn open(
        resources: ImportResources<'a>,
        comm: ImportCommunicator<'a>,
        parent: &Path,
        job: Option<JobIdentity>,
        options: &ImportOptions,
    ) -> Result<Self, IngestError> {
        let folder = options.temporary.as_deref().unwrap_or(parent);
        let ports = (resources.disk, resources.clock);
        let named = match &job {
            Some(job) => {
                StepLog::remove_dead(resources, folder, job);
                comm.gather(Vec::new())?;
                job.folder(ports, folder, &comm)?
            }
            None => None,
        };
        let kept = job.as_ref().filter(|_| named.is_some());
        let staging = StagingDir::create(ports, parent, comm, kept)?;
        if job.is_some() && !staging.is_of_job {
            let apart = if named.is_some() { parent } else { folder };
            resources.progress.keeps_nothing(apart);
        }
        let job = job.filter(|_| staging.is_of_job);
        let temporary = match named.filter(|_| staging.is_of_job) {
            Some(named) => named,
            None => WorkDir::create(resources.disk, folder, "temporary")?,
        };
        // A host has no matching columns of both sides; chunks lie on any host.
        let columns_match = options.layout == Layout::Stream || !options.turns_round();
        if !columns_match && staging.makers.iter().any(|maker| *maker != 0) {
            return Err(IngestError::NotShared {
                folder: parent.to_path_buf(),
                option: "--reverse",
            });
        }
        let mut log = None;
        if let (Some(job), Some(every)) = (job, options.keep_every) {
            let folders = (temporary.path(), &*staging.path);
            let job = job.text(&staging.makers);
            let (opened, is_new) = StepLog::open(resources, folders, job, every)?;
            // In this order: records without their files are invalid, and after a kill any import removes directories without either.
            if is_new {
                staging.clear()?;
            }
            comm.gather(Vec::new())?;
            if is_new {
                opened.supersede()?;
            }
            // A rank writes its job record after all ranks have removed the files of other imports.
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

    /// Keeps the directories for the next import if there is a checkpoint; returns true if so.
    ///
    /// `made` is the result of the import: a checkpoint that turned out to be damaged is removed.
    pub(crate) fn keep_checkpoint(&self, made: &Result<(), IngestError>) -> bool {
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
        // Without a record, the mark goes too.
        if is_of_what_was_kept || !log.has_any() {
            // What cannot be removed is met again.
            let _ = log.remove_all_records();
        }
        let has_any = log.has_any();
        self.temporary.keep_on_drop(has_any);
        self.staging.stay(has_any || log.have_others());
        has_any
    }

    /// Renames the graph to its final name and removes all else.
    ///
    /// `taken` returns the error to report if the final name exists.
    pub(crate) fn end(
        self,
        output: &Path,
        taken: impl FnOnce() -> Result<Option<IngestError>, IngestError>,
    ) -> Result<(), IngestError> {
        if let Some(log) = &self.log {
            log.end();
        }
        self.staging.rename(output, taken)?;
        self.temporary.keep_on_drop(false);
        if let Some(log) = &self.log {
            // If the process is killed here, the next import removes the rest; the graph is complete in any case.
            let _ = log.remove_all_records();
        }
        Ok(())
    }
}
