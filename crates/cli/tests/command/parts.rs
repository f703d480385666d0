//! A result as a folder: a part from each rank, together the rows of the one file; it is there whole, or not at all.

use std::path::Path;

use crate::{fail, names, succeed};

/// Edges of a few hubs and many others, under names by number.
fn edges(name: impl Fn(u64) -> String) -> String {
    let edge = |i: u64| {
        let to = match i.is_multiple_of(3) {
            true => i % 7,
            false => i * 7919 % 900,
        };
        format!("{} {}\n", name(i * i % 701), name(to))
    };
    (0..3000).map(edge).collect()
}

/// The lines of the parts of CSV, each without its header, which has to be that of all.
fn parts(folder: &Path, header: &str) -> Vec<Vec<String>> {
    let read = |name: &String| {
        let text = std::fs::read_to_string(folder.join(name)).expect("a part");
        let mut lines = text.lines().map(String::from);
        assert_eq!(lines.next().as_deref(), Some(header), "{name}");
        lines.collect()
    };
    names(folder).iter().map(read).collect()
}

fn names_of(count: usize, ending: &str) -> Vec<String> {
    (0..count)
        .map(|rank| format!("part-{rank:05}.{ending}"))
        .collect()
}

#[test]
fn parts_together_equal_one_file() {
    let text = |i: u64| format!("v{}", i * 37 % 1000);
    let integer = |i: u64| (i * 1_000_003 + 17).to_string();
    let kinds: [(&dyn Fn(u64) -> String, &str); 2] = [(&integer, "int"), (&text, "string")];
    for (name, ids) in kinds {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        std::fs::write(at.join("edges.txt"), edges(name)).expect("a file");
        for order in ["id", "degree"] {
            let import = ["import", "edges.txt", "--ids", ids, "--order", order, "-q"];
            let graph = ["-o", order, "--batch-size", "50", "--undirected"];
            succeed(at, &[&import[..], &graph].concat());
            for asked in [
                &["wcc"][..],
                &["bfs", "--source", &name(1)],
                &["pagerank", "--iterations", "3"],
            ] {
                let run = |more: &[&str]| {
                    let base = [&["run", asked[0], order, "-q"], &asked[1..], more].concat();
                    succeed(at, &base);
                };
                run(&["-o", "one.csv"]);
                let one = std::fs::read_to_string(at.join("one.csv")).expect("a result");
                let mut one = one.lines().map(String::from);
                let header = one.next().expect("a header");
                let one: Vec<String> = one.collect();
                for ranks in [1, 3, 4] {
                    let what = format!("{asked:?} of {ids} by {order}, {ranks} ranks");
                    let count = ranks.to_string();
                    run(&["-o", "all.csv/", "--ranks", &count]);
                    assert_eq!(names(&at.join("all.csv")), names_of(ranks, "csv"), "{what}");
                    let parts = parts(&at.join("all.csv"), &header);
                    assert!(parts.iter().all(|part| part.len() >= 50), "{what}");
                    if order == "id" {
                        assert!(parts.concat() == one, "{what}");
                    }
                    // In order of degree a rank's vertices are anywhere: its rows come in the same order, with others between.
                    for part in &parts {
                        let mut rest = one.iter();
                        assert!(
                            part.iter().all(|row| rest.any(|of_all| of_all == row)),
                            "{what}"
                        );
                    }
                    let (mut found, mut wanted) = (parts.concat(), one.clone());
                    found.sort();
                    wanted.sort();
                    assert!(found == wanted, "{what}");

                    run(&["-o", "all/", "--ranks", &count]);
                    assert_eq!(names(&at.join("all")), names_of(ranks, "parquet"), "{what}");
                    for [left, right] in
                        [["all", "one.csv"], ["one.csv", "all/"], ["all", "all.csv"]]
                    {
                        succeed(at, &["validate", left, right, "--rule", "exact"]);
                    }
                    let judge = ["validate", "all", order, "--algorithm"];
                    succeed(at, &[&judge[..], asked].concat());
                }
            }
        }
        let left = ["all", "all.csv", "degree", "edges.txt", "id", "one.csv"];
        assert_eq!(names(at), left);
    }
}

#[test]
fn top_is_of_all_ranks_and_parts_may_be_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("edges.txt"), "0 1\n1 2\n2 0\n3 0\n").expect("a file");
    let import = ["import", "edges.txt", "-o", "graph", "--batch-size", "2"];
    succeed(at, &import);
    let run = ["run", "pagerank", "graph", "--top", "2", "-q", "-o"];
    let one = succeed(at, &[&run[..], &["one.csv"]].concat());
    let all = succeed(at, &[&run[..], &["all.csv/", "--ranks", "4"]].concat());
    assert_eq!(all, one);
    let parts = parts(&at.join("all.csv"), "vertex,pagerank");
    assert_eq!(parts.len(), 4);
    assert!(parts.iter().any(Vec::is_empty));
    assert_eq!(parts.concat().len(), 4);
}

#[test]
fn parts_replace_an_older_result_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("edges.txt"), edges(|i| i.to_string())).expect("a file");
    succeed(
        at,
        &["import", "edges.txt", "-o", "graph", "--batch-size", "100"],
    );
    let run = |output: &'static str, ranks: &'static str| {
        ["run", "wcc", "graph", "-q", "--ranks", ranks, "-o", output]
    };
    succeed(at, &run("out.csv/", "4"));
    succeed(at, &run("out.csv/", "2"));
    assert_eq!(names(&at.join("out.csv")), names_of(2, "csv"));
    // A link stays, and leads to the new one.
    std::os::unix::fs::symlink("out.csv", at.join("link.csv")).expect("a link");
    succeed(at, &run("link.csv/", "3"));
    assert_eq!(names(&at.join("out.csv")), names_of(3, "csv"));
    std::fs::create_dir(at.join("empty")).expect("a folder");
    succeed(at, &run("empty/", "1"));
    assert_eq!(names(&at.join("empty")), names_of(1, "parquet"));

    let known = names(at);
    std::fs::write(at.join("out.csv/notes.txt"), "mine").expect("a file");
    for (output, word) in [
        ("out.csv/", "more in it than the parts"),
        ("./", "no name"),
        ("edges.txt/", "format"),
        ("out.json/", "format"),
        ("graph/", "the input"),
        ("graph/out/", "inside a stored graph"),
        ("none/out/", "no directory"),
        ("out.csv", "a slash at the end"),
    ] {
        let said = fail(at, 2, &run(output, "2"));
        assert!(said.contains(word), "{output}: {said}");
    }
    std::fs::write(at.join("plain"), "").expect("a file");
    let said = fail(at, 2, &run("plain/", "2"));
    assert!(said.contains("a file"), "{said}");
    let metrics = ["--metrics", "empty/run.json"];
    let said = fail(at, 2, &[&run("empty/", "2")[..], &metrics].concat());
    assert!(said.contains("other output"), "{said}");
    std::fs::remove_file(at.join("plain")).expect("it goes");
    assert_eq!(names(at), known);
    assert_eq!(names(&at.join("out.csv")).len(), 4);
}

#[test]
fn failed_run_keeps_the_older_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("edges.txt"), edges(|i| i.to_string())).expect("a file");
    succeed(
        at,
        &["import", "edges.txt", "-o", "graph", "--batch-size", "100"],
    );
    let run = ["run", "wcc", "graph", "-q", "--ranks", "4", "-o", "out/"];
    let limited = |bytes: u64| {
        let mut limited = std::process::Command::new("prlimit");
        limited.arg(format!("--fsize={bytes}"));
        let limited = limited.arg(env!("CARGO_BIN_EXE_graphmill")).args(run);
        let ended = limited.current_dir(at).output().expect("prlimit starts");
        (
            ended.status.code(),
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        )
    };
    let (code, said) = limited(100);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("part-0000"), "{said}");
    assert_eq!(names(at), ["edges.txt", "graph"]);
    succeed(at, &run);
    let known = std::fs::read(at.join("out/part-00003.parquet")).expect("a part");
    assert_eq!(limited(100).0, Some(1));
    assert_eq!(names(at), ["edges.txt", "graph", "out"]);
    assert_eq!(names(&at.join("out")), names_of(4, "parquet"));
    let still = std::fs::read(at.join("out/part-00003.parquet")).expect("a part");
    assert!(known == still);
}

#[test]
fn directory_without_parts_is_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("none")).expect("a folder");
    std::fs::write(at.join("none/_SUCCESS"), "").expect("a file");
    std::fs::write(at.join("one.csv"), "vertex,x\n1,2\n").expect("a file");
    let said = fail(at, 2, &["validate", "none", "one.csv", "--rule", "exact"]);
    assert!(said.contains("no part of a result"), "{said}");
    // What others keep beside parts is passed over.
    std::fs::write(at.join("none/part.0.csv"), "vertex,x\n1,2\n").expect("a file");
    succeed(at, &["validate", "none", "one.csv", "--rule", "exact"]);
}
