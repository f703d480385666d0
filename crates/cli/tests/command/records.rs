//! `--edge-data` keeps a record of fields with each edge: on the way into a graph, in `info`, and where there is no use for it.

use std::path::Path;

use crate::{call, succeed};

const TRIPS: &str = "from,to,amount,day,kind\n1,2,0.5,7,255\n2,3,1.5,65535,0\n1,2,-2,7,1\n";

fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|word| !word.is_empty()).collect()
}

/// Runs the command, which has to fail, and gives back its stderr.
fn refused(folder: &Path, line: &str) -> String {
    let output = call(folder, &words(line));
    let said = String::from_utf8(output.stderr).expect("stderr is text");
    assert!(!output.status.success(), "{line}: {said}");
    said
}

#[test]
fn graph_of_records_is_stored_verified_and_described() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("trips.csv"), TRIPS).expect("room");
    let import = "import trips.csv -o graph --edge-data amount:f32,day:u16,kind:u8 --reverse";
    let output = call(at, &words(import));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("data amount:f32,day:u16,kind:u8"), "{said}");
    succeed(at, &words("verify graph --deep -q"));
    let info = succeed(at, &words("info graph"));
    assert!(
        info.contains("edge data") && info.contains("amount:f32,day:u16,kind:u8"),
        "{info}"
    );
    let json = succeed(at, &words("info graph --json"));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["edge"]["record"], 7);
    assert_eq!(json["edge_fields"][1]["name"], "day");
    assert_eq!(json["edge_fields"][1]["type"], "u16");
    assert_eq!(
        (&json["weights"], &json["weight_bytes"]),
        (&serde_json::Value::Null, &42.into())
    );
    // A search reads nothing of an edge.
    let found = succeed(at, &words("run bfs graph --source 1 -q -o -"));
    assert_eq!(found.lines().count(), 4, "{found}");
    succeed(at, &words("run bfs graph --source 1 -q -o depths.csv"));
    succeed(
        at,
        &words("validate depths.csv graph --algorithm bfs --source 1 -q"),
    );
    // Another number of threads and another budget give the same bytes.
    let again = "import trips.csv -o again -q --threads 3 --memory 64M --edge-data amount:f32,day:u16,kind:u8 --reverse";
    succeed(at, &words(again));
    for file in [
        "graph.json",
        "columns/00000.weights",
        "reverse/00000.weights",
    ] {
        let bytes = |graph: &str| std::fs::read(at.join(graph).join(file)).expect("a file");
        assert_eq!(bytes("graph"), bytes("again"), "{file}");
    }
    // The records of 1 -> 2, ordered by their bytes, then the one of 2 -> 3.
    let weights = std::fs::read(at.join("graph/columns/00000.weights")).expect("a file");
    let record = |amount: f32, day: u16, kind: u8| {
        [&amount.to_le_bytes()[..], &day.to_le_bytes(), &[kind]].concat()
    };
    let expected = [
        record(-2.0, 7, 1),
        record(0.5, 7, 255),
        record(1.5, 65535, 0),
    ]
    .concat();
    assert_eq!(weights[..21], expected);
}

#[test]
fn weights_are_asked_for_where_edges_carry_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("trips.csv"), TRIPS).expect("room");
    succeed(
        at,
        &words("import trips.csv -o graph -q --edge-data amount:f32"),
    );
    for line in [
        "run sssp graph --source 1 -o -",
        "run sssp graph --source 1 --method pregel-pull -o -",
        "run pagerank graph --weighted -o -",
    ] {
        let said = refused(at, line);
        let parts = [
            "goes by weights",
            "the record amount:f32",
            "--weights f32 or f64",
        ];
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{line}: {said}"
        );
    }
    // Before the file is imported.
    for line in [
        "run sssp trips.csv --edge-data amount:f32 --source 1 -o -",
        "run pagerank trips.csv --edge-data amount:f32 --weighted -o -",
    ] {
        let said = refused(at, line);
        let parts = [
            "with --edge-data",
            "goes by weights",
            "give --weights f32 or f64",
        ];
        assert!(
            parts.iter().all(|part| said.contains(part)) && !said.contains("importing"),
            "{line}: {said}"
        );
    }
    for (line, part) in [
        (
            "--edge-data amount:f32 --weights f32",
            "cannot be used with",
        ),
        (
            "--edge-data amount:f32 --weight-column amount",
            "cannot be used with",
        ),
        ("--edge-data amount:f16", "f16 is no type of a field"),
        ("--edge-data amount:f64,day:u64,kind:u8", "17 bytes"),
        (
            "--edge-data amount:f32 --duplicates sum",
            "--duplicates sum requires weights",
        ),
        (
            "--edge-data amount:f32 --duplicates min",
            "--duplicates min requires weights",
        ),
        (
            "--edge-data kind:i8",
            "line 2, \"1,2,0.5,7,255\": column 5 does not fit i8",
        ),
        ("--edge-data amount:i8", "column 3 is no number of type i8"),
        ("--edge-data color:u8", "there is no such column"),
    ] {
        let said = refused(at, &format!("import trips.csv -o other {line}"));
        assert!(said.contains(part), "{line}: {said}");
    }
    let first = "import trips.csv -o first -q --edge-data kind:u8 --duplicates first";
    succeed(at, &words(first));
    let kinds = std::fs::read(at.join("first/columns/00000.weights")).expect("a file");
    assert_eq!(kinds[..2], [255, 0]);
}

#[test]
fn estimate_counts_the_bytes_of_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "estimate --vertices 100000 --edges 1000000";
    let told = |option: &str| succeed(folder.path(), &words(&format!("{line} {option}")));
    let bytes = |option: &str| {
        let told: serde_json::Value = serde_json::from_str(&told(option)).expect("JSON");
        let number = |told: &serde_json::Value| told.as_u64().expect("a number");
        let read = number(&told["import"]["steps"][0]["bytes_read"]);
        (number(&told["graph"]["weight_bytes"]), read)
    };
    let [none, four, twelve] = ["", "--edge-data a:f32", "--edge-data a:f32,b:f64"]
        .map(|option| bytes(&format!("{option} --json")));
    assert_eq!(
        [none.0, four.1 - none.1, twelve.1 - none.1],
        [0, 4_000_000, 12_000_000]
    );
    // With checksums.
    let times = twelve.0 as f64 / four.0 as f64;
    assert!((2.99..3.01).contains(&times), "{times}");
    assert!(told("--edge-data a:f32").contains(" of edge data, "));
    assert!(told("").contains(" of weights, "));
    let said = refused(
        folder.path(),
        &format!("{line} --input generated --edge-data a:f32"),
    );
    assert!(
        said.contains("--edge-data requires files (--input files)"),
        "{said}"
    );
}
