//! Looks up the rank of an index, and the index of a rank.

use std::ops::Range;

use crate::error::FormatError;
use crate::file::page::DISK_PAGE_BYTES;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::vertex::order::{ORDER, Order, entry_bytes};

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
        reader: &mut PageCache,
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
        let misfit = || format!("ranks of batch {batch} into {places} places");
        fits.then_some(())
            .ok_or_else(|| FormatError::misuse(misfit()))
    }
    /// Calls `each` with the ranks of the vertices with those indices, in order.
    ///
    /// # Errors
    /// Reading fails.
    pub fn each_rank(
        &self,
        reader: &mut PageCache,
        indices: Range<u64>,
        each: impl FnMut(u64),
    ) -> Result<(), FormatError> {
        self.entries(reader, 0, indices, each)
    }
    /// The rank of the vertex with index `v`, which is less than |V|.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn rank_of(&self, reader: &mut PageCache, v: u64) -> Result<u64, FormatError> {
        let mut found = v;
        self.entries(reader, 0, v..v.saturating_add(1), |rank| found = rank)?;
        Ok(found)
    }
    /// The index of the vertex of a rank, which is less than |V|.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn index_of_rank(&self, reader: &mut PageCache, rank: u64) -> Result<u64, FormatError> {
        let (mut found, second) = (rank, self.vertices());
        let range = rank..rank.saturating_add(1);
        self.entries(reader, second, range, |index| found = index)?;
        Ok(found)
    }
    /// Calls `each` with a range of entries of the list whose first entry is number `first` of the file.
    pub(crate) fn entries(
        &self,
        reader: &mut PageCache,
        first: u64,
        range: Range<u64>,
        mut each: impl FnMut(u64),
    ) -> Result<(), FormatError> {
        let vertices = self.vertices();
        if range.end > vertices {
            let what = format!("vertices {range:?} of a graph of {vertices}");
            return Err(FormatError::misuse(what));
        }
        if self.order_file().is_none() {
            range.for_each(each);
            return Ok(());
        }
        let width = entry_bytes(vertices);
        let (mut at, end) = ((first + range.start) * width, (first + range.end) * width);
        while at < end {
            let page = at / DISK_PAGE_BYTES;
            let start = page * DISK_PAGE_BYTES;
            let bytes = reader.page_ahead(ORDER, page, (end - 1) / DISK_PAGE_BYTES)?;
            let to = (end - start).min(DISK_PAGE_BYTES);
            let part = bytes.get((at - start) as usize..to as usize);
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
                return Err(self.corrupt(ORDER, at, what));
            }
            at = start + DISK_PAGE_BYTES;
        }
        Ok(())
    }
}
