//! Versions of a run: published between passes, and gone on with after a kill.
//!
//! A version is what the driver was told so far, the rows of all vertex arrays and the sets that the driver has. Its pages are in the
//! page file, which is never written over where a version has a page; all else is a file of its own. Steps of publishing one: 1. pages
//! that changed are written, and the page file is made durable; 2. the file of the version is written, durably and at one stroke: it is
//! *prepared*; 3. when all ranks have prepared it, versions that are not to be kept go. So there is always a version that all have.
//!
//! Who goes on takes the newest version that all ranks have. Those that only some have go first, durably, before anything is written
//! over them: what one rank has prepared is what it was, or is gone on all.

mod calls;
pub(crate) mod history;
pub(crate) mod record;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use graphmill_storage::{Budget, Disk};

use crate::error::EngineError;
use crate::page_file::{KeptSlots, PageFile};
use crate::program::Sum;
use crate::ranks::{Ranks, mismatch};
pub(crate) use history::History;
use record::Record;

/// How often versions are published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    /// After so many calls of the driver that do something.
    Calls(u64),
    /// After the first call that ends so long after the version before.
    Time(Duration),
}

/// Where versions are published, how often, and how many are kept.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// The folder of this rank, which is there, and in which there is nothing else.
    pub folder: PathBuf,
    /// What tells this run from others: its graph, algorithm and options.
    pub job: u64,
    /// How often.
    pub every: Every,
    /// How many are kept, at least one.
    pub keep: usize,
    /// Go on with the newest version, if there is one.
    pub resume: bool,
}

/// The versions of a run on their way.
pub(crate) struct Recovery {
    disk: Arc<dyn Disk>,
    asked: Checkpoints,
    /// The numbers of those that are there.
    published: VecDeque<u64>,
    /// When the last one was published, and calls since.
    when: Duration,
    calls: u64,
    /// One was begun.
    is_on_its_way: bool,
    /// What is gone on with, until all was told again.
    found: Option<Record>,
}

const PREFIX: &str = "version-";
/// How the names of files begin that were not yet given their own.
const ASIDE: &str = ".version-";

impl Recovery {
    /// Looks for a version to go on with, which all ranks have; all others go.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        budget: &Budget,
        ranks: &Ranks,
        asked: Checkpoints,
        now: Duration,
    ) -> Result<Self, EngineError> {
        let mut recovery = Recovery {
            disk,
            asked,
            published: VecDeque::new(),
            when: now,
            calls: 0,
            is_on_its_way: false,
            found: None,
        };
        let mut there = Vec::new();
        for path in recovery.disk.list(&recovery.asked.folder)? {
            match number_of(&path) {
                Some(number) => there.push((number, path)),
                // On its way to its name when the run was killed.
                None if name_of(&path).is_some_and(|name| name.starts_with(ASIDE)) => {
                    recovery.disk.remove_file(&path)?;
                }
                None => {}
            }
        }
        if recovery.asked.resume {
            recovery.found = recovery.newest(budget, ranks, &there)?;
        }
        let found = recovery.found.as_ref().map(|found| found.number);
        for (number, path) in there {
            match Some(number) == found {
                true => recovery.published.push_back(number),
                false => recovery.disk.remove_file(&path)?,
            }
        }
        recovery.disk.sync_dir(&recovery.asked.folder)?;
        // Nobody writes over what a version had before it is gone.
        ranks.total([])?;
        Ok(recovery)
    }

    /// The newest version that all ranks have.
    fn newest(
        &self,
        budget: &Budget,
        ranks: &Ranks,
        there: &[(u64, PathBuf)],
    ) -> Result<Option<Record>, EngineError> {
        let mut sound = Vec::new();
        for (number, path) in there {
            if let Some(record) = self.read(budget, path)? {
                if record.job != self.asked.job {
                    return Err(EngineError::OtherRun {
                        what: "it is another run: of another graph, algorithm or options",
                    });
                }
                // What the driver was told is the same on all ranks in one run, and need not be in another.
                if record.number == *number {
                    sound.push([*number, record.entries.checksum()]);
                }
            }
        }
        let mut said = Vec::new();
        sound.iter().for_each(|version| version.put(&mut said));
        let mut common = sound;
        for said in ranks.gather(said)? {
            let mut versions = Vec::new();
            let mut rest = &said[..];
            while !rest.is_empty() {
                versions.push(<[u64; 2]>::take(&mut rest).ok_or_else(mismatch)?);
            }
            common.retain(|version| versions.contains(version));
        }
        match common.into_iter().max() {
            None => Ok(None),
            Some([newest, _]) => {
                let path = self.path(newest);
                let record = self.read(budget, &path)?;
                Ok(Some(
                    record.ok_or(EngineError::CorruptPage { path, offset: 0 })?,
                ))
            }
        }
    }

    fn read(&self, budget: &Budget, path: &Path) -> Result<Option<Record>, EngineError> {
        let bytes = self.disk.stamp(path)?.bytes;
        let _lease = budget.lease("a version", bytes.saturating_mul(2))?;
        Ok(Record::parse(&self.disk.read_small(path, bytes)?))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.asked.folder.join(format!("{PREFIX}{number:020}"))
    }

    /// The page file, with the pages of the version that is gone on with.
    pub(crate) fn pages(&self, page_bytes: usize) -> Result<(PageFile, KeptSlots), EngineError> {
        let path = self.asked.folder.join("rows");
        let disk = Arc::clone(&self.disk);
        let mut kept = KeptSlots::default();
        let mut pages = match &self.found {
            Some(found) => {
                let slots = || {
                    found
                        .arrays
                        .iter()
                        .flat_map(|array| array.pages.iter().flatten())
                };
                let there = disk.stamp(&path)?.bytes / page_bytes as u64;
                if let Some(slot) = slots().find(|slot| slot.number() >= there) {
                    let offset = slot.number().saturating_mul(page_bytes as u64);
                    return Err(EngineError::CorruptPage { path, offset });
                }
                kept.publish(found.number, slots());
                PageFile::open(disk, &path, page_bytes, slots())?
            }
            None => {
                if disk.exists(&path)? {
                    disk.remove_file(&path)?;
                }
                PageFile::create(disk, &path, page_bytes)?
            }
        };
        pages.stay(true);
        Ok((pages, kept))
    }

    /// What the driver is told first.
    pub(crate) fn history(&self) -> History {
        match &self.found {
            Some(found) => {
                History::told_again(found.entries.clone(), found.sets.iter().cloned().collect())
            }
            None => History::kept(),
        }
    }

    /// The version that is gone on with, when all was told again.
    pub(crate) fn take_found(&mut self) -> Option<Record> {
        self.found.take()
    }

    /// Whether a version is to be published after one more call.
    pub(crate) fn is_due(&mut self, now: Duration, ranks: &Ranks) -> Result<bool, EngineError> {
        self.calls += 1;
        match self.asked.every {
            Every::Calls(calls) => Ok(self.calls >= calls),
            // Clocks of ranks differ.
            Every::Time(time) => {
                let is_late = now.saturating_sub(self.when) >= time;
                Ok(ranks.total([u64::from(is_late)])? != [0])
            }
        }
    }

    /// Begins a version. What is durable of one that failed is not known, so that none is published after it.
    pub(crate) fn begin(&mut self) -> Result<(), EngineError> {
        match std::mem::replace(&mut self.is_on_its_way, true) {
            true => Err(EngineError::Broken),
            false => Ok(()),
        }
    }

    /// Publishes the version that was begun; the number of the oldest that is there then.
    pub(crate) fn publish(
        &mut self,
        budget: &Budget,
        ranks: &Ranks,
        record: &Record,
        now: impl Fn() -> Duration,
    ) -> Result<u64, EngineError> {
        let number = record.number;
        let _lease = budget.lease("a version", record.bytes())?;
        let bytes = record.to_bytes(self.asked.job);
        self.disk.write_small(&self.path(number), &bytes)?;
        self.published.push_back(number);
        // All have prepared it.
        ranks.total([])?;
        while self.published.len() > self.asked.keep.max(1) {
            if let Some(old) = self.published.pop_front() {
                self.disk.remove_file(&self.path(old))?;
            }
        }
        (self.calls, self.when) = (0, now());
        self.is_on_its_way = false;
        Ok(self.published.front().copied().unwrap_or(number))
    }

    /// Removes all versions: the run has come to its end.
    pub(crate) fn finish(self) -> Result<(), EngineError> {
        for number in &self.published {
            self.disk.remove_file(&self.path(*number))?;
        }
        Ok(self.disk.sync_dir(&self.asked.folder)?)
    }
}

/// The number in the name of a version's file.
fn number_of(path: &Path) -> Option<u64> {
    name_of(path)?.strip_prefix(PREFIX)?.parse().ok()
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
