//! A graph in the stream layout as a user meets it: import, info, verify, validate, and refusals.

use std::fmt::Write as _;

use crate::{fail, folder_with_edges, names, succeed};

#[test]
fn stream_graph_is_described_verified_and_checks_results() {
    let mut edges = String::new();
    for i in 0..3000u64 {
        let _ = writeln!(edges, "{} {} {}", i * 7 % 1000, i * i % 1000, i % 10);
    }
    let folder = folder_with_edges(&edges);
    let at = folder.path();
    let weights = ["--weights", "f32"];
    let import = |name: &'static str, more: &[&'static str]| {
        let fixed = ["import", "edges.txt", "-o", name, "--memory", "64M"];
        succeed(at, &[&fixed[..], &weights, more].concat())
    };
    import(
        "stream",
        &[
            "--layout",
            "stream",
            "--chunk-size",
            "4K",
            "--batch-size",
            "128",
        ],
    );
    import("columns", &[]);
    let info = succeed(at, &["info", "stream"]);
    for line in [
        "stream, unsorted chunks",
        "of 4.0 KiB at most",
        "0.0 to 9.0",
    ] {
        assert!(info.contains(line), "{info}");
    }
    assert!(succeed(at, &["info", "columns"]).contains("columns"));
    succeed(at, &["verify", "--deep", "stream"]);
    for algorithm in ["wcc", "sssp"] {
        let source: &[&str] = if algorithm == "sssp" {
            &["--source", "0"]
        } else {
            &[]
        };
        let run = [&["run", algorithm, "columns", "-o", "result.csv"], source].concat();
        succeed(at, &run);
        let check = |result| ["validate", "--algorithm", algorithm, result, "stream"];
        let check = |result| [&check(result)[..], source].concat();
        succeed(at, &check("result.csv"));
        let result = std::fs::read_to_string(at.join("result.csv")).expect("a result");
        let wrong = result.replacen("\n7,", "\n7,1", 1);
        std::fs::write(at.join("wrong.csv"), wrong).expect("a file");
        fail(at, 1, &check("wrong.csv"));
        std::fs::remove_file(at.join("result.csv")).expect("a file");
    }
}

#[test]
fn stream_layout_refuses_what_it_does_not_keep() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    let stream = ["import", "edges.txt", "-o", "graph", "--layout", "stream"];
    for (more, text) in [
        (
            &["--duplicates", "first"][..],
            "--duplicates first conflicts with --layout stream",
        ),
        (&["--order", "degree"], "--order degree conflicts"),
        (&["--csr-ratio", "2"], "--csr-ratio conflicts"),
        (&["--batch-size", "100"], "use 64 or 128"),
        (
            &["--chunk-size", "1K"],
            "--chunk-size 1024 must be at least 4096",
        ),
        (
            &["--vertices-below", "3", "--ids", "string"],
            "--vertices-below requires integer ids",
        ),
    ] {
        let said = fail(at, 2, &[&stream[..], more].concat());
        assert!(said.contains(text), "{said}");
    }
    let said = fail(
        at,
        2,
        &["import", "edges.txt", "-o", "graph", "--chunk-size", "4M"],
    );
    assert!(
        said.contains("--chunk-size requires --layout stream"),
        "{said}"
    );
    let said = fail(at, 1, &[&stream[..], &["--vertices-below", "2"]].concat());
    assert!(
        said.contains("line 1") && said.contains("not below 2"),
        "{said}"
    );
    assert_eq!(names(at), ["edges.txt"]);
}
