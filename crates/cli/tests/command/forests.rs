//! Minimum spanning forests from the command: the same edges for any order, ranks and memory, and `validate`.

use std::path::Path;

use crate::{fail, succeed};

/// Runs the words of a line.
fn call(at: &Path, words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    succeed(at, &words)
}

fn read(at: &Path, name: &str) -> String {
    std::fs::read_to_string(at.join(name)).expect("a result")
}

#[test]
fn forest_has_the_ids_and_weights_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let edges =
        "alice bob 0.1\nbob carol 0.2\ncarol alice 0.3\ndave erin -1.5\nerin dave 2\nfay fay 1\n";
    std::fs::write(at.join("e.txt"), edges).expect("room");
    for order in ["id", "degree"] {
        call(
            at,
            &format!("import e.txt -o {order} --weights f32 --order {order} -q"),
        );
        for ranks in [1, 3] {
            call(at, &format!("run mst {order} --ranks {ranks} -q -o m.csv"));
            let expected =
                "source,destination,weight\nalice,bob,0.1\nbob,carol,0.2\ndave,erin,-1.5\n";
            assert_eq!(read(at, "m.csv"), expected, "{order}, {ranks} ranks");
            call(at, &format!("validate m.csv {order} --algorithm mst"));
        }
    }
    let heavier = read(at, "m.csv").replace("bob,carol,0.2", "alice,carol,0.3");
    std::fs::write(at.join("m.csv"), heavier).expect("room");
    let told = fail(at, 1, &["validate", "m.csv", "id", "--algorithm", "mst"]);
    assert!(told.contains("alice - carol"), "{told}");
    let top = call(at, "run mst id --top 1 -q");
    assert!(top.contains("bob") && !top.contains("dave"), "{top}");
}

#[test]
fn forest_of_odd_graphs_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (edges, forest) in [
        ("7 7\n", ""),
        (
            "3 9007199254740993\n9007199254740993 3\n",
            "3,9007199254740993,1\n",
        ),
        ("1 2\n2 3\n3 1\n", "1,2,1\n1,3,1\n"),
    ] {
        std::fs::write(at.join("e.txt"), edges).expect("room");
        call(at, "run mst e.txt --weights none -q -o m.csv");
        let found = read(at, "m.csv").replace(",1.0\n", ",1\n");
        assert_eq!(found, format!("source,destination,weight\n{forest}"));
    }
}

#[test]
fn forest_has_the_same_bytes_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    call(at, "generate kronecker 11 8 --weights f32 -o e.wel -q");
    let mut first = None;
    for how in [
        "",
        " --batch-size 64",
        " --order degree",
        " --undirected --batch-size 512",
    ] {
        call(at, &format!("import e.wel -o g --weights f32{how} -q"));
        for how in [
            "--threads 1",
            "--threads 3 --ranks 3",
            "--memory 12M",
            "--memory 64M --ranks 4",
            "--memory 128M --ranks 8",
        ] {
            call(at, &format!("run mst g {how} -q -o m.csv"));
            let found = read(at, "m.csv");
            assert!(
                *first.get_or_insert_with(|| found.clone()) == found,
                "{how}"
            );
        }
        call(at, "run mst g -q -o m.parquet");
        call(at, "validate m.parquet g --algorithm mst");
        std::fs::remove_dir_all(at.join("g")).expect("a graph");
    }
}
