//! A limit of the system (file sizes, open files, threads) is an error that says what to do, and nothing is left behind.

use std::process::Command;

use crate::{names, succeed};

#[test]
fn file_size_limit_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = "generate uniform 20000 20000 -q -o graph";
    succeed(at, &generate.split(' ').collect::<Vec<_>>());
    // Some shells count blocks of 512 bytes, others of 1024: neither is a limit at a multiple of what direct I/O moves.
    for (blocks, more) in [
        (21, "-o ranks.csv"),
        (200, "-o ranks.csv"),
        (21, "-o ranks.parquet"),
        (200, "--slow-tier file:."),
    ] {
        for io in ["threads", "auto"] {
            let run = format!("run pagerank graph -q --io {io} {more}");
            let limited = format!("ulimit -f {blocks}; exec \"$0\" {run}");
            let output = Command::new("sh")
                .args(["-c", &limited, env!("CARGO_BIN_EXE_graphmill")])
                .current_dir(at)
                .output()
                .expect("a shell");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{blocks} {run}: {said}");
            assert!(said.contains("ulimit -f"), "{blocks} {run}: {said}");
            assert_eq!(names(at), ["graph"], "{blocks} {run}");
        }
    }
}

#[test]
fn open_file_limit_leaves_nothing() {
    let folder = crate::folder_with_edges("a b\nb c\n");
    let at = folder.path();
    let mut failed = 0;
    for files in 4..30 {
        let import = "import edges.txt -o graph -q --threads 2 --io threads";
        let limited = format!("ulimit -n {files}; exec \"$0\" {import}");
        let output = Command::new("sh")
            .args(["-c", &limited, env!("CARGO_BIN_EXE_graphmill")])
            .current_dir(at)
            .output()
            .expect("a shell");
        if output.status.success() {
            std::fs::remove_dir_all(at.join("graph")).expect("a graph");
        } else {
            failed += 1;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(names(at), ["edges.txt"], "{files} files: {said}");
    }
    assert!(failed > 0);
}

#[test]
fn thread_limit_never_hangs_an_import() {
    let group = format!("/sys/fs/cgroup/pids/graphmill-{}", std::process::id());
    if std::fs::create_dir(&group).is_err() {
        return eprintln!("skipped: no cgroup that counts threads");
    }
    let folder = crate::folder_with_edges("a b\nb c\n");
    let at = folder.path();
    let mut succeeded = 0;
    for threads in 1..6 {
        let limit = std::path::Path::new(&group).join("pids.max");
        std::fs::write(limit, threads.to_string()).expect("a limit");
        let import = "import edges.txt -o graph -q --threads 1";
        let limited = format!("echo $$ > {group}/cgroup.procs; exec \"$0\" {import}");
        let output = Command::new("timeout")
            .args(["-s", "KILL", "60", "sh", "-c", &limited])
            .arg(env!("CARGO_BIN_EXE_graphmill"))
            .current_dir(at)
            .output()
            .expect("timeout");
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {
                succeeded += 1;
                std::fs::remove_dir_all(at.join("graph")).expect("a graph");
            }
            Some(1) => assert!(said.contains("thread"), "{threads} threads: {said}"),
            ended => panic!("{threads} threads: {ended:?} {said}"),
        }
        assert_eq!(names(at), ["edges.txt"], "{threads} threads: {said}");
    }
    std::fs::remove_dir(&group).expect("nobody is in it");
    assert!(succeeded > 0);
}
