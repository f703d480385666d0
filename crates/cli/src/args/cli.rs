//! The command line as a whole: one subcommand a variant.

use clap::{Parser, Subcommand};

use super::estimate::EstimateArgs;
use super::generate::GenerateArgs;
use super::import::ImportArgs;
use super::run::RunArgs;
use super::stored::{CacheArgs, InfoArgs, VerifyArgs};
use super::tools::{AlgorithmsArgs, CompletionsArgs, DpdkArgs, ManArgs, MpiArgs};
use super::validate::ValidateArgs;

const EXAMPLES: &str = "\
Examples:
  graphmill run pagerank edges.txt.gz -o ranks.parquet --top 10
  graphmill import edges.txt.gz -o graph --undirected --memory 2G
  graphmill run bfs graph --source 42 -o depths.csv
  graphmill generate kronecker 18 16 --undirected -o graph
  graphmill run sssp --help          the options of one algorithm

Sizes are numbers, such as 512M or 1.5G, with K, M, G or T (powers of 1024, as in `sort -S`) or % of the machine's memory.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

/// Runs graph algorithms on graphs of any size: in memory when they fit, from disk when they don't.
#[derive(Debug, Parser)]
#[command(name = "graphmill", version, after_help = EXAMPLES, max_term_width = 110, hide_possible_values = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a stored graph from files of edges
    Import(ImportArgs),
    /// Run an algorithm on a stored graph, or on a file of edges
    Run(Box<RunArgs>),
    /// Make a graph by rule: Kronecker, uniform, grid, consecutive or scattered
    Generate(GenerateArgs),
    /// Describe a stored graph
    Info(InfoArgs),
    /// Check every byte of a stored graph
    Verify(VerifyArgs),
    /// Compare a result with a reference, or check it by its graph
    Validate(ValidateArgs),
    /// Estimate an import and a run: space, memory, traffic, time
    Estimate(EstimateArgs),
    /// List the algorithms and their options
    Algorithms(AlgorithmsArgs),
    /// List or remove the graphs that runs cache beside files of edges
    Cache(CacheArgs),
    /// Make this command run under an MPI: `mpirun -n 8 graphmill run ...`
    Mpi(MpiArgs),
    /// Make this command send datagrams by DPDK: `graphmill run --executor bucket --link dpdk ...`
    Dpdk(DpdkArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages
    Man(ManArgs),
}
