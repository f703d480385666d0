//! Counts of arcs by range of vertex id, gathered while the edges are read.

use std::io::{self, Write};

use graphmill_storage::{Buffer, MemoryBudget, RecordReader, RecordWriter, StorageError, corrupt};

use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::options::{ImportOptions, SelfLoops};

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

/// Returns the ends of the granules of the ids below `span`, from 0 on.
pub(crate) fn granule_ends(span: u64) -> Vec<u64> {
    let width = 1u64 << granule_shift(span);
    let granules = 0..=span.div_ceil(width);
    granules
        .map(|granule| granule.saturating_mul(width).min(span))
        .collect()
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
    pub(crate) fn merge(&mut self, other: &mut Self, id_max: u64) {
        self.grow(id_max);
        other.grow(id_max);
        // Nothing is counted beyond the greatest id.
        let granules = (id_max >> self.shift) as usize + 1;
        let (to, from) = (self.counts.typed_mut::<u64>(), other.counts(granules));
        for (to, from) in to.iter_mut().zip(from) {
            *to += from;
        }
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

/// Counts of arcs by range of their destinations, and by range of their sources if asked for.
#[derive(Debug)]
pub(crate) struct ArcHistograms {
    pub(crate) arcs_in: RangeHistogram,
    pub(crate) arcs_out: Option<RangeHistogram>,
}

impl ArcHistograms {
    /// Bytes of the budget that they take.
    pub(crate) fn bytes(reverse: bool) -> u64 {
        let histograms = if reverse { 2 } else { 1 };
        (histograms * GRANULES_MAX * size_of::<u64>()) as u64
    }

    /// Empty histograms, leased from `budget`; arcs are counted by source too if `reverse`.
    pub(crate) fn new(budget: &MemoryBudget, reverse: bool) -> Result<Self, StorageError> {
        let arcs_in = RangeHistogram::new(budget)?;
        let arcs_out = reverse.then(|| RangeHistogram::new(budget)).transpose()?;
        Ok(Self { arcs_in, arcs_out })
    }

    fn sides(&mut self) -> impl Iterator<Item = &mut RangeHistogram> {
        [Some(&mut self.arcs_in), self.arcs_out.as_mut()]
            .into_iter()
            .flatten()
    }

    /// Grows the ranges to `id_max`.
    pub(crate) fn grow(&mut self, id_max: u64) {
        self.sides().for_each(|counts| counts.grow(id_max));
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, mut other: Self, id_max: u64) {
        let sides = self.sides().zip(other.sides());
        sides.for_each(|(sum, counts)| sum.merge(counts, id_max));
    }

    /// Adds up the counts of all ranks, which have the same range of ids.
    pub(crate) fn add_up(&mut self, comm: &ImportCommunicator<'_>) -> Result<(), IngestError> {
        self.sides()
            .try_for_each(|counts| comm.sum_elementwise(counts.counters().0))
    }

    /// Counts the arcs of `edges`; returns how many edges are self-loops.
    pub(crate) fn count(&mut self, edges: &[(u64, u64)], options: &ImportOptions) -> u64 {
        let (both_ways, self_loops) = (!options.directed, options.self_loops);
        let loops = count_arcs(edges, &mut self.arcs_in, both_ways, self_loops, |edge| {
            edge.1
        });
        if let Some(counts) = &mut self.arcs_out {
            count_arcs(edges, counts, false, self_loops, |edge| edge.0);
        }
        loops
    }
}

/// Counts the arcs of `edges` by destination; returns how many edges are self-loops.
fn count_arcs(
    edges: &[(u64, u64)],
    counts: &mut RangeHistogram,
    both_ways: bool,
    self_loops: SelfLoops,
    end: impl Fn(&(u64, u64)) -> u64,
) -> u64 {
    let (counts, shift) = counts.counters();
    let mut loops = 0;
    let mask = counts.len() - 1;
    let kept = u64::from(self_loops == SelfLoops::Keep);
    for edge in edges {
        let is_loop = u64::from(edge.0 == edge.1);
        loops += is_loop;
        if both_ways {
            // Two arcs, or one for a self-loop.
            counts[(edge.0 >> shift) as usize & mask] += 1 - is_loop;
            counts[(edge.1 >> shift) as usize & mask] += 1 - is_loop + (is_loop & kept);
        } else {
            counts[(end(edge) >> shift) as usize & mask] += 1 - is_loop + (is_loop & kept);
        }
    }
    loops
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
        let mut other = RangeHistogram::new(&budget).unwrap();
        fast.merge(&mut other, id_max);
        assert_eq!(fast.counts(GRANULES_MAX).iter().sum::<u64>(), 1000);
    }
}
