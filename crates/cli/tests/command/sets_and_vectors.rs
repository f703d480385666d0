//! Options that are files of vertices: `--set` and `--vector`.

use std::path::Path;

use crate::{call, fail, folder_with_edges, succeed};

const ROW: &str = "cut,volume,volume_rest,conductance\n2,4,4,0.5\n";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("room");
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("a file")
}

#[test]
fn conductance_of_a_set_from_each_kind_of_file() {
    let folder = folder_with_edges("1 2\n1 3\n2 3\n3 4\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph", "--undirected"]);
    write(at, "lines.txt", "2\n1\n");
    write(at, "set.csv", "vertex\n1\n2\n");
    write(at, "values.tsv", "vertex\tcomponent\n1\t7\n2\t\n");
    // A result in Parquet names all of its vertices.
    write(at, "two.txt", "1 2\n");
    succeed(at, &["run", "wcc", "two.txt", "-o", "set.parquet"]);
    for set in ["lines.txt", "set.csv", "values.tsv", "set.parquet"] {
        for ranks in ["1", "3"] {
            let run = [
                "run",
                "conductance",
                "graph",
                "--set",
                set,
                "--ranks",
                ranks,
            ];
            let row = succeed(at, &[&run[..], &["-o", "-"]].concat());
            assert_eq!(row, ROW, "{set}");
        }
    }
    for name in ["row.csv", "row.parquet", "row.tsv", "row.csv.gz"] {
        let run = [
            "run",
            "conductance",
            "graph",
            "--set",
            "set.csv",
            "-o",
            name,
        ];
        let said = call(at, &run);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(
            said.contains("cut: 2\n") && said.contains("conductance: 0.5\n"),
            "{said}"
        );
        succeed(at, &["validate", name, "row.csv", "--rule", "exact"]);
        let check = [
            "validate",
            name,
            "graph",
            "--algorithm",
            "conductance",
            "--set",
        ];
        let said = succeed(at, &[&check[..], &["set.csv"]].concat());
        assert_eq!(said, "valid: 4 columns\n");
        let said = fail(at, 1, &[&check[..], &["odd"]].concat());
        assert!(said.contains("cut is 2, expected 3"), "{said}");
    }
    write(at, "wrong.csv", &ROW.replace("0.5", "0.25"));
    let said = fail(
        at,
        1,
        &["validate", "wrong.csv", "row.parquet", "--rule", "exact"],
    );
    assert!(
        said.contains("column conductance has 0.25, expected 0.5"),
        "{said}"
    );
    let check = [
        "validate",
        "wrong.csv",
        "graph",
        "--algorithm",
        "conductance",
        "--set",
    ];
    let said = fail(at, 1, &[&check[..], &["set.csv"]].concat());
    assert!(said.contains("conductance is 0.25, expected 0.5"), "{said}");
}

#[test]
fn undefined_conductance_is_empty_and_null() {
    let folder = folder_with_edges("1 3\n3 5\n");
    let at = folder.path();
    for name in ["row.csv", "row.parquet"] {
        let run = [
            "run",
            "conductance",
            "edges.txt",
            "--set",
            "even",
            "-o",
            name,
            "--json",
        ];
        let json = succeed(at, &run);
        assert!(json.contains("\"conductance\": null"), "{json}");
        let check = [
            "validate",
            name,
            "edges.txt",
            "--algorithm",
            "conductance",
            "--set",
            "even",
        ];
        succeed(at, &check);
    }
    assert_eq!(
        read(at, "row.csv"),
        "cut,volume,volume_rest,conductance\n0,0,2,\n"
    );
    succeed(
        at,
        &["validate", "row.parquet", "row.csv", "--rule", "exact"],
    );
}

#[test]
fn product_of_a_vector_and_its_check() {
    let folder = folder_with_edges("1 2 5\n1 3 2\n3 1 -1\n");
    let at = folder.path();
    succeed(
        at,
        &["import", "edges.txt", "-o", "graph", "--weights", "f32"],
    );
    write(at, "x.csv", "vertex,x\n3,100\n2,10\n");
    let expected = "vertex,value\n1,250.0\n2,0.0\n3,0.0\n";
    for (name, ranks) in [("y.csv", "1"), ("y.parquet", "2")] {
        let run = [
            "run", "spmv", "graph", "--vector", "x.csv", "--ranks", ranks, "-o", name,
        ];
        succeed(at, &run);
        let check = [
            "validate",
            name,
            "graph",
            "--algorithm",
            "spmv",
            "--vector",
            "x.csv",
        ];
        succeed(at, &check);
        let said = fail(at, 1, &[&check[..], &["--transpose"]].concat());
        assert!(said.contains("the sum of weights times values"), "{said}");
    }
    assert_eq!(read(at, "y.csv"), expected);
    succeed(at, &["validate", "y.csv", "y.parquet", "--rule", "exact"]);
    let run = ["run", "spmv", "graph", "--transpose", "-o", "-"];
    assert_eq!(succeed(at, &run), "vertex,value\n1,-1.0\n2,5.0\n3,2.0\n");
    // A result is a vector.
    let run = [
        "run",
        "spmv",
        "graph",
        "--vector",
        "y.parquet",
        "--transpose",
        "-o",
        "-",
    ];
    assert_eq!(
        succeed(at, &run),
        "vertex,value\n1,0.0\n2,1250.0\n3,500.0\n"
    );
}

#[test]
fn rows_that_do_not_fit_are_named() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    for (text, wrong) in [
        ("1\n9\n", "line 2: the graph has no vertex 9"),
        ("1\n2\n1\n", "line 3: vertex 1 has a row before"),
        ("vertex,x\n1,2\n\n9,\n", "line 4: the graph has no vertex 9"),
        (
            "source,destination,weight\n1,2,1\n",
            "the graph has no vertex source,",
        ),
    ] {
        write(at, "set.txt", text);
        let said = fail(
            at,
            1,
            &["run", "conductance", "edges.txt", "--set", "set.txt"],
        );
        assert!(said.contains(wrong) && said.contains("set.txt"), "{said}");
    }
    for (text, wrong) in [
        ("1 2\n2 x\n", "line 2: its value \"x\" is no finite number"),
        (
            "1 2\n2 inf\n",
            "line 2: its value \"inf\" is no finite number",
        ),
        ("1 2\n7 1\n", "line 2: the graph has no vertex 7"),
        (
            "source,destination,weight\n1,2,1\n",
            "line 2: it is a row of edge 1 - 2",
        ),
    ] {
        write(at, "x.txt", text);
        for ranks in ["1", "2"] {
            let run = [
                "run",
                "spmv",
                "edges.txt",
                "--vector",
                "x.txt",
                "--ranks",
                ranks,
            ];
            let said = fail(at, 1, &run);
            assert!(said.contains(wrong) && said.contains("x.txt"), "{said}");
        }
        write(at, "y.csv", "vertex,value\n1,0\n2,0\n3,0\n");
        let check = [
            "validate",
            "y.csv",
            "edges.txt",
            "--algorithm",
            "spmv",
            "--vector",
            "x.txt",
        ];
        let said = call(at, &check);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("x.txt, line "), "{said}");
    }
    let said = fail(
        at,
        2,
        &["run", "conductance", "edges.txt", "--set", "none.txt"],
    );
    assert!(said.contains("none.txt"), "{said}");
    let said = fail(
        at,
        2,
        &[
            "run",
            "conductance",
            "edges.txt",
            "--set",
            "odd",
            "--top",
            "3",
        ],
    );
    assert!(said.contains("--top conflicts with conductance"), "{said}");
    write(at, "set.csv", "vertex\n1\n");
    let run = ["run", "conductance", "edges.txt", "--set", "set.csv", "-o"];
    let said = fail(at, 2, &[&run[..], &["set.csv"]].concat());
    assert!(said.contains("a file that an option names"), "{said}");
}

#[test]
fn ranks_by_vectors_satisfy_their_equation() {
    let folder = folder_with_edges("1 2 2\n2 3 1\n3 1 4\n3 4 1\n5 1 0.5\n4 4 1\n6 7 3\n");
    let at = folder.path();
    succeed(
        at,
        &["import", "edges.txt", "-o", "graph", "--weights", "f64"],
    );
    write(at, "jumps.csv", "vertex,value\n1,3\n5,1\n");
    write(at, "returns.csv", "vertex,value\n6,2\n2,0.25\n");
    write(at, "zero.csv", "vertex,value\n6,0\n");
    write(at, "negative.csv", "vertex,value\n6,1\n7,-1\n");
    let vectors: [&[&str]; 5] = [
        &["--personalization", "jumps.csv"],
        &["--dangling-vector", "returns.csv"],
        &["--start", "returns.csv"],
        &["--start", "ones", "--personalization", "jumps.csv"],
        &[
            "--personalization",
            "jumps.csv",
            "--dangling-vector",
            "returns.csv",
            "--start",
            "jumps.csv",
        ],
    ];
    let mut results = Vec::new();
    for vectors in vectors {
        for others in [
            &[][..],
            &["--weighted"],
            &["--tolerance", "1e-3"],
            &["--precision", "f32"],
        ] {
            let options = [vectors, others].concat();
            for ranks in ["1", "3"] {
                let run = [
                    "run",
                    "pagerank",
                    "graph",
                    "-o",
                    "ranks.csv",
                    "--ranks",
                    ranks,
                ];
                succeed(at, &[&run[..], &options].concat());
                let check = ["validate", "ranks.csv", "graph", "--algorithm", "pagerank"];
                succeed(at, &[&check[..], &options].concat());
            }
            results.push(read(at, "ranks.csv"));
        }
    }
    results.sort();
    results.dedup();
    assert!(results.len() > 12, "{results:?}");
    // The checker tells the vectors apart.
    let check = ["validate", "ranks.csv", "graph", "--algorithm", "pagerank"];
    for vectors in &vectors[..4] {
        fail(at, 1, &[&check[..], vectors].concat());
    }
    for (options, problem) in [
        ("--personalization zero.csv", "not all of them 0"),
        ("--start negative.csv", "values of 0 or more"),
        (
            "--personalization jumps.csv --sources 1",
            "no --sources with it",
        ),
        ("--start ones --method pregel-pull", "passes with vectors"),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let said = fail(
            at,
            2,
            &[&["run", "pagerank", "graph"][..], &options].concat(),
        );
        assert!(said.contains(problem), "{said}");
    }
}
