//! Standard output has data only, and messages go to stderr.
//!
//! Edges may come from standard input, and results go to standard output.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::{call, fail, folder_with_edges, graphmill, names, succeed};

/// Runs the command with `input` on its standard input.
fn pipe(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = graphmill();
    let command = command.args(arguments).current_dir(folder);
    let piped = (Stdio::piped(), Stdio::piped(), Stdio::piped());
    let command = command.stdin(piped.0).stdout(piped.1).stderr(piped.2);
    let mut child = command.spawn().expect("the command starts");
    let written = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("the command ends");
    // Who refuses the input does not read it.
    assert!(written.is_ok() || !output.status.success());
    output
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[test]
fn stdout_has_rows_and_json_only() {
    let folder = folder_with_edges("1 2\n2 3\n4 5\n");
    let at = folder.path();
    for command in [
        &["import", "edges.txt", "-o", "graph"][..],
        &["generate", "grid", "3", "3", "-o", "grid"],
        &["run", "pagerank", "graph"],
        &["run", "wcc", "graph", "-o", "result.csv"],
    ] {
        let output = call(at, command);
        assert!(output.status.success());
        assert_eq!(text(output.stdout), "", "{command:?}");
        assert!(!output.stderr.is_empty(), "{command:?}");
    }
    let rows = succeed(at, &["run", "bfs", "graph", "--source", "1", "--top", "2"]);
    assert_eq!(rows, "vertex  depth\n3       2\n2       1\n");
    for command in [
        &["import", "edges.txt", "-o", "other", "--json"][..],
        &["generate", "grid", "3", "3", "-o", "another", "--json"],
        &["run", "wcc", "graph", "--json"],
    ] {
        let json: serde_json::Value =
            serde_json::from_str(&succeed(at, command)).expect("one JSON object");
        assert!(json.is_object(), "{command:?}");
    }
}

#[test]
fn quiet_hides_notices_and_summary() {
    let folder = folder_with_edges("1 2\n2 3\n4 5\n");
    let at = folder.path();
    for command in [
        &["run", "wcc", "edges.txt", "-q"][..],
        &["import", "edges.txt", "-o", "graph", "--quiet"],
        &["generate", "grid", "3", "3", "-o", "grid", "-q"],
    ] {
        let output = call(at, command);
        assert!(output.status.success());
        let said = text(output.stdout) + &text(output.stderr);
        assert_eq!(said, "", "{command:?}");
    }
    let rows = succeed(at, &["run", "wcc", "edges.txt", "-q", "--top", "1"]);
    assert_eq!(rows, "component  size\n1          3\n");
}

#[test]
fn results_go_to_standard_output() {
    let folder = folder_with_edges("1 2\n2 3\n4 5\n");
    let at = folder.path();
    let wanted = "vertex,component\n1,1\n2,1\n3,1\n4,4\n5,4\n";
    for name in ["-", "/dev/stdout"] {
        assert_eq!(
            succeed(at, &["run", "wcc", "edges.txt", "-o", name]),
            wanted
        );
        // Into a file of the shell's, which stays that file.
        let mut file = tempfile::tempfile_in(at).expect("a file");
        let mut command = graphmill();
        let command = command.args(["run", "wcc", "edges.txt", "-o", name]);
        let stdout = file.try_clone().expect("a file");
        let status = command.current_dir(at).stdout(stdout).status();
        assert!(status.expect("the command starts").success());
        std::io::Seek::rewind(&mut file).expect("a file");
        let mut rows = String::new();
        file.read_to_string(&mut rows).expect("a file");
        assert_eq!(rows, wanted);
    }
    let ranks = ["run", "wcc", "edges.txt", "-o", "-", "--ranks", "3"];
    assert_eq!(succeed(at, &ranks), wanted);
    for option in [&["--json"][..], &["--top", "2"]] {
        let run = ["run", "bfs", "edges.txt", "--source", "1", "-o", "-"];
        let said = fail(at, 2, &[&run[..], option].concat());
        assert!(
            said.contains(option[0]) && said.contains("standard output"),
            "{said}"
        );
    }
    assert_eq!(names(at), ["edges.txt", "edges.txt.graphmill"]);
}

#[test]
fn closed_standard_output_ends_quietly() {
    let edges: String = (0..200_000).map(|v| format!("{v} {}\n", v + 1)).collect();
    let folder = folder_with_edges(&edges);
    let mut command = graphmill();
    let command = command.args(["run", "wcc", "edges.txt", "-q", "-o", "-"]);
    let command = command.current_dir(folder.path()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("a child");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(text(output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn results_as_tsv_or_gzip_are_the_same() {
    let folder = folder_with_edges("b a\nc b\n\"q q\n");
    let at = folder.path();
    let run = ["run", "wcc", "edges.txt", "-q", "--quote", "none", "-o"];
    for output in ["r.csv", "r.csv.gz", "r.tsv", "r.tsv.gz", "parts.csv.gz/"] {
        succeed(at, &[&run[..], &[output]].concat());
    }
    let read = |name: &str| std::fs::read(at.join(name)).expect("a result");
    let unzip = |name: &str| {
        let mut text = String::new();
        let bytes = read(name);
        let mut reader = flate2::read::GzDecoder::new(&bytes[..]);
        reader.read_to_string(&mut text).expect("a compressed text");
        text
    };
    let csv = text(read("r.csv"));
    assert_eq!(unzip("r.csv.gz"), csv);
    assert_eq!(unzip("parts.csv.gz/part-00000.csv.gz"), csv);
    let tsv = text(read("r.tsv"));
    assert_eq!(unzip("r.tsv.gz"), tsv);
    assert!(tsv.starts_with("vertex\tcomponent\n"), "{tsv}");
    for name in ["r.csv.gz", "r.tsv", "r.tsv.gz", "parts.csv.gz/"] {
        succeed(at, &["validate", name, "r.csv", "--rule", "exact"]);
    }
}

#[test]
fn edges_come_from_standard_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let wanted = "vertex,component\n1,1\n2,1\n3,1\n";
    let edges = b"1 2\n2 3\n";
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(edges).expect("memory");
    let zipped = zipped.finish().expect("memory");
    for input in [&edges[..], &zipped] {
        for more in [&[][..], &["--ranks", "2"], &["--tmp", "."]] {
            let run = [&["run", "wcc", "-", "-q", "-o", "-"], more].concat();
            let output = pipe(at, &run, input);
            assert_eq!(text(output.stderr), "");
            assert_eq!(text(output.stdout), wanted);
        }
        let import = ["import", "-", "-o", "graph", "--ranks", "2", "-q"];
        let output = pipe(at, &import, input);
        assert!(output.status.success(), "{}", text(output.stderr));
        assert_eq!(
            succeed(at, &["run", "wcc", "graph", "-q", "-o", "-"]),
            wanted
        );
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
    let output = pipe(at, &["import", "-", "-", "-o", "graph"], edges);
    assert_eq!(output.status.code(), Some(2));
    // Nothing of it is left, whether it was right or not.
    let output = pipe(at, &["run", "wcc", "-", "--tmp", "."], b"1\n");
    assert!(!output.status.success());
    assert_eq!(names(at), [""; 0]);
}

#[test]
fn standard_input_is_spooled_privately() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mut command = graphmill();
    let command = command.args(["run", "wcc", "-", "-q", "--tmp", "."]);
    let command = command.current_dir(at).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().expect("a child");
    let mut stdin = child.stdin.take().expect("a pipe");
    // The file is made when the first bytes have come, and stays until the last have.
    stdin.write_all(&[b'#'; 1 << 17]).expect("a pipe");
    let kept = loop {
        let names = names(at);
        let kept = names.first().map(|name| at.join(name));
        if let Some(kept) = kept.filter(|kept| kept.join("standard-input").exists()) {
            break kept;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let mode = |path: &Path| {
        let facts = std::fs::metadata(path).expect("it is there");
        facts.permissions().mode() & 0o777
    };
    assert_eq!(mode(&kept), 0o700);
    assert_eq!(mode(&kept.join("standard-input")), 0o600);
    stdin.write_all(b"\n1 2\n").expect("a pipe");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(names(at), [""; 0]);
}

#[test]
fn cached_graphs_are_listed_and_removed() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    assert_eq!(succeed(at, &["cache", "list"]), "");
    succeed(at, &["run", "wcc", "edges.txt", "-q"]);
    succeed(at, &["run", "wcc", "edges.txt", "--undirected", "-q"]);
    for place in [".", "edges.txt", "edges.txt.graphmill"] {
        let said = succeed(at, &["cache", "list", place]);
        assert_eq!(said.lines().count(), 2, "{place}: {said}");
        let json = succeed(at, &["cache", "list", place, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert!(json[0]["bytes"].as_u64() > Some(0), "{json}");
    }
    // What a link leads to is not removed.
    let other = tempfile::tempdir().expect("a folder");
    let link = other.path().join("edges.txt.graphmill");
    std::os::unix::fs::symlink(at.join("edges.txt.graphmill"), link).expect("a link");
    assert_eq!(succeed(other.path(), &["cache", "clear"]), "");
    assert_eq!(succeed(at, &["cache", "list"]).lines().count(), 2);
    // A directory that is no graph stays, and so does its parent.
    std::fs::write(at.join("edges.txt.graphmill/mine"), "").expect("a file");
    assert_eq!(
        succeed(at, &["cache", "clear", "edges.txt"])
            .lines()
            .count(),
        2
    );
    assert_eq!(names(&at.join("edges.txt.graphmill")), ["mine"]);
    std::fs::remove_file(at.join("edges.txt.graphmill/mine")).expect("a file");
    succeed(at, &["run", "wcc", "edges.txt", "-q"]);
    assert_eq!(succeed(at, &["cache", "clear"]).lines().count(), 1);
    assert_eq!(names(at), ["edges.txt"]);
    assert!(fail(at, 2, &["cache", "list", "nothing"]).contains("nothing"));
}
