//! Arguments of `graphmill generate`: a rule with its numbers, the output, and options of edges.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use graphmill::EdgeKind;
use graphmill::generate::KroneckerLabels;

use super::edges::EdgeArgs;
use super::machine::MachineArgs;
use super::storing::StoreArgs;

const EXAMPLES: &str = "\
Examples:
  graphmill generate kronecker 18 16 --undirected -o graph
  graphmill generate kronecker 18 16 --weights f32 -o k18.wel
  graphmill generate uniform 100000 1000000 -o u
  graphmill generate grid 300 400 --undirected -o g
  graphmill generate consecutive 1000000 50 -o c1
  graphmill generate scattered 1000000 50 --gap 100003 -o s1";

const KRONECKER: &str = "\
There are DEGREE * 2^SCALE edges, self-loops and duplicates among them. --undirected stores them as twice as many arcs, but \
for self-loops, which are one arc each; what papers call Kronecker SCALE DEGREE is that. A stored graph has a SCALE of 38 at most.

Example:
  graphmill generate kronecker 18 16 --undirected -o graph";

const SCATTERED: &str = "\
Each vertex has DEGREE edges whatever the gap. Where multiples of the gap coincide modulo VERTICES, there are several between \
the same vertices; where one is a multiple of VERTICES, there is one from each vertex to itself. Neither happens while DEGREE \
is less than VERTICES divided by the greatest common divisor of VERTICES and GAP; --duplicates first and --self-loops drop \
leave such edges out.

Example:
  graphmill generate scattered 1000000 50 --gap 100003 -o graph";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub(crate) rule: GenerateRule,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GenerateRule {
    /// R-MAT with the Graph 500 parameters (A 0.57, B and C 0.19)
    #[command(after_help = KRONECKER)]
    Kronecker {
        /// 2^SCALE vertices, 1 to 48
        #[arg(value_parser = clap::value_parser!(u8).range(1..=48))]
        scale: u8,
        /// Edges for each vertex, as in Graph 500
        #[arg(default_value_t = 16)]
        degree: u64,
        /// Order of the vertices: permuted, or drawn as by the generators of X-Stream and Chaos
        ///
        /// With drawn labels the first of P equal ranges of vertices has 0.76^log2 P of the edges.
        #[arg(long, value_name = "drawn|permuted", value_enum, default_value_t)]
        labels: KroneckerLabels,
        #[command(flatten)]
        output: GenerateOutputArgs,
    },
    /// Edges between vertices drawn uniformly
    Uniform {
        /// Vertices
        vertices: u64,
        /// Edges
        edges: u64,
        #[command(flatten)]
        output: GenerateOutputArgs,
    },
    /// A grid where each vertex has an edge to its right and to its lower neighbour
    Grid {
        /// Rows
        rows: u64,
        /// Columns
        columns: u64,
        #[command(flatten)]
        output: GenerateOutputArgs,
    },
    /// Vertex i has edges to i+1, i+2, ..., i+DEGREE, modulo VERTICES
    Consecutive {
        /// Vertices
        vertices: u64,
        /// Edges from each vertex, fewer than VERTICES
        degree: u64,
        #[command(flatten)]
        output: GenerateOutputArgs,
    },
    /// Vertex i has edges to i+GAP, i+2*GAP, ..., i+DEGREE*GAP, modulo VERTICES
    #[command(after_help = SCATTERED)]
    Scattered {
        /// Vertices
        vertices: u64,
        /// Edges from each vertex
        degree: u64,
        /// Distance from one neighbour to the next
        #[arg(long, value_name = "GAP", default_value_t = 100_000)]
        gap: u64,
        #[command(flatten)]
        output: GenerateOutputArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GenerateOutputArgs {
    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// A file of edges (.u32, .u64, .el, .wel), or the directory of a new stored graph
    ///
    /// A .u32 or .u64 file gets raw pairs. An .el file gets text, and so does a .wel file, with weights. Each edge is written once, as it
    /// is drawn. Any other name is the new directory of a stored graph; the options of edges and stored graphs apply to it only.
    #[arg(short, long, value_name = "FILE|GRAPH")]
    pub(crate) output: PathBuf,
    /// Seed; the same seed gives the same graph
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Integer weights from 1 to 255, drawn uniformly, in this precision
    #[arg(long, value_name = "none|f32|f64", value_enum, default_value_t = EdgeKind::None)]
    pub(crate) weights: EdgeKind,
    /// Shorthand for --weights f32
    #[arg(long, conflicts_with = "weights")]
    pub(crate) weighted: bool,
    #[command(flatten)]
    pub(crate) edges: EdgeArgs,
    #[command(flatten)]
    pub(crate) storing: StoreArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}
