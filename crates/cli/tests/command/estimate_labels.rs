//! Estimates of label programs and of uniting match runs.

use crate::estimate::{MOVED, assert_near, file, json, number};
use crate::succeed;

#[test]
fn estimate_of_a_label_pass_is_within_a_fifth() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let call = |words: &str| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
    call("generate kronecker 18 16 --batch-size 4096 -q -o g");
    let mut cached = Vec::new();
    for mib in [14, 17, 18, 20] {
        let estimate = "estimate g --algorithm wcc --iterations 1 --ranks 4 --threads 2";
        let plan = call(&format!("{estimate} --memory {mib}M --json"));
        let plan = &json(plan.as_bytes())["run"];
        let all = 4 * mib;
        let run = "run wcc g --method labels -q --ranks 4 --threads 8 --metrics run.json";
        call(&format!("{run} --memory {all}M"));
        let run = file(at, "run.json");
        let passes = run["passes"].as_array().expect("passes");
        let first = passes.iter().find(|pass| pass["mode"] == "scatter");
        let read = first.map_or(0.0, |pass| number(&pass["bytes_read"]));
        let what = format!("{mib} MiB, a first pass");
        assert_near(&what, number(&plan["all"]["bytes_read"]), read);
        cached.push(number(&plan["cached_cell_bytes"]) / number(&plan["cell_bytes"]));
    }
    // From no cell in memory to all.
    assert!(cached.is_sorted() && cached[0] == 0.0 && cached[3] == 1.0);
    assert!(0.0 < cached[1] && cached[2] < 1.0, "{cached:?}");
}

/// Graphs, and the ranks on which `wcc` unites their edges in one pass.
const UNITED: [(&str, u64); 4] = [
    ("kronecker 18 16 --batch-size 4096", 4),
    ("kronecker 16 16 --batch-size 2048 --undirected", 1),
    ("kronecker 18 8 --order degree", 4),
    ("grid 700 700 --undirected", 3),
];

#[test]
fn estimate_of_uniting_is_within_a_fifth() {
    for (graph, ranks) in UNITED {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let call = |words: &str| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
        call(&format!("generate {graph} -q -o g"));
        for mib in [14, 18, 32] {
            let machine = format!("--ranks {ranks} --memory {mib}M --threads 2 --json");
            let plan = call(&format!("estimate g --algorithm wcc {machine}"));
            let plan = &json(plan.as_bytes())["run"];
            let (all, threads) = (ranks * mib, 2 * ranks);
            let machine = format!("--ranks {ranks} --memory {all}M --threads {threads}");
            call(&format!("run wcc g -q {machine} --metrics run.json"));
            let run = file(at, "run.json");
            let passes = run["passes"].as_array().expect("passes");
            let scans = passes.iter().filter(|pass| pass["mode"] == "scatter");
            assert_eq!(scans.count(), 1, "{graph}");
            for moved in MOVED {
                let measured: f64 = passes.iter().map(|pass| number(&pass[moved])).sum();
                let what = format!("{graph}, {mib} MiB, {moved}");
                assert_near(&what, number(&plan["all"][moved]), measured);
            }
        }
    }
}

/// Each algorithm, how it is run, and whether every vertex sends a message in its first pass.
const OTHERS: [(&str, &[&str], bool); 3] = [
    ("wcc", &["--method", "labels"], true),
    ("bfs", &["--source", "1", "--sparse", "never"], false),
    ("sssp", &["--source", "1", "--sparse", "never"], false),
];

#[test]
fn estimate_matches_fullest_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = ["generate", "kronecker", "18", "16", "--weights", "f32"];
    let stored = ["--batch-size", "4096", "-q", "-o", "g"];
    succeed(at, &[&generate[..], &stored].concat());
    let expected =
        "--vertices=262144 --edges=4194304 --batch-size=4096 --input=generated --weights=f32";
    for (ranks, mib) in [(1, 12), (4, 19)] {
        for (algorithm, how, all_send) in OTHERS {
            let memory = format!("--memory={}M", mib * ranks);
            let [count, threads] = [("ranks", ranks), ("threads", 2 * ranks)]
                .map(|(option, count)| format!("--{option}={count}"));
            let run = ["run", algorithm, "g", "-q", "--metrics=run.json"];
            let machine = [&count[..], &threads, &memory];
            succeed(at, &[&run[..], how, &machine].concat());
            let run = file(at, "run.json");
            let passes = run["passes"].as_array().expect("passes");
            let along = (0..passes.len()).filter(|pass| passes[*pass]["mode"] == "scatter");
            let fullest = along
                .rev()
                .max_by_key(|pass| passes[*pass]["messages"].as_u64());
            let fullest = fullest.expect("a pass");
            // In the first pass there is what it takes to begin, too.
            let (part, first) = match all_send {
                true => ("all", 0),
                false => ("pass", fullest),
            };
            for graph in [expected, "g"] {
                let run = format!("--algorithm={algorithm} --iterations=1 {count} --memory={mib}M");
                let machine = "--threads=2 --disks=shared --json";
                let plan = format!("estimate {graph} {run} {machine}");
                let words: Vec<&str> = plan.split(' ').collect();
                let planned = &json(succeed(at, &words).as_bytes())["run"];
                for moved in MOVED {
                    let what = format!("{plan}: {moved}");
                    let measured = passes[first..=fullest].iter();
                    let measured: f64 = measured.map(|pass| number(&pass[moved])).sum();
                    let planned = number(&planned[part][moved]);
                    match moved == "bytes_sent" && !all_send {
                        false => assert_near(&what, planned, measured),
                        true => assert!(measured <= planned, "{what}: {measured} of {planned}"),
                    }
                }
            }
        }
    }
}
