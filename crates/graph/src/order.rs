//! The order of vertices: which index the vertex of each id has, where that is not the order of ids.
//!
//! The *rank* of a vertex is its place in ascending order of ids. The file `order` has the ranks in order of index, then the
//! indices in order of rank: two permutations, each the inverse of the other. Without the file, ranks are indices.

pub(crate) mod verify;
pub(crate) mod writer;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::frame_reader::FrameReader;
use crate::frames::{FRAME_BYTES, FileId, FileKind, Side};
use crate::stored::StoredGraph;

pub(crate) use verify::verify;
pub use writer::OrderWriter;

/// The order in which vertices get their indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Ascending ids: the rank of a vertex is its index.
    #[default]
    Id,
    /// Descending out-degree, of equal ones ascending ids, dealt over the batches.
    Degree,
}

pub(crate) const ORDER: FileId = FileId {
    side: Side::Forward,
    kind: FileKind::Order,
    number: 0,
};

/// Bytes of an entry of either list of a graph of so many vertices.
pub(crate) fn entry_bytes(vertices: u64) -> u64 {
    if vertices <= 1 << 32 { 4 } else { 8 }
}

/// Bytes of both lists; none when there are too many vertices for any file.
pub(crate) fn payload_bytes(vertices: u64) -> Option<u64> {
    vertices.checked_mul(2 * entry_bytes(vertices))
}

impl StoredGraph {
    /// The order of its vertices.
    pub fn order(&self) -> Order {
        match self.order_file() {
            Some(_) => Order::Degree,
            None => Order::Id,
        }
    }
    /// The ranks of the vertices of a batch, in order of index; `out` has one place for each.
    ///
    /// # Errors
    /// Reading fails; a rank does not fit a `T`.
    pub fn ranks_of<T: TryFrom<u64>>(
        &self,
        reader: &mut FrameReader,
        batch: usize,
        out: &mut [T],
    ) -> Result<(), FormatError> {
        let range = self.batches().range(batch);
        let places = out.len() as u64;
        let mut out = out.iter_mut();
        let mut fits = places == range.end - range.start;
        self.each_rank(reader, range, |rank| {
            match (out.next(), T::try_from(rank)) {
                (Some(place), Ok(rank)) => *place = rank,
                _ => fits = false,
            }
        })?;
        if fits {
            return Ok(());
        }
        Err(FormatError::misuse(format!(
            "ranks of batch {batch} into {places} places"
        )))
    }
    /// Calls `each` with the ranks of the vertices with those indices, in order.
    ///
    /// # Errors
    /// Reading fails.
    pub fn each_rank(
        &self,
        reader: &mut FrameReader,
        indices: Range<u64>,
        each: impl FnMut(u64),
    ) -> Result<(), FormatError> {
        self.entries(reader, 0, indices, each)
    }
    /// The rank of the vertex with index `v`, which is less than |V|.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn rank_of(&self, reader: &mut FrameReader, v: u64) -> Result<u64, FormatError> {
        let mut found = v;
        self.entries(reader, 0, v..v.saturating_add(1), |rank| found = rank)?;
        Ok(found)
    }
    /// The index of the vertex of a rank, which is less than |V|.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn index_of_rank(&self, reader: &mut FrameReader, rank: u64) -> Result<u64, FormatError> {
        let (mut found, second) = (rank, self.vertices());
        self.entries(reader, second, rank..rank.saturating_add(1), |index| {
            found = index
        })?;
        Ok(found)
    }
    /// Calls `each` with a range of entries of the list whose first entry is number `first` of the file.
    fn entries(
        &self,
        reader: &mut FrameReader,
        first: u64,
        range: Range<u64>,
        mut each: impl FnMut(u64),
    ) -> Result<(), FormatError> {
        let vertices = self.vertices();
        if range.end > vertices {
            return Err(FormatError::misuse(format!(
                "vertices {range:?} of a graph of {vertices}"
            )));
        }
        if self.order_file().is_none() {
            range.for_each(each);
            return Ok(());
        }
        let width = entry_bytes(vertices);
        let (mut at, end) = ((first + range.start) * width, (first + range.end) * width);
        while at < end {
            let frame = at / FRAME_BYTES;
            let start = frame * FRAME_BYTES;
            let bytes = reader.frame_ahead(ORDER, frame, (end - 1) / FRAME_BYTES)?;
            let part = bytes.get((at - start) as usize..(end - start).min(FRAME_BYTES) as usize);
            let part = part.ok_or_else(|| FormatError::misuse("the order ends early"))?;
            let mut most = 0;
            let mut entry = |entry: u64| {
                most = most.max(entry);
                each(entry);
            };
            if width == 4 {
                let entries = part.as_chunks().0.iter();
                entries.for_each(|bytes| entry(u32::from_le_bytes(*bytes).into()));
            } else {
                let entries = part.as_chunks().0.iter();
                entries.for_each(|bytes| entry(u64::from_le_bytes(*bytes)));
            }
            if most >= vertices {
                let what = format!("it names vertex {most} of {vertices}");
                return Err(self.malformed(ORDER, at, what));
            }
            at = start + FRAME_BYTES;
        }
        Ok(())
    }
}
