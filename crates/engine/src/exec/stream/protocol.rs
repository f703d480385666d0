//! Messages between ranks during a phase, and the channels that they and their data use.
//!
//! A control message is a header. Data has a channel for each purpose, so a frame never meets the memory of another purpose.
//! A frame moves once its receiver has memory for it: so nothing piles up in between.

use graphmill_fabric::Channel;
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Of control messages.
pub(crate) const CONTROL: Channel = 8;
/// Of chunks, and of the answer that there is none.
pub(crate) const CHUNKS: Channel = 9;
/// Of update chunks to keep.
pub(crate) const PUTS: Channel = 10;
/// Of messages to helpers, and of accumulators from them.
pub(crate) const PARTS: Channel = 11;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = size_of::<MessageHeader>();

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u32)]
pub(crate) enum MessageKind {
    /// Asks the storage engine for an unprocessed chunk of a batch.
    Get,
    /// Announces an update chunk of a number of bytes, which follows.
    Put,
    /// Offers help to an owner.
    Offer,
    /// Accepts help with a batch of a number of messages, which follow in scatter.
    Accept,
    /// Needs no help.
    Decline,
    /// Asks for nothing more in this phase, and needs no help.
    Done,
    /// A chunk, behind its header in the same frame.
    Chunk,
    /// The storage engine has no more chunks of the batch.
    NoChunk,
}

/// A batch of another rank, which has `count` messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptedHelp {
    pub(crate) owner: usize,
    pub(crate) batch: usize,
    pub(crate) count: u64,
}

/// A control message, or the start of a frame of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct MessageHeader {
    /// The number of the phase, in which both ranks are.
    pub(crate) phase: u64,
    /// Bytes of an update chunk, or messages of a batch.
    pub(crate) number: u64,
    pub(crate) kind: MessageKind,
    pub(crate) batch: u32,
    /// Where a chunk lies in the frame, and the data of its edges.
    pub(crate) parts: [[u32; 2]; 2],
    /// Microseconds that the storage engine took for a chunk.
    pub(crate) service: u32,
    pub(crate) rest: [u32; 5],
}

impl MessageHeader {
    pub(crate) fn new(phase: u64, kind: MessageKind, batch: usize) -> Self {
        MessageHeader {
            phase,
            number: 0,
            kind,
            batch: batch as u32,
            parts: [[0; 2]; 2],
            service: 0,
            rest: [0; 5],
        }
    }

    /// Reads the header of a frame; `None` if it makes no sense, or is of another phase.
    pub(crate) fn take(frame: &[u8], phase: u64) -> Option<MessageHeader> {
        let (header, _) = MessageHeader::try_read_from_prefix(frame).ok()?;
        let is_within = |part: &[u32; 2]| part[0] <= part[1] && part[1] as usize <= frame.len();
        let makes_sense = header.phase == phase && header.parts.iter().all(is_within);
        makes_sense.then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_within_their_phase_and_frame() {
        let header = MessageHeader {
            number: u64::MAX,
            parts: [[64, 90], [90, 100]],
            service: 17,
            ..MessageHeader::new(1 << 40, MessageKind::Chunk, 3)
        };
        let mut frame = [0; 100];
        frame[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        assert_eq!(MessageHeader::take(&frame, 1 << 40), Some(header));
        assert_eq!(MessageHeader::take(&frame, 1), None);
        assert_eq!(MessageHeader::take(&frame[..99], 1 << 40), None);
        assert_eq!(MessageHeader::take(&frame[..9], 1 << 40), None);
        // No kind has this number.
        frame[16] = 9;
        assert_eq!(MessageHeader::take(&frame, 1 << 40), None);
    }
}
