//! The algorithms are killed ten times on one rank and on four, and end with the bytes of a run that was not killed.

use std::path::Path;

use tempfile::TempDir;

use crate::kill_and_resume::{check_kills, words};
use crate::succeed;

/// Kills of a run in memory, on one rank and on four.
const KILLS: usize = 10;
/// Kills at most of a run whose rows are on disk.
const KILLS_ON_DISK: usize = 3;

/// Runs on the small graph until each run was killed ten times, and on the large one in little memory.
fn check(folder: &Path, run: &str, least: u32) {
    for machine in ["--threads 2", "--ranks 4 --memory 96M --threads 4"] {
        let run = format!("{run} {machine}");
        let mut kills = 0;
        while kills < KILLS {
            kills += check_kills(folder, &run, KILLS - kills);
        }
    }
    let run = run.replace("small", "large");
    let run = format!("{run} --memory {least}M --threads 1");
    check_kills(folder, &run, KILLS_ON_DISK);
}

/// Makes a small and a large graph with these options, and files of their vertices.
fn folder([small, large]: [u32; 2], options: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (scale, name) in [(small, "small"), (large, "large")] {
        let rule = format!("generate kronecker {scale} 3 -q -o {name} {options}");
        succeed(folder.path(), &words(&rule, ""));
    }
    let write = |name, column, value: fn(u64) -> f64| {
        let row = |v| format!("{v},{}\n", value(v));
        let rows: String = (0..1 << small).step_by(3).map(row).collect();
        let text = format!("vertex,{column}\n{rows}");
        std::fs::write(folder.path().join(name), text).expect("room");
    };
    write("set.csv", "depth", |v| v as f64);
    write("vector.csv", "x", |v| (v % 7) as f64 - 2.5);
    write("priors.csv", "p", |v| (v % 11) as f64 / 10.0);
    folder
}

#[test]
fn kills_keep_components_sets_and_communities() {
    let folder = folder([13, 16], "--batch-size 2048");
    for run in [
        "run scc small",
        "run cdlp small",
        "run mis small --seed 2",
        "run mis small --priority id",
    ] {
        check(folder.path(), run, 14);
    }
}

#[test]
fn kills_keep_forests_and_sums() {
    let folder = folder([13, 16], "--batch-size 2048 --weights f32");
    for run in [
        "run mst small",
        "run spmv small --vector vector.csv",
        "run spmv small --vector vector.csv --transpose",
        "run conductance small --set set.csv --weighted",
    ] {
        check(folder.path(), run, 14);
    }
}

#[test]
fn kills_keep_beliefs() {
    let options = "--batch-size 4096 --weights f32 --edge-vertices";
    let folder = folder([12, 14], options);
    let run = "run bp small --potential 3,1,1,2 --priors priors.csv --iterations 6";
    check(folder.path(), run, 16);
}
