//! Generated graphs: the same seed gives the same bytes, and a stored graph holds what the file holds.

use std::path::Path;

use crate::{fail, folder_with_edges, succeed};

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).expect("a generated file")
}

#[test]
fn a_seed_says_all_and_every_file_holds_the_same_edges() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = |output: &str, seed: &str, threads: &str| {
        let rule = ["generate", "kronecker", "--scale", "8", "--degree", "4"];
        let rest = ["-o", output, "--seed", seed, "--threads", threads];
        succeed(at, &[&rule[..], &rest[..]].concat())
    };
    generate("a.u32", "7", "1");
    generate("b.u32", "7", "2");
    generate("c.u32", "8", "1");
    generate("a.u64", "7", "1");
    generate("a.el", "7", "1");
    assert_eq!(bytes(at, "a.u32").len(), 8 * 4 * 256);
    assert_eq!(bytes(at, "a.u32"), bytes(at, "b.u32"));
    assert_ne!(bytes(at, "a.u32"), bytes(at, "c.u32"));
    let narrow: Vec<u64> = bytes(at, "a.u32")
        .chunks_exact(4)
        .map(|id| u64::from(u32::from_le_bytes(id.try_into().expect("four bytes"))))
        .collect();
    let wide: Vec<u64> = bytes(at, "a.u64")
        .chunks_exact(8)
        .map(|id| u64::from_le_bytes(id.try_into().expect("eight bytes")))
        .collect();
    let text = String::from_utf8(bytes(at, "a.el")).expect("text");
    let spoken: Vec<u64> = text
        .split_whitespace()
        .map(|id| id.parse().expect("an id"))
        .collect();
    assert_eq!(narrow, wide);
    assert_eq!(narrow, spoken);

    assert!(generate("graph", "7", "2").contains("1,024"));
    succeed(at, &["run", "wcc", "graph", "-o", "stored.csv"]);
    let all: Vec<String> = (0..256).map(|id| id.to_string()).collect();
    std::fs::write(at.join("all.txt"), all.join("\n")).expect("a file");
    succeed(
        at,
        &["import", "a.u32", "-o", "imported", "--vertices", "all.txt"],
    );
    succeed(at, &["run", "wcc", "imported", "-o", "imported.csv"]);
    succeed(
        at,
        &["validate", "stored.csv", "imported.csv", "--rule", "exact"],
    );
}

#[test]
fn a_file_that_is_there_stays() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    let grid = ["generate", "grid", "--rows", "2", "--columns", "2", "-o"];
    for output in ["edges.txt.el", "raw.u32"] {
        std::fs::write(at.join(output), "precious").expect("a file");
        let said = fail(at, 2, &[&grid[..], &[output]].concat());
        assert!(said.contains("is there already"), "{said}");
        assert_eq!(bytes(at, output), b"precious");
    }
}

#[test]
fn a_grid_is_as_far_as_its_rows_and_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    succeed(
        at,
        &[
            "generate",
            "grid",
            "--rows",
            "5",
            "--columns",
            "9",
            "--undirected",
            "-o",
            "graph",
        ],
    );
    let top = succeed(at, &["run", "bfs", "graph", "--source", "0", "--top", "1"]);
    assert_eq!(top.lines().nth(1), Some("44      12"));
}

#[test]
fn what_a_file_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let said = fail(
        at,
        2,
        &[
            "generate",
            "uniform",
            "--vertices",
            "9",
            "--edges",
            "9",
            "--weighted",
            "-o",
            "a.u32",
        ],
    );
    assert!(said.contains(".wel"), "{said}");
    let said = fail(
        at,
        2,
        &[
            "generate",
            "uniform",
            "--vertices",
            "0",
            "--edges",
            "9",
            "-o",
            "a.u32",
        ],
    );
    assert!(said.contains("vertices"), "{said}");
    assert!(crate::names(at).is_empty());
}

/// Generates a graph of more column files than `limit`, an argument of `ulimit`, lets be open.
fn generate_with_limit(limit: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let generate = "generate uniform --vertices 34359738368 --edges 300 --threads 2 -o graph -q";
    let program = env!("CARGO_BIN_EXE_graphmill");
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("ulimit {limit} && exec '{program}' {generate}"),
        ])
        .current_dir(folder.path())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{limit}: {said}");
    assert!(folder.path().join("graph/columns/00063.data").exists());
    succeed(folder.path(), &["verify", "graph"]);
}

#[test]
fn few_files_are_open_at_a_time() {
    generate_with_limit("-n 48");
    // A soft limit is raised.
    generate_with_limit("-S -n 12");
}
