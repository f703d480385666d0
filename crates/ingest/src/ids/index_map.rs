//! The map from ids in edges to vertex indices.

use super::bitmap::{RankBitmap, RankLookup};
use super::order_window::OrderWindow;

/// A map from an integer id to the rank of its vertex, which is its index in the order of ids.
#[derive(Debug)]
pub(crate) enum IdToIndex {
    /// The id is the rank.
    Same,
    /// The rank is that of the id among the ids that occur.
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
            window: None,
        }
    }
}

/// [`IdToIndex`] for many look-ups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexLookup<'a> {
    ranks: Option<RankLookup<'a>>,
    window: Option<&'a OrderWindow>,
}

impl<'a> IndexLookup<'a> {
    /// Returns the lookup with the indices in order of degree of the vertices in the window.
    pub(crate) fn with_window(self, window: Option<&'a OrderWindow>) -> Self {
        Self { window, ..self }
    }

    /// True if ids are indices.
    pub(crate) fn is_same(&self) -> bool {
        self.ranks.is_none() && self.window.is_none()
    }

    /// Maps the ids of edges' ends to indices and returns the largest.
    ///
    /// An id that does not occur maps to some number that may be no index. `mapped` has as many entries as `edges`.
    pub(crate) fn map(&self, edges: &[(u64, u64)], mapped: &mut [(u64, u64)]) -> u64 {
        match self.ranks {
            None => mapped.copy_from_slice(edges),
            Some(rank) => graphmill_raw::simd::dispatch(|| {
                for (to, from) in mapped.iter_mut().zip(edges) {
                    *to = (rank.rank(from.0), rank.rank(from.1));
                }
            }),
        }
        if let Some(window) = self.window {
            for ends in mapped.iter_mut() {
                *ends = (window.index(ends.0), window.index(ends.1));
            }
        }
        mapped
            .iter()
            .fold(0, |last, ends| last.max(ends.0).max(ends.1))
    }
}
