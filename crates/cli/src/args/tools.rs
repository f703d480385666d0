//! Arguments of `graphmill algorithms`, `completions`, `man`, `mpi` and `dpdk`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_name = "bash|elvish|fish|powershell|zsh", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory to write a page for each command to
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MpiArgs {
    #[command(subcommand)]
    pub(crate) command: MpiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MpiCommand {
    /// Compile the plugin for an MPI, with the compiler of that MPI
    ///
    /// Each MPI needs its own plugin.
    Build(MpiBuildArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DpdkArgs {
    #[command(subcommand)]
    pub(crate) command: DpdkCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DpdkCommand {
    /// Compile the plugin for the DPDK of this machine, which pkg-config finds
    Build(DpdkBuildArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MpiBuildArgs {
    /// The C compiler of the MPI
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    pub(crate) cc: String,
    /// File of the plugin [default: where jobs look for it]
    ///
    /// Set the environment variable GRAPHMILL_MPI of a job to a file elsewhere.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DpdkBuildArgs {
    /// The C compiler
    #[arg(long, value_name = "COMMAND", default_value = "cc")]
    pub(crate) cc: String,
    /// File of the plugin [default: where jobs look for it]
    ///
    /// Set the environment variable GRAPHMILL_DPDK of a job to a file elsewhere.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AlgorithmsArgs {
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
