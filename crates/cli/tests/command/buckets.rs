//! Runs by the bucket executor: the same results as over columns, and the refusals.

use std::path::Path;

use crate::memory::does_with_what_it_asks_for;
use crate::stream::{assert_same, edges, words};
use crate::{call, folder_with_edges, succeed, told};

/// Algorithms that give the same bytes.
const EXACT: [&str; 8] = [
    "bfs --source 1",
    "bfs --source 1 --parents",
    "sssp --source 1",
    "wcc",
    "mis",
    "scc",
    "cdlp",
    "pagerank --precision fixed",
];

/// The ways of the executor: ranks, threads and links.
const WAYS: [&str; 8] = [
    "--threads 1",
    "--threads 2 --link udp",
    "--ranks 2 --threads 2",
    "--ranks 3 --threads 9 --bucket-threads 1,1,1 --link udp",
    "--ranks 4 --threads 8 --link udp --plain-datagrams",
    "--ranks 8 --threads 40 --link local",
    "--ranks 2 --threads 2 --combine never --sparse always",
    "--ranks 3 --threads 3 --combine always --link udp --link-rate 100M",
];

fn compare(at: &Path, run: &str, is_exact: bool) {
    let of = |more: &str| succeed(at, &words(&format!("run {run} -o - {more}")));
    let wanted = of("");
    for way in WAYS {
        let found = of(&format!("--executor bucket {way}"));
        assert_same(&found, &wanted, is_exact, &format!("{run} {way}"));
    }
}

#[test]
fn bucket_answers_are_those_over_columns() {
    let folder = folder_with_edges(&edges());
    let at = folder.path();
    for (graph, more) in [
        ("one", "--reverse --batch-size 1"),
        ("some", "--undirected --batch-size 64"),
        ("whole", "--reverse"),
    ] {
        let import = format!("import edges.txt --weights f32 {more} -q -o {graph}");
        succeed(at, &words(&import));
        for run in EXACT {
            compare(at, &format!("{run} {graph}"), true);
        }
        for run in ["pagerank", "spmv"] {
            compare(at, &format!("{run} {graph}"), false);
        }
    }
}

#[test]
fn plain_datagrams_are_warned_of() {
    let folder = folder_with_edges(&edges());
    let run = "run bfs edges.txt --source 1 --executor bucket --plain-datagrams -o rows.csv";
    let said = told(folder.path(), &words(run));
    assert!(said.contains("read and change messages"), "{said}");
}

#[test]
fn bucket_misuse_is_refused() {
    let folder = folder_with_edges(&edges());
    let at = folder.path();
    for (graph, more) in [("columns", ""), ("chunks", "--layout stream")] {
        let import = format!("import edges.txt --weights f32 {more} -q -o {graph}");
        succeed(at, &words(&import));
    }
    for (run, cause) in [
        ("run pagerank columns --link udp", "--executor bucket"),
        (
            "run pagerank columns --executor bucket --steal inf",
            "--executor stream",
        ),
        (
            "run pagerank columns --executor bucket --bucket-threads 1,0,1",
            "from 1 to 255",
        ),
        (
            "run wcc columns --executor bucket",
            "import it with --reverse",
        ),
        (
            "run cdlp columns --executor bucket",
            "import it with --reverse",
        ),
        (
            "run wcc columns --method afforest --executor bucket",
            "leave the option out",
        ),
        ("run pagerank columns --combine always", "--executor bucket"),
        (
            "run pagerank columns --executor bucket --link dpdk --ranks 2",
            "start them with mpirun",
        ),
        (
            "run pagerank columns --executor bucket --dpdk-device memif",
            "--link dpdk",
        ),
        (
            "run pagerank chunks --executor bucket",
            "its layout is stream",
        ),
        (
            "run pagerank columns --executor bucket --memory 1M",
            "give --memory",
        ),
        ("estimate columns --combine never", "--executor bucket"),
    ] {
        let out = call(at, &words(run));
        assert!(!out.status.success(), "{run}");
        let said = String::from_utf8_lossy(&out.stderr).replace('\n', " ");
        assert!(said.contains(cause), "{run}: {said}");
    }
}

#[test]
fn least_memory_of_runs_in_buckets_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = "generate kronecker 14 16 --weights f32 -q -o edges.wel";
    succeed(at, &words(generate));
    // Enough for the directories, and too little.
    for (batch, memory) in [("64", "10M"), ("4096", "7M")] {
        let import =
            format!("import edges.wel -o graph --weights f32 --reverse --batch-size {batch}");
        succeed(at, &words(&import));
        for run in [
            "pagerank --threads 1",
            "pagerank --threads 3 --combine never --link udp",
            "sssp --source 1 --ranks 2 --threads 4",
            "cdlp --threads 2",
            "cdlp --ranks 3 --threads 3",
            "scc --threads 2 --bucket-threads 1,1,1",
            "mst --threads 2",
        ] {
            let run = format!("run {run} graph -o rows.csv --executor bucket");
            println!("{run}, batches of {batch}");
            // Ranks share the budget.
            let memory = if run.contains("--ranks") {
                "20M"
            } else {
                memory
            };
            does_with_what_it_asks_for(at, &words(&run), memory);
            std::fs::remove_file(at.join("rows.csv")).expect("rows");
        }
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
}
