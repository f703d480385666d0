//! Limits of a command on the machine.

use std::path::PathBuf;

use clap::Args;
use graphmill::advanced::IoChoice;

use crate::size;

/// Limits of a command on the machine.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct MachineArgs {
    /// Memory budget: 512M, 2G, 25% [default: half of the machine's]
    ///
    /// In a cgroup with a memory limit, that limit counts as the machine's memory.
    #[arg(long, value_name = "SIZE", value_parser = size::budget)]
    pub(crate) memory: Option<u64>,
    /// Worker threads, at most 4096 [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Directory for temporary files [default: beside the output]
    ///
    /// The command creates it if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) tmp: Option<PathBuf>,
    /// Disk access: io_uring, threads that read and write, or what the kernel allows
    #[arg(long, value_name = "auto|uring|threads", value_enum, default_value_t)]
    pub(crate) io: IoChoice,
    /// Print only warnings and errors on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
