//! The port: what a rank does with the network.
//!
//! A frame is sent and received: both ranks submit an operation, and it moves when both are there. So whoever sends holds the
//! bytes until there is room for them: a slow receiver slows its senders down, and nothing piles up in between.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use graphmill_raw::AlignedBuffer;

use crate::error::FabricError;

/// Frames from one rank to another on one channel arrive in the order in which they were sent, in the memory that was first given
/// to receive them. Frames of different channels, or ranks, come in any order.
pub type Channel = u16;

/// A rank of which nothing is heard for so long is lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);
/// What is said of it.
pub(crate) const SILENT: &str = "nothing was heard of it for 15 s";

/// What a [`Fabric`] carries out. The buffer is away until the operation is complete.
#[derive(Debug)]
pub enum Operation {
    /// `range` of the buffer to another rank. Complete when the buffer may be changed again.
    Send {
        /// To which rank.
        to: usize,
        /// On which channel.
        channel: Channel,
        /// Memory to send from.
        buffer: AlignedBuffer,
        /// Which bytes of it.
        range: Range<usize>,
    },
    /// The next frame of another rank, to the start of the buffer.
    Receive {
        /// From which rank.
        from: usize,
        /// On which channel.
        channel: Channel,
        /// Memory to receive into: as long as the longest frame that may come.
        buffer: AlignedBuffer,
    },
}

impl Operation {
    /// Whether some ranks could carry it out.
    pub(crate) fn check(&self, ranks: usize) -> Result<(), FabricError> {
        let misuse = |what| Err(FabricError::Misuse { what });
        match self {
            Operation::Send { to, .. } if *to >= ranks => misuse("a frame for no rank"),
            Operation::Receive { from, .. } if *from >= ranks => misuse("a frame of no rank"),
            Operation::Send { buffer, range, .. } if buffer.get(range.clone()).is_none() => {
                misuse("a frame of no bytes of its buffer")
            }
            _ => Ok(()),
        }
    }

    /// The other rank.
    pub(crate) fn other(&self) -> usize {
        match self {
            Operation::Send { to: other, .. } | Operation::Receive { from: other, .. } => *other,
        }
    }

    /// Its buffer.
    pub(crate) fn into_buffer(self) -> AlignedBuffer {
        match self {
            Operation::Send { buffer, .. } | Operation::Receive { buffer, .. } => buffer,
        }
    }
}

/// An operation that has come to its end.
#[derive(Debug)]
pub struct Completion {
    /// What the operation was submitted with.
    pub token: u64,
    /// Its buffer; lost (`None`) where the network may still reach into it.
    pub buffer: Option<AlignedBuffer>,
    /// Bytes of the frame.
    pub result: Result<usize, FabricError>,
}

/// One rank's way to the others. Its threads share it; a completion comes to whoever takes it first.
///
/// When one rank fails all do: whatever the others wait for ends with [`FabricError::Lost`], and so does what they submit later.
pub trait Fabric: Send + Sync + Debug {
    /// Which rank this is.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// Takes an operation. Never blocks; every error comes with the completion.
    fn submit(&self, operation: Operation, token: u64);

    /// A complete operation, if there is one.
    fn poll(&self) -> Option<Completion>;

    /// The same, and waits up to `limit` for one.
    fn wait(&self, limit: Duration) -> Option<Completion>;

    /// Operations submitted whose completions have not been taken.
    fn in_flight(&self) -> usize;

    /// The rank that is lost, if one is: why everything ends.
    fn lost(&self) -> Option<FabricError>;

    /// A flag that is set once a rank is lost, for work that goes on for long without the others; `None` where it hears of it in time when it turns
    /// to them.
    fn lost_flag(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    /// Says that this rank cannot go on, and why; where another rank is lost already, that it is because of that one. Returns when the
    /// others are at their end too, as far as can be waited for.
    fn fail(&self, cause: &str);

    /// Says that this rank is done with the others. One that goes without a word is lost.
    fn leave(&self);
}
