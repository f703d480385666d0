//! The checkpoint of an interrupted import: the next import of the same input resumes from it.
//!
//! The temporary files and the partial graph lie in directories that are named after the output. After a step, each rank writes
//! a *record* with all that later steps need, once the files of the step are durable:
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
//! A record begins with the names and lengths of its files; without these files it is invalid. A file that no record names
//! belongs to a step that did not end, and is deleted before the import resumes. Ranks resume from the last step that all of them
//! have ended.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use graphmill_graph::{FileSide, common_files};
use graphmill_raw::{failpoint, lock};
use graphmill_storage::{
    AtomicFile, DirLock, Disk, HOLD_ATTEMPTS, HOLD_PAUSE, LockMode, Open, Owner, RandomAccessFile,
    RecordReader, RecordWriter, StorageError, host_id, is_corrupt, is_missing, is_this_host,
    remove_dir_keeping_last, unlocked_dirs,
};

use super::job::{JOB_FILE, JobIdentity};
use crate::error::IngestError;
use crate::options::ImportResources;

/// The magic bytes and the version of a record.
const MAGIC: &[u8; 8] = b"GMSTEP\0\x02";
/// Bytes of a record on their way.
const CHUNK_BYTES: usize = 64 << 10;
/// The record of the job's identity.
const JOB: &str = "job";
/// The record of a complete graph: if the graph's directory is missing, it has its final name.
const ENDED: &str = "ended";
/// Records of steps.
pub(crate) const SCANNED: &str = "scanned";
pub(crate) const INDEXED: &str = "indexed";
pub(crate) const DISTRIBUTED: &str = "distributed";
/// All of them, in their order.
pub(crate) const STEPS: [&str; 3] = [SCANNED, INDEXED, DISTRIBUTED];
/// The prefixes of records of column files.
const COLUMNS: &str = "columns-";
const REVERSE: &str = "reverse-";
/// The prefix of the names of marks.
const MARK: &str = ".kept-";
/// The extension of the names of records.
const ENDING: &str = "step";

/// Writes a record.
pub(crate) type StepWriter = RecordWriter<AtomicFile>;

/// The log of the steps that this rank has ended.
pub(crate) struct StepLog<'a> {
    resources: ImportResources<'a>,
    /// The directory of temporary files, with the records.
    temporary: PathBuf,
    /// The directory of the graph so far.
    graph: PathBuf,
    /// The graph directory of another import that left its records here.
    former: PathBuf,
    /// The identity of the import.
    job: String,
    /// The mark of this rank in the graph's directory: other ranks do not see its records.
    mark: PathBuf,
    /// The least time between two records.
    every: Duration,
    /// The time of the newest record.
    newest: Mutex<Duration>,
    /// True if further records can be written.
    is_whole: AtomicBool,
}

/// The files that a record names.
#[derive(Default)]
pub(crate) struct StepFiles<'f> {
    /// Temporary ones, which are made durable.
    pub(crate) temporary: &'f [&'f Path],
    /// Files of the graph, which are durable except for their names.
    pub(crate) graph: &'f [PathBuf],
}

impl<'a> StepLog<'a> {
    /// Opens the log of the import `job` in `temporary`; returns it and whether the job is new there.
    ///
    /// Another import may have left its records there. The import makes its graph in `graph`.
    pub(crate) fn open(
        resources: ImportResources<'a>,
        (temporary, graph): (&Path, &Path),
        job: String,
        every: Duration,
    ) -> Result<(Self, bool), IngestError> {
        let mut log = StepLog {
            resources,
            temporary: temporary.to_path_buf(),
            graph: graph.to_path_buf(),
            former: PathBuf::new(),
            job,
            mark: graph.join(mark_name(temporary)),
            every,
            newest: Mutex::new(resources.clock.now()),
            is_whole: AtomicBool::new(true),
        };
        let there = log.read(JOB, PendingRecord::decode)?;
        let is_other = |there: &PendingRecord| there.job != log.job.as_bytes();
        let is_new = there.as_ref().is_none_or(is_other);
        if !is_new {
            // A kill may have come before the newest record's name was durable, and the next line removes files that only older records need.
            resources.disk.sync_dir(&log.temporary)?;
            log.remove_records(&[ENDED])?;
        }
        if let Some(there) = there {
            if is_new {
                log.former = PathBuf::from(OsString::from_vec(there.graph.clone()));
            }
            // The import may have begun on another machine, which must not take it for a dead one.
            let ours = host_id(&**resources.disk, &log.temporary).into_bytes();
            if there.resources != ours {
                log.write_job(&PendingRecord {
                    resources: ours,
                    ..there
                });
            }
        }
        Ok((log, is_new))
    }

    /// Writes the job record, after the files of other imports are gone.
    pub(crate) fn begin(&self) {
        self.write_job(&PendingRecord {
            job: self.job.as_bytes().to_vec(),
            resources: host_id(&**self.resources.disk, &self.temporary).into_bytes(),
            graph: std::path::absolute(&self.graph)
                .map(|path| path.into_os_string().into_vec())
                .unwrap_or_default(),
        });
    }

    fn write_job(&self, pending: &PendingRecord) {
        self.write(JOB, &StepFiles::default(), |out| pending.encode(out));
    }

    /// Writes the record of a complete graph, before the rename, if there is a checkpoint.
    pub(crate) fn end(&self) {
        // Without a checkpoint the next import removes the leftovers anyway.
        if self.is_whole.load(Relaxed) && self.has_any() {
            self.write(ENDED, &StepFiles::default(), |_| Ok(()));
        }
    }

    /// Removes the leftovers of killed imports of this machine from `folder`.
    ///
    /// An import's leftovers go if no rank had ended a step, if its graph has its final name, or if they belong to ranks that `own`
    /// does not have. A leftover that cannot be removed does no harm.
    pub(crate) fn remove_dead(resources: ImportResources<'a>, folder: &Path, own: &JobIdentity) {
        let disk = &**resources.disk;
        // One rank of one import at a time: two would take each other for imports that resume, and leave the leftovers in place.
        let _turn = lock_dir(resources, folder);
        let is_beyond = |path: &Path| name_of(path).is_some_and(|name| own.is_beyond(name));
        let is_of_import = |path: &Path| name_of(path).and_then(JobIdentity::graphs_of).is_some();
        // Where only this machine can work in it, no record has to say that it did.
        let is_local_here = disk.is_local(folder);
        for (temporary, _hold) in unlocked_dirs(disk, folder, is_of_import) {
            let log = StepLog {
                resources,
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
                .is_ok_and(|names| !names.iter().any(is_step_record));
            let has_ended = names.is_ok_and(|names| names.iter().any(|name| name == ENDED));
            let pending = log.read(JOB, PendingRecord::decode).ok().flatten();
            let is_ours = match &pending {
                Some(pending) => std::str::from_utf8(&pending.resources)
                    .is_ok_and(|resources| is_this_host(resources, disk, folder)),
                // Killed before it had begun.
                None => is_local_here,
            };
            if !is_ours {
                continue;
            }
            let is_of = |path: &Path| is_graph_dir(path, &log.temporary);
            if pending.is_none() {
                for (graph, _hold) in unlocked_dirs(disk, folder, is_of) {
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
            // Never remove another directory, even if the record names one.
            let is_its = is_of(graph);
            // Where it is apart, locks may reach fewer there.
            let is_beside = graph.parent() == std::path::absolute(folder).ok().as_deref();
            // A rank of `own` that resumes in that directory removes all that is not its own.
            let is_taken = is_superseded && !is_beyond(graph);
            if is_its && !is_taken && disk.is_dir(graph).unwrap_or(false) {
                if !is_beside && !disk.is_local(graph) {
                    continue;
                }
                let Ok(Some(_hold)) = disk.hold(graph, LockMode::Alone, Owner::Own) else {
                    // Other ranks work there.
                    continue;
                };
                // That of this rank may be older than its first record.
                let own = graph.join(mark_name(&log.temporary));
                if disk.remove_file(&own).is_ok() && disk.sync_dir(graph).is_err() {
                    continue;
                }
                // Else other ranks have ended steps, and the graph goes with their records.
                if is_superseded || !has_marks(disk, graph) {
                    let _ = disk.remove_dir_all(graph);
                }
            }
            let is_job = |path: &Path| path.ends_with(JOB_FILE);
            let _ = remove_dir_keeping_last(disk, &log.temporary, is_job);
        }
    }

    /// True if the next record is due.
    pub(crate) fn is_due(&self) -> bool {
        let since = self
            .resources
            .clock
            .now()
            .saturating_sub(*lock(&self.newest));
        self.is_whole.load(Relaxed) && since >= self.every
    }

    /// Makes `files` durable, then writes a record with the bytes that `put` writes.
    ///
    /// If that fails, the log stops writing records and reports it; the import itself may still succeed.
    pub(crate) fn write(
        &self,
        name: &str,
        files: &StepFiles<'_>,
        put: impl FnOnce(&mut StepWriter) -> io::Result<()>,
    ) {
        match self.try_write(name, files, put) {
            Ok(()) => *lock(&self.newest) = self.resources.clock.now(),
            Err(error) => {
                self.is_whole.store(false, Relaxed);
                self.resources.progress.keeps_no_more(&error);
            }
        }
    }

    fn try_write(
        &self,
        name: &str,
        files: &StepFiles<'_>,
        put: impl FnOnce(&mut StepWriter) -> io::Result<()>,
    ) -> Result<(), IngestError> {
        let disk = &**self.resources.disk;
        for path in files.temporary {
            failpoint!(StepNotSynced => break);
            disk.sync(&disk.open(path, Open::Update)?)?;
        }
        let parents = files.graph.iter().filter_map(|path| path.parent());
        let mut folders: Vec<&Path> = parents.chain([&*self.temporary]).collect();
        folders.dedup();
        // The directories' own names too.
        let above = folders.clone().into_iter().filter_map(Path::parent);
        for folder in folders.into_iter().chain(above) {
            let here = Path::new(".");
            let is_here = folder.as_os_str().is_empty();
            disk.sync_dir(if is_here { here } else { folder })?;
        }
        if name != JOB && !disk.exists(&self.mark)? {
            disk.write_small(&self.mark, &[])?;
        }
        let path = self.path(name);
        let wrong = |source| record_error(&path, source);
        let file = AtomicFile::create(
            self.resources.disk,
            self.resources.budget,
            &path,
            CHUNK_BYTES,
        )?;
        let mut out = RecordWriter::new(file, MAGIC).map_err(wrong)?;
        let graph = files.graph.iter().map(PathBuf::as_path);
        let paths: Vec<&Path> = files.temporary.iter().copied().chain(graph).collect();
        out.put_u64(paths.len() as u64).map_err(wrong)?;
        for path in paths {
            let bytes = disk.stamp(path)?.bytes;
            out.put_bytes(path.as_os_str().as_bytes())
                .and_then(|()| out.put_u64(bytes))
                .map_err(wrong)?;
        }
        put(&mut out).map_err(wrong)?;
        out.finish().map_err(wrong)?.commit()?;
        Ok(())
    }

    /// Reads a record with `take`; `None` if it is missing, corrupt, without its files, or exceeds memory.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        take: impl FnOnce(&mut RecordReader<'_>) -> io::Result<T>,
    ) -> Result<Option<T>, IngestError> {
        let path = self.path(name);
        let disk = self.resources.disk;
        if !disk.exists(&path)? {
            return Ok(None);
        }
        let file = RandomAccessFile::open(disk, self.resources.budget, &path, CHUNK_BYTES)?;
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
            Err(error) if is_corrupt(&error) || is_too_large(&error) => Ok(None),
            read => read.map_err(|source| record_error(&path, source)),
        }
    }

    /// True if there may be a record of a step or column file, or if the disk cannot tell.
    pub(crate) fn has_any(&self) -> bool {
        let names = self.names();
        !names.is_ok_and(|names| !names.iter().any(is_step_record))
    }

    /// True if any rank that works in the graph's directory may have such a record.
    pub(crate) fn have_others(&self) -> bool {
        has_marks(&**self.resources.disk, &self.graph)
    }

    /// Removes the records and the graph directory of another import, except for its job record.
    ///
    /// The graph directory stays if it is this import's, or if another process works there.
    pub(crate) fn supersede(&self) -> Result<(), IngestError> {
        let disk = &**self.resources.disk;
        // A directory that cannot be removed does no harm.
        if is_graph_dir(&self.former, &self.temporary)
            && disk.is_local(&self.former)
            && let Ok(Some(_hold)) = disk.hold(&self.former, LockMode::Alone, Owner::Own)
        {
            let _ = disk.remove_dir_all(&self.former);
        }
        self.remove_all_records()
    }

    /// Removes all records of steps, durably, so that no import resumes from them.
    ///
    /// The job record stays until another import begins.
    pub(crate) fn remove_all_records(&self) -> Result<(), IngestError> {
        let disk = &**self.resources.disk;
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
        // The record of the end goes last: while it exists, no import needs the records of steps.
        names.sort_by_key(|name| name == ENDED);
        self.remove_records(&names)
    }

    /// Removes records, durably, before the files that they name change.
    pub(crate) fn remove_records(&self, names: &[impl AsRef<str>]) -> Result<(), IngestError> {
        let disk = &**self.resources.disk;
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

    /// Removes all files that no record names: temporary files, and the files of the graph in `graph`.
    pub(crate) fn clean(&self, graph: Vec<PathBuf>) -> Result<(), IngestError> {
        let disk = &**self.resources.disk;
        let mut kept = Vec::new();
        for name in self.names()? {
            let path = self.path(&name);
            let file = RandomAccessFile::open(
                self.resources.disk,
                self.resources.budget,
                &path,
                CHUNK_BYTES,
            )?;
            let files = match RecordReader::open(&file, MAGIC)
                .and_then(|mut from| files_of_record(&mut from))
            {
                // It is none.
                Err(error) if is_corrupt(&error) => Vec::new(),
                files => files.map_err(|source| record_error(&path, source))?,
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
        let there = self.resources.disk.list(&self.temporary)?;
        let is_record = |path: &&PathBuf| path.extension() == Some(OsStr::new(ENDING));
        let name = |path: &PathBuf| Some(path.file_stem()?.to_str()?.to_string());
        Ok(there.iter().filter(is_record).filter_map(name).collect())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.join(name).with_extension(ENDING)
    }
}

/// True if a record is of a step or of column files.
fn is_step_record(name: &String) -> bool {
    name != JOB && name != ENDED
}

/// True if a directory's name is that of a graph of the imports with these temporary files.
fn is_graph_dir(graph: &Path, temporary: &Path) -> bool {
    let begins = name_of(temporary).and_then(JobIdentity::graphs_of);
    begins.is_some_and(|begins| name_of(graph).is_some_and(|name| name.starts_with(&begins)))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(OsStr::to_str)
}

/// Locks the directory of leftovers; `None` if another process holds it for long, or without locks.
///
/// Each leftover has a lock of its own.
fn lock_dir(resources: ImportResources<'_>, folder: &Path) -> Option<DirLock> {
    for attempt in 0..HOLD_ATTEMPTS {
        if attempt > 0 {
            resources.clock.wait(HOLD_PAUSE);
        }
        let hold = (resources.disk).hold(folder, LockMode::Alone, Owner::Anybody);
        match hold {
            Ok(None) => {}
            held => return held.ok().flatten(),
        }
    }
    None
}

/// Returns the name of the mark of the rank that has this directory of temporary files.
fn mark_name(temporary: &Path) -> String {
    let rank = name_of(temporary).and_then(|name| name.rsplit('-').next());
    format!("{MARK}{}", rank.unwrap_or_default())
}

/// True if a file is the mark of a rank that has ended a step.
fn is_mark(path: &Path) -> bool {
    name_of(path).is_some_and(|name| name.starts_with(MARK))
}

/// True if any rank has left a mark in the directory of a graph, or if the disk cannot tell.
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
pub(crate) fn common_graph_files(
    disk: &dyn Disk,
    graph: &Path,
) -> Result<Vec<PathBuf>, IngestError> {
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
    /// The identity of the import.
    job: Vec<u8>,
    /// The machine on which the import began: locks may not reach other machines.
    resources: Vec<u8>,
    /// The directory of the graph so far.
    graph: Vec<u8>,
}

impl PendingRecord {
    fn encode(&self, out: &mut StepWriter) -> io::Result<()> {
        [&self.job, &self.resources, &self.graph]
            .into_iter()
            .try_for_each(|bytes| out.put_bytes(bytes))
    }

    fn decode(from: &mut RecordReader<'_>) -> io::Result<Self> {
        Ok(PendingRecord {
            job: from.bytes()?,
            resources: from.bytes()?,
            graph: from.bytes()?,
        })
    }
}

/// Returns the name of the record of some column files, given the first of them.
pub(crate) fn column_record(side: FileSide, number: usize) -> String {
    match side {
        FileSide::Forward => format!("{COLUMNS}{number:05}"),
        FileSide::Reverse => format!("{REVERSE}{number:05}"),
    }
}

/// True if a record is of column files.
pub(crate) fn is_column_record(name: &str) -> bool {
    [COLUMNS, REVERSE]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// Reads the names and lengths of a record's files.
fn files_of_record(from: &mut RecordReader<'_>) -> io::Result<Vec<(PathBuf, u64)>> {
    let count = from.number()?;
    let one = |_| {
        let path = from.bytes()?;
        Ok((PathBuf::from(OsStr::from_bytes(&path)), from.number()?))
    };
    (0..count).map(one).collect()
}

/// The error of a record that cannot be written or read.
fn record_error(path: &Path, source: io::Error) -> IngestError {
    IngestError::Storage(StorageError::Path {
        action: "use",
        path: path.to_path_buf(),
        source,
    })
}

/// True if the content of a record exceeds memory.
fn is_too_large(error: &io::Error) -> bool {
    let inner = error.get_ref();
    let inner = inner.and_then(|inner| inner.downcast_ref::<StorageError>());
    matches!(inner, Some(StorageError::Budget(_)))
}
