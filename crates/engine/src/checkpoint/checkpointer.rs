//! Checkpoints of a run: written between passes, and resumed from after a kill.
//!
//! A checkpoint is the log of the driver's calls, the rows of all vertex arrays, and the sets that the driver holds. Its pages are
//! in the row file, which never overwrites a page of a checkpoint; the rest is a file of its own. A checkpoint is written in three steps:
//!
//! 1. The engine writes the changed pages and syncs the row file.
//! 2. It writes the checkpoint's file, durably and atomically: the checkpoint is *prepared*.
//! 3. Once all ranks have prepared it, they delete expired checkpoints. So all ranks always share a checkpoint.
//!
//! Resume picks the newest checkpoint that every rank has and whose checksums match. It syncs that checkpoint on every rank,
//! because its rename may not be durable. It then deletes the other checkpoints, and syncs the deletion before it reuses their
//! slots. A half-prepared checkpoint is therefore intact on every rank, or deleted on every rank.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use graphmill_fabric::protocol_error;
use graphmill_raw::failpoint;
use graphmill_storage::{
    AtomicFile, CancelToken, Disk, GracefulGuard, Lease, MemoryBudget, Open, RandomAccessFile,
    StorageError, at, is_corrupt,
};

use crate::checkpoint::files::{PREFIX, ROWS, file_name, name_of, number_of};
use crate::checkpoint::snapshot::Snapshot;
use crate::comm::communicator::Communicator;
use crate::config::{CheckpointInterval, CheckpointPolicy};
use crate::driver_log::{DriverLog, LogEntries, SavedSet};
use crate::error::EngineError;
use crate::frontier::bitmap::BatchBitmaps;
use crate::state::row_file::{PageTable, PinnedSlots, RowFile, RowFileIo};
use crate::value::Reduce;

/// The checkpoint that a run resumes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeInfo {
    /// Calls of the driver that it does not do again.
    pub calls: u64,
    /// Corrupt files that rule out newer checkpoints, with the ranks that have them.
    pub damaged: Vec<(usize, PathBuf)>,
}

/// The work due between two calls of the driver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DueAction {
    /// A checkpoint is due.
    pub(crate) version: bool,
    /// Work ends.
    pub(crate) end: bool,
}

/// The writer of a run's checkpoints.
pub(crate) struct Checkpointer {
    disk: Arc<dyn Disk>,
    budget: MemoryBudget,
    asked: CheckpointPolicy,
    stop: CancelToken,
    /// When the run began or resumed.
    began: Duration,
    /// The numbers of those that are there.
    pub(crate) published: VecDeque<u64>,
    /// Full pages of logged results.
    log: PageTable,
    /// When the last one was published, and calls since that did something.
    when: Duration,
    calls: u64,
    /// True if the next call depends on a decision, whose work is in no checkpoint.
    is_decided: bool,
    /// Rows of some rank are on disk.
    is_paged: bool,
    /// One was begun.
    is_on_its_way: bool,
    /// The checkpoint to resume from, until all of its log is replayed.
    pub(crate) found: Option<LoadedCheckpoint>,
    pub(crate) resumed: Option<ResumeInfo>,
    /// For the chunks of a file that is written; nothing while one is.
    room: Option<Lease>,
    /// True while checkpoints are written between calls.
    pub(crate) patience: Option<GracefulGuard>,
}

/// A checkpoint that a run resumes from.
pub(crate) struct LoadedCheckpoint {
    pub(crate) record: Snapshot,
    entries: LogEntries,
    path: PathBuf,
    file: RandomAccessFile,
}

/// Bytes of a checkpoint's file that are written or read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Pages that are read between two looks at whether to stop.
const CHECKED: usize = 256;
/// Usual time between two checkpoints, for rows on disk and for rows in memory.
const USUAL_PAGED: Duration = Duration::from_secs(1);
const USUAL: Duration = Duration::from_secs(30);
/// How long a run in memory has worked when what it did is worth keeping.
const WORTH_KEEPING: Duration = Duration::from_secs(1);

impl Checkpointer {
    /// Bytes of the budget that checkpoints hold between passes.
    pub(crate) const HELD: u64 = AtomicFile::memory(CHUNK_BYTES);
    /// Bytes of the budget that checkpoints take at most, while the run looks for one to resume from.
    pub(crate) const MEMORY: u64 = Self::HELD + CHUNK_BYTES as u64;

    /// Looks for a checkpoint that all ranks have and deletes all others.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        budget: &MemoryBudget,
        ranks: &Communicator,
        asked: CheckpointPolicy,
        (now, stop): (Duration, CancelToken),
        page_bytes: usize,
    ) -> Result<Self, EngineError> {
        let room = budget.lease("checkpoints", Self::HELD)?;
        let mut recovery = Checkpointer {
            disk,
            budget: budget.clone(),
            asked,
            stop,
            began: now,
            published: VecDeque::new(),
            log: PageTable::new(),
            when: now,
            calls: 0,
            is_decided: false,
            is_paged: false,
            is_on_its_way: false,
            found: None,
            resumed: None,
            room: Some(room),
            patience: None,
        };
        let mut there = Vec::new();
        for path in recovery.disk.list(&recovery.asked.folder)? {
            match number_of(&path) {
                Some(number) => there.push((number, path)),
                // On its way to its name when the run was killed.
                None if name_of(&path).is_some_and(|name| name.starts_with(PREFIX)) => {
                    recovery.disk.remove_file(&path)?;
                }
                None => {}
            }
        }
        if recovery.asked.resume {
            recovery.found = recovery.newest(ranks, &there, page_bytes)?;
        }
        let found = recovery.found.as_ref().map(|found| found.record.number);
        let is_found = found.is_some();
        failpoint!(FoundNotDurable: is_found = false);
        if is_found {
            // The process that wrote it may have died or failed before its name was durable.
            recovery.disk.sync_dir(&recovery.asked.folder)?;
            ranks.total([])?;
        }
        let were_any = !there.is_empty();
        for (number, path) in there {
            let is_kept = Some(number) == found;
            failpoint!(OtherVersionsStay: is_kept = true);
            match is_kept {
                true => recovery.published.push_back(number),
                false => recovery.disk.remove_file(&path)?,
            }
        }
        if were_any {
            recovery.disk.sync_dir(&recovery.asked.folder)?;
        }
        // No rank may overwrite a deleted checkpoint before the deletion is durable.
        ranks.total([])?;
        recovery.defer_cancel();
        Ok(recovery)
    }

    /// Returns the newest checkpoint that all ranks have.
    fn newest(
        &mut self,
        ranks: &Communicator,
        there: &[(u64, PathBuf)],
        page_bytes: usize,
    ) -> Result<Option<LoadedCheckpoint>, EngineError> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        // A checkpoint that follows another implies that all ranks had that one.
        let mut follows = false;
        for (number, path) in there {
            match self.read(path)? {
                Some((record, _)) if record.number == *number => {
                    if record.job != self.asked.job {
                        return Err(EngineError::OtherRun {
                            what: "the checkpoint is of another graph, algorithm or options",
                        });
                    }
                    // The log is the same on all ranks of one run, but may differ between runs.
                    sound.push([*number, record.log.checksum.into()]);
                    follows |= record.follows;
                }
                _ => damaged.push(path.clone()),
            }
        }
        let mut payload = Vec::new();
        let all_had = follows || !damaged.is_empty();
        [there.len() as u64, u64::from(all_had)].put(&mut payload);
        sound.iter().for_each(|version| version.put(&mut payload));
        let mut common = sound;
        let (mut all_had, mut none) = (false, None);
        for (rank, payload) in ranks.gather(payload)?.into_iter().enumerate() {
            let mut rest = &payload[..];
            let [files, had] = <[u64; 2]>::take(&mut rest).ok_or_else(protocol_error)?;
            all_had |= had != 0;
            none = none.or((files == 0).then_some(rank));
            let mut versions = Vec::new();
            while !rest.is_empty() {
                versions.push(<[u64; 2]>::take(&mut rest).ok_or_else(protocol_error)?);
            }
            failpoint!(OwnNewestTaken => continue);
            common.retain(|version| versions.contains(version));
        }
        let folder = || {
            let own = &self.asked.folder;
            own.parent().unwrap_or(own).to_path_buf()
        };
        if let Some(rank) = none {
            return match all_had {
                true => Err(EngineError::VersionsElsewhere {
                    folder: folder(),
                    rank,
                }),
                // The first was on its way.
                false => Ok(None),
            };
        }
        common.sort_unstable();
        while let Some([calls, _]) = common.pop() {
            let loaded = self.load(&self.path(calls), page_bytes)?;
            // One rank that has not is enough.
            let [lacking] = ranks.total([u64::from(loaded.is_err())])?;
            match loaded {
                Ok(found) if lacking == 0 => {
                    let damaged = of_all(ranks, &damaged)?;
                    self.resumed = Some(ResumeInfo { calls, damaged });
                    return Ok(Some(found));
                }
                Ok(_) => {}
                Err(path) if damaged.contains(&path) => {}
                Err(path) => damaged.push(path),
            }
        }
        Err(EngineError::NoSoundVersion {
            folder: folder(),
            damaged: of_all(ranks, &damaged)?,
        })
    }

    /// Reads the file of a checkpoint, if its checksum matches.
    fn read(&self, path: &Path) -> Result<Option<(Snapshot, RandomAccessFile)>, EngineError> {
        let file = RandomAccessFile::open(&self.disk, &self.budget, path, CHUNK_BYTES)?;
        match Snapshot::read(&file) {
            Err(error) if is_corrupt(&error) => Ok(None),
            record => Ok(Some((at("read", path, record)?, file))),
        }
    }

    /// Loads a checkpoint and its log; returns the damaged file if a checksum does not match.
    fn load(
        &self,
        path: &Path,
        page_bytes: usize,
    ) -> Result<Result<LoadedCheckpoint, PathBuf>, EngineError> {
        let Some((record, file)) = self.read(path)? else {
            return Ok(Err(path.to_path_buf()));
        };
        let rows = self.asked.folder.join(ROWS);
        if !self.disk.exists(&rows)? {
            return Ok(Err(rows));
        }
        let there = self.disk.stamp(&rows)?.bytes / page_bytes as u64;
        let log = &record.log;
        if log.rest.len() >= page_bytes || log.pages.contains(&None) {
            return Ok(Err(path.to_path_buf()));
        }
        let are_there = record.slots().all(|slot| slot.number < there);
        if log.pages.len() as u64 > there || !are_there {
            return Ok(Err(rows));
        }
        let (disk, how) = (Arc::clone(&self.disk), (&*rows, Open::Update));
        let mut pages = RowFile::open(disk, how, page_bytes, std::iter::empty())?;
        pages.file.stays = true;
        let mut io = RowFileIo::new(&*self.disk, &self.budget, page_bytes)?;
        let mut entries = vec![0; log.pages.len() * page_bytes];
        let mut read = io.load(&pages, &log.pages, None, &mut entries);
        let arrays = record.arrays.iter();
        for pages_of in arrays.flat_map(|array| array.pages.chunks(CHECKED)) {
            if self.stop.is_cancelled() {
                return Err(EngineError::Stopped);
            }
            read = read.and_then(|()| io.check(&pages, pages_of));
        }
        match read {
            Err(EngineError::CorruptPage { .. }) => return Ok(Err(rows)),
            read => read?,
        }
        entries.extend(&log.rest);
        if crc32fast::hash(&entries) != log.checksum {
            return Ok(Err(rows));
        }
        Ok(Ok(LoadedCheckpoint {
            entries: LogEntries(entries),
            path: path.to_path_buf(),
            record,
            file,
        }))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.asked.folder.join(file_name(number))
    }

    /// Returns the page file, with the pages of the checkpoint that the run resumes from.
    pub(crate) fn pages(
        &mut self,
        page_bytes: usize,
    ) -> Result<(RowFile, PinnedSlots), EngineError> {
        let path = self.asked.folder.join(ROWS);
        let disk = Arc::clone(&self.disk);
        let mut kept = PinnedSlots::default();
        let mut pages = match &self.found {
            Some(LoadedCheckpoint { record, .. }) => {
                kept.publish(record.number, record.slots());
                self.log.clone_from(&record.log.pages);
                RowFile::open(disk, (&path, Open::Update), page_bytes, record.slots())?
            }
            None => {
                if disk.exists(&path)? {
                    disk.remove_file(&path)?;
                }
                let how = (&*path, Open::CreatePrivate);
                RowFile::open(disk, how, page_bytes, std::iter::empty())?
            }
        };
        pages.file.stays = true;
        Ok((pages, kept))
    }

    /// Returns the log that the driver replays first.
    pub(crate) fn history(&self) -> DriverLog {
        let Some(found) = &self.found else {
            return DriverLog::replaying(LogEntries::default(), Default::default());
        };
        let saved = |(number, at): &(u64, u64)| {
            let (file, path, at) = (found.file.clone(), found.path.clone(), *at);
            (*number, SavedSet { file, path, at })
        };
        DriverLog::replaying(
            found.entries.clone(),
            found.record.sets.iter().map(saved).collect(),
        )
    }

    /// Records that some rank has rows on disk.
    pub(crate) fn record_paged_rows(&mut self) {
        self.is_paged = true;
        self.defer_cancel();
    }

    /// Defers cancellation to the end of a pass, because the run can resume from there.
    pub(crate) fn defer_cancel(&mut self) {
        self.defer_cancel_if(self.interval().is_some());
    }

    /// From now on a run in memory is not ended within a pass, where it has worked for long enough.
    pub(crate) fn defer_cancel_if_worth_keeping(&mut self, now: Duration) {
        self.defer_cancel_if(self.is_worth_keeping(now));
    }

    /// Ends the deferral for work of many passes that no checkpoint saves halfway.
    ///
    /// Such a run in memory ends as soon as it is cancelled.
    pub(crate) fn stop_deferring(&mut self) {
        if self.interval().is_none() {
            self.patience = None;
        }
    }

    /// True if a run in memory has worked long enough to be saved when it is cancelled.
    pub(crate) fn is_worth_keeping(&self, now: Duration) -> bool {
        let is_in_memory = self.asked.every == CheckpointInterval::Paged && !self.is_paged;
        is_in_memory && now.saturating_sub(self.began) >= WORTH_KEEPING
    }

    fn defer_cancel_if(&mut self, is_kept: bool) {
        // A run that is already cancelled does not start the next pass.
        failpoint!(PatienceForgotten => return);
        if self.patience.is_none() && is_kept && !self.stop.is_requested() {
            self.patience = Some(self.stop.graceful());
        }
    }

    /// Returns how often checkpoints are written, if they are.
    fn interval(&self) -> Option<CheckpointInterval> {
        match (self.asked.every, self.is_paged) {
            (CheckpointInterval::Usual | CheckpointInterval::Paged, true) => {
                Some(CheckpointInterval::Time(USUAL_PAGED))
            }
            (CheckpointInterval::Usual, false) => Some(CheckpointInterval::Time(USUAL)),
            (CheckpointInterval::Paged, false) => None,
            (every, _) => Some(every),
        }
    }

    /// Counts a call that did some work.
    pub(crate) fn call_done(&mut self) {
        self.calls += 1;
        self.is_decided = false;
    }
    /// Records that the next call depends on a decision: no checkpoint is written before that call.
    pub(crate) fn decided(&mut self) {
        failpoint!(DecisionForgotten => return);
        self.is_decided = true;
    }

    /// Returns the work due before the next call; all ranks agree on it.
    pub(crate) fn due(
        &self,
        now: Duration,
        ranks: &Communicator,
    ) -> Result<DueAction, EngineError> {
        if self.is_decided {
            return Ok(DueAction::default());
        }
        let is_due = match self.interval() {
            Some(CheckpointInterval::Calls(calls)) => self.calls >= calls,
            Some(CheckpointInterval::Time(time)) => now.saturating_sub(self.when) >= time,
            Some(CheckpointInterval::Usual | CheckpointInterval::Paged) | None => false,
        };
        // Clocks of ranks differ, and who hears of a wish to end.
        let is_kept = self.interval().is_some() || self.is_worth_keeping(now);
        let payload = [is_due, self.stop.is_requested(), is_kept].map(u64::from);
        let [due, ends, kept] = ranks.total(payload)?;
        let end = ends > 0;
        Ok(DueAction {
            version: self.calls > 0 && (due > 0 || end && kept > 0),
            end,
        })
    }

    /// Begins a checkpoint.
    ///
    /// If it fails, none is written after it, because its durable state is unknown.
    pub(crate) fn begin(&mut self) -> Result<&mut PageTable, EngineError> {
        if std::mem::replace(&mut self.is_on_its_way, true) {
            return Err(EngineError::Broken);
        }
        if self.published.is_empty() {
            let (name, bytes) = &self.asked.description;
            self.disk
                .write_small(&self.asked.folder.join(name), bytes)?;
            sync_above(&*self.disk, &self.asked.folder)?;
        }
        Ok(&mut self.log)
    }

    /// Commits the checkpoint that was begun, with these sets; returns the number of the oldest one left.
    pub(crate) fn publish(
        &mut self,
        ranks: &Communicator,
        record: &mut Snapshot,
        sets: &[(u64, Arc<BatchBitmaps>)],
        now: impl Fn() -> Duration,
    ) -> Result<u64, EngineError> {
        let number = record.number;
        record.job = self.asked.job;
        record.follows = !self.published.is_empty();
        let path = self.path(number);
        drop(self.room.take());
        let mut file = AtomicFile::create(&self.disk, &self.budget, &path, CHUNK_BYTES)?;
        at("write", &path, record.write(sets, &mut file))?;
        file.commit()?;
        self.room = Some(self.budget.lease("checkpoints", Self::HELD)?);
        self.published.push_back(number);
        failpoint!(OldVersionGoesFirst => self.remove_old()?);
        // All have prepared it.
        ranks.total([])?;
        self.remove_old()?;
        (self.calls, self.when) = (0, now());
        self.is_on_its_way = false;
        Ok(self.published.front().copied().unwrap_or(number))
    }

    /// Deletes the checkpoints that are too many.
    fn remove_old(&mut self) -> Result<(), EngineError> {
        while self.published.len() > self.asked.keep.max(1) {
            if let Some(old) = self.published.pop_front() {
                self.disk.remove_file(&self.path(old))?;
            }
        }
        Ok(())
    }

    /// Deletes all checkpoints: the run has succeeded.
    pub(crate) fn finish(self) -> Result<(), EngineError> {
        for number in &self.published {
            self.disk.remove_file(&self.path(*number))?;
        }
        Ok(self.disk.sync_dir(&self.asked.folder)?)
    }
}

/// Syncs a directory and its ancestors, whose creators may have failed to do so.
fn sync_above(disk: &dyn Disk, folder: &Path) -> Result<(), StorageError> {
    for (number, above) in folder.ancestors().skip(1).enumerate() {
        let is_here = above.as_os_str().is_empty();
        let synced = disk.sync_dir(if is_here { Path::new(".") } else { above });
        match synced {
            // It is not ours.
            Err(StorageError::Path { source, .. })
                if source.kind() == ErrorKind::PermissionDenied => {}
            Err(error) if number < 2 => return Err(error),
            // Those further up were there before.
            _ => {}
        }
    }
    Ok(())
}

/// Gathers the damaged files of every rank, with the ranks.
fn of_all(ranks: &Communicator, own: &[PathBuf]) -> Result<Vec<(usize, PathBuf)>, EngineError> {
    let mut payload = Vec::new();
    for path in own {
        payload.extend(path.as_os_str().as_bytes());
        payload.push(0);
    }
    let mut all = Vec::new();
    for (rank, payload) in ranks.gather(payload)?.into_iter().enumerate() {
        let paths = payload.split(|byte| *byte == 0);
        let paths = paths.filter(|path| !path.is_empty());
        all.extend(paths.map(|path| (rank, PathBuf::from(OsStr::from_bytes(path)))));
    }
    Ok(all)
}
