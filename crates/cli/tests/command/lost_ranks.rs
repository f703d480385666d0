//! Ranks that `mpirun` started and that are lost: one that is killed, that hangs, or whose disk is full ends the job, and nothing looks whole
//! that is not. Skipped without Open MPI.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kill_and_resume::checkpoints;
use crate::mpi::{job, mpirun, plugin};
use crate::mpirun::{Ended, end_of, ranks_of};
use crate::{call, names, succeed};

/// Options of a run whose messages go by UDP.
const IN_BUCKETS: [&str; 4] = ["--executor", "bucket", "--link", "udp"];

/// A job that has begun, with stderr in a pipe.
fn start(mut mpirun: Command) -> Child {
    mpirun.stdout(Stdio::null()).stderr(Stdio::piped());
    mpirun.spawn().expect("mpirun starts")
}

/// The same, of `ranks` ranks.
fn started(at: &Path, ranks: usize, arguments: &[&str]) -> Child {
    start(job(at, ranks, arguments))
}

/// The process of a rank, once a file whose name begins so is there.
fn rank_once(mpirun: u32, rank: usize, folder: &Path, begins: &str) -> u32 {
    let started = Instant::now();
    let is_rank = |process: &u32| rank_of(*process) == Some(rank);
    loop {
        assert!(started.elapsed() < Duration::from_secs(60), "ranks start");
        if names(folder).iter().any(|name| name.starts_with(begins))
            && let Some(found) = ranks_of(mpirun).into_iter().find(is_rank)
        {
            return found;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Stops a rank as if it hung, and gives back what the job said when it ended.
fn said_without(at: &Path, silent: usize, begins: &str, arguments: &[&str]) -> String {
    let mpirun = started(at, 4, arguments);
    let hung = rank_once(mpirun.id(), silent, at, begins).to_string();
    let stopped = Command::new("kill").args(["-STOP", &hung]).status();
    assert!(stopped.expect("kill starts").success());
    let ended = end_of(mpirun);
    let (said, took) = (&ended.said, ended.took);
    assert!(!ended.has_succeeded(), "{said}");
    assert!(took < Duration::from_secs(30), "{took:?}: {said}");
    println!(
        "{arguments:?} ended {:.1} s after rank {silent} was stopped",
        took.as_secs_f64()
    );
    ended.said
}

#[test]
fn hung_rank_is_named_and_ends_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    succeed(at, &["generate", "kronecker", "14", "16", "-o", "graph"]);
    succeed(
        at,
        &["generate", "kronecker", "18", "16", "-o", "k.el", "-q"],
    );
    let run = ["run", "pagerank", "graph", "--iterations", "1000000", "-q"];
    let import = ["import", "k.el", "-q", "--undirected", "-o"];
    for (silent, begins, arguments) in [
        (1, ".graphmill-run", [&run[..], &["-o", "r.csv"]].concat()),
        (0, ".graphmill-run", [&run[..], &["-o", "r.csv/"]].concat()),
        (
            2,
            ".graphmill-run",
            [&run[..], &IN_BUCKETS, &["-o", "r.csv"]].concat(),
        ),
        (2, ".graphmill-import", [&import[..], &["new"]].concat()),
        (0, ".graphmill-import", [&import[..], &["new"]].concat()),
    ] {
        let said = said_without(at, silent, begins, &arguments);
        let is_in_buckets = arguments.contains(&"bucket");
        for rank in (0..4).filter(|rank| *rank != silent) {
            let told = format!("rank {rank}: error: rank {silent} is lost: ");
            let (_, cause) = said.split_once(&told).unwrap_or_default();
            let is_silent = cause.starts_with("nothing was heard of it")
                || (is_in_buckets && cause.starts_with("it acknowledged no bucket"));
            assert!(is_silent, "{arguments:?}: {said}");
        }
        // All but the one that hung has cleaned up; what that one left goes with the next job.
        let mut left = names(at);
        left.retain(|name| {
            let is_left = name.starts_with(".graphmill");
            if is_left {
                // Or the next rank would be stopped by the sight of it, before MPI has started.
                std::fs::remove_dir_all(at.join(name)).expect("it goes");
            }
            !is_left
        });
        assert_eq!(left, ["graph", "k.el", "plugin.so"]);
    }
}

/// A job of four ranks: one starts by other means.
fn with_one_by(at: &Path, one: usize, by: &[&str], arguments: &[&str], of_one: &[&str]) -> Command {
    let mut mpirun = mpirun(at);
    for rank in 0..4 {
        if rank > 0 {
            mpirun.arg(":");
        }
        mpirun.args(["-n", "1"]);
        if rank == one {
            mpirun.args(by);
        }
        mpirun.arg(env!("CARGO_BIN_EXE_graphmill")).args(arguments);
        if rank == one {
            mpirun.args(of_one);
        }
    }
    mpirun
}

/// A job that has to fail, since a rank could not write: all ranks have to say which, and where.
fn fails_since(job: Command, full: usize, what: &str) {
    let ended = end_of(start(job));
    let said = &ended.said;
    assert!(!ended.has_succeeded(), "rank {full}: {said}");
    let signal = ended.status.and_then(|status| status.signal());
    assert!(signal.is_none(), "{said}");
    for rank in 0..4 {
        let told = match rank == full {
            true => format!("rank {rank}: error: cannot "),
            false => format!("rank {rank}: error: rank {full} is lost: cannot "),
        };
        let line = said.lines().find(|line| line.contains(&told));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{told}: {said}"
        );
    }
}

/// A file system that goes with the test.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[test]
fn full_disk_of_one_rank_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    succeed(at, &["generate", "kronecker", "14", "16", "-o", "graph"]);
    succeed(
        at,
        &["generate", "kronecker", "15", "16", "-o", "k.el", "-q"],
    );
    let known = names(at);
    let import = ["import", "k.el", "-o", "new", "-q", "--batch-size", "1000"];
    let run = ["run", "bfs", "graph", "--source", "0", "-q", "-o"];
    let too_large = "File too large";
    for (full, bytes) in [(0, "4096"), (1, "131072"), (3, "65536")] {
        let limited = ["prlimit", &format!("--fsize={bytes}")];
        fails_since(
            with_one_by(at, full, &limited, &import, &[]),
            full,
            too_large,
        );
        assert_eq!(names(at), known, "rank {full}, {bytes} bytes");
    }
    for full in [0, 3] {
        let limited = ["prlimit", "--fsize=0"];
        let run = [&run[..], &["r.csv/"]].concat();
        fails_since(with_one_by(at, full, &limited, &run, &[]), full, too_large);
        assert_eq!(names(at), known, "rank {full}");
    }
    // The first rank writes the one file.
    let run = [&run[..], &["r.csv"]].concat();
    fails_since(
        with_one_by(at, 0, &["prlimit", "--fsize=0"], &run, &[]),
        0,
        too_large,
    );
    assert_eq!(names(at), known);

    // A disk of its own that is full.
    std::fs::create_dir(at.join("small")).expect("a folder");
    let image = tempfile::NamedTempFile::new().expect("a file");
    image.as_file().set_len(256 << 10).expect("its length");
    let done = |program, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).arg(image.path()).arg(at.join("small"));
        command.output().is_ok_and(|output| output.status.success())
    };
    let made = Command::new("mkfs.ext2")
        .args(["-q", "-F", "-N", "64"])
        .arg(image.path())
        .output();
    let is_made = made.is_ok_and(|output| output.status.success());
    if !is_made || !done("mount", &["-o", "loop"]) {
        println!("skipped: a small disk, which only root may mount");
        return;
    }
    let job = with_one_by(at, 1, &[], &import, &["--tmp", "small"]);
    let mounted = Mounted(at.join("small"));
    fails_since(job, 1, "No space left on device");
    let mut left = names(&mounted.0);
    left.retain(|name| name != "lost+found");
    drop(mounted);
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_dir(at.join("small")).expect("it goes");
    assert_eq!(names(at), known);
}

#[test]
fn killed_rank_leaves_all_parts_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    succeed(
        at,
        &["generate", "kronecker", "16", "8", "-o", "graph", "-q"],
    );
    let run = ["run", "wcc", "graph", "-q", "-o"];
    succeed(at, &[&run[..], &["one.csv"]].concat());
    let (mut whole, mut none) = (0, 0);
    for kill in 0..12 {
        let mpirun = started(at, 3, &[&run[..], &["r.csv/"]].concat());
        let victim = rank_once(mpirun.id(), kill % 3, at, ".graphmill-result").to_string();
        std::thread::sleep(Duration::from_millis(kill as u64 * 3));
        // It may be gone by now.
        let killed = Command::new("kill").args(["-9", &victim]).output();
        assert!(killed.is_ok());
        end_of(mpirun);
        if names(at).contains(&"r.csv".to_string()) {
            whole += 1;
            succeed(at, &["validate", "r.csv", "one.csv", "--rule", "exact"]);
            std::fs::remove_dir_all(at.join("r.csv")).expect("it goes");
        } else {
            none += 1;
        }
    }
    println!("{whole} whole, {none} not there");
    succeed(at, &[&run[..], &["r.csv/"]].concat());
    assert_eq!(names(at), ["graph", "one.csv", "plugin.so", "r.csv"]);
}

#[test]
fn waiting_rank_ends_on_a_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let mut mpirun = mpirun(at);
    mpirun
        .args(["-n", "1", env!("CARGO_BIN_EXE_graphmill")])
        .args(["run", "wcc", "graph", ":", "-n", "1", "sleep", "600"]);
    succeed(at, &["generate", "grid", "5", "5", "-q", "-o", "graph"]);
    let child = start(mpirun);
    let waits = rank_once(child.id(), 0, at, "graph").to_string();
    // From when on it hears of it, and some time to get where it waits.
    let hears = || {
        let status = std::fs::read_to_string(format!("/proc/{waits}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask >> 14 & 1 == 1)
    };
    let begun = Instant::now();
    while !hears() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it hears");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(500));
    let asked = Command::new("kill").arg(&waits).status();
    assert!(asked.is_ok_and(|status| status.success()));
    let said = end_of(child).said;
    assert!(said.contains("waited for other ranks to start"), "{said}");
}

/// How often ranks are killed in a test: more where it is asked for.
fn kills(usual: u64) -> u64 {
    let asked = std::env::var("GRAPHMILL_KILLS").ok();
    asked.and_then(|kills| kills.parse().ok()).unwrap_or(usual)
}

/// Which rank a process is, as Open MPI has it know.
fn rank_of(process: u32) -> Option<usize> {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let mut variables = environment.split('\0');
    let rank = variables.find_map(|set| set.strip_prefix("OMPI_COMM_WORLD_RANK="));
    rank.and_then(|rank| rank.parse().ok())
}

/// Kills.
#[derive(Default)]
struct Kills {
    count: u64,
    /// From a kill to the end of the last rank, at most.
    longest: Duration,
    /// Jobs that were done before.
    late: u64,
    /// Jobs whose `mpirun` did not name the killed rank, as Open MPI 4.1 sometimes does.
    unsaid: u64,
}

impl Kills {
    /// Kills one of three ranks some time after all have started.
    ///
    /// The rule for that time does not depend on the job's state.
    fn kill(&mut self, at: &Path, arguments: &[&str]) {
        let kill = self.count;
        self.count += 1;
        let mpirun = started(at, 3, arguments);
        let started = Instant::now();
        let ranks = loop {
            let ranks = ranks_of(mpirun.id()).into_iter();
            let ranks: Vec<_> = ranks
                .filter_map(|process| Some((rank_of(process)?, process)))
                .collect();
            if ranks.len() == 3 {
                break ranks;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "ranks start");
            std::thread::sleep(Duration::from_millis(5));
        };
        std::thread::sleep(Duration::from_millis(37 * (kill * 7 % 41)));
        let (rank, victim) = ranks[kill as usize % 3];
        let killed = Command::new("kill")
            .args(["-9", &victim.to_string()])
            .output();
        assert!(killed.is_ok());
        let Ended { status, said, took } = end_of(mpirun);
        assert!(took < Duration::from_secs(30), "kill {kill}: {took:?}");
        self.longest = self.longest.max(took);
        match status {
            Some(status) if status.success() => self.late += 1,
            Some(status) => {
                assert!(status.signal().is_none(), "{status}: {said}");
                let named = format!("process rank {rank} with PID");
                let is_said = said.contains("mpirun noticed");
                assert!(!is_said || said.contains(&named), "{named}: {said}");
                assert!(!is_said || said.contains("signal 9"), "{said}");
                self.unsaid += u64::from(!is_said);
            }
            None => {}
        }
    }

    fn tell(&self) {
        let Kills {
            count,
            longest,
            late,
            unsaid,
        } = self;
        let seconds = longest.as_secs_f64();
        println!(
            "{count} kills, at most {seconds:.1} s from a kill to the end of the last rank; {late} came too late; of {unsaid} mpirun said nothing"
        );
        assert!(late < count && (unsaid * 4 <= *count || *count < 16));
    }
}

#[test]
fn killed_rank_ends_the_job_without_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let kills = kills(4);
    succeed(at, &["generate", "kronecker", "14", "16", "-o", "graph"]);
    let mut killed = Kills::default();
    for kill in 0..kills {
        // Long enough to be killed at any point of it.
        let asked = ["run", "pagerank", "graph", "--iterations", "100000", "-q"];
        let output = ["r.csv", "r.csv/"][kill as usize % 2];
        let way = [&["--place", "edges=stream"], &IN_BUCKETS[..]][kill as usize / 2 % 2];
        let asked = [&asked[..], way, &["-o", output]].concat();
        killed.kill(at, &asked);
        assert!(!names(at).iter().any(|name| name.starts_with("r.csv")));
    }
    killed.tell();
    assert_eq!(killed.late, 0);
    // What the killed left goes with the next run.
    let output = call(at, &["run", "pagerank", "graph", "-q", "-o", "r.csv"]);
    assert!(output.status.success());
    assert!(!names(at).iter().any(|name| name.starts_with(".graphmill")));
}

/// The newest checkpoint that all ranks have; 0 is none.
fn newest(at: &Path, ranks: usize) -> u64 {
    let name = |path: PathBuf| path.file_name()?.to_str().map(str::to_string);
    let number = |name: String| name.strip_prefix("checkpoint-")?.parse::<u64>().ok();
    let there = checkpoints(at).into_iter().filter_map(name);
    let there: Vec<u64> = there.filter_map(number).collect();
    let of_all = |version: &&u64| there.iter().filter(|other| other == version).count() == ranks;
    there.iter().filter(of_all).max().copied().unwrap_or(0)
}

/// The checkpoint that a job said it resumes from.
fn went_on_with(said: &str) -> u64 {
    let after = said.split_once("interrupted run, after ");
    let number = after.and_then(|(_, rest)| rest.split_once(" calls"));
    number.map_or(0, |(number, _)| number.parse().expect("a number"))
}

#[test]
fn job_resumes_after_kills_to_same_bytes() {
    const RANKS: usize = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let kills = kills(12);
    succeed(at, &["generate", "kronecker", "15", "16", "-o", "graph"]);
    let iterations = (20 * kills + 40).to_string();
    let run = ["run", "pagerank", "graph", "--iterations", &iterations];
    succeed(at, &[&run[..], &["-q", "-o", "wanted.csv"]].concat());
    let checkpoints = ["--checkpoint-dir", "checkpoints", "--checkpoint-every", "1"];
    let asked = [&run[..], &checkpoints, &["--resume", "-o", "found.csv"]].concat();
    let read = |name: &str| std::fs::read(at.join(name)).expect("a result");
    let (mut last, mut count) = (0, 0);
    for kill in 0..kills {
        let mut mpirun = started(at, RANKS, &asked);
        let begun = Instant::now();
        let (published, ranks) = loop {
            let published = newest(at, RANKS);
            // A few passes further, as many as come before anybody looks.
            let is_due = published >= last + 1 + kill % 3;
            let ranks = if is_due {
                ranks_of(mpirun.id())
            } else {
                Vec::new()
            };
            let has_ended = mpirun.try_wait().expect("it is a child").is_some();
            if has_ended || ranks.len() == RANKS {
                break (published, ranks);
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "they publish");
            std::thread::sleep(Duration::from_millis(1));
        };
        let is_asked = kill % 4 == 3;
        let signal = if is_asked { "-USR1" } else { "-KILL" };
        // Each rank is killed, and each is asked.
        if let Some(one) = ranks.get((kill + kill / 4) as usize % RANKS) {
            let sent = Command::new("kill")
                .args([signal, &one.to_string()])
                .output();
            assert!(sent.is_ok());
        }
        let Ended { status, said, .. } = end_of(mpirun);
        assert_eq!(went_on_with(&said), last, "{said}");
        if at.join("found.csv").exists() {
            // On a busy machine it may have ended before the kill.
            break;
        }
        count += 1;
        assert!(!status.is_some_and(|status| status.success()), "{said}");
        last = newest(at, RANKS);
        assert!(last >= published, "{last} of {published}");
        if is_asked {
            // All end, since one was asked to.
            assert!(said.contains("with --resume resumes"), "{said}");
            assert!(
                status.is_none_or(|status| status.code() == Some(130)),
                "{said}"
            );
        }
    }
    assert!(count >= kills / 2, "{count} of {kills} in time");
    let has_ended = at.join("found.csv").exists();
    let Ended { status, said, .. } = end_of(started(at, RANKS, &asked));
    assert!(status.is_none_or(|status| status.success()), "{said}");
    assert!(has_ended || went_on_with(&said) == last, "{said}");
    assert!(read("found.csv") == read("wanted.csv"), "other bytes");
    assert_eq!(names(at), ["found.csv", "graph", "plugin.so", "wanted.csv"]);
}

#[test]
fn killed_rank_of_import_leaves_whole_graph_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let kills = kills(4);
    succeed(
        at,
        &["generate", "kronecker", "18", "16", "-o", "k.el", "-q"],
    );
    let import = ["import", "k.el", "--ids", "string", "-q", "-o", "graph"];
    let mut killed = Kills::default();
    for _ in 0..kills {
        let late = killed.late;
        killed.kill(at, &import);
        let is_there = at.join("graph").exists();
        assert!(is_there || late == killed.late);
        if is_there {
            succeed(at, &["verify", "graph"]);
            std::fs::remove_dir_all(at.join("graph")).expect("it goes");
        }
    }
    killed.tell();
    // What the killed left goes with the next import.
    succeed(at, &import);
    assert_eq!(names(at), ["graph", "k.el", "plugin.so"]);
}
