//! Estimates of runs over unsorted chunks match runs, with the stored graph and from numbers alone.

use crate::estimate::{MOVED, assert_near, file, json, number};
use crate::succeed;

/// A run: the algorithm with its options, options of the estimate, ranks, MiB of memory of each.
const RUNS: [(&str, &str, u64, u64); 7] = [
    ("pagerank --iterations 3", "--iterations 3", 1, 64),
    (
        "pagerank --iterations 3 --updates disk",
        "--iterations 3 --updates disk",
        1,
        64,
    ),
    // Some batches have their accumulators in memory; rows are on disk.
    ("pagerank --iterations 3", "--iterations 3", 1, 8),
    // Helpers are not planned.
    ("pagerank --iterations 3 --steal 0", "--iterations 3", 4, 64),
    (
        "pagerank --iterations 3 --steal 0 --updates disk",
        "--iterations 3 --updates disk",
        4,
        64,
    ),
    // The first pass against the arcs transposes the chunks.
    ("spmv", "--algorithm spmv", 1, 64),
    ("wcc", "--algorithm wcc", 2, 64),
];

#[test]
fn estimate_over_chunks_is_within_a_fifth() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let call = |words: &str| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
    let shape = "--batch-size 16384 --chunk-size 256K";
    call(&format!(
        "generate kronecker 18 16 --layout stream {shape} -q -o g"
    ));
    let numbers =
        format!("--vertices 2^18 --edges 2^22 --input generated --executor stream {shape}");
    for (run, plan, ranks, mib) in RUNS {
        let machine = format!("--ranks {ranks} --memory {mib}M --threads 2 --json");
        let plans = ["g", &numbers].map(|graph| {
            let plan = call(&format!("estimate {graph} {plan} {machine} --disks shared"));
            json(plan.as_bytes())
        });
        let (name, options) = run.split_once(' ').unwrap_or((run, ""));
        let (all, threads) = (ranks * mib, 2 * ranks);
        let machine = format!("--ranks {ranks} --memory {all}M --threads {threads}");
        call(&format!(
            "run {name} g -q {options} {machine} --metrics run.json"
        ));
        let run_metrics = file(at, "run.json");
        let passes = run_metrics["passes"].as_array().expect("passes");
        for moved in MOVED {
            let measured: f64 = passes.iter().map(|pass| number(&pass[moved])).sum();
            for (plan, of) in plans.iter().zip(["stored", "numbers"]) {
                let what = format!("{run}, {ranks} ranks of {mib} MiB, {of}, {moved}");
                assert_near(&what, number(&plan["run"]["all"][moved]), measured);
            }
        }
    }
}

#[test]
fn estimate_of_an_import_of_chunks_is_within_a_fifth() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let call = |words: &str| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
    call("generate kronecker 18 8 -q -o e.u32");
    for (ranks, below) in [(1, true), (1, false), (2, true)] {
        let [given, input] = match below {
            true => ["--vertices-below 262144", "below"],
            false => ["", "files"],
        };
        let (all, threads) = (64 * ranks, 2 * ranks);
        let machine = format!("--ranks {ranks} --memory {all}M --threads {threads}");
        call(&format!(
            "import e.u32 --layout stream --chunk-size 64K {given} -q -o g{ranks}{below} {machine} --metrics import.json"
        ));
        let import = file(at, "import.json");
        let numbers = format!(
            "--vertices 2^18 --edges 2^21 --input {input} --executor stream --chunk-size 64K"
        );
        let machine = format!("--ranks {ranks} --memory 64M --threads 2 --disks shared --json");
        let plan = json(call(&format!("estimate {numbers} {machine}")).as_bytes());
        for moved in MOVED {
            let what = format!("{ranks} ranks, {input}, {moved}");
            let planned = number(&plan["import"]["all"][moved]);
            assert_near(&what, planned, number(&import[moved]));
        }
    }
}
