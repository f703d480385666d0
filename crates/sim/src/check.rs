//! A sequence of attempts, and the conditions that must hold.

use std::sync::atomic::Ordering;

use graphmill_storage::{Disk, SimDisk, SplitMix64};

use crate::cluster::{GRAPH, RESULT, checkpoints};
use crate::fault::Faults;
use crate::reference;
use crate::scenario::Scenario;

/// The outcome of a seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeedReport {
    /// Number of attempts that failed, as expected.
    pub failed: u64,
    /// Number of failed attempts that had resumed from a checkpoint.
    pub resumed: u64,
    /// Number of operations on disks, the same for the same seed.
    pub operations: u64,
}

/// Carries out the case of a seed.
///
/// # Errors
/// The condition that does not hold.
pub fn check_seed(seed: u64) -> Result<SeedReport, String> {
    let case = Scenario::draw(seed);
    let mut story = Vec::new();
    carry_out(&case, &mut story).map_err(|what| {
        story.push(what);
        format!("seed {seed} ({case})\n  {}", story.join("\n  "))
    })
}

/// Carries out a case and adds its events to `story`, for the report of an error.
fn carry_out(case: &Scenario, story: &mut Vec<String>) -> Result<SeedReport, String> {
    let mut random = SplitMix64::new(case.seed ^ 0x5eed);
    let mut report = SeedReport::default();
    let disk = case.disk().map_err(|error| error.to_string())?;
    let disk = imported(case, disk, &mut random, &mut report)?;
    let wanted = case.undisturbed(&disk.copied(1))?;
    if let Some(what) = reference::wrong(case, &wanted) {
        return Err(format!("wrong answer: {what}"));
    }
    let memory = case.least(&disk) + case.slack;
    let mut disks: Vec<SimDisk> = match case.own_disks {
        true => (0..case.ranks as u64)
            .map(|rank| disk.copied(rank))
            .collect(),
        false => vec![disk],
    };
    let mut operations = 1000;
    // The newest checkpoint that all ranks have published.
    let mut known = 0;
    // The newest checkpoint left, from which the next attempt resumes.
    let mut newest = 0;
    for attempt in 0..=case.attempts {
        let mut faults = match attempt < case.attempts {
            true => Faults::draw(&mut random, disks.len(), case.ranks, operations),
            false => Faults::default(),
        };
        if case.buckets.is_some() {
            faults.draw_datagrams(&mut SplitMix64::new(case.seed ^ attempt as u64));
        }
        story.push(format!("attempt {attempt}: {faults}"));
        let before: u64 = disks.iter().map(SimDisk::operations).sum();
        let outcome = case.attempt(&disks, memory, &faults, random.next_u64());
        let done = disks.iter().map(SimDisk::operations).sum::<u64>() - before;
        operations = done.max(100);
        report.operations += done;
        let errors = outcome.errors(case, &wanted)?;
        let resumed = faults.resumed.load(Ordering::Relaxed);
        if errors.is_empty() {
            if resumed != newest {
                return Err(format!("it resumed from {resumed}, not from {newest}"));
            }
            // A run that was not asked for checkpoints only warns if it cannot delete them.
            let may_stay = !case.named && !faults.are_harmless();
            return match may_stay || checkpoints(&disks, case.ranks).is_empty() {
                true => Ok(report),
                false => Err("checkpoints are left".to_string()),
            };
        }
        if faults.are_harmless() {
            return Err(errors.join("\n  "));
        }
        if let Some(error) = errors.iter().find(|error| says_bug(error)) {
            return Err(error.clone());
        }
        let is_interrupted = errors.iter().all(|error| error.contains("interrupted"));
        story.extend(errors.into_iter().map(|error| format!("  {error}")));
        report.failed += 1;
        let there = checkpoints(&disks, case.ranks);
        faults.leave(&mut disks, &mut random);
        let result = disks[0].read_small(RESULT.as_ref(), u64::MAX).ok();
        if result
            .as_ref()
            .is_some_and(|result| !case.are_same(result, &wanted))
        {
            return Err("a part of a result is left".to_string());
        }
        let left = checkpoints(&disks, case.ranks);
        story.push(format!(
            "  resumed from {resumed}; checkpoints {there:?}, then {left:?}"
        ));
        // The checkpoint before the newest was published before the newest was begun.
        let before = there.iter().rev().nth(1).copied();
        known = known.max(resumed).max(before.unwrap_or_default());
        // A newer checkpoint that this attempt found and did not resume from may be one that an earlier attempt could not finish.
        if is_interrupted && there.last() > Some(&newest) {
            known = known.max(there.last().copied().unwrap_or_default());
        }
        newest = left.last().copied().unwrap_or_default();
        // Once there is a result, the run may have finished and deleted its checkpoints.
        if result.is_some() {
            return Ok(report);
        }
        if newest < known {
            return Err(format!(
                "checkpoint {known} is lost: {left:?} of {there:?} are left"
            ));
        }
        report.resumed += u64::from(resumed > 0);
    }
    Err("it never ended".to_string())
}

/// Imports the graph; the import may fail once or twice.
fn imported(
    case: &Scenario,
    disk: SimDisk,
    random: &mut SplitMix64,
    report: &mut SeedReport,
) -> Result<SimDisk, String> {
    let mut disks = vec![disk];
    for attempt in 0..=case.attempts.min(2) {
        let faults = match attempt < case.attempts.min(2) {
            true => Faults::draw(random, 1, 1, 500),
            false => Faults::default(),
        };
        let what = |what: String| format!("import {attempt} ({faults:?}): {what}");
        let outcome = case.import(&disks[0], &faults, random.next_u64());
        let errors = outcome.errors(case, &[]).map_err(what)?;
        if errors.is_empty() {
            disks[0].heal();
            break;
        }
        if faults.are_harmless() || errors.iter().any(|error| says_bug(error)) {
            return Err(what(format!("{errors:?}")));
        }
        report.failed += 1;
        faults.leave(&mut disks, random);
        // The graph has its name, but the sync of the name failed. Systems make names durable after some time, so this syncs it.
        if disks[0].exists(GRAPH.as_ref()).unwrap_or(false) {
            disks[0].heal();
            let written = disks[0].sync_dir("/".as_ref());
            written.map_err(|error| error.to_string())?;
            break;
        }
    }
    report.operations += disks[0].operations();
    disks.pop().ok_or_else(|| "no disk".to_string())
}

/// Returns true if an error reports a mistake in the program.
pub(crate) fn says_bug(error: &str) -> bool {
    ["bug", "panic", "wait for each other"]
        .iter()
        .any(|word| error.contains(word))
}
