//! The validation files of LDBC Graphalytics and its p2p-31, through `import`, `run` and `validate`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::command::Workplace;
use crate::graphs::text;
use crate::ways::{METHODS, Method, all_ways, find_the_same};
use crate::{has_too_many_batches, is_soak};

/// Batch sizes; 0 is the command's own choice.
const BATCH_SIZES: [u64; 5] = [0, 1, 7, 64, 1024];

/// Orders of columns, and unsorted chunks.
const STORINGS: [&[&str]; 3] = [
    &["--order", "id"],
    &["--order", "degree"],
    &["--layout", "stream", "--chunk-size", "4K"],
];

/// One run against one file.
#[derive(Clone, Copy)]
struct Check {
    algorithm: &'static str,
    options: &'static [&'static str],
    reference: &'static str,
    rule: &'static [&'static str],
}

const EXACT: &[&str] = &["--rule", "exact"];
const EQUIVALENCE: &[&str] = &["--rule", "equivalence"];
/// Tighter than LDBC's 1e-4: only the order of additions differs.
const EPSILON: &[&str] = &["--rule", "epsilon", "--epsilon", "1e-9"];

const fn check(
    algorithm: &'static str,
    options: &'static [&'static str],
    reference: &'static str,
    rule: &'static [&'static str],
) -> Check {
    Check {
        algorithm,
        options,
        reference,
        rule,
    }
}

/// `graph` is a pair of files `.v` and `.e`, or one of lists of neighbours.
fn run(graph: &str, directed: bool, weighted: bool, checks: &[Check]) {
    let Some(data) = crate::data() else { return };
    for (turn, storing) in STORINGS.into_iter().enumerate() {
        let is_in_chunks = storing.contains(&"stream");
        let is_run = |check: &&Check| !is_in_chunks || check.algorithm != "cdlp";
        let checks: Vec<_> = checks.iter().filter(is_run).collect();
        for (number, size) in BATCH_SIZES.into_iter().enumerate() {
            if !is_soak() && number % 2 != turn % 2 || checks.is_empty() {
                continue;
            }
            // Batches of chunks are of powers of two.
            let size = match size {
                1.. if is_in_chunks => size.next_power_of_two(),
                _ => size,
            };
            let name = format!("{graph}, batch size {size}, {storing:?}");
            let place = Workplace::new(name.clone());
            let once = is_in_chunks && !directed;
            let (edges, vertices) = files(&data.join(graph), once, place.folder());
            let count = text(&vertices).lines().count() as u64;
            if size > 0 && has_too_many_batches(&name, count, size) {
                continue;
            }
            let size_text = size.to_string();
            let mut options = storing.to_vec();
            if weighted {
                options.extend(["--weights", "f64"]);
            }
            // With both ways round stored, passes have the choice.
            options.push(if directed {
                "--reverse"
            } else {
                "--undirected"
            });
            if edges.ends_with("listed.e") && !is_in_chunks {
                // A list of an undirected graph names each edge at both ends.
                options.extend(["--duplicates", "first"]);
            }
            if size > 0 {
                options.extend(["--batch-size", &size_text]);
            }
            place.import(&edges, Some(&vertices), &options);
            let way: &[&str] = match is_in_chunks {
                true => &["--ranks", "3", "--updates", "disk"],
                false => &[],
            };
            for check in &checks {
                let result = place.run(check.algorithm, &[check.options, way].concat());
                place.validate(&result, &data.join(check.reference), check.rule);
            }
            let is_large = graph.contains("p2p");
            if is_soak() && (turn == 1 && size == 0 || turn == 0 && size == many_batches(is_large))
            {
                for check in &checks {
                    // The first is what was validated.
                    let of_it = |methods: &&&[Method]| {
                        methods[0].algorithm == check.algorithm && methods[0].options.is_empty()
                    };
                    let methods = METHODS.iter().find(of_it).expect("methods");
                    find_the_same(&place, &name, &all_ways(methods), check.options, None);
                }
            }
        }
    }
}

/// The batch size that gives a graph many batches, and not too many to run it in every way.
fn many_batches(is_large: bool) -> u64 {
    if is_large { 1024 } else { 7 }
}

/// Returns the files of edges and vertices to import.
///
/// Lists of neighbours are turned into such files in `folder`; with `once`, each edge without its opposite.
fn files(graph: &Path, once: bool, folder: &Path) -> (PathBuf, PathBuf) {
    let with = |end: &str| PathBuf::from(format!("{}{end}", graph.display()));
    for end in ["", ".gz"] {
        let pair = (with(&format!(".e{end}")), with(&format!(".v{end}")));
        if pair.0.exists() {
            return pair;
        }
    }
    let (mut edges, mut vertices) = (String::new(), BTreeSet::new());
    for line in text(graph).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        vertices.extend(words.iter().map(|word| word.to_string()));
        for neighbour in words.iter().skip(1) {
            if once && *neighbour < words[0] {
                continue;
            }
            writeln!(edges, "{} {neighbour}", words[0]).expect("a string grows");
        }
    }
    let pair = (folder.join("listed.e"), folder.join("listed.v"));
    std::fs::write(&pair.0, edges).expect("the edges are written");
    std::fs::write(&pair.1, vertices.into_iter().collect::<Vec<_>>().join("\n"))
        .expect("the vertices are written");
    pair
}

#[test]
fn bfs_equals_ldbc_depths() {
    let source = &["--source", "1"];
    run(
        "ldbc-validation/bfs/dir-input",
        true,
        false,
        &[check(
            "bfs",
            source,
            "ldbc-validation/bfs/dir-output",
            EXACT,
        )],
    );
    run(
        "ldbc-validation/bfs/undir-input",
        false,
        false,
        &[check(
            "bfs",
            source,
            "ldbc-validation/bfs/undir-output",
            EXACT,
        )],
    );
}

#[test]
fn pagerank_equals_ldbc_ranks() {
    // The undirected output was made with the 0.85 of a 32-bit float and 26 iterations, the directed one converged.
    let converged = &["--damping", "0.85", "--iterations", "50"];
    let rounded = &["--damping", "0.8500000238418579", "--iterations", "26"];
    run(
        "ldbc-validation/pr/dir-input",
        true,
        false,
        &[check(
            "pagerank",
            converged,
            "ldbc-validation/pr/dir-output",
            EPSILON,
        )],
    );
    run(
        "ldbc-validation/pr/undir-input",
        false,
        false,
        &[check(
            "pagerank",
            rounded,
            "ldbc-validation/pr/undir-output",
            EPSILON,
        )],
    );
}

#[test]
fn sssp_equals_ldbc_distances() {
    let source = &["--source", "1"];
    run(
        "ldbc-validation/sssp/dir-input",
        true,
        true,
        &[check(
            "sssp",
            source,
            "ldbc-validation/sssp/dir-output",
            EPSILON,
        )],
    );
    run(
        "ldbc-validation/sssp/undir-input",
        false,
        true,
        &[check(
            "sssp",
            source,
            "ldbc-validation/sssp/undir-output",
            EPSILON,
        )],
    );
}

#[test]
fn wcc_equals_ldbc_components() {
    run(
        "ldbc-validation/wcc/dir-input",
        true,
        false,
        &[check(
            "wcc",
            &[],
            "ldbc-validation/wcc/dir-output",
            EQUIVALENCE,
        )],
    );
    run(
        "ldbc-validation/wcc/undir-input",
        false,
        false,
        &[check(
            "wcc",
            &[],
            "ldbc-validation/wcc/undir-output",
            EQUIVALENCE,
        )],
    );
}

#[test]
fn cdlp_equals_ldbc_communities() {
    for (graph, reference, directed) in [
        (
            "ldbc-validation/cdlp/dir-input",
            "ldbc-validation/cdlp/dir-output",
            true,
        ),
        (
            "ldbc-validation/cdlp/undir-input",
            "ldbc-validation/cdlp/undir-output",
            false,
        ),
    ] {
        let rounds = &["--iterations", "5"];
        run(
            graph,
            directed,
            false,
            &[check("cdlp", rounds, reference, EXACT)],
        );
    }
}

#[test]
fn ldbc_directed_example_has_all_outputs() {
    let iterations = &["--damping", "0.85", "--iterations", "2"];
    let checks = [
        check(
            "bfs",
            &["--source", "1"],
            "ldbc-validation/example/example-directed-BFS",
            EXACT,
        ),
        check(
            "pagerank",
            iterations,
            "ldbc-validation/example/example-directed-PR",
            EPSILON,
        ),
        check(
            "sssp",
            &["--source", "1"],
            "ldbc-validation/example/example-directed-SSSP",
            EPSILON,
        ),
        check(
            "wcc",
            &[],
            "ldbc-validation/example/example-directed-WCC",
            EQUIVALENCE,
        ),
        check(
            "cdlp",
            &["--iterations", "2"],
            "ldbc-validation/example/example-directed-CDLP",
            EXACT,
        ),
    ];
    run(
        "ldbc-validation/example/example-directed",
        true,
        true,
        &checks,
    );
    run(
        "ldbc-validation/example/example-directed-input",
        true,
        false,
        &[checks[0], checks[1], checks[3], checks[4]],
    );
}

#[test]
fn ldbc_undirected_example_has_all_outputs() {
    let iterations = &["--damping", "0.85", "--iterations", "2"];
    let checks = [
        check(
            "bfs",
            &["--source", "2"],
            "ldbc-validation/example/example-undirected-BFS",
            EXACT,
        ),
        check(
            "pagerank",
            iterations,
            "ldbc-validation/example/example-undirected-PR",
            EPSILON,
        ),
        check(
            "sssp",
            &["--source", "2"],
            "ldbc-validation/example/example-undirected-SSSP",
            EPSILON,
        ),
        check(
            "wcc",
            &[],
            "ldbc-validation/example/example-undirected-WCC",
            EQUIVALENCE,
        ),
        check(
            "cdlp",
            &["--iterations", "2"],
            "ldbc-validation/example/example-undirected-CDLP",
            EXACT,
        ),
    ];
    run(
        "ldbc-validation/example/example-undirected",
        false,
        true,
        &checks,
    );
    run(
        "ldbc-validation/example/example-undirected-input",
        false,
        false,
        &[checks[0], checks[1], checks[3], checks[4]],
    );
}

#[test]
fn p2p_31_undirected_has_all_outputs() {
    let iterations = &["--damping", "0.85", "--iterations", "10"];
    let checks = [
        check(
            "bfs",
            &["--source", "6"],
            "ldbc-p2p-31/p2p-31-BFS.gz",
            EXACT,
        ),
        check("pagerank", iterations, "ldbc-p2p-31/p2p-31-PR.gz", EPSILON),
        check(
            "sssp",
            &["--source", "6"],
            "ldbc-p2p-31/p2p-31-SSSP.gz",
            EXACT,
        ),
        check("wcc", &[], "ldbc-p2p-31/p2p-31-WCC.gz", EQUIVALENCE),
        check("cdlp", &[], "ldbc-p2p-31/p2p-31-CDLP.gz", EXACT),
    ];
    run("ldbc-p2p-31/p2p-31", false, true, &checks);
}

#[test]
fn p2p_31_directed_has_all_outputs() {
    let checks = [
        check(
            "bfs",
            &["--source", "6"],
            "ldbc-p2p-31/p2p-31-BFS-directed.gz",
            EXACT,
        ),
        check(
            "sssp",
            &["--source", "6"],
            "ldbc-p2p-31/p2p-31-SSSP-directed.gz",
            EXACT,
        ),
        // No arc has its opposite, so the labels are the same as in the undirected graph.
        check("cdlp", &[], "ldbc-p2p-31/p2p-31-CDLP.gz", EXACT),
    ];
    run("ldbc-p2p-31/p2p-31", true, true, &checks);
}
