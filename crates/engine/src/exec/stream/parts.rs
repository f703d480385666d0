//! Messages for helpers and accumulators for owners on their way between ranks, frame by frame.

use std::sync::Arc;

use graphmill_fabric::protocol_error;
use graphmill_storage::Buffer;

use crate::comm::wire::FRAME_BYTES;
use crate::error::{EngineError, ensure};
use crate::exec::stream::peers::{FrameInFlight, PeerEvent, Peers};
use crate::exec::stream::protocol::PARTS;

/// Bytes to send, which stay as they are until they are sent.
pub(crate) trait SharedBytes: Send + Sync {
    fn bytes(&self) -> &[u8];
}

/// Bytes on their way to a rank.
pub(super) struct Outgoing {
    pub(super) to: usize,
    pub(super) bytes: Arc<dyn SharedBytes>,
    pub(super) at: usize,
    pub(super) is_flying: bool,
}

/// Bytes on their way from a rank.
pub(super) struct Incoming {
    pub(super) from: usize,
    pub(super) buffer: Buffer,
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) is_awaited: bool,
}

impl Peers {
    /// True if no messages or accumulators are on their way.
    pub(crate) fn has_no_parts(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Sends messages or accumulators, part by part.
    pub(crate) fn send_bytes(&mut self, to: usize, bytes: Arc<dyn SharedBytes>) {
        self.outgoing.push(Outgoing {
            to,
            bytes,
            at: 0,
            is_flying: false,
        });
    }

    /// Receives `end` bytes of messages or accumulators into a buffer.
    pub(crate) fn receive_bytes(&mut self, from: usize, buffer: Buffer, end: usize) {
        self.incoming.push(Incoming {
            from,
            buffer,
            at: 0,
            end,
            is_awaited: false,
        });
    }

    /// Takes a part of the bytes that a rank sends.
    pub(super) fn came(
        &mut self,
        from: usize,
        part: &[u8],
        events: &mut Vec<PeerEvent>,
    ) -> Result<(), EngineError> {
        let position = self.incoming.iter().position(|of| of.from == from);
        let position = position.ok_or_else(protocol_error)?;
        let of = &mut self.incoming[position];
        let end = of.at + part.len();
        ensure(!part.is_empty() && end <= of.end, protocol_error)?;
        of.buffer[of.at..end].copy_from_slice(part);
        (of.at, of.is_awaited) = (end, false);
        if end == of.end {
            let Incoming { from, buffer, .. } = self.incoming.remove(position);
            events.push(PeerEvent::Received { from, buffer });
        }
        Ok(())
    }

    /// A part to a rank is sent: its bytes are complete, or another part follows.
    pub(super) fn sent_part(&mut self, to: usize) {
        if let Some(position) = self.outgoing.iter().position(|of| of.to == to) {
            let of = &mut self.outgoing[position];
            of.is_flying = false;
            if of.at == of.bytes.bytes().len() {
                self.outgoing.remove(position);
            }
        }
    }

    /// Sends and awaits the next part of the first transfer to each rank, and from each rank.
    ///
    /// A rank that is awaited may send late. So the last frame is for what this rank sends.
    pub(super) fn submit_parts(&mut self) -> bool {
        let mut has_moved = false;
        for other in 0..self.fabric.ranks() {
            let incoming = self.incoming.iter_mut().find(|of| of.from == other);
            if let Some(of) = incoming.filter(|of| !of.is_awaited && self.frames.len() > 1)
                && let Some(memory) = self.frames.pop()
            {
                of.is_awaited = true;
                self.receive(
                    other,
                    PARTS,
                    memory,
                    FrameInFlight::PartReceive { from: other },
                );
                has_moved = true;
            }
            let outgoing = self.outgoing.iter_mut().find(|of| of.to == other);
            if let Some(of) = outgoing.filter(|of| !of.is_flying)
                && let Some(mut memory) = self.frames.pop()
            {
                let bytes = of.bytes.bytes();
                let part = &bytes[of.at..bytes.len().min(of.at + FRAME_BYTES)];
                let length = part.len();
                memory[..length].copy_from_slice(part);
                (of.at, of.is_flying) = (of.at + length, true);
                let flying = FrameInFlight::PartSend { to: other };
                self.send(other, PARTS, (memory, 0..length), flying);
                has_moved = true;
            }
        }
        has_moved
    }
}
