//! A run that was killed goes on with the newest version, and ends with the bytes of one that was not; no other run takes its versions.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::{call, fail, graphmill, succeed};

/// A stored graph whose rows and messages are on disk with 23 MiB, and do fit with more.
fn graph(folder: &Path) {
    let rule = "generate kronecker 17 8 --undirected --weights f32 -q -o graph --batch-size 4096";
    succeed(folder, &rule.split(' ').collect::<Vec<_>>());
}

/// The words of a run that publishes versions.
fn words<'w>(run: &'w str, more: &'w str) -> Vec<&'w str> {
    let words = run.split(' ').chain(more.split(' '));
    words.filter(|word| !word.is_empty()).collect()
}

const VERSIONS: &str = "-q --checkpoint-dir versions --checkpoint-every 1";

/// The files of versions that there are.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let in_folder = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_version = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with("version-") && !name.ends_with("partial"))
    };
    let ranks = in_folder(&folder.join("versions")).into_iter();
    let all = ranks.flat_map(|rank| in_folder(&rank));
    all.filter(is_version).collect()
}

/// Kills a run when it has published so many versions; whether it lived so long.
fn kill_after(folder: &Path, run: &str, published: usize) -> bool {
    let resumed = format!("{VERSIONS} --resume -o found.csv");
    let mut child = graphmill()
        .args(words(run, &resumed))
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut seen = std::collections::BTreeSet::new();
    loop {
        // Those of all ranks have the same names.
        seen.extend(
            versions(folder)
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

#[test]
fn a_killed_run_ends_with_the_bytes_of_one_that_was_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let mut kills = 0;
    for run in [
        "run pagerank graph --iterations 8 --memory 23M --threads 1",
        "run pagerank graph --iterations 8 --threads 2",
        "run pagerank graph --iterations 8 --ranks 3 --memory 80M --threads 3",
        "run pagerank graph --iterations 8 --method pregel-pull --threads 2",
        "run bfs graph --source 1 --memory 23M --threads 1 --parents",
        "run bfs graph --source 1 --threads 2 --seek always",
        "run wcc graph --method labels --memory 23M --threads 1",
        "run wcc graph --threads 2",
        "run sssp graph --source 1 --memory 26M --threads 1",
        "run sssp graph --source 1 --method bellman-ford --ranks 2 --memory 80M --threads 2",
    ] {
        succeed(folder, &words(run, "-q -o wanted.csv"));
        // Each goes on with what the one before published, and publishes one more at least, on all ranks.
        while kill_after(folder, run, 2) {
            kills += 1;
        }
        let read = |name| std::fs::read(folder.join(name)).expect("a result");
        assert!(read("found.csv") == read("wanted.csv"), "{run}");
        assert!(!folder.join("versions").exists(), "{run} left versions");
        std::fs::remove_file(folder.join("found.csv")).expect("it is removed");
    }
    assert!(kills >= 30, "{kills} kills");
}

#[test]
fn no_other_run_goes_on_with_the_versions_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 8 --memory 23M --threads 1";
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
            run.replace("23M --threads 1", "80M --threads 2 --ranks 2"),
            "ranks 1, not 2",
        ),
    ] {
        let said_then = fail(folder, 2, &words(&other, &format!("{VERSIONS} --resume")));
        assert!(said_then.contains(said), "{other}: {said_then}");
    }
    let said = fail(folder, 2, &words(run, VERSIONS));
    assert!(
        said.contains("there are versions of a run of pagerank already"),
        "{said}"
    );
    let said = fail(folder, 2, &words(run, "-q --resume"));
    assert!(said.contains("--checkpoint-dir"), "{said}");
    // And with another graph of that name.
    std::fs::remove_dir_all(folder.join("graph")).expect("it is removed");
    let rule = "generate kronecker 17 9 --undirected -q -o graph --batch-size 4096";
    succeed(folder, &words(rule, ""));
    let said = fail(folder, 2, &words(run, &format!("{VERSIONS} --resume")));
    assert!(said.contains("the run there has graph"), "{said}");
}

#[test]
fn a_page_or_a_version_that_was_changed_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    graph(folder);
    let run = "run pagerank graph --iterations 8 --memory 23M --threads 1";
    succeed(folder, &words(run, "-q -o wanted.csv"));
    assert!(kill_after(folder, run, 3));
    let of_rank = folder.join("versions/rank-00000");
    let rows = of_rank.join("rows");
    let good = std::fs::read(&rows).expect("pages");
    let bad: Vec<u8> = good.iter().map(|byte| byte ^ 4).collect();
    std::fs::write(&rows, bad).expect("it is written");
    let resumed = format!("{VERSIONS} --resume -o found.csv");
    let said = fail(folder, 1, &words(run, &resumed));
    assert!(said.contains("rows") && said.contains("byte"), "{said}");
    std::fs::write(&rows, good).expect("it is written");
    // Of a version that is not what was written nothing is used.
    let version = versions(folder).pop().expect("a version");
    let mut bytes = std::fs::read(&version).expect("a version");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&version, bytes).expect("it is written");
    let output = call(folder, &words(run, &resumed));
    assert!(output.status.success());
    let read = |name| std::fs::read(folder.join(name)).expect("a result");
    assert!(read("found.csv") == read("wanted.csv"));
}
