//! Calls of the driver, run or replayed, and the checkpoints between them.
//!
//! The engine writes a checkpoint at the driver's next call, or when it makes no more calls. The driver has then dropped the
//! sets that it does not need, and has checked the results of its calls for errors.

use std::time::Duration;

use graphmill_fabric::{FabricError, protocol_error};
use graphmill_raw::lock;

use crate::checkpoint::checkpointer::{Checkpointer, ResumeInfo};
use crate::checkpoint::snapshot::{LogPage, Snapshot};
use crate::comm::communicator::Communicator;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::program::current_call::catch;
use crate::value::Reduce;

impl Engine {
    /// Runs one call of the driver, or replays it: returns its logged result and sets.
    ///
    /// A call takes one pass or several, and counts as `passes` if it is replayed. A resumed run replays the logged results up to its
    /// checkpoint and does no work. `name` identifies the call.
    pub(crate) fn logged_passes<S: Reduce, const N: usize>(
        &mut self,
        passes: u64,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<(S, [ActiveSet; N]), EngineError>,
    ) -> Result<(S, [ActiveSet; N]), EngineError> {
        let is_within = self.active.history().is_within();
        self.logged_call(passes, name, |engine| match is_within {
            true => work(engine),
            false => catch(|| work(engine)).map_err(|error| engine.with_ids(error)),
        })
    }

    /// Runs one call of the driver whose work may fail with another error.
    pub(crate) fn logged_call<S: Reduce, const N: usize, E: From<EngineError>>(
        &mut self,
        passes: u64,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<(S, [ActiveSet; N]), E>,
    ) -> Result<(S, [ActiveSet; N]), E> {
        if self.active.history().is_within() {
            return work(self);
        }
        let answer = self.active.history().answer(name)?;
        if let Some(payload) = answer {
            self.metrics.counted += passes;
            let mut payload = &payload[..];
            let misfit = || EngineError::from(protocol_error());
            let sum = S::take(&mut payload).ok_or_else(misfit)?;
            let mut sets = [(); N].map(|()| self.active.empty());
            for set in &mut sets {
                set.restore_or_register(u64::take(&mut payload).ok_or_else(misfit)?)?;
            }
            return Ok((sum, sets));
        }
        if self.broken {
            return Err(EngineError::Broken.into());
        }
        self.common.ranks.compare_call(name)?;
        self.checkpoint_if_due()?;
        self.active.history().enter();
        let done = work(self);
        self.active.history().leave();
        let (sum, mut sets) = done?;
        let mut payload = Vec::new();
        sum.put(&mut payload);
        for set in &mut sets {
            let total = set.len();
            total.put(&mut payload);
            set.restore_or_register(total)?;
        }
        self.active.history().note(name, &payload);
        self.recovery.iter_mut().for_each(Checkpointer::call_done);
        Ok((sum, sets))
    }

    /// Adds the ids of the vertices to the error of a program that panicked, if they can be read.
    pub(crate) fn with_ids(&mut self, mut error: EngineError) -> EngineError {
        if let EngineError::ProgramPanicked { vertices, ids, .. } = &mut error {
            self.broken = true;
            let (graph, mut frames) = (&self.stored.graph, lock(&self.common.frames));
            let id_of = |v: &u64| Some(graph.id_of(&mut frames, *v).ok()?.to_string());
            *ids = vertices.iter().map_while(id_of).collect();
        }
        error
    }

    /// Runs a call of many passes that may end between two of them ([`Engine::is_pause_due`]).
    ///
    /// It resumes with the sets that it returned. Returns the logged result and the sets. `N` passes count as `N` in a replay.
    pub(crate) fn logged_many<S: Reduce, const N: usize>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<(S, [ActiveSet; N]), EngineError>,
    ) -> Result<(S, [ActiveSet; N]), EngineError> {
        let mut is_replaying = true;
        let ((passes, payload), sets) = self.logged_passes(0, name, |engine| {
            is_replaying = false;
            let before = engine.metrics.counted;
            let (payload, sets) = work(engine)?;
            Ok(((engine.metrics.counted - before, payload), sets))
        })?;
        if is_replaying {
            self.metrics.counted += passes;
        }
        Ok((payload, sets))
    }

    /// Counts a pass of a call of many passes.
    ///
    /// Returns true if the call has to end, and the next one with it, to write a checkpoint.
    pub(crate) fn is_pause_due(&mut self) -> Result<bool, EngineError> {
        let now = self.common.clock.now();
        pauses(&mut self.recovery, now, &self.common.ranks)
    }

    /// Logs a decision that depends on free memory or the like and is no pass; a resumed run replays it.
    pub(crate) fn logged_decision(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<bool, EngineError>,
    ) -> Result<bool, EngineError> {
        let answer = self.active.history().answer(name)?;
        if let Some(payload) = answer {
            return Ok(payload == [1]);
        }
        self.checkpoint_if_due()?;
        let decided = work(self)?;
        self.active.history().note(name, &[u8::from(decided)]);
        self.recovery.iter_mut().for_each(Checkpointer::decided);
        Ok(decided)
    }

    /// Prepares a call that is not replayed.
    ///
    /// Restores the rows of the checkpoint once its whole log is replayed, or writes a checkpoint if one is due.
    fn checkpoint_if_due(&mut self) -> Result<(), EngineError> {
        let Some(recovery) = self.recovery.as_mut() else {
            return Ok(());
        };
        let common = &mut self.common;
        let Some(io) = common.row_io.first() else {
            return Ok(());
        };
        if self.broken {
            // The state after a failed pass is no checkpoint.
            return Err(EngineError::Broken);
        }
        if let Some(found) = recovery.found.take() {
            (common.arrays).restore(&found.record.arrays, &mut lock(io))?;
        }
        let clock = &common.settings.clock;
        let due = recovery.due(clock.now(), &common.ranks)?;
        recovery.defer_cancel_if_worth_keeping(clock.now());
        let published = if due.version { self.publish() } else { Ok(()) };
        match published {
            // Another rank with the same request may have ended already, once all have the checkpoint.
            Ok(()) | Err(EngineError::Fabric(FabricError::Lost { .. })) if due.end => {
                Err(EngineError::Stopped)
            }
            published => published,
        }
    }

    /// Writes a checkpoint of the current state.
    fn publish(&mut self) -> Result<(), EngineError> {
        let (arrays, ranks) = (&self.common.arrays, &self.common.ranks);
        let io = self.common.row_io.first();
        let (Some(recovery), Some(io)) = (&mut self.recovery, io) else {
            return Ok(());
        };
        let history = self.active.history();
        let (entries, number) = (&history.entries.0, history.count);
        let pages = recovery.begin()?;
        arrays.save_log(entries, pages, &mut lock(io))?;
        let full = pages.len() * arrays.pages().page_bytes();
        let log = LogPage {
            checksum: crc32fast::hash(entries),
            pages: pages.clone(),
            rest: entries[full..].to_vec(),
        };
        drop(history);
        let mut record = Snapshot {
            number,
            log,
            arrays: arrays.save(&mut lock(io))?,
            ..Snapshot::default()
        };
        arrays.pages().sync()?;
        let sets = self.active.of_driver();
        let oldest = recovery.publish(ranks, &mut record, &sets, || self.common.clock.now())?;
        arrays.published(record.number, record.slots(), oldest);
        Ok(())
    }
}

/// Does work outside of passes as one call of the driver, and returns its number.
///
/// A resumed run that did the work before its checkpoint does not do it again.
///
/// # Errors
/// The errors of the work; a checkpoint cannot be written or resumed from.
pub fn logged_work<E: From<EngineError>>(
    engine: &mut Engine,
    name: &str,
    work: impl FnOnce(&mut Engine) -> Result<u64, E>,
) -> Result<u64, E> {
    if engine.active.history().is_ended {
        engine.common.ranks.compare_call(name)?;
        return work(engine);
    }
    let (number, []) = engine.logged_call(0, name, |engine| Ok::<_, E>((work(engine)?, [])))?;
    Ok(number)
}

/// Saves a run in memory that ended and was cancelled before its result was written.
///
/// Returns true if it is saved.
///
/// # Errors
/// The checkpoint cannot be written.
pub fn keep_ended(engine: &mut Engine) -> Result<bool, EngineError> {
    let now = engine.common.clock.now();
    let is_kept = |recovery: &Checkpointer| recovery.is_worth_keeping(now);
    // Others of several ranks may wait for rows.
    let is_kept = engine.common.ranks.alone() && engine.recovery.as_ref().is_some_and(is_kept);
    if is_kept {
        engine.publish()?;
    }
    Ok(is_kept)
}

/// Returns the checkpoint that the run resumed from, if it did.
#[must_use]
pub fn resumed(engine: &Engine) -> Option<&ResumeInfo> {
    engine.recovery.as_ref()?.resumed.as_ref()
}

/// True if the run has checkpoints.
#[must_use]
pub fn has_published(engine: &Engine) -> bool {
    let recovery = engine.recovery.as_ref();
    recovery.is_some_and(|recovery| !recovery.published.is_empty())
}

/// Ends the driver's calls: rows and members of sets may be read from now on.
///
/// The driver must have made all logged calls of the run that it resumes: a result before that has no rows.
/// `name` identifies the call that ends them.
///
/// # Errors
/// The driver made fewer calls and so is another program; the last checkpoint cannot be written; the user cancelled; or
/// another rank makes another call.
pub fn end_calls(engine: &mut Engine, name: &str) -> Result<(), EngineError> {
    if engine.active.history().is_replaying() {
        return Err(EngineError::OtherRun {
            what: "the program ends before the checkpoint of that run",
        });
    }
    engine.common.ranks.compare_call(name)?;
    engine.checkpoint_if_due()?;
    engine.active.history().is_ended = true;
    if let Some(recovery) = &mut engine.recovery {
        // No call follows: work may end at any time.
        recovery.patience = None;
    }
    Ok(())
}

/// Deletes all checkpoints: the run has succeeded.
///
/// # Errors
/// The disk failed.
pub fn finish_checkpoints(engine: &mut Engine) -> Result<(), EngineError> {
    if let Some(recovery) = engine.recovery.take() {
        recovery.finish()?;
        // Where one stays, so do its pages.
        engine.common.arrays.forget_versions();
    }
    Ok(())
}

/// As above, of the checkpoints alone.
pub(crate) fn pauses(
    recovery: &mut Option<Checkpointer>,
    now: Duration,
    ranks: &Communicator,
) -> Result<bool, EngineError> {
    let Some(recovery) = recovery else {
        return Ok(false);
    };
    recovery.call_done();
    recovery.defer_cancel_if_worth_keeping(now);
    Ok(recovery.due(now, ranks)?.version)
}
