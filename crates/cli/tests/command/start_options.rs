//! Ranks of one job that were started with different options do nothing, and name what differs. Skipped without Open MPI.

use std::path::Path;

use crate::mpi::{mpirun, plugin};
use crate::mpirun::end_of;
use crate::{names, succeed};

/// Returns what three ranks say if the last one has other arguments: they fail as wrong usage.
fn refused(folder: &Path, most: &str, last: &str) -> String {
    let mut job = mpirun(folder);
    for (ranks, line) in [("2", most), ("1", last)] {
        if ranks == "1" {
            job.arg(":");
        }
        job.args(["-n", ranks, env!("CARGO_BIN_EXE_graphmill")])
            .args(line.split(' '));
    }
    job.stderr(std::process::Stdio::piped());
    let ended = end_of(job.spawn().expect("mpirun starts"));
    assert!(!ended.has_succeeded(), "{most} : {last}: {}", ended.said);
    ended.said
}

#[test]
fn ranks_with_other_options_are_refused_by_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    for (name, more) in [
        ("k.el", ""),
        ("l.el", ""),
        ("g", " --batch-size 16"),
        ("h", ""),
    ] {
        let line = format!("generate kronecker 8 8 -o {name}{more}");
        succeed(at, &line.split(' ').collect::<Vec<_>>());
    }
    let there = names(at);
    let run = "run pagerank g -o r.csv";
    let bfs = "run bfs g -o r.csv --source 1";
    let import = "import k.el -o new";
    for (most, last, option) in [
        (run, "run pagerank g -o r.csv --damping 0.5", "--damping"),
        (
            run,
            "run pagerank g -o r.csv --iterations 9",
            "--iterations",
        ),
        (run, "run pagerank h -o r.csv", "input"),
        (run, "run pagerank g -o s.csv", "--output"),
        (run, "run pagerank g -o r.csv --top 3", "--top"),
        (run, "run pagerank g -o r.csv --metrics m.json", "--metrics"),
        (
            run,
            "run pagerank g -o r.csv --place edges=stream",
            "--place",
        ),
        (run, "run pagerank g -o r.csv --sparse never", "--sparse"),
        (run, "run wcc g -o r.csv", "algorithm"),
        (run, import, "command"),
        (bfs, "run bfs g -o r.csv --source 2", "--source"),
        (bfs, "run bfs g -o r.csv --source 1 --parents", "--parents"),
        (
            "run wcc k.el -o r.csv",
            "run wcc k.el -o r.csv --undirected",
            "--undirected",
        ),
        (import, "import l.el -o new", "input"),
        (import, "import k.el -o old", "--output"),
        (import, "import k.el -o new --undirected", "--undirected"),
        (import, "import k.el -o new --ids string", "--ids"),
        (import, "import k.el -o new --metrics m.json", "--metrics"),
        (import, "import k.el -o new --batch-size 9", "--batch-size"),
    ] {
        let said = refused(at, most, last);
        let wanted = format!("cannot work with rank 2: its {option}");
        assert!(said.contains(&wanted), "{most} : {last}: {said}");
        assert_eq!(names(at), there, "{most} : {last}");
    }
    // Options that each rank may have of its own.
    let mut job = mpirun(at);
    for (i, more) in ["--threads 1 --memory 64M -q", "--threads 2 --tmp . -q"]
        .iter()
        .enumerate()
    {
        job.args([":"].iter().take(i))
            .args(["-n", "1", env!("CARGO_BIN_EXE_graphmill")]);
        job.args(run.split(' ')).args(more.split(' '));
    }
    job.stdout(std::process::Stdio::null());
    assert!(end_of(job.spawn().expect("mpirun starts")).has_succeeded());
}

#[test]
fn ranks_with_graphs_of_one_shape_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !plugin(at) {
        return;
    }
    for (rank, edges) in ["0 1\n1 2\n2 0\n", "0 1\n1 2\n2 1\n"].iter().enumerate() {
        let at = at.join(rank.to_string());
        std::fs::create_dir(&at).expect("a folder");
        std::fs::write(at.join("k.el"), edges).expect("a file");
        succeed(&at, &["import", "k.el", "-o", "g", "-q"]);
    }
    let mut job = mpirun(at);
    for rank in 0..2 {
        job.args([":"].iter().take(rank))
            .args(["-n", "1", "--wdir"]);
        job.arg(at.join(rank.to_string()))
            .arg(env!("CARGO_BIN_EXE_graphmill"));
        job.args("run wcc g -o r.csv".split(' '));
    }
    job.stderr(std::process::Stdio::piped());
    let ended = end_of(job.spawn().expect("mpirun starts"));
    let said = ended.said;
    assert!(
        said.contains("cannot run on rank 1: it opened another graph"),
        "{said}"
    );
}
