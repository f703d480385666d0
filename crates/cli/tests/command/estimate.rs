//! Estimates of bytes on disk, over disk and over the network match imports and runs.

use std::path::Path;

use serde_json::Value;

use crate::succeed;

/// The share of what was measured by which a plan may be off.
const OFF: f64 = 0.2;
const ITERATIONS: &str = "5";

/// A graph, and the machines that import it and rank its vertices.
struct Case {
    like: &'static str,
    scale: u32,
    degree: u64,
    ranks: usize,
    /// Of each rank.
    memory_mib: u64,
    batch_size: Option<u64>,
    undirected: bool,
    /// Whether rows, and messages, stay in memory.
    resident: [bool; 2],
    /// Whether messages are dispatched to the columns that need them, in the end.
    dispatched: bool,
}

const fn kronecker(scale: u32, degree: u64, ranks: usize, memory_mib: u64) -> Case {
    Case {
        like: "kronecker",
        scale,
        degree,
        ranks,
        memory_mib,
        batch_size: None,
        undirected: false,
        resident: [true, true],
        dispatched: false,
    }
}

const CASES: [Case; 11] = [
    kronecker(16, 16, 1, 64),
    kronecker(16, 16, 4, 64),
    // Cells stream from disk.
    Case {
        batch_size: Some(2048),
        undirected: true,
        ..kronecker(18, 8, 1, 12)
    },
    Case {
        batch_size: Some(4096),
        ..kronecker(18, 16, 4, 16)
    },
    // So do messages, which all runs of columns need most of.
    Case {
        batch_size: Some(8192),
        resident: [true, false],
        ..kronecker(18, 8, 1, 9)
    },
    // And rows.
    Case {
        batch_size: Some(16_384),
        resident: [false, false],
        ..kronecker(18, 16, 1, 8)
    },
    // Or each needs few of them.
    Case {
        batch_size: Some(32_768),
        resident: [false, false],
        dispatched: true,
        ..kronecker(21, 2, 1, 12)
    },
    Case {
        batch_size: Some(32_768),
        resident: [true, false],
        dispatched: true,
        ..kronecker(21, 2, 4, 16)
    },
    Case {
        batch_size: Some(16_384),
        resident: [true, false],
        like: "uniform",
        dispatched: true,
        ..kronecker(20, 4, 4, 18)
    },
    // Or most are needed so often that routing costs more work than it saves.
    Case {
        batch_size: Some(32_768),
        resident: [true, false],
        like: "uniform",
        ..kronecker(20, 8, 4, 20)
    },
    Case {
        batch_size: Some(8192),
        like: "uniform",
        ..kronecker(17, 16, 4, 16)
    },
];

pub(crate) fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("JSON")
}

pub(crate) fn file(folder: &Path, name: &str) -> Value {
    json(&std::fs::read(folder.join(name)).expect(name))
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Bytes of all files in a folder.
fn disk_bytes(folder: &Path) -> f64 {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let of_entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("an entry");
        match entry.metadata().expect("its length") {
            of if of.is_dir() => disk_bytes(&entry.path()),
            of => of.len() as f64,
        }
    };
    entries.map(of_entry).sum()
}

pub(crate) fn assert_near(what: &str, planned: f64, measured: f64) {
    let near = (planned - measured).abs() <= OFF * measured;
    assert!(near, "{what}: planned {planned}, measured {measured}");
}

impl Case {
    fn memory(&self, ranks: u64) -> String {
        format!("{}M", self.memory_mib * ranks)
    }

    /// What the graph is, in the words of `estimate` and of `import`.
    fn shape(&self) -> Vec<String> {
        let size = self.batch_size.map(|size| format!("--batch-size={size}"));
        let undirected = self.undirected.then(|| "--undirected".to_string());
        size.into_iter().chain(undirected).collect()
    }

    fn numbers(&self) -> Vec<String> {
        let vertices = 1u64 << self.scale;
        let edges = vertices * self.degree;
        let mut numbers = vec![
            format!("--vertices={vertices}"),
            format!("--edges={edges}"),
            format!("--like={}", self.like),
        ];
        numbers.extend(self.shape());
        numbers
    }

    /// Draws the edges, imports and runs; what both took.
    fn measure(&self, at: &Path) -> (Value, Value) {
        let vertices = 1u64 << self.scale;
        let [first, second] = match self.like {
            "kronecker" => [u64::from(self.scale), self.degree],
            _ => [vertices, vertices * self.degree],
        };
        let numbers = [first, second].map(|number| number.to_string());
        let [first, second] = &numbers;
        succeed(
            at,
            &["generate", self.like, first, second, "-o", "e.u32", "-q"],
        );
        let ranks = self.ranks as u64;
        let machine = [
            format!("--ranks={ranks}"),
            format!("--memory={}", self.memory(ranks)),
            format!("--threads={}", 2 * ranks),
        ];
        let words = |fixed: &[&str], more: &[String]| {
            let fixed = fixed.iter().map(|word| (*word).to_string());
            fixed
                .chain(more.iter().chain(&machine).cloned())
                .collect::<Vec<_>>()
        };
        let import = [
            "import",
            "e.u32",
            "-o",
            "g",
            "-q",
            "--metrics",
            "import.json",
        ];
        succeed(at, &words(&import, &self.shape()));
        let run = [
            "run",
            "pagerank",
            "g",
            "-q",
            "--iterations",
            ITERATIONS,
            "--metrics",
            "run.json",
        ];
        succeed(at, &words(&run, &[]));
        (file(at, "import.json"), file(at, "run.json"))
    }

    fn plan(&self, at: &Path, graph: &[String]) -> Value {
        let machine = [
            format!("--ranks={}", self.ranks),
            format!("--memory={}", self.memory(1)),
            format!("--iterations={ITERATIONS}"),
            "--threads=2".to_string(),
            "--disks=shared".to_string(),
            "--json".to_string(),
        ];
        let plan = ["estimate".to_string()];
        let words: Vec<&String> = plan.iter().chain(graph).chain(&machine).collect();
        json(succeed(at, &words).as_bytes())
    }
}

pub(crate) const MOVED: [&str; 3] = ["bytes_read", "bytes_written", "bytes_sent"];

#[test]
fn estimate_bytes_are_within_a_fifth() {
    for case in &CASES {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let (import, run) = case.measure(at);
        let expected = case.plan(at, &case.numbers());
        let stored = case.plan(at, &["g".to_string()]);
        let what = format!(
            "{:?} by {} ranks of {} MiB",
            case.numbers(),
            case.ranks,
            case.memory_mib
        );
        for planned in [&expected, &stored] {
            let resident = [
                &planned["run"]["vertex_state_resident"],
                &planned["run"]["messages_resident"],
            ];
            assert_eq!(
                resident,
                [&run["vertex_state_resident"], &run["messages_resident"]],
                "{what}"
            );
            assert_eq!(resident, [&case.resident[0], &case.resident[1]], "{what}");
            let bytes = number(&planned["graph"]["disk_bytes"]);
            assert_near(
                &format!("{what}: the graph"),
                bytes,
                disk_bytes(&at.join("g")),
            );
        }
        for moved in MOVED {
            let planned = number(&expected["import"]["all"][moved]);
            assert_near(
                &format!("{what}: import, {moved}"),
                planned,
                number(&import[moved]),
            );
        }
        let passes = run["passes"].as_array().expect("passes");
        let pushed = passes.last().map(|pass| number(&pass["messages_pushed"]));
        assert_eq!(pushed > Some(0.0), case.dispatched, "{what}");
        for moved in MOVED {
            let of_pass = |pass: &Value| number(&pass[moved]);
            let all: f64 = passes.iter().map(of_pass).sum();
            let last = passes.last().map_or(0.0, of_pass);
            for planned in [&expected, &stored] {
                let planned = &planned["run"];
                assert_near(
                    &format!("{what}: run, {moved}"),
                    number(&planned["all"][moved]),
                    all,
                );
                assert_near(
                    &format!("{what}: a pass, {moved}"),
                    number(&planned["pass"][moved]),
                    last,
                );
            }
        }
    }
}

#[test]
fn estimate_takes_steps_of_column_groups_with_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let call = |words: &str| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
    call("generate uniform 1048576 4194304 --batch-size 16384 -q -o g");
    let numbers = "--vertices 1048576 --edges 4194304 --like uniform --input generated";
    let mut read = Vec::new();
    // Groups of one strip, then larger ones, are a few KiB away.
    for mib in [16.0, 16.5, 17.0] {
        let [each, all] = [1024.0, 4096.0].map(|kib| kib * mib);
        let run = "run pagerank g -q --iterations 2 --ranks 4 --threads 8 --metrics run.json";
        call(&format!("{run} --memory {all}K"));
        let run = file(at, "run.json");
        let last = run["passes"].as_array().and_then(|passes| passes.last());
        for graph in ["g", &format!("{numbers} --batch-size 16384")] {
            let plan = call(&format!(
                "estimate {graph} --iterations 2 --disks shared --json --ranks 4 --threads 2 --memory {each}K"
            ));
            let plan = &json(plan.as_bytes())["run"];
            for moved in MOVED {
                let measured = last.map_or(0.0, |pass| number(&pass[moved]));
                let what = format!("{graph} in {mib} MiB, {moved}");
                assert_near(&what, number(&plan["pass"][moved]), measured);
            }
            read.push(number(&plan["pass"]["bytes_read"]));
        }
    }
    assert!(read[4] < 0.6 * read[0], "{read:?}");
}

#[test]
fn estimate_reads_streamed_edges_in_each_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let call = |words: &str| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
    call("generate kronecker 14 16 --batch-size 1024 -q -o g");
    let machine = "--threads=1 --memory=32M --iterations=2 --place edges=stream";
    let plan = call(&format!("estimate g {machine} --json"));
    let plan = &json(plan.as_bytes())["run"];
    call(&format!("run pagerank g {machine} --metrics run.json -q"));
    let run = file(at, "run.json");
    let last = run["passes"].as_array().and_then(|passes| passes.last());
    let read = last.map_or(0.0, |pass| number(&pass["bytes_read"]));
    assert!(read > 0.0);
    assert_eq!(plan["cached_cell_bytes"], 0);
    assert_near("a pass", number(&plan["pass"]["bytes_read"]), read);
}

#[test]
fn estimate_least_memory_is_enough_and_exact() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = ["generate", "kronecker", "16", "8", "--batch-size", "4096"];
    succeed(at, &[&generate[..], &["-q", "-o", "g"]].concat());
    for ranks in [1, 4] {
        let plan = format!("estimate g --ranks={ranks} --threads=1 --memory=1G --json");
        let plan = succeed(at, &plan.split(' ').collect::<Vec<_>>());
        let run = &json(plan.as_bytes())["run"];
        for (least, more) in [
            (&run["least_memory"], &[][..]),
            (&run["least_memory_with_rows"], &["-o", "r.csv"]),
        ] {
            let least = least.as_u64().expect("a number");
            let run = |memory: u64| {
                let words = format!(
                    "run pagerank g -q --ranks={ranks} --threads={ranks} --memory={memory}"
                );
                let words: Vec<&str> = words.split(' ').chain(more.iter().copied()).collect();
                crate::call(at, &words).status.success()
            };
            assert!(run(least * ranks), "{ranks} ranks, {more:?}: {least}");
            assert!(!run((least - 8192) * ranks), "{ranks} ranks, {more:?}");
        }
    }
}

#[test]
fn estimate_matches_ids_sorted_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    succeed(
        at,
        &[
            "generate", "uniform", "67108864", "1000000", "-o", "e.u32", "-q",
        ],
    );
    for ranks in [1, 4] {
        let machine = [
            format!("--ranks={ranks}"),
            format!("--memory={}M", 24 * ranks),
            format!("--threads={}", 2 * ranks),
        ];
        let import = [
            "import",
            "e.u32",
            "-o",
            "g",
            "-q",
            "--batch-size=65536",
            "--metrics=import.json",
        ];
        let import = import.map(String::from);
        succeed(at, &[&import[..], &machine].concat());
        let import = file(at, "import.json");
        let planned = [
            "estimate --vertices=2^26 --edges=1e6 --like=uniform --batch-size=65536 --memory=24M --threads=2",
            &format!("--ranks={ranks} --disks=shared --json"),
        ]
        .join(" ");
        let planned = json(succeed(at, &planned.split(' ').collect::<Vec<_>>()).as_bytes());
        assert_eq!(planned["import"]["sorts_ids"], true);
        for moved in MOVED {
            let planned = number(&planned["import"]["all"][moved]);
            assert_near(
                &format!("{ranks} ranks, {moved}"),
                planned,
                number(&import[moved]),
            );
        }
        std::fs::remove_dir_all(at.join("g")).expect("removed");
    }
}

#[test]
fn estimate_parts_are_near_stored_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (rule, numbers, vertices, edges, more) in [
        ("kronecker", ["12", "16"], "2^12", "65536", ""),
        (
            "kronecker",
            ["14", "4"],
            "2^14",
            "65536",
            "--batch-size=512",
        ),
        ("kronecker", ["16", "16"], "2^16", "2^20", "--undirected"),
        (
            "kronecker",
            ["17", "8"],
            "2^17",
            "2^20",
            "--batch-size=1024 --undirected",
        ),
        (
            "kronecker",
            ["18", "2"],
            "2^18",
            "2^19",
            "--batch-size=65536 --weights=f32",
        ),
        (
            "uniform",
            ["100000", "3000000"],
            "100000",
            "3e6",
            "--batch-size=4096",
        ),
        (
            "uniform",
            ["500000", "1000000"],
            "500000",
            "1e6",
            "--weights=f64",
        ),
    ] {
        let more: Vec<&str> = more.split_whitespace().collect();
        let generate = ["generate", rule, numbers[0], numbers[1], "-o", "g", "-q"];
        succeed(at, &[&generate[..], &more].concat());
        let info = json(succeed(at, &["info", "g", "--json"]).as_bytes());
        let plan = [
            "estimate",
            "--vertices",
            vertices,
            "--edges",
            edges,
            "--like",
            rule,
            "--input=generated",
        ];
        let machine = ["--memory=1G", "--threads=2", "--json"];
        let planned = succeed(at, &[&plan[..], &machine, &more].concat());
        let planned = &json(planned.as_bytes())["graph"];
        let stored = json(succeed(at, &["estimate", "g", "--json"]).as_bytes());
        assert_eq!(stored["graph"]["disk_bytes"], info["disk_bytes"]);
        let what = format!("{rule} {numbers:?} {more:?}");
        assert_eq!(planned["vertices"], info["vertices"], "{what}");
        for part in ["block_bytes", "weight_bytes", "disk_bytes"] {
            let (planned, stored) = (number(&planned[part]), number(&info[part]));
            // Of files the plan has the padding and the checksums too.
            let padding = if stored > 0.0 { 8192.0 } else { 0.0 };
            assert_near(&format!("{what}: {part}"), planned, stored + padding);
        }
        assert_near(
            &format!("{what}: arcs"),
            number(&planned["arcs"]),
            number(&info["arcs"]),
        );
        // Where batches are cut by their arcs, hubs make one more or one less.
        let batches = [&planned["batches"], &info["batches"]].map(number);
        assert!(
            (batches[0] - batches[1]).abs() <= 1.0,
            "{what}: {batches:?}"
        );
        std::fs::remove_dir_all(at.join("g")).expect("removed");
    }
}
