//! Generated graphs: the same seed gives the same bytes, and a stored graph holds what the file holds.

use std::path::Path;

use crate::{fail, folder_with_edges, succeed, told};

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).expect("a generated file")
}

#[test]
fn seed_fixes_edges_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = |output: &str, seed: &str, threads: &str| {
        let rule = ["generate", "kronecker", "8", "4"];
        let rest = ["-o", output, "--seed", seed, "--threads", threads];
        told(at, &[&rule[..], &rest[..]].concat())
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
fn numbers_are_given_in_their_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (short, long) in [
        ("kronecker 8", "kronecker 8 16"),
        ("kronecker 8", "kronecker 8 16 --labels permuted"),
        ("scattered 50 3", "scattered 50 3 --gap 100000"),
        ("scattered 50 3 --gap 1", "consecutive 50 3"),
    ] {
        for (rule, output) in [(short, "a.u32"), (long, "b.u32")] {
            generate(at, &format!("{rule} -o {output}"));
        }
        assert_eq!(bytes(at, "a.u32"), bytes(at, "b.u32"), "{short}");
        for output in ["a.u32", "b.u32"] {
            std::fs::remove_file(at.join(output)).expect("a file");
        }
    }
    for wrong in [
        "kronecker",
        "kronecker 8 --scale 8",
        "kronecker 49 1",
        "kronecker 8 --labels random",
        "uniform 5",
        "grid 5",
        "consecutive 5",
        "consecutive 5 5",
        "scattered 0 1",
        "consecutive 5 1 --weighted --weights f64",
    ] {
        let words = format!("generate {wrong} -o graph");
        fail(at, 2, &words.split(' ').collect::<Vec<_>>());
        assert!(crate::names(at).is_empty(), "{wrong}");
    }
}

fn generate(at: &Path, words: &str) -> String {
    let words: Vec<&str> = ["generate"].into_iter().chain(words.split(' ')).collect();
    succeed(at, &words)
}

/// All files of a stored graph, by their names.
fn files(graph: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    for name in crate::names(graph) {
        let path = graph.join(&name);
        if path.is_dir() {
            let within = |(file, bytes)| (format!("{name}/{file}"), bytes);
            all.extend(files(&path).into_iter().map(within));
        } else {
            all.insert(name.clone(), std::fs::read(path).expect("a file"));
        }
    }
    all
}

/// The same without what a graph says of the file that it was imported from.
fn without_source(
    mut graph: std::collections::BTreeMap<String, Vec<u8>>,
) -> std::collections::BTreeMap<String, Vec<u8>> {
    let meta = graph.remove("graph.json").expect("a description");
    let mut meta: serde_json::Value = serde_json::from_slice(&meta).expect("JSON");
    meta["options"]["read"].take();
    meta["checksum"].take();
    graph.insert("graph.json".into(), meta.to_string().into_bytes());
    graph
}

#[test]
fn generated_graph_equals_import_of_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // Rules that name every vertex, so that a file of edges does too.
    for rule in [
        "grid 40 50",
        "consecutive 3000 20",
        "scattered 3001 20",
        "scattered 3000 40",
    ] {
        for options in [
            "",
            " --undirected --batch-size 700",
            " --reverse --duplicates first --self-loops drop",
            " --weights f64 --reverse --csr-ratio 32",
            " --weights f32 --undirected --duplicates sum",
            " --weights f32 --reverse --duplicates max",
        ] {
            let (drawn, stored) = options.split_at(match options.find("--weights") {
                Some(_) => {
                    options
                        .find("--weights f32")
                        .or(options.find("--weights f64"))
                        .expect("it")
                        + 13
                }
                None => 0,
            });
            let edges = match drawn.is_empty() {
                true => "edges.el",
                false => "edges.wel",
            };
            generate(at, &format!("{rule}{drawn} -o {edges}"));
            let import = format!("import {edges} -o imported{drawn}{stored}");
            succeed(at, &import.split(' ').collect::<Vec<_>>());
            for machine in ["--threads 1", "--threads 2", "--threads 3 --memory 16M"] {
                generate(at, &format!("{rule}{options} {machine} -o graph"));
                assert!(
                    without_source(files(&at.join("graph")))
                        == without_source(files(&at.join("imported"))),
                    "{rule}{options} {machine}"
                );
                std::fs::remove_dir_all(at.join("graph")).expect("a graph");
            }
            std::fs::remove_dir_all(at.join("imported")).expect("a graph");
            std::fs::remove_file(at.join(edges)).expect("a file");
        }
    }
}

#[test]
fn vertices_beyond_32_bits_take_no_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    generate(at, "consecutive 4294968000 0 -o none");
    generate(at, "uniform 4294968000 500 --undirected -o few");
    for graph in ["none", "few"] {
        let said = succeed(at, &["verify", graph]);
        let bytes: usize = files(&at.join(graph)).values().map(Vec::len).sum();
        assert!(bytes < 40 << 20, "{bytes} bytes: {said}");
        assert!(succeed(at, &["info", graph]).contains("4,294,968,000"));
    }
    let said = fail(
        at,
        2,
        &["generate", "consecutive", "4294968000", "1", "-o", "a.u32"],
    );
    assert!(said.contains(".u64"), "{said}");
}

#[test]
fn coinciding_gap_multiples_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["generate", "scattered", "2000", "5", "--gap", "500"];
    for more in [&["--memory", "64M"][..], &["--quiet"]] {
        let output = crate::call(
            folder.path(),
            &[&words[..], more, &["-o", &more[0][2..]]].concat(),
        );
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("coincide") && said.contains("more than 4") && said.contains("itself"),
            "{more:?}: {said}"
        );
    }
    let info = succeed(folder.path(), &["info", "quiet"]);
    assert!(info.contains("10,000"), "{info}");
}

#[test]
fn unstorable_graph_is_refused_before_edges() {
    let folder = tempfile::tempdir().expect("a folder");
    let refuse = |words: &str| {
        let words = format!("generate {words}");
        let said = fail(folder.path(), 1, &words.split(' ').collect::<Vec<_>>());
        assert!(!said.contains("scan"), "{said}");
        assert!(crate::names(folder.path()).is_empty());
        said
    };
    for rule in [
        "kronecker 39 1",
        "uniform 274877906945 9",
        "consecutive 274877906945 1",
    ] {
        let said = refuse(&format!("{rule} -o graph"));
        assert!(said.contains("cannot store "), "{said}");
    }
    for (edges, output) in [
        ("uniform 9 18446744073709551615", "graph"),
        ("uniform 9 18446744073709551615", "a.u32"),
        ("uniform 9 18446744073709551615", "a.el"),
        ("consecutive 274877906000 60000000", "graph"),
    ] {
        let said = refuse(&format!("{edges} -o {output}"));
        assert!(said.contains("are free; free some space"), "{said}");
    }
}

#[test]
fn existing_file_stays() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    let grid = ["generate", "grid", "2", "2", "-o"];
    std::fs::create_dir(at.join("graph")).expect("a folder");
    for rule in [&grid[..], &["generate", "consecutive", "9", "2", "-o"]] {
        let said = fail(at, 1, &[rule, &["graph"]].concat());
        assert!(said.contains("exists already"), "{said}");
    }
    for output in ["edges.txt.el", "raw.u32"] {
        std::fs::write(at.join(output), "precious").expect("a file");
        let said = fail(at, 2, &[&grid[..], &[output]].concat());
        assert!(said.contains("is there already"), "{said}");
        assert_eq!(bytes(at, output), b"precious");
    }
}

#[test]
fn grid_depth_is_its_rows_and_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    succeed(
        at,
        &["generate", "grid", "5", "9", "--undirected", "-o", "graph"],
    );
    let top = succeed(at, &["run", "bfs", "graph", "--source", "0", "--top", "1"]);
    assert_eq!(top.lines().nth(1), Some("44      12"));
}

#[test]
fn ids_beyond_file_format_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let said = fail(
        at,
        2,
        &["generate", "uniform", "9", "9", "--weighted", "-o", "a.u32"],
    );
    assert!(said.contains(".wel"), "{said}");
    let said = fail(at, 2, &["generate", "uniform", "0", "9", "-o", "a.u32"]);
    assert!(said.contains("vertices"), "{said}");
    for (words, says) in [
        ("--undirected -o a.el", "--undirected"),
        ("--batch-size 5 -o a.u32", "stored graphs"),
        ("--self-loops drop -o a.u64", "options of edges"),
        ("-o a.wel", "--weights f32"),
        ("-o a.csv", ".u32, .u64, .el or .wel"),
        ("-o a.el.gz", ".u32, .u64, .el or .wel"),
        ("-o no/such/graph", "no directory no/such; make it first"),
        ("-o no/such.el", "no directory no; make it first"),
    ] {
        let words = format!("generate uniform 9 9 {words}");
        let said = fail(at, 2, &words.split(' ').collect::<Vec<_>>());
        assert!(said.contains(says), "{words}: {said}");
    }
    assert!(crate::names(at).is_empty());
}

/// Generates a graph of more column files than `limit`, an argument of `ulimit`, lets be open.
fn generate_with_limit(limit: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let generate = "generate uniform 34359738368 300 --threads 2 -o graph -q";
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
fn open_files_stay_few() {
    generate_with_limit("-n 48");
    // A soft limit is raised.
    generate_with_limit("-S -n 12");
}

#[test]
fn source_bitmaps_are_written_only_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mut found = Vec::new();
    for more in ["", " --csr-ratio 32"] {
        generate(at, &format!("kronecker 14{more} -o graph"));
        let columns = at.join("graph/columns");
        let entries = std::fs::read_dir(&columns).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let bitmaps = paths.filter(|path| path.extension().is_some_and(|end| end == "bitmaps"));
        let bytes = bitmaps.map(|path| path.metadata().expect("its length").len());
        let bytes: u64 = bytes.sum();
        let run = "run bfs graph --source 0 --sparse always -q -o r.csv";
        succeed(at, &run.split(' ').collect::<Vec<_>>());
        let answer = std::fs::read(at.join("r.csv")).expect("a result");
        found.push((bytes > 0, answer));
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
    assert_eq!([found[0].0, found[1].0], [false, true]);
    assert!(found[0].1 == found[1].1, "the answers differ");
}
