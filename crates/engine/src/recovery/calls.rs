//! Calls of the driver: told again, or carried out, and the versions between them.
//!
//! A version is published when the driver makes its next call, or none any more: it has let go by then of the sets that it does not need, and
//! found out whether what it was told is an error.

use std::time::Duration;

use graphmill_fabric::FabricError;
use graphmill_raw::Mistake;

use super::record::{Record, Told};
use super::{Recovery, Resumed};
use crate::active::{ActiveSet, lock};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::machine::Common;
use crate::program::Sum;
use crate::ranks::{Ranks, mismatch};

impl Engine {
    /// One call of the driver, and a pass or several: what it is told, and the sets that it gets. A run that goes on with a version
    /// tells what the run before told, and does nothing, up to where the version ends. `name` tells calls apart.
    pub(crate) fn call<S: Sum, const N: usize>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<(S, [ActiveSet; N]), EngineError>,
    ) -> Result<(S, [ActiveSet; N]), EngineError> {
        self.call_of(1, name, work)
    }

    /// A call that counts as so many passes where it is told again.
    pub(crate) fn call_of<S: Sum, const N: usize>(
        &mut self,
        passes: u64,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<(S, [ActiveSet; N]), EngineError>,
    ) -> Result<(S, [ActiveSet; N]), EngineError> {
        if self.active.history().is_within() {
            return work(self);
        }
        let answer = self.active.history().answer(name)?;
        if let Some(said) = answer {
            self.metrics.counted += passes;
            let mut said = &said[..];
            let sum = S::take(&mut said).ok_or_else(mismatch)?;
            let mut sets = [(); N].map(|()| self.active.empty());
            for set in &mut sets {
                set.hand_out(u64::take(&mut said).ok_or_else(mismatch)?)?;
            }
            return Ok((sum, sets));
        }
        self.between_calls()?;
        self.active.history().enter();
        let done = work(self);
        self.active.history().leave();
        let (sum, mut sets) = done?;
        let mut said = Vec::new();
        sum.put(&mut said);
        for set in &mut sets {
            let total = set.len();
            total.put(&mut said);
            set.hand_out(total)?;
        }
        self.active.history().note(name, &said);
        self.recovery.iter_mut().for_each(Recovery::call_done);
        Ok((sum, sets))
    }

    /// Logs a call of many passes. The call may stop between two passes ([`Engine::is_to_pause`]); the next call continues with its sets.
    ///
    /// Returns the sum and the sets. A replayed call counts as many passes as it made.
    pub(crate) fn call_of_many<S: Sum, const N: usize>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<(S, [ActiveSet; N]), EngineError>,
    ) -> Result<(S, [ActiveSet; N]), EngineError> {
        let mut is_told_again = true;
        let ((passes, said), sets) = self.call_of(0, name, |engine| {
            is_told_again = false;
            let before = engine.metrics.counted;
            let (said, sets) = work(engine)?;
            Ok(((engine.metrics.counted - before, said), sets))
        })?;
        if is_told_again {
            self.metrics.counted += passes;
        }
        Ok((said, sets))
    }

    /// Takes note of a pass of a call of many. True if the call has to end, and the next one with it, where a version is published.
    pub(crate) fn is_to_pause(&mut self) -> Result<bool, EngineError> {
        let now = self.common.clock.now();
        pauses(&mut self.recovery, now, &self.common.ranks)
    }

    /// What depends on free memory or the like, and is no pass: told again in a run that goes on.
    pub(crate) fn decide(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<bool, EngineError>,
    ) -> Result<bool, EngineError> {
        let answer = self.active.history().answer(name)?;
        if let Some(said) = answer {
            return Ok(said == [1]);
        }
        self.between_calls()?;
        let decided = work(self)?;
        self.active.history().note(name, &[u8::from(decided)]);
        self.recovery.iter_mut().for_each(Recovery::decided);
        Ok(decided)
    }

    /// What is done before a call that is not told again: the rows of the version that is gone on with are taken over, where all was told
    /// that it has, or a version is published, where one is due.
    fn between_calls(&mut self) -> Result<(), EngineError> {
        let Some(recovery) = self.recovery.as_mut() else {
            return Ok(());
        };
        let Common {
            arrays,
            row_io,
            ranks,
            clock,
            ..
        } = &mut self.common;
        let Some(io) = row_io.first() else {
            return Ok(());
        };
        if self.broken {
            // What a pass that failed has left is no version.
            return Err(EngineError::Broken);
        }
        if let Some(found) = recovery.take_found() {
            arrays.restore(&found.arrays, &mut lock(io))?;
        }
        let due = recovery.due(clock.now(), ranks)?;
        recovery.be_patient_if_worth_keeping(clock.now());
        let published = match due.version {
            true => self.publish(),
            false => Ok(()),
        };
        match published {
            // Another that was asked the same has ended already, having heard that all have the version.
            Ok(()) | Err(EngineError::Fabric(FabricError::Lost { .. })) if due.end => {
                Err(EngineError::Stopped)
            }
            published => published,
        }
    }

    /// Publishes a version of what there is.
    fn publish(&mut self) -> Result<(), EngineError> {
        let Common {
            arrays,
            row_io,
            ranks,
            clock,
            ..
        } = &self.common;
        let (Some(recovery), Some(io)) = (&mut self.recovery, row_io.first()) else {
            return Ok(());
        };
        let history = self.active.history();
        let (entries, number) = (history.entries().bytes(), history.count());
        let pages = recovery.begin()?;
        arrays.save_told(entries, pages, &mut lock(io))?;
        let full = pages.len() * arrays.pages().page_bytes();
        let told = Told {
            checksum: crc32fast::hash(entries),
            pages: pages.clone(),
            rest: entries[full..].to_vec(),
        };
        drop(history);
        let mut record = Record {
            number,
            told,
            arrays: arrays.save(&mut lock(io))?,
            ..Record::default()
        };
        if !Mistake::PagesNotSynced.is_planted() {
            let synced = arrays.pages().sync();
            if !Mistake::FailedSyncIgnored.is_planted() {
                synced?;
            }
        }
        let sets = self.active.of_driver();
        let oldest = recovery.publish(ranks, &mut record, &sets, || clock.now())?;
        arrays.published(&record, oldest);
        Ok(())
    }

    /// Keeps a run in memory that has come to its end and was asked to stop before its result was written. True if it is kept.
    ///
    /// # Errors
    /// The version cannot be written.
    pub fn keep_ended(&mut self) -> Result<bool, EngineError> {
        let now = self.common.clock.now();
        let is_kept = |recovery: &Recovery| recovery.is_worth_keeping(now);
        // Others of several ranks may wait for rows.
        let is_kept = self.common.ranks.alone() && self.recovery.as_ref().is_some_and(is_kept);
        if is_kept {
            self.publish()?;
        }
        Ok(is_kept)
    }

    /// What the run goes on with, if it does.
    #[must_use]
    pub fn resumed(&self) -> Option<&Resumed> {
        self.recovery.as_ref().and_then(Recovery::resumed)
    }

    /// Whether there are versions of it.
    #[must_use]
    pub fn has_published(&self) -> bool {
        self.recovery.as_ref().is_some_and(Recovery::has_published)
    }

    /// Says that the driver has come to its end, having done all that it did in the run that it goes on with: a result before that is of
    /// no rows.
    ///
    /// # Errors
    /// It did less, and so is another program; the last version cannot be published, or the user asked to stop.
    pub fn end_calls(&mut self) -> Result<(), EngineError> {
        if self.active.history().is_told_again() {
            return Err(EngineError::OtherRun {
                what: "the program ends before the place where that run was",
            });
        }
        self.between_calls()?;
        self.recovery.iter_mut().for_each(Recovery::end_calls);
        Ok(())
    }

    /// Removes all versions: what the run was for is done.
    ///
    /// # Errors
    /// The disk failed.
    pub fn end_versions(&mut self) -> Result<(), EngineError> {
        match self.recovery.take() {
            Some(recovery) => {
                recovery.finish()?;
                // Where one stays, so do its pages.
                self.common.arrays.forget_versions();
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// The same, of the versions alone.
pub(crate) fn pauses(
    recovery: &mut Option<Recovery>,
    now: Duration,
    ranks: &Ranks,
) -> Result<bool, EngineError> {
    let Some(recovery) = recovery else {
        return Ok(false);
    };
    recovery.call_done();
    recovery.be_patient_if_worth_keeping(now);
    Ok(recovery.due(now, ranks)?.version)
}
