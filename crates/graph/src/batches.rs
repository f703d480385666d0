//! The cut of the vertices into batches.
//!
//! Invariants: cuts ascend strictly from 0 to |V|; a batch spans at most 2^31 vertices, so that batch-local numbers and
//! counts of sources fit 31 bits. A graph without vertices has no batches.

use std::ops::Range;
use std::sync::Arc;

use crate::error::FormatError;

/// Contiguous ranges of vertex indices. Clones share the cuts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    cuts: Arc<[u64]>,
    /// Span of every batch but the last, which has at most as many; 0 when they differ.
    uniform: u64,
}

impl Default for Batches {
    /// The cut of an empty graph.
    fn default() -> Self {
        let (cuts, uniform) = (Arc::new([0]), 0);
        Batches { cuts, uniform }
    }
}

impl Batches {
    /// Vertices of a batch at most: the index of a cell needs a bit of a count of sources for itself.
    pub const SPAN_MAX: u64 = 1 << 31;

    /// Batches between `cuts`: batch b is `cuts[b]..cuts[b + 1]`.
    ///
    /// # Errors
    /// The cuts do not ascend strictly from 0, or a batch spans more than [`SPAN_MAX`](Self::SPAN_MAX) vertices.
    pub fn new(cuts: Vec<u64>) -> Result<Self, FormatError> {
        if cuts.first() != Some(&0) {
            let what = "the first cut between batches must be 0";
            return Err(FormatError::misuse(what));
        }
        let mut pairs = cuts.windows(2);
        if let Some(i) = pairs.position(|w| w[0] >= w[1] || w[1] - w[0] > Self::SPAN_MAX) {
            let (from, to, max) = (cuts[i], cuts[i + 1], Self::SPAN_MAX);
            return Err(FormatError::misuse(format!(
                "batch {i} spans vertex indices {from} to {to}: a batch has 1 to {max} vertices"
            )));
        }
        let first = cuts.get(1).copied().unwrap_or(0);
        let mut spans = cuts.windows(2).map(|w| w[1] - w[0]);
        let last = spans.next_back();
        let same = spans.all(|span| span == first) && last.is_none_or(|last| last <= first);
        Ok(Batches {
            cuts: cuts.into(),
            uniform: if same { first } else { 0 },
        })
    }
    /// Number of batches.
    pub fn len(&self) -> usize {
        self.cuts.len() - 1
    }
    /// Whether there are no vertices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// |V|.
    pub fn vertices(&self) -> u64 {
        self.cuts[self.len()]
    }
    /// All cuts, from 0 to |V|.
    pub fn cuts(&self) -> &[u64] {
        &self.cuts
    }
    /// Cut number `i`, up to the number of batches.
    pub fn cut(&self, i: usize) -> u64 {
        self.cuts[i]
    }
    /// First vertex index of batch `b`.
    pub fn start(&self, b: usize) -> u64 {
        self.cuts[b]
    }
    /// Vertex indices of batch `b`.
    pub fn range(&self, b: usize) -> Range<u64> {
        self.cuts[b]..self.cuts[b + 1]
    }
    /// Number of vertices of batch `b`.
    pub fn span(&self, b: usize) -> u64 {
        self.cuts[b + 1] - self.cuts[b]
    }
    /// True if all batches but the last have the same number of vertices, and the last has at most as many.
    pub(crate) fn is_uniform(&self) -> bool {
        self.len() < 2 || self.uniform > 0
    }
    /// Number of vertices of the widest batch; 0 when there is none.
    pub fn widest(&self) -> u64 {
        self.cuts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }
    /// Returns the bits of a batch-local number of batch `b`; 0 if the batch has a single vertex.
    ///
    /// Every such number is less than `1 << bits`.
    pub fn bits(&self, b: usize) -> u32 {
        64 - (self.span(b) - 1).leading_zeros()
    }
    /// The batch of vertex index `v`, which is less than |V|.
    #[inline]
    pub fn batch_of(&self, v: u64) -> usize {
        match v.checked_div(self.uniform) {
            Some(batch) => batch as usize,
            None => self.cuts.partition_point(|&cut| cut <= v) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_of_finds_vertices_in_any_cut() {
        for cuts in [
            vec![0, 3, 6, 7],
            vec![0, 1, 8],
            vec![0, 5, 7, 8, 9],
            vec![0, 1 << 31, 1 << 32],
            vec![0, 9],
        ] {
            let batches = Batches::new(cuts.clone()).unwrap();
            for b in 0..batches.len() {
                assert_eq!(batches.batch_of(batches.start(b)), b, "{cuts:?}");
                assert_eq!(batches.batch_of(batches.cut(b + 1) - 1), b, "{cuts:?}");
                assert!(batches.span(b) <= 1 << batches.bits(b));
            }
            let spans = cuts.windows(2).map(|cut| cut[1] - cut[0]);
            assert_eq!(Some(batches.widest()), spans.max());
        }
    }

    #[test]
    fn batches_of_empty_graph_and_bad_cuts() {
        assert_eq!(
            (
                Batches::new(vec![0]).unwrap().len(),
                Batches::new(vec![0]).unwrap().vertices()
            ),
            (0, 0)
        );
        for cuts in [
            vec![],
            vec![1, 2],
            vec![0, 0],
            vec![0, 5, 4],
            vec![0, (1 << 31) + 1],
            vec![0, 7, 8 + (1 << 31)],
        ] {
            assert!(Batches::new(cuts).is_err());
        }
    }
}
