//! Damage is an error with a place and exit code 1, and leaves no file.

use crate::{fail, folder_with_edges, names, succeed, told};

#[test]
fn malformed_line_is_named_and_can_be_skipped() {
    let folder = folder_with_edges("1 2\n2 x\n3\n3 4\n");
    let at = folder.path();
    let said = fail(
        at,
        1,
        &["import", "edges.txt", "-o", "graph", "--ids", "int"],
    );
    assert!(
        said.contains("edges.txt, line 2") && said.contains("--on-error skip"),
        "{said}"
    );
    assert_eq!(names(at), ["edges.txt"]);
    fail(at, 1, &["run", "wcc", "edges.txt", "--ids", "int"]);
    assert_eq!(names(at), ["edges.txt"]);
    let account = told(
        at,
        &[
            "import",
            "edges.txt",
            "-o",
            "graph",
            "--ids",
            "int",
            "--on-error",
            "skip",
        ],
    );
    let skipped = account
        .lines()
        .find(|line| line.contains("skipped"))
        .expect("a line about it");
    assert!(skipped.ends_with(" 2"), "{account}");
}

#[test]
fn malformed_vertex_lines_are_counted_apart() {
    let folder = folder_with_edges("1 2\n2 x\n");
    let at = folder.path();
    std::fs::write(at.join("list.v"), "3\ny\n4\nz\nw\n").expect("a file");
    let import = ["import", "edges.txt", "-o", "graph", "--ids", "int"];
    let lists = ["--vertices", "list.v"];
    let skip = ["--on-error", "skip"];
    let account = told(at, &[&import[..], &lists, &skip].concat());
    let skipped: Vec<&str> = account
        .lines()
        .filter(|line| line.contains("skipped"))
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(skipped, ["1", "3"], "{account}");
    assert!(account.contains("lines of vertices"), "{account}");
    let info = succeed(at, &["info", "graph", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
    assert_eq!(info["dropped"]["malformed_lines"], 1);
    assert_eq!(info["dropped"]["malformed_vertex_lines"], 3);
}

#[test]
fn verify_names_the_file_with_a_flipped_bit() {
    let folder = folder_with_edges("1 2\n2 3\n3 1\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph"]);
    let path = at.join("graph/columns/00000.data");
    let mut bytes = std::fs::read(&path).expect("a file of the graph");
    bytes[20] ^= 4;
    std::fs::write(&path, bytes).expect("a file");
    let said = fail(at, 1, &["verify", "graph"]);
    assert!(said.contains("00000.data"), "{said}");
}

#[test]
fn directory_no_graph_or_existing_is_refused() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    std::fs::create_dir(at.join("empty")).expect("a folder");
    assert!(fail(at, 1, &["info", "empty"]).contains("graphmill import"));
    assert!(fail(at, 1, &["import", "edges.txt", "-o", "empty"]).contains("exists already"));
    assert_eq!(names(at), ["edges.txt", "empty"]);
}

#[test]
fn budget_too_small_is_refused_before_work() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph"]);
    let said = fail(
        at,
        1,
        &[
            "run",
            "pagerank",
            "graph",
            "-o",
            "ranks.csv",
            "--memory",
            "64K",
        ],
    );
    assert!(said.contains("--memory"), "{said}");
    assert_eq!(names(at), ["edges.txt", "graph"]);
}

#[test]
fn validate_lists_first_differences() {
    let folder = folder_with_edges("");
    let at = folder.path();
    std::fs::write(at.join("a.csv"), "vertex,depth\n1,0\n2,3\n3,inf\n").expect("a file");
    std::fs::write(at.join("b.txt"), "1 0\n2 1\n3 9223372036854775807\n").expect("a file");
    let said = fail(at, 1, &["validate", "a.csv", "b.txt", "--rule", "exact"]);
    assert!(
        said.contains('2') && said.contains("not valid: 1 difference"),
        "{said}"
    );
    std::fs::write(at.join("b.txt"), "1 0\n2 3\n3 infinity\n").expect("a file");
    succeed(at, &["validate", "a.csv", "b.txt", "--rule", "exact"]);
}
