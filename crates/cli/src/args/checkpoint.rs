//! What a killed import or run resumes from.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use graphmill::Every;

/// What a killed import goes on with.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Going on after a kill")]
pub(crate) struct Keeping {
    /// Keep what was done when a step, or a part of the graph, ends N seconds after what was kept before: the same command goes on with
    /// it
    #[arg(long, value_name = "Ns", value_parser = seconds, default_value = "10s")]
    pub(crate) checkpoint_every: Duration,
    /// With 0 nothing is kept, and nothing gone on with
    #[arg(long, value_name = "0|1", default_value = "1", hide_default_value = true, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) checkpoints: u8,
}

/// So many seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').map(str::parse) {
        Some(Ok(seconds)) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("{text:?} is no number of seconds, as 30s")),
    }
}

/// What a killed run goes on with.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Going on after a kill")]
pub(crate) struct Recovery {
    /// Publish versions of the run in this folder, which is made, and goes when the run has come to its end [default: a folder among the
    /// temporary files, where vertex rows are on disk; the same command goes on with what is there]
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint_dir: Option<PathBuf>,
    /// Publish one after every N passes, or when a pass ends N seconds after the one before (10s) [default: 1s where vertex rows are on disk,
    /// else 30s]
    #[arg(long, value_name = "N|Ns", value_parser = every)]
    pub(crate) checkpoint_every: Option<Every>,
    /// Keep the N newest; with 0 none are published [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) checkpoints: Option<u16>,
    /// Go on with the newest version, if there is one
    #[arg(long)]
    pub(crate) resume: bool,
}

/// So many passes, or seconds.
fn every(text: &str) -> Result<Every, String> {
    let mistake =
        || format!("{text:?} is neither a number of passes, as 1, nor of seconds, as 30s");
    let parsed = match text.strip_suffix('s') {
        Some(seconds) => seconds
            .parse()
            .map(|seconds| Every::Time(Duration::from_secs(seconds))),
        None => text.parse().map(Every::Calls),
    };
    match parsed {
        Ok(Every::Calls(0)) | Err(_) => Err(mistake()),
        Ok(every) => Ok(every),
    }
}
