//! Edges of a forest, as rows hold them.

/// An edge of the forest: the key of its weight, the ordinals of the smaller id and of the larger one.
pub type ForestEdge = [u64; 3];
