//! The order in which the greedy walk meets vertices.

use crate::mix::mixed;

/// The step of SplitMix64: with it seed 0 is no special one, as the mix of 0 is 0.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The order of a greedy walk over the vertices; the lowest number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The order of ids.
    Id,
    /// An order that looks random, fixed by a seed and by the positions of ids in their order.
    Hash(u64),
}

impl Priority {
    /// Returns the number of the vertex whose id has this ordinal; no two vertices have the same.
    #[inline(always)]
    #[must_use]
    pub fn of(self, ordinal: u64) -> u64 {
        match self {
            Priority::Id => ordinal,
            Priority::Hash(seed) => mixed(ordinal ^ mixed(seed.wrapping_add(STEP))),
        }
    }
}
