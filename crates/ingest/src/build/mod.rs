//! From edges to column files: arcs are distributed over buckets, then each bucket is sorted.

pub(crate) mod dedup;
pub(crate) mod distribute;
pub(crate) mod relabel;
pub(crate) mod sort_bucket;
