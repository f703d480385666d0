//! The map from ids in edges to vertex indices.

use super::bitmap::{RankBitmap, RankLookup};
use super::order_window::OrderWindow;

/// How an integer id becomes the rank of its vertex, which is its index where vertices are in order of ids.
#[derive(Debug)]
pub(crate) enum IdToIndex {
    /// It is one already.
    Same,
    /// It is its rank among the ids that occur.
    Rank(RankBitmap),
}

impl IdToIndex {
    /// For many look-ups.
    pub(crate) fn look_up(&self) -> IndexLookup<'_> {
        IndexLookup {
            ranks: match self {
                Self::Same => None,
                Self::Rank(ranks) => Some(ranks.look_up()),
            },
            dealt: None,
        }
    }
}

/// [`IdToIndex`] for many look-ups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexLookup<'a> {
    ranks: Option<RankLookup<'a>>,
    dealt: Option<&'a OrderWindow>,
}

impl<'a> IndexLookup<'a> {
    /// The same where the vertices of those numbers have been dealt other indices.
    pub(crate) fn dealt(self, dealt: Option<&'a OrderWindow>) -> Self {
        Self { dealt, ..self }
    }

    /// The indices of the ends of edges, as many as there are; ids that do not occur get some number, perhaps no index.
    /// Returns the largest.
    pub(crate) fn map(&self, edges: &[(u64, u64)], mapped: &mut [(u64, u64)]) -> u64 {
        match self.ranks {
            None => mapped.copy_from_slice(edges),
            Some(rank) => graphmill_raw::simd::dispatch(|| {
                for (to, from) in mapped.iter_mut().zip(edges) {
                    *to = (rank.of(from.0), rank.of(from.1));
                }
            }),
        }
        if let Some(dealt) = self.dealt {
            for ends in mapped.iter_mut() {
                *ends = (dealt.of(ends.0), dealt.of(ends.1));
            }
        }
        mapped
            .iter()
            .fold(0, |last, ends| last.max(ends.0).max(ends.1))
    }
}
