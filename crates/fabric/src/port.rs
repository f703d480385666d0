//! The port: the operations of a rank on the network.
//!
//! Both ranks submit an operation, one to send a frame and one to receive it. The frame moves once both are submitted. So the sender holds
//! the bytes until the receiver has memory for them. A slow receiver slows its senders down, and no frame queues in between.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use graphmill_raw::AlignedBuffer;

use crate::bucket::BucketLink;
use crate::error::FabricError;

/// A number that separates streams of frames between two ranks.
///
/// Frames from one rank to another on one channel arrive in the order in which they were sent. Each fills the oldest
/// buffer submitted to receive on that channel. Frames of different channels, or ranks, arrive in any order.
pub type Channel = u16;

/// A line of frames: the sender, the receiver and the channel.
pub(crate) type Line = (usize, usize, Channel);

/// Time without a report from a rank, after which that rank is lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);
/// The cause in the error of a silent rank.
pub(crate) const SILENT: &str = "nothing was heard of it for 15 s";

/// An operation of a [`Fabric`], which owns the buffer until the operation is complete.
#[derive(Debug)]
pub enum FabricOperation {
    /// Sends `range` of the buffer to another rank. It is complete when the buffer may be changed again.
    Send {
        /// The receiver.
        to: usize,
        /// The channel.
        channel: Channel,
        /// Memory to send from.
        buffer: AlignedBuffer,
        /// The bytes of it to send.
        range: Range<usize>,
    },
    /// Receives the next frame of another rank, to the start of the buffer.
    Receive {
        /// The sender.
        from: usize,
        /// The channel.
        channel: Channel,
        /// Memory to receive into: as long as the longest frame that may come.
        buffer: AlignedBuffer,
    },
}

impl FabricOperation {
    /// Checks that the operation is valid among `ranks` ranks.
    pub(crate) fn check(&self, ranks: usize) -> Result<(), FabricError> {
        let misuse = |what| Err(FabricError::Misuse { what });
        match self {
            FabricOperation::Send { to, .. } if *to >= ranks => misuse("a frame for no rank"),
            FabricOperation::Receive { from, .. } if *from >= ranks => misuse("a frame of no rank"),
            FabricOperation::Send { buffer, range, .. } if buffer.get(range.clone()).is_none() => {
                misuse("a frame of no bytes of its buffer")
            }
            _ => Ok(()),
        }
    }

    /// Returns the other rank.
    pub(crate) fn other(&self) -> usize {
        match self {
            FabricOperation::Send { to: other, .. }
            | FabricOperation::Receive { from: other, .. } => *other,
        }
    }

    /// Returns the line whose next frame it moves, if rank `own` submits it.
    pub(crate) fn line(&self, own: usize) -> Line {
        match self {
            FabricOperation::Send { to, channel, .. } => (own, *to, *channel),
            FabricOperation::Receive { from, channel, .. } => (*from, own, *channel),
        }
    }

    /// Returns the bytes to send, or the memory to receive into.
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        match self {
            FabricOperation::Send { buffer, range, .. } => &mut buffer[range.clone()],
            FabricOperation::Receive { buffer, .. } => buffer,
        }
    }

    /// Returns its buffer.
    pub(crate) fn into_buffer(self) -> AlignedBuffer {
        match self {
            FabricOperation::Send { buffer, .. } | FabricOperation::Receive { buffer, .. } => {
                buffer
            }
        }
    }
}

/// A finished operation.
#[derive(Debug)]
pub struct FabricCompletion {
    /// The token that the operation was submitted with.
    pub token: u64,
    /// Its buffer; `None` if the network may still access it.
    pub buffer: Option<AlignedBuffer>,
    /// Bytes of the frame.
    pub result: Result<usize, FabricError>,
}

/// The connection of one rank to the others, shared by its threads.
///
/// The first thread that polls takes a completion.
///
/// If one rank fails, all fail: the operations of the others end with [`FabricError::Lost`], and so do those that they submit later.
pub trait Fabric: Send + Sync + Debug {
    /// Returns the number of this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn ranks(&self) -> usize;

    /// Submits an operation, without blocking. Every error comes with the completion.
    fn submit(&self, operation: FabricOperation, token: u64);

    /// Returns a completion, if there is one.
    fn poll(&self) -> Option<FabricCompletion>;

    /// Returns a completion; waits up to `limit` for one.
    fn wait(&self, limit: Duration) -> Option<FabricCompletion>;

    /// Returns the number of submitted operations whose completions were not taken.
    fn in_flight(&self) -> usize;

    /// Returns the error of the lost rank, if there is one.
    fn lost(&self) -> Option<FabricError>;

    /// Returns a flag that is set once a rank is lost, for long work without the fabric.
    ///
    /// `None` if it is soon enough that the rank learns of the loss at its next use of the fabric.
    fn lost_flag(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    /// Returns the link for buckets between ranks of one process.
    ///
    /// All ranks call it with the same `key`, number of lanes of each rank, and length of a lane's queue. `None` if ranks are processes.
    fn bucket_link(
        &self,
        key: u64,
        lanes: &[usize],
        datagrams_max: usize,
    ) -> Option<Box<dyn BucketLink>> {
        let _ = (key, lanes, datagrams_max);
        None
    }

    /// Reports to the others that this rank failed, and the cause.
    ///
    /// If another rank is lost already, the report names that rank. Returns when the others have ended too, or after a limited wait.
    fn fail(&self, cause: &str);

    /// Reports that this rank is done with the others. A rank that ends without this report is lost.
    fn leave(&self);
}
