//! Ranks that `mpirun` starts: the graph and the bytes of one process; a rank that is killed ends the job. Skipped without Open MPI.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{call, names, succeed};

/// The plugin, compiled here; nothing where there is no MPI.
fn plugin(folder: &Path) -> bool {
    let has = |program: &str| {
        let started = Command::new(program).arg("--version").output();
        started.is_ok_and(|output| output.status.success())
    };
    if !has("mpicc") || !has("mpirun") {
        println!("skipped: there is no mpicc, or no mpirun");
        return false;
    }
    succeed(folder, &["mpi", "build", "-o", "plugin.so"]);
    true
}

/// A job of so many ranks, ready to start.
fn job(folder: &Path, ranks: usize, arguments: &[&str]) -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun
        .args(["--oversubscribe", "--bind-to", "none"])
        .args(["--mca", "mpi_yield_when_idle", "1"])
        .args(["-n", &ranks.to_string()])
        .arg(env!("CARGO_BIN_EXE_graphmill"))
        .args(arguments)
        .current_dir(folder)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("GRAPHMILL_MPI", folder.join("plugin.so"));
    mpirun
}

fn run(folder: &Path, ranks: usize, arguments: &[&str]) -> Output {
    job(folder, ranks, arguments)
        .output()
        .expect("mpirun starts")
}

fn ran(folder: &Path, ranks: usize, arguments: &[&str]) -> String {
    let output = run(folder, ranks, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("stdout is text")
}

/// All files of a stored graph.
fn files(graph: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for folder in ["", "columns"] {
        for name in names(&graph.join(folder)) {
            let path = graph.join(folder).join(&name);
            if path.is_file() {
                all.push((name, std::fs::read(path).expect("a file")));
            }
        }
    }
    all
}

#[test]
fn a_job_makes_the_graph_and_the_results_of_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let generate = ["generate", "kronecker", "12", "8", "--weights", "f32"];
    succeed(at, &[&generate[..], &["-o", "k.wel"]].concat());
    let import = ["import", "k.wel", "--weights", "f32", "--undirected", "-q"];
    let import = [&import[..], &["--batch-size", "100"]].concat();
    for more in [&[][..], &["--ids", "string", "--order", "degree"]] {
        let one = succeed(at, &[&import[..], more, &["-o", "one"]].concat());
        let all = ran(at, 3, &[&import[..], more, &["-o", "all"]].concat());
        // One rank tells it: the name, and the account of every line.
        let account = |said: &str| {
            said.lines()
                .skip(1)
                .filter(|l| !l.contains(" s, "))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(account(&one), account(&all));
        assert!(files(&at.join("one")) == files(&at.join("all")), "{more:?}");
        for asked in [
            &["pagerank"][..],
            &["wcc"],
            &["bfs", "--source", "3"],
            &["sssp", "--source", "3"],
        ] {
            let run =
                |graph| [&["run", asked[0], graph, "-q", "-o", "r.csv"], &asked[1..]].concat();
            succeed(at, &run("one"));
            let wanted = std::fs::read(at.join("r.csv")).expect("a result");
            ran(at, 4, &run("all"));
            let found = std::fs::read(at.join("r.csv")).expect("a result");
            assert!(wanted == found, "{asked:?}");
        }
        std::fs::remove_dir_all(at.join("one")).expect("it goes");
        std::fs::remove_dir_all(at.join("all")).expect("it goes");
    }
    assert!(!names(at).iter().any(|name| name.starts_with(".graphmill")));
}

#[test]
fn what_one_rank_meets_all_tell() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    std::fs::write(at.join("edges.txt"), "0 1\n1 2\n2 x\n").expect("a file");
    let output = run(
        at,
        2,
        &["import", "edges.txt", "--ids", "int", "-o", "graph"],
    );
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(errors.contains("edges.txt, line 3"), "{errors}");
    let output = run(at, 2, &["info", "graph"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("without mpirun"), "{errors}");
    assert_eq!(names(at), ["edges.txt", "plugin.so"]);
}

/// The ranks of a job on this machine.
fn ranks_of(mpirun: u32) -> Vec<u32> {
    let children = Command::new("pgrep")
        .args(["-P", &mpirun.to_string()])
        .output();
    let said = children.map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    said.lines().filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn a_rank_that_is_killed_ends_the_job_and_leaves_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    let kills = std::env::var("GRAPHMILL_KILLS").ok();
    let kills = kills.and_then(|kills| kills.parse().ok()).unwrap_or(4);
    succeed(at, &["generate", "kronecker", "14", "16", "-o", "graph"]);
    for kill in 0..kills {
        // Long enough to be killed at any point of it.
        let asked = ["run", "pagerank", "graph", "--iterations", "100000", "-q"];
        let asked = [&asked[..], &["--place", "edges=stream", "-o", "r.csv"]].concat();
        let mut mpirun = job(at, 3, &asked);
        let mut mpirun = mpirun
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mpirun starts");
        let started = Instant::now();
        let ranks = loop {
            let ranks = ranks_of(mpirun.id());
            if ranks.len() == 3 {
                break ranks;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "ranks start");
            std::thread::sleep(Duration::from_millis(5));
        };
        // Earlier or later, by a rule that has no regard to what goes on.
        std::thread::sleep(Duration::from_millis(37 * (kill * 7 % 41)));
        let victim = ranks[kill as usize % 3].to_string();
        let killed = Command::new("kill").args(["-9", &victim]).status();
        assert!(killed.expect("kill starts").success());
        let killed = Instant::now();
        let status = loop {
            if let Some(status) = mpirun.try_wait().expect("it is a child") {
                break status;
            }
            assert!(killed.elapsed() < Duration::from_secs(30), "kill {kill}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(!status.success() && status.signal().is_none(), "{status}");
        let mut said = String::new();
        if let Some(errors) = &mut mpirun.stderr {
            errors.read_to_string(&mut said).expect("text");
        }
        assert!(said.contains("rank") && said.contains("signal 9"), "{said}");
        for rank in ranks {
            let is_there = || Path::new(&format!("/proc/{rank}")).exists();
            while is_there() {
                assert!(killed.elapsed() < Duration::from_secs(30), "kill {kill}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        assert!(!names(at).iter().any(|name| name.starts_with("r.csv")));
    }
    // What the killed left goes with the next run.
    let output = call(at, &["run", "pagerank", "graph", "-q", "-o", "r.csv"]);
    assert!(output.status.success());
    assert!(!names(at).iter().any(|name| name.starts_with(".graphmill")));
}
