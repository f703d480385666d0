//! Killed right before each sync, rename, removal and reservation of space, the command resumes to the same bytes.
//!
//! `strace` kills it there, so that it is the command as it is built, and nothing in it knows of the test.

use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::interrupt::{send, wait_for};
use crate::kill_and_resume::words;
use crate::resume::files;
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

/// The system calls that publish a checkpoint.
const OF_PASSES: [&str; 2] = ["renameat2", "rename"];

/// Points of a kind that are tried one by one; of those behind them every third.
const EACH: u64 = 12;

/// An import that removes what a finished one left.
const OTHER: &str = "import edges.el -o other";

/// Whether `strace` can trace here.
fn can_trace() -> bool {
    let mut strace = Command::new("strace");
    let tried = strace.args(["-o", "/dev/null", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

/// Runs the command, with what happens at some system calls, and when, of each thread.
fn traced(folder: &Path, run: &str, calls: &str, what: &str) -> Output {
    let graphmill = graphmill();
    let done = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("trace={calls}"))
        .args(["-e", &format!("inject={calls}:{what}")])
        .arg(graphmill.get_program())
        .args(words(run, "-q --io threads"))
        .current_dir(folder)
        .output();
    done.expect("strace starts")
}

/// Runs the command, killed at the `nth` of some system calls; whether it came to its end.
fn killed(folder: &Path, run: &str, calls: &str, nth: u64) -> bool {
    let done = traced(folder, run, calls, &format!("signal=KILL:when={nth}")).status;
    assert!(done.success() || done.signal() == Some(9), "{run}: {done}");
    done.success()
}

#[test]
fn resume_after_kill_at_each_system_call() {
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
            "run pagerank graph --precision fixed --iterations 6 --threads 2 --ranks 2 --executor bucket --link udp --checkpoint-dir checkpoints --checkpoint-every 1 --resume -o",
            "sums.csv",
        ),
        (
            "run pagerank graph --iterations 3 --threads 1 --checkpoint-dir checkpoints --checkpoint-every 1 --resume -o",
            "ranks.csv",
        ),
        (
            "run wcc graph --method labels --threads 2 --ranks 2 --checkpoint-dir checkpoints --checkpoint-every 1 --checkpoints 2 --resume -o",
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
        let all = match run.contains("bucket") {
            true => &OF_PASSES[..],
            false => &CALLS,
        };
        for calls in all {
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

#[test]
fn interrupted_system_calls_are_retried() {
    if !can_trace() {
        eprintln!("skipped: strace is not installed, or not allowed here");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let import = "import edges.el --checkpoint-every 0s --tmp . -o graph";
    let run = "run pagerank graph --iterations 3 --threads 2 --checkpoint-dir checkpoints --checkpoint-every 1 -o ranks.csv";
    succeed(folder, &words("generate kronecker 10 4 -q -o", "edges.el"));
    succeed(folder, &words(import, "-q"));
    succeed(folder, &words(run, "-q"));
    let wanted = (
        files(&folder.join("graph")),
        std::fs::read(folder.join("ranks.csv")).expect("a result"),
    );
    for calls in ["flock", "fsync", "fdatasync", "ftruncate", "fallocate"] {
        std::fs::remove_dir_all(folder.join("graph")).expect("it is removed");
        for command in [import, run] {
            // Every other one.
            let done = traced(folder, command, calls, "error=EINTR:when=1+2");
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{calls}: {command}: {said}");
        }
        let found = (
            files(&folder.join("graph")),
            std::fs::read(folder.join("ranks.csv")).expect("a result"),
        );
        assert!(found == wanted, "{calls}");
    }
}

#[test]
fn stuck_disk_is_reported_and_two_signals_end() {
    if !can_trace() {
        eprintln!("skipped: strace is not installed, or not allowed here");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rule = "generate kronecker 12 4 -q --batch-size 512 -o";
    succeed(folder, &words(rule, "graph"));
    let graphmill = graphmill();
    let run = "run pagerank graph --iterations 100000 --threads 1 --place edges=stream --io threads -o ranks.csv";
    // Reads take minutes from the 200th on.
    let mut tracer = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64"])
        .args(["-e", "inject=pread64:delay_enter=300s:when=200+"])
        .arg(graphmill.get_program())
        .args(words(run, ""))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("strace starts");
    let mut said = BufReader::new(tracer.stderr.take().expect("a pipe"));
    wait_for("the disk has completed nothing for 20 s", &mut said);
    let children = format!("/proc/{0}/task/{0}/children", tracer.id());
    let children = std::fs::read_to_string(children).expect("the tracer's children");
    let command = children.trim().parse().expect("one child");
    send("INT", command);
    // The command says this whether or not it can write a checkpoint.
    wait_for("once more to ", &mut said);
    send("INT", command);
    // The tracer holds the thread that reads for as long as its read takes: the command has ended before.
    let stat = format!("/proc/{command}/stat");
    let asked = Instant::now();
    while !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")) {
        assert!(asked.elapsed() < Duration::from_secs(60), "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    tracer.kill().expect("the tracer is killed");
    tracer.wait().expect("it ends");
}
