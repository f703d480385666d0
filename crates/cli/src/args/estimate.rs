//! Arguments of `graphmill estimate`: a stored graph or its numbers, an algorithm, and the rates of the machines.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use graphmill::advanced::{CombineChoice, DispatchChoice, UpdateResidency};
use graphmill::estimate::DegreeModel;
use graphmill::{EdgeColumns, EdgeKind, ExecutorChoice};

use crate::args::tuning::PlaceArgs;
use crate::{count, size};

const EXAMPLES: &str = "\
Nothing is done but to look: bytes are worked out from the formats of stored graphs and temporary files, from what passes move, and from \
what stays in the memory there is; seconds are those of the slowest of disk, network and cores. docs/internals/estimates.md has the model, and how near it \
comes to what was measured.

Examples:
  graphmill estimate graph --ranks 4 --memory 2G
  graphmill estimate --vertices 2^38 --edges 2^40 --ranks 8 --memory 93G --disk-rate 2G --network-rate 25gbit --iterations 1
  graphmill estimate --vertices 2^32 --edges 68e9 --like uniform --algorithm wcc --json";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EstimateArgs {
    /// Directory of a stored graph, or none and --vertices and --edges
    #[arg(required_unless_present = "vertices", conflicts_with_all = ["vertices", "edges"])]
    pub(crate) graph: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) expected: ExpectedGraphArgs,
    #[command(flatten)]
    pub(crate) work: EstimatedRunArgs,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Print one JSON object, with more figures
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of a graph that does not exist yet.
#[derive(Debug, Args)]
#[command(next_help_heading = "Expected graph")]
pub(crate) struct ExpectedGraphArgs {
    /// Number of vertices, such as 2^38 or 274e9; ids are below it
    #[arg(long, value_name = "N", value_parser = count::parse, requires = "edges")]
    pub(crate) vertices: Option<u64>,
    /// Number of edges
    #[arg(long, value_name = "N", value_parser = count::parse, requires = "vertices")]
    pub(crate) edges: Option<u64>,
    /// Distribution of edges: skewed as in R-MAT graphs, or even
    #[arg(long, value_name = "kronecker|uniform", value_enum, default_value_t)]
    pub(crate) like: DegreeModel,
    /// Store each edge in both directions
    #[arg(long)]
    pub(crate) undirected: bool,
    /// Source of the edges: files of id pairs, or `generate`
    ///
    /// Ids in files have 4 bytes if all fit, else 8, records their size, and only ids that occur become vertices. below: all ids are
    /// vertices, as with import --vertices-below. Generated edges need no reading, and all ids are vertices.
    #[arg(
        long,
        value_name = "files|below|generated",
        value_enum,
        default_value_t
    )]
    pub(crate) input: ExpectedInput,
    /// Weights of generated edges
    #[arg(long, value_name = "none|f32|f64", value_enum, default_value_t = EdgeKind::None)]
    pub(crate) weights: EdgeKind,
    /// Fields of the record of edges in files, as for import
    #[arg(long, value_name = "FIELDS", conflicts_with = "weights")]
    pub(crate) edge_data: Option<EdgeColumns>,
    /// Vertices of a batch, as for import [default: by a cost rule]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_size: Option<u64>,
    /// Greatest span of a cell with a bitmap, as for import [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) csr_ratio: Option<u32>,
    /// Bytes of a chunk, as for import --layout stream [default: 4M]
    #[arg(long, value_name = "SIZE", value_parser = size::chunk)]
    pub(crate) chunk_size: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "A run")]
pub(crate) struct EstimatedRunArgs {
    /// Algorithm to run
    #[arg(long, value_name = "NAME", default_value = "pagerank")]
    pub(crate) algorithm: String,
    /// Passes in which every vertex with edges sends a message
    ///
    /// The default is that of pagerank for pagerank, else 1. Without it wcc unites the ends of all edges in one pass, where memory
    /// allows; with it passes send labels.
    #[arg(long, value_name = "N", value_parser = count::parse)]
    pub(crate) iterations: Option<u64>,
    /// Routing of messages on disk to columns, as for run
    #[arg(long, value_name = "auto|push|pull|none", value_enum, default_value_t)]
    pub(crate) dispatch: DispatchChoice,
    /// Executor of passes over edges: sorted columns, unsorted chunks, or messages in datagrams (bucket)
    ///
    /// auto: by the layout of a stored graph; column for one that does not exist yet.
    #[arg(
        long,
        value_name = "auto|column|stream|bucket",
        value_enum,
        default_value_t
    )]
    pub(crate) executor: ExecutorChoice,
    /// Where updates go (--executor stream), as for run
    #[arg(long, value_name = "auto|memory|disk", value_enum, default_value_t)]
    pub(crate) updates: UpdateResidency,
    /// Combining of messages (--executor bucket), as for run [default: auto]
    #[arg(long, value_name = "auto|never|always", value_enum)]
    pub(crate) combine: Option<CombineChoice>,
}

/// Options of the machines.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machines")]
pub(crate) struct ClusterArgs {
    /// Ranks, at most 4096
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) ranks: u16,
    /// Threads of each rank [default: one a processor of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Memory of each rank [default: half of this machine's or the cgroup's]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) memory: Option<u64>,
    /// Disks: each rank has its own, or all share one
    #[arg(long, value_name = "own|shared", value_enum, default_value_t)]
    pub(crate) disks: DiskSharing,
    /// Bytes a second that a disk reads and writes, such as 2G
    #[arg(long, value_name = "RATE", default_value = "1G", value_parser = count::rate)]
    pub(crate) disk_rate: f64,
    /// Bytes a second that a rank sends, such as 1G, or bits, such as 10gbit
    #[arg(long, value_name = "RATE", default_value = "10gbit", value_parser = count::rate)]
    pub(crate) network_rate: f64,
    /// Arcs a second that a thread imports
    #[arg(long, value_name = "N", default_value = "17e6", value_parser = count::arcs)]
    pub(crate) import_rate: f64,
    /// Arcs a second that a thread processes in a pass
    #[arg(long, value_name = "N", default_value = "400e6", value_parser = count::arcs)]
    pub(crate) pass_rate: f64,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum ExpectedInput {
    #[default]
    Files,
    Below,
    Generated,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum DiskSharing {
    #[default]
    Own,
    Shared,
}
