//! What is kept of an import that does not come to its end, so that the next one of the same goes on with it.
//!
//! The temporary files and the graph so far are in folders that are named after the output. A step that has ended says in a *record*
//! what those after it have to know, once all it wrote is durable:
//!
//! ```text
//! job          which import it is
//! scanned      step 1 has ended: the edges in a form that is read fast, the ids that occur
//! indexed      step 2 has ended: the edges, how their ends become indices, what was counted
//! distributed  step 4 has ended: the buckets of arcs
//! columns-N    column file N is complete, and others with it; reverse-N: of the transposed graph
//! ended        the graph is complete, and gets its name
//! ```
//!
//! A record begins with the files that it tells of and their lengths: without these it is none. Whatever no record tells of is of a step
//! that did not end, and goes before work goes on. Ranks go on from the last step that all of them have ended.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use graphmill_graph::{Side, common_files};
use graphmill_raw::{Mistake, lock};
use graphmill_storage::{
    ByteFile, Disk, FileAside, HOLD_ATTEMPTS, HOLD_PAUSE, Hold, Holding, Open, Owner, RecordReader,
    RecordWriter, StorageError, is_broken, is_missing, is_this_machine, machine_id,
    remove_dir_but_last, unheld,
};

use super::job::{JOB_FILE, JobIdentity};
use crate::error::IngestError;
use crate::options::Machine;

/// What records begin with, and their version.
const MAGIC: &[u8; 8] = b"GMSTEP\0\x02";
/// Bytes of a record on their way.
const CHUNK_BYTES: usize = 64 << 10;
/// The record that says which import it is.
const JOB: &str = "job";
/// The record that says that the graph is complete: where it is not in its folder any more, it has its name.
const ENDED: &str = "ended";
/// Records of steps.
pub(crate) const SCANNED: &str = "scanned";
pub(crate) const INDEXED: &str = "indexed";
pub(crate) const DISTRIBUTED: &str = "distributed";
/// All of them, in their order.
pub(crate) const STEPS: [&str; 3] = [SCANNED, INDEXED, DISTRIBUTED];
/// How the names of those of column files begin.
const COLUMNS: &str = "columns-";
const REVERSE: &str = "reverse-";
/// How the names of marks begin.
const MARK: &str = ".kept-";
/// How the names of records end.
const ENDING: &str = "step";

/// Writes a record.
pub(crate) type StepWriter = RecordWriter<FileAside>;

/// What this rank has ended.
pub(crate) struct StepLog<'a> {
    machine: Machine<'a>,
    /// The folder of temporary files, with the records.
    temporary: PathBuf,
    /// The folder of the graph so far.
    graph: PathBuf,
    /// That of another import, where one had kept something here.
    former: PathBuf,
    /// Which import it is.
    job: String,
    /// The file that says there that this rank has ended a step: other ranks do not see its records.
    mark: PathBuf,
    /// The least time between two records.
    every: Duration,
    /// When the newest was written.
    newest: Mutex<Duration>,
    /// Whether another can be written.
    is_whole: AtomicBool,
}

/// The files that a record tells of.
pub(crate) struct StepFiles<'f> {
    /// Temporary ones, which are made durable.
    pub(crate) temporary: &'f [&'f Path],
    /// Those of the graph, which are durable but for their names.
    pub(crate) graph: &'f [PathBuf],
}

impl<'a> StepLog<'a> {
    /// Of the import that `job` says, with records in `temporary`, and whether it is new there: others may have left some. It makes its graph
    /// in `graph`.
    pub(crate) fn open(
        machine: Machine<'a>,
        (temporary, graph): (&Path, &Path),
        job: String,
        every: Duration,
    ) -> Result<(Self, bool), IngestError> {
        let mut log = StepLog {
            machine,
            temporary: temporary.to_path_buf(),
            graph: graph.to_path_buf(),
            former: PathBuf::new(),
            job,
            mark: graph.join(mark_of(temporary)),
            every,
            newest: Mutex::new(machine.clock.now()),
            is_whole: AtomicBool::new(true),
        };
        let there = log.read(JOB, PendingRecord::decode)?;
        let is_new = there
            .as_ref()
            .is_none_or(|there| there.job != log.job.as_bytes());
        if !is_new {
            // Whoever wrote the newest may have been killed before its name was durable, and what only those before it need goes now.
            machine.disk.sync_dir(&log.temporary)?;
            log.remove_records(&[ENDED])?;
        }
        if let Some(there) = there {
            if is_new {
                log.former = PathBuf::from(OsString::from_vec(there.graph.clone()));
            }
            // It may have been begun on another machine, which must not take it for one that nobody works at.
            let ours = machine_id(&**machine.disk, &log.temporary).into_bytes();
            if there.machine != ours {
                log.write_job(&PendingRecord {
                    machine: ours,
                    ..there
                });
            }
        }
        Ok((log, is_new))
    }

    /// Says which import it is, when nothing of another is left.
    pub(crate) fn begin(&self) {
        self.write_job(&PendingRecord {
            job: self.job.as_bytes().to_vec(),
            machine: machine_id(&**self.machine.disk, &self.temporary).into_bytes(),
            graph: std::path::absolute(&self.graph)
                .map(|path| path.into_os_string().into_vec())
                .unwrap_or_default(),
        });
    }

    fn write_job(&self, pending: &PendingRecord) {
        let none = StepFiles {
            temporary: &[],
            graph: &[],
        };
        self.write(JOB, &none, |out| pending.encode(out));
    }

    /// Says that the graph is complete, and gets its name now, where anything is kept.
    pub(crate) fn end(&self) {
        // Where nothing is kept the next import removes what is left anyway.
        if !self.is_whole.load(Relaxed) || !self.has_any() {
            return;
        }
        let none = StepFiles {
            temporary: &[],
            graph: &[],
        };
        self.write(ENDED, &none, |_| Ok(()));
    }

    /// Removes what killed imports of this machine have left in a folder where no rank had ended a step, or whose graph has got its name; and
    /// of ranks that `own` does not have any more. What cannot be removed is in nobody's way.
    pub(crate) fn remove_dead(machine: Machine<'a>, folder: &Path, own: &JobIdentity) {
        let disk = &**machine.disk;
        // One at a time, of all ranks and imports: they would take each other for processes that go on with what is left, and leave it there.
        let _turn = lock_dir(machine, folder);
        let is_beyond = |path: &Path| name_of(path).is_some_and(|name| own.is_beyond(name));
        let is_of_import = |path: &Path| name_of(path).and_then(JobIdentity::graphs_of).is_some();
        // Where only this machine can work in it, no record has to say that it did.
        let is_local_here = disk.is_local(folder);
        for (temporary, _hold) in unheld(disk, folder, is_of_import) {
            let log = StepLog {
                machine,
                temporary,
                graph: PathBuf::new(),
                former: PathBuf::new(),
                job: String::new(),
                mark: PathBuf::new(),
                every: Duration::MAX,
                newest: Mutex::default(),
                is_whole: AtomicBool::new(false),
            };
            let names = log.names();
            let nothing = names
                .as_ref()
                .is_ok_and(|names| !names.iter().any(is_of_step));
            let has_ended = names.is_ok_and(|names| names.iter().any(|name| name == ENDED));
            let pending = log.read(JOB, PendingRecord::decode).ok().flatten();
            let is_ours = match &pending {
                Some(pending) => std::str::from_utf8(&pending.machine)
                    .is_ok_and(|machine| is_this_machine(machine, disk, folder)),
                // Killed before it had begun.
                None => is_local_here,
            };
            if !is_ours {
                continue;
            }
            let is_of = |path: &Path| is_graph_of(path, &log.temporary);
            if pending.is_none() {
                for (graph, _hold) in unheld(disk, folder, is_of) {
                    // If it is empty.
                    let _ = disk.remove_dir(&graph);
                }
            }
            let graph = pending.map(|pending| pending.graph).unwrap_or_default();
            let graph = Path::new(OsStr::from_bytes(&graph));
            let is_named = has_ended && matches!(disk.exists(graph), Ok(false));
            let is_superseded = is_beyond(&log.temporary);
            if !nothing && !is_named && !is_superseded {
                continue;
            }
            // No other folder, whatever the record says.
            let is_its = is_of(graph);
            // Where it is apart, locks may reach fewer there.
            let is_beside = graph.parent() == std::path::absolute(folder).ok().as_deref();
            // Where a rank of `own` goes on in that folder, it removes what is not its.
            let is_taken = is_superseded && !is_beyond(graph);
            if is_its && !is_taken && disk.is_dir(graph).unwrap_or(false) {
                if !is_beside && !disk.is_local(graph) {
                    continue;
                }
                let Ok(Some(_hold)) = disk.hold(graph, Holding::Alone, Owner::Own) else {
                    // Other ranks work there.
                    continue;
                };
                // That of this rank may be older than its first record.
                let own = graph.join(mark_of(&log.temporary));
                if disk.remove_file(&own).is_ok() && disk.sync_dir(graph).is_err() {
                    continue;
                }
                // Else other ranks have ended steps, and it goes with what they have kept.
                if is_superseded || !has_marks(disk, graph) {
                    let _ = disk.remove_dir_all(graph);
                }
            }
            let is_job = |path: &Path| path.ends_with(JOB_FILE);
            let _ = remove_dir_but_last(disk, &log.temporary, is_job);
        }
    }

    /// Whether it is time for another record.
    pub(crate) fn is_due(&self) -> bool {
        let since = self.machine.clock.now().saturating_sub(*lock(&self.newest));
        self.is_whole.load(Relaxed) && since >= self.every
    }

    /// Writes a record with what `put` puts there, once the files that it tells of are durable. Where that fails, nothing more is kept, and
    /// that is told: the import itself may yet come to its end.
    pub(crate) fn write(
        &self,
        name: &str,
        files: &StepFiles<'_>,
        put: impl FnOnce(&mut StepWriter) -> io::Result<()>,
    ) {
        match self.try_write(name, files, put) {
            Ok(()) => *lock(&self.newest) = self.machine.clock.now(),
            Err(error) => {
                self.is_whole.store(false, Relaxed);
                self.machine.progress.keeps_no_more(&error);
            }
        }
    }

    fn try_write(
        &self,
        name: &str,
        files: &StepFiles<'_>,
        put: impl FnOnce(&mut StepWriter) -> io::Result<()>,
    ) -> Result<(), IngestError> {
        let disk = &**self.machine.disk;
        for path in files.temporary {
            if Mistake::StepNotSynced.is_planted() {
                break;
            }
            disk.sync(&disk.open(path, Open::Update)?)?;
        }
        let mut folders: Vec<&Path> = files
            .graph
            .iter()
            .filter_map(|path| path.parent())
            .collect();
        folders.push(&self.temporary);
        folders.dedup();
        // The folders' own names too.
        let above: Vec<&Path> = folders
            .iter()
            .filter_map(|folder| folder.parent())
            .collect();
        for folder in folders.into_iter().chain(above) {
            let here = Path::new(".");
            let is_here = folder.as_os_str().is_empty();
            disk.sync_dir(if is_here { here } else { folder })?;
        }
        if name != JOB && !disk.exists(&self.mark)? {
            disk.write_small(&self.mark, &[])?;
        }
        let path = self.path(name);
        let wrong = |source| at(&path, source);
        let file = FileAside::create(self.machine.disk, self.machine.budget, &path, CHUNK_BYTES)?;
        let mut out = RecordWriter::new(file, MAGIC).map_err(wrong)?;
        let files_of_record = files.temporary.iter().copied();
        let files_of_record = files_of_record.chain(files.graph.iter().map(PathBuf::as_path));
        out.number((files.temporary.len() + files.graph.len()) as u64)
            .map_err(wrong)?;
        for path in files_of_record {
            let bytes = disk.stamp(path)?.bytes;
            out.bytes(path.as_os_str().as_bytes())
                .and_then(|()| out.number(bytes))
                .map_err(wrong)?;
        }
        put(&mut out).map_err(wrong)?;
        out.finish().map_err(wrong)?.publish()?;
        Ok(())
    }

    /// What `take` makes of a record, if it is there, whole, and with its files. One that memory does not hold is none either.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        take: impl FnOnce(&mut RecordReader<'_>) -> io::Result<T>,
    ) -> Result<Option<T>, IngestError> {
        let path = self.path(name);
        let disk = self.machine.disk;
        if !disk.exists(&path)? {
            return Ok(None);
        }
        let file = ByteFile::open(disk, self.machine.budget, &path, CHUNK_BYTES)?;
        let read = || {
            let mut from = RecordReader::open(&file, MAGIC)?;
            for (path, bytes) in files_of_record(&mut from)? {
                let stamp = disk.stamp(&path);
                if !stamp.is_ok_and(|stamp| stamp.bytes == bytes) {
                    return Ok(None);
                }
            }
            let taken = take(&mut from)?;
            from.end()?;
            Ok(Some(taken))
        };
        match read() {
            Err(error) if is_broken(&error) || is_too_large(&error) => Ok(None),
            read => read.map_err(|source| at(&path, source)),
        }
    }

    /// Whether any step or column file may have been kept here: also where the disk does not say.
    pub(crate) fn has_any(&self) -> bool {
        let names = self.names();
        !names.is_ok_and(|names| !names.iter().any(is_of_step))
    }

    /// The same of any rank that works in the folder of the graph.
    pub(crate) fn have_others(&self) -> bool {
        has_marks(&**self.machine.disk, &self.graph)
    }

    /// Removes what another import had kept here, but for what says so: the folder in which it made its graph, where it is not this one's and
    /// nobody works there, and the records.
    pub(crate) fn supersede(&self) -> Result<(), IngestError> {
        let disk = &**self.machine.disk;
        // What cannot be removed is in nobody's way.
        if is_graph_of(&self.former, &self.temporary)
            && disk.is_local(&self.former)
            && let Ok(Some(_hold)) = disk.hold(&self.former, Holding::Alone, Owner::Own)
        {
            let _ = disk.remove_dir_all(&self.former);
        }
        self.remove_all_records()
    }

    /// Removes all records of steps, durably: nobody goes on with them any more. Which import it was stays known until another begins.
    pub(crate) fn remove_all_records(&self) -> Result<(), IngestError> {
        let disk = &**self.machine.disk;
        // First: without it the records still say themselves that they are there.
        if disk.exists(&self.mark)? {
            match disk.remove_file(&self.mark) {
                // Another machine has removed it just now.
                Err(error) if !is_missing(&error) => return Err(error.into()),
                _ => disk.sync_dir(&self.graph)?,
            }
        }
        let mut names = self.names()?;
        names.retain(|name| name != JOB);
        // As long as there are any of steps, it says that nobody needs them.
        names.sort_by_key(|name| name == ENDED);
        self.remove_records(&names)
    }

    /// Removes records, durably, so that nobody takes what is changed from then on for what they tell of.
    pub(crate) fn remove_records(&self, names: &[impl AsRef<str>]) -> Result<(), IngestError> {
        let disk = &**self.machine.disk;
        let mut any = false;
        for name in names {
            let path = self.path(name.as_ref());
            if disk.exists(&path)? {
                disk.remove_file(&path)?;
                any = true;
            }
        }
        if any {
            disk.sync_dir(&self.temporary)?;
        }
        Ok(())
    }

    /// Removes what no record tells of: temporary files, and of the graph those of `graph`.
    pub(crate) fn clean(&self, graph: Vec<PathBuf>) -> Result<(), IngestError> {
        let disk = &**self.machine.disk;
        let mut kept = Vec::new();
        for name in self.names()? {
            let path = self.path(&name);
            let file = ByteFile::open(self.machine.disk, self.machine.budget, &path, CHUNK_BYTES)?;
            let files = match RecordReader::open(&file, MAGIC)
                .and_then(|mut from| files_of_record(&mut from))
            {
                // It is none.
                Err(error) if is_broken(&error) => Vec::new(),
                files => files.map_err(|source| at(&path, source))?,
            };
            kept.push(path);
            kept.extend(files.into_iter().map(|(path, _)| path));
        }
        let there = disk.list(&self.temporary)?;
        for path in there.into_iter().chain(graph) {
            if !kept.contains(&path) {
                disk.remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// The names of all records.
    pub(crate) fn names(&self) -> Result<Vec<String>, IngestError> {
        let mut names = Vec::new();
        for path in self.machine.disk.list(&self.temporary)? {
            if path.extension() == Some(OsStr::new(ENDING)) {
                let name = path.file_stem().and_then(OsStr::to_str);
                names.extend(name.map(str::to_string));
            }
        }
        Ok(names)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.join(name).with_extension(ENDING)
    }
}

/// Whether a record is of a step.
fn is_of_step(name: &String) -> bool {
    name != JOB && name != ENDED
}

/// Whether a folder is, by its name, that of a graph of the imports that have these temporary files.
fn is_graph_of(graph: &Path, temporary: &Path) -> bool {
    let begins = name_of(temporary).and_then(JobIdentity::graphs_of);
    begins.is_some_and(|begins| name_of(graph).is_some_and(|name| name.starts_with(&begins)))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(OsStr::to_str)
}

/// A hold of the folder in which leftovers are, unless somebody has it for long or there are no locks: each leftover is held besides.
fn lock_dir(machine: Machine<'_>, folder: &Path) -> Option<Hold> {
    for attempt in 0..HOLD_ATTEMPTS {
        if attempt > 0 {
            machine.clock.wait(HOLD_PAUSE);
        }
        let hold = (machine.disk).hold(folder, Holding::Alone, Owner::Anybody);
        match hold {
            Ok(None) => {}
            held => return held.ok().flatten(),
        }
    }
    None
}

/// The name of the file that says that the rank has ended a step which has this folder of temporary files.
fn mark_of(temporary: &Path) -> String {
    let rank = name_of(temporary).and_then(|name| name.rsplit('-').next());
    format!("{MARK}{}", rank.unwrap_or_default())
}

/// Whether a file says that a rank has ended a step.
fn is_mark(path: &Path) -> bool {
    name_of(path).is_some_and(|name| name.starts_with(MARK))
}

/// Whether a rank has said in the folder of a graph that it has ended a step; also where the disk does not say.
fn has_marks(disk: &dyn Disk, graph: &Path) -> bool {
    let there = disk.list(graph);
    there.map_or(true, |there| there.iter().any(|path| is_mark(path)))
}

/// Removes these marks, once the graph is complete.
pub(crate) fn remove_marks(disk: &dyn Disk, graph: &Path) -> Result<(), IngestError> {
    let mut there = disk.list(graph)?;
    there.retain(|path| is_mark(path));
    there.iter().try_for_each(|path| disk.remove_file(path))?;
    Ok(disk.sync_dir(graph)?)
}

/// Files of a graph in the making that are no column files and no marks.
pub(crate) fn common_of(disk: &dyn Disk, graph: &Path) -> Result<Vec<PathBuf>, IngestError> {
    let names = common_files(disk, graph)?;
    let mut files: Vec<PathBuf> = names.iter().map(|name| graph.join(name)).collect();
    for path in disk.list(graph)? {
        let is_known = files.contains(&path) || is_mark(&path) || disk.is_dir(&path)?;
        if !is_known {
            files.push(path);
        }
    }
    Ok(files)
}

/// An import that has begun.
struct PendingRecord {
    /// Says which it is.
    job: Vec<u8>,
    /// Where it was begun: locks may not reach other machines.
    machine: Vec<u8>,
    /// The folder of the graph so far.
    graph: Vec<u8>,
}

impl PendingRecord {
    fn encode(&self, out: &mut StepWriter) -> io::Result<()> {
        [&self.job, &self.machine, &self.graph]
            .into_iter()
            .try_for_each(|bytes| out.bytes(bytes))
    }

    fn decode(from: &mut RecordReader<'_>) -> io::Result<Self> {
        Ok(PendingRecord {
            job: from.bytes()?,
            machine: from.bytes()?,
            graph: from.bytes()?,
        })
    }
}

/// The name of the record of some column files, the first of which this is.
pub(crate) fn of_files(side: Side, number: usize) -> String {
    match side {
        Side::Forward => format!("{COLUMNS}{number:05}"),
        Side::Reverse => format!("{REVERSE}{number:05}"),
    }
}

/// Whether a record is one of column files.
pub(crate) fn is_of_files(name: &str) -> bool {
    [COLUMNS, REVERSE]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// The files that a record tells of, with their lengths.
fn files_of_record(from: &mut RecordReader<'_>) -> io::Result<Vec<(PathBuf, u64)>> {
    let count = from.number()?;
    let one = |_| {
        let path = from.bytes()?;
        Ok((PathBuf::from(OsStr::from_bytes(&path)), from.number()?))
    };
    (0..count).map(one).collect()
}

/// The error of a record that cannot be written or read.
fn at(path: &Path, source: io::Error) -> IngestError {
    IngestError::Storage(StorageError::Path {
        action: "use",
        path: path.to_path_buf(),
        source,
    })
}

/// Whether there is too little memory for what a record has.
fn is_too_large(error: &io::Error) -> bool {
    let inner = error.get_ref();
    let inner = inner.and_then(|inner| inner.downcast_ref::<StorageError>());
    matches!(inner, Some(StorageError::Budget(_)))
}
