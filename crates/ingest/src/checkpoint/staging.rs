//! The directory in which a graph is made, and which becomes the graph when it is complete. Ranks that see the same disk work in one; where
//! hosts have disks of their own, each has a directory with the column files that its ranks write, and a copy of all else.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use graphmill_graph::remove_temporary;
use graphmill_storage::{Clock, DirLock, Disk, LockMode, Owner, WorkDir};

use super::job::JobIdentity;
use super::step_log::remove_marks;
use crate::comm::ImportCommunicator;
use crate::error::IngestError;

pub(crate) struct StagingDir<'a> {
    pub(crate) path: PathBuf,
    /// On the rank that made the directory.
    scratch: Option<WorkDir>,
    /// On the other ranks.
    hold: Option<DirLock>,
    /// True if the directory has its final name, or if another rank renames it.
    is_named: bool,
    /// True if the directory stays without its final name.
    stays: AtomicBool,
    /// True if the directory is the job's.
    pub(crate) is_of_job: bool,
    disk: Arc<dyn Disk>,
    /// The rank that made the directory in which each rank works.
    pub(crate) makers: Vec<usize>,
    comm: ImportCommunicator<'a>,
}

impl<'a> StagingDir<'a> {
    /// Opens the job's directory in `folder` with its checkpoint, or creates a new directory.
    ///
    /// It creates a new one if another process works in the job's directory, or if the file system cannot tell.
    pub(crate) fn create(
        (disk, clock): (&Arc<dyn Disk>, &dyn Clock),
        folder: &Path,
        comm: ImportCommunicator<'a>,
        job: Option<&JobIdentity>,
    ) -> Result<Self, IngestError> {
        let mut scratch = WorkDir::create(disk, folder, "import")?;
        let say = |scratch: &WorkDir| comm.gather(scratch.path().as_os_str().as_bytes().to_vec());
        let mut paths = say(&scratch)?;
        let path_of = |payload: &Vec<u8>| PathBuf::from(OsString::from_vec(payload.clone()));
        // The first rank whose directory this one sees: its own at the latest.
        let mut maker = comm.rank();
        for (rank, payload) in paths.iter().enumerate().take(comm.rank()) {
            if disk.exists(&path_of(payload))? {
                maker = rank;
                break;
            }
        }
        let makers = comm.all_gather_u64(maker as u64)?;
        let makers: Vec<usize> = makers.into_iter().map(|maker| maker as usize).collect();
        // Ranks of one disk follow each other, so that their columns do.
        let is_sound = |rank: usize| rank == 0 || [rank, makers[rank - 1]].contains(&makers[rank]);
        if !(0..comm.count()).all(is_sound) {
            return Err(IngestError::HalfShared {
                folder: folder.to_path_buf(),
            });
        }
        let mut is_of_job = false;
        if let Some(job) = job {
            let named = match maker == comm.rank() {
                true => job.staging((disk, clock), folder, maker)?,
                false => None,
            };
            is_of_job = comm.all_true(maker != comm.rank() || named.is_some())?;
            if let Some(named) = named.filter(|_| is_of_job) {
                scratch = named;
            }
            paths = say(&scratch)?;
        }
        let path = path_of(&paths[maker]);
        let hold = match maker == comm.rank() {
            true => None,
            false => disk.hold(&path, LockMode::Unlocked, Owner::Own)?,
        };
        Ok(StagingDir {
            path,
            scratch: (maker == comm.rank()).then_some(scratch),
            hold,
            is_named: false,
            stays: AtomicBool::new(is_of_job),
            is_of_job,
            disk: Arc::clone(disk),
            makers,
            comm,
        })
    }

    /// Removes all that is there.
    pub(crate) fn clear(&self) -> Result<(), IngestError> {
        if self.scratch.is_none() {
            return Ok(());
        }
        for path in self.disk.list(&self.path)? {
            match self.disk.is_dir(&path)? {
                true => self.disk.remove_dir_all(&path)?,
                false => self.disk.remove_file(&path)?,
            }
        }
        self.disk.sync_dir(&self.path)?;
        Ok(())
    }

    /// Sets whether the directory stays if it does not get its final name.
    pub(crate) fn stay(&self, stays: bool) {
        self.stays.store(stays, Relaxed);
        self.scratch
            .iter()
            .for_each(|scratch| scratch.keep_on_drop(stays));
    }

    /// Renames the directory to its final name, after all ranks have done their part.
    ///
    /// `taken` returns the error to report if the final name exists.
    pub(crate) fn rename(
        mut self,
        to: &Path,
        taken: impl FnOnce() -> Result<Option<IngestError>, IngestError>,
    ) -> Result<(), IngestError> {
        let is_maker = self.scratch.is_some();
        // From here on the maker owns the directory: another rank that ends meanwhile must not remove it during the rename.
        self.is_named = !is_maker;
        self.comm.gather(Vec::new())?;
        if let Some(scratch) = self.scratch.take() {
            remove_temporary(&*self.disk, &self.path)?;
            remove_marks(&*self.disk, &self.path)?;
            if let Err(error) = scratch.rename(to) {
                return Err(taken()?.unwrap_or(error.into()));
            }
            self.is_named = true;
        }
        // What has its name is whole, whatever becomes of the others.
        let result = self.comm.gather(Vec::new());
        match is_maker {
            true => Ok(()),
            false => result.map(drop),
        }
    }
}

impl Drop for StagingDir<'_> {
    fn drop(&mut self) {
        // It may have its name by now, and another that of this one.
        self.hold = None;
        // The last rank to end removes the files of ranks that ended before.
        if !self.is_named && !self.stays.load(Relaxed) && self.comm.count() > 1 {
            let _ = self.disk.remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use graphmill_fabric::{Fabric, local};
    use graphmill_storage::{CancelToken, SimDisk, SystemClock};

    use super::*;

    #[test]
    fn staging_directory_outlives_a_finished_rank() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let (clock, stop, asked) = (SystemClock::new(), CancelToken::new(), CancelToken::new());
        let to = Path::new("/graph");
        let fabrics = local(2, 1);
        let [first, second] = [(&fabrics[0], &stop), (&fabrics[1], &asked)]
            .map(|(fabric, stop)| ImportCommunicator::new(Some(fabric as &dyn Fabric), stop));
        std::thread::scope(|scope| {
            let create = |comm| StagingDir::create((&disk, &clock), Path::new("/"), comm, None);
            let other = scope.spawn(move || create(second).unwrap());
            let made = create(first).unwrap();
            let other = other.join().unwrap();
            let file = made.path.join("graph.json");
            disk.write_small(&file, b"whole").unwrap();
            // It has heard that all have done their part, for all that others know.
            asked.request();
            assert!(matches!(
                other.rename(to, || Ok(None)),
                Err(IngestError::Stopped)
            ));
            assert!(disk.exists(&file).unwrap());
            fabrics[1].fail("interrupted");
            // Nor has it its name where not all have.
            assert!(made.rename(to, || Ok(None)).is_err());
            assert!(disk.list(Path::new("/")).unwrap().is_empty());
        });
    }
}
