//! Where vertex indices are cut into batches, and batches gathered into column files.
//!
//! 1. The scan counts arcs by range of vertex id ([`RangeHistogram`]); the range doubles when the largest id grows.
//! 2. A *granule* is such a range, its width fixed by the span of the ids alone: the finest place for a cut.
//! 3. [`RangeCounts::batches`] cuts greedily on granules under two caps, [`RangeCounts::files`] gathers runs of batches.
//!
//! Everything here follows from counts of the input alone, never from threads or memory, so that the same input gives
//! the same graph on every machine.

use std::io::{self, Write};
use std::ops::Range;

use graphmill_storage::{RecordReader, RecordWriter, corrupt};

use super::histogram::{bits_of, granule_ends};

/// Vertices of a batch at most, until there would be more than [`BATCHES_AIM`] batches.
const BATCH_VERTICES: u64 = 1 << 20;

/// The same if edges have vertices: there are many, each has two arcs, and its row is large.
const BATCH_EDGE_VERTICES: u64 = 1 << 16;

/// Number of batches at which their vertex cap starts to double.
const BATCHES_AIM: u64 = 4096;

/// Returns the in-edges that close a column file, given `arcs` in all.
///
/// There are enough files for ranks to share, and never many.
fn file_arcs(arcs: u64) -> u64 {
    (arcs / 32).clamp(1 << 18, 1 << 22)
}

/// Bits of a sort key: (destination batch of the file, source, destination in its batch).
const KEY_BITS: u32 = 64;

/// True if sort keys hold the arcs of `vertices` vertices, in batches of `size` vertices if given.
///
/// Batches that are also cut by their arcs are not narrower where it matters: only few of them are.
pub(crate) fn keys_hold(vertices: u64, size: Option<u64>) -> bool {
    let span = size.unwrap_or_else(|| batch_vertices_max(vertices, false));
    bits_of(vertices) + bits_of(span.min(vertices)) <= KEY_BITS
}

/// The in-edges a batch may receive, of `arcs` in all, unless a single granule has more.
pub(crate) fn batch_arcs_max(arcs: u64) -> u64 {
    (1u64 << 24).min((1u64 << 20).max(arcs / 16)).max(arcs / 64)
}

/// The vertices a batch may hold, of `vertices` in all; `edge_vertices` says that most stand for edges.
pub(crate) fn batch_vertices_max(vertices: u64, edge_vertices: bool) -> u64 {
    let mut cap = match edge_vertices {
        true => BATCH_EDGE_VERTICES,
        false => BATCH_VERTICES,
    };
    while vertices / cap > BATCHES_AIM {
        cap *= 2;
    }
    cap
}

/// Vertex indices with counts of arcs, by granule.
///
/// `first[g]..first[g + 1]` are the indices of granule `g`, which has `arcs[g]` arcs.
#[derive(Clone, Debug)]
pub(crate) struct RangeCounts {
    first: Vec<u64>,
    arcs: Vec<u64>,
}

impl RangeCounts {
    /// `first` has one more entry than `arcs`, ascends from 0 and ends with the number of vertices.
    pub(crate) fn new(first: Vec<u64>, arcs: Vec<u64>) -> Self {
        debug_assert_eq!(first.len(), arcs.len() + 1);
        Self { first, arcs }
    }

    /// Writes the counts.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        out.put_u64s(self.first.iter().copied())?;
        out.put_u64s(self.arcs.iter().copied())
    }

    /// Reads the counts of `vertices` vertices that [were encoded](RangeCounts::encode).
    pub(crate) fn decode(vertices: u64, from: &mut RecordReader<'_>) -> io::Result<Self> {
        let (first, arcs) = (from.numbers()?, from.numbers()?);
        let is_sound = first.len() == arcs.len() + 1
            && first.first() == Some(&0)
            && first.last() == Some(&vertices)
            && first.is_sorted();
        is_sound.then(|| Self::new(first, arcs)).ok_or_else(corrupt)
    }

    /// All arcs.
    pub(crate) fn arcs(&self) -> u64 {
        self.arcs.iter().sum()
    }

    /// All vertices.
    pub(crate) fn vertices(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// Adds `vertices` vertices with one arc each after the others.
    pub(crate) fn add_vertices(&mut self, vertices: u64) {
        let before = self.vertices();
        for ends in granule_ends(vertices).windows(2) {
            self.first.push(before + ends[1]);
            self.arcs.push(ends[1] - ends[0]);
        }
    }

    /// Returns the boundaries of the batches, 0, ..., |V|. With `size`, each batch has that many vertices.
    ///
    /// `edge_vertices` says that the last vertices stand for edges.
    pub(crate) fn batches(&self, size: Option<u64>, edge_vertices: bool) -> Vec<u64> {
        let vertices = self.vertices();
        let mut cuts = vec![0];
        if let Some(size) = size {
            let size = size.max(1);
            cuts.extend((1..vertices.div_ceil(size)).map(|b| b * size));
        } else {
            let arcs_max = batch_arcs_max(self.arcs());
            let vertices_max = batch_vertices_max(vertices, edge_vertices);
            let (mut start, mut arcs, mut granule) = (0, 0, 0);
            while let (Some(&[from, to]), Some(&count)) = (
                self.first[granule..].first_chunk::<2>(),
                self.arcs.get(granule),
            ) {
                let full = to - start > vertices_max || arcs + count > arcs_max;
                if from < to && from > start && full {
                    // Back to a power of two where that is near.
                    start = self.power_of_two(start, from);
                    granule = self.first.partition_point(|first| *first < start);
                    cuts.push(start);
                    arcs = 0;
                    continue;
                }
                arcs += count;
                granule += 1;
            }
        }
        if vertices > 0 {
            cuts.push(vertices);
        }
        cuts
    }

    /// Returns the end of the batch that begins at `start` and could extend to `end`.
    ///
    /// A batch slightly wider than a power of two would pay one more bit for every destination, and twice the accumulators.
    fn power_of_two(&self, start: u64, end: u64) -> u64 {
        let power = 1u64 << (end - start).ilog2();
        if end - start - power > power / 4 {
            return end;
        }
        let after = self.first.partition_point(|first| *first <= start + power);
        let cut = after.checked_sub(1).map_or(end, |at| self.first[at]);
        // Granules so wide that none ends near are cut where they are.
        if cut - start > power / 2 { cut } else { end }
    }

    /// Returns the owner of each file of batches: runs of files with about the same in-edges a rank.
    pub(crate) fn owners(&self, cuts: &[u64], files: &[Range<usize>], ranks: usize) -> Vec<usize> {
        let all = u128::from(self.arcs()).max(1);
        let (mut below, mut from) = (self.arcs_below(), 0);
        let owner = |file: &Range<usize>| {
            let to = below(cuts[file.end]);
            let middle = u128::from(std::mem::replace(&mut from, to)) + u128::from(to);
            ((middle * ranks as u128 / (2 * all)) as usize).min(ranks - 1)
        };
        files.iter().map(owner).collect()
    }

    /// Returns a function from ascending indices to the in-edges of the vertices below each index.
    ///
    /// In-edges within a granule count in proportion.
    fn arcs_below(&self) -> impl FnMut(u64) -> u64 + '_ {
        let (mut granule, mut whole) = (0, 0u64);
        move |index| {
            while granule < self.arcs.len() && self.first[granule + 1] <= index {
                whole += self.arcs[granule];
                granule += 1;
            }
            if granule == self.arcs.len() || self.first[granule] >= index {
                return whole;
            }
            let (from, to) = (self.first[granule], self.first[granule + 1]);
            let arcs = u128::from(self.arcs[granule]);
            whole + (arcs * u128::from(index - from) / u128::from(to - from)) as u64
        }
    }

    /// Returns the runs of batches that share a column file.
    ///
    /// A file is closed at 2^22 in-edges, or fewer in a small graph, or before the sort keys of one more batch exceed 64 bits.
    /// In-edges of a batch that ends inside a granule count in proportion.
    ///
    /// `None` if the vertices are too many for the keys of even one batch.
    pub(crate) fn files(&self, cuts: &[u64]) -> Option<Vec<Range<usize>>> {
        let key_bits = bits_of(self.vertices()) + destination_bits(cuts);
        let batches_max =
            1usize.checked_shl(KEY_BITS.checked_sub(key_bits)?.min(usize::BITS - 2))?;
        let file_arcs = file_arcs(self.arcs());
        let mut files = Vec::new();
        let mut start = 0;
        let mut arcs_before = 0;
        let mut below = self.arcs_below();
        for batch in 0..cuts.len().saturating_sub(1) {
            let before = below(cuts[batch + 1]);
            let full = before - arcs_before >= file_arcs || batch + 1 - start >= batches_max;
            if full || batch + 2 == cuts.len() {
                files.push(start..batch + 1);
                (start, arcs_before) = (batch + 1, before);
            }
        }
        Some(files)
    }
}

/// Bits of a destination relative to its batch, enough for the widest batch.
pub(crate) fn destination_bits(cuts: &[u64]) -> u32 {
    let spans = cuts.windows(2).map(|cut| cut[1] - cut[0]);
    bits_of(spans.max().unwrap_or(0))
}

/// Bits of the entries of the table that finds a batch: few enough for a core's first-level cache.
const TABLE_BITS: u32 = 12;
const TABLE_BITS_MAX: u32 = 16;

/// The batch of a vertex index, by a table and a short search.
#[derive(Debug)]
pub(crate) struct BatchLookup {
    pub(crate) cuts: Vec<u64>,
    /// The batch of index `slot << shift`, and a last entry for the end.
    table: Vec<u32>,
    shift: u32,
}

impl BatchLookup {
    /// `cuts` as [`RangeCounts::batches`] gives them.
    pub(crate) fn new(cuts: Vec<u64>) -> Self {
        let vertices = cuts.last().copied().unwrap_or(0);
        let table_bits = (bits_of(cuts.len() as u64) + 2).clamp(TABLE_BITS, TABLE_BITS_MAX);
        let shift = bits_of(vertices).saturating_sub(table_bits);
        let mut table = Vec::new();
        let mut batch = 0;
        for slot in 0..=vertices.div_ceil(1 << shift) {
            while batch + 2 < cuts.len() && cuts[batch + 1] <= slot << shift {
                batch += 1;
            }
            table.push(batch as u32);
        }
        Self { cuts, table, shift }
    }

    /// The batch that holds `index`, which is below the number of vertices.
    #[inline(always)]
    pub(crate) fn batch(&self, index: u64) -> usize {
        let slot = (index >> self.shift) as usize;
        let (from, to) = (self.table[slot] as usize, self.table[slot + 1] as usize);
        if from == to {
            return from;
        }
        from + self.cuts[from + 1..=to].partition_point(|&cut| cut <= index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_both_caps_where_granules_allow() {
        let granules = RangeCounts::new((0..=64).map(|g| g << 19).collect(), vec![300_000; 64]);
        let cuts = granules.batches(None, false);
        let arcs_max = batch_arcs_max(granules.arcs());
        assert_eq!(arcs_max, 64 * 300_000 / 16);
        for cut in cuts.windows(2) {
            assert!(cut[1] - cut[0] <= 1 << 20);
            assert!(((cut[1] - cut[0]) >> 19) * 300_000 <= arcs_max);
        }
        assert_eq!((cuts.first(), cuts.last()), (Some(&0), Some(&(64 << 19))));
        let granules = RangeCounts::new((0..=64).map(|g| g << 14).collect(), vec![1 << 13; 64]);
        assert_eq!(granules.batches(None, false), [0, 1 << 20]);
        let cuts = granules.batches(None, true);
        assert!(cuts.iter().copied().eq((0..=16).map(|batch| batch << 16)));
    }

    #[test]
    fn heavy_granule_is_its_own_batch() {
        let granules = RangeCounts::new(vec![0, 10, 10, 20, 30], vec![5, 0, 1 << 25, 5]);
        assert_eq!(granules.batches(None, false), [0, 10, 20, 30]);
    }

    #[test]
    fn batch_size_given_is_exact() {
        let granules = RangeCounts::new(vec![0, 3, 10], vec![1, 2]);
        assert_eq!(granules.batches(Some(4), false), [0, 4, 8, 10]);
        assert_eq!(granules.batches(Some(1), false).len(), 11);
        assert_eq!(granules.batches(Some(100), false), [0, 10]);
    }

    #[test]
    fn empty_graph_has_no_batches() {
        let granules = RangeCounts::new(vec![0], vec![]);
        assert_eq!(granules.batches(None, false), [0]);
        assert_eq!(granules.batches(Some(7), false), [0]);
        assert_eq!(granules.files(&[0]), Some(vec![]));
    }

    #[test]
    fn files_close_at_their_size_and_cover_batches() {
        for (batches, arcs, batches_of_file) in [
            // Of a small graph, of one between, of a large one.
            (8, 1 << 17, 2),
            (64, 1 << 18, 2),
            (1024, 1 << 21, 2),
            (1024, 1 << 23, 1),
        ] {
            let files = (0..batches).step_by(batches_of_file);
            let files: Vec<_> = files.map(|first| first..first + batches_of_file).collect();
            let granules = RangeCounts::new((0..=batches as u64).collect(), vec![arcs; batches]);
            let cuts = granules.batches(Some(1), false);
            assert_eq!(granules.files(&cuts).as_ref(), Some(&files));
            let one = RangeCounts::new(vec![0, batches as u64], vec![batches as u64 * arcs]);
            assert_eq!(one.files(&cuts).as_ref(), Some(&files));
        }
    }

    #[test]
    fn file_ends_before_keys_exceed_64_bits() {
        let vertices = 1u64 << 36;
        let granules = RangeCounts::new(vec![0, vertices], vec![10]);
        let cuts: Vec<u64> = (0..=4096).map(|b| b << 24).collect();
        let files = granules.files(&cuts).unwrap();
        assert_eq!(files.len(), 256);
        assert!(files.iter().all(|file| file.len() == 16));
        let vertices = 1u64 << 40;
        let granules = RangeCounts::new(vec![0, vertices], vec![10]);
        assert_eq!(granules.files(&[0, vertices]), None);
    }

    #[test]
    fn batch_of_index_is_found_for_any_cut() {
        for (vertices, size) in [
            (10, 1),
            (100_000, 7),
            (100_000, 64),
            (1 << 20, 1),
            (1_000_003, 99_991),
        ] {
            let granules = RangeCounts::new(vec![0, vertices], vec![0]);
            let batch_of = BatchLookup::new(granules.batches(Some(size), false));
            for index in (0..vertices)
                .step_by(1 + vertices as usize / 5000)
                .chain([vertices - 1])
            {
                assert_eq!(
                    batch_of.batch(index),
                    (index / size) as usize,
                    "{index} of {vertices} by {size}"
                );
            }
        }
    }
}
