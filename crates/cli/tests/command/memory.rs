//! A budget that is too small is refused before anything is done, with one that is enough.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{fail, names, succeed};

/// The bytes of memory that a refusal asks for.
pub(crate) fn asked_for(said: &str) -> u64 {
    let (_, rest) = said
        .split_once("at least ")
        .or_else(|| said.split_once("--memory "))
        .unwrap_or_else(|| panic!("no least budget is named: {said}"));
    let digits = rest.split(' ').next().expect("a number");
    digits.parse().unwrap_or_else(|_| panic!("{said}"))
}

/// Refused with `memory`, then done with exactly what the refusal asks for.
fn does_with_what_it_asks_for(at: &Path, arguments: &[&str], memory: &str) {
    let before = names(at);
    let mut arguments = [arguments, &["-q", "--memory", memory]].concat();
    let said = fail(at, 1, &arguments);
    assert_eq!(names(at), before, "nothing is begun");
    let least = asked_for(&said).to_string();
    *arguments.last_mut().expect("the budget") = &least;
    succeed(at, &arguments);
}

/// Integers with weights, text, and text that is compressed.
fn write_edges(at: &Path) {
    let edges = |name: &dyn Fn(u64) -> String| {
        let edge = |i| format!("{} {} {}.5\n", name(i), name(i * 7 % 1000), i % 9);
        (0..3000).map(edge).collect::<String>()
    };
    std::fs::write(at.join("numbers.txt"), edges(&|i| i.to_string())).expect("a file");
    let words = edges(&|i| format!("vertex {i}").replace(' ', "-"));
    std::fs::write(at.join("words.txt"), &words).expect("a file");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(words.as_bytes()).expect("bytes");
    std::fs::write(at.join("words.txt.gz"), packed.finish().expect("bytes")).expect("a file");
    let list: String = (0..5000).map(|i| format!("{i}\n")).collect();
    std::fs::write(at.join("list.txt"), list).expect("a file");
}

#[test]
fn an_import_asks_for_memory_that_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_edges(at);
    for threads in ["1", "2", "3"] {
        for input in ["numbers.txt", "words.txt", "words.txt.gz"] {
            for more in [
                &[][..],
                &["--weights", "f64", "--reverse"],
                &["--vertices", "list.txt"],
                &["--vertices", "list.txt", "--reverse"],
                &["--order", "degree"],
                &["--order", "degree", "--weights", "f64", "--reverse"],
            ] {
                for memory in ["1", "1M"] {
                    let import = ["import", input, "-o", "graph", "--threads", threads];
                    does_with_what_it_asks_for(at, &[&import, more].concat(), memory);
                    std::fs::remove_dir_all(at.join("graph")).expect("a graph");
                }
            }
        }
    }
}

#[test]
fn a_graph_of_many_cells_asks_for_memory_that_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let sizes = ["--vertices", "34359738368", "--edges", "60000"];
    for more in [&["--threads", "1"][..], &["--threads", "2", "--reverse"]] {
        for memory in ["8M", "10800000", "11354112", "11800000"] {
            let output = ["-o", "graph", "--io", "threads"];
            let generate = [&["generate", "uniform"], &sizes[..], more, &output].concat();
            does_with_what_it_asks_for(at, &generate, memory);
            std::fs::remove_dir_all(at.join("graph")).expect("a graph");
        }
    }
}

#[test]
fn a_generated_graph_asks_for_memory_that_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let rules = [
        ("consecutive 5000 10", &["1", "1M"][..]),
        // Cells, or neighbours, that take more than any graph's.
        (
            "scattered 5000 10 --gap 77 --batch-size 3 --reverse",
            &["4M", "8M"],
        ),
        ("scattered 100 500000 --undirected", &["8M", "20M"]),
    ];
    for (rule, budgets) in rules {
        for memory in budgets {
            let words = format!("generate {rule} --threads 2 -o graph");
            does_with_what_it_asks_for(at, &words.split(' ').collect::<Vec<_>>(), memory);
            std::fs::remove_dir_all(at.join("graph")).expect("a graph");
        }
    }
}

#[test]
fn an_order_of_degree_asks_for_memory_that_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let edge = |i: u64| format!("{} {} {}.5\n", i * i % 20_011, i * 7919 % 20_021, i % 9);
    let edges: String = (0..100_000).map(edge).collect();
    std::fs::write(at.join("edges.txt"), edges).expect("a file");
    for (threads, more) in [
        ("1", &["--batch-size", "16"][..]),
        (
            "2",
            &["--batch-size", "64", "--weights", "f64", "--reverse"],
        ),
    ] {
        // What any import takes is less.
        for memory in ["6M", "12M"] {
            let import = ["import", "edges.txt", "-o", "graph", "--order", "degree"];
            let arguments = [&import[..], more, &["--threads", threads]].concat();
            does_with_what_it_asks_for(at, &arguments, memory);
            std::fs::remove_dir_all(at.join("graph")).expect("a graph");
        }
    }
}

#[test]
fn a_run_asks_for_memory_that_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_edges(at);
    for (input, source, order) in [
        ("numbers.txt", "7", "id"),
        ("words.txt", "vertex-7", "id"),
        ("words.txt", "vertex-7", "degree"),
    ] {
        let import = ["import", input, "-o", "graph", "--weights", "f32"];
        succeed(at, &[&import[..], &["--order", order]].concat());
        for threads in ["1", "2", "3"] {
            for output in ["rows.csv", "rows.parquet"] {
                let run = ["graph", "-o", output, "--threads", threads];
                // Too little for the description, for the directories, for the rows, and for the engine.
                for memory in ["1", "70000", "1M", "10M"] {
                    for algorithm in ["pagerank", "wcc"] {
                        let run = [&["run", algorithm], &run[..]].concat();
                        does_with_what_it_asks_for(at, &run, memory);
                        std::fs::remove_file(at.join(output)).expect("a result");
                    }
                }
                for algorithm in [&["bfs"][..], &["bfs", "--parents"], &["sssp"]] {
                    let run = [&["run"], algorithm, &["--source", source], &run[..]].concat();
                    does_with_what_it_asks_for(at, &run, "2M");
                    std::fs::remove_file(at.join(output)).expect("a result");
                }
            }
        }
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
}

#[test]
fn a_method_that_keeps_rows_in_memory_asks_for_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("few.txt"), "0 1\n1 2\n3 4\n").expect("a file");
    succeed(at, &["import", "few.txt", "-o", "few", "-q"]);
    let sizes = ["--vertices", "600000", "--edges", "300000"];
    succeed(
        at,
        &[&["generate", "uniform", "-o", "many", "-q"], &sizes[..]].concat(),
    );
    let degree = [
        "import",
        "many.el",
        "-o",
        "by-degree",
        "--order",
        "degree",
        "-q",
    ];
    succeed(
        at,
        &[&["generate", "uniform", "-o", "many.el", "-q"], &sizes[..]].concat(),
    );
    succeed(at, &degree);
    for run in [
        ["run", "wcc", "--method", "union-find"],
        ["run", "pagerank", "--method", "pregel-push"],
    ] {
        for threads in ["1", "3", "5"] {
            let few = [&run[..], &["few", "--threads", threads]].concat();
            does_with_what_it_asks_for(at, &few, "4M");
            succeed(at, &[&few[..], &["-q", "--memory", "40M"]].concat());
            for graph in ["many", "by-degree"] {
                let many = [&run[..], &[graph, "--threads", threads]].concat();
                does_with_what_it_asks_for(at, &many, "10M");
            }
        }
    }
}

#[test]
fn a_sparse_pass_leaves_room_for_rows_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // Of few edges no search meets many; of many one does, and needs a dense pass in between.
    for edges in ["300000", "1000000"] {
        let sizes = ["--vertices", "600000", "--edges", edges];
        let generate = ["generate", "uniform", "-o", "graph", "-q"];
        succeed(at, &[&generate[..], &sizes].concat());
        for source in ["0", "1", "2", "3", "4"] {
            let run = ["run", "sssp", "graph", "--source", source, "--threads", "1"];
            does_with_what_it_asks_for(at, &run, "1M");
        }
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
}

#[test]
fn edges_are_not_imported_for_a_run_that_no_graph_would_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_edges(at);
    let before = names(at);
    let said = fail(at, 1, &["run", "wcc", "words.txt", "--memory", "3M"]);
    assert!(
        asked_for(&said) > 3 << 20 && !said.contains("importing"),
        "{said}"
    );
    assert_eq!(names(at), before);
}

#[test]
fn few_edges_between_far_ids_take_little_however_much_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for far in ["30000000", "4294967295", "16000000000"] {
        std::fs::write(at.join("far.el"), format!("0 {far}\n{far} 7\n")).expect("a file");
        for order in ["id", "degree"] {
            let graph = format!("{far}-{order}");
            let import = ["import", "far.el", "-o", &graph, "--order", order];
            let said = succeed(at, &[&import[..], &["--memory", "8G"]].concat());
            let (most, _) = said.split_once(" of memory at most").expect("memory");
            let most = most.rsplit(", ").next().expect("a size");
            let (number, unit) = most.split_once(' ').expect("a unit");
            let number: f64 = number.parse().expect("a number");
            assert!(unit == "KiB" || unit == "MiB" && number < 100.0, "{said}");
            let result = succeed(at, &["run", "bfs", &graph, "--source", "0", "--top", "1"]);
            assert!(result.contains("\n7 ") && result.contains("\n3 vertices"));
        }
    }
}
