//! What words of a command line ask for, for a caller that does the work itself: the Python package.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, FromArgMatches};
use graphmill::advanced::FOREIGN;
use graphmill::advanced::foreign_program::ForeignProgram;
use graphmill::estimate::EstimateRequest;
use graphmill::{Config, Entry, ImportConfig, ImportReport, MachineConfig};
use serde_json::Value;

use crate::args::estimate::EstimateArgs;
use crate::args::import::ImportArgs;
use crate::args::run::{RunArgs, algorithm_command};
use crate::command;

/// An import that was asked for.
#[derive(Debug)]
pub struct ImportRequest {
    /// Files of edges, and directories of them.
    pub inputs: Vec<PathBuf>,
    /// The stored graph to write.
    pub graph: PathBuf,
    /// How edges are read and stored.
    pub config: ImportConfig,
    /// What may be taken of the machine.
    pub machine: MachineConfig,
    /// Ranks of this process.
    pub ranks: usize,
}

impl ImportRequest {
    /// Parses what follows `graphmill import`.
    ///
    /// # Errors
    /// The words are wrong; returns the first mistake.
    pub fn parse(words: Vec<OsString>) -> Result<ImportRequest, String> {
        let command = ImportArgs::augment_args(clap::Command::new("import").no_binary_name(true));
        let matches = command.try_get_matches_from(words);
        let args = matches.and_then(|matches| ImportArgs::from_arg_matches(&matches));
        let args = args.map_err(|error| mistake(&error))?;
        Ok(ImportRequest {
            config: command::import::config(&args),
            machine: command::options::machine(&args.machine),
            ranks: args.ranks.into(),
            graph: args.output,
            inputs: args.input,
        })
    }

    /// The account of the import, as `graphmill import --json` prints it.
    #[must_use]
    pub fn summary(&self, report: &ImportReport) -> Value {
        command::import::summary(report, &self.graph)
    }
}

/// Parses what follows `graphmill run`: an algorithm, a graph, and options.
///
/// # Errors
/// The words are wrong; returns the first mistake.
pub fn run_request(algorithm: &str, words: Vec<OsString>) -> Result<Config, String> {
    let entries = graphmill::algorithms();
    let Some(entry) = entries.iter().find(|entry| entry.name == algorithm) else {
        return Err(format!("there is no algorithm {algorithm:?}"));
    };
    request_of(entry, words)
}

/// Parses what follows `graphmill run ALGORITHM`, for a program in another language.
///
/// # Errors
/// The words are wrong; returns the first mistake.
pub fn program_request(program: ForeignProgram, words: Vec<OsString>) -> Result<Config, String> {
    let mut config = request_of(FOREIGN, words)?;
    config.program = Some(Arc::new(program));
    Ok(config)
}

/// Parses the options of a run.
fn request_of(entry: &'static Entry, words: Vec<OsString>) -> Result<Config, String> {
    let command = algorithm_command(entry).no_binary_name(true);
    let matches = command.try_get_matches_from(words);
    let args = matches.and_then(|matches| RunArgs::of(entry, &matches));
    let args = args.map_err(|error| mistake(&error))?;
    command::run::config(&args).map_err(|error| error.to_string())
}

/// Parses what follows `graphmill estimate`.
///
/// # Errors
/// The words are wrong; returns the first mistake.
pub fn estimate_request(words: Vec<OsString>) -> Result<EstimateRequest, String> {
    let command = EstimateArgs::augment_args(clap::Command::new("estimate").no_binary_name(true));
    let matches = command.try_get_matches_from(words);
    let args = matches.and_then(|matches| EstimateArgs::from_arg_matches(&matches));
    let args = args.map_err(|error| mistake(&error))?;
    command::estimate::request(&args).map_err(|error| error.to_string())
}

/// The first paragraph of an error of the command line.
fn mistake(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    text.trim_start_matches("error: ").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn request_is_what_the_command_would_do() {
        let line = "graph --iterations 3 --memory 64M --threads 2";
        let config = run_request("pagerank", words(line)).expect("a run");
        assert_eq!(config.options["iterations"], "3");
        assert_eq!(config.machine.memory, Some(64 << 20));
        let request = ImportRequest::parse(words("a b -o g --undirected")).expect("an import");
        assert_eq!(request.inputs, [PathBuf::from("a"), PathBuf::from("b")]);
        assert!(!request.config.directed && request.config.keep_every.is_some());
    }

    #[test]
    fn mistake_is_one_line() {
        let error = run_request("pagerank", words("graph --memory lots")).unwrap_err();
        assert!(
            error.starts_with("invalid value 'lots' for '--memory <SIZE>'"),
            "{error}"
        );
        let error = ImportRequest::parse(words("a -o g --ids odd")).unwrap_err();
        assert!(error.contains("--ids"), "{error}");
    }
}
