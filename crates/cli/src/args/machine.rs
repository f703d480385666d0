//! What a command may take of the machine.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::size;

/// What a command may take of the machine.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct Machine {
    /// Memory to stay within: 512M, 2G, 25% [default: half of what there is]
    ///
    /// What there is: the machine's memory, or the cgroup's.
    #[arg(long, value_name = "SIZE", value_parser = size::budget)]
    pub(crate) memory: Option<u64>,
    /// Threads that work, at most 4096 [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Folder for temporary files [default: beside the output]
    ///
    /// It is made where it is missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) tmp: Option<PathBuf>,
    /// Reach the disk by io_uring, by threads that read and write, or by what the kernel allows
    #[arg(long, value_name = "auto|uring|threads", value_enum, default_value_t)]
    pub(crate) io: Io,
    /// No progress, notices and summary on stderr, only warnings and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Io {
    #[default]
    Auto,
    Uring,
    Threads,
}
