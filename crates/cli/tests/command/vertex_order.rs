//! In order of degree a graph is stored otherwise, and says the same: every file of a result has the same bytes.

use std::path::Path;

use crate::memory::asked_for;
use crate::{fail, folder_with_edges, names, succeed};

/// Edges of a few hubs and many others between ids of a kind, from number 1 on.
///
/// Weights are integers, so that sums are exact.
fn edges(name: impl Fn(u64) -> String) -> String {
    let edge = |i: u64| {
        let (from, to) = (
            i * i % 701,
            if i.is_multiple_of(3) {
                i % 7
            } else {
                i * 7919 % 900
            },
        );
        format!("{} {} {}\n", name(from + 1), name(to + 1), 1 + i % 9)
    };
    (0..4000).map(edge).collect()
}

/// What the ids of some numbers are, and how their edges are imported.
type OrderKind<'a> = (&'a dyn Fn(u64) -> String, &'a [&'a str]);

/// A run into a file, and the file's bytes.
fn run(at: &Path, graph: &str, result: &str, algorithm: &[&str], memory: &str) -> Vec<u8> {
    let ends = [graph, "-o", result, "--memory", memory, "--threads", "2"];
    succeed(at, &[&["run"], algorithm, &ends[..], &["-q"]].concat());
    std::fs::read(at.join(result)).expect("a result")
}

#[test]
fn degree_order_keeps_result_bytes() {
    let kinds: [OrderKind; 4] = [
        (&|i| i.to_string(), &[]),
        (
            &|i| (i * 1_000_003 + 17).to_string(),
            &["--undirected", "--weights", "f32"],
        ),
        (
            &|i| format!("v{}", i * 37 % 1000),
            &["--weights", "f64", "--reverse"],
        ),
        (
            &|i| i.to_string(),
            &[
                "--duplicates",
                "min",
                "--self-loops",
                "drop",
                "--weights",
                "f64",
            ],
        ),
    ];
    for (name, options) in kinds {
        let folder = folder_with_edges(&edges(name));
        let at = folder.path();
        // Vertices without arcs, before and after the others: no large component has the smallest id.
        std::fs::write(at.join("list.txt"), format!("{}\n{}\n", name(0), name(999)))
            .expect("a file");
        let import = |graph: &str, more: &[&str]| {
            let import = [
                "import",
                "edges.txt",
                "-o",
                graph,
                "-q",
                "--vertices",
                "list.txt",
            ];
            succeed(at, &[&import, options, more].concat());
        };
        import("by-id", &[]);
        for size in [None, Some("1"), Some("7"), Some("64")] {
            let mut more = vec!["--order", "degree"];
            more.extend(size.iter().flat_map(|size| ["--batch-size", size]));
            import("by-degree", &more);
            succeed(at, &["verify", "by-degree"]);
            let source = ["--source", &name(1)];
            for algorithm in [
                &[&["bfs"], &source[..]].concat()[..],
                &[&["bfs", "--parents"], &source[..]].concat(),
                &[&["sssp"], &source[..]].concat(),
                &["wcc"],
                &["scc"],
                &["cdlp"],
                &["mis", "--seed", "3"],
                &["mis", "--priority", "id"],
            ] {
                for (result, memory) in [("result.parquet", "1G"), ("result.csv", "28M")] {
                    let known = run(at, "by-id", result, algorithm, "1G");
                    let found = run(at, "by-degree", result, algorithm, memory);
                    assert!(
                        known == found,
                        "{algorithm:?} {options:?} {size:?} {memory}"
                    );
                }
                let judge = [
                    &["validate", "result.csv", "by-degree", "--algorithm"],
                    algorithm,
                ];
                let said = succeed(at, &judge.concat());
                assert!(said.starts_with("valid: "), "{algorithm:?}: {said}");
            }
            let ranks = ["pagerank", "--iterations", "20"];
            run(at, "by-id", "known.parquet", &ranks, "1G");
            run(at, "by-degree", "result.parquet", &ranks, "28M");
            let close = ["--rule", "epsilon", "--epsilon", "1e-12"];
            succeed(
                at,
                &[&["validate", "result.parquet", "known.parquet"], &close[..]].concat(),
            );
            succeed(
                at,
                &[
                    &["validate", "result.parquet", "by-degree", "--algorithm"],
                    &ranks[..],
                ]
                .concat(),
            );
            std::fs::remove_dir_all(at.join("by-degree")).expect("a graph");
        }
    }
}

#[test]
fn degree_order_names_wrong_rows_by_user_ids() {
    let folder = folder_with_edges("a hub\nb hub\nhub c\nhub d\nhub e\nz e\n");
    let at = folder.path();
    succeed(
        at,
        &[
            "import",
            "edges.txt",
            "-o",
            "graph",
            "--order",
            "degree",
            "-q",
        ],
    );
    let right = String::from_utf8(run(at, "graph", "result.csv", &["wcc"], "1G")).expect("text");
    assert_eq!(
        right,
        "vertex,component\na,a\nb,a\nc,a\nd,a\ne,a\nhub,a\nz,a\n"
    );
    std::fs::write(at.join("wrong.csv"), right.replace("hub,a", "hub,hub")).expect("a file");
    let said = fail(
        at,
        1,
        &["validate", "wrong.csv", "graph", "--algorithm", "wcc"],
    );
    assert!(said.contains("vertex hub has hub, expected a"), "{said}");
    let said = fail(at, 2, &["run", "bfs", "graph", "--source", "y"]);
    assert!(said.contains("y"), "{said}");
}

#[test]
fn info_shows_the_order() {
    let folder = folder_with_edges("0 1\n2 1\n");
    let at = folder.path();
    for (order, told) in [("id", "by id"), ("degree", "by degree")] {
        succeed(
            at,
            &["import", "edges.txt", "-o", order, "--order", order, "-q"],
        );
        let info = succeed(at, &["info", order]);
        assert!(info.contains(told), "{info}");
        let info = succeed(at, &["info", order, "--json"]);
        let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
        assert_eq!(
            (&info["order"], &info["options"]["order"]),
            (&order.into(), &order.into())
        );
        assert_eq!(
            names(&at.join(order)).contains(&"order".to_string()),
            order == "degree"
        );
    }
}

#[test]
fn degree_order_keeps_bytes_at_least_memory() {
    let edge = |i: u64| format!("{} {}\n", i * i % 400_009, i * 7919 % 300_007);
    let folder = folder_with_edges(&(0..500_000).map(edge).collect::<String>());
    let at = folder.path();
    for order in ["id", "degree"] {
        let import = ["import", "edges.txt", "-o", order, "--order", order, "-q"];
        succeed(at, &[&import[..], &["--undirected"]].concat());
    }
    for algorithm in [&["wcc"][..], &["bfs", "--parents", "--source", "7919"]] {
        let known = run(at, "id", "known.csv", algorithm, "1G");
        let run_with_little = [&["run"], algorithm, &["degree", "-o", "result.csv"]].concat();
        let threads = ["--threads", "2", "--memory", "1M"];
        let said = fail(at, 1, &[&run_with_little[..], &threads].concat());
        let least = asked_for(&said).to_string();
        assert!(
            known == run(at, "degree", "result.csv", algorithm, &least),
            "{algorithm:?}"
        );
    }
}

#[test]
fn generate_stores_the_order_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for rule in ["kronecker 8 4 --undirected", "scattered 300 5 --gap 7"] {
        for order in ["id", "degree"] {
            let words = format!("generate {rule} -o {order} --order {order} -q");
            succeed(at, &words.split(' ').collect::<Vec<_>>());
            let info = succeed(at, &["info", order, "--json"]);
            let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
            assert_eq!(info["order"], order, "{rule}");
            succeed(at, &["verify", order]);
        }
        let [by_id, by_degree] =
            ["id", "degree"].map(|graph| run(at, graph, "result.csv", &["wcc"], "1G"));
        assert!(by_id == by_degree, "{rule}");
        for order in ["id", "degree"] {
            std::fs::remove_dir_all(at.join(order)).expect("a graph");
        }
    }
}
