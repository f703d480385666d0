//! Options of the checkpoints of imports and runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use graphmill::CheckpointInterval;

/// Options of the checkpoints that a killed import resumes from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Resuming after a kill")]
pub(crate) struct ImportCheckpointArgs {
    /// Interval between checkpoints of the import, from which the same command resumes
    ///
    /// The import writes a checkpoint when a step, or a part of the graph, ends at least N seconds after the last checkpoint.
    #[arg(long, value_name = "Ns", value_parser = seconds, default_value = "10s")]
    pub(crate) checkpoint_every: Duration,
    /// Write checkpoints and resume from them; 0: neither
    #[arg(long, value_name = "0|1", default_value = "1", hide_default_value = true, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) checkpoints: u8,
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').map(str::parse) {
        Some(Ok(seconds)) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("{text:?} is no number of seconds, as 30s")),
    }
}

/// Options of the checkpoints that a killed run resumes from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Resuming after a kill")]
pub(crate) struct RunCheckpointArgs {
    /// Directory for checkpoints of the run
    ///
    /// The run creates the directory, and deletes it when it finishes. Without this option a run with vertex rows on disk writes
    /// checkpoints among its temporary files, and the same command resumes from them.
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint_dir: Option<PathBuf>,
    /// Interval between checkpoints: N passes, or Ns seconds
    ///
    /// With seconds, the run writes a checkpoint when a pass ends at least that long after the last one. The default is 1s if vertex rows
    /// are on disk, else 30s.
    #[arg(long, value_name = "N|Ns", value_parser = every)]
    pub(crate) checkpoint_every: Option<CheckpointInterval>,
    /// Number of newest checkpoints to keep; 0: write none [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) checkpoints: Option<u16>,
    /// Resume from the newest checkpoint, if there is one
    #[arg(long)]
    pub(crate) resume: bool,
}

/// Parses a number of passes or of seconds.
fn every(text: &str) -> Result<CheckpointInterval, String> {
    let time = |seconds| CheckpointInterval::Time(Duration::from_secs(seconds));
    let parsed = match text.strip_suffix('s') {
        Some(seconds) => seconds.parse().map(time),
        None => text.parse().map(CheckpointInterval::Calls),
    };
    match parsed {
        Ok(CheckpointInterval::Calls(0)) | Err(_) => Err(format!(
            "{text:?} is neither a number of passes, as 1, nor of seconds, as 30s"
        )),
        Ok(every) => Ok(every),
    }
}
