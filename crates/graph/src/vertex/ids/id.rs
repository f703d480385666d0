//! Ids of vertices, and constants of the files of the dictionary.

use std::fmt;

use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileSide};

/// Bytes of a text id, at most.
pub const TEXT_ID_BYTES_MAX: usize = 4096;
/// Bytes of a UUID.
pub(crate) const UUID_BYTES: usize = 16;
/// Ids between two that are stored whole.
pub(crate) const RESTART: u32 = 64;
/// The sign bit, flipped in stored signed integers so that they sort like unsigned ones.
pub(crate) const SIGN: u64 = 1 << 63;
pub(crate) const PAGE: usize = DISK_PAGE_BYTES as usize;
pub(crate) const HEADER: usize = 16;

/// Returns the payload bytes of `ids` and `ids.index` for `count` ids spread evenly below `range`.
pub(crate) fn expected_bytes(count: u64, range: u64) -> [u64; 2] {
    if count == 0 {
        return [0; 2];
    }
    // A gap between ids of 2^7 and more takes a second byte, of 2^14 and more a third, and so on.
    let absent = 1.0 - (count as f64 / range.max(count) as f64);
    let gap: f64 = (0..9)
        .map(|bytes| absent.powf(f64::from(bytes * 7).exp2() - 1.0))
        .sum();
    let restart = f64::from(RESTART);
    let id = gap + (size_of::<u64>() as f64 - gap + size_of::<u16>() as f64) / restart;
    let pages = (count as f64 * id / (PAGE - HEADER) as f64).ceil();
    // Of a page the index has the first id and a number of two or three bytes.
    [pages * PAGE as f64, pages * 11.0].map(|bytes| bytes as u64)
}

/// What the user calls a vertex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VertexId {
    /// A number.
    Integer(u64),
    /// A number of a graph where some are negative.
    Signed(i64),
    /// Bytes, as a rule UTF-8.
    Text(Vec<u8>),
    /// The bytes of a UUID.
    Uuid([u8; 16]),
}

/// As [`VertexId`], borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id<'a> {
    /// A number.
    Integer(u64),
    /// A number of a graph where some are negative.
    Signed(i64),
    /// Bytes, as a rule UTF-8.
    Text(&'a [u8]),
    /// The bytes of a UUID.
    Uuid([u8; 16]),
}

impl Id<'_> {
    /// A copy that stays.
    pub fn to_owned(self) -> VertexId {
        match self {
            Id::Integer(id) => VertexId::Integer(id),
            Id::Signed(id) => VertexId::Signed(id),
            Id::Text(id) => VertexId::Text(id.to_vec()),
            Id::Uuid(id) => VertexId::Uuid(id),
        }
    }
}

impl VertexId {
    /// Borrows it.
    pub fn as_id(&self) -> Id<'_> {
        match self {
            VertexId::Integer(id) => Id::Integer(*id),
            VertexId::Signed(id) => Id::Signed(*id),
            VertexId::Text(id) => Id::Text(id),
            VertexId::Uuid(id) => Id::Uuid(*id),
        }
    }
}

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_id().fmt(f)
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Integer(id) => id.fmt(f),
            Id::Signed(id) => id.fmt(f),
            Id::Text(id) => String::from_utf8_lossy(id).fmt(f),
            Id::Uuid(id) => f.write_str(&String::from_utf8_lossy(&uuid_text(*id))),
        }
    }
}

/// Places of the hyphens in the text of a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The text of a UUID: 36 characters, such as `00112233-4455-6677-8899-aabbccddeeff`.
pub fn uuid_text(uuid: [u8; 16]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    let places = (0..text.len()).filter(|place| !HYPHENS.contains(place));
    let digits = uuid.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (place, digit) in places.zip(digits) {
        text[place] = b"0123456789abcdef"[usize::from(digit)];
    }
    text
}

/// The bytes of a UUID from its text, with digits of either case; `None` if it is no such text.
pub fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.try_into().ok()?;
    let mut digits = text.iter().enumerate().filter_map(|(place, byte)| {
        let is_hyphen = HYPHENS.contains(&place);
        match (is_hyphen, (*byte as char).to_digit(16)) {
            (true, _) => (*byte != b'-').then_some(None),
            (false, digit) => Some(digit),
        }
    });
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = (digits.next()?? << 4 | digits.next()??) as u8;
    }
    digits.next().is_none().then_some(uuid)
}

impl From<&str> for VertexId {
    fn from(id: &str) -> VertexId {
        VertexId::Text(id.into())
    }
}

impl From<u64> for VertexId {
    fn from(id: u64) -> VertexId {
        VertexId::Integer(id)
    }
}

impl From<i64> for VertexId {
    fn from(id: i64) -> VertexId {
        VertexId::Signed(id)
    }
}

/// Any integer literal is an id.
impl From<i32> for VertexId {
    fn from(id: i32) -> VertexId {
        VertexId::Signed(id.into())
    }
}

pub(crate) const IDS: FileId = FileId::new(FileSide::Forward, FileKind::Ids, 0);
