//! Errors between ranks.

use std::path::PathBuf;

use graphmill_raw::OutOfMemory;

/// Why bytes did not reach another rank, or did not come from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A rank came to its end before the work did; the others end too.
    #[error("rank {rank} is lost: {cause}")]
    Lost {
        /// Which.
        rank: usize,
        /// The cause that it reported, or that was observed.
        cause: String,
    },
    /// A rank that is done with the others was to send or receive: a mistake in the program.
    #[error("rank {rank} is done with the others already; this is a bug, please report it")]
    Left {
        /// Which.
        rank: usize,
    },
    /// A frame is longer than the memory that waits for it: a mistake in the program.
    #[error(
        "a frame of rank {from} is longer than the {room} bytes that wait for it; this is a bug, please report it"
    )]
    TooLong {
        /// The sender.
        from: usize,
        /// Bytes that there is room for.
        room: usize,
    },
    /// No such rank, or a part of a buffer that it has not: a mistake in the program.
    #[error("{what}; this is a bug, please report it")]
    Misuse {
        /// The request.
        what: &'static str,
    },
    /// The plugin for MPI cannot be used.
    #[error("{}: {what}", path.display())]
    Plugin {
        /// Its file.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// The system refused the thread that runs the network.
    #[error("cannot start a thread ({0}): raise the limit (ulimit -u)")]
    Thread(String),
    /// The system gave no memory for a frame.
    #[error("{0}")]
    Memory(String),
}

impl From<OutOfMemory> for FabricError {
    fn from(error: OutOfMemory) -> Self {
        FabricError::Memory(error.to_string())
    }
}
