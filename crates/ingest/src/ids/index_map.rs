//! The map from ids in edges to vertex indices.

use super::bitmap::{RankOf, Ranks};
use super::order_window::Slice;

/// How an integer id becomes the rank of its vertex, which is its index where vertices are in order of ids.
#[derive(Debug)]
pub(crate) enum Indices {
    /// It is one already.
    Same,
    /// It is its rank among the ids that occur.
    Rank(Ranks),
}

impl Indices {
    /// For many look-ups.
    pub(crate) fn look_up(&self) -> IndexOf<'_> {
        IndexOf {
            ranks: match self {
                Self::Same => None,
                Self::Rank(ranks) => Some(ranks.look_up()),
            },
            dealt: None,
        }
    }
}

/// [`Indices`] for many look-ups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexOf<'a> {
    ranks: Option<RankOf<'a>>,
    dealt: Option<&'a Slice>,
}

impl<'a> IndexOf<'a> {
    /// The same where the vertices of those numbers have been dealt other indices.
    pub(crate) fn dealt(self, dealt: Option<&'a Slice>) -> Self {
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
