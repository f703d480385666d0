//! A budget that is too small is refused before anything is done, with one that is enough.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::resume::files;
use crate::{call, fail, names, succeed, told};

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
pub(crate) fn does_with_what_it_asks_for(at: &Path, arguments: &[&str], memory: &str) {
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
fn import_least_memory_is_enough() {
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
fn import_of_many_cells_least_memory_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let sizes = ["34359738368", "60000"];
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
fn generate_least_memory_is_enough() {
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
fn degree_order_least_memory_is_enough() {
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
fn least_memory_of_runs_that_transpose_chunks_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = "generate kronecker 14 8 --weights f32 -q -o edges.wel";
    succeed(at, &generate.split(' ').collect::<Vec<_>>());
    // Many batches, whose open chunks take more than passes do, and few.
    for (batch, chunk) in [("16", "4K"), ("4096", "64K")] {
        let import = format!(
            "import edges.wel -o graph --weights f32 --layout stream --batch-size {batch} --chunk-size {chunk}"
        );
        succeed(at, &import.split(' ').collect::<Vec<_>>());
        for (algorithm, threads) in [("mst", "1"), ("scc", "3"), ("spmv", "2")] {
            let run = [
                "run",
                algorithm,
                "graph",
                "-o",
                "rows.csv",
                "--threads",
                threads,
            ];
            does_with_what_it_asks_for(at, &run, "4M");
            std::fs::remove_file(at.join("rows.csv")).expect("rows");
        }
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
}

#[test]
fn run_least_memory_is_enough() {
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
fn in_memory_method_least_memory_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("few.txt"), "0 1\n1 2\n3 4\n").expect("a file");
    succeed(at, &["import", "few.txt", "-o", "few", "-q"]);
    let sizes = ["600000", "300000"];
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
fn sparse_pass_leaves_memory_for_rows_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // Of few edges no search meets many; of many one does, and needs a dense pass in between.
    for edges in ["300000", "1000000"] {
        let sizes = ["600000", edges];
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
fn run_too_small_is_refused_before_import() {
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
fn far_ids_take_little_memory_of_any_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for far in ["30000000", "4294967295", "16000000000"] {
        std::fs::write(at.join("far.el"), format!("0 {far}\n{far} 7\n")).expect("a file");
        for order in ["id", "degree"] {
            let graph = format!("{far}-{order}");
            let import = ["import", "far.el", "-o", &graph, "--order", order];
            let said = told(at, &[&import[..], &["--memory", "8G"]].concat());
            let (most, _) = said.split_once(" of memory at most").expect("memory");
            let most = most.rsplit(", ").next().expect("a size");
            let (number, unit) = most.split_once(' ').expect("a unit");
            let number: f64 = number.parse().expect("a number");
            assert!(unit == "KiB" || unit == "MiB" && number < 100.0, "{said}");
            let result = succeed(at, &["run", "bfs", &graph, "--source", "0", "--top", "1"]);
            assert!(result.contains("\n7 "), "{result}");
        }
    }
}

#[test]
fn empty_graph_push_least_memory_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
    succeed(at, &words("generate uniform 0 0 -o none -q"));
    for threads in ["1", "2", "3"] {
        for more in ["", " --weighted"] {
            let run = format!("run pagerank none --method pregel-push --threads {threads}{more}");
            let run = words(&run);
            let run: Vec<&str> = run.iter().map(String::as_str).collect();
            does_with_what_it_asks_for(at, &run, "1M");
        }
    }
}

#[test]
fn long_ids_keep_to_the_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // One component, and a star whose parent has the longest name: values are longer than the ids beside them.
    let long = "z".repeat(1990);
    let mut edges: String = (0..4000).map(|i| format!("a{long} {i}\n")).collect();
    edges.extend((0..2000).map(|i| format!("{i}b{long} {i}\n")));
    std::fs::write(at.join("edges.txt"), edges).expect("a file");
    succeed(
        at,
        &["import", "edges.txt", "-o", "graph", "-q", "--undirected"],
    );
    let source = format!("a{long}");
    for run in [
        &["run", "wcc", "graph"][..],
        &["run", "bfs", "graph", "--parents", "--source", &source],
    ] {
        let mut results = Vec::new();
        for output in ["rows.csv", "rows.parquet"] {
            let run = [run, &["-o", output, "--threads", "2"]].concat();
            does_with_what_it_asks_for(at, &run, "1M");
            let small = std::fs::read(at.join(output)).expect("a result");
            succeed(at, &[&run[..], &["-q", "--memory", "1G"]].concat());
            assert!(std::fs::read(at.join(output)).expect("a result") == small);
            std::fs::remove_file(at.join(output)).expect("a result");
            results.push(small);
        }
        assert!(results[0].split(|byte| *byte == b'\n').count() > 6000);
    }
}

#[test]
fn parallel_weighted_edges_merge_beyond_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // Weights that are alike, and weights that are all different, of both signs.
    let weight = |i: u64| match i % 3 {
        0 => "0.5".to_string(),
        _ => format!(
            "{}{}.{}",
            if i.is_multiple_of(2) { "-" } else { "" },
            i * 7919 % 10_007,
            i
        ),
    };
    let edges: String = (0..600_000)
        .map(|i| format!("0 1 {}\n", weight(i)))
        .collect();
    std::fs::write(at.join("edges.txt"), edges + "1 0 3\n").expect("a file");
    for weights in ["f32", "f64"] {
        for duplicates in ["keep", "first", "sum", "min", "max"] {
            let import = [
                "import",
                "edges.txt",
                "-q",
                "--threads",
                "1",
                "--weights",
                weights,
            ];
            let import = [&import[..], &["--duplicates", duplicates, "-o"]].concat();
            succeed(at, &[&import[..], &["small", "--memory", "8M"]].concat());
            succeed(at, &[&import[..], &["large", "--memory", "512M"]].concat());
            assert!(
                files(&at.join("small")) == files(&at.join("large")),
                "{weights} {duplicates}"
            );
            for graph in ["small", "large"] {
                std::fs::remove_dir_all(at.join(graph)).expect("a graph");
            }
        }
    }
}

#[test]
fn temporary_files_in_memory_are_refused() {
    let shared = Path::new("/dev/shm");
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let is_memory = mounts
        .lines()
        .any(|line| line.starts_with("tmpfs /dev/shm "));
    let Some(tmp) = is_memory
        .then(|| tempfile::tempdir_in(shared).ok())
        .flatten()
    else {
        println!("skipped: /dev/shm is no tmpfs that can be written");
        return;
    };
    let folder = crate::folder_with_edges("0 1\n1 2\n");
    let at = folder.path();
    let tmp = tmp.path().to_str().expect("a path in UTF-8");
    let import = ["import", "edges.txt", "-o", "graph"];
    let said = fail(at, 2, &[&import[..], &["--tmp", tmp]].concat());
    assert!(
        said.contains("it is memory (tmpfs)") && said.contains("--tmp"),
        "{said}"
    );
    assert_eq!(names(at), ["edges.txt"]);
    succeed(at, &import);
    let run = ["run", "wcc", "graph", "-o", "r.csv"];
    let said = fail(at, 2, &[&run[..], &["--tmp", tmp]].concat());
    assert!(said.contains("it is memory (tmpfs)"), "{said}");
    // A result goes where it is asked for: that is said, and done.
    let result = format!("{tmp}/r.csv");
    let output = call(at, &["run", "wcc", "graph", "-o", &result]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.contains("which is memory (tmpfs)"),
        "{said}"
    );
}

/// A cgroup of this test, which goes with it; none where none can be made.
struct Group(PathBuf);

impl Group {
    fn new(limit: &str) -> Option<Group> {
        let name = format!("graphmill-test-{}", std::process::id());
        [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ]
        .into_iter()
        .find_map(|(root, file)| {
            let group = Group(Path::new(root).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(file), limit).ok()?;
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn memory_above_cgroup_limit_is_refused() {
    let Some(group) = Group::new("536870912") else {
        println!("skipped: no cgroup can be made here");
        return;
    };
    let folder = crate::folder_with_edges("0 1\n1 2\n");
    let run = |memory: &str| {
        let run = format!("run wcc edges.txt -q --memory {memory}");
        let procs = group.0.join("cgroup.procs").display().to_string();
        let script = format!("echo $$ > {procs} && exec \"$0\" {run}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_graphmill")])
            .current_dir(folder.path())
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    for memory in ["513M", "1G", "2T"] {
        let (code, said) = run(memory);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("may take 536870912 bytes"), "{said}");
    }
    let (code, said) = run("256M");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn run_on_edges_names_memory_for_import_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_edges(at);
    let long = |i: u64| format!("{i}-{}", "x".repeat(1990));
    let edge = |i| format!("{} {}\n", long(i), long(i * 7 % 500));
    std::fs::write(at.join("long.txt"), (0..600).map(edge).collect::<String>()).expect("a file");
    std::fs::write(at.join("none.txt"), "# nothing\n").expect("a file");
    for (input, algorithm) in [
        ("numbers.txt", "pagerank"),
        ("numbers.txt", "pagerank --method pregel-push"),
        ("words.txt", "wcc"),
        ("words.txt.gz", "wcc --method union-find"),
        ("words.txt", "scc"),
        ("numbers.txt", "mis"),
        ("words.txt", "bp --affinity 0.7 --iterations 3"),
        ("words.txt", "cdlp"),
        ("none.txt", "cdlp"),
        ("words.txt", "bfs --parents --source vertex-7"),
        ("words.txt", "sssp --source vertex-7"),
        ("long.txt", "wcc --top 3"),
        ("none.txt", "pagerank --method pregel-push"),
    ] {
        for ranks in ["1", "3"] {
            let run = format!("run {algorithm} {input} --threads 2 --ranks {ranks} -o rows.csv");
            let run: Vec<&str> = run.split(' ').collect();
            does_with_what_it_asks_for(at, &run, "1M");
            std::fs::remove_file(at.join("rows.csv")).expect("a result");
            std::fs::remove_dir_all(at.join(format!("{input}.graphmill"))).expect("a cache");
        }
    }
}

/// The metrics of a run, in exactly the memory that a refusal asks for, and that memory.
fn metrics_at_least_memory(at: &Path, run: &[&str]) -> (u64, serde_json::Value) {
    let run = [run, &["-q", "--metrics", "metrics.json"]].concat();
    let least = asked_for(&fail(at, 1, &[&run[..], &["--memory", "1M"]].concat()));
    succeed(at, &[&run[..], &["--memory", &least.to_string()]].concat());
    let metrics = std::fs::read(at.join("metrics.json")).expect("metrics");
    (least, serde_json::from_slice(&metrics).expect("JSON"))
}

#[test]
fn least_memory_has_one_worker_and_rows_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let path = ["generate", "grid", "1", "200000", "-o", "path", "-q"];
    succeed(at, &path);
    let mut leasts = Vec::new();
    for threads in ["1", "2", "16"] {
        let run = ["run", "bfs", "path", "--source", "199960"];
        let run = [&run[..], &["--threads", threads]].concat();
        let (least, metrics) = metrics_at_least_memory(at, &run);
        assert_eq!(metrics["vertex_state_resident"], true, "{threads} threads");
        leasts.push(least);
    }
    // With one batch, borrowing its rows takes as much as having them in memory.
    assert_eq!(leasts, [leasts[0]; 3], "threads ask for no more memory");
}

#[test]
fn result_takes_the_memory_of_the_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let graph = [
        "generate", "uniform", "1000000", "1000000", "-o", "graph", "-q",
    ];
    succeed(at, &graph);
    let run = [
        "run",
        "pagerank",
        "graph",
        "--threads",
        "1",
        "--iterations",
        "1",
    ];
    let least = |run: &[&str]| asked_for(&fail(at, 1, &[run, &["--memory", "1M"]].concat()));
    let without = least(&run);
    let run = [&run[..], &["-o", "r.parquet"]].concat();
    let with = least(&run);
    // The result takes 27 MiB alone: two values a vertex, a block of rows, and buffers.
    assert!(
        without <= with && with < without + (16 << 20),
        "{without}, {with}"
    );
    does_with_what_it_asks_for(at, &run, "1M");
}

#[test]
fn sparse_pass_moves_pages_of_its_rows_only() {
    // Bytes of a page of rows, in large batches.
    const PAGE: u64 = 64 << 10;
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let path = ["generate", "grid", "1", "2000000", "-o", "path", "-q"];
    succeed(at, &[&path[..], &["--batch-size", "262144"]].concat());
    let run = ["run", "sssp", "path", "--source", "1999960"];
    let (_, metrics) = metrics_at_least_memory(at, &run);
    assert_eq!(metrics["vertex_state_resident"], false);
    let passes = metrics["passes"].as_array().expect("passes");
    let sparse = passes.iter().filter(|pass| pass["mode"] == "sparse");
    let sparse: Vec<_> = sparse.collect();
    assert!(sparse.len() >= 39, "{}", sparse.len());
    for (i, pass) in sparse.into_iter().enumerate() {
        // One row is active and one is reached. They are in one page, out of 32 of the batch. The first pass also reads degrees.
        let of_degrees = if i == 0 { 3 * PAGE } else { 0 };
        for (moved, more) in [("bytes_read", of_degrees), ("bytes_written", 0)] {
            let bytes = pass[moved].as_u64().expect("bytes");
            assert!(bytes <= 4 * PAGE + more, "{moved}: {bytes}");
        }
    }
}
