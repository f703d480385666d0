//! A `graph.json` that says something else than the edges, with the checksum of what it says: damage, and never another answer or none.

use std::path::Path;

use crate::{fail, folder_with_edges, succeed};

/// Replaces a text of `graph.json` and sums it up again.
fn craft(folder: &Path, from: &str, to: &str) {
    let path = folder.join("graph/graph.json");
    let text = std::fs::read_to_string(&path).expect("a description");
    assert!(text.contains(from), "{text}");
    let text = text.replacen(from, to, 1);
    let (body, _) = text.rsplit_once("\n\"checksum\"").expect("a checksum");
    let mut sum = flate2::Crc::new();
    sum.update(body.as_bytes());
    let text = format!("{body}\n\"checksum\": \"{:08x}\"\n}}\n", sum.sum());
    std::fs::write(path, text).expect("a file");
}

/// A stored graph with a cycle of negative weight.
fn negative() -> tempfile::TempDir {
    let folder = folder_with_edges("0 1 1\n1 2 -3\n2 1 1\n2 3 4\n");
    let import = ["import", "edges.txt", "-o", "graph", "--weights", "f32"];
    succeed(folder.path(), &[&import[..], &["-q"]].concat());
    folder
}

#[test]
fn sssp_with_crafted_least_weight_is_damage() {
    let folder = negative();
    let at = folder.path();
    let run = ["run", "sssp", "graph", "--source", "0", "-q"];
    assert!(fail(at, 1, &run).contains("-3.0 to 4.0"));
    craft(at, "\"least\":-3.0", "\"least\":0.0");
    for more in [
        &["--method", "bellman-ford"][..],
        &["--method", "delta"],
        &["--place", "edges=stream"],
        &["--place", "edges=dram"],
        &["--precision", "f32"],
        &["--ranks", "2"],
    ] {
        let said = fail(at, 1, &[&run[..], more].concat());
        assert!(said.contains("columns/00000.weights"), "{more:?}: {said}");
        assert!(said.contains("outside the range"), "{more:?}: {said}");
    }
    assert!(fail(at, 1, &["verify", "graph"]).contains("outside the range"));
}

#[test]
fn sssp_without_weight_range_is_damage() {
    let folder = negative();
    let at = folder.path();
    craft(at, "{\"greatest\":4.0,\"least\":-3.0}", "null");
    let said = fail(at, 1, &["run", "sssp", "graph", "--source", "0"]);
    assert!(said.contains("range of weights"), "{said}");
}

#[test]
fn verify_deep_finds_what_checksums_hide() {
    for (from, to, said) in [
        (
            "\"least\":-3.0",
            "\"least\":-5.0",
            "records weights -5.0 to 4.0",
        ),
        (
            "\"greatest\":4.0",
            "\"greatest\":9.0",
            "its edges have weights -3.0 to 4.0",
        ),
        (
            "\"input_edges\": 4",
            "\"input_edges\": 5",
            "5 edges were kept, there are 4",
        ),
        (
            "\"duplicates\":0",
            "\"duplicates\":1",
            "3 edges were kept, there are 4",
        ),
        (
            "\"directed\": true",
            "\"directed\": false",
            "not every edge is stored both ways",
        ),
        (
            "\"csr_ratio\": 0",
            "\"csr_ratio\": 1",
            "its graph id is not that of its shape",
        ),
    ] {
        let folder = negative();
        let at = folder.path();
        succeed(at, &["verify", "graph", "--deep"]);
        craft(at, from, to);
        succeed(at, &["verify", "graph"]);
        let found = fail(at, 1, &["verify", "graph", "--deep"]);
        assert!(found.contains(said), "{to}: {found}");
    }
}

#[test]
fn verify_deep_finds_every_kind_of_graph_intact() {
    let folder = folder_with_edges("a b 1\nb a 2.5\na a 3\nc a 0.1\nb a 0.7\na b 0.1\nc c 1\n");
    let at = folder.path();
    for more in [
        "",
        "--reverse",
        "--undirected",
        "--undirected --duplicates sum",
        "--undirected --duplicates first --self-loops drop",
        "--duplicates max --reverse",
        "--undirected --order degree --batch-size 2",
        "--weights none --undirected",
    ] {
        let import = "import edges.txt -o graph -q --weights f64";
        let import = match more.contains("--weights") {
            true => "import edges.txt -o graph -q",
            false => import,
        };
        let line = format!("{import} {more}");
        succeed(at, &line.split_whitespace().collect::<Vec<_>>());
        succeed(at, &["verify", "graph", "--deep", "-q"]);
        std::fs::remove_dir_all(at.join("graph")).expect("it goes");
    }
    for rule in [
        "kronecker 12 8 --batch-size 300 --weights f32",
        "kronecker 11 8 --undirected --weights f32 --order degree",
        "uniform 3000 9000 --reverse",
        "grid 30 40 --weights f32 --undirected",
        "consecutive 5000 20",
        "scattered 3000 7 --gap 13 --undirected",
    ] {
        let line = format!("generate {rule} -o graph -q");
        succeed(at, &line.split_whitespace().collect::<Vec<_>>());
        succeed(at, &["verify", "graph", "--deep", "-q"]);
        std::fs::remove_dir_all(at.join("graph")).expect("it goes");
    }
}
