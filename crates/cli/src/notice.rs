//! Lines on stderr.

use std::io::Write;

use graphmill::MpiJob;

/// Prints a notice, such as what was read of an input, as a line on stderr, unless it is to be quiet.
///
/// While a progress bar is shown, notices go through the watcher as `Progress::Note` instead.
pub(crate) fn notice(quiet: bool, text: &str) {
    if !quiet {
        complain(text);
    }
}

/// Prints a line on stderr, with the rank if there are several, and ignores a closed stderr.
pub(crate) fn complain(text: &str) {
    let rank = MpiJob::of_environment().and_then(|job| job.rank);
    let rank = rank.map_or(String::new(), |rank| format!("rank {rank}: "));
    // In one go: the lines of ranks go to one place.
    let line = format!("graphmill: {rank}{text}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
