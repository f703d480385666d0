//! Runs over damaged or unsuitable chunks: an error with its place and a remedy, and nothing left behind.

use std::path::Path;

use crate::stream::{edges, is_close, words};
use crate::{fail, folder_with_edges, names, succeed};

const FORM: &str = "--weights f32 --layout stream --chunk-size 4K --batch-size 64";

/// Ways to run, alone and with chunks at other ranks.
const WAYS: [&str; 4] = [
    "--updates memory",
    "--updates disk --threads 1",
    "--ranks 3 --updates memory --steal 0",
    "--ranks 3 --updates disk --steal inf",
];

/// Runs that must fail, say all `parts`, and leave no file.
fn refuse(at: &Path, runs: &[&str], parts: &[&str]) {
    let before = names(at);
    std::fs::create_dir(at.join("tmp")).expect("a directory");
    for run in runs {
        for way in WAYS {
            let run = format!("run {run} -q --tmp tmp -o result.csv {way}");
            let said = fail(at, 1, &words(&run));
            for part in parts {
                assert!(said.contains(part), "{run}: {said}");
            }
            assert_eq!(names(&at.join("tmp")), [""; 0], "{run}");
        }
    }
    std::fs::remove_dir(at.join("tmp")).expect("an empty directory");
    assert_eq!(names(at), before, "{runs:?}");
}

/// A directory with a graph of many chunks, and another of the same shape.
fn folder_with_graphs() -> tempfile::TempDir {
    let text = edges();
    let folder = folder_with_edges(&text);
    let at = folder.path();
    succeed(at, &words(&format!("import edges.txt {FORM} -o graph")));
    let turned = text.lines().map(|row| {
        let mut columns = row.split(' ');
        let mut next = || columns.next().expect("three columns");
        let (source, destination, weight) = (next(), next(), next());
        format!(
            "{source} {} {weight}\n",
            699 - destination.parse::<u64>().expect("an id")
        )
    });
    std::fs::write(at.join("other.txt"), turned.collect::<String>()).expect("room");
    succeed(at, &words(&format!("import other.txt {FORM} -o other")));
    folder
}

const RUNS: [&str; 4] = [
    "wcc graph",
    "pagerank graph",
    "scc graph",
    "sssp --source 1 graph",
];

#[test]
fn flipped_byte_of_a_chunk_fails_a_run() {
    let folder = folder_with_graphs();
    let at = folder.path();
    let path = at.join("graph/stream/00000.chunks");
    let bytes = std::fs::read(&path).expect("a file of the graph");
    // The first page has arcs, the one in the middle weights.
    for (place, runs) in [(0, &RUNS[..]), (bytes.len() / 2, &RUNS[3..])] {
        let mut bad = bytes.clone();
        bad[place] ^= 4;
        std::fs::write(&path, bad).expect("room");
        let page = format!("graph/stream/00000.chunks: page {} (byte ", place >> 16);
        refuse(
            at,
            runs,
            &[
                &page,
                "is not what was written there",
                "import the graph again",
            ],
        );
    }
    std::fs::write(&path, bytes).expect("room");
    succeed(at, &words("run wcc graph -o -"));
}

#[test]
fn chunk_file_that_is_short_or_foreign_fails_a_run() {
    let folder = folder_with_graphs();
    let at = folder.path();
    let again = "import the graph again";
    let name = "stream/00000.chunks";
    let [path, other] = ["graph", "other"].map(|graph| at.join(graph).join(name));
    let bytes = std::fs::read(&path).expect("a file of the graph");
    let place = format!("graph/{name}");
    for length in [bytes.len() - 4096, 4096, 0] {
        std::fs::write(&path, &bytes[..length]).expect("room");
        refuse(at, &RUNS[..1], &[&place, again]);
    }
    std::fs::copy(other, &path).expect("room");
    refuse(at, &RUNS, &[&place, again]);
    std::fs::write(&path, bytes).expect("room");
    succeed(at, &words("run wcc graph -o -"));
}

#[test]
fn weights_and_graphs_that_do_not_fit_are_refused_over_chunks() {
    let folder = folder_with_edges(&(edges() + "3 4 -2\n"));
    let at = folder.path();
    succeed(at, &words(&format!("import edges.txt {FORM} -o graph")));
    let again = "import the edges again with other weights";
    let negative = ["graph", "from -2.0 to 8.0, and must be 0 or more", again];
    refuse(at, &["sssp --source 1 graph"], &negative);
    let negative = ["graph", "it has negative weights", again];
    refuse(at, &["pagerank --weighted graph"], &negative);
    let vertices = ["graph", "import INPUT --edge-vertices -o GRAPH"];
    refuse(at, &["bp --affinity 0.8 graph"], &vertices);
    // Negative weights are exponents for beliefs.
    let import = "import edges.txt --weights f32 --edge-vertices -o";
    succeed(at, &words(&format!("{import} columns")));
    succeed(at, &words(&format!("{import} chunks --layout stream")));
    let run = "run bp --affinity 0.8 -o -";
    let wanted = succeed(at, &words(&format!("{run} columns")));
    let found = succeed(
        at,
        &words(&format!("{run} chunks --ranks 2 --updates disk")),
    );
    assert!(is_close(&found, &wanted));
}

#[test]
fn edges_that_chunks_do_not_take_are_refused() {
    let folder = folder_with_edges("0 1 2\n1 2 2\n2 7 2\n");
    let at = folder.path();
    let pairs = [0u32, 1, 1, 2, 2, 7].map(u32::to_le_bytes).concat();
    std::fs::write(at.join("edges.u32"), pairs).expect("room");
    let before = names(at);
    let stream = [
        "import -o graph --layout stream",
        "run wcc --executor stream",
    ];
    for command in stream {
        for rule in ["first", "sum", "min", "max"] {
            let command = format!("{command} edges.txt --weights f32 --duplicates {rule}");
            let said = fail(at, 2, &words(&command));
            let conflict = format!("--duplicates {rule} conflicts with --layout stream");
            assert!(said.contains(&conflict), "{command}: {said}");
            assert!(said.contains("use --layout column"), "{command}: {said}");
        }
        for (file, place) in [("edges.txt", "edges.txt, line 3"), ("edges.u32", "byte 16")] {
            for below in [7, 3] {
                for ranks in [1, 3] {
                    let below = format!("--vertices-below {below} --ranks {ranks}");
                    let said = fail(at, 1, &words(&format!("{command} {file} {below}")));
                    for part in [file, place, "--vertices-below", "give a larger number"] {
                        assert!(said.contains(part), "{command} {file} {below}: {said}");
                    }
                }
            }
        }
    }
    assert_eq!(names(at), before);
    succeed(
        at,
        &words("run wcc --executor stream edges.txt --vertices-below 8 -o -"),
    );
}
