//! Killed right before each sync, rename, removal and reservation of space, the command goes on to the same bytes.
//!
//! `strace` kills it there, so that it is the command as it is built, and nothing in it knows of the test.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::resume::{files, words};
use crate::{graphmill, names, succeed};

/// The system calls around which something is there or is not.
const CALLS: [&str; 7] = [
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink,unlinkat,rmdir",
    "fallocate",
];

/// Points of a kind that are tried one by one; of those behind them every third.
const EACH: u64 = 12;

/// An import with which goes what one that had come to its end left.
const OTHER: &str = "import edges.el -o other";

/// Whether `strace` can trace here.
fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    let tried = strace.args(["-o", "/dev/null", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

/// Runs the command, killed at the `nth` of some system calls; whether it came to its end.
fn killed(folder: &Path, run: &str, calls: &str, nth: u64) -> bool {
    // Counted for each thread.
    let inject = format!("inject={calls}:signal=KILL:when={nth}");
    let graphmill = graphmill();
    let done = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("trace={calls}"))
        .args(["-e", &inject])
        .arg(graphmill.get_program())
        .args(words(run, "-q --io threads"))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let done = done.expect("strace starts");
    assert!(done.success() || done.signal() == Some(9), "{run}: {done}");
    done.success()
}

#[test]
fn from_each_point_the_command_goes_on() {
    if !can_trace() {
        eprintln!("skipped: strace is not installed, or not allowed here");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rule = "generate kronecker 12 4 --undirected -q --batch-size 512 -o";
    succeed(folder, &words(rule, "graph"));
    succeed(folder, &words("generate kronecker 12 4 -q -o", "edges.el"));
    let mut kills = 0;
    for (run, output) in [
        (
            "run pagerank graph --iterations 3 --threads 1 --checkpoint-dir versions --checkpoint-every 1 --resume -o",
            "ranks.csv",
        ),
        (
            "run wcc graph --method labels --threads 2 --ranks 2 --checkpoint-dir versions --checkpoint-every 1 --checkpoints 2 --resume -o",
            "components.csv",
        ),
        (
            "import edges.el --threads 1 --checkpoint-every 0s -o",
            "found",
        ),
        (
            "import edges.el --order degree --reverse --ids string --threads 2 --ranks 2 --checkpoint-every 0s -o",
            "by-degree",
        ),
    ] {
        let path = folder.join(output);
        let bytes = || match path.is_dir() {
            true => files(&path),
            false => vec![(String::new(), std::fs::read(&path).expect("a result"))],
        };
        let remove = || {
            let gone = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            gone.expect("it is removed");
        };
        let command = format!("{run} {output}");
        succeed(folder, &words(&command, "-q"));
        let wanted = bytes();
        remove();
        for calls in CALLS {
            let points = (1..=EACH).chain((EACH..1000).step_by(3));
            for nth in points {
                if killed(folder, &command, calls, nth) {
                    assert!(bytes() == wanted, "{command}: {calls} {nth}");
                    remove();
                    break;
                }
                kills += 1;
                // It may have been killed when all that was left was to clean up.
                let is_there = path.exists();
                if is_there {
                    assert!(bytes() == wanted, "{command}: left by {calls} {nth}");
                    if command.starts_with("import") {
                        succeed(folder, &words(OTHER, "-q"));
                        assert_eq!(names(folder).len(), 4, "{command}: {calls} {nth}");
                        std::fs::remove_dir_all(folder.join("other")).expect("a graph");
                    }
                    remove();
                }
                succeed(folder, &words(&command, "-q"));
                assert!(bytes() == wanted, "{command}: after {calls} {nth}");
                remove();
                assert_eq!(
                    names(folder),
                    ["edges.el", "graph"],
                    "{command}: after {calls} {nth}"
                );
            }
        }
    }
    assert!(kills >= 50, "{kills} kills");
}
