//! Names of the vertices that are values: each is looked up once for many rows, in the order of ids, so that a page of ids is gone
//! through once.

use std::cell::Cell;
use std::ops::Range;

use graphmill_graph::{FormatError, Id, TEXT_ID_BYTES_MAX};

use graphmill_storage::Lease;

use crate::error::Error;
use crate::result::block::IdColumn;
use crate::result::encode::{EncodePool, EncodeScratch, EncodeTask, Encoder};
use crate::result::rows::{GROUP_ROWS, ResultRows, RowBlock};
use crate::result::sizes::{NAMES_BYTES, OUTPUT_BYTES};

/// Rows whose names have room there however long they are.
pub(super) const ROWS_LEAST: u64 = NAMES_BYTES / (TEXT_ID_BYTES_MAX as u64 + 16);
/// Names that a worker looks up at a time.
pub(super) const STRETCH: u64 = 1 << 14;
/// Buckets of [`Distinct`], at most.
const BUCKETS_MAX: u64 = 1 << 16;

/// Distinct vertices in ascending order of ranks, with a way to find the place of one.
pub(super) struct Distinct {
    pub(super) ranks: Vec<u64>,
    places: OrdinalIndex,
}

/// Where a rank is among others in ascending order.
enum OrdinalIndex {
    /// Of each 64 ranks which are there, and how many come before.
    Bits(Vec<(u64, u32)>),
    /// Where the ranks of each bucket begin and the last bucket ends, and the number of low bits.
    ///
    /// A rank shifted right by the low bits is its bucket number.
    Buckets(Vec<u32>, u32),
}

impl Distinct {
    /// Those that are values of the rows of some blocks.
    ///
    /// # Errors
    /// The values cannot be read.
    pub(super) fn of(rows: &mut ResultRows<'_>, blocks: &[RowBlock]) -> Result<Distinct, Error> {
        let count = blocks.iter().map(|block| block.rows).sum::<u64>();
        let mut ranks = Vec::with_capacity(count as usize);
        for block in blocks {
            rows.vertices(block, &mut ranks)?;
        }
        Ok(Distinct::new(ranks, rows.graph.vertices()))
    }

    fn new(mut ranks: Vec<u64>, vertices: u64) -> Distinct {
        // A bitmap is faster, where it has at most four times the size of the ranks.
        if vertices.div_ceil(64) <= ranks.len() as u64 * 2 {
            let mut bits = vec![(0_u64, 0_u32); vertices.div_ceil(64) as usize];
            for rank in ranks.drain(..) {
                if let Some((word, _)) = bits.get_mut((rank / 64) as usize) {
                    *word |= 1 << (rank % 64);
                }
            }
            for (number, (word, before)) in (0_u64..).zip(&mut bits) {
                *before = ranks.len() as u32;
                let mut left = *word;
                while left != 0 {
                    ranks.push(number * 64 + u64::from(left.trailing_zeros()));
                    left &= left - 1;
                }
            }
            let places = OrdinalIndex::Bits(bits);
            return Distinct { ranks, places };
        }
        ranks.sort_unstable();
        ranks.dedup();
        let highest_bit = (vertices / BUCKETS_MAX).checked_ilog2();
        let low_bits = highest_bit.map_or(0, |bit| bit + 1);
        let mut starts = Vec::with_capacity((vertices >> low_bits) as usize + 2);
        for (place, rank) in (0_u32..).zip(&ranks) {
            while starts.len() as u64 <= rank >> low_bits {
                starts.push(place);
            }
        }
        starts.push(ranks.len() as u32);
        let places = OrdinalIndex::Buckets(starts, low_bits);
        Distinct { ranks, places }
    }

    /// The place of a rank among them.
    #[inline]
    pub(super) fn place(&self, rank: u64) -> Option<usize> {
        match &self.places {
            OrdinalIndex::Bits(bits) => {
                let (word, before) = bits.get((rank / 64) as usize)?;
                let bit = 1_u64 << (rank % 64);
                let place = before + (word & (bit - 1)).count_ones();
                (word & bit != 0).then_some(place as usize)
            }
            OrdinalIndex::Buckets(starts, low_bits) => {
                let bucket = (rank >> low_bits) as usize;
                let start = *starts.get(bucket)? as usize;
                let ranks = &self.ranks[start..*starts.get(bucket + 1)? as usize];
                let found = ranks.binary_search(&rank);
                found.ok().map(|place| start + place)
            }
        }
    }

    /// Sets up tasks over stretches of them, one after the other.
    pub(super) fn stretches(&self) -> impl FnMut(&mut EncodeTask) -> Result<bool, Error> + use<> {
        let (mut at, count) = (0, self.ranks.len() as u64);
        move |task| {
            task.range = at..count.min(at + STRETCH);
            at = task.range.end;
            Ok(!task.range.is_empty())
        }
    }
}

/// Names of the values of the rows of many groups, which one pass over the ids finds.
pub(super) struct NamesOfGroups {
    /// The ranks of the rows.
    ranks: Range<u64>,
    pub(super) names: VertexNames,
    _lease: Lease,
}

impl NamesOfGroups {
    /// Looks up the names for the rows from a rank on, as many as the free memory holds.
    ///
    /// `None` if those are fewer than the rows of two groups.
    ///
    /// # Errors
    /// As for [`VertexNames::of`].
    pub(super) fn of(
        rows: &mut ResultRows<'_>,
        pool: &mut EncodePool,
        at: u64,
    ) -> Result<Option<NamesOfGroups>, Error> {
        let Some((mut most, bytes_max, lease)) = rows.groups_memory() else {
            return Ok(None);
        };
        while most >= 2 * GROUP_ROWS {
            let (mut blocks, mut end, mut count) = (Vec::new(), at, 0);
            while count < most {
                let group = rows.group(end, GROUP_ROWS.min(most - count))?;
                let Some(last) = group.last() else { break };
                end = last.ranks.end;
                count += group.iter().map(|block| block.rows).sum::<u64>();
                blocks.extend(group);
            }
            let distinct = Distinct::of(rows, &blocks)?;
            if let Some(names) = VertexNames::of(rows, pool, distinct, bytes_max)? {
                return Ok(Some(NamesOfGroups {
                    ranks: at..end,
                    names,
                    _lease: lease,
                }));
            }
            most /= 2;
        }
        Ok(None)
    }

    /// True if it has the names of the values of these rows.
    pub(super) fn covers(&self, ranks: &Range<u64>) -> bool {
        self.ranks.start <= ranks.start && ranks.end <= self.ranks.end
    }
}

/// Distinct vertices and their names.
pub(super) struct VertexNames {
    distinct: Distinct,
    labels: IdColumn,
}

impl VertexNames {
    /// Returns the names of vertices; `None` if they have more than `bytes_max` bytes.
    ///
    /// # Errors
    /// Ids cannot be read, or work is to stop.
    pub(super) fn of(
        rows: &ResultRows<'_>,
        pool: &mut EncodePool,
        distinct: Distinct,
        bytes_max: u64,
    ) -> Result<Option<VertexNames>, Error> {
        let mut labels = IdColumn::of(rows.graph.id_kind());
        let (bytes, mut next) = (Cell::new(0), distinct.stretches());
        pool.run(
            &LookUp(&distinct.ranks),
            |task| Ok(bytes.get() <= bytes_max && next(task)?),
            |task| {
                bytes.set(bytes.get() + task.out.len() as u64);
                if bytes.get() <= bytes_max {
                    append(&mut labels, &task.out);
                }
                Ok(())
            },
        )?;
        Ok((bytes.get() <= bytes_max).then_some(VertexNames { distinct, labels }))
    }

    /// The name of the vertex of a rank; nothing of one that is not among them.
    #[inline]
    pub(super) fn of_rank(&self, rank: u64) -> Id<'_> {
        let place = self.distinct.place(rank);
        match &self.labels {
            IdColumn::Integers(ids) => Id::Integer(place.map_or(0, |place| ids[place])),
            IdColumn::Signed(ids) => Id::Signed(place.map_or(0, |place| ids[place])),
            IdColumn::Texts(texts) => Id::Text(place.map_or(&[], |place| texts.get(place))),
            IdColumn::Uuids(ids) => Id::Uuid(place.map_or([0; 16], |place| ids[place])),
        }
    }
}

/// Returns the id of the vertex of a rank: the rank itself if the graph names its vertices so.
#[inline]
pub(super) fn id_of(names: Option<&VertexNames>, rank: u64) -> Id<'_> {
    names.map_or(Id::Integer(rank), |names| names.of_rank(rank))
}

/// A dictionary holds as many ids as there are vertices, of one kind.
pub(super) fn fewer_ids() -> Error {
    let what = "fewer ids than vertices".into();
    FormatError::Misuse { what }.into()
}

/// Writes names one after the other: numbers as 8 bytes, UUIDs as 16, text behind its length in 4.
struct LookUp<'a>(&'a [u64]);

impl Encoder for LookUp<'_> {
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error> {
        while task.next < task.range.end && task.out.len() < OUTPUT_BYTES {
            lane.ids.seek(self.0[task.next as usize]);
            match lane.ids.next()?.ok_or_else(fewer_ids)? {
                Id::Integer(id) => task.out.extend(id.to_le_bytes()),
                Id::Signed(id) => task.out.extend(id.to_le_bytes()),
                Id::Text(id) => {
                    task.out.extend((id.len() as u32).to_le_bytes());
                    task.out.extend_from_slice(id);
                }
                Id::Uuid(id) => task.out.extend(id),
            }
            task.next += 1;
        }
        Ok(task.next == task.range.end)
    }
}

/// Adds names that were written by [`LookUp`].
fn append(labels: &mut IdColumn, mut bytes: &[u8]) {
    match labels {
        IdColumn::Integers(ids) => {
            let numbers = bytes.as_chunks().0.iter();
            ids.extend(numbers.map(|id| u64::from_le_bytes(*id)));
        }
        IdColumn::Signed(ids) => {
            let numbers = bytes.as_chunks().0.iter();
            ids.extend(numbers.map(|id| i64::from_le_bytes(*id)));
        }
        IdColumn::Texts(texts) => {
            while let Some((length, rest)) = bytes.split_first_chunk() {
                let length = u32::from_le_bytes(*length) as usize;
                let (text, rest) = rest.split_at(length.min(rest.len()));
                texts.push(text);
                bytes = rest;
            }
        }
        IdColumn::Uuids(ids) => ids.extend(bytes.as_chunks().0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_names_map_to_every_place() {
        for (vertices, step) in [(1, 1), (500, 3), (70_000, 1), (1 << 40, 999_999_937)] {
            let ranks: Vec<u64> = (0..5000).map(|i| i * i * step % vertices).collect();
            let mut sorted = ranks.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let distinct = Distinct::new(ranks, vertices);
            assert_eq!(distinct.ranks, sorted);
            for (place, rank) in sorted.iter().enumerate() {
                assert_eq!(distinct.place(*rank), Some(place));
                let next = sorted.binary_search(&(rank + 1)).ok();
                assert_eq!(distinct.place(rank + 1), next);
            }
            assert_eq!(distinct.place(u64::MAX), None);
        }
        assert_eq!(Distinct::new(Vec::new(), 9).place(0), None);
    }
}
