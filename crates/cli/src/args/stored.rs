//! Arguments of `graphmill info`, `verify` and `cache`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::machine::MachineArgs;

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Directory of a stored graph
    pub(crate) graph: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Directory of a stored graph
    pub(crate) graph: PathBuf,
    /// Compare degrees, indices, the transpose and counts with the edges too
    ///
    /// This finds mistakes of the program that wrote the graph.
    #[arg(long)]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List the cached graphs, with the bytes of each
    List(CachePathArgs),
    /// Remove the cached graphs, except those in use by a run
    Clear(CachePathArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CachePathArgs {
    /// Files of edges, or directories of such files
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
