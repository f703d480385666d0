//! Options of edges and their weights.

use clap::Args;
use graphmill::{Duplicates, SelfLoops};

/// Options of edges, read or generated.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Edges")]
pub(crate) struct EdgeArgs {
    /// Store each edge in both directions
    #[arg(long)]
    pub(crate) undirected: bool,
    /// Choose which of duplicate edges to store
    ///
    /// keep: all. first: the first of the input. With --weights also sum, min and max: one with that weight of all.
    #[arg(long, value_name = "keep|first|...", value_enum, default_value_t)]
    pub(crate) duplicates: Duplicates,
    /// Keep or drop edges from a vertex to itself
    #[arg(long, value_name = "keep|drop", value_enum, default_value_t)]
    pub(crate) self_loops: SelfLoops,
}
