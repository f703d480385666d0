//! A limit of file sizes (`ulimit -f`) is an error that says what to do, and nothing is left behind.

use std::process::Command;

use crate::{names, succeed};

#[test]
fn files_that_would_be_too_large_are_errors() {
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
