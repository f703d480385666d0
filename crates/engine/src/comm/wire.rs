//! Bytes from rank to rank: the memory of frames, the constants of flow control, and rows, one rank to one.
//!
//! `exchange/all_to_all.rs` sends messages, all ranks to all others at once, in these frames.

use std::time::Duration;

use graphmill_fabric::{Channel, FabricOperation, protocol_error};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Lease, MemoryBudget};

use crate::comm::communicator::Communicator;
use crate::error::{EngineError, ensure};

/// Bytes of a frame.
pub(crate) const FRAME_BYTES: usize = 256 << 10;
/// Ranks to send to at the same time, and to receive from, at most.
pub(crate) const PEERS: usize = 2;
/// Frames to one rank at the same time.
pub(crate) const FLYING: usize = 2;
/// Frames of all: on their way to ranks, awaited, and the one that is taken apart.
const FRAMES: usize = PEERS * FLYING + PEERS + 1;
/// Of rows; messages have another one.
const ROWS: Channel = 1;
/// Time between two looks at whether to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
const TOKEN: u64 = 0;

/// The memory of frames on their way.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) free: Vec<AlignedBuffer>,
    _lease: Lease,
    /// Messages, and bytes of frames, sent since the last time that this was asked for.
    pub(crate) sent: [u64; 2],
    /// The same to each rank, since it was made.
    pub(crate) to: Vec<[u64; 2]>,
}

impl Wire {
    /// Bytes of the budget that it takes.
    pub(crate) const BYTES: u64 = (FRAMES * FRAME_BYTES) as u64;

    pub(crate) fn new(budget: &MemoryBudget, ranks: usize) -> Result<Self, EngineError> {
        let _lease = budget.lease("frames between ranks", Self::BYTES)?;
        let frame = || AlignedBuffer::zeroed(FRAME_BYTES);
        Ok(Wire {
            free: (0..FRAMES).map(|_| frame()).collect::<Result<_, _>>()?,
            _lease,
            sent: [0; 2],
            to: vec![[0; 2]; ranks],
        })
    }

    /// Sends bytes to a rank that waits for as many.
    pub(crate) fn send_rows(
        &mut self,
        ranks: &Communicator,
        to: usize,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        self.to[to][1] += bytes.len() as u64;
        for part in bytes.chunks(FRAME_BYTES) {
            let mut buffer = self.free.pop().ok_or_else(protocol_error)?;
            buffer[..part.len()].copy_from_slice(part);
            let operation = FabricOperation::Send {
                to,
                channel: ROWS,
                buffer,
                range: 0..part.len(),
            };
            let (buffer, _) = self.carry_out(ranks, operation)?;
            self.free.push(buffer);
        }
        Ok(())
    }

    /// Waits for as many bytes of a rank as there is room for.
    pub(crate) fn receive_rows(
        &mut self,
        ranks: &Communicator,
        from: usize,
        out: &mut [u8],
    ) -> Result<(), EngineError> {
        self.receive_each(ranks, from, out.len(), |first, came| {
            out[first..first + came.len()].copy_from_slice(came);
        })
    }

    /// Receives `bytes` bytes from a rank and passes each part with its offset to a callback.
    pub(crate) fn receive_each(
        &mut self,
        ranks: &Communicator,
        from: usize,
        bytes: usize,
        mut show: impl FnMut(usize, &[u8]),
    ) -> Result<(), EngineError> {
        for first in (0..bytes).step_by(FRAME_BYTES) {
            let length = FRAME_BYTES.min(bytes - first);
            let buffer = self.free.pop().ok_or_else(protocol_error)?;
            let operation = FabricOperation::Receive {
                from,
                channel: ROWS,
                buffer,
            };
            let (buffer, came) = self.carry_out(ranks, operation)?;
            if came == length {
                show(first, &buffer[..came]);
            }
            self.free.push(buffer);
            ensure(came == length, protocol_error)?;
        }
        Ok(())
    }

    /// Waits for the end of an operation, which is the only one; returns its frame, and the bytes in it.
    fn carry_out(
        &mut self,
        ranks: &Communicator,
        operation: FabricOperation,
    ) -> Result<(AlignedBuffer, usize), EngineError> {
        let fabric = ranks.fabric.as_deref().ok_or_else(protocol_error)?;
        fabric.submit(operation, TOKEN);
        let done = loop {
            match fabric.wait(LOOK) {
                Some(done) => break done,
                None => ranks.check_stop()?,
            }
        };
        let bytes = done.result?;
        Ok((done.buffer.ok_or_else(protocol_error)?, bytes))
    }
}
