//! Edges of a forest as rows hold them, and weights as numbers in order.

/// An edge of the forest: the key of its weight, the ordinals of the smaller id and of the larger one.
pub type ForestEdge = [u64; 3];

/// The row of a vertex that holds no edge.
pub const NO_EDGE: ForestEdge = [u64::MAX; 3];

/// The least edge from a vertex or a tree to another tree, and the root of the other tree.
pub(super) type Candidate = [u64; 4];

/// The row of a vertex that has no edge to another tree.
pub(super) const NO_CANDIDATE: Candidate = [u64::MAX; 4];

/// Returns a number that is ordered as weights are; the two zeros are equal.
#[inline(always)]
#[must_use]
pub fn key_of(weight: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let bits = (weight + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// Returns the weight that has this key.
#[must_use]
pub fn weight_of(key: u64) -> f64 {
    const SIGN: u64 = 1 << 63;
    f64::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN })
}
