//! Messages between ranks during a phase, and the channels that they and their data use.
//!
//! A control message has a fixed length. Data has a channel for each purpose, so a frame never meets the memory of another purpose.
//! A frame moves once its receiver has memory for it: so nothing piles up in between.

use graphmill_fabric::Channel;

/// Of control messages.
pub(crate) const CONTROL: Channel = 8;
/// Of chunks, and of the answer that there is none.
pub(crate) const CHUNKS: Channel = 9;
/// Of update chunks to keep.
pub(crate) const PUTS: Channel = 10;
/// Of messages to helpers, and of accumulators from them.
pub(crate) const PARTS: Channel = 11;
/// Of answers to offers of help: the owner may have asked for everything that it needs.
pub(crate) const ANSWERS: Channel = 12;

/// Bytes of a control message, and of the header of a chunk.
pub(crate) const HEADER_BYTES: usize = 64;

/// A control message. Every one names the superstep and the phase, in which both ranks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Asks the storage engine for an unprocessed chunk of a batch.
    Get { batch: u32 },
    /// Announces an update chunk of `bytes` bytes, which follows.
    Put { batch: u32, bytes: u32 },
    /// Offers help to an owner.
    Offer,
    /// Accepts help with a batch: of its messages `count` exist, and they follow in scatter.
    Accept { batch: u32, count: u64 },
    /// Needs no help.
    Decline,
    /// Asks for nothing more in this phase.
    Done,
}

impl Control {
    /// Returns the bytes of the message in a phase.
    pub(crate) fn encode(self, phase: u64) -> [u8; HEADER_BYTES] {
        let (kind, batch, number) = match self {
            Control::Get { batch } => (0u32, batch, 0),
            Control::Put { batch, bytes } => (1, batch, u64::from(bytes)),
            Control::Offer => (2, 0, 0),
            Control::Accept { batch, count } => (3, batch, count),
            Control::Decline => (4, 0, 0),
            Control::Done => (5, 0, 0),
        };
        let mut out = [0; HEADER_BYTES];
        out[..4].copy_from_slice(&kind.to_le_bytes());
        out[4..8].copy_from_slice(&batch.to_le_bytes());
        out[8..16].copy_from_slice(&phase.to_le_bytes());
        out[16..24].copy_from_slice(&number.to_le_bytes());
        out
    }

    /// Returns the message in these bytes; `None` if they are none of this phase.
    pub(crate) fn decode(bytes: &[u8], phase: u64) -> Option<Control> {
        let bytes: &[u8; HEADER_BYTES] = bytes.try_into().ok()?;
        let [kind, batch] = [0, 4].map(|at| word(bytes, at));
        let [of_phase, number] = [8, 16].map(|at| long(bytes, at));
        if of_phase != phase {
            return None;
        }
        Some(match kind {
            0 => Control::Get { batch },
            1 => Control::Put {
                batch,
                bytes: number.try_into().ok()?,
            },
            2 => Control::Offer,
            3 => Control::Accept {
                batch,
                count: number,
            },
            4 => Control::Decline,
            5 => Control::Done,
            _ => return None,
        })
    }
}

/// The header of a frame on [`CHUNKS`], which names its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub(crate) batch: u32,
    pub(crate) phase: u64,
    /// False if the storage engine has no more chunks of the batch.
    pub(crate) has_chunk: bool,
    /// Where the chunk lies in the frame, and the data of its edges.
    pub(crate) parts: [[u32; 2]; 2],
    /// Microseconds that the storage engine took for it.
    pub(crate) service: u32,
}

impl ChunkHeader {
    /// Writes the header to the start of a frame.
    pub(crate) fn put(&self, frame: &mut [u8]) {
        let numbers = self.parts.as_flattened().iter();
        let numbers = [self.batch, u32::from(self.has_chunk), self.service]
            .into_iter()
            .chain(numbers.copied());
        for (number, out) in numbers.zip(frame[8..HEADER_BYTES].chunks_exact_mut(4)) {
            out.copy_from_slice(&number.to_le_bytes());
        }
        frame[..8].copy_from_slice(&self.phase.to_le_bytes());
    }

    /// Reads the header of a frame; `None` if it makes no sense.
    pub(crate) fn take(frame: &[u8]) -> Option<ChunkHeader> {
        let bytes: &[u8; HEADER_BYTES] = frame.first_chunk()?;
        let header = ChunkHeader {
            phase: long(bytes, 0),
            batch: word(bytes, 8),
            has_chunk: word(bytes, 12) == 1,
            service: word(bytes, 16),
            parts: [[20, 24], [28, 32]].map(|part| part.map(|at| word(bytes, at))),
        };
        let is_within = |part: &[u32; 2]| part[0] <= part[1] && part[1] as usize <= frame.len();
        header.parts.iter().all(is_within).then_some(header)
    }
}

fn word(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_round_trip_within_their_phase() {
        let all = [
            Control::Get { batch: 7 },
            Control::Put {
                batch: u32::MAX,
                bytes: 9,
            },
            Control::Offer,
            Control::Accept {
                batch: 1,
                count: u64::MAX,
            },
            Control::Decline,
            Control::Done,
        ];
        for control in all {
            let bytes = control.encode(5);
            assert_eq!(Control::decode(&bytes, 5), Some(control));
            assert_eq!(Control::decode(&bytes, 4), None);
            assert_eq!(Control::decode(&bytes[1..], 5), None);
        }
        assert_eq!(
            Control::decode(&[9; HEADER_BYTES], 0x0909_0909_0909_0909),
            None
        );
    }

    #[test]
    fn chunk_headers_round_trip_and_stay_within_their_frame() {
        let header = ChunkHeader {
            batch: 3,
            phase: 1 << 40,
            has_chunk: true,
            parts: [[64, 90], [90, 100]],
            service: 17,
        };
        let mut frame = [0; 100];
        header.put(&mut frame);
        assert_eq!(ChunkHeader::take(&frame), Some(header));
        assert_eq!(ChunkHeader::take(&frame[..99]), None);
        assert_eq!(ChunkHeader::take(&frame[..9]), None);
    }
}
