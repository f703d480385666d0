//! Odd graphs in unsorted chunks: each algorithm finds what it finds over columns.

use std::path::Path;

use crate::odd_inputs::folder_with_inputs;
use crate::stream::{is_close, words};
use crate::{call, succeed};

/// Runs whose bytes are those over columns. `FIRST` stands for an id.
const EXACT: [&str; 8] = [
    "bfs --source FIRST",
    "bfs --source FIRST --parents",
    "sssp --source FIRST",
    "wcc",
    "scc",
    "mst",
    "mis",
    "conductance --set set.csv",
];

/// Runs that add up floats.
const ROUNDED: [&str; 4] = [
    "conductance --set set.csv --weighted",
    "pagerank",
    "spmv --vector values.csv",
    "spmv --vector values.csv --transpose",
];

/// A run that needs vertices of edges.
const BELIEFS: &str = "bp --affinity 0.8 --priors values.csv --iterations 5";

/// Two ways with each run, which take turns.
const WAYS: [[&str; 2]; 2] = [
    [
        "--threads 1 --updates disk",
        "--ranks 3 --updates memory --steal inf",
    ],
    [
        "--threads 1 --updates memory",
        "--ranks 3 --updates disk --steal inf",
    ],
];

/// A graph: its edges, its ids, and the size of batches.
struct Odd {
    edges: String,
    ids: Vec<String>,
    batch_size: u32,
    /// Each run is in one way alone, and some are left out.
    is_slow: bool,
}

/// Imports a graph as columns and as chunks.
fn import(at: &Path, odd: &Odd, options: &str, ending: &str) {
    let import = format!("import edges.txt -q --weights f32 {options}");
    succeed(at, &words(&format!("{import} -o columns{ending}")));
    let form = format!(
        "--layout stream --chunk-size 4K --batch-size {}",
        odd.batch_size
    );
    succeed(at, &words(&format!("{import} {form} -o chunks{ending}")));
}

/// Compares all runs over both layouts; `options` are of the import.
fn check(odd: &Odd, options: &str) {
    let folder = folder_with_inputs(&odd.edges, odd.ids.iter().cloned());
    let at = folder.path();
    import(at, odd, options, "");
    let of_edges = format!("{} --edge-vertices", options.replace("--reverse", ""));
    import(at, odd, &of_edges, "_bp");
    let first = odd.ids.first().map_or("0", String::as_str);
    let exact = EXACT.iter().map(|run| (*run, "", true));
    let rounded = ROUNDED.iter().map(|run| (*run, "", false));
    let beliefs = [(BELIEFS, "_bp", false)];
    for (turn, (run, ending, is_exact)) in exact.chain(rounded).chain(beliefs).enumerate() {
        // These take more than one search.
        if odd.is_slow && (run.contains("--parents") || run == "scc") {
            continue;
        }
        let run = run.replace("FIRST", first);
        let of = |graph: &str, way: &str| {
            let run = format!("run {run} {graph}{ending} -q -o - {way}");
            let output = call(at, &words(&run));
            let said = String::from_utf8_lossy(&output.stderr).replace(graph, "graph");
            let found = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.code(), said, found)
        };
        let (code, said, wanted) = of("columns", "");
        let is_missing = odd.ids.is_empty() && run.contains("--source");
        assert_eq!(code, Some(if is_missing { 2 } else { 0 }), "{run}: {said}");
        for way in &WAYS[(turn / 2) % 2][..if odd.is_slow { 1 } else { 2 }] {
            let found = of("chunks", way);
            let what = format!("{run} {options} {way}: {:.40}", odd.edges);
            assert_eq!((found.0, &found.1), (code, &said), "{what}");
            match is_exact {
                true => assert!(found.2 == wanted, "{what}"),
                false => assert!(is_close(&found.2, &wanted), "{what}"),
            }
        }
    }
}

fn odd(edges: String, ids: impl IntoIterator<Item = String>, batch_size: u32) -> Odd {
    let ids = ids.into_iter().collect();
    Odd {
        edges,
        ids,
        batch_size,
        is_slow: false,
    }
}

fn numbers(vertices: u64) -> impl Iterator<Item = String> {
    (0..vertices).map(|v| v.to_string())
}

#[test]
fn empty_and_tiny_graphs_have_the_same_results_in_chunks() {
    check(&odd("# nothing\n".into(), [], 64), "");
    check(&odd("7 7 2\n".into(), ["7".into()], 1), "");
    check(&odd("7 7 2\n".into(), ["7".into()], 64), "--undirected");
    check(&odd("1 2 3\n".into(), ["1".into(), "2".into()], 1), "");
}

#[test]
fn loops_and_duplicates_have_the_same_results_in_chunks() {
    let edge = |i: u64| {
        let (u, v) = (i * i % 37, (i * 7 + i / 5) % 40);
        let v = if i.is_multiple_of(4) { u } else { v };
        let weight = i % 6;
        format!("{u} {v} {weight}\n{u} {v} {}\n", (i + 1) % 6)
    };
    let edges: String = (0..600).map(edge).collect();
    let seen = |id: &String| {
        let rows = edges.lines().map(|row| row.split(' ').collect::<Vec<_>>());
        rows.into_iter().any(|row| row[0] == id || row[1] == id)
    };
    let ids: Vec<String> = numbers(40).filter(seen).collect();
    let graph = odd(edges, ids, 8);
    check(&graph, "");
    check(&graph, "--undirected");
    check(&graph, "--reverse");
}

#[test]
fn long_path_has_the_same_results_in_chunks() {
    for (vertices, batch_size) in [(500, 64), (10_000, 1024)] {
        let edges = (1..vertices).map(|v| format!("{} {v} 1\n", v - 1));
        let path = odd(edges.collect(), numbers(vertices), batch_size);
        let is_slow = vertices == 10_000;
        check(&Odd { is_slow, ..path }, "");
    }
}

#[test]
fn star_out_of_one_batch_has_the_same_results_in_chunks() {
    const LEAVES: u64 = 5000;
    // The centre of the star is in the first batch, and all other batches have leaves alone.
    let edges = (1..=LEAVES).map(|v| format!("0 {v} {}\n", v % 7));
    let star = odd(edges.collect(), numbers(LEAVES + 1), 64);
    check(&star, "");
    check(&star, "--undirected");
}

#[test]
fn far_and_text_ids_have_the_same_results_in_chunks() {
    let id = |v: u64| (v * 3_000_000_019 + 1).to_string();
    let edge = |v: u64| format!("{} {} {}\n", id(v * v % 90), id(v % 90), v % 5);
    check(&odd((0..500).map(edge).collect(), (0..90).map(id), 16), "");
    // Cycles of two, each with an arc to the next.
    let id = |v: u64| format!("v{v:02}");
    let cycle = |v: u64| {
        let [u, v, w] = [2 * v, 2 * v + 1, 2 * v + 2].map(id);
        format!("{u} {v} 1\n{v} {u} 0.5\n{v} {w} 2\n")
    };
    let cycles = odd((0..40).map(cycle).collect(), (0..81).map(id), 4);
    check(&cycles, "--undirected");
}
