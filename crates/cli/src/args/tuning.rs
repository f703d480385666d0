//! Choices that change the time a run takes, and not its result.

use clap::{Args, ValueEnum};

use crate::size;

/// Choices the engine otherwise makes by cost. The result does not depend on them; sums of a push vertex program are rounded in order
/// of arrival.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Experiments (the result does not depend on them, but for the rounding of pregel-push)"
)]
pub(crate) struct Experiments {
    /// Go through edges from source to list (scatter), or from list to source (gather) where the graph allows it
    #[arg(long, value_name = "auto|scatter|gather", value_enum, default_value_t)]
    pub(crate) direction: Direction,
    /// Go only to the places of the active vertices' edges
    #[arg(long, value_name = "auto|never|always", value_enum, default_value_t)]
    pub(crate) seek: Seek,
    /// Cost of one such place on disk, in vertices scanned; a 32nd of that in memory, and where reading is counted apart [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) gamma: Option<u64>,
    /// With several ranks, send a rank all messages instead of those it needs where the list of the sources that it needs is as long as R
    /// times the messages; 0: always, inf: never [default: where it needs next to all]
    #[arg(long, value_name = "R", value_parser = ratio)]
    pub(crate) filter_ratio: Option<f64>,
    /// Messages that are on disk: write a piece for each run of columns that needs some of them (push), have each run put aside what it
    /// needs before it folds them (pull), or have it read all of them (none); auto: by cost
    #[arg(long, value_name = "auto|push|pull|none", value_enum, default_value_t)]
    pub(crate) dispatch: Dispatch,
    /// What a vertex weighs against an edge where batches are shared out among ranks [default: twice the ranks less 1]
    #[arg(long, value_name = "N")]
    pub(crate) alpha: Option<u64>,
    /// Combine what several threads send to one vertex, in a vertex program's push version (--method pregel-push). auto: in an edge
    /// pass where many vertices send, else like hybrid; hybrid: in shared mailboxes, by lock and compare-and-exchange; own: in
    /// mailboxes of each thread's own, where these fit in memory
    #[arg(long, value_name = "auto|hybrid|own", value_enum, default_value_t)]
    pub(crate) combiner: Combining,
    /// Run the algorithm so many times over the graph as it is loaded, to measure it
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) trials: u32,
}

/// A number from 0 to infinity.
fn ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if ratio >= 0.0 => Ok(ratio),
        _ => Err("must be a number from 0 to inf".to_string()),
    }
}

/// Which data lies on which tier of memory. The result does not depend on it; sums of a push vertex program are rounded in order of
/// arrival.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Tiers of memory (the result does not depend on them, but for the rounding of pregel-push)"
)]
pub(crate) struct Tiers {
    /// Where a kind of data lies, again and again: vertices, messages, index or edges = dram, numa:NODES[:bind|preferred|interleave],
    /// file:PATH (a folder that exists, a new file to be made, a DAX device), model or slow; edges also auto or stream (from disk in
    /// each pass). Before any of these all of it at once: dram, slow, rw-split (index and edges on the slow tier) or cache (nothing
    /// placed) [default: dram, edges=auto]
    #[arg(long, value_name = "KIND=WHERE|PRESET")]
    pub(crate) place: Vec<String>,
    /// The tier that is called slow: numa:NODES, file:PATH (a folder that exists, or a new file to be made) or model; named alone it is
    /// --place rw-split
    #[arg(long, value_name = "WHERE")]
    pub(crate) slow_tier: Option<String>,
    /// Spend the time that bytes on the slow tier would take longer than in DRAM: paper says 2.4 times to read, 6 times to write
    #[arg(long, value_name = "none|paper", value_enum, default_value_t)]
    pub(crate) charge: Charge,
    /// Bytes that a thread gets from DRAM in a second, for --charge paper [default: 5866 million]
    #[arg(long, value_name = "SIZE", value_parser = size::bandwidth)]
    pub(crate) dram_bandwidth: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Charge {
    #[default]
    None,
    Paper,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Combining {
    #[default]
    Auto,
    Hybrid,
    Own,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Seek {
    #[default]
    Auto,
    Never,
    Always,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Dispatch {
    #[default]
    Auto,
    Push,
    Pull,
    None,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Direction {
    #[default]
    Auto,
    Scatter,
    Gather,
}
