//! The walk of the README on the repository's own example, with the numbers that came of it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{call, debian, names, succeed, told};

const PACKAGES: u64 = 59_453;
const DEPENDENCIES: u64 = 275_492;

/// `vertex,value` rows of a CSV result, without the header.
fn rows(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).expect("a result");
    let row = |line: &str| {
        let (vertex, value) = line.split_once(',').expect("two columns");
        (vertex.to_string(), value.to_string())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn example_imports_verifies_runs_validates() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let input = debian();
    let input = input.to_str().expect("a path in UTF-8");

    let account = told(at, &["import", input, "-o", "graph"]);
    for count in ["59,453", "275,492"] {
        assert!(account.contains(count), "{account}");
    }
    let info = succeed(at, &["info", "graph", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
    assert_eq!(info["vertices"], PACKAGES);
    assert_eq!(info["arcs"], DEPENDENCIES);
    assert_eq!(
        (&info["ids"], &info["directed"]),
        (&"text".into(), &true.into())
    );
    assert!(succeed(at, &["info", "graph"]).contains("59,453"));
    assert!(succeed(at, &["verify", "graph"]).contains("intact"));

    succeed(
        at,
        &["run", "pagerank", "graph", "-o", "ranks.csv", "--quiet"],
    );
    succeed(
        at,
        &[
            "run",
            "pagerank",
            "graph",
            "-o",
            "ranks.parquet",
            "--threads",
            "1",
            "--memory",
            "64M",
        ],
    );
    let said = succeed(
        at,
        &["validate", "ranks.parquet", "ranks.csv", "--rule", "exact"],
    );
    assert_eq!(said, "valid: 59,453 vertices\n");

    let ranks = rows(&at.join("ranks.csv"));
    assert_eq!(ranks.len() as u64, PACKAGES);
    assert!(
        ranks.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "rows come in order of ids"
    );
    let sum: f64 = ranks
        .iter()
        .map(|row| row.1.parse::<f64>().expect("a number"))
        .sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert_eq!(names(at), ["graph", "ranks.csv", "ranks.parquet"]);
}

#[test]
fn run_on_edges_imports_once_and_prints_top() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::copy(debian(), at.join("debian.el.gz")).expect("a copy");
    let arguments = [
        "run",
        "pagerank",
        "debian.el.gz",
        "-o",
        "ranks.csv",
        "--top",
        "10",
        "--metrics",
        "metrics.json",
    ];
    let first = call(at, &arguments);
    assert!(String::from_utf8_lossy(&first.stderr).contains("importing debian.el.gz"));
    let second = call(at, &arguments);
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        said.contains("imported before") && !said.contains("importing"),
        "{said}"
    );

    let said = String::from_utf8_lossy(&second.stdout);
    let mut top: Vec<(String, String)> = rows(&at.join("ranks.csv"));
    top.sort_by(|a, b| {
        b.1.parse::<f64>()
            .expect("a number")
            .total_cmp(&a.1.parse().expect("a number"))
    });
    let printed: Vec<&str> = said
        .lines()
        .skip(1)
        .take(10)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected: Vec<&str> = top[..10].iter().map(|row| row.0.as_str()).collect();
    assert_eq!(printed, expected);
    assert_eq!(printed[0], "libc6");

    let metrics = std::fs::read_to_string(at.join("metrics.json")).expect("metrics");
    let metrics: serde_json::Value = serde_json::from_str(&metrics).expect("JSON");
    assert_eq!(metrics["algorithm"], "pagerank");
    assert_eq!(metrics["graph"]["arcs"], DEPENDENCIES);
    let peak = metrics["peak_memory"].as_u64().expect("a number");
    assert!(peak > 0 && peak <= metrics["memory_budget"].as_u64().expect("a number"));
    let passes = metrics["passes"].as_array().expect("an array");
    assert!(
        passes.iter().any(|pass| pass["edges"] == DEPENDENCIES),
        "a pass goes through all edges"
    );
    for field in ["open", "run", "write"] {
        assert!(metrics["seconds"][field].as_f64().is_some(), "{field}");
    }
    assert_eq!(
        names(at),
        [
            "debian.el.gz",
            "debian.el.gz.graphmill",
            "metrics.json",
            "ranks.csv"
        ]
    );
}

#[test]
fn changed_file_replaces_its_cached_graph() {
    let folder = crate::folder_with_edges("1 2\n");
    let at = folder.path();
    succeed(at, &["run", "wcc", "edges.txt", "-o", "components.csv"]);
    succeed(
        at,
        &[
            "run",
            "wcc",
            "edges.txt",
            "-o",
            "components.csv",
            "--undirected",
        ],
    );
    assert_eq!(
        names(&at.join("edges.txt.graphmill")).len(),
        2,
        "one graph for each way to import"
    );
    std::fs::write(at.join("edges.txt"), "1 2\n2 30\n").expect("a file");
    succeed(at, &["run", "wcc", "edges.txt", "-o", "components.csv"]);
    assert_eq!(names(&at.join("edges.txt.graphmill")).len(), 1);
    let components: BTreeMap<String, String> =
        rows(&at.join("components.csv")).into_iter().collect();
    assert_eq!(components.get("30").map(String::as_str), Some("1"));
}
