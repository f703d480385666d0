//! Counts of arcs by range of vertex id, gathered while the edges are read.

use std::io::{self, Write};

use graphmill_storage::{Buffer, MemoryBudget, RecordReader, RecordWriter, StorageError, corrupt};

use crate::comm::ImportCommunicator;
use crate::error::IngestError;

/// Granules, at most: a span of ids is cut in 16,385 to 32,768 of them, or in one an id if shorter.
///
/// If every fourth id occurs, a granule has at most the 4,096th part of the vertices, and so is never more than a batch.
pub(crate) const GRANULES_MAX: usize = 1 << 15;

/// Number of bits that hold every value below `span`.
pub(crate) fn bits_of(span: u64) -> u32 {
    u64::BITS - span.saturating_sub(1).leading_zeros()
}

/// The width of a granule, as a power of two, of the ids below `span`.
pub(crate) fn granule_shift(span: u64) -> u32 {
    bits_of(span).saturating_sub(GRANULES_MAX.trailing_zeros())
}

/// Counts of arcs by range of vertex id; one a worker, merged at the end.
#[derive(Debug)]
pub(crate) struct RangeHistogram {
    counts: Buffer,
    shift: u32,
}

impl RangeHistogram {
    /// An empty histogram, leased from `budget`.
    pub(crate) fn new(budget: &MemoryBudget) -> Result<Self, StorageError> {
        let counts = budget.buffer(
            "counts of edges by range of ids",
            GRANULES_MAX * size_of::<u64>(),
        )?;
        Ok(Self { counts, shift: 0 })
    }

    /// Grows the range to `id_max`; counts stay exact, since ranges only ever join.
    pub(crate) fn grow(&mut self, id_max: u64) {
        let shift = granule_shift(id_max.saturating_add(1));
        if shift <= self.shift {
            return;
        }
        let by = shift - self.shift;
        let counts = self.counts.typed_mut::<u64>();
        for from in 0..counts.len() {
            let count = std::mem::take(&mut counts[from]);
            counts[from.checked_shr(by).unwrap_or(0)] += count;
        }
        self.shift = shift;
    }

    /// Returns the counters and the shift that takes an id to its counter, for a hot loop.
    ///
    /// An id beyond the range of the last [`grow`](Self::grow) would be counted wrong.
    pub(crate) fn counters(&mut self) -> (&mut [u64], u32) {
        (self.counts.typed_mut::<u64>(), self.shift)
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, mut other: Self, id_max: u64) {
        self.grow(id_max);
        other.grow(id_max);
        let (to, from) = (self.counts.typed_mut::<u64>(), other.counts.typed::<u64>());
        for (to, from) in to.iter_mut().zip(from) {
            *to += from;
        }
    }

    /// Adds up the counts of all ranks, which have the same range of ids.
    pub(crate) fn add_up(&mut self, comm: &ImportCommunicator<'_>) -> Result<(), IngestError> {
        comm.sum_elementwise(self.counts.typed_mut())
    }

    /// Writes the counts.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        out.put_u32(self.shift)?;
        out.put_u64s(self.counts.typed::<u64>().iter().copied())
    }

    /// Reads the counts that [were encoded](RangeHistogram::encode).
    pub(crate) fn decode(budget: &MemoryBudget, from: &mut RecordReader<'_>) -> io::Result<Self> {
        let mut histogram = Self::new(budget).map_err(io::Error::other)?;
        histogram.shift = from.word()?.min(u64::BITS - 1);
        let counts = histogram.counts.typed_mut::<u64>();
        if from.count(size_of::<u64>() as u64)? != counts.len() as u64 {
            return Err(corrupt());
        }
        for count in counts {
            *count = from.number()?;
        }
        Ok(histogram)
    }

    /// The counts of the first `granules` ranges.
    pub(crate) fn counts(&self, granules: usize) -> &[u64] {
        let counts = self.counts.typed::<u64>();
        &counts[..granules.min(counts.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> MemoryBudget {
        MemoryBudget::new(16 << 20)
    }

    #[test]
    fn bit_width_holds_every_value_below_the_span() {
        for (span, bits) in [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 3),
            (1 << 32, 32),
            (u64::MAX, 64),
        ] {
            assert_eq!(bits_of(span), bits, "{span}");
        }
    }

    #[test]
    fn granule_depends_on_the_span_only() {
        for (span, shift) in [
            (0, 0),
            (1, 0),
            (32_768, 0),
            (32_769, 1),
            (1 << 16, 1),
            ((1 << 16) + 1, 2),
            (u64::MAX, 49),
        ] {
            assert_eq!(granule_shift(span), shift, "{span}");
            assert!(span.div_ceil(1 << shift) <= GRANULES_MAX as u64);
        }
    }

    #[test]
    fn histogram_does_not_depend_on_growth_order() {
        let budget = budget();
        let ids: Vec<u64> = (0..1000u64).map(|i| i * i * i % (1 << 40)).collect();
        let id_max = ids.iter().copied().max().unwrap();
        let mut slow = RangeHistogram::new(&budget).unwrap();
        for &id in &ids {
            slow.grow(id);
            let (counts, shift) = slow.counters();
            counts[(id >> shift) as usize] += 1;
        }
        let mut fast = RangeHistogram::new(&budget).unwrap();
        fast.grow(id_max);
        let (counts, shift) = fast.counters();
        for &id in &ids {
            counts[(id >> shift) as usize] += 1;
        }
        assert_eq!(slow.counts(GRANULES_MAX), fast.counts(GRANULES_MAX));
        let other = RangeHistogram::new(&budget).unwrap();
        fast.merge(other, id_max);
        assert_eq!(fast.counts(GRANULES_MAX).iter().sum::<u64>(), 1000);
    }
}
