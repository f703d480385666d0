//! Stored graphs and checkpoints of earlier programs are read, or refused with what to do. `fixtures/` has files of each
//! format.

use std::path::Path;
use std::process::Command;

use crate::{call, succeed};

/// What the graph of the fixtures was imported from.
const EDGES: &str = "a b 1.5\nb c 2\nc a 0.25\nd c 7\nlong-name-of-a-vertex a 3\na a 1\n";

fn unpack(fixture: &str, into: &Path) {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(fixture);
    let mut tar = Command::new("tar");
    tar.arg("xzf").arg(archive).arg("-C").arg(into);
    assert!(tar.status().expect("tar runs").success(), "{fixture}");
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// A folder with the stored graph `g`, and `new` of the same edges by this program.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    unpack("graph-format-4.tar.gz", at);
    std::fs::write(at.join("edges.wel"), EDGES).expect("a file");
    succeed(
        at,
        &words("import edges.wel --weights f32 --reverse -q -o new"),
    );
    folder
}

#[test]
fn graph_of_format_4_is_read() {
    let folder = folder();
    let at = folder.path();
    succeed(at, &["verify", "g", "--deep"]);
    for run in [
        "pagerank --iterations 9",
        "wcc --method labels",
        "wcc",
        "bfs --source a --parents",
        "sssp --source long-name-of-a-vertex",
    ] {
        let (algorithm, options) = run.split_once(' ').unwrap_or((run, "-q"));
        let result = |graph: &str| {
            let line = format!("run {algorithm} {graph} {options} -o {graph}.csv");
            succeed(at, &words(&line));
            std::fs::read_to_string(at.join(format!("{graph}.csv"))).expect("a result")
        };
        let (found, wanted) = (result("g"), result("new"));
        assert!(
            found == wanted && found.lines().count() == 6,
            "{run}:\n{found}"
        );
    }
}

/// The names of calls must not change in a program of the same version.
#[test]
fn checkpoints_of_format_5_are_resumed_or_refused() {
    let folder = folder();
    let at = folder.path();
    unpack("checkpoints-format-5.tar.gz", at);
    for (run, directory, calls, passes) in [
        (
            "run pagerank g --iterations 400 --threads 1",
            "checkpoints",
            30,
            20,
        ),
        (
            "run bfs g --source a --place edges=stream --threads 1",
            "search",
            2,
            // Its calls went over vertices.
            0,
        ),
    ] {
        succeed(at, &words(&format!("{run} -q -o wanted.csv")));
        let resumed = format!("{run} --checkpoint-dir {directory} --resume -o found.csv");
        let output = call(at, &words(&resumed));
        let said = String::from_utf8_lossy(&output.stderr);
        let read = |name| std::fs::read(at.join(name)).expect("a result");
        match env!("CARGO_PKG_VERSION") {
            "0.1.0" => {
                let resumes = format!("the interrupted run, after {calls} calls");
                assert!(said.contains(&resumes), "{said}");
                // Decisions between passes are calls, too.
                let next = said.split_once("pass ").map(|(_, pass)| pass);
                let next = next
                    .and_then(|pass| pass.split_once(':'))
                    .unwrap_or_else(|| panic!("no pass: {said}"))
                    .0;
                let next = next.split(' ').next().unwrap_or_default();
                let next: u64 = next.parse().expect("a number");
                assert!(next > passes && next <= calls + 1, "{said}");
                assert!(read("found.csv") == read("wanted.csv"));
            }
            _ => assert!(
                !output.status.success() && said.contains("program graphmill 0.1.0"),
                "{said}"
            ),
        }
    }
}

#[test]
fn checkpoints_of_earlier_formats_are_refused() {
    for (format, name) in [(2, "versions"), (3, "versions"), (4, "checkpoints")] {
        let folder = folder();
        let at = folder.path();
        unpack(&format!("{name}-format-{format}.tar.gz"), at);
        let run = "run pagerank g --iterations 400 --threads 1 --resume -o found.csv";
        let output = call(at, &words(&format!("{run} --checkpoint-dir {name}")));
        let said = String::from_utf8_lossy(&output.stderr);
        let why = format!("the run there has format {format}, not 5");
        assert!(!output.status.success() && said.contains(&why), "{said}");
        assert!(!at.join("found.csv").exists());
        assert!(at.join(name).join("rank-00000/run.json").exists());
    }
}
