//! The bytes of a bucket: a header, messages or a map of what has come, zeros, and a tag.
//!
//! Every datagram of a job has the same length, so a buffer of joined datagrams is cut without knowing more.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a bucket for networks with frames of 1,500 bytes.
pub const BUCKET_BYTES: usize = 1472;
/// Bytes before the messages.
pub const HEADER_BYTES: usize = size_of::<HeaderBytes>();
/// Bytes of the tag at the end.
pub const TAG_BYTES: usize = 16;
/// Words of the map of an acknowledgement.
pub const MAP_WORDS: usize = 4;
/// Bytes of the index of a destination before the value of a message.
pub(crate) const ID_BYTES: usize = size_of::<u32>();

const MAGIC: u16 = u16::from_le_bytes(*b"GB");
const VERSION: u8 = 1;

/// A header as it is sent.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct HeaderBytes {
    magic: U16,
    version: u8,
    kind: u8,
    from: U16,
    to: U16,
    number: U64,
    thread: u8,
    lane: u8,
    flags: u8,
    acknowledged_lane: u8,
    count: U16,
    part: U16,
    acknowledged: U64,
    superstep: U32,
    width: U32,
}

const LAST: u8 = 1;
const GOES_ON: u8 = 2;
const ACKNOWLEDGES: u8 = 4;

/// What a bucket carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketKind {
    /// Messages of a stream.
    Messages,
    /// A map of what has come, and no message; it is part of no stream.
    Acknowledgement,
}

/// The header of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketHeader {
    /// What it carries.
    pub kind: BucketKind,
    /// The rank that sends it.
    pub from: usize,
    /// The rank that receives it.
    pub to: usize,
    /// Its number in its stream; acknowledgements of a lane to a rank have numbers of their own.
    pub number: u64,
    /// The thread that sends it.
    pub thread: u8,
    /// The lane that it is for.
    pub lane: u8,
    /// It is the last one of its stream in this superstep.
    pub is_last: bool,
    /// The next bucket of the stream has more of its one message.
    pub goes_on: bool,
    /// A lane of the sender, and a number: all buckets below it from `to` to that lane have come.
    pub acknowledged: Option<(u8, u64)>,
    /// The number of messages.
    pub count: u16,
    /// Which part of a jumbo message it has.
    pub part: u16,
    /// The superstep.
    pub superstep: u32,
    /// Bytes of a value.
    pub width: u32,
}

/// The reason why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has another length than a bucket.
    Length,
    /// It is no bucket of this version, or its fields contradict each other.
    Strange,
    /// It is for another rank or lane, or from no rank of this job.
    Address,
    /// Its tag is wrong: it was changed, or is of another job or an earlier start.
    Seal,
    /// It is of another superstep, or its values have another width.
    Superstep,
    /// Its number is beyond the window.
    Window,
}

impl Refusal {
    /// A word for each reason.
    pub const NAMES: [&str; 6] = [
        "length",
        "strange",
        "address",
        "seal",
        "superstep",
        "window",
    ];
}

impl BucketHeader {
    /// Writes the header to the start of a bucket.
    pub fn write(&self, bucket: &mut [u8]) {
        let (lane, number) = self.acknowledged.unwrap_or_default();
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let bytes = HeaderBytes {
            magic: MAGIC.into(),
            version: VERSION,
            kind: self.kind as u8,
            from: (self.from as u16).into(),
            to: (self.to as u16).into(),
            number: self.number.into(),
            thread: self.thread,
            lane: self.lane,
            flags: flag(self.is_last, LAST)
                | flag(self.goes_on, GOES_ON)
                | flag(self.acknowledged.is_some(), ACKNOWLEDGES),
            acknowledged_lane: lane,
            count: self.count.into(),
            part: self.part.into(),
            acknowledged: number.into(),
            superstep: self.superstep.into(),
            width: self.width.into(),
        };
        bucket[..HEADER_BYTES].copy_from_slice(bytes.as_bytes());
    }

    /// Parses the header of a datagram of the length of a bucket.
    ///
    /// # Errors
    /// The bytes are no header, or say that more messages are there than fit.
    pub fn parse(bucket: &[u8]) -> Result<BucketHeader, Refusal> {
        let (bytes, rest) = HeaderBytes::read_from_prefix(bucket).map_err(|_| Refusal::Length)?;
        let room = rest.len().checked_sub(TAG_BYTES).ok_or(Refusal::Length)?;
        let kind = match bytes.kind {
            0 => BucketKind::Messages,
            1 => BucketKind::Acknowledgement,
            _ => return Err(Refusal::Strange),
        };
        let has = |flag: u8| bytes.flags & flag != 0;
        let acknowledged = (bytes.acknowledged_lane, bytes.acknowledged.get());
        let header = BucketHeader {
            kind,
            from: bytes.from.get().into(),
            to: bytes.to.get().into(),
            number: bytes.number.get(),
            thread: bytes.thread,
            lane: bytes.lane,
            is_last: has(LAST),
            goes_on: has(GOES_ON),
            acknowledged: has(ACKNOWLEDGES).then_some(acknowledged),
            count: bytes.count.get(),
            part: bytes.part.get(),
            superstep: bytes.superstep.get(),
            width: bytes.width.get(),
        };
        let is_known = bytes.magic.get() == MAGIC
            && bytes.version == VERSION
            && bytes.flags & !(LAST | GOES_ON | ACKNOWLEDGES) == 0
            && (header.part == 0 || header.is_jumbo(room));
        let is_whole = match kind {
            BucketKind::Messages => header.messages_bytes(room).is_some(),
            BucketKind::Acknowledgement => {
                header.count == 0 && acknowledged.0 == header.lane_said()
            }
        };
        match is_known && is_whole {
            true => Ok(header),
            false => Err(Refusal::Strange),
        }
    }

    /// The lane that an acknowledgement alone is of, which it always says.
    fn lane_said(&self) -> u8 {
        self.acknowledged.map_or(u8::MAX, |(lane, _)| lane)
    }

    /// Returns the bytes of the messages, at most `room`; `None` if they do not fit.
    ///
    /// A jumbo message has a part in each bucket: one message, with as many bytes as fit.
    pub(crate) fn messages_bytes(&self, room: usize) -> Option<usize> {
        let count = usize::from(self.count);
        match self.is_jumbo(room) {
            true => (count <= 1).then_some(count * room),
            false => {
                let bytes = message_bytes(self.width) * count;
                (bytes <= room && !self.goes_on).then_some(bytes)
            }
        }
    }

    /// True if a message is longer than the `room` of a bucket.
    fn is_jumbo(&self, room: usize) -> bool {
        message_bytes(self.width) > room
    }
}

/// Bytes of a message with a value of `width` bytes: the destination, then the value.
pub(crate) fn message_bytes(width: u32) -> usize {
    ID_BYTES + width as usize
}

/// Returns the number of buckets that a message of `bytes` bytes takes.
///
/// A jumbo message takes more than one.
#[must_use]
pub fn message_parts(bytes: usize, bucket_bytes: usize) -> usize {
    bytes.div_ceil(room(bucket_bytes).max(1)).max(1)
}

/// Returns the bytes that messages have in a bucket of `bucket_bytes` bytes.
pub(crate) fn room(bucket_bytes: usize) -> usize {
    bucket_bytes.saturating_sub(HEADER_BYTES + TAG_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BucketHeader {
        BucketHeader {
            kind: BucketKind::Messages,
            from: 3,
            to: 700,
            number: 1 << 40,
            thread: 2,
            lane: 5,
            is_last: true,
            goes_on: false,
            acknowledged: Some((1, 99)),
            count: 177,
            part: 0,
            superstep: 8,
            width: 4,
        }
    }

    #[test]
    fn header_is_read_as_it_was_written() {
        assert_eq!(HEADER_BYTES, 40);
        let mut bucket = [0; BUCKET_BYTES];
        let alone = BucketHeader {
            kind: BucketKind::Acknowledgement,
            count: 0,
            ..header()
        };
        let silent = BucketHeader {
            acknowledged: None,
            is_last: false,
            ..header()
        };
        for header in [header(), alone, silent] {
            header.write(&mut bucket);
            assert_eq!(BucketHeader::parse(&bucket), Ok(header));
        }
    }

    #[test]
    fn more_messages_than_fit_are_refused() {
        let mut bucket = [0; BUCKET_BYTES];
        for (count, width, is_sound) in [
            (177, 4, true),
            (178, 4, false),
            (118, 8, true),
            (119, 8, false),
            (1, 1412, true),
            (1, 1413, true),
            (2, 1413, false),
            (1, u32::MAX, true),
            (2, u32::MAX, false),
            (u16::MAX, 0, false),
        ] {
            let header = BucketHeader {
                count,
                width,
                ..header()
            };
            header.write(&mut bucket);
            assert_eq!(
                BucketHeader::parse(&bucket).is_ok(),
                is_sound,
                "{count} {width}"
            );
        }
    }

    #[test]
    fn changed_header_or_short_datagram_never_panics() {
        let mut bucket = [0; BUCKET_BYTES];
        header().write(&mut bucket);
        for bytes in 0..HEADER_BYTES + TAG_BYTES {
            assert_eq!(BucketHeader::parse(&bucket[..bytes]), Err(Refusal::Length));
        }
        for at in 0..HEADER_BYTES {
            for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
                let mut changed = bucket;
                changed[at] = value;
                if let Ok(parsed) = BucketHeader::parse(&changed) {
                    let mut again = bucket;
                    parsed.write(&mut again);
                    assert_eq!(
                        BucketHeader::parse(&again),
                        Ok(parsed),
                        "byte {at}: {value}"
                    );
                }
            }
        }
    }
}
