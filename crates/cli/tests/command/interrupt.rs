//! Ctrl-C, and a terminal that closes, ends a command soon, with exit code 130 and no temporary file left.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{debian, graphmill, names, succeed};

pub(crate) fn start(folder: &Path, arguments: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut child = graphmill()
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let said = BufReader::new(child.stderr.take().expect("a pipe"));
    (child, said)
}

/// A run of minutes.
const LONG: [&str; 7] = [
    "run",
    "pagerank",
    "graph",
    "-o",
    "ranks.parquet",
    "--iterations",
    "100000000",
];

/// Reads stderr up to a line that contains `text`.
pub(crate) fn wait_for(text: &str, said: &mut impl BufRead) {
    let mut seen = String::new();
    while !seen.lines().last().is_some_and(|line| line.contains(text)) {
        let read = said.read_line(&mut seen).expect("a line");
        assert!(read > 0, "it ended before it said {text:?}: {seen}");
    }
}

pub(crate) fn send(signal: &str, process: u32) {
    let kill = format!("kill -{signal} {process}");
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .expect("a shell")
            .success()
    );
}

/// Whether this process, and so the commands that it starts, ignores SIGHUP, the first of the signals.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("what the system says");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number");
    mask & 1 == 1
}

/// Sends signals, expects the end, gives back what was still said.
pub(crate) fn end(signals: &[&str], mut child: Child, mut said: impl Read) -> String {
    for signal in signals {
        send(signal, child.id());
    }
    // One that never ends is killed, so that this fails.
    let limit = Instant::now() + Duration::from_secs(120);
    while child.try_wait().expect("a child").is_none() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    let status = child.wait().expect("an end");
    assert_eq!(status.code(), Some(130), "{rest}");
    rest
}

/// Writes a file whose import takes seconds.
///
/// A multiplicative generator gives sparse ids, which need a dictionary.
fn write_edges(file: &Path) {
    let mut id = 1_u64;
    let mut next = || {
        id = id
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        id
    };
    let pairs: Vec<u8> = (0..6_000_000).flat_map(|_| next().to_le_bytes()).collect();
    std::fs::write(file, pairs).expect("a file");
}

#[test]
fn import_interrupted_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_edges(&at.join("edges.u64"));
    let arguments = [
        "import",
        "edges.u64",
        "--format",
        "raw-u64",
        "-o",
        "graph",
        "--undirected",
        "--threads",
        "1",
        "--memory",
        "64M",
    ];
    let (child, mut said) = start(at, &arguments);
    wait_for("scan", &mut said);
    let rest = end(&["INT"], child, said);
    assert!(rest.contains("interrupted"), "{rest}");
    assert_eq!(names(at), ["edges.u64"]);
}

#[test]
fn generate_interrupted_leaves_nothing() {
    // A minute each; one is sorted, the other told in order.
    for (rule, step) in [
        ("kronecker 24 16", "scan"),
        ("consecutive 90000000 100", "write"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let words = format!("generate {rule} -o graph --threads 1 --memory 64M");
        let (child, mut said) = start(at, &words.split(' ').collect::<Vec<_>>());
        wait_for(step, &mut said);
        let rest = end(&["INT"], child, said);
        assert!(rest.contains("nothing was left behind"), "{rest}");
        assert_eq!(names(at), [""; 0]);
    }
}

#[test]
fn run_interrupted_leaves_the_graph_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    succeed(
        at,
        &[
            "import",
            debian().to_str().expect("a path in UTF-8"),
            "-o",
            "graph",
        ],
    );
    // The shell and the system may both tell that the terminal has closed.
    for signals in [
        &["INT"][..],
        &["TERM"],
        &["XCPU", "XCPU"],
        &["HUP"],
        &["HUP", "HUP"],
    ] {
        if signals[0] == "HUP" && ignores_hangup() {
            println!("skipped: SIGHUP, which these tests were started to ignore (nohup)");
            continue;
        }
        let (child, mut said) = start(at, &LONG);
        wait_for("pass", &mut said);
        let rest = end(signals, child, said);
        assert!(rest.contains("nothing was left behind"), "{rest}");
        assert_eq!(names(at), ["graph"]);
    }
}

#[test]
fn bfs_of_many_levels_ends_on_interrupt() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let chain = ["generate", "grid", "1", "5000000"];
    succeed(at, &[&chain[..], &["-o", "chain"]].concat());
    // The many passes decode the lists of all vertices, and none of them takes workers.
    let search = ["run", "bfs", "chain", "--source", "0", "-o", "depths.csv"];
    let (child, mut said) = start(at, &search);
    wait_for("pass", &mut said);
    let rest = end(&["INT"], child, said);
    assert!(rest.contains("nothing was left behind"), "{rest}");
    assert_eq!(names(at), ["chain"]);
}

#[test]
fn hangup_ignored_by_parent_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("edges.txt"), "1 2\n2 1\n").expect("a file");
    succeed(at, &["import", "edges.txt", "-o", "graph"]);
    // As nohup does: what the shell ignores, its child ignores.
    let script = format!("trap '' HUP; exec \"$0\" {}", LONG.join(" "));
    let mut child = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_graphmill")])
        .current_dir(at)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    wait_for("pass", &mut said);
    send("HUP", child.id());
    wait_for("pass", &mut said);
    assert!(child.try_wait().expect("a state").is_none());
    let rest = end(&["INT"], child, said);
    assert!(rest.contains("interrupted"), "{rest}");
}

#[test]
fn cache_import_interrupted_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_edges(&at.join("edges.u64"));
    let (child, mut said) = start(
        at,
        &[
            "run",
            "wcc",
            "edges.u64",
            "--format",
            "raw-u64",
            "--tmp",
            "a/b",
            "--threads",
            "1",
            "--memory",
            "64M",
        ],
    );
    wait_for("scan", &mut said);
    let rest = end(&["INT"], child, said);
    assert!(rest.contains("nothing was left behind"), "{rest}");
    assert_eq!(names(at), ["edges.u64"]);
}

#[test]
fn import_killed_is_cleaned_by_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_edges(&at.join("edges.u64"));
    std::fs::write(at.join("few.txt"), "1 2\n").expect("a file");
    let import = ["import", "edges.u64", "-o", "graph", "--tmp", "tmp"];
    let more = ["--threads", "1", "--memory", "64M"];
    let left = |at: &Path| {
        let hidden = |name: &String| name.starts_with(".graphmill-");
        names(at).into_iter().filter(hidden).count()
    };
    let (mut killed, mut said) = start(at, &[&import[..], &more].concat());
    wait_for("scan", &mut said);
    send("KILL", killed.id());
    killed.wait().expect("an end");
    assert_eq!((left(at), left(&at.join("tmp"))), (1, 1));
    let (living, mut said) = start(at, &[&import[..], &more].concat());
    wait_for("scan", &mut said);
    assert_eq!(
        (left(at), left(&at.join("tmp"))),
        (1, 1),
        "of the living one"
    );
    succeed(at, &["import", "few.txt", "-o", "few", "--tmp", "tmp"]);
    assert_eq!((left(at), left(&at.join("tmp"))), (1, 1), "it stays");
    end(&["INT"], living, said);
    assert_eq!(left(at), 0);
    assert_eq!(names(&at.join("tmp")), [""; 0]);
}
