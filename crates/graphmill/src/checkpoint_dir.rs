//! The directory of a run's checkpoints.
//!
//! Each rank has a directory of its own there, with the pages of its rows and its checkpoints. Once there is a checkpoint, a file describes
//! the run (`run.json`). Nothing is durable before, so that a run without checkpoints waits for no disk. The run locks the directory and
//! records its machine there (`at-...`). A resumed run must be the same run. When the run finishes, every rank records that there (`done`).
//! When all have, each deletes its directory: what a rank leaves that is killed meanwhile belongs to a finished run.
//!
//! Without `--checkpoint-dir` the directory is among the temporary files. Its name comes from the run, so that the same run finds it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_engine::{self as engine, Engine, job};
use graphmill_graph::StoredGraph;
use graphmill_raw::failpoint;
use graphmill_storage::{
    Clock, DirLock, Disk, HOLD_ATTEMPTS, HOLD_PAUSE, LockMode, Open, Owner, StorageError,
    final_name, host_id, is_missing, is_this_host, locks_unsupported, unlocked_dirs,
};

use crate::config::CheckpointConfig;
use crate::error::Error;
use crate::hash::Fnv1a;
use crate::machine::resources::Machine;
use crate::plan::Plan;
use crate::progress::{Progress, ProgressFn};
use crate::run_identity::RunIdentity;

const NAME: &str = "run.json";
/// Prefix of the file that records which machine locks the directory: locks may not reach others.
const AT: &str = "at-";
/// The file that records that the run finished.
const DONE: &str = "done";
/// Prefix of the names of unnamed directories.
const OWN_FOLDER: &str = ".graphmill-checkpoints-";
/// Prefix of the names of checkpoints up to format 3, which this program refuses.
const OLD_PREFIX: &str = "version-";
/// Bytes of what says which run it is, at most.
const NAME_BYTES_MAX: u64 = 1 << 20;

/// The directory of this rank, locked until the run ends.
///
/// It is deleted then, unless it holds a checkpoint to resume from.
pub(crate) struct CheckpointDir {
    disk: Arc<dyn Disk>,
    /// That of all ranks.
    base: PathBuf,
    _hold: DirLock,
    pub(crate) is_named: bool,
    /// True if the user asked to resume.
    is_asked: bool,
    /// Which run it is.
    identity: RunIdentity,
    /// The checkpoint settings of the engine.
    pub(crate) asked: engine::CheckpointPolicy,
}

impl Plan {
    /// Opens the directory in which this rank writes checkpoints and resumes the same run from them.
    ///
    /// Temporary files go to `tmp`.
    pub(crate) fn checkpoints(
        &self,
        machine: &Machine,
        graph: &StoredGraph,
        tmp: &Path,
        watcher: &ProgressFn,
    ) -> Result<Option<CheckpointDir>, Error> {
        if self.config.checkpoints.keep == 0 {
            return Ok(None);
        }
        let engine = &self.config.engine;
        let mut options = self.identifying_options(machine)?;
        if let Some(program) = &self.config.program {
            options.extend(program.identity.clone());
        }
        let identity = RunIdentity {
            options,
            trials: self.config.trials,
            ..RunIdentity::new(self.entry.name, graph, machine, engine)
        };
        CheckpointDir::open(
            machine,
            graph,
            identity,
            &self.config.checkpoints,
            tmp,
            watcher,
        )
    }
}

impl CheckpointDir {
    /// Opens the directory in which this rank writes the checkpoints of a run.
    ///
    /// `None` if there are to be none, or if they cannot be written and the directory is not named.
    pub(crate) fn open(
        machine: &Machine,
        graph: &StoredGraph,
        identity: RunIdentity,
        asked: &CheckpointConfig,
        tmp: &Path,
        watcher: &ProgressFn,
    ) -> Result<Option<CheckpointDir>, Error> {
        if asked.keep == 0 {
            return Ok(None);
        }
        let text = serde_json::to_vec_pretty(&identity).map_err(|error| Error::Checkpoints {
            path: PathBuf::from(NAME),
            what: error.to_string(),
            todo: "this is a bug, please report it",
        })?;
        let base = asked.folder.clone().unwrap_or_else(|| {
            let mut hash = Fnv1a::new();
            hash.add(format!("{identity:?}").as_bytes());
            // Other users may have no right to that directory.
            hash.add(&user());
            tmp.join(format!("{OWN_FOLDER}{}", hash.text()))
        });
        let folder = base.join(format!("rank-{:05}", machine.rank()));
        let disk = Arc::clone(machine.disk());
        let is_named = asked.folder.is_some();
        if is_named {
            check_own(&*disk, &folder)?;
        } else {
            if machine.rank() == 0 {
                remove_empty(&*disk, tmp, &base);
            }
            machine.meet()?;
        }
        let made = match hold(&*disk, &**machine.clock(), &folder, is_named) {
            // The user did not ask for checkpoints, so their failure does not fail the run.
            Err(error) if !is_named => {
                if let StorageError::NotOwn { .. } = error {
                    watcher(&Progress::Warning(&error.to_string()));
                }
                None
            }
            made => made?,
        };
        let is_held = made.is_some();
        let versions = made.map(|hold| CheckpointDir {
            _hold: hold,
            is_named,
            is_asked: asked.resume,
            identity,
            asked: engine::CheckpointPolicy {
                folder,
                description: (NAME, text),
                job: graph.graph_id(),
                every: asked.every,
                keep: asked.keep,
                resume: asked.resume || !is_named,
            },
            disk,
            base: base.clone(),
        });
        // One that all can have, or none.
        let held = machine.gather(&[u8::from(is_held)])?;
        let Some(versions) = versions.filter(|_| held.iter().all(|held| *held == [1])) else {
            if is_named {
                return Err(Error::CheckpointsHeld { path: base });
            }
            watcher(&Progress::Warning(&format!(
                "cannot write or resume checkpoints in {}: the directory cannot be written, another run uses it, or its file system has no locks; name a directory of this run alone (--checkpoint-dir)",
                base.display()
            )));
            return Ok(None);
        };
        versions.clear_done(machine)?;
        versions.check(asked.resume)?;
        Ok(Some(versions))
    }
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// The machine on which a directory is held, where a file in it says so.
fn machine_of(mark: &Path) -> Option<&str> {
    name_of(mark)?.strip_prefix(AT)
}

/// Says on which machine a directory is held.
fn mark(disk: &dyn Disk, folder: &Path) -> Result<(), StorageError> {
    let ours = folder.join(format!("{AT}{}", host_id(disk, folder)));
    let there = disk.list(folder)?;
    if !there.contains(&ours) {
        disk.open(&ours, Open::Create)?;
    }
    let is_other = |path: &&PathBuf| machine_of(path).is_some() && **path != ours;
    let mut others = there.iter().filter(is_other);
    others.try_for_each(|mark| disk.remove_file(mark))
}

/// Whether a name is one that this module or the engine gives a file in the directory of a rank.
fn is_own(path: &Path) -> bool {
    let is_said = name_of(path).is_some_and(|name| [NAME, DONE].contains(&final_name(name)));
    is_said || machine_of(path).is_some() || engine::is_checkpoint_dir(path) || is_old(path)
}

/// True if a file has the name of a checkpoint of an earlier format.
fn is_old(path: &Path) -> bool {
    let number = name_of(path).and_then(|name| final_name(name).strip_prefix(OLD_PREFIX));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Rejects the directory of a rank that holds anything else: the run deletes its contents.
fn check_own(disk: &dyn Disk, folder: &Path) -> Result<(), Error> {
    let there = match disk.list(folder) {
        Err(error) if is_missing(&error) => Vec::new(),
        there => there?,
    };
    // What a network file system calls a file that was removed and is open somewhere goes by itself.
    let is_removed = |path: &Path| name_of(path).is_some_and(|name| name.starts_with(".nfs"));
    for path in there {
        if !is_removed(&path) && (!is_own(&path) || disk.is_dir(&path)?) {
            return Err(Error::Checkpoints {
                path,
                what: "it is a file of no run, and lies where checkpoints would be".to_string(),
                todo: "move it away, or name another directory (--checkpoint-dir)",
            });
        }
    }
    Ok(())
}

/// Deletes the directory of a rank, unless it holds anything else.
///
/// It deletes the machine's file last, so that a reader of the rest knows its machine.
fn remove(disk: &dyn Disk, folder: &Path) -> Result<(), StorageError> {
    let mut own = disk.list(folder)?;
    own.retain(|path| is_own(path));
    own.sort_by_key(|path| machine_of(path).is_some());
    own.iter().try_for_each(|path| disk.remove_file(path))?;
    disk.remove_dir(folder)
}

/// Creates, locks and marks a directory; `None` if another run has locked it.
///
/// Fails on an unnamed directory without locks: another run of the same kind would use it too.
fn hold(
    disk: &dyn Disk,
    clock: &dyn Clock,
    folder: &Path,
    is_named: bool,
) -> Result<Option<DirLock>, StorageError> {
    let base = folder.parent().unwrap_or(folder);
    let attempt = || {
        make(disk, folder)?;
        // One that somebody named may be anybody's, and a link.
        let owner = if is_named { Owner::Anybody } else { Owner::Own };
        let Some(above) = disk.hold(base, LockMode::Unlocked, owner)? else {
            return Ok(None);
        };
        let held = match disk.hold(folder, LockMode::Alone, Owner::Own) {
            Err(error) if is_named && locks_unsupported(&error) => {
                disk.hold(folder, LockMode::Unlocked, Owner::Own)?
            }
            held => held?,
        };
        if held.is_some() {
            mark(disk, folder)?;
        }
        Ok(held.map(|held| Box::new((held, above)) as DirLock))
    };
    for _ in 1..HOLD_ATTEMPTS {
        match attempt() {
            Ok(Some(hold)) => return Ok(Some(hold)),
            Err(error) if locks_unsupported(&error) => {
                // Files in it stay.
                let _ = disk.remove_dir(folder);
                let _ = disk.remove_dir(base);
                return Err(error);
            }
            Err(error @ StorageError::NotOwn { .. }) => return Err(error),
            Ok(None) | Err(_) => {}
        }
        // Another process has locked it for a check, or removed its parent.
        clock.wait(HOLD_PAUSE);
    }
    attempt()
}

/// Makes the directory of a rank, and that of all: not durably, unless there are more to make.
fn make(disk: &dyn Disk, folder: &Path) -> Result<(), StorageError> {
    let base = folder.parent().unwrap_or(folder);
    if let Some(above) = base.parent().filter(|above| !above.as_os_str().is_empty()) {
        disk.create_dir_all(above)?;
    }
    disk.create_dir(base)?;
    disk.create_dir(folder)
}

/// The user that this process is of.
fn user() -> Vec<u8> {
    let facts = std::fs::metadata("/proc/self");
    facts.map_or(Vec::new(), |facts| facts.uid().to_le_bytes().to_vec())
}

/// True if a directory is unnamed.
fn is_unnamed(path: &Path) -> bool {
    name_of(path).is_some_and(|name| name.starts_with(OWN_FOLDER))
}

/// Deletes unnamed directories of killed runs of this machine that wrote no checkpoint.
///
/// It skips this run's own. A directory that it cannot delete does no harm.
fn remove_empty(disk: &dyn Disk, tmp: &Path, own: &Path) {
    let is_other = |path: &&PathBuf| is_unnamed(path) && **path != own;
    let there = disk.list(tmp).unwrap_or_default();
    for base in there.iter().filter(is_other) {
        let Ok(Some(_base)) = disk.hold(base, LockMode::Unlocked, Owner::Own) else {
            continue;
        };
        for (folder, _hold) in unlocked_dirs(disk, base, |_| true) {
            let there = disk.list(&folder).unwrap_or_default();
            let mut machines = there.iter().filter_map(|path| machine_of(path)).peekable();
            // Without working locks, another machine may lock it just now; it also leaves its file there.
            let is_ours =
                machines.peek().is_some() && machines.all(|id| is_this_host(id, disk, base));
            match is_ours && !there.iter().any(|path| engine::is_checkpoint_file(path)) {
                true => drop(remove(disk, &folder)),
                // One that does not say where it is held may be on its way, and is made again; or of a machine that no lock reaches.
                false => drop(disk.remove_dir(&folder)),
            }
        }
        let _ = disk.remove_dir(base);
    }
}

impl CheckpointDir {
    /// Deletes the checkpoints of a finished run.
    ///
    /// If the user did not ask for checkpoints, a failed deletion is only a warning.
    pub(crate) fn end(
        &self,
        machine: &Machine,
        engine: &mut Engine,
        watcher: &ProgressFn,
    ) -> Result<(), Error> {
        let said = match job::has_published(engine) {
            true => self.say_done(machine)?,
            false => Ok(()),
        };
        match said.and_then(|()| Ok(job::finish_checkpoints(engine)?)) {
            Err(error) if !self.is_named => {
                watcher(&Progress::Warning(&format!(
                    "cannot delete the checkpoints of the finished run in {}: {error}",
                    self.base.display()
                )));
                Ok(())
            }
            ended => ended,
        }
    }

    /// Records on all ranks that the run finished; its checkpoints may go unless one rank failed to.
    fn say_done(&self, machine: &Machine) -> Result<Result<(), Error>, Error> {
        failpoint!(EndNotSaid => return Ok(Ok(())));
        if self.identity.ranks == 1 {
            // No other rank has checkpoints that would be missed.
            return Ok(Ok(()));
        }
        let said = self.disk.write_small(&self.asked.folder.join(DONE), &[]);
        let all = machine.gather(&[u8::from(said.is_ok())])?;
        Ok(match said {
            Ok(()) if all.iter().any(|said| *said != [1]) => Err(Error::Checkpoints {
                path: self.base.clone(),
                what: "another rank cannot write there".to_string(),
                todo: "the same command with --resume removes the checkpoints there",
            }),
            said => said.map_err(Error::from),
        })
    }

    /// Deletes the rest of a finished run, if any rank recorded that it finished.
    fn clear_done(&self, machine: &Machine) -> Result<(), Error> {
        let is_done = self.disk.exists(&self.asked.folder.join(DONE))?;
        let said = machine.gather(&[u8::from(is_done)])?;
        if said.iter().all(|said| *said == [0]) {
            return Ok(());
        }
        self.say_done(machine)??;
        let mut files = self.disk.list(&self.asked.folder)?;
        files.retain(|path| !path.ends_with(DONE) && machine_of(path).is_none());
        for path in files {
            self.disk.remove_file(&path)?;
        }
        self.disk.sync_dir(&self.asked.folder)?;
        // Until none has anything, all know that it is nothing.
        machine.meet()?;
        Ok(self.disk.remove_file(&self.asked.folder.join(DONE))?)
    }

    /// Rejects the checkpoints of another run.
    fn check(&self, resume: bool) -> Result<(), Error> {
        // The name of an unnamed directory identifies the run too.
        if !self.is_named || !self.has_any()? {
            return Ok(());
        }
        let wrong = |what, todo| Error::Checkpoints {
            path: self.base.clone(),
            what,
            todo,
        };
        let name = self.asked.folder.join(NAME);
        let there = match self.disk.read_small(&name, NAME_BYTES_MAX) {
            Err(error) if is_missing(&error) => Vec::new(),
            there => there?,
        };
        let there: RunIdentity = serde_json::from_slice(&there).map_err(|error| {
            let name = name.display();
            wrong(
                format!("{name} does not name the run of the checkpoints there ({error})"),
                "remove the directory to start over, or name another (--checkpoint-dir)",
            )
        })?;
        match self.identity.other(&there) {
            _ if !resume => Err(wrong(
                format!(
                    "there are checkpoints of a run of {} already",
                    there.algorithm
                ),
                "give --resume to resume that run, or name another directory (--checkpoint-dir)",
            )),
            Some(what) => Err(wrong(
                format!("the run there has {what}"),
                "ask for the same to resume it, or name another directory (--checkpoint-dir)",
            )),
            None => Ok(()),
        }
    }

    /// True if there is a checkpoint, also one of an earlier format.
    fn has_any(&self) -> Result<bool, Error> {
        let there = self.disk.list(&self.asked.folder);
        failpoint!(FailedListIgnored: there = there.or(Ok(Vec::new())));
        let is_any = |path: &PathBuf| engine::is_checkpoint_file(path) || is_old(path);
        Ok(there?.iter().any(is_any))
    }

    /// Lists unnamed directories with checkpoints of other runs, and how those runs differ.
    fn others(&self) -> String {
        let beside = self.base.parent().filter(|_| !self.is_named);
        let beside = beside.and_then(|tmp| self.disk.list(tmp).ok());
        let mut others = String::new();
        for other in beside.unwrap_or_default() {
            let folder = other.join(self.asked.folder.file_name().unwrap_or_default());
            if !is_unnamed(&other) || other == self.base {
                continue;
            }
            let Ok(Some(_base)) = self.disk.hold(&other, LockMode::Unlocked, Owner::Own) else {
                continue;
            };
            let said = self.disk.read_small(&folder.join(NAME), NAME_BYTES_MAX);
            let there = said.ok().and_then(|of| serde_json::from_slice(&of).ok());
            if let Some(what) = there.and_then(|there| self.identity.other(&there)) {
                others += &format!("; the run in {} has {what}", other.display());
            }
        }
        others
    }

    /// Reports the checkpoint from which the run resumes.
    pub(crate) fn report_resumed(
        &self,
        resumed: Option<&engine::ResumeInfo>,
        watcher: &ProgressFn,
    ) {
        let base = self.base.display();
        let Some(resumed) = resumed else {
            if self.is_asked {
                watcher(&Progress::Note(&format!(
                    "cannot resume from {base}: there is no checkpoint; the run starts over{}",
                    self.others()
                )));
            }
            return;
        };
        for (rank, path) in &resumed.damaged {
            let rank = match self.identity.ranks == 1 {
                true => String::new(),
                false => format!(" of rank {rank}"),
            };
            watcher(&Progress::Warning(&format!(
                "cannot resume from {}{rank}: it is not what was written; the run resumes from the checkpoint before",
                path.display(),
            )));
        }
        watcher(&Progress::Note(&format!(
            "resuming the interrupted run, after {} calls ({base})",
            resumed.calls
        )));
    }

    /// Returns an error of the run that says how to resume, if there is a checkpoint.
    pub(crate) fn left(&self, error: Error, watcher: &ProgressFn) -> Error {
        if error.is_usage() || error.is_of_checkpoints() || !matches!(self.has_any(), Ok(true)) {
            return error;
        }
        let (folder, needs_resume) = (self.base.clone(), self.is_named);
        if error.is_stopped() {
            return Error::Interrupted {
                folder,
                needs_resume,
            };
        }
        let option = if needs_resume { " with --resume" } else { "" };
        let text = format!(
            "checkpoints are in {}; the same command{option} resumes",
            folder.display()
        );
        watcher(&Progress::Note(&text));
        error
    }
}

impl Drop for CheckpointDir {
    fn drop(&mut self) {
        // If the disk cannot list the directory, it stays.
        if let Ok(false) = self.has_any() {
            // A leftover does no harm: it names its run and has no checkpoint.
            let _ = remove(&*self.disk, &self.asked.folder);
            // The last rank finds it empty; other files stay.
            let _ = self.disk.remove_dir(&self.base);
        }
    }
}

#[cfg(test)]
mod tests {
    use graphmill_storage::SimDisk;

    use super::*;

    #[test]
    fn checkpoint_dir_of_another_machine_stays() -> Result<(), StorageError> {
        let disk = SimDisk::new(1);
        let (tmp, own) = (Path::new("/tmp"), Path::new("/tmp/own"));
        let base = tmp.join(format!("{OWN_FOLDER}0"));
        for (marks, stays) in [
            (vec![host_id(&disk, &base)], false),
            (vec![host_id(&disk, &base), "elsewhere".to_string()], true),
            (vec!["elsewhere".to_string()], true),
            (vec![], false),
        ] {
            let folder = base.join("rank-00000");
            disk.create_dir_all(&folder)?;
            for machine in &marks {
                disk.open(&folder.join(format!("{AT}{machine}")), Open::Create)?;
            }
            remove_empty(&disk, tmp, own);
            assert_eq!(disk.exists(&base)?, stays, "{marks:?}");
            if stays {
                disk.remove_dir_all(&base)?;
            }
        }
        Ok(())
    }
}
