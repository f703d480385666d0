//! A result is checked by its graph: what `run` gives is valid, and is not as soon as one row is off.

use std::path::Path;

use tempfile::TempDir;

use crate::{fail, folder_with_edges, names, succeed};

/// Names that look like other values, self-loops, duplicates, two components, an isolated vertex.
const NAMED: &str = "apt libc6\napt dpkg\ndpkg libc6\nlibc6 007\n007 7\n7 libc6\n7 1e5\napt apt\napt dpkg\nzz inf\ninf inf\n";
const SPARSE: &str = "5000000000 70\n70 5000000000\n70 18446744073709551615\n9 9\n9 11\n11 9223372036854775807\n70 12\n70 12\n";
const WEIGHTED: &str =
    "0 1 0.1\n1 2 0.2\n0 2 0.7\n2 3 0\n3 1 0.3\n0 1 0.4\n3 3 5\n3 4 16777217.25\n6 0 1\n";

/// A stored graph, imported with these options.
fn graph(edges: &str, options: &[&str]) -> TempDir {
    let folder = folder_with_edges(edges);
    std::fs::write(folder.path().join("vertices.txt"), "77\n").expect("a file");
    let import = [
        "import",
        "edges.txt",
        "-o",
        "graph",
        "--vertices",
        "vertices.txt",
    ];
    succeed(folder.path(), &[&import[..], options].concat());
    folder
}

fn run(at: &Path, result: &str, algorithm: &[&str]) {
    let ends = ["graph", "-o", result, "--quiet"];
    succeed(at, &[&["run"], algorithm, &ends[..]].concat());
}

/// `graphmill validate RESULT GRAPH --algorithm ALGORITHM OPTIONS`
fn validate<'a>(result: &'a str, graph: &'a str, algorithm: &[&'a str]) -> Vec<&'a str> {
    [&["validate", result, graph, "--algorithm"], algorithm].concat()
}

/// Runs the algorithm into both formats, and checks what `validate` says of each.
///
/// The result is right, and wrong as soon as `change` changes any row.
fn judged(at: &Path, algorithm: &[&str], change: impl Fn(&str) -> String) {
    for result in ["result.parquet", "result.csv"] {
        run(at, result, algorithm);
        let said = succeed(at, &validate(result, "graph", algorithm));
        assert!(said.starts_with("valid: "), "{algorithm:?}: {said}");
    }
    let right = std::fs::read_to_string(at.join("result.csv")).expect("a result");
    let lines: Vec<&str> = right.lines().collect();
    for number in 1..lines.len() {
        let (vertex, value) = lines[number].split_once(',').expect("two columns");
        let row = format!("{vertex},{}", change(value));
        let mut wrong = lines.clone();
        wrong[number] = &row;
        std::fs::write(at.join("wrong.csv"), wrong.join("\n")).expect("a file");
        let said = fail(at, 1, &validate("wrong.csv", "graph", algorithm));
        assert!(said.contains("not valid: "), "{algorithm:?}, {row}: {said}");
        // The checker may find the fault at a neighbour, but always at a vertex by the name that the user gave it.
        let named = said.split_once("vertex ").map_or("", |after| after.1);
        let named = named.split(' ').next().unwrap_or_default();
        let is_vertex = |line: &&str| line.split(',').next() == Some(named);
        assert!(
            lines[1..].iter().any(is_vertex),
            "{algorithm:?}, {row}: {said}"
        );
    }
}

/// Unreached, or one more than it was.
fn one_more(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => (number + 1.0).to_string(),
        _ => "1".to_string(),
    }
}

fn a_share_more(value: &str) -> String {
    (value.parse::<f64>().expect("a rank") * 1.0001 + 1e-12).to_string()
}

#[test]
fn validate_judges_depths_and_parents() {
    for options in [&[][..], &["--undirected"][..], &["--batch-size", "2"][..]] {
        for (edges, source, parent) in [(NAMED, "apt", "zz"), (SPARSE, "70", "11")] {
            let folder = graph(edges, options);
            let at = folder.path();
            judged(at, &["bfs", "--source", source], one_more);
            let other = |value: &str| if value == parent { "inf" } else { parent }.to_string();
            judged(at, &["bfs", "--source", source, "--parents"], other);
        }
    }
}

/// The result of one run in either format says the same.
fn is_the_same_in_both(at: &Path, algorithm: &[&str], rule: &str) {
    for result in ["same.parquet", "same.csv"] {
        run(at, result, algorithm);
        succeed(at, &validate(result, "graph", algorithm));
    }
    for [result, reference] in [["same.parquet", "same.csv"], ["same.csv", "same.parquet"]] {
        let validate = ["validate", result, reference, "--rule", rule];
        assert!(succeed(at, &validate).starts_with("valid: "));
    }
}

#[test]
fn validate_takes_ids_that_look_like_none() {
    let named = "a inf\ninf b\nb null\nnull c\nc nan\nnan d\nx y\ninfinity x\n";
    let numbered = "9223372036854775807 5\n5 9223372036854775808\n12 9223372036854775807\n8 12\n";
    for (edges, source) in [(named, "a"), (numbered, "9223372036854775807")] {
        let folder = graph(edges, &[]);
        let at = folder.path();
        is_the_same_in_both(at, &["bfs", "--source", source, "--parents"], "exact");
        is_the_same_in_both(at, &["wcc"], "equivalence");
        is_the_same_in_both(at, &["wcc"], "exact");
    }
    let folder = graph("9223372036854775807 9223372036854775808\n", &[]);
    is_the_same_in_both(folder.path(), &["wcc"], "exact");

    // A vertex that was not reached has no parent, and not the parent of that name.
    let folder = graph("a inf\ninf b\nc d\n", &[]);
    let at = folder.path();
    let parents = ["bfs", "--source", "a", "--parents"];
    run(at, "right.csv", &parents);
    let right = std::fs::read_to_string(at.join("right.csv")).expect("a result");
    assert_eq!(right, "vertex,parent\n77,\na,a\nb,inf\nc,\nd,\ninf,a\n");
    for (row, wrong) in [("\nb,inf", "\nb,"), ("\nc,", "\nc,inf"), ("\nc,", "\nc,d")] {
        std::fs::write(at.join("wrong.csv"), right.replace(row, wrong)).expect("a file");
        fail(at, 1, &validate("wrong.csv", "graph", &parents));
    }
}

#[test]
fn validate_judges_components() {
    for options in [&[][..], &["--undirected"][..], &["--batch-size", "2"][..]] {
        for (edges, one, other) in [(NAMED, "inf", "apt"), (SPARSE, "70", "9")] {
            let folder = graph(edges, options);
            let another = |value: &str| if value == one { other } else { one }.to_string();
            judged(folder.path(), &["wcc"], another);
        }
    }
}

#[test]
fn validate_judges_distances() {
    let next = |value: &str| match value.parse::<f64>() {
        Ok(number) if number.is_finite() => number.next_up().to_string(),
        _ => "1".to_string(),
    };
    let next_single = |value: &str| match value.parse::<f32>() {
        Ok(number) if number.is_finite() => number.next_up().to_string(),
        _ => "1".to_string(),
    };
    for weights in ["none", "f32", "f64"] {
        for more in [&[][..], &["--undirected"][..]] {
            let folder = graph(WEIGHTED, &[&["--weights", weights], more].concat());
            let at = folder.path();
            judged(at, &["sssp", "--source", "0"], next);
            let single = ["sssp", "--source", "0", "--precision", "f32"];
            judged(at, &single, next_single);
        }
    }
    let folder = graph(WEIGHTED, &["--weights", "f32"]);
    let at = folder.path();
    let sssp = ["sssp", "--source", "0"];
    run(
        at,
        "result.csv",
        &[&sssp[..], &["--precision", "f32"]].concat(),
    );
    fail(at, 1, &validate("result.csv", "graph", &sssp));
}

#[test]
fn validate_judges_ranks() {
    for edges in [NAMED, SPARSE] {
        for undirected in [&[][..], &["--undirected"][..]] {
            let folder = graph(edges, undirected);
            let at = folder.path();
            let vertex = if edges == NAMED { "apt,007" } else { "70,9" };
            for options in [
                &[][..],
                &["--damping", "0.5", "--iterations", "3"],
                &["--tolerance", "1e-4", "--iterations", "200"],
                &["--dangling", "drop"],
                &["--sources", vertex, "--precision", "f32"],
            ] {
                let algorithm = [&["pagerank"], options].concat();
                judged(at, &algorithm, a_share_more);
            }
            run(at, "result.csv", &["pagerank", "--iterations", "4"]);
            for other in ["3", "5"] {
                let other = ["pagerank", "--iterations", other];
                fail(at, 1, &validate("result.csv", "graph", &other));
            }
        }
    }
}

#[test]
fn validate_names_rows_outside_the_graph() {
    let folder = graph(NAMED, &[]);
    let at = folder.path();
    let bfs = ["bfs", "--source", "apt"];
    run(at, "right.csv", &bfs);
    let right = std::fs::read_to_string(at.join("right.csv")).expect("a result");
    for (wrong, expected) in [
        (right.replace("dpkg,1\n", ""), "vertex dpkg is missing"),
        (
            right.replace("dpkg,1\n", "dpkg,1\ndpkg,1\n"),
            "vertex dpkg twice",
        ),
        (
            right.replace("dpkg,1\n", "dpkg,1\ndpgk,1\n"),
            "vertex dpgk has 1, but is not in the graph",
        ),
        (
            right.replace("dpkg,1\n", "dpkg,0.5\n"),
            "vertex dpkg has 0.5, expected a whole number",
        ),
        (
            right.replace("dpkg,1\n", "dpkg,one\n"),
            "vertex dpkg has one, expected a whole number",
        ),
        (right.replace("dpkg,1\n", "dpkg,1,1\n"), "wrong.csv, line"),
    ] {
        assert_ne!(wrong, right, "{expected}");
        std::fs::write(at.join("wrong.csv"), wrong).expect("a file");
        let said = fail(at, 1, &validate("wrong.csv", "graph", &bfs));
        assert!(said.contains(expected), "{said}");
    }
    let mut turned: Vec<&str> = right.lines().collect();
    turned[1..].reverse();
    std::fs::write(at.join("turned.csv"), turned.join("\n")).expect("a file");
    succeed(at, &validate("turned.csv", "graph", &bfs));

    run(at, "right.csv", &["wcc"]);
    let right = std::fs::read_to_string(at.join("right.csv")).expect("a result");
    let wrong = right.replace("zz,inf\n", "zz,nobody\n");
    std::fs::write(at.join("wrong.csv"), wrong).expect("a file");
    let said = fail(at, 1, &validate("wrong.csv", "graph", &["wcc"]));
    assert!(
        said.contains("vertex zz has nobody, expected a vertex of the graph"),
        "{said}"
    );
    std::fs::write(at.join("wrong.csv"), right.replace("zz,inf\n", "zz,zz\n")).expect("a file");
    let said = fail(at, 1, &validate("wrong.csv", "graph", &["wcc"]));
    assert!(said.contains("vertex zz has zz, expected inf: "), "{said}");
    assert!(
        said.contains("not valid: at least 1 difference, 9 vertices in the graph"),
        "{said}"
    );
}

#[test]
fn validate_imports_edges_like_run() {
    let folder = folder_with_edges(WEIGHTED);
    let at = folder.path();
    let sssp = ["sssp", "--source", "0", "--weights", "f32"];
    let ends = ["edges.txt", "-o", "result.csv"];
    succeed(at, &[&["run"], &sssp[..], &ends[..]].concat());
    succeed(at, &validate("result.csv", "edges.txt", &sssp));
    fail(at, 1, &validate("result.csv", "edges.txt", &sssp[..3]));
    fail(at, 2, &validate("nothing.csv", "edges.txt", &sssp));
    assert_eq!(
        names(at),
        ["edges.txt", "edges.txt.graphmill", "result.csv"]
    );
}

#[test]
fn validate_least_memory_is_enough_and_exact() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let uniform = ["generate", "uniform", "3000", "200000"];
    succeed(at, &[&uniform[..], &["--weighted", "-o", "graph"]].concat());
    let edges = ["--edge-vertices", "-o", "with-edges"];
    succeed(
        at,
        &[&["generate", "uniform", "3000", "50000"], &edges[..]].concat(),
    );
    for (graph, algorithm) in [
        ("graph", &["wcc"][..]),
        ("graph", &["pagerank"]),
        ("graph", &["bfs", "--source", "1"]),
        ("graph", &["sssp", "--source", "1"]),
        (
            "with-edges",
            &["bp", "--affinity", "0.6", "--iterations", "3"],
        ),
    ] {
        let ends = [graph, "-o", "result.parquet"];
        succeed(at, &[&["run"], algorithm, &ends[..]].concat());
        let within = |memory: &str| {
            let judge = validate("result.parquet", graph, algorithm);
            crate::call(at, &[&judge[..], &["--memory", memory]].concat())
        };
        let said = String::from_utf8(within("4M").stderr).expect("text");
        let least = said.split_once("give --memory ").expect("how much").1;
        let least: u64 = least
            .split('M')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a size");
        assert!(
            within(&format!("{least}M")).status.success(),
            "{algorithm:?}: {least}"
        );
        assert_eq!(
            within(&format!("{}M", least - 1)).status.code(),
            Some(1),
            "{algorithm:?}"
        );
    }
}

#[test]
fn validate_refuses_a_damaged_graph() {
    let folder = graph(NAMED, &[]);
    let at = folder.path();
    run(at, "result.csv", &["wcc"]);
    let path = at.join("graph/columns/00000.data");
    let mut bytes = std::fs::read(&path).expect("a file of the graph");
    bytes[20] ^= 4;
    std::fs::write(&path, bytes).expect("a file");
    let said = fail(at, 1, &validate("result.csv", "graph", &["wcc"]));
    assert!(
        said.contains("00000.data") && !said.contains("not valid"),
        "{said}"
    );
}

#[test]
fn validate_usage_errors_give_a_hint() {
    let folder = graph(NAMED, &[]);
    let at = folder.path();
    run(at, "result.csv", &["wcc"]);
    let before = names(at);
    for (arguments, expected) in [
        (&[][..], &["--rule", "--algorithm"][..]),
        (
            &["--rule", "exact"],
            &["graph: it is a stored graph", "--algorithm"],
        ),
        (
            &["--rule", "exact", "--algorithm", "wcc"],
            &["cannot be used with"],
        ),
        (
            &["--rule", "exact", "--source", "apt"],
            &["cannot be used with"],
        ),
        (
            &["--rule", "exact", "--epsilon", "0.1"],
            &["--epsilon", "cannot be used with"],
        ),
        (
            &["--rule", "exact", "--undirected"],
            &["cannot be used with"],
        ),
        (
            &["--algorithm", "wcc", "--epsilon", "1"],
            &["cannot be used with"],
        ),
        (
            &["--algorithm", "wcc", "--source", "apt"],
            &["wcc has no option \"source\""],
        ),
        (
            &["--algorithm", "wcc", "--undirected"],
            &["cannot read graph with these options: it is a stored graph"],
        ),
        (&["--algorithm", "wc"], &["bfs", "wcc"]),
        (&["--algorithm", "bfs"], &["bfs requires --source"]),
        (
            &["--algorithm", "bfs", "--source", "x"],
            &["no such vertex"],
        ),
        (
            &["--algorithm", "pagerank", "--damping", "2"],
            &["--damping 2"],
        ),
    ] {
        let all = [&["validate", "result.csv", "graph"], arguments].concat();
        let said = fail(at, 2, &all);
        for part in expected {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
    let swapped = fail(at, 2, &validate("graph", "result.csv", &["wcc"]));
    assert!(swapped.contains("graph: it is a stored graph"), "{swapped}");
    assert_eq!(names(at), before);
}
