//! Wherever data lies in memory the answer has the same bytes, and nothing is left of the files it lay in.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{fail, folder_with_edges, graphmill, names, succeed};

const RUNS: [&[&str]; 6] = [
    &["pagerank", "--iterations", "5"],
    &["bfs", "--source", "1"],
    &["wcc"],
    &["sssp", "--source", "1"],
    // In order of arrival the sums of two threads may differ.
    &["pagerank", "--method", "pregel-push", "--iterations", "5"],
    &["wcc", "--method", "labels"],
];

fn edges() -> String {
    let edge = |i: u64| format!("{} {} {}\n", i * i % 701, i * 7919 % 900, 1 + i % 9);
    (0..6000).map(edge).collect()
}

/// A folder on a disk: a stored graph in many batches, and an empty folder `memory`.
fn stored() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("edges.txt"), edges()).expect("a file");
    let import = [
        "import",
        "edges.txt",
        "-o",
        "graph",
        "--weights",
        "f32",
        "-q",
    ];
    succeed(at, &[&import[..], &["--batch-size", "64"]].concat());
    std::fs::create_dir(at.join("memory")).expect("a folder");
    folder
}

/// The bytes of a result, and the metrics.
fn run(at: &Path, algorithm: &[&str], more: &[&str]) -> (Vec<u8>, Value) {
    let to = ["-q", "-o", "result.csv", "--metrics", "metrics.json"];
    let threads = ["--threads", if algorithm.len() > 4 { "1" } else { "2" }];
    succeed(
        at,
        &[&["run"], algorithm, &["graph"], &to, &threads, more].concat(),
    );
    let metrics = std::fs::read(at.join("metrics.json")).expect("metrics");
    let result = std::fs::read(at.join("result.csv")).expect("a result");
    (result, serde_json::from_slice(&metrics).expect("JSON"))
}

#[test]
fn placement_keeps_result_bytes() {
    let folder = stored();
    let at = folder.path();
    let new = format!("file:{}", at.join("memory/new").display());
    let placements: [&[&str]; 13] = [
        &["--place", "dram"],
        &["--place", "cache"],
        &["--place", "slow", "--slow-tier", "numa:0"],
        &["--place", "slow", "--slow-tier", "numa:0:preferred"],
        &["--place", "slow", "--slow-tier", "numa:0:interleave"],
        &["--place", "slow", "--slow-tier", "file:memory"],
        &["--slow-tier", "file:memory", "--place", "vertices=numa:0"],
        &["--slow-tier", &new],
        &["--slow-tier", "model", "--simulate-slow-tier", "paper"],
        &[
            "--place",
            "slow",
            "--slow-tier",
            "model",
            "--simulate-slow-tier",
            "paper",
        ],
        &["--place", "edges=stream"],
        &["--place", "edges=stream", "--place", "messages=file:memory"],
        &["--place", "vertices=file:memory", "--memory", "20M"],
    ];
    for algorithm in RUNS {
        let (wanted, _) = run(at, algorithm, &[]);
        for placement in placements {
            let (found, metrics) = run(at, algorithm, placement);
            assert!(found == wanted, "{algorithm:?} {placement:?}");
            let peak = metrics["peak_memory"].as_u64().expect("a number");
            assert!(peak <= metrics["memory_budget"].as_u64().expect("a number"));
            assert!(names(&at.join("memory")).is_empty(), "{placement:?}");
        }
    }
}

#[test]
fn metrics_show_placement_and_moved_bytes() {
    let folder = folder_with_edges("0 1\n0 2\n1 2\n2 3\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph", "-q"]);
    let placed = ["--slow-tier", "model", "--simulate-slow-tier", "paper"];
    let pagerank = ["pagerank", "--iterations", "1"];
    let (_, metrics) = run(at, &pagerank, &placed);
    let placement = |kind: &str| {
        let placed = &metrics["placement"][kind];
        (
            placed["tier"].as_str().expect("a name"),
            placed["slow"] == true,
        )
    };
    assert_eq!(placement("vertices"), ("dram", false));
    assert_eq!(placement("edges"), ("model", true));
    let moved = |pass: &Value, kind: &str| {
        let of = |what: &str| pass["tiers"][kind][what].as_u64().expect("a number");
        [
            of("read_sequential"),
            of("read_random"),
            of("written_sequential"),
            of("written_random"),
        ]
    };
    let pass = &metrics["passes"][1];
    assert_eq!(pass["mode"], "scatter");
    // Four vertices with a rank of 8 bytes and a degree of 4: read to signal and to apply, ranks written once.
    assert_eq!(moved(pass, "vertices"), [2 * 4 * 12, 0, 4 * 8, 0]);
    // Three vertices have edges, so three messages of 8 bytes are written, and gathered at random for the one block; four edges change
    // accumulators of 8 bytes at random; to apply, four of them are read in order and written back as they were before.
    assert_eq!(
        moved(pass, "messages"),
        [4 * 8, 3 * 8 + 4 * 8, 3 * 8 + 4 * 8, 4 * 8]
    );
    assert_eq!(moved(pass, "index"), [0; 4]);
    // The block goes by once, and is all that there is of the edges; 1.4 times longer than from DRAM.
    let cells = metrics["cached_cell_bytes"].as_u64().expect("a number");
    let [edges, others @ ..] = moved(pass, "edges");
    assert!(
        edges > 4 && edges <= cells && others == [0; 3],
        "{edges} of {cells}"
    );
    let seconds = pass["simulated_tier_seconds"].as_f64().expect("seconds");
    let wanted = edges as f64 * 1.4 / 5.866e9;
    assert!((seconds - wanted).abs() < 1.5e-9, "{seconds} for {wanted}");

    // Over lists: the source has two edges, each looks at a depth and its list at two places.
    let (_, metrics) = run(at, &["bfs", "--source", "0"], &placed);
    let pass = &metrics["passes"][1];
    assert_eq!(moved(pass, "index"), [0, 2 * 8, 0, 0]);
    assert_eq!(moved(pass, "edges"), [0, 2 * 4, 0, 0]);
    assert_eq!(moved(pass, "vertices"), [0, 2 * 4, 0, 4]);

    // Streamed edges do not lie in memory.
    let (_, metrics) = run(at, &pagerank, &["--place", "edges=stream"]);
    assert_eq!(moved(&metrics["passes"][1], "edges"), [0; 4]);
    assert_eq!(metrics["passes"][1]["simulated_tier_seconds"], 0.0);
}

#[test]
fn mapped_files_are_not_charged_to_the_budget() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let at = folder.path();
    let generate = ["generate", "uniform", "-q", "-o", "graph", "3000000"];
    succeed(
        at,
        &[&generate[..], &["1000000", "--batch-size", "16384"]].concat(),
    );
    // Ranks of 8 bytes take 24 MB, messages as many.
    let small = ["--memory", "32M"];
    let (paged, metrics) = run(at, &["pagerank", "--iterations", "2"], &small);
    assert_eq!(metrics["vertex_state_resident"], false);
    let mapped = ["--place", "slow", "--slow-tier", "file:."];
    let (found, metrics) = run(
        at,
        &["pagerank", "--iterations", "2"],
        &[&small[..], &mapped].concat(),
    );
    assert!(found == paged);
    for resident in ["vertex_state_resident", "messages_resident"] {
        assert_eq!(metrics[resident], true);
    }
    assert!(metrics["peak_memory"].as_u64() <= Some(32 << 20));
    // So do edges where messages go to disk.
    let split = ["--slow-tier", "file:."];
    let split = [&small[..], &split].concat();
    let (found, metrics) = run(at, &["pagerank", "--iterations", "2"], &split);
    assert!(found == paged);
    assert_eq!(metrics["messages_resident"], false);
    let cells = metrics["cached_cell_bytes"].as_u64().expect("a number");
    assert!(cells > 1_000_000, "{cells} bytes of a million edges");
    assert!(metrics["peak_memory"].as_u64() <= Some(32 << 20));
}

#[test]
fn placement_impossible_is_refused_before_work() {
    let folder = folder_with_edges("0 1\n");
    let at = folder.path();
    let run = |code, more: &[&str]| fail(at, code, &[&["run", "wcc", "edges.txt"], more].concat());
    assert!(run(2, &["--place", "edge=dram"]).contains("vertices, messages, index or edges"));
    assert!(run(2, &["--place", "edges=cxl"]).contains("numa:NODES"));
    assert!(run(2, &["--place", "vertices=stream"]).contains("only edges"));
    assert!(run(2, &["--place", "slow"]).contains("--slow-tier"));
    for preset in ["cache", "dram"] {
        let said = run(2, &["--place", preset, "--slow-tier", "model"]);
        assert!(said.contains("--slow-tier model conflicts"), "{said}");
    }
    let said = run(2, &["--slow-tier", "numa:999"]);
    assert!(said.contains("no memory on node 999") && said.contains("--slow-tier"));
    for absurd in ["0", "1", "50%"] {
        let bandwidth = ["--simulate-slow-tier", "paper", "--dram-bandwidth", absurd];
        assert!(run(2, &bandwidth).contains("bytes a second from 1M to 1T"));
    }
    for folder in ["file:/proc", "file:/sys"] {
        assert!(run(1, &["--slow-tier", folder]).contains("takes new files"));
    }
    assert!(run(2, &["--simulate-slow-tier", "paper"]).contains("--slow-tier model"));
    assert!(run(1, &["--slow-tier", "file:no/such"]).contains("name a directory that exists"));
    assert!(run(1, &["--slow-tier", "file:edges.txt"]).contains("does not exist yet"));
    assert_eq!(names(at), ["edges.txt"]);
}

#[test]
fn killed_run_leaves_no_placed_file() {
    let folder = stored();
    let at = folder.path();
    for place in ["file:memory", "file:memory/new"] {
        let more = ["-q", "--place", "slow", "--slow-tier", place];
        let run = ["run", "pagerank", "graph", "--iterations", "100000000"];
        let mut run = graphmill()
            .args([&run[..], &more].concat())
            .current_dir(at)
            .spawn()
            .expect("the command starts");
        let maps = format!("/proc/{}/maps", run.id());
        let folder = at.join("memory").canonicalize().expect("a folder");
        let is_mapped = |maps: String| maps.contains(folder.to_str().expect("a name"));
        let mut looks = 0;
        while !std::fs::read_to_string(&maps).is_ok_and(is_mapped) {
            looks += 1;
            assert!(looks < 3000, "nothing was mapped");
            assert!(run.try_wait().expect("a child").is_none(), "it ended");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(names(&at.join("memory")).is_empty(), "no file has a name");
        run.kill().expect("a child");
        run.wait().expect("a child");
        assert!(names(&at.join("memory")).is_empty());
    }
}

/// Returns the error of a run whose folder `memory` is a file system of `size`, full too soon.
///
/// The file system is mounted for this run alone. `None` if none can be mounted.
fn fail_on_full_disk(at: &Path, size: &str, run: &str) -> Option<String> {
    let script = format!("mount -t tmpfs -o size={size} none memory || exit 77; exec \"$@\"");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script, "sh"])
        .arg(env!("CARGO_BIN_EXE_graphmill"))
        .args(run.split(' '))
        .current_dir(at)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped, no unshare: {error}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(1) if !said.contains("unshare") => Some(said),
        Some(1 | 77) => {
            eprintln!("skipped, no file system can be mounted: {said}");
            None
        }
        _ => panic!("{}: {said}", output.status),
    }
}

#[test]
fn full_disk_is_an_error() {
    let folder = stored();
    let at = folder.path();
    let slow = "run pagerank graph -q --place slow --slow-tier file:memory";
    if let Some(said) = fail_on_full_disk(at, "4k", slow) {
        let space = said.contains("free some space") && said.contains("cannot reserve");
        assert!(space, "{said}");
    }
}

#[test]
fn full_disk_is_not_reported_as_little_memory() {
    let folder = stored();
    let at = folder.path();
    let import = "import edges.txt -o by-degree --order degree -q";
    succeed(at, &import.split(' ').collect::<Vec<_>>());
    // Labels take a page, and so do the least ranks that they are exchanged for.
    let run = "run wcc by-degree -q --place vertices=file:memory --method union-find";
    if let Some(said) = fail_on_full_disk(at, "4k", run) {
        let space = said.contains("free some space") && said.contains("least ranks");
        assert!(space, "{said}");
    }
}
