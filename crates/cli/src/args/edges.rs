//! What edges become, and their weights.

use clap::{Args, ValueEnum};

/// What edges become, read or generated.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Edges")]
pub(crate) struct Edges {
    /// Each edge goes both ways
    #[arg(long)]
    pub(crate) undirected: bool,
    /// Which of edges that come more than once are kept
    ///
    /// All; the first of the input; or, with --weights, one with the sum, the least or the greatest of the weights.
    #[arg(long, value_name = "keep|first|...", value_enum, default_value_t)]
    pub(crate) duplicates: Duplicates,
    /// What becomes of edges from a vertex to itself
    #[arg(long, value_name = "keep|drop", value_enum, default_value_t)]
    pub(crate) self_loops: SelfLoops,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Weights {
    #[default]
    None,
    F32,
    F64,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Duplicates {
    #[default]
    Keep,
    First,
    Sum,
    Min,
    Max,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum SelfLoops {
    #[default]
    Keep,
    Drop,
}
