//! Estimates of runs in buckets match runs, with the stored graph and from numbers alone.

use std::path::Path;

use crate::estimate::{assert_near, file, json, number};
use crate::{call, succeed};

#[test]
fn estimate_in_buckets_is_within_a_fifth() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let run_ok = |words: &str| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
    run_ok("generate uniform 131072 1048576 --batch-size 16384 -q -o g");
    let numbers =
        "--vertices 2^17 --edges 2^20 --like uniform --input generated --batch-size 16384";
    for (run, ranks) in [
        ("--combine never", 1),
        ("--combine never", 3),
        ("--combine always", 3),
        ("--combine auto", 2),
    ] {
        let run_with = |mib: u64| {
            let machine = format!(
                "--ranks {ranks} --memory {}M --threads {}",
                mib * ranks,
                2 * ranks
            );
            format!(
                "run pagerank g -q -o rows.csv --iterations 3 --executor bucket {run} {machine} --metrics run.json"
            )
        };
        let least = refused_below(at, &run_with(4));
        run_ok(&run_with(64));
        let run_metrics = file(at, "run.json");
        let passes = run_metrics["passes"].as_array().expect("passes");
        for (graph, of) in [("g", "stored"), (numbers, "numbers")] {
            let machine = format!("--ranks {ranks} --memory 64M --threads 2 --disks shared --json");
            let plan = format!("estimate {graph} --executor bucket {run} --iterations 3 {machine}");
            let plan = json(run_ok(&plan).as_bytes());
            let what = |of_what| format!("{run}, {ranks} ranks, {of}, {of_what}");
            let measured: f64 = passes.iter().map(|pass| number(&pass["bytes_sent"])).sum();
            let planned = number(&plan["run"]["all"]["bytes_sent"]);
            assert_near(&what("bytes sent"), planned, measured);
            // All rows are loaded before the first pass.
            let planned = number(&plan["run"]["start"]["bytes_read"]);
            assert_near(
                &what("rows"),
                planned,
                number(&plan["graph"]["block_bytes"]),
            );
            let planned = ranks as f64 * number(&plan["run"]["least_memory_with_rows"]);
            assert_near(&what("memory"), planned, least);
        }
    }
}

/// Returns the memory that a refused run names.
fn refused_below(at: &Path, run: &str) -> f64 {
    let refused = call(at, &run.split_whitespace().collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&refused.stderr).replace('\n', " ");
    let least = said
        .split_once("least ")
        .and_then(|(_, rest)| rest.split_once(' '));
    let least = least.and_then(|(bytes, _)| bytes.parse().ok());
    least.unwrap_or_else(|| panic!("{run}: {said}"))
}
