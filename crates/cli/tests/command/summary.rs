//! What a run says of its result in a few numbers, the same on stderr, in JSON and in the metrics.

use std::path::Path;

use serde_json::{Value, json};

use crate::{call, fail, folder_with_edges, succeed};

/// Returns the summary of a run, which is the same as JSON and in the metrics, and the stderr.
fn summary(folder: &Path, run: &[&str]) -> (Value, String) {
    let arguments = [&["run"], run, &["--json", "--metrics", "m.json"]].concat();
    let output = call(folder, &arguments);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{said}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let metrics = std::fs::read(folder.join("m.json")).expect("metrics");
    let metrics: Value = serde_json::from_slice(&metrics).expect("JSON");
    assert_eq!(json["summary"], metrics["summary"]);
    (json["summary"].clone(), said)
}

/// Components of 1 to 7 vertices; the larger ones have the smaller ids.
fn stars() -> String {
    let mut edges = String::new();
    for size in 1..=7 {
        for leaf in 0..size {
            let hub = 100 - 10 * size;
            edges += &format!("{} {hub}\n", hub + leaf);
        }
    }
    edges
}

#[test]
fn wcc_summary_has_count_and_largest() {
    let folder = folder_with_edges(&stars());
    let at = folder.path();
    for more in [
        &[][..],
        &["--ranks", "3"],
        &["--method", "labels"],
        &["--memory", "48M", "--place", "edges=stream"],
    ] {
        let (json, said) = summary(at, &[&["wcc", "edges.txt"], more].concat());
        let row = |component: &str, size: u64| json!({"component": component, "size": size});
        let top = [
            row("30", 7),
            row("40", 6),
            row("50", 5),
            row("60", 4),
            row("70", 3),
        ];
        assert_eq!(json, json!({"components": 7, "top": top}), "{more:?}");
        assert!(said.contains("7 components"), "{said}");
        assert!(
            said.contains("7 (30), 6 (40), 5 (50), 4 (60), 3 (70)"),
            "{said}"
        );
    }
    let rows = succeed(at, &["run", "wcc", "edges.txt", "--top", "7", "-q"]);
    assert_eq!(rows.lines().count(), 8, "{rows}");
    assert!(rows.ends_with("\n80         2\n90         1\n"), "{rows}");
    // In any order of vertices, and of equal sizes that with the smaller id first.
    std::fs::write(at.join("pairs.txt"), "b a\nd c\nf e\nx x\n").expect("a file");
    let import = ["import", "pairs.txt", "-o", "graph", "--order", "degree"];
    succeed(at, &import);
    let rows = succeed(at, &["run", "wcc", "graph", "--top", "3", "-q"]);
    assert_eq!(
        rows,
        "component  size\na          2\nc          2\ne          2\n"
    );
}

#[test]
fn pagerank_summary_has_top_and_residual() {
    let folder = folder_with_edges("1 2\n2 1\n3 1\n4 1\n5 1\n6 1\n");
    let at = folder.path();
    for method in ["passes", "pregel-pull", "pregel-push"] {
        let run = ["pagerank", "edges.txt", "--method", method];
        let (json, said) = summary(at, &[&run[..], &["--iterations", "7"]].concat());
        assert_eq!(json["iterations"], 7, "{method}");
        let residual = json["residual"].as_f64().expect("a number");
        assert!(residual > 0.1 && residual < 1.0, "{method}: {residual}");
        assert_eq!(json["top"].as_array().map(Vec::len), Some(5));
        assert_eq!(json["top"][0]["vertex"], "1");
        assert!(json["top"][0]["pagerank"].is_f64());
        assert!(
            said.contains("7 iterations") && said.contains("\n1       0."),
            "{said}"
        );
        // An end by tolerance is known by its residual.
        let (json, _) = summary(at, &[&run[..], &["--tolerance", "0.5"]].concat());
        assert!(json["residual"].as_f64() < Some(0.5), "{method}: {json}");
        let iterations = json["iterations"].as_u64().expect("a number");
        assert!((1..=20).contains(&iterations), "{method}: {json}");
        let before = (iterations - 1).to_string();
        let (json, _) = summary(at, &[&run[..], &["--iterations", &before]].concat());
        let residual = json["residual"].as_f64();
        assert!(iterations == 1 || residual >= Some(0.5), "{method}: {json}");
    }
}

#[test]
fn search_summary_has_reached_and_farthest() {
    let folder = folder_with_edges("1 2 0.5\n2 3 0.25\n9 8 1\n");
    let at = folder.path();
    let (json, said) = summary(at, &["bfs", "edges.txt", "--source", "1"]);
    assert_eq!(json, json!({"reached": 3, "greatest_depth": 2}));
    assert!(
        said.contains("3 of 5 vertices reached; greatest depth: 2"),
        "{said}"
    );
    let (json, _) = summary(at, &["bfs", "edges.txt", "--source", "1", "--parents"]);
    assert_eq!(json, json!({"reached": 3}));
    let sssp = ["sssp", "edges.txt", "--source", "1", "--weights", "f64"];
    let (json, said) = summary(at, &sssp);
    assert_eq!(json, json!({"reached": 3, "greatest_distance": 0.75}));
    assert!(said.contains("greatest distance: 0.75"), "{said}");
    let (json, _) = summary(at, &[&sssp[..], &["--top", "1"]].concat());
    assert_eq!(json["top"], json!([{"vertex": "3", "distance": 0.75}]));
}

#[test]
fn summary_of_no_vertices_is_empty() {
    let folder = folder_with_edges("# nothing\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph"]);
    let (json, _) = summary(at, &["wcc", "graph"]);
    assert_eq!(json, json!({"components": 0}));
    let (json, _) = summary(at, &["pagerank", "graph", "--iterations", "2"]);
    assert_eq!(json["iterations"], 2);
}

#[test]
fn algorithm_aliases_are_accepted() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    for name in ["wcc", "cc", "components", "connected-components"] {
        let rows = succeed(at, &["run", name, "edges.txt", "-q", "-o", "-"]);
        assert!(rows.starts_with("vertex,component\n"), "{name}: {rows}");
    }
    for name in ["pr", "page-rank"] {
        let run = ["run", name, "edges.txt", "-q", "-o", "ranks.csv"];
        succeed(at, &run);
        let judge = ["validate", "ranks.csv", "edges.txt", "--algorithm", name];
        succeed(at, &judge);
    }
    let run = ["run", "shortest-paths", "edges.txt", "--source", "1", "-q"];
    succeed(at, &run);
    for name in ["conected-components", "pagernak", "dijkstra"] {
        let said = fail(at, 2, &["run", name, "edges.txt"]);
        for algorithm in ["bfs", "pagerank", "sssp", "wcc"] {
            assert!(said.contains(algorithm), "{name}: {said}");
        }
        let near = match name {
            "conected-components" => "'connected-components'",
            "pagernak" => "'pagerank'",
            _ => "",
        };
        assert!(said.contains(near), "{name}: {said}");
    }
}
