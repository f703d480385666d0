//! Options of a stored graph.

use clap::Args;
use graphmill::{Layout, Order};

use crate::size;

/// Options of the stored graph.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Stored graph")]
pub(crate) struct StoreArgs {
    /// Layout of arcs: sorted columns, or unsorted chunks
    ///
    /// An import of chunks is cheaper and each pass reads more: chunks pay off for few passes over all edges.
    #[arg(long, value_name = "column|stream", value_enum, default_value_t)]
    pub(crate) layout: Layout,
    /// Bytes of a chunk with --layout stream, at most [default: 4M]
    ///
    /// Chunks become smaller if memory is short. The size is 4K to 128M.
    #[arg(long, value_name = "SIZE", value_parser = size::chunk)]
    pub(crate) chunk_size: Option<u64>,
    /// Order of vertices in every batch: by id, or most arcs first
    ///
    /// With most arcs first, programs that follow few edges at a time are faster, and an import takes up to 1.6 times as long. Results
    /// are the same but for the rounding of sums: the last digits of pagerank may differ.
    #[arg(long, value_name = "id|degree", value_enum, default_value_t)]
    pub(crate) order: Order,
    /// Store the transposed graph too
    ///
    /// Backward passes on directed graphs are faster, and the graph takes twice the space.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Make each edge a vertex without an id, as bp needs it
    ///
    /// An edge from u to v becomes an arc from u to its vertex and one from there to v. The vertex of a self-loop has no arcs. Other
    /// algorithms refuse such a graph.
    #[arg(long)]
    pub(crate) edge_vertices: bool,
    /// Vertices of a batch, for experiments [default: by a cost rule]
    ///
    /// The number is at most 2147483648. It is exact; with --order degree it is an upper limit. With --layout stream it is a power of two
    /// of at most 1048576, by default 131072 for up to 4096 batches.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_size: Option<u64>,
    /// Greatest span for each edge of a cell with a source bitmap [default: 0]
    ///
    /// A cell gets a bitmap of its sources if it spans at most N vertices for each edge. 0 gives none; DFOGraph
    /// has 32. For experiments.
    #[arg(long, value_name = "N")]
    pub(crate) csr_ratio: Option<u32>,
}
