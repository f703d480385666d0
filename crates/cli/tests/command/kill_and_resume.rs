//! Kills runs after a checkpoint, and resumes them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::{graphmill, succeed};

/// The words of a run that publishes checkpoints.
pub(crate) fn words<'w>(run: &'w str, more: &'w str) -> Vec<&'w str> {
    let words = run.split(' ').chain(more.split(' '));
    words.filter(|word| !word.is_empty()).collect()
}

pub(crate) const CHECKPOINTS: &str = "-q --checkpoint-dir checkpoints --checkpoint-every 1";

/// The files of checkpoints that there are in the directory that was named.
pub(crate) fn checkpoints(folder: &Path) -> Vec<PathBuf> {
    checkpoints_in(&folder.join("checkpoints"))
}

/// The files of checkpoints that there are in a directory of checkpoints.
pub(crate) fn checkpoints_in(folder: &Path) -> Vec<PathBuf> {
    let in_folder = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_version = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with("checkpoint-") && !name.ends_with("partial"))
    };
    let ranks = in_folder(folder).into_iter();
    let all = ranks.flat_map(|rank| in_folder(&rank));
    all.filter(is_version).collect()
}

/// Kills a run after a number of checkpoints. True if it lived that long.
pub(crate) fn kill_after(folder: &Path, run: &str, published: usize) -> bool {
    let resumed = format!("{CHECKPOINTS} --resume -o found.csv");
    let mut child = graphmill()
        .args(words(run, &resumed))
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut seen = BTreeSet::new();
    loop {
        // The checkpoints of all ranks have the same names.
        seen.extend(
            checkpoints(folder)
                .iter()
                .filter_map(|path| Some(path.file_name()?.to_owned())),
        );
        if seen.len() > published {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
            return true;
        }
        if let Some(status) = child.try_wait().expect("it is a child") {
            assert!(status.success(), "{run}: {status}");
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Runs that may end before a checkpoint of theirs is seen.
const TRIES: usize = 20;

/// Kills a run after each of its checkpoints, `most` times at most; returns the number of kills.
///
/// It must end with the bytes of a run that was not killed.
pub(crate) fn check_kills(folder: &Path, run: &str, most: usize) -> usize {
    succeed(folder, &words(run, "-q -o wanted.csv"));
    // Each resumes from the checkpoints of the one before, and publishes at least one more on all ranks.
    let mut kills = 0;
    let published = |kills: usize| match kills < most {
        true => kills.min(1) + 1,
        false => usize::MAX,
    };
    // A short run may end between two looks at its folder, so it has several tries.
    for _ in 0..TRIES {
        while kill_after(folder, run, published(kills)) {
            kills += 1;
        }
        if kills > 0 {
            break;
        }
    }
    assert!(kills > 0, "{run}: no checkpoint seen in {TRIES} runs");
    assert!(is_same(folder), "{run}");
    assert!(!folder.join("checkpoints").exists(), "{run} left versions");
    std::fs::remove_file(folder.join("found.csv")).expect("it is removed");
    kills
}

/// Whether a run gave what was wanted.
pub(crate) fn is_same(folder: &Path) -> bool {
    let read = |name| std::fs::read(folder.join(name)).expect("a result");
    read("found.csv") == read("wanted.csv")
}
