//! Results carry the user's ids, and CSV and Parquet say the same.

use std::path::Path;

use crate::{call, fail, folder_with_edges, names, succeed};

/// Runs into both formats, compares them both ways, gives back the CSV.
fn both(folder: &Path, algorithm: &str, options: &[&str]) -> String {
    for output in ["result.csv", "result.parquet"] {
        let mut arguments = vec!["run", algorithm, "edges.txt", "-o", output];
        arguments.extend(options);
        succeed(folder, &arguments);
    }
    for (left, right) in [
        ("result.csv", "result.parquet"),
        ("result.parquet", "result.csv"),
    ] {
        succeed(folder, &["validate", left, right, "--rule", "exact"]);
    }
    std::fs::read_to_string(folder.join("result.csv")).expect("a result")
}

#[test]
fn text_ids_are_values_and_unreached_is_inf() {
    let folder = folder_with_edges("b a\nc b\nc c\nz y\n\"q q\n");
    let at = folder.path();
    let both = |at, algorithm, options: &[&str]| {
        both(at, algorithm, &[options, &["--quote", "none"]].concat())
    };
    assert_eq!(
        both(at, "bfs", &["--source", "c"]),
        "vertex,depth\n\"\"\"q\",inf\na,2\nb,1\nc,0\nq,inf\ny,inf\nz,inf\n"
    );
    assert_eq!(
        both(at, "bfs", &["--source", "c", "--parents"]),
        "vertex,parent\n\"\"\"q\",\na,b\nb,c\nc,c\nq,\ny,\nz,\n"
    );
    assert_eq!(
        both(at, "wcc", &[]),
        "vertex,component\n\"\"\"q\",\"\"\"q\"\na,a\nb,a\nc,a\nq,\"\"\"q\"\ny,y\nz,y\n"
    );
}

#[test]
fn sparse_integer_ids_are_values() {
    let folder = folder_with_edges("18446744073709551615 70\n70 5000000000\n9 9\n");
    let at = folder.path();
    assert_eq!(
        both(at, "wcc", &[]),
        "vertex,component\n9,9\n70,70\n5000000000,70\n18446744073709551615,70\n"
    );
    let depths = both(at, "bfs", &["--source", "18446744073709551615"]);
    assert_eq!(
        depths,
        "vertex,depth\n9,inf\n70,1\n5000000000,2\n18446744073709551615,0\n"
    );
}

#[test]
fn distances_have_f32_or_f64_precision() {
    let folder = folder_with_edges("0 1 0.5\n1 2 0.25\n0 2 1\n3 3 7\n");
    let at = folder.path();
    let weighted = ["--source", "0", "--weights", "f64"];
    assert_eq!(
        both(at, "sssp", &weighted),
        "vertex,distance\n0,0.0\n1,0.5\n2,0.75\n3,inf\n"
    );
    let single = ["--source", "0", "--weights", "f32", "--precision", "f32"];
    assert_eq!(
        both(at, "sssp", &single),
        "vertex,distance\n0,0.0\n1,0.5\n2,0.75\n3,inf\n"
    );
    assert_eq!(
        both(at, "sssp", &["--source", "0"]),
        "vertex,distance\n0,0.0\n1,1.0\n2,1.0\n3,inf\n"
    );
}

#[test]
fn result_is_replaced_unless_the_run_fails() {
    let folder = folder_with_edges("0 1\n");
    let at = folder.path();
    std::fs::write(at.join("result.csv"), "old").expect("a file");
    fail(
        at,
        2,
        &[
            "run",
            "bfs",
            "edges.txt",
            "-o",
            "result.csv",
            "--source",
            "7",
        ],
    );
    assert_eq!(
        std::fs::read_to_string(at.join("result.csv")).expect("a file"),
        "old"
    );
    succeed(
        at,
        &[
            "run",
            "bfs",
            "edges.txt",
            "-o",
            "result.csv",
            "--source",
            "0",
        ],
    );
    assert_eq!(
        std::fs::read_to_string(at.join("result.csv")).expect("a file"),
        "vertex,depth\n0,0\n1,1\n"
    );
}

#[test]
fn negative_weights_are_stored_but_sssp_refuses() {
    let folder = folder_with_edges("0 1 0.1\n1 2 -0.5\n2 0 7\n");
    let at = folder.path();
    for weights in ["f32", "f64"] {
        succeed(
            at,
            &["import", "edges.txt", "-o", weights, "--weights", weights],
        );
        let info = succeed(at, &["info", weights]);
        assert!(info.contains("floats, -0.5 to 7.0\n"), "{info}");
        let info = succeed(at, &["info", weights, "--json"]);
        let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
        assert_eq!(info["weights"]["least"], -0.5);
        assert_eq!(info["weights"]["greatest"], 7.0);
        succeed(at, &["run", "pagerank", weights]);
        let run = ["run", "sssp", weights, "--source", "0", "-o", "d.csv"];
        let said = fail(at, 1, &run);
        for part in [weights, "-0.5 to 7", "0 or more", "--weights none"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!at.join("d.csv").exists());
    }
    let run = ["run", "sssp", "edges.txt", "--source", "0"];
    fail(at, 1, &[&run[..], &["--weights", "f32"]].concat());
}

#[test]
fn weight_no_number_is_refused_with_its_line() {
    let folder = folder_with_edges("0 1 0.5\n1 2 nan\n");
    let at = folder.path();
    let import = ["import", "edges.txt", "-o", "graph", "--weights", "f64"];
    let said = fail(at, 1, &import);
    assert!(said.contains("edges.txt, line 2"), "{said}");
}

#[test]
fn distances_without_weights_count_arcs() {
    let folder = folder_with_edges("0 1 0.5\n");
    let at = folder.path();
    let run = ["run", "sssp", "edges.txt", "--source", "0"];
    let said = |more: &[&str]| {
        let output = call(at, &[&run[..], more].concat());
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    assert_eq!(said(&[]).matches("each arc counts 1").count(), 1);
    let quiet = said(&["--quiet"]);
    assert!(
        quiet.contains("each arc counts 1") && quiet.lines().count() == 1,
        "{quiet}"
    );
    assert!(!said(&["--weights", "f32"]).contains("counts 1"));
}

#[test]
fn numbers_large_and_small_have_exponents() {
    let folder = folder_with_edges("0 1 1e300\n0 2 1e-300\n");
    let at = folder.path();
    succeed(
        at,
        &["import", "edges.txt", "-o", "graph", "--weights", "f64"],
    );
    let said = succeed(at, &["info", "graph"]);
    assert!(said.contains("1e-300 to 1e300"), "{said}");
    let run = ["run", "sssp", "graph", "--source", "0", "-o", "rows.csv"];
    let said = succeed(at, &[&run[..], &["--top", "3"]].concat());
    assert!(
        said.starts_with("vertex  distance\n1       1e300\n2       1e-300\n0       0.0\n"),
        "{said}"
    );
    let rows = std::fs::read_to_string(at.join("rows.csv")).expect("a result");
    assert_eq!(rows, "vertex,distance\n0,0.0\n1,1e300\n2,1e-300\n");
}

#[test]
fn directory_is_an_input_by_any_name() {
    let outer = tempfile::tempdir().expect("a folder");
    let at = &outer.path().join("edges");
    std::fs::create_dir(at).expect("a folder");
    std::fs::write(at.join("one.el"), "1 2\n").expect("a file");
    std::fs::write(at.join("two.el"), "2 3\n").expect("a file");
    // A graph made of one of its files is no part of the folder's edges.
    succeed(at, &["run", "wcc", "one.el", "-o", "../part.csv"]);
    for (folder, input) in [(at.as_path(), "."), (at, "."), (outer.path(), "edges")] {
        let result = outer.path().join("all.csv");
        let result = result.to_str().expect("text");
        succeed(folder, &["run", "wcc", input, "-o", result]);
        let rows = std::fs::read_to_string(result).expect("a result");
        assert_eq!(rows, "vertex,component\n1,1\n2,1\n3,1\n");
    }
    // Nor may a result become one.
    for output in ["-o", "--metrics"] {
        for (folder, input) in [(at.as_path(), "."), (outer.path(), "edges")] {
            let path = at.join("all.csv");
            let path = path.to_str().expect("text");
            let said = fail(folder, 2, &["run", "wcc", input, output, path]);
            assert!(said.contains("in the directory of the input"), "{said}");
        }
    }
    assert_eq!(names(at), ["one.el", "one.el.graphmill", "two.el"]);
    assert_eq!(
        names(outer.path()),
        ["all.csv", "edges", "edges.graphmill", "part.csv"]
    );
}

#[test]
fn notice_names_columns_taken_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (name, edges, notice) in [
        (
            "a.txt",
            "# people\nSource Target\n1 2\n2 3\n",
            "Source -> Target, header yes, ids int, directed; 1 comment line",
        ),
        (
            "b.csv",
            "# people\nperson_1,2\n1,2\n2,3\n",
            "header no, ids text, directed; 1 comment line; ids are text because of line 2: \"person_1\"",
        ),
        (
            "c.csv",
            "# people\nperson,friend\n1,2\n2,3\n",
            "person -> friend, header yes, ids int",
        ),
        (
            "d.txt",
            "# people\nann bob\n1 2\nbob 3\n",
            "header no, ids text",
        ),
        ("e.txt", "# people\nann bob\n", "header no, ids text"),
        (
            "f.txt",
            "# people\n1 2\nann bob\n",
            "ids are text because of line 3: \"ann\"",
        ),
    ] {
        std::fs::write(at.join(name), edges).expect("a file");
        let graph = format!("{name}.out");
        let output = call(at, &["import", name, "-o", &graph]);
        let said = String::from_utf8(output.stderr).expect("text");
        let line = said
            .lines()
            .find(|line| line.contains(&format!("{name}: column")));
        let line = line.unwrap_or_default();
        assert!(line.contains(notice), "{name}: {said}");
        // The graph keeps it, and says it again.
        let info = succeed(at, &["info", &graph, "--json"]);
        let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
        let read = info["read"][0].as_str().expect("a line");
        assert_eq!(line.strip_prefix("graphmill: "), Some(read));
        let quiet = call(at, &["import", name, "-o", "quiet", "--quiet"]);
        assert!(quiet.stderr.is_empty(), "{name}");
        std::fs::remove_dir_all(at.join("quiet")).expect("a graph");
    }
    for _ in 0..2 {
        // Of the cache, too.
        let output = call(
            at,
            &["run", "wcc", "c.csv", "-o", "r.csv", "--metrics", "m.json"],
        );
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.contains("c.csv: columns person -> friend"), "{said}");
        let metrics = std::fs::read_to_string(at.join("m.json")).expect("metrics");
        let metrics: serde_json::Value = serde_json::from_str(&metrics).expect("JSON");
        let read = metrics["read"][0].as_str().expect("a line");
        assert!(read.contains("person -> friend"), "{read}");
    }
}

#[test]
fn result_csv_quotes_separators() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let edges = "% a\n// b\nFrom,To\n\"ann\",bob\nbob,ann\n";
    std::fs::write(at.join("a.csv"), edges).expect("a file");
    let output = call(at, &["import", "a.csv", "-o", "graph"]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.contains("comments, headers") && said.contains("= edges"),
        "{said}"
    );
    succeed(at, &["run", "wcc", "graph", "-o", "result.csv"]);
    let rows = std::fs::read_to_string(at.join("result.csv")).expect("a result");
    assert_eq!(rows, "vertex,component\nann,ann\nbob,ann\n");
    std::fs::write(at.join("b.csv"), "\"a,b\",c\n").expect("a file");
    succeed(at, &["run", "wcc", "b.csv", "-o", "result.csv"]);
    let rows = std::fs::read_to_string(at.join("result.csv")).expect("a result");
    assert_eq!(rows, "vertex,component\n\"a,b\",\"a,b\"\nc,\"a,b\"\n");
    std::fs::write(at.join("c.csv"), "ann,bob\n#c\nbob,ann\n").expect("a file");
    let said = fail(at, 1, &["import", "c.csv", "-o", "other"]);
    assert!(said.contains("c.csv, line 2"), "{said}");
}

#[test]
fn top_lists_no_vertices_as_values() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    let run = ["run", "bfs", "--source", "1", "--parents", "edges.txt"];
    let said = fail(at, 2, &[&run[..], &["--top", "2"]].concat());
    assert!(said.contains("--top") && said.contains("bfs"), "{said}");
    succeed(
        at,
        &["run", "bfs", "edges.txt", "--source", "1", "--top", "2"],
    );
}

#[test]
fn graph_without_arcs_has_no_bytes_per_arc() {
    let folder = folder_with_edges("# none\n");
    let at = folder.path();
    std::fs::write(at.join("list.txt"), "1\n2\n").expect("a file");
    let import = [
        "import",
        "edges.txt",
        "-o",
        "graph",
        "--vertices",
        "list.txt",
    ];
    succeed(at, &import);
    let said = succeed(at, &["info", "graph"]);
    assert!(
        said.contains("on disk") && !said.contains("an arc"),
        "{said}"
    );
}
