//! Names of the vertices that are values: each is looked up once for many rows, in the order of ids, so that a page of ids is gone
//! through once.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use graphmill_engine::Bits;
use graphmill_graph::{FormatError, Id, IdCursor, IdKind, TEXT_ID_BYTES_MAX};
use graphmill_raw::prefetch;
use graphmill_storage::Lease;

use crate::error::Error;
use crate::result::encode::{EncodePool, EncodeScratch, EncodeTask, Encoder};
use crate::result::rows::{GROUP_ROWS, ResultRows, RowBlock};
use crate::result::sizes::{BLOCK_ROWS, NAMES_BYTES, OUTPUT_BYTES};

/// Rows whose names have room there however long they are.
pub(super) const ROWS_LEAST: u64 = NAMES_BYTES / (TEXT_ID_BYTES_MAX as u64 + 16);
/// Rows for which a pass over all ids takes less time than look-ups for each group.
const ROWS_AT_ONCE: u64 = if cfg!(test) {
    BLOCK_ROWS
} else {
    2 * GROUP_ROWS
};
/// Ids whose lengths are taken for the length of all.
const SAMPLE: u64 = 64;
/// Bytes for a few names that are longer than most.
const SLACK_BYTES: u64 = 256 * TEXT_ID_BYTES_MAX as u64;
/// Names that a worker looks up at a time.
pub(super) const STRETCH: u64 = 1 << 14;
/// Buckets of [`Distinct`], at most.
const BUCKETS_MAX: u64 = 1 << 16;
/// Ranks of a [`RankSet`] whose names a worker looks up at a time.
const RANKS: u64 = 1 << 18;

/// Distinct vertices in ascending order of ranks, with a way to find the place of one.
pub(super) struct Distinct {
    pub(super) ranks: Vec<u64>,
    places: OrdinalIndex,
}

/// Where a rank is among others in ascending order.
enum OrdinalIndex {
    Bits(RankSet),
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
            let mut set = RankSet::new(vertices);
            for rank in ranks.drain(..) {
                set.insert(rank);
            }
            set.count();
            for (number, (word, _)) in (0_u64..).zip(&set.words) {
                Bits(*word).for_each(|bit| ranks.push(number * 64 + bit as u64));
            }
            let places = OrdinalIndex::Bits(set);
            return Distinct { ranks, places };
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks.truncate(ranks.partition_point(|rank| *rank < vertices));
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
        self.places.place(&self.ranks, rank)
    }

    /// Has the place of a rank on its way into the cache.
    #[inline]
    pub(super) fn prefetch(&self, rank: u64) {
        if let OrdinalIndex::Bits(set) = &self.places {
            prefetch(&set.words, (rank / 64) as usize);
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

impl OrdinalIndex {
    /// The place of a rank among `ranks`, which a set does not need.
    #[inline]
    fn place(&self, ranks: &[u64], rank: u64) -> Option<usize> {
        match self {
            OrdinalIndex::Bits(set) => set.place(rank),
            OrdinalIndex::Buckets(starts, low_bits) => {
                let bucket = (rank >> low_bits) as usize;
                let start = *starts.get(bucket)? as usize;
                let found = ranks[start..*starts.get(bucket + 1)? as usize].binary_search(&rank);
                found.ok().map(|place| start + place)
            }
        }
    }
}

/// A set of ranks as bits.
struct RankSet {
    /// Of each 64 ranks which are there, and how many come before.
    words: Vec<(u64, u32)>,
    len: u64,
}

impl RankSet {
    /// Bytes of a set of some vertices.
    fn bytes(vertices: u64) -> u64 {
        vertices.div_ceil(64) * size_of::<(u64, u32)>() as u64
    }

    fn new(vertices: u64) -> RankSet {
        RankSet {
            words: vec![(0, 0); vertices.div_ceil(64) as usize],
            len: 0,
        }
    }

    #[inline]
    fn insert(&mut self, rank: u64) {
        if let Some((word, _)) = self.words.get_mut((rank / 64) as usize) {
            self.len += u64::from(*word >> (rank % 64) & 1 == 0);
            *word |= 1 << (rank % 64);
        }
    }

    /// Counts the ranks before each word, once all are there.
    fn count(&mut self) {
        let mut count = 0;
        for (word, before) in &mut self.words {
            *before = count;
            count += word.count_ones();
        }
    }

    #[inline]
    fn place(&self, rank: u64) -> Option<usize> {
        let (word, before) = self.words.get((rank / 64) as usize)?;
        let bit = 1_u64 << (rank % 64);
        let place = before + (word & (bit - 1)).count_ones();
        (word & bit != 0).then_some(place as usize)
    }

    /// The ranks of the set in a range, in order.
    fn in_range(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let words = range.start / 64..range.end.div_ceil(64).min(self.words.len() as u64);
        words.flat_map(move |number| {
            let range = range.clone();
            let bits = Bits(self.words[number as usize].0).map(move |bit| number * 64 + bit as u64);
            bits.filter(move |rank| range.contains(rank))
        })
    }
}

/// Names of the values of the rows of many groups, which one pass over the ids finds.
pub(super) struct NamesOfGroups {
    /// The ranks of the rows.
    pub(super) ranks: Range<u64>,
    pub(super) names: Arc<VertexNames>,
    _lease: Lease,
}

impl NamesOfGroups {
    /// Looks up the names for the rows from a rank on, as many as the free memory holds.
    ///
    /// `None` if those are fewer than [`ROWS_AT_ONCE`], and more rows are left.
    ///
    /// # Errors
    /// As for [`VertexNames::of`].
    pub(super) fn of(
        rows: &mut ResultRows<'_>,
        pool: &mut EncodePool,
        at: u64,
    ) -> Result<Option<NamesOfGroups>, Error> {
        let vertices = rows.graph.vertices();
        let Some((bytes_max, lease)) = rows.names_memory(RankSet::bytes(vertices)) else {
            return Ok(None);
        };
        let mut each = id_bytes(pool.ids(), rows.graph.named_vertices())?;
        loop {
            let most = (bytes_max / each).min(u32::MAX.into());
            let (mut set, mut values) = (RankSet::new(vertices), Vec::new());
            let (mut end, mut count) = (at, 0);
            while end < rows.ranks.end {
                let block = rows.block(end, BLOCK_ROWS)?;
                values.clear();
                rows.vertices(&block, &mut values)?;
                if set.len + values.len() as u64 > most {
                    break;
                }
                values.iter().for_each(|rank| set.insert(*rank));
                end = block.ranks.end;
                count += block.rows;
            }
            if end < rows.ranks.end && count < ROWS_AT_ONCE {
                return Ok(None);
            }
            set.count();
            let bytes = (set.len * each / 4 * 5 + SLACK_BYTES).min(bytes_max);
            if let Some(names) = VertexNames::of_set(rows, pool, set, bytes)? {
                return Ok(Some(NamesOfGroups {
                    ranks: at..end,
                    names: Arc::new(names),
                    _lease: lease,
                }));
            }
            // Those that were looked at are shorter than the others.
            each *= 2;
        }
    }

    /// True if it has the names of the values of these rows.
    pub(super) fn covers(&self, ranks: &Range<u64>) -> bool {
        self.ranks.start <= ranks.start && ranks.end <= self.ranks.end
    }
}

/// Returns about how many bytes an id takes in a list, by some of the first `vertices` ids.
fn id_bytes(ids: &mut IdCursor, vertices: u64) -> Result<u64, Error> {
    let (mut bytes, mut count) = (0, 0);
    for rank in (0..vertices).step_by((vertices / SAMPLE + 1) as usize) {
        ids.seek(rank);
        bytes += match ids.next()?.ok_or_else(fewer_ids)? {
            Id::Integer(_) | Id::Signed(_) => 8,
            Id::Uuid(_) => 16,
            Id::Text(id) => id.len() as u64 + 4,
        };
        count += 1;
    }
    Ok((bytes / count.max(1)).max(8))
}

/// Distinct vertices and their names.
pub(super) struct VertexNames {
    ranks: Vec<u64>,
    places: OrdinalIndex,
    names: NameList,
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
        let (wanted, next) = (LookUp::List(&distinct.ranks), distinct.stretches());
        let names = NameList::of(rows, pool, &wanted, next, bytes_max)?;
        let Distinct { ranks, places } = distinct;
        Ok(names.map(|names| VertexNames {
            ranks,
            places,
            names,
        }))
    }

    /// As [`VertexNames::of`], of a set.
    fn of_set(
        rows: &ResultRows<'_>,
        pool: &mut EncodePool,
        set: RankSet,
        bytes_max: u64,
    ) -> Result<Option<VertexNames>, Error> {
        let (mut at, vertices) = (0, rows.graph.vertices());
        let next = |task: &mut EncodeTask| {
            task.range = at..vertices.min(at + RANKS);
            at = task.range.end;
            Ok(!task.range.is_empty())
        };
        let names = NameList::of(rows, pool, &LookUp::Set(&set), next, bytes_max)?;
        Ok(names.map(|names| VertexNames {
            ranks: Vec::new(),
            places: OrdinalIndex::Bits(set),
            names,
        }))
    }

    /// Has the names of ranks on their way into the cache: the end of a later one, then the name.
    #[inline]
    pub(super) fn prefetch(&self, later: Option<&u64>, soon: Option<&u64>) {
        let place = |rank: &u64| self.places.place(&self.ranks, *rank);
        if let Some(place) = later.and_then(place) {
            prefetch(&self.names.ends, place);
        }
        if let Some(place) = soon.and_then(place) {
            self.names.prefetch(place);
        }
    }

    /// The name of the vertex of a rank; nothing of one that is not among them.
    #[inline]
    pub(super) fn of_rank(&self, rank: u64) -> Id<'_> {
        self.names.get(self.places.place(&self.ranks, rank))
    }
}

/// Names one behind the other.
struct NameList {
    kind: IdKind,
    bytes: Vec<u8>,
    /// Of texts, where each ends behind the start of its group.
    ends: Vec<u32>,
    /// Where each group of [`NAMES`] texts starts.
    starts: Vec<usize>,
}

/// Texts of a group, which have less than 4 GiB.
const NAMES: usize = 1 << 12;
const _: () = assert!(NAMES * TEXT_ID_BYTES_MAX < u32::MAX as usize);

impl NameList {
    /// Returns the names of the wanted vertices; `None` if they have more than `bytes_max` bytes.
    fn of(
        rows: &ResultRows<'_>,
        pool: &mut EncodePool,
        wanted: &LookUp<'_>,
        mut next: impl FnMut(&mut EncodeTask) -> Result<bool, Error>,
        bytes_max: u64,
    ) -> Result<Option<NameList>, Error> {
        let mut list = NameList {
            kind: rows.graph.id_kind(),
            bytes: Vec::with_capacity(bytes_max as usize),
            ends: Vec::new(),
            starts: Vec::new(),
        };
        let bytes = Cell::new(0);
        pool.run(
            wanted,
            |task| Ok(bytes.get() <= bytes_max && next(task)?),
            |task| {
                bytes.set(bytes.get() + task.out.len() as u64);
                if bytes.get() <= bytes_max {
                    list.append(&task.out);
                }
                Ok(())
            },
        )?;
        Ok((bytes.get() <= bytes_max).then_some(list))
    }

    /// Adds names that were written by [`LookUp`].
    fn append(&mut self, mut bytes: &[u8]) {
        if self.kind != IdKind::Text {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        while let Some((length, rest)) = bytes.split_first_chunk() {
            if self.ends.len().is_multiple_of(NAMES) {
                self.starts.push(self.bytes.len());
            }
            let length = u32::from_le_bytes(*length) as usize;
            let (text, rest) = rest.split_at(length.min(rest.len()));
            self.bytes.extend_from_slice(text);
            let start = self.starts.last().copied().unwrap_or_default();
            self.ends.push((self.bytes.len() - start) as u32);
            bytes = rest;
        }
    }

    /// The name at a place, or nothing.
    #[inline]
    fn get(&self, place: Option<usize>) -> Id<'_> {
        let word = || place.and_then(|place| self.bytes.as_chunks().0.get(place));
        match self.kind {
            IdKind::Dense | IdKind::Integer => {
                Id::Integer(word().map_or(0, |id| u64::from_le_bytes(*id)))
            }
            IdKind::Signed => Id::Signed(word().map_or(0, |id| i64::from_le_bytes(*id))),
            IdKind::Uuid => {
                let id = place.and_then(|place| self.bytes.as_chunks().0.get(place));
                Id::Uuid(id.copied().unwrap_or_default())
            }
            IdKind::Text => Id::Text(place.and_then(|place| self.text(place)).unwrap_or_default()),
        }
    }

    #[inline]
    fn prefetch(&self, place: usize) {
        if let (Some(of_group), Some(end)) = (self.starts.get(place / NAMES), self.ends.get(place))
        {
            prefetch(&self.bytes, (of_group + *end as usize).saturating_sub(1));
        }
    }

    #[inline]
    fn text(&self, place: usize) -> Option<&[u8]> {
        let (of_group, end) = (self.starts.get(place / NAMES)?, self.ends.get(place)?);
        let start = match place % NAMES {
            0 => 0,
            _ => *self.ends.get(place - 1)?,
        };
        self.bytes
            .get(of_group + start as usize..of_group + *end as usize)
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
enum LookUp<'a> {
    /// Of these ranks; a task has places among them.
    List(&'a [u64]),
    /// Of a set; a task has ranks.
    Set(&'a RankSet),
}

impl LookUp<'_> {
    /// Writes names from where a task continues, as long as `put` has room.
    fn each(
        &self,
        task: &EncodeTask,
        mut put: impl FnMut(u64) -> Result<bool, Error>,
    ) -> Result<u64, Error> {
        let range = task.next..task.range.end;
        match self {
            LookUp::List(ranks) => {
                for place in range.clone() {
                    if !put(ranks[place as usize])? {
                        return Ok(place + 1);
                    }
                }
            }
            LookUp::Set(set) => {
                for rank in set.in_range(range.clone()) {
                    if !put(rank)? {
                        return Ok(rank + 1);
                    }
                }
            }
        }
        Ok(range.end)
    }
}

impl Encoder for LookUp<'_> {
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error> {
        let mut out = std::mem::take(&mut task.out);
        task.next = self.each(task, |rank| {
            lane.ids.seek(rank);
            match lane.ids.next()?.ok_or_else(fewer_ids)? {
                Id::Integer(id) => out.extend(id.to_le_bytes()),
                Id::Signed(id) => out.extend(id.to_le_bytes()),
                Id::Text(id) => {
                    out.extend((id.len() as u32).to_le_bytes());
                    out.extend_from_slice(id);
                }
                Id::Uuid(id) => out.extend(id),
            }
            Ok(out.len() < OUTPUT_BYTES)
        })?;
        task.out = out;
        Ok(task.next == task.range.end)
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
