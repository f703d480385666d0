//! The `graphmill` command as a user meets it: one behaviour a file.

#![expect(
    clippy::disallowed_methods,
    reason = "tests read results and write inputs beside the ports"
)]

mod beliefs;
mod buckets;
mod cache;
mod crafted;
mod damage;
mod edges_as_found;
mod estimate;
mod estimate_buckets;
mod estimate_labels;
mod estimate_numbers;
mod estimate_stream;
mod example;
mod forests;
mod generate;
mod help;
mod interrupt;
mod kill_and_resume;
mod kill_points;
mod level_scan;
mod limits;
mod links;
mod lost_ranks;
mod memory;
mod mpi;
#[path = "../../../fabric/tests/ranks/mpirun/mod.rs"]
mod mpirun;
mod odd_inputs;
mod old_files;
mod output;
mod parts;
mod placement;
mod ranks;
mod records;
mod results;
mod resume;
mod resume_algorithms;
mod resume_import;
mod same_bytes;
mod sets_and_vectors;
mod start_options;
mod stream;
mod stream_damage;
mod stream_inputs;
mod stream_layout;
mod summary;
mod usage;
mod validate;
mod vertex_order;
mod weighted;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

/// Whether everything is asked for that takes long: GRAPHMILL_SOAK=1.
fn is_soak() -> bool {
    std::env::var_os("GRAPHMILL_SOAK").is_some()
}

/// The command, ready for arguments; no test takes all of the machine's memory.
fn graphmill() -> std::process::Command {
    std::process::Command::new(env!("CARGO_BIN_EXE_graphmill"))
}

/// Runs the command and gives back what came of it, good or bad.
fn call<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Output {
    graphmill()
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

/// Runs the command, which has to succeed, and gives back its stdout.
fn succeed<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> String {
    let output = call(folder, arguments);
    assert!(
        output.status.success(),
        "{:?} ended with {}: {}",
        arguments.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("stdout is text")
}

/// Runs the command, which has to succeed, and gives back what it told on stderr.
fn told<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> String {
    let output = call(folder, arguments);
    let said = String::from_utf8(output.stderr).expect("stderr is text");
    assert!(output.status.success(), "{said}");
    said
}

/// The lines of the account of an import that are the same whatever it took.
fn account(said: &str) -> Vec<String> {
    let lines = said.lines().filter(|line| line.starts_with("  "));
    let lines = lines.filter(|line| !line.contains(" s, "));
    lines.map(String::from).collect()
}

/// Runs the command, which has to end with `code`, and gives back its stderr.
fn fail<S: AsRef<OsStr>>(folder: &Path, code: i32, arguments: &[S]) -> String {
    let output = call(folder, arguments);
    let said = String::from_utf8(output.stderr).expect("stderr is text");
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// A new folder with a file of edges in it.
fn folder_with_edges(edges: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("edges.txt"), edges).expect("a file");
    folder
}

/// Names of everything in a folder, hidden files too.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// The example of the repository.
fn debian() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/debian-12-packages.el.gz")
}
