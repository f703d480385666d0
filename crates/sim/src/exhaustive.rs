//! One small job with every fault: a power cut at each disk operation, each operation failing in each way, and changed files.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use graphmill_storage::{Disk, FaultKind, On, SimDisk, SplitMix64};

use crate::check::says_bug;
use crate::cluster::{GRAPH, Outcome, RESULT, checkpoints};
use crate::fault::{Faults, Moment, fault};
use crate::scenario::Scenario;

/// A stored graph, and the right answer.
struct StoredCase {
    case: Scenario,
    disk: SimDisk,
    wanted: Vec<u8>,
    memory: u64,
}

impl StoredCase {
    fn new(seed: u64) -> Result<StoredCase, String> {
        let case = Scenario {
            attempts: 0,
            ..Scenario::draw(seed)
        };
        let disk = case.disk().map_err(|error| error.to_string())?;
        let imported = case.import(&disk, &Faults::default(), seed);
        if !matches!(imported, Outcome::Done(_)) {
            return Err(format!("import: {imported:?}"));
        }
        let wanted = case.undisturbed(&disk.copied(1))?;
        let memory = case.least(&disk) + case.slack;
        Ok(StoredCase {
            case,
            disk,
            wanted,
            memory,
        })
    }

    /// Makes disks with the graph: one for each rank, or one for all.
    fn disks(&self) -> Vec<SimDisk> {
        let case = &self.case;
        let count = if case.own_disks { case.ranks } else { 1 };
        let numbers = 0..count as u64;
        numbers.map(|number| self.disk.copied(number)).collect()
    }

    /// Returns the errors of an attempt; none if it gave the right answer.
    fn attempt(
        &self,
        disks: &[SimDisk],
        faults: &Faults,
        seed: u64,
    ) -> Result<Vec<String>, String> {
        let outcome = self.case.attempt(disks, self.memory, faults, seed);
        outcome.errors(&self.case, &self.wanted)
    }

    /// Makes disks with the graph and what a run left that was stopped after `passes` passes.
    fn stopped_after(&self, passes: u64) -> Result<Vec<SimDisk>, String> {
        let disks = self.disks();
        self.attempt(&disks, &Faults::stopping_after(passes), 0)?;
        Ok(disks)
    }

    /// Resumes without faults, from the newest checkpoint left, and checks the answer.
    fn goes_on(&self, disks: &[SimDisk], seed: u64) -> Result<(), String> {
        let newest = checkpoints(disks, self.case.ranks).last().copied();
        let has_ended = disks[0].exists(Path::new(RESULT)).unwrap_or(false);
        let faults = Faults::default();
        let errors = self.attempt(disks, &faults, seed)?;
        if !errors.is_empty() {
            return Err(format!("{errors:?}"));
        }
        let resumed = faults.resumed.load(Ordering::Relaxed);
        match has_ended || resumed == newest.unwrap_or_default() {
            true => Ok(()),
            false => Err(format!("it resumed from {resumed}, not from {newest:?}")),
        }
    }

    /// Returns the number of operations on each disk of an attempt without faults.
    fn operations(&self) -> Result<Vec<u64>, String> {
        let disks = self.disks();
        self.goes_on(&disks, 0)?;
        Ok(disks.iter().map(SimDisk::operations).collect())
    }

    /// Calls `fails` with each disk and the numbers from 1 on, until it returns false.
    fn each_disk(
        &self,
        mut fails: impl FnMut(usize, u64) -> Result<bool, String>,
    ) -> Result<(), String> {
        for of in 0..self.disks().len() {
            let mut nth = 1;
            while fails(of, nth)? {
                nth += 1;
            }
        }
        Ok(())
    }

    /// Returns each operation on each disk.
    fn moments(&self) -> Result<impl Iterator<Item = (usize, u64)>, String> {
        let all = self.operations()?.into_iter().enumerate();
        Ok(all.flat_map(|(disk, operations)| (1..=operations).map(move |nth| (disk, nth))))
    }
}

/// Cuts power at each operation of a seed's job and resumes; returns the number of power cuts.
///
/// A power cut may leave the disk in several states; `state` is the seed that chooses one.
///
/// # Errors
/// The power cut after which the job does not end with the right answer.
pub fn every_power_cut(seed: u64, state: u64) -> Result<u64, String> {
    let job = StoredCase::new(seed)?;
    let mut count = 0;
    for (of, nth) in job.moments()? {
        let mut disks = job.disks();
        let cut = Faults::of_disk(of, fault(FaultKind::PowerCut, On::Any, nth, true));
        let what = |what: String| {
            format!("seed {seed}: power cut at {nth} of disk {of}, state {state}: {what}")
        };
        job.attempt(&disks, &cut, 0).map_err(what)?;
        disks[of] = disks[of].after_power_cut(state);
        job.goes_on(&disks, 1).map_err(what)?;
        count += 1;
    }
    Ok(count)
}

/// Makes each operation of a seed's job fail and resumes; returns the number of attempts that failed.
///
/// Each operation fails once, and in another attempt for good, in each way. The job resumes when the disk works again.
///
/// # Errors
/// The failure that is not reported as expected, or from which the job does not resume.
pub fn every_failure(seed: u64) -> Result<u64, String> {
    let job = StoredCase::new(seed)?;
    let mut count = 0;
    for (of, nth) in job.moments()? {
        for (kind, on) in [
            (FaultKind::Eio, On::Any),
            (FaultKind::Enospc, On::Write),
            (FaultKind::Enospc, On::Sync),
            (FaultKind::Eio, On::Sync),
            (FaultKind::Short, On::Any),
        ] {
            // Short transfers without end are an error.
            for for_good in [false, true] {
                let disks = job.disks();
                let faults = Faults::of_disk(of, fault(kind, on, nth, for_good));
                let what = |what: String| format!("seed {seed}: {faults}: {what}");
                let errors = job.attempt(&disks, &faults, 0).map_err(what)?;
                // There are fewer such operations, or the job does not need this one.
                if errors.is_empty() {
                    continue;
                }
                let is_bug = errors.iter().any(|error| says_bug(error));
                let names_path = errors.iter().any(|error| error.contains('/'));
                if is_bug || !names_path || (kind == FaultKind::Short && !for_good) {
                    return Err(what(format!("{errors:?}")));
                }
                disks[of].heal();
                job.goes_on(&disks, 1).map_err(what)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Makes each sync of a seed's job fail once, cuts power soon after, and resumes; returns the count.
///
/// Power is cut at one of the syncs that follow. The job resumes from durable bytes, without those whose sync failed.
///
/// # Errors
/// The failure from which the job does not resume.
pub fn every_failed_sync(seed: u64) -> Result<u64, String> {
    let job = StoredCase::new(seed)?;
    let mut count = 0;
    // There are fewer syncs once none fails.
    job.each_disk(|of, nth| {
        let mut has_failed = false;
        for later in 1..=4 {
            let mut disks = job.disks();
            let faults = Faults::of_disk(of, fault(FaultKind::Eio, On::Sync, nth, false))
                .and_of_disk(of, fault(FaultKind::PowerCut, On::Sync, nth + later, true));
            let what = |what: String| format!("seed {seed}: {faults}: {what}");
            has_failed |= !job.attempt(&disks, &faults, 0).map_err(what)?.is_empty();
            disks[of] = disks[of].after_power_cut(later);
            job.goes_on(&disks, 1).map_err(what)?;
            count += 1;
        }
        Ok(has_failed)
    })?;
    Ok(count)
}

/// Makes each sync and all after it fail, cuts power in the next attempt, and resumes.
///
/// The power cut hits a sync of the next attempt. Bytes that the first attempt did not make durable may be lost then, but no checkpoint
/// that all ranks had written. Returns the number of power cuts.
///
/// # Errors
/// The power cut that lost a checkpoint, or after which the run does not resume.
pub fn every_cut_going_on(seed: u64) -> Result<u64, String> {
    let job = StoredCase::new(seed)?;
    let mut count = 0;
    // There are fewer syncs once none fails.
    job.each_disk(|of, nth| {
        let mut has_failed = false;
        for (sync, state) in (1..=3).flat_map(|sync| (0..4).map(move |state| (sync, state))) {
            let mut disks = job.disks();
            let failing = Faults::of_disk(of, fault(FaultKind::Eio, On::Sync, nth, true));
            let cut = Faults::of_disk(of, fault(FaultKind::PowerCut, On::Sync, sync, true));
            let what =
                |what: String| format!("seed {seed}: {failing}, then {cut}, state {state}: {what}");
            let mut known = 0;
            for (is_first, faults) in [(true, &failing), (false, &cut)] {
                let errors = job.attempt(&disks, faults, state).map_err(what)?;
                has_failed |= is_first && !errors.is_empty();
                disks[of].heal();
                // Perhaps not all ranks published the newest.
                let there = checkpoints(&disks, job.case.ranks);
                known = known.max(there.iter().rev().nth(1).copied().unwrap_or_default());
            }
            disks[of] = disks[of].after_power_cut(state);
            let left = checkpoints(&disks, job.case.ranks).last().copied();
            let has_ended = disks[0].exists(Path::new(RESULT)).unwrap_or(false);
            if left.unwrap_or_default() < known && !has_ended {
                return Err(what(format!(
                    "checkpoint {known} is lost: {left:?} is left"
                )));
            }
            job.goes_on(&disks, 1).map_err(what)?;
            count += 1;
        }
        Ok(has_failed)
    })?;
    Ok(count)
}

/// Stops a run after a checkpoint, and resumes it until the next stop, while one name operation fails.
///
/// Each name operation fails in turn. No earlier checkpoint may be lost. Returns the number of operations.
///
/// # Errors
/// The operation that lost a checkpoint, or after which the run does not resume.
pub fn every_failed_name(seed: u64) -> Result<u64, String> {
    let job = StoredCase::new(seed)?;
    let stopped = job.stopped_after(2)?;
    let before = checkpoints(&stopped, job.case.ranks).last().copied();
    if before.is_none() {
        return Err(format!("seed {seed}: nothing was published"));
    }
    let mut count = 0;
    for of in 0..stopped.len() {
        // Some of all operations are name operations.
        let copies = || -> Vec<_> { stopped.iter().map(|disk| disk.copied(0)).collect() };
        let whole = copies();
        job.attempt(&whole, &Faults::stopping_after(1), 0)?;
        for nth in 1..=whole[of].operations() {
            let disks = copies();
            let faults = Faults::stopping_after(1)
                .and_of_disk(of, fault(FaultKind::Eio, On::Name, nth, false));
            let what = |what: String| format!("seed {seed}: {faults}: {what}");
            let has_ended = job.attempt(&disks, &faults, 0).map_err(what)?.is_empty();
            disks[of].heal();
            let after = checkpoints(&disks, job.case.ranks).last().copied();
            if after < before && !has_ended {
                return Err(what(format!("of checkpoint {before:?} {after:?} is left")));
            }
            job.goes_on(&disks, 1).map_err(what)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Asks each rank to stop at each moment of a run, and resumes; returns the number of stops.
///
/// The run ends at the next point where it can, with a checkpoint of all its work.
///
/// # Errors
/// The moment after which the run does not end with such a checkpoint, or does not resume.
pub fn every_wish(seed: u64) -> Result<u64, String> {
    let job = StoredCase::new(seed)?;
    let mut count = 0;
    for rank in 0..job.case.ranks {
        // The calls after which it has ended: each call, if it is asked between calls, and many, if it is asked during a call.
        let mut places = 0;
        for at in [Moment::Look, Moment::Operation] {
            // From some moment on the run ends before it reads the request.
            let (mut has_ended, mut of_checkpoints) = (false, BTreeSet::new());
            for nth in 1.. {
                let faults = Faults::asking(rank, nth, at);
                let what = |what: String| format!("seed {seed}: {faults}: {what}");
                let disks = job.disks();
                let errors = job.attempt(&disks, &faults, 0).map_err(what)?;
                let is_interruption = |error: &String| error.starts_with("interrupted");
                if !errors.is_empty() && (has_ended || !errors.iter().all(is_interruption)) {
                    return Err(what(format!("{errors:?}")));
                }
                has_ended |= errors.is_empty();
                let operations = disks.iter().map(SimDisk::operations).max();
                if has_ended && Some(nth) >= operations {
                    break;
                }
                of_checkpoints.extend(checkpoints(&disks, job.case.ranks).last().copied());
                disks.iter().for_each(SimDisk::heal);
                if !has_ended {
                    job.goes_on(&disks, 1).map_err(what)?;
                    count += 1;
                }
            }
            if 2 * of_checkpoints.len() < places {
                return Err(format!(
                    "seed {seed}: rank {rank}, asked at each {at:?}, ends with {of_checkpoints:?} alone"
                ));
            }
            places = of_checkpoints.len();
        }
    }
    Ok(count)
}

/// Stops a run on disks without locks and resumes; true if the case names a checkpoint directory.
///
/// Only then does the run write checkpoints.
///
/// # Errors
/// There is a checkpoint without a named directory or none with one, or the run does not resume.
pub fn without_locks(seed: u64) -> Result<bool, String> {
    let job = StoredCase::new(seed)?;
    let disks = job.disks();
    disks
        .iter()
        .for_each(|disk| disk.lose_locks(Path::new("/")));
    job.attempt(&disks, &Faults::stopping_after(2), 0)?;
    let there = checkpoints(&disks, job.case.ranks);
    if there.is_empty() == job.case.named {
        return Err(format!("seed {seed}: there are {there:?}"));
    }
    job.goes_on(&disks, 1)?;
    Ok(job.case.named)
}

/// Loses all datagrams from one rank of a seed in buckets, to all ranks or to one.
///
/// Returns false if the seed has not several ranks in buckets.
///
/// # Errors
/// A rank does not end with an error, or names none of the two ranks.
pub fn silent_peer(seed: u64) -> Result<bool, String> {
    let case = StoredCase::new(seed)?;
    if case.case.buckets.is_none() || case.case.ranks == 1 {
        return Ok(false);
    }
    let to_one = (1..case.case.ranks).flat_map(|rank| [(rank, Some(0)), (0, Some(rank))]);
    for (from, to) in to_one.chain([(0, None), (1, None)]) {
        let errors = case.attempt(&case.disks(), &Faults::cutting(from, to), seed)?;
        let names = |error: &String, rank: usize| error.contains(&format!("rank {rank} is lost"));
        let ranks = match to {
            Some(to) => vec![from, to],
            // Of two ranks each may be the silent one.
            None if case.case.ranks == 2 => vec![0, 1],
            None => vec![from],
        };
        let is_named = |error: &String| ranks.iter().any(|rank| names(error, *rank));
        if errors.len() != case.case.ranks || !errors.iter().all(is_named) {
            return Err(format!("seed {seed}, from {from} to {to:?}: {errors:?}"));
        }
    }
    Ok(true)
}

/// Changes files of the graph and of a checkpoint; returns the numbers of changes and of errors.
///
/// Each of `numbers` is a change: bits, lengths, another file's bytes, or earlier bytes. A change without an error had no effect.
///
/// # Errors
/// The change that had an effect and no error.
pub fn mutations(seed: u64, numbers: Range<u64>) -> Result<(u64, u64), String> {
    let job = StoredCase::new(seed)?;
    // A run that was stopped between passes, and one pass earlier.
    let (earlier, stopped) = (job.stopped_after(1)?, job.stopped_after(2)?);
    let (earlier, others) = (&earlier[0], &stopped[1..]);
    let stopped = &stopped[0];
    let files = files(stopped, Path::new("/"));
    let mut of_checkpoints = files.clone();
    of_checkpoints.retain(|path| !path.starts_with(GRAPH));
    let read = |disk: &SimDisk, path: &Path| disk.read_small(path, u64::MAX).unwrap_or_default();
    let (count, mut noticed) = (numbers.end - numbers.start, 0);
    for number in numbers {
        let mut random = SplitMix64::new(seed << 32 | number);
        let mut disks: Vec<SimDisk> = others.iter().map(|disk| disk.copied(number)).collect();
        disks.insert(0, stopped.copied(number));
        let disk = &disks[0];
        let among = [&files, &of_checkpoints][random.below(2) as usize];
        let path = &among[random.below(among.len() as u64) as usize];
        let mut bytes = read(disk, path);
        let other = &files[random.below(files.len() as u64) as usize];
        match random.below(6) {
            0 | 1 if !bytes.is_empty() => {
                // Most data is at the beginning or at the end, with zeros between.
                let among = 8 << random.below(u64::from(bytes.len().ilog2()) + 1);
                let bit = random.below(among);
                let byte = match random.below(2) {
                    0 => bit as usize / 8,
                    _ => bytes.len() - 1 - bit as usize / 8,
                };
                bytes[byte] ^= 1 << (bit % 8);
            }
            2 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
            3 => bytes = read(disk, other),
            4 => bytes = read(earlier, path),
            _ => {
                // A sector that was never written, or written elsewhere.
                let from = read(disk, other);
                let at = random.below(bytes.len() as u64 + 1) as usize / 512 * 512;
                let end = (at + 512).min(bytes.len()).min(from.len()).max(at);
                let end = end.min(bytes.len());
                if at < end && end <= from.len() {
                    bytes[at..end].copy_from_slice(&from[at..end]);
                } else {
                    bytes[at..].fill(0);
                }
            }
        }
        disk.write_small(path, &bytes)
            .map_err(|error| error.to_string())?;
        let what =
            |what: String| format!("seed {seed}: change {number} of {}: {what}", path.display());
        let errors = job.attempt(&disks, &Faults::default(), 1).map_err(what)?;
        if errors.iter().any(|error| says_bug(error)) {
            return Err(what(format!("{errors:?}")));
        }
        noticed += u64::from(!errors.is_empty());
    }
    Ok((count, noticed))
}

/// Returns all files below a directory that a run reads or resumes from.
fn files(disk: &SimDisk, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in disk.list(dir).unwrap_or_default() {
        if disk.is_dir(&path).unwrap_or(false) {
            found.extend(files(disk, &path));
        } else if path != Path::new(RESULT) && path != Path::new(crate::cluster::EDGES) {
            found.push(path);
        }
    }
    found
}
