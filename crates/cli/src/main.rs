//! The `graphmill` command as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(graphmill_cli::main(std::env::args_os().collect()))
}
