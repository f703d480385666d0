//! Edges of a forest, and the edges that trees choose among, as rows hold them.

/// An edge of the forest: the key of its weight, the ordinals of the smaller id and of the larger one.
pub type ForestEdge = [u64; 3];

/// The least edge from a vertex or a tree to another tree, and the root of the other tree.
pub(super) type Candidate = [u64; 4];

/// The row of a vertex that has no edge to another tree.
pub(super) const NO_CANDIDATE: Candidate = [u64::MAX; 4];
