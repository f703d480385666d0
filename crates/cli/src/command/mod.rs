//! One subcommand a file; each returns the exit code of the process.

use std::io::Write;

use crate::exit_code::DONE;

pub(crate) mod algorithms;
pub(crate) mod cache;
pub(crate) mod completions;
pub(crate) mod estimate;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod mpi;
pub(crate) mod options;
pub(crate) mod run;
pub(crate) mod validate;
pub(crate) mod verify;

/// Prints bytes on standard output, in one go.
fn print(text: &[u8]) -> anyhow::Result<u8> {
    std::io::stdout().lock().write_all(text)?;
    Ok(DONE)
}

/// Prints JSON on standard output.
fn print_json(text: serde_json::Result<String>) -> anyhow::Result<u8> {
    print((text? + "\n").as_bytes())
}

/// Prints the report of a command on stderr unless it is quiet, and ignores a closed stderr.
fn account(quiet: bool, text: &str) {
    if !quiet {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
