//! Belief propagation, and graphs whose edges have vertices of their own.

use std::path::Path;

use crate::{call, fail, folder_with_edges, succeed, told};

/// Two triangles that share `c`, a self-loop, and a pair apart.
const EDGES: &str = "a b\nb c\nc a\nc d\nd e\ne c\ne e\nx y\n";

const PRIORS: &str = "vertex,p\na,0.9\nd,0.2\nx,1\n";

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("room");
}

/// The values of a result in CSV.
fn values(text: &str) -> Vec<f64> {
    let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
    rows.map(|row| row.1.parse().expect("a number")).collect()
}

#[test]
fn beliefs_of_files_and_stored_graphs() {
    let folder = folder_with_edges(EDGES);
    let at = folder.path();
    write(at, "p.csv", PRIORS);
    let said = told(at, &words("import edges.txt --edge-vertices -o graph"));
    let is_count = |line: &str| line.split_whitespace().eq(["vertices", "7"]);
    assert!(said.lines().any(is_count), "{said}");
    let info = succeed(at, &words("info graph"));
    assert!(
        info.contains("8 of the vertices, of directed edges"),
        "{info}"
    );
    succeed(at, &words("verify graph --deep"));
    let run = "run bp graph --priors p.csv --affinity 0.8 -o -";
    let wanted = succeed(at, &words(run));
    let ids: Vec<&str> = wanted
        .lines()
        .map(|row| row.split(',').next().unwrap_or_default())
        .collect();
    assert_eq!(ids, ["vertex", "a", "b", "c", "d", "e", "x", "y"]);
    // By hand: `y` follows `x`, which is in state 1.
    assert_eq!(values(&wanted)[5..], [1.0, 0.8]);
    let of_file = run.replace("graph", "edges.txt");
    assert_eq!(succeed(at, &words(&of_file)), wanted);
    // The cache tells both kinds of graph apart.
    succeed(at, &words("run wcc edges.txt -o wcc.csv"));
    assert_eq!(succeed(at, &words(&of_file)), wanted);
    let undirected = succeed(at, &words(&format!("{of_file} --undirected")));
    assert_eq!(
        undirected, wanted,
        "a symmetric potential knows no direction"
    );
    for ranks in ["2", "4"] {
        let many = format!("{run} --ranks {ranks} --threads 4");
        assert_eq!(succeed(at, &words(&many)), wanted);
        let parts =
            format!("run bp graph --priors p.csv --affinity 0.8 --ranks {ranks} -o parts.csv/");
        succeed(at, &words(&parts));
        succeed(
            at,
            &words("validate parts.csv graph --algorithm bp --priors p.csv --affinity 0.8"),
        );
        std::fs::remove_dir_all(at.join("parts.csv")).expect("parts");
    }
    let top = succeed(
        at,
        &words("run bp graph --priors p.csv --affinity 0.8 --top 2"),
    );
    assert!(
        top.contains("x") && top.contains("1.0") && !top.contains("y"),
        "{top}"
    );
}

#[test]
fn convergence_is_told() {
    let folder = folder_with_edges(EDGES);
    let at = folder.path();
    write(at, "p.csv", PRIORS);
    let run = "run bp edges.txt --priors p.csv --affinity 0.7 --tolerance 1e-9";
    let said = told(at, &words(run));
    assert!(
        said.contains(" iterations; residual ") && !said.contains("is not reached"),
        "{said}"
    );
    let said = told(at, &words(&format!("{run} --iterations 3")));
    assert!(said.contains("3 iterations; residual "), "{said}");
    assert!(said.contains("--tolerance 1e-9 is not reached"), "{said}");
}

#[test]
fn wrong_beliefs_are_found() {
    let folder = folder_with_edges("1 2 2\n2 3 1\n3 1 0.5\n3 4 -1\n4 4 1\n");
    let at = folder.path();
    write(at, "p.csv", "vertex,p\n1,0.9\n4,0\n");
    succeed(
        at,
        &words("import edges.txt --edge-vertices --weights f64 -o graph"),
    );
    let options = "--priors p.csv --potential 2,1,3,4 --tolerance 1e-10";
    for name in ["b.csv", "b.parquet"] {
        succeed(at, &words(&format!("run bp graph {options} -o {name}")));
        let check = format!("validate {name} graph --algorithm bp");
        let said = succeed(at, &words(&format!("{check} {options}")));
        assert_eq!(said, "valid: 4 vertices\n");
        for other in [
            "--priors p.csv --potential 2,3,1,4 --tolerance 1e-10",
            "--potential 2,1,3,4",
            "--priors p.csv --potential 2,1,3,4 --iterations 2",
            "--priors p.csv --affinity 0.8",
        ] {
            let said = fail(at, 1, &words(&format!("{check} {other}")));
            assert!(
                said.contains("the prior times the messages of its edges"),
                "{other}: {said}"
            );
        }
    }
    let right = std::fs::read_to_string(at.join("b.csv")).expect("a result");
    for row in 1..=4 {
        let mut rows: Vec<String> = right.lines().map(String::from).collect();
        let (id, value) = rows[row].split_once(',').expect("a row");
        let value: f64 = value.parse().expect("a number");
        rows[row] = format!("{id},{}", (value - 1e-7).abs());
        write(at, "wrong.csv", &(rows.join("\n") + "\n"));
        let said = fail(
            at,
            1,
            &words(&format!(
                "validate wrong.csv graph --algorithm bp {options}"
            )),
        );
        assert!(said.contains(&format!("vertex {row} has ")), "{said}");
    }
    // The vertices of edges have no rows.
    write(at, "more.csv", &format!("{right}5,0.5\n"));
    let said = fail(
        at,
        1,
        &words(&format!("validate more.csv graph --algorithm bp {options}")),
    );
    assert!(
        said.contains("5 has 0.5, but is not in the graph"),
        "{said}"
    );
}

#[test]
fn graphs_that_do_not_fit_are_refused() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    succeed(at, &words("import edges.txt -o plain"));
    succeed(at, &words("import edges.txt --edge-vertices -o graph"));
    let said = fail(at, 1, &words("run bp plain --affinity 0.8"));
    assert!(
        said.contains("import INPUT --edge-vertices -o GRAPH"),
        "{said}"
    );
    let said = fail(at, 1, &words("estimate plain --algorithm bp"));
    assert!(said.contains("--edge-vertices"), "{said}");
    succeed(at, &words("estimate graph --algorithm bp"));
    for other in [
        "bfs graph --source 1",
        "sssp graph --source 1",
        "wcc graph",
        "scc graph",
        "cdlp graph",
        "mis graph",
        "mst graph",
        "pagerank graph",
        "spmv graph",
        "conductance graph --set odd",
    ] {
        let said = fail(at, 1, &words(&format!("run {other}")));
        assert!(said.contains("was imported with --edge-vertices"), "{said}");
    }
    let said = fail(at, 1, &words("estimate graph --algorithm wcc"));
    assert!(said.contains("was imported with --edge-vertices"), "{said}");
    for option in ["--order degree", "--reverse", "--duplicates first"] {
        let import = format!("import edges.txt --edge-vertices {option} -o other");
        let said = fail(at, 2, &words(&import));
        assert!(said.contains("does not go with --edge-vertices"), "{said}");
    }
    let said = fail(
        at,
        2,
        &words("run bp edges.txt --affinity 0.8 --duplicates first"),
    );
    assert!(
        said.contains("--duplicates does not go with --edge-vertices"),
        "{said}"
    );
    let said = fail(at, 2, &words("run bp graph --affinity 0.8 --undirected"));
    assert!(said.contains("it is a stored graph"), "{said}");
}

/// The numbers of an estimate in JSON.
fn estimated(at: &Path, graph: &str) -> serde_json::Value {
    let estimate = format!("estimate {graph} --algorithm bp --iterations 1 --memory 12M --json");
    serde_json::from_str(&succeed(at, &words(&estimate))).expect("JSON")
}

#[test]
fn estimate_counts_the_vertices_of_edges() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let rule = "generate kronecker 16 8 --edge-vertices -q -o graph";
    succeed(at, &words(rule));
    let stored = estimated(at, "graph");
    let planned = estimated(at, "--vertices 65536 --edges 524288 --input generated");
    for (pointer, share) in [
        ("/graph/vertices", 1.0),
        ("/graph/batches", 1.0),
        ("/graph/arcs", 1.01),
        ("/graph/block_bytes", 1.25),
        ("/run/all/bytes_read", 1.2),
        ("/run/all/bytes_written", 1.2),
        ("/run/least_memory", 1.05),
    ] {
        let [stored, planned] = [&stored, &planned].map(|json| {
            let number = json.pointer(pointer).and_then(|number| number.as_f64());
            number.unwrap_or_else(|| panic!("{pointer}: {json}"))
        });
        let is_close = planned <= share * stored && stored <= share * planned;
        assert!(is_close, "{pointer}: {planned} planned, {stored} stored");
    }
    // Vertices of edges come in addition to ids with gaps.
    let sparse = estimated(at, "--vertices 1e9 --edges 1e5 --undirected");
    let vertices = sparse
        .pointer("/graph/vertices")
        .and_then(|number| number.as_u64());
    assert!(
        vertices.is_some_and(|count| (100_000..300_001).contains(&count)),
        "{vertices:?}"
    );
}

#[test]
fn options_of_beliefs_are_checked() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    for (options, wrong) in [
        ("", "--affinity is missing"),
        ("--affinity 0", "a number above 0 and below 1"),
        ("--affinity 1", "a number above 0 and below 1"),
        ("--affinity x", "a number above 0 and below 1"),
        ("--potential 1,2,3", "four finite numbers above 0"),
        ("--potential 1,2,3,0", "four finite numbers above 0"),
        ("--potential 1,2,3,inf", "four finite numbers above 0"),
        (
            "--potential 1,2,2,1 --affinity 0.5",
            "either --affinity or --potential",
        ),
        ("--affinity 0.5 --tolerance 0", "a finite number above 0"),
        ("--affinity 0.5 --priors none.csv", "none.csv"),
        (
            "--potential 1,2,3,4 --undirected",
            "the same number for b and c",
        ),
    ] {
        let said = fail(at, 2, &words(format!("run bp edges.txt {options}").trim()));
        assert!(said.contains(wrong), "{options}: {said}");
    }
    assert_eq!(crate::names(at), ["edges.txt"], "nothing is imported");
    succeed(
        at,
        &words("run bp edges.txt --potential 1,2,2,4 --undirected -o b.csv"),
    );
    for (text, wrong) in [
        (
            "1 0.5\n2 1.5\n",
            "line 2: its value \"1.5\" is no probability from 0 to 1",
        ),
        (
            "1 -0.1\n",
            "line 1: its value \"-0.1\" is no probability from 0 to 1",
        ),
        (
            "1 nan\n",
            "line 1: its value \"nan\" is no probability from 0 to 1",
        ),
        ("4 0.5\n", "line 1: the graph has no vertex 4"),
    ] {
        write(at, "p.txt", text);
        let options = "edges.txt --affinity 0.8 --priors p.txt";
        let said = fail(at, 1, &words(&format!("run bp {options}")));
        assert!(said.contains(wrong), "{said}");
        write(at, "b.csv", "vertex,belief\n1,0.5\n2,0.5\n3,0.5\n");
        let check = format!("validate b.csv --algorithm bp {options}");
        let said = call(at, &words(&check));
        assert!(String::from_utf8_lossy(&said.stderr).contains("p.txt, line "));
    }
    let help = succeed(at, &words("run bp --help"));
    for part in [
        "sum-product",
        "--priors <FILE>",
        "--affinity <A>",
        "a vertex without a row has 0.5",
    ] {
        assert!(help.contains(part), "{help}");
    }
}
