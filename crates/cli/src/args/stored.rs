//! What `graphmill info`, `verify` and `cache` take.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::machine::Machine;

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Folder of a stored graph
    pub(crate) graph: PathBuf,
    /// As one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Folder of a stored graph
    pub(crate) graph: PathBuf,
    /// Compare degrees, indices, reverse and counts with the edges too, to find what a broken program wrote
    #[arg(long)]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

#[derive(Debug, Args)]
pub(crate) struct Cache {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List the graphs that are kept, with the bytes of each
    List(CachePlaces),
    /// Remove the graphs that are kept, but for those that a run works on
    Clear(CachePlaces),
}

#[derive(Debug, Args)]
pub(crate) struct CachePlaces {
    /// Files of edges, or folders with files of edges
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// As one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
