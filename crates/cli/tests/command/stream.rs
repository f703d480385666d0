//! Runs over unsorted chunks: the same results as over columns, and the refusals.

use std::path::Path;

use crate::{fail, folder_with_edges, succeed};

/// A graph with a hub, loops, duplicates and a vertex without arcs out of it.
pub(crate) fn edges() -> String {
    let mut state = 1u64;
    let mut next = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % bound
    };
    let mut text = String::new();
    for _ in 0..6000 {
        let (source, destination) = (next(900), next(700));
        let source = if source > 800 { 5 } else { source };
        text += &format!("{source} {destination} {}\n", next(9));
    }
    text
}

pub(crate) fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// True if two results have the same ids, and values within 1e-9.
pub(crate) fn is_close(one: &str, other: &str) -> bool {
    let close = |(one, other): (&str, &str)| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one == other || (one - other).abs() <= 1e-9 * one.abs(),
        _ => one == other,
    };
    let cells = |text: &str| {
        text.split([',', '\n'])
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let (one, other) = (cells(one), cells(other));
    let mut pairs = one.iter().zip(&other);
    one.len() == other.len() && pairs.all(|(one, other)| close((one, other)))
}

/// Fails unless two results are the same, or close where floats are added.
pub(crate) fn assert_same(found: &str, wanted: &str, is_exact: bool, case: &str) {
    match is_exact {
        true => assert!(found == wanted, "{case}"),
        false => assert!(is_close(found, wanted), "{case}"),
    }
}

/// Runs an algorithm over columns and over chunks, in several ways.
fn compare(folder: &Path, direction: &str, run: &str, is_exact: bool) {
    let of = |graph: &str, more: &str| {
        succeed(
            folder,
            &words(&format!("run {run} {graph}{direction} -o - {more}")),
        )
    };
    let wanted = of("columns", "");
    for way in [
        "",
        "--executor stream --updates disk --threads 3",
        "--updates memory",
        "--ranks 2 --steal inf --updates disk",
        "--ranks 4 --window 1 --steal 0",
    ] {
        let found = of("chunks", way);
        assert_same(
            &found,
            &wanted,
            is_exact,
            &format!("{run}{direction} {way}"),
        );
    }
}

#[test]
fn chunks_and_columns_have_the_same_results() {
    let folder = folder_with_edges(&edges());
    let at = folder.path();
    let exact = [
        "bfs --source 1",
        "sssp --source 1",
        "wcc",
        "mis",
        "mst",
        "scc",
        "conductance --set odd",
    ];
    for (direction, flag) in [("", ""), ("_both", "--undirected")] {
        let import = format!("import edges.txt --weights f32 {flag}");
        succeed(at, &words(&format!("{import} -o columns{direction}")));
        let chunks = "--layout stream --batch-size 64 --chunk-size 4K";
        succeed(
            at,
            &words(&format!("{import} {chunks} -o chunks{direction}")),
        );
        for run in exact {
            compare(at, direction, run, true);
        }
        for run in ["pagerank", "spmv"] {
            compare(at, direction, run, false);
        }
    }
    let import = "import edges.txt --weights f32 --edge-vertices";
    succeed(at, &words(&format!("{import} -o columns_bp")));
    succeed(
        at,
        &words(&format!(
            "{import} --layout stream --batch-size 1024 -o chunks_bp"
        )),
    );
    compare(at, "_bp", "bp --affinity 0.7", false);
}

/// Runs on a file of edges: the algorithm and its options, and the executor that `auto` takes.
const AUTO: [(&str, &str); 8] = [
    ("wcc edges.txt --memory 300M", "stream"),
    // Other orders of additions would give other bits.
    ("pagerank edges.txt --memory 300M", "column"),
    // The number of its passes depends on the graph.
    ("bfs edges.txt --source 0 --memory 300M", "column"),
    ("wcc other.txt --memory 300M --trials 9", "column"),
    // There are columns already.
    ("wcc other.txt --memory 300M", "column"),
    ("wcc third.txt --memory 300M --dispatch push", "column"),
    ("wcc third.txt --memory 300M --duplicates first", "column"),
    ("wcc fourth.txt --memory 64M", "column"),
];

#[test]
fn auto_takes_the_stream_executor_for_few_exact_passes() {
    let folder = folder_with_edges(&edges());
    let at = folder.path();
    for other in ["other.txt", "third.txt", "fourth.txt"] {
        std::fs::copy(at.join("edges.txt"), at.join(other)).expect("a copy");
    }
    let metrics = || std::fs::read_to_string(at.join("m.json")).expect("metrics");
    let mut wanted = None;
    for (run, executor) in AUTO {
        let found = succeed(at, &words(&format!("run {run} -o - --metrics m.json")));
        let told = format!(r#""executor": "{executor}""#);
        assert!(metrics().contains(&told), "{run}");
        if run.starts_with("wcc") {
            let wanted = wanted.get_or_insert_with(|| found.clone());
            assert_eq!(found, *wanted, "{run}");
        }
    }
    let run = "run wcc edges.txt -o - --metrics m.json --memory 300M";
    let found = succeed(at, &words(&format!("{run} --executor column")));
    assert!(metrics().contains(r#""executor": "column""#));
    assert_eq!(Some(found), wanted);
}

#[test]
fn wrong_combinations_of_executor_and_layout_are_refused() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    succeed(at, &words("import edges.txt -o columns"));
    succeed(at, &words("import edges.txt --layout stream -o chunks"));
    for (run, part) in [
        ("columns --executor stream", "its layout is column"),
        ("chunks --executor column", "its layout is stream"),
        ("columns --updates disk", "--updates requires"),
        ("columns --window 3", "--window requires"),
        ("columns --steal 0", "--steal requires"),
        (
            "edges.txt --executor column --steal inf",
            "--steal requires",
        ),
    ] {
        let said = fail(at, 2, &words(&format!("run wcc {run}")));
        assert!(said.contains(part), "{run}: {said}");
    }
    let said = fail(at, 2, &words("run wcc chunks --steal=-1"));
    assert!(said.contains("--steal"), "{said}");
    let said = fail(at, 2, &words("estimate chunks --executor column"));
    assert!(said.contains("its layout is stream"), "{said}");
    let said = fail(at, 2, &words("estimate columns --updates disk"));
    assert!(said.contains("--updates requires"), "{said}");
    let numbers = "estimate --vertices 9 --edges 9 --chunk-size 64K";
    let said = fail(at, 2, &words(numbers));
    assert!(said.contains("--chunk-size requires"), "{said}");
    for run in ["cdlp chunks", "wcc chunks --method afforest"] {
        let said = fail(at, 1, &words(&format!("run {run}")));
        assert!(said.contains("unsorted chunks"), "{said}");
    }
}
