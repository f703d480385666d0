//! A killed run resumes from the newest checkpoint, and ends with the bytes of one that was not killed.
//!
//! No other run takes its checkpoints.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use crate::interrupt::{end, start, wait_for};
use crate::kill_and_resume::{
    CHECKPOINTS, check_kills, checkpoints, checkpoints_in, is_same, kill_after, words,
};
use crate::{call, fail, graphmill, names, succeed};

/// A stored graph whose rows and messages are on disk with 20 MiB a rank, and do fit with more.
fn graph(folder: &Path) {
    let rule = "generate kronecker 19 4 --undirected --weights f32 -q -o graph --batch-size 16384";
    succeed(folder, &rule.split(' ').collect::<Vec<_>>());
}

#[test]
fn resume_after_kill_keeps_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    for run in [
        "run pagerank graph --iterations 8 --memory 16M --threads 1",
        "run pagerank graph --iterations 8 --threads 2",
        "run pagerank graph --iterations 8 --ranks 3 --memory 62M --threads 3",
        "run pagerank graph --iterations 8 --method pregel-pull --memory 18M --threads 2",
        "run bfs graph --source 0 --memory 19M --threads 1 --parents",
        "run bfs graph --source 0 --threads 2 --sparse always",
        "run wcc graph --method labels --memory 19M --threads 1",
        "run wcc graph --threads 2",
        "run sssp graph --source 0 --memory 16M --threads 1",
        "run sssp graph --source 0 --method bellman-ford --ranks 2 --memory 43M --threads 2",
        "run bfs graph --source 0 --threads 2 --place edges=dram --parents",
        "run sssp graph --source 0 --threads 2 --place edges=dram",
        "run pagerank graph --iterations 8 --method pregel-push --threads 1",
        "run pagerank graph --iterations 8 --method pregel-push --combiner hybrid --threads 1",
    ] {
        check_kills(folder, run, usize::MAX);
    }
}

#[test]
fn resume_continues_the_pass_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 12 --memory 16M --threads 1";
    assert!(kill_after(folder, run, 4));
    let resume = "--checkpoint-dir checkpoints --checkpoint-every 1 --resume -o found.csv";
    let said = crate::told(folder, &words(run, resume));
    let pass = said.split("pass ").nth(1).expect("a pass");
    let (number, rest) = pass.split_once(' ').expect("its number");
    let number: u64 = number.parse().expect("a number");
    // Four checkpoints take at least four calls, and one of these is over vertices only.
    assert!((4..=12).contains(&number), "{said}");
    assert!(rest.starts_with("of at most 12: "), "{said}");
    assert!(said.contains("12 iterations"), "{said}");
}

#[test]
fn checkpoints_of_another_run_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 8 --memory 16M --threads 1";
    assert!(kill_after(folder, run, 2));
    for (other, said) in [
        (
            format!("{run} --damping 0.5"),
            "--damping as usual, not 0.5",
        ),
        (run.replace("8", "9"), "--iterations 8, not 9"),
        (
            run.replace("pagerank graph --iterations 8", "wcc graph"),
            "algorithm pagerank, not wcc",
        ),
        (
            run.replace("16M --threads 1", "80M --threads 2 --ranks 2"),
            "ranks 1, not 2",
        ),
    ] {
        let said_then = fail(
            folder,
            2,
            &words(&other, &format!("{CHECKPOINTS} --resume")),
        );
        assert!(said_then.contains(said), "{other}: {said_then}");
    }
    let said = fail(folder, 2, &words(run, CHECKPOINTS));
    assert!(
        said.contains("there are checkpoints of a run of pagerank already; give --resume"),
        "{said}"
    );
    // Checkpoints of another format are none of this program's.
    let name = folder.join("checkpoints/rank-00000/run.json");
    let text = std::fs::read_to_string(&name).expect("a name");
    let older = text.replace("\"format\": 5", "\"format\": 1");
    assert_ne!(older, text);
    std::fs::write(&name, older).expect("it is written");
    let said = fail(folder, 2, &words(run, &format!("{CHECKPOINTS} --resume")));
    assert!(said.contains("format 1, not 5"), "{said}");
    std::fs::write(&name, "{").expect("it is written");
    let said = fail(folder, 2, &words(run, &format!("{CHECKPOINTS} --resume")));
    let todo = "remove the directory to start over";
    assert!(
        said.contains("run.json does not name the run") && said.contains(todo),
        "{said}"
    );
    std::fs::write(&name, text).expect("it is written");
    // And with another graph of that name.
    std::fs::remove_dir_all(folder.join("graph")).expect("it is removed");
    let rule = "generate kronecker 19 5 --undirected -q -o graph --batch-size 16384";
    succeed(folder, &words(rule, ""));
    let said = fail(folder, 2, &words(run, &format!("{CHECKPOINTS} --resume")));
    assert!(said.contains("the run there has graph"), "{said}");
}

#[test]
fn checkpoint_damage_is_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 8 --memory 16M --threads 1";
    succeed(folder, &words(run, "-q -o wanted.csv"));
    assert!(kill_after(folder, run, 3));
    let of_rank = folder.join("checkpoints/rank-00000");
    let rows = of_rank.join("rows");
    let good = std::fs::read(&rows).expect("pages");
    let bad: Vec<u8> = good.iter().map(|byte| byte ^ 4).collect();
    std::fs::write(&rows, bad).expect("it is written");
    let resumed = format!("{CHECKPOINTS} --resume -o found.csv");
    let is_refused = || {
        let said = fail(folder, 1, &words(run, &resumed));
        assert!(said.contains("no checkpoint there is undamaged"), "{said}");
    };
    is_refused();
    std::fs::write(&rows, good).expect("it is written");
    let damage = |version: &Path| {
        let mut bytes = std::fs::read(version).expect("a version");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(version, bytes).expect("it is written");
    };
    let there = checkpoints(folder);
    there.iter().for_each(|version| damage(version));
    is_refused();
    there.iter().for_each(|version| damage(version));
    // Where two are kept, the run resumes from the one before.
    let kept = "--checkpoints 2";
    assert!(kill_after(folder, &format!("{run} {kept}"), 3));
    let newest = checkpoints(folder).into_iter().max().expect("a version");
    assert!(checkpoints(folder).len() >= 2);
    damage(&newest);
    let output = call(folder, &words(run, &format!("{kept} {resumed}")));
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("resumes from the checkpoint before"),
        "{said}"
    );
    assert!(is_same(folder));
}

#[test]
fn checkpoint_damage_is_reported_per_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 8 --ranks 2 --memory 42M --threads 2";
    succeed(folder, &words(run, "-q -o wanted.csv"));
    assert!(kill_after(folder, &format!("{run} --checkpoints 3"), 4));
    let mut of_rank = checkpoints(folder);
    of_rank.retain(|path| path.starts_with(folder.join("checkpoints/rank-00001")));
    let newest = of_rank.into_iter().max().expect("a version");
    let mut bytes = std::fs::read(&newest).expect("a version");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&newest, bytes).expect("it is written");
    let other = format!("{run} --alpha 7");
    let said = fail(
        folder,
        2,
        &words(&other, &format!("{CHECKPOINTS} --resume")),
    );
    assert!(said.contains("--alpha as usual, not 7"), "{said}");
    // A kill between two ranks may have left one checkpoint on the other rank alone, which no run resumes from.
    let output = call(
        folder,
        &words(
            run,
            &format!("--checkpoints 3 {CHECKPOINTS} --resume -o found.csv"),
        ),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let name = newest.file_name().expect("a name").to_string_lossy();
    let wanted = format!("rank-00001/{name} of rank 1: it is not what was written");
    assert!(said.contains(&wanted), "{wanted}: {said}");
    assert!(is_same(folder));
}

#[test]
fn checkpoint_directory_in_use_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 4 --memory 16M --threads 1 -o found.csv";
    let long = run.replace("4 ", "100000 ");
    let theirs = folder.join("checkpoints/rank-00000/theirs.txt");
    let elsewhere = folder.join("elsewhere");
    for is_linked in [false, true] {
        std::fs::create_dir_all(folder.join("checkpoints")).expect("a folder");
        match is_linked {
            false => std::fs::create_dir(theirs.parent().expect("a folder")),
            true => std::fs::create_dir(&elsewhere).and_then(|()| {
                std::os::unix::fs::symlink("../elsewhere", folder.join("checkpoints/rank-00000"))
            }),
        }
        .expect("a folder");
        std::fs::write(&theirs, "theirs").expect("it is written");
        let said = fail(folder, 2, &words(run, CHECKPOINTS));
        assert!(
            said.contains("theirs.txt for checkpoints: it is a file of no run"),
            "{said}"
        );
        assert_eq!(
            std::fs::read_to_string(&theirs).expect("it is there"),
            "theirs"
        );
        assert!(checkpoints(folder).is_empty());
        // What came there meanwhile stays as well.
        std::fs::remove_file(&theirs).expect("it is removed");
        if is_linked {
            let said = fail(folder, 1, &words(&long, CHECKPOINTS));
            assert!(said.contains("it is a symbolic link"), "{said}");
            std::fs::remove_dir_all(folder.join("checkpoints")).expect("it is removed");
            continue;
        }
        let mut child = graphmill()
            .args(words(&long, CHECKPOINTS))
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        while checkpoints(folder).is_empty() {
            assert!(child.try_wait().expect("it is a child").is_none());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::write(&theirs, "theirs").expect("it is written");
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        let said = fail(folder, 2, &words(&long, &format!("{CHECKPOINTS} --resume")));
        assert!(
            said.contains("theirs.txt for checkpoints: it is a file of no run"),
            "{said}"
        );
        std::fs::remove_dir_all(folder.join("checkpoints")).expect("it is removed");
    }
    // Nor in the graph, or where parts of the result go.
    for (more, said) in [
        ("--checkpoint-dir graph", "is in a stored graph"),
        ("--checkpoint-dir graph/checkpoints", "is in a stored graph"),
    ] {
        let told = fail(folder, 2, &words(run, more));
        assert!(told.contains(said), "{told}");
    }
    let parts = run.replace("found.csv", "parts/");
    let told = fail(folder, 2, &words(&parts, "--checkpoint-dir parts"));
    assert!(told.contains("the result goes there"), "{told}");
    // And what none are published for is not asked for.
    for more in ["--resume", "--checkpoint-dir checkpoints"] {
        let told = fail(folder, 2, &words(run, &format!("--checkpoints 0 {more}")));
        assert!(told.contains("requires --checkpoints 1 or more"), "{told}");
    }
    assert!(!folder.join("checkpoints").exists() && unnamed(folder).is_empty());
}

/// The directories of checkpoints that no user named.
fn unnamed(folder: &Path) -> Vec<String> {
    let mut names = names(folder);
    names.retain(|name| name.starts_with(".graphmill-checkpoints-"));
    names
}

#[test]
fn resume_on_disk_takes_the_same_command_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 60 --memory 16M --threads 1";
    succeed(folder, &words(run, "-q -o wanted.csv"));
    assert_eq!(
        unnamed(folder),
        [""; 0],
        "of a run that ended nothing is left"
    );
    let published = || {
        let folders = unnamed(folder).into_iter();
        let all = folders.flat_map(|name| checkpoints_in(&folder.join(name)));
        all.collect::<BTreeSet<_>>()
    };
    let mut kills = 0;
    loop {
        let before = published();
        let mut child = graphmill()
            .args(words(run, "-o found.csv"))
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // One is published every second, or less often where the machine is slow.
        while child.try_wait().expect("it is a child").is_none() && published().is_subset(&before) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it is killed");
        let mut said = String::new();
        let stderr = child.stderr.as_mut().expect("a pipe");
        stderr.read_to_string(&mut said).expect("text");
        let ended = child.wait().expect("it ends");
        assert_eq!(
            said.contains("resuming the interrupted run"),
            kills > 0,
            "{said}"
        );
        if ended.success() {
            break;
        }
        kills += 1;
        assert_eq!(unnamed(folder).len(), 1);
    }
    assert!(kills > 0 && is_same(folder), "{kills} kills");
    assert_eq!(unnamed(folder), [""; 0]);
}

#[test]
fn resume_lists_other_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 100000000 --memory 16M --threads 1";
    let mut child = graphmill()
        .args(words(run, "-q -o found.csv"))
        .current_dir(folder)
        .spawn()
        .expect("the command starts");
    let published = || {
        let folders = unnamed(folder).into_iter();
        folders
            .flat_map(|name| checkpoints_in(&folder.join(name)))
            .count()
    };
    while published() == 0 {
        assert!(child.try_wait().expect("it is a child").is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let output = call(
        folder,
        &words(&run.replace("100000000", "2"), "--resume -o found.csv"),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let of = &unnamed(folder)[0];
    let wanted = format!("{of} has --iterations 100000000, not 2");
    assert!(said.contains(&wanted), "{wanted}: {said}");
}

#[test]
fn resume_after_signal_keeps_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    for (run, again) in [
        (
            "run pagerank graph --iterations 40 --memory 16M --threads 1",
            "",
        ),
        (
            "run pagerank graph --iterations 100 --threads 2 --checkpoint-dir checkpoints",
            "--resume",
        ),
        (
            "run pagerank graph --iterations 40 --memory 80M --threads 2 --ranks 2 --resume",
            "",
        ),
    ] {
        succeed(folder, &words(run, "-q -o wanted.csv"));
        for signal in ["INT", "TERM", "USR1"] {
            let interrupted = start(folder, &words(run, &format!("-o found.csv {again}")));
            let said = end_in_pass(interrupted, &[signal]);
            assert!(said.contains("interrupted; the same command"), "{said}");
            assert!(said.contains("resumes"), "{said}");
        }
        succeed(folder, &words(run, &format!("-q -o found.csv {again}")));
        assert!(is_same(folder), "{run}");
        assert_eq!(names(folder), ["found.csv", "graph", "wanted.csv"]);
    }
}

/// Sends signals when the first passes are done; what was said after that.
pub(crate) fn end_in_pass(
    (child, mut said): (Child, BufReader<ChildStderr>),
    signals: &[&str],
) -> String {
    wait_for("pass", &mut said);
    end(signals, child, said)
}

#[test]
fn checkpoint_directory_takes_one_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 100000000 --memory 16M --threads 1";
    let named = "-o found.csv --checkpoint-dir checkpoints";
    let first = start(folder, &words(run, named));
    while !folder.join("checkpoints/rank-00000/run.json").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let said = fail(folder, 2, &words(run, &format!("{named} --resume")));
    assert!(
        said.contains("another run writes its checkpoints"),
        "{said}"
    );
    // A directory that no user named is left to its holder.
    let short = "run pagerank graph --iterations 3 --memory 16M --threads 1";
    succeed(folder, &words(short, "-q -o wanted.csv"));
    let said = end_in_pass(first, &["INT", "INT"]);
    assert!(said.contains("interrupted"), "{said}");
}

#[test]
fn checkpoints_disabled_write_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 100000000 --memory 16M --threads 1 --checkpoints 0";
    let said = end_in_pass(start(folder, &words(run, "-o found.csv")), &["INT"]);
    assert!(said.contains("nothing was left behind"), "{said}");
    assert_eq!(names(folder), ["graph"]);
}

/// All files in a directory, in order of names, with their bytes.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let of = |name: String| {
        let path = folder.join(&name);
        match path.is_dir() {
            true => files(&path),
            false => vec![(name, std::fs::read(&path).expect("a file"))],
        }
    };
    names(folder).into_iter().flat_map(of).collect()
}

#[test]
fn resume_of_interrupted_run_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(
        folder,
        &words("generate kronecker 14 8 --weights f32 -q -o graph", ""),
    );
    for (run, unnamed_after) in [
        (
            "run pagerank graph --iterations 1000000000 --threads 2 -o found.csv",
            1,
        ),
        (
            "run pagerank graph --iterations 1000000000 --threads 2 --ranks 2 --weighted",
            2,
        ),
        (
            "run pagerank graph --iterations 1000000000 --threads 1 --method pregel-pull",
            3,
        ),
        (
            "run pagerank graph --iterations 1000000000 --threads 2 --method pregel-push",
            4,
        ),
    ] {
        let mut calls = 0;
        for signal in ["INT", "TERM", "TERM"] {
            let (child, mut said) = start(folder, &words(run, ""));
            let mut before = String::new();
            while !before
                .lines()
                .last()
                .is_some_and(|line| line.contains("pass"))
            {
                assert!(said.read_line(&mut before).expect("a line") > 0, "{before}");
            }
            let goes_on = before.split_once("interrupted run, after ");
            let after = goes_on.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            assert!(
                calls == 0 || after.is_some_and(|after: u64| after >= calls),
                "{before}"
            );
            calls = after.unwrap_or(1);
            // It has worked for longer than a second then.
            std::thread::sleep(Duration::from_millis(1500));
            let rest = end(&[signal], child, said);
            assert!(
                rest.contains("interrupted; the same command resumes"),
                "{rest}"
            );
            assert!(rest.contains(&format!("graphmill {run}")), "{rest}");
            assert_eq!(unnamed(folder).len(), unnamed_after);
        }
    }
}
