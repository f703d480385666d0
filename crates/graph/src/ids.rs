//! The dictionary between vertex ids and their ranks in ascending order, on disk in pages of 64 KiB. Ranks are indices unless the
//! graph has an order of its own.
//!
//! In memory there is only the first id of every page. Invariants: ids ascend strictly; a page needs no other page.

pub(crate) mod cursor;
pub(crate) mod index;
pub(crate) mod page;
pub(crate) mod verify;
pub(crate) mod writer;

use std::fmt;

use crate::error::FormatError;
use crate::frame_reader::FrameReader;
use crate::frames::{FRAME_BYTES, FileId, FileKind, Side};
use crate::meta::IdKind;
use crate::stored::StoredGraph;

pub use cursor::IdCursor;
pub(crate) use index::{Ids, index_bytes};
pub(crate) use verify::verify;
pub use writer::{IdsSummary, IdsWriter};

/// Bytes of a text id, at most.
pub const TEXT_ID_BYTES_MAX: usize = 4096;
/// Ids between two that are stored whole.
const RESTART: u32 = 64;
/// The sign bit, which is turned in stored integers that may be negative: so they have the order of unsigned ones.
const SIGN: u64 = 1 << 63;
const PAGE: usize = FRAME_BYTES as usize;
const HEADER: usize = 16;

/// Bytes of the payloads of `ids` and `ids.index` for `count` integer ids below `range`, if they are spread evenly.
pub(crate) fn expected_bytes(count: u64, range: u64) -> [u64; 2] {
    if count == 0 {
        return [0; 2];
    }
    // Of gaps between ids those of 2^7 and more take a second byte, of 2^14 and more a third, and so on.
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
}

impl Id<'_> {
    /// A copy that stays.
    pub fn to_owned(self) -> VertexId {
        match self {
            Id::Integer(id) => VertexId::Integer(id),
            Id::Signed(id) => VertexId::Signed(id),
            Id::Text(id) => VertexId::Text(id.to_vec()),
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
        }
    }
}

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VertexId::Integer(id) => write!(f, "{id}"),
            VertexId::Signed(id) => write!(f, "{id}"),
            VertexId::Text(id) => write!(f, "{}", String::from_utf8_lossy(id)),
        }
    }
}

const IDS: FileId = FileId {
    side: Side::Forward,
    kind: FileKind::Ids,
    number: 0,
};

impl StoredGraph {
    /// The index of a vertex; `None` when there is none of that id.
    ///
    /// # Errors
    /// Reading fails.
    pub fn index_of(
        &self,
        reader: &mut FrameReader,
        id: &VertexId,
    ) -> Result<Option<u64>, FormatError> {
        match self.rank_of_id(reader, id)? {
            Some(rank) => Ok(Some(self.index_of_rank(reader, rank)?)),
            None => Ok(None),
        }
    }
    /// The rank of a vertex, its place in ascending order of ids; `None` when there is none of that id.
    ///
    /// # Errors
    /// Reading fails.
    pub fn rank_of_id(
        &self,
        reader: &mut FrameReader,
        id: &VertexId,
    ) -> Result<Option<u64>, FormatError> {
        let ids = self.ids();
        match (ids.kind, id) {
            (IdKind::Dense, VertexId::Integer(id)) => {
                return Ok(Some(*id).filter(|&id| id < self.vertices()));
            }
            (IdKind::Integer, VertexId::Integer(_))
            | (IdKind::Signed, VertexId::Signed(_))
            | (IdKind::Text, VertexId::Text(_)) => {}
            _ => return Ok(None),
        }
        let Some(page) = ids.page_of(id.as_id()) else {
            return Ok(None);
        };
        let found = ids
            .page(page, reader.frame(IDS, page as u64)?)
            .and_then(|page| page.index_of(id.as_id()));
        found.ok_or_else(|| self.broken_page(page as u64))
    }
    /// The id of the vertex with index `v`, which is less than |V|. Neighbours are cheap: their page is in the reader's
    /// cache.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn id_of(&self, reader: &mut FrameReader, v: u64) -> Result<VertexId, FormatError> {
        let rank = self.rank_of(reader, v)?;
        self.id_of_rank(reader, rank)
    }
    /// The id of the vertex of a rank, which is less than |V|.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn id_of_rank(&self, reader: &mut FrameReader, rank: u64) -> Result<VertexId, FormatError> {
        if rank >= self.vertices() {
            return Err(FormatError::misuse(format!(
                "vertex number {rank} of a graph of {} vertices",
                self.vertices()
            )));
        }
        let ids = self.ids();
        if ids.kind == IdKind::Dense {
            return Ok(VertexId::Integer(rank));
        }
        let page = ids.starts.partition_point(|&start| start <= rank) - 1;
        let found = ids
            .page(page, reader.frame(IDS, page as u64)?)
            .and_then(|page| page.id_of(rank));
        found.ok_or_else(|| self.broken_page(page as u64))
    }
    fn broken_page(&self, page: u64) -> FormatError {
        self.malformed(IDS, page * FRAME_BYTES, "a page of ids makes no sense")
    }
}
