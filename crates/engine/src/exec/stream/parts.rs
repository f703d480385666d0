//! Messages for helpers and accumulators for owners on their way between ranks, frame by frame.

use std::sync::Arc;

use graphmill_fabric::protocol_error;
use graphmill_storage::Buffer;

use crate::comm::wire::FRAME_BYTES;
use crate::error::{EngineError, ensure};

/// Bytes to send, which stay as they are until they are sent.
pub(crate) trait SharedBytes: Send + Sync {
    fn bytes(&self) -> &[u8];
}

/// Bytes on their way to a rank.
struct Outgoing {
    to: usize,
    bytes: Arc<dyn SharedBytes>,
    at: usize,
    is_flying: bool,
}

/// Bytes on their way from a rank.
struct Incoming {
    from: usize,
    buffer: Buffer,
    at: usize,
    end: usize,
    is_awaited: bool,
}

/// All transfers of one rank.
#[derive(Default)]
pub(crate) struct Parts {
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
}

impl Parts {
    /// True if nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Sends bytes to a rank, part by part.
    pub(crate) fn send(&mut self, to: usize, bytes: Arc<dyn SharedBytes>) {
        self.outgoing.push(Outgoing {
            to,
            bytes,
            at: 0,
            is_flying: false,
        });
    }

    /// Receives `end` bytes of a rank into a buffer.
    pub(crate) fn receive(&mut self, from: usize, buffer: Buffer, end: usize) {
        self.incoming.push(Incoming {
            from,
            buffer,
            at: 0,
            end,
            is_awaited: false,
        });
    }

    /// True if a frame of a rank is to be awaited, which it is from now on.
    pub(crate) fn awaits(&mut self, from: usize) -> bool {
        let first = self.incoming.iter_mut().find(|of| of.from == from);
        first.is_some_and(|of| !std::mem::replace(&mut of.is_awaited, true))
    }

    /// True if a part for a rank waits for a frame.
    pub(crate) fn has_part(&self, to: usize) -> bool {
        let first = self.outgoing.iter().find(|of| of.to == to);
        first.is_some_and(|of| !of.is_flying)
    }

    /// Copies the next part for a rank to a frame; returns its bytes.
    pub(crate) fn fill(&mut self, to: usize, frame: &mut [u8]) -> usize {
        let Some(of) = self.outgoing.iter_mut().find(|of| of.to == to) else {
            return 0;
        };
        let bytes = of.bytes.bytes();
        let part = &bytes[of.at..bytes.len().min(of.at + FRAME_BYTES)];
        frame[..part.len()].copy_from_slice(part);
        (of.at, of.is_flying) = (of.at + part.len(), true);
        part.len()
    }

    /// Ends the part that was sent to a rank.
    pub(crate) fn sent(&mut self, to: usize) {
        if let Some(position) = self.outgoing.iter().position(|of| of.to == to) {
            let of = &mut self.outgoing[position];
            of.is_flying = false;
            if of.at == of.bytes.bytes().len() {
                self.outgoing.remove(position);
            }
        }
    }

    /// Takes a part that a rank sent; returns the buffer if its bytes are complete.
    pub(crate) fn came(&mut self, from: usize, part: &[u8]) -> Result<Option<Buffer>, EngineError> {
        let position = self.incoming.iter().position(|of| of.from == from);
        let position = position.ok_or_else(protocol_error)?;
        let of = &mut self.incoming[position];
        let end = of.at + part.len();
        ensure(!part.is_empty() && end <= of.end, protocol_error)?;
        of.buffer[of.at..end].copy_from_slice(part);
        (of.at, of.is_awaited) = (end, false);
        let is_whole = end == of.end;
        Ok(is_whole.then(|| self.incoming.remove(position).buffer))
    }
}
