//! The `graphmill` command: reads the command line, calls the facade, prints. It knows nothing of how anything is done.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `args.rs`, `args/`, `size.rs` | what can be asked, and its help |
//! | `command/` | one subcommand a file |
//! | `progress.rs` | progress on stderr |
//! | `signals.rs` | Ctrl-C |

#![forbid(unsafe_code)]

mod args;
mod command;
mod progress;
mod signals;
mod size;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use graphmill::Stop;

use args::{Cli, Command};

/// Exit code of a command that was asked for wrongly.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let stop = Stop::new();
    let done = signals::request_on_signals(&stop).map_err(anyhow::Error::from);
    match done.and_then(|()| run(cli.command, &stop)) {
        Ok(code) => code,
        Err(_) if stop.requested() => {
            complain("interrupted; nothing was left behind");
            ExitCode::from(signals::INTERRUPTED)
        }
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Each error names its cause itself.
            complain(&format!("error: {error}"));
            let is_usage = error.downcast_ref().is_some_and(graphmill::Error::is_usage);
            if is_usage {
                ExitCode::from(USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn run(command: Command, stop: &Stop) -> anyhow::Result<ExitCode> {
    match command {
        Command::Import(args) => command::import::run(args, stop),
        Command::Run(args) => command::run::run(args, stop),
        Command::Generate(args) => command::generate::run(args, stop),
        Command::Info(args) => command::info::run(args, stop),
        Command::Verify(args) => command::verify::run(args, stop),
        Command::Validate(args) => command::validate::run(args, stop),
        Command::Algorithms(args) => command::algorithms::run(args),
    }
}

/// A line on stderr; nobody may be listening.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "graphmill: {text}");
}

/// Whoever read our output has seen enough, such as `head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
