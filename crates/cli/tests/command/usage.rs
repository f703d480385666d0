//! What was asked for wrongly ends with exit code 2, before any work, and says what would have been right.

use std::process::Command;

use crate::{fail, folder_with_edges, names, succeed};

#[test]
fn usage_is_shown_for_nothing_or_nonsense() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    let nothing: [&str; 0] = [];
    assert!(fail(at, 2, &nothing).contains("Usage:"));
    assert!(fail(at, 2, &["imporrt"]).contains("import"));
    assert!(fail(at, 2, &["run"]).contains("pagerank"));
    assert!(fail(at, 2, &["run", "pagerang", "edges.txt"]).contains("pagerank"));
    assert!(fail(at, 2, &["import", "edges.txt"]).contains("--output"));
    assert!(fail(at, 2, &["import", "-o", "graph"]).contains("INPUT"));
    assert!(fail(at, 2, &["validate", "a", "b"]).contains("--rule"));
    assert_eq!(names(at), ["edges.txt"]);
}

#[test]
fn values_out_of_range_are_refused_with_a_hint() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    assert!(fail(at, 2, &["run", "wcc", "edges.txt", "--memory", "1,5G"]).contains("512M"));
    assert!(fail(at, 2, &["run", "wcc", "edges.txt", "--memory", "0"]).contains("memory"));
    assert!(fail(at, 2, &["run", "wcc", "edges.txt", "--threads", "0"]).contains("--threads"));
    assert!(fail(at, 2, &["run", "wcc", "edges.txt", "--source", "1"]).contains("--source"));
    assert!(fail(at, 2, &["run", "bfs", "edges.txt"]).contains("--source"));
    assert!(fail(at, 2, &["run", "wcc", "edges.txt", "-o", "out.xlsx"]).contains(".parquet, .csv"));
    assert!(
        fail(
            at,
            2,
            &["import", "edges.txt", "-o", "graph", "--duplicates", "last"]
        )
        .contains("first")
    );
    for output in [
        ["-o", "no/such/result.csv"],
        ["--metrics", "no/such/m.json"],
    ] {
        let said = fail(at, 2, &[&["run", "wcc", "edges.txt"], &output[..]].concat());
        assert!(said.contains("no directory no/such"), "{said}");
        assert!(!said.contains("importing"), "before any work: {said}");
    }
    for (option, value, says) in [
        ("--trials", "0", "--trials"),
        ("--memory", "1000%", "1% to 100%"),
        ("--combiner", "hybrid", "--method pregel-push"),
        ("--dram-bandwidth", "1G", "--simulate-slow-tier paper"),
        ("--duplicates", "sum", "--weights"),
    ] {
        let said = fail(at, 2, &["run", "wcc", "edges.txt", option, value]);
        assert!(said.contains(says), "{said}");
        assert!(!said.contains("importing"), "before any work: {said}");
    }
    let said = fail(at, 2, &["import", "edges.txt", "-o", "no/such/graph"]);
    assert!(said.contains("make it first"), "{said}");
    assert_eq!(names(at), ["edges.txt"]);
}

#[test]
fn missing_paths_fail_alike_in_every_command() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    std::os::unix::fs::symlink("nothing", at.join("link")).expect("a link");
    assert!(fail(at, 2, &["run", "wcc", "link"]).contains("link: there is no such file"));
    std::fs::remove_file(at.join("link")).expect("a link");
    let commands: [&[&str]; 9] = [
        &["run", "wcc", "nothing"],
        &["run", "wcc", "edges.txt", "--vertices", "nothing"],
        &["import", "nothing", "-o", "graph"],
        &["import", "edges.txt", "nothing", "-o", "graph"],
        &[
            "import",
            "edges.txt",
            "--vertices",
            "nothing",
            "-o",
            "graph",
        ],
        &["info", "nothing"],
        &["verify", "nothing"],
        &["validate", "nothing", "edges.txt", "--rule", "exact"],
        &["validate", "nothing", "edges.txt", "--algorithm", "wcc"],
    ];
    for command in commands {
        let said = fail(at, 2, command);
        assert!(said.contains("nothing: there is no such file"), "{said}");
    }
    assert_eq!(names(at), ["edges.txt"]);
}

#[test]
fn outputs_unwritable_are_refused_before_work() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    // Not even root makes files there.
    for output in [["-o", "/sys/result.csv"], ["--metrics", "/sys/m.json"]] {
        let said = fail(at, 1, &[&["run", "wcc", "edges.txt"], &output[..]].concat());
        assert!(said.contains("cannot create /sys"), "{said}");
        assert!(!said.contains("importing"), "before any work: {said}");
    }
    succeed(at, &["import", "edges.txt", "-o", "graph"]);
    for words in [
        "run wcc graph",
        "run wcc edges.txt",
        "import edges.txt -o another",
        "generate grid 3 3 -o another",
    ] {
        let words = format!("{words} --tmp /sys");
        let said = fail(at, 1, &words.split(' ').collect::<Vec<_>>());
        assert!(said.contains("(--tmp)"), "{said}");
    }
    assert_eq!(names(at), ["edges.txt", "graph"]);
}

#[test]
fn edges_must_be_in_a_regular_file() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    let made = Command::new("mkfifo").arg(at.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    for command in [
        &["run", "wcc", "pipe"][..],
        &["run", "wcc", "/dev/null"],
        &["import", "pipe", "-o", "graph"],
    ] {
        let said = fail(at, 2, command);
        assert!(said.contains("is a pipe or a device"), "{said}");
    }
    // A file by another name, under which the next run finds another.
    let run = || {
        let file = std::fs::File::open(at.join("edges.txt")).expect("a file");
        let mut command = crate::graphmill();
        let command = command.args(["run", "wcc", "/dev/stdin"]).current_dir(at);
        command.stdin(file).output().expect("the command starts")
    };
    for say in ["importing", "imported before"] {
        let said = String::from_utf8(run().stderr).expect("text");
        assert!(said.contains(say), "{said}");
    }
    let again = crate::call(at, &["run", "wcc", "edges.txt"]);
    let said = String::from_utf8(again.stderr).expect("text");
    assert!(said.contains("imported before"), "{said}");
    assert_eq!(names(at), ["edges.txt", "edges.txt.graphmill", "pipe"]);
}

#[test]
fn refusal_names_memory_that_is_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for options in ["", " --undirected", " --reverse --order degree"] {
        let words = format!("generate kronecker 18 16{options} -o graph -q");
        succeed(at, &words.split(' ').collect::<Vec<_>>());
        // The least for any run grows with the threads.
        let run = [
            "run",
            "wcc",
            "graph",
            "--method",
            "afforest",
            "--threads",
            "2",
            "-q",
        ];
        let with = |memory: &str| crate::call(at, &[&run[..], &["--memory", memory]].concat());
        let refused = |memory: &str, before: &str| {
            let output = with(memory);
            let said = String::from_utf8(output.stderr).expect("text");
            assert!(!output.status.success(), "{memory}{options}");
            let least = said.split(before).nth(1);
            let least = least.and_then(|rest| rest.split(' ').next());
            least
                .unwrap_or_else(|| panic!("no amount: {said}"))
                .to_string()
        };
        // First for any run, then for this one.
        let least = refused("4M", "give --memory ");
        let least = refused(&least, "give at least ");
        let enough = with(&least);
        let said = String::from_utf8_lossy(&enough.stderr).into_owned();
        assert!(enough.status.success(), "{least}{options}: {said}");
        std::fs::remove_dir_all(at.join("graph")).expect("a graph");
    }
}

#[test]
fn io_uring_refused_ends_no_run() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph"]);
    // Rings are files. Where few may be open the first rings are granted and later ones are not: threads read then.
    for files in 8..40 {
        let command = env!("CARGO_BIN_EXE_graphmill");
        let line = format!("ulimit -n {files}; {command} run wcc graph --threads 4");
        let mut shell = Command::new("sh");
        let run = shell.args(["-c", &line]).current_dir(at);
        let ended = run.output().expect("a shell");
        let said = String::from_utf8_lossy(&ended.stderr);
        let files_are_few = said.contains("ulimit -n");
        assert!(
            ended.status.success() || files_are_few,
            "{files} files: {said}"
        );
        assert!(
            files < 30 || ended.status.success(),
            "{files} files: {said}"
        );
    }
}

#[test]
fn batch_size_beyond_format_is_refused() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    let import = |size| ["import", "edges.txt", "-o", "graph", "--batch-size", size];
    for size in ["2147483649", "4294967296", "18446744073709551615"] {
        let said = fail(at, 2, &import(size));
        let most = format!("--batch-size {size} must be at most 2147483648");
        assert!(said.contains(&most), "{said}");
    }
    assert_eq!(names(at), ["edges.txt"]);
    succeed(at, &import("2147483648"));
}

#[test]
fn stored_graph_refuses_reading_options() {
    let folder = folder_with_edges("1 2\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph"]);
    let said = fail(at, 2, &["run", "wcc", "graph", "--undirected"]);
    assert!(said.contains("is a stored graph"), "{said}");
    let said = fail(at, 2, &["import", "graph", "-o", "another"]);
    assert!(said.contains("is a stored graph already"), "{said}");
    succeed(at, &["run", "wcc", "graph"]);
}

#[test]
fn option_values_are_checked_before_import() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    for (option, value, wanted) in [
        ("--damping", "2", "a number from 0 to 1"),
        ("--iterations", "-3", "a whole number"),
        ("--precision", "f16", "f64 or f32"),
        ("--dangling", "keep", "redistribute or drop"),
        ("--sources", "", "at least one id"),
        ("--sources", " , ", "at least one id"),
    ] {
        let given = format!("{option}={value}");
        let said = fail(at, 2, &["run", "pagerank", "edges.txt", &given]);
        assert!(said.contains(option) && said.contains(wanted), "{said}");
        assert_eq!(names(at), ["edges.txt"], "nothing was imported");
    }
}

#[test]
fn options_are_checked_against_the_graph() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    for source in ["4", "one", "-1", ""] {
        let source = format!("--source={source}");
        let said = fail(at, 2, &["run", "bfs", "edges.txt", &source]);
        assert!(
            said.contains("no such vertex") && said.contains("integers"),
            "{said}"
        );
    }
    let said = fail(at, 2, &["run", "pagerank", "edges.txt", "--sources", "1,9"]);
    assert!(said.contains("--sources 9"), "{said}");
}

#[test]
fn vertex_list_takes_backslash_escapes() {
    let folder = folder_with_edges("from,to\na b,c\\d\nc\\d,e\ne,a b\n");
    let at = folder.path();
    let run = ["run", "pagerank", "edges.txt", "--format", "csv"];
    let sources = |sources| {
        [
            &run[..],
            &["--top", "2", "--damping", "0", "--sources", sources],
        ]
        .concat()
    };
    for (list, vertex) in [("a b", "a b"), (r"c\\d", r"c\d"), (" e, ", "e")] {
        let said = succeed(at, &sources(list));
        let row = said.lines().nth(1).expect("a row");
        assert!(row.starts_with(vertex) && row.ends_with(" 1.0"), "{said}");
    }
    let said = fail(at, 2, &sources(r"e,a\,b"));
    assert!(said.contains("--sources a,b: "), "{said}");
    let said = fail(at, 2, &sources("e,a,b"));
    assert!(said.contains("--sources a: "), "{said}");
}

#[test]
fn vertex_ids_may_begin_with_a_dash() {
    let folder = folder_with_edges("-a,-1\n-1,b\n");
    let at = folder.path();
    let search = ["run", "bfs", "edges.txt", "--format", "csv", "--top", "1"];
    for (source, last) in [("-a", "b"), ("-1", "b")] {
        let said = succeed(at, &[&search[..], &["--source", source]].concat());
        let row = said.lines().nth(1).expect("a row");
        assert!(row.starts_with(last), "{said}");
    }
}

#[test]
fn in_memory_options_conflict_with_streaming() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    let stream = ["edges.txt", "--place", "edges=stream"];
    let wcc = [&["run", "wcc", "--method", "afforest"], &stream[..]].concat();
    let said = fail(at, 2, &wcc);
    assert!(
        said.contains("edges=stream") && !said.contains("--memory"),
        "{said}"
    );
    let sssp = ["run", "sssp", "--source", "1", "--delta", "3", "-q"];
    let output = crate::call(at, &[&sssp[..], &stream].concat());
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("--delta had no effect"), "{said}");
    let output = crate::call(at, &[&sssp[..], &["edges.txt"]].concat());
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        output.status.success() && !said.contains("--delta"),
        "{said}"
    );
}

#[test]
fn push_on_several_ranks_warns_that_it_is_pull() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let push = [
        "run",
        "pagerank",
        "--method",
        "pregel-push",
        "edges.txt",
        "-q",
    ];
    for (ranks, warns) in [("1", false), ("2", true)] {
        let output = crate::call(folder.path(), &[&push[..], &["--ranks", ranks]].concat());
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("push ran as pull"), warns, "{said}");
    }
}

#[test]
fn components_along_arcs_are_refused_before_the_import() {
    let folder = folder_with_edges("1 2\n2 3\n");
    let at = folder.path();
    for method in ["pregel-pull", "pregel-push"] {
        let run = ["run", "wcc", "edges.txt", "-o", "-", "--method", method];
        let said = fail(at, 1, &run);
        let is_told = said.contains("edges.txt")
            && said.contains("give --undirected where its edges are read");
        assert!(is_told && !said.contains("importing"), "{said}");
        succeed(at, &[&run[..], &["--undirected"]].concat());
    }
}

#[test]
fn empty_graph_is_done_by_every_method() {
    let folder = folder_with_edges("# nothing\n");
    let at = folder.path();
    succeed(at, &["import", "edges.txt", "-o", "graph", "-q"]);
    let methods: [&[&str]; 2] = [
        &["passes", "pregel-pull", "pregel-push"],
        &[
            "auto",
            "afforest",
            "union-find",
            "labels",
            "pregel-pull",
            "pregel-push",
        ],
    ];
    for (algorithm, methods) in ["pagerank", "wcc"].into_iter().zip(methods) {
        for method in methods {
            let run = ["run", algorithm, "graph", "--method", method];
            succeed(at, &[&run[..], &["-q", "-o", "result.csv"]].concat());
            let result = std::fs::read_to_string(at.join("result.csv")).expect("a result");
            assert_eq!(
                result.lines().count(),
                1,
                "{algorithm} by {method}: {result}"
            );
        }
    }
}

#[test]
fn plugin_that_is_no_library_is_refused() {
    let folder = folder_with_edges("1 2\n");
    let output = crate::graphmill()
        .args(["import", "edges.txt", "-o", "graph"])
        .current_dir(folder.path())
        .envs([("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "0")])
        .env("GRAPHMILL_MPI", folder.path().join("edges.txt"))
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let causes = ["file too short", "ELF", "xec format"];
    assert!(causes.iter().any(|cause| said.contains(cause)), "{said}");
}
