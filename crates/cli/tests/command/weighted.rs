//! `pagerank --weighted` splits a score in proportion to weights, whichever way it is done; weights are never ignored without a word.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;

use crate::{call, fail, folder_with_edges, succeed};

/// Vertices of the random graph below.
const VERTICES: u64 = 60;

/// Edges with weights from a multiplicative generator: some are parallel, some loops, some 0.
///
/// Vertex 3 has weights of 0 alone, and vertices 40 and above are sinks.
fn edges() -> Vec<(u64, u64, f64)> {
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut edges: Vec<_> = (0..400)
        .map(|_| (next(40), next(VERTICES), next(9) as f64 * 0.25))
        .collect();
    edges.retain(|edge| edge.0 != 3);
    edges.extend([(3, 4, 0.0), (3, 5, 0.0), (59, 59, 0.0)]);
    edges
}

/// A stored graph of these edges, with small batches.
fn graph(edges: &[(u64, u64, f64)]) -> TempDir {
    let line = |edge: &(u64, u64, f64)| format!("{} {} {}\n", edge.0, edge.1, edge.2);
    let folder = folder_with_edges(&edges.iter().map(line).collect::<String>());
    let import = "import edges.txt -o graph -q --weights f64 --batch-size 16";
    succeed(folder.path(), &words(import));
    folder
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|word| !word.is_empty()).collect()
}

/// Scores by a dense matrix of chances, which knows nothing of arcs.
fn dense(edges: &[(u64, u64, f64)], iterations: usize, damping: f64) -> Vec<f64> {
    let n = VERTICES as usize;
    let mut chance = vec![vec![0.0; n]; n];
    for &(from, to, weight) in edges {
        chance[from as usize][to as usize] += weight;
    }
    for row in &mut chance {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|chance| {
            *chance = if sum > 0.0 {
                *chance / sum
            } else {
                1.0 / n as f64
            }
        });
    }
    let mut scores = vec![1.0 / n as f64; n];
    for _ in 0..iterations {
        let arrived = |to: usize| {
            (0..n)
                .map(|from| scores[from] * chance[from][to])
                .sum::<f64>()
        };
        scores = (0..n)
            .map(|to| (1.0 - damping) / n as f64 + damping * arrived(to))
            .collect();
    }
    scores
}

fn scores(file: &Path) -> BTreeMap<u64, f64> {
    let text = std::fs::read_to_string(file).expect("a result");
    let row = |line: &str| {
        let (vertex, score) = line.split_once(',').expect("two columns");
        (
            vertex.parse().expect("an id"),
            score.parse().expect("a score"),
        )
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn weighted_scores_equal_a_dense_matrix() {
    let edges = edges();
    let folder = graph(&edges);
    let at = folder.path();
    let expected = dense(&edges, 12, 0.85);
    for method in ["passes", "pregel-pull", "pregel-push"] {
        for way in [
            "--threads 1",
            "--threads 2 --place edges=stream",
            "--threads 2 --memory 20M",
            "--threads 3 --ranks 3",
            "--threads 2 --precision f32",
        ] {
            let options = format!("--weighted --iterations 12 --method {method}");
            let run = format!("run pagerank graph {options} {way} -q -o scores.csv");
            let output = call(at, &words(&run));
            let said = String::from_utf8_lossy(&output.stderr);
            let warns = method == "pregel-push" && way.contains("--ranks");
            assert!(output.status.success(), "{run}: {said}");
            assert_eq!(said.contains("push ran as pull"), warns, "{run}: {said}");
            assert!(warns || said.is_empty(), "{run}: {said}");
            let found = scores(&at.join("scores.csv"));
            let share = if way.contains("f32") { 1e-5 } else { 1e-12 };
            for (vertex, score) in &found {
                let expected = expected[*vertex as usize];
                let off = (score - expected).abs();
                assert!(
                    off <= share * expected,
                    "{run}: {vertex} {score} {expected}"
                );
            }
            // No score is lost at sinks, nor where weights add up to 0.
            let all: f64 = found.values().sum();
            let absent = VERTICES as usize - found.len();
            assert_eq!(absent, 0, "{run}");
            assert!((all - 1.0).abs() < share.max(1e-9), "{run}: {all}");
            let precision = if way.contains("f32") {
                "--precision f32"
            } else {
                ""
            };
            let judged = format!(
                "validate scores.csv graph --algorithm pagerank --weighted --iterations 12 {precision}"
            );
            let said = succeed(at, &words(&judged));
            assert!(said.starts_with("valid"), "{run}: {said}");
        }
    }
    // The checker tells weighted scores from others.
    let other = "validate scores.csv graph --algorithm pagerank --iterations 12 --precision f32 -q";
    fail(at, 1, &words(other));
    succeed(
        at,
        &words("run pagerank graph -q --iterations 12 -o scores.csv"),
    );
    let other = "validate scores.csv graph --algorithm pagerank --weighted --iterations 12";
    fail(at, 1, &words(other));
}

#[test]
fn weighted_scores_of_equal_weights_are_plain() {
    let mut edges = edges();
    edges.iter_mut().for_each(|edge| edge.2 = 2.0);
    let folder = graph(&edges);
    let at = folder.path();
    succeed(at, &words("run pagerank graph -q -o plain.csv"));
    succeed(
        at,
        &words("run pagerank graph -q --weighted -o weighted.csv"),
    );
    let (plain, weighted) = (
        scores(&at.join("plain.csv")),
        scores(&at.join("weighted.csv")),
    );
    let pairs = plain.values().zip(weighted.values());
    assert!(
        pairs
            .clone()
            .all(|(plain, weighted)| (plain - weighted).abs() < 1e-15)
    );
}

#[test]
fn weights_out_of_range_are_refused() {
    for (weight, said) in [
        (-0.5, "negative weights"),
        (1e-250, "1e-200"),
        (1e250, "1e200"),
    ] {
        let folder = graph(&[(0, 1, weight), (1, 0, 1.0)]);
        let at = folder.path();
        for method in ["passes", "pregel-pull", "pregel-push"] {
            let run = format!("run pagerank graph -q --weighted --method {method}");
            let error = fail(at, 1, &words(&run));
            assert!(error.contains(said), "{weight}: {error}");
        }
        // No option asked for them.
        succeed(at, &words("run pagerank graph -q"));
    }
}

#[test]
fn weights_ignored_are_reported_once() {
    let folder = graph(&edges());
    let at = folder.path();
    let ignored = |run: &str| {
        let output = call(at, &words(run));
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{said}");
        said.matches("weights of the graph are ignored").count()
    };
    assert_eq!(ignored("run pagerank graph"), 1);
    assert_eq!(ignored("run pagerank graph --ranks 3"), 1);
    assert_eq!(ignored("run pagerank edges.txt --weights f32"), 1);
    assert_eq!(ignored("run pagerank graph --weighted"), 0);
    assert_eq!(ignored("run sssp graph --source 0"), 0);
    let output = call(at, &words("run pagerank edges.txt --weighted"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the graph has no weights"), "{said}");
}

#[test]
fn tolerance_not_reached_reports_the_residual() {
    let folder = graph(&edges());
    let at = folder.path();
    for method in ["passes", "pregel-pull", "pregel-push"] {
        for (iterations, reached) in [("3", false), ("200", true)] {
            let options = format!("--tolerance 1e-9 --iterations {iterations} --method {method}");
            let run = format!("run pagerank graph --weighted {options} -q --metrics m.json");
            let output = call(at, &words(&run));
            let said = String::from_utf8(output.stderr).expect("text");
            assert!(output.status.success(), "{said}");
            assert_eq!(
                said.contains("--tolerance 1e-9 is not reached"),
                !reached,
                "{said}"
            );
            let text = std::fs::read(at.join("m.json")).expect("metrics");
            let metrics: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            let end = &metrics["convergence"];
            assert_eq!(end["reached"], reached, "{run}: {end}");
            assert_eq!(end["tolerance"], 1e-9, "{run}: {end}");
            let residual = end["residual"].as_f64().expect("a number");
            assert!(
                residual > 0.0 && (residual < 1e-9) == reached,
                "{run}: {end}"
            );
        }
    }
}

#[test]
fn tolerance_not_a_number_is_refused() {
    let folder = graph(&[(0, 1, 1.0)]);
    for tolerance in ["inf", "-inf", "nan", "0", "-1", "infinity"] {
        let run = format!("run pagerank graph --tolerance={tolerance}");
        let said = fail(folder.path(), 2, &words(&run));
        assert!(said.contains("a finite number above 0"), "{said}");
    }
}
