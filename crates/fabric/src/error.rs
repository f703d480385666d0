//! Errors between ranks.

use std::path::PathBuf;

use graphmill_raw::OutOfMemory;

/// An error of the communication with another rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A rank ended before the work was done; the others end too.
    #[error("rank {rank} is lost: {cause}")]
    Lost {
        /// The rank.
        rank: usize,
        /// The cause that it reported, or that was observed.
        cause: String,
    },
    /// An operation names a rank that is done with the others: a mistake in the program.
    #[error(
        "cannot exchange frames with rank {rank}: it is done with the others already; this is a bug, please report it"
    )]
    Left {
        /// The rank.
        rank: usize,
    },
    /// A frame is longer than the memory that waits for it: a mistake in the program.
    #[error(
        "cannot receive a frame of rank {from}: it is longer than the {room} bytes that wait for it; this is a bug, please report it"
    )]
    TooLong {
        /// The sender.
        from: usize,
        /// Bytes of the memory.
        room: usize,
    },
    /// An operation names a rank or a part of a buffer that does not exist: a mistake in the program.
    #[error("{what}; this is a bug, please report it")]
    Misuse {
        /// The mistake.
        what: &'static str,
    },
    /// A plugin, for MPI or DPDK, cannot be used.
    #[error("cannot use {}: {what}", path.display())]
    Plugin {
        /// The file of the plugin.
        path: PathBuf,
        /// The cause.
        what: String,
    },
    /// DPDK refuses a device.
    #[error("cannot use the DPDK device: {what}")]
    Device {
        /// The cause.
        what: String,
    },
    /// The system refused the thread that runs the network.
    #[error("cannot start a thread: {0}; raise the limit (ulimit -u)")]
    Thread(String),
    /// The system gave no memory for a frame.
    #[error("{0}")]
    Memory(String),
}

impl FabricError {
    pub(crate) fn lost(rank: usize, cause: &str) -> FabricError {
        let cause = cause.to_string();
        FabricError::Lost { rank, cause }
    }
}

impl From<OutOfMemory> for FabricError {
    fn from(error: OutOfMemory) -> Self {
        FabricError::Memory(error.to_string())
    }
}
