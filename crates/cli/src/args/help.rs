//! Two pages of help for each command, `-h` on one screen and `--help` with everything; errors of unknown algorithms.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use super::cli::Cli;

/// Headings of options that are only on the long page.
const LONG_HEADINGS: [&str; 4] = [
    "Tiers of memory",
    "Resuming after a kill",
    "Experiments",
    "Options of the run",
];
/// Options that are only on the long page.
const LONG_OPTIONS: [&str; 27] = [
    "alpha",
    "batch_size",
    "chunk_size",
    "combine",
    "csr_ratio",
    "dangling",
    "dangling-vector",
    "delta",
    "dispatch",
    "edge_vertices",
    "epsilon",
    "import_rate",
    "io",
    "layout",
    "method",
    "metrics",
    "on_error",
    "order",
    "pass_rate",
    "personalization",
    "precision",
    "ranks",
    "reverse",
    "seed",
    "start",
    "trials",
    "vertices_below",
];
/// Options to read edges that are on the short page of commands other than import.
const READING: [&str; 2] = ["weights", "undirected"];

/// The command line, with both pages of help.
pub(crate) fn command() -> clap::Command {
    Cli::command().mut_subcommands(short)
}

/// Hides options that few users need from the short page.
fn short(command: clap::Command) -> clap::Command {
    let reads_first = command.get_name() == "import";
    command
        .mut_args(|arg| {
            let heading = arg.get_help_heading().unwrap_or_default();
            let id = arg.get_id().as_str();
            let is_reading = matches!(heading, "Reading edges" | "Edges");
            let is_long = LONG_HEADINGS.iter().any(|long| heading.starts_with(long))
                || LONG_OPTIONS.contains(&id)
                || is_reading && !reads_first && !READING.contains(&id);
            arg.hide_short_help(is_long)
        })
        .mut_subcommands(short)
}

/// Parses the command line; reports a mistake in it and ends the process.
pub(crate) fn parse(words: &[OsString]) -> Cli {
    let matches = command().try_get_matches_from(words);
    let parsed = matches.and_then(|matches: ArgMatches| {
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))
    });
    parsed.unwrap_or_else(|error| with_algorithms(error).exit())
}

/// Adds all algorithms to the error of a name that is none.
fn with_algorithms(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let is_of_run = usage.is_some_and(|usage| usage.contains("graphmill run"));
    if error.kind() == ErrorKind::InvalidSubcommand && is_of_run {
        let names = graphmill::algorithms()
            .iter()
            .map(|entry| match entry.aliases {
                [] => entry.name.to_string(),
                aliases => format!("{} ({})", entry.name, aliases.join(", ")),
            });
        let all = format!(
            "the algorithms are {}",
            names.collect::<Vec<_>>().join("; ")
        );
        let mut tips = match error.remove(ContextKind::Suggested) {
            Some(ContextValue::StyledStrs(tips)) => tips,
            _ => Vec::new(),
        };
        tips.push(all.into());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}
