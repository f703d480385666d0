//! Builds column files: distributes arcs over buckets, then sorts each bucket.

pub(crate) mod bin_arcs;
pub(crate) mod dedup;
pub(crate) mod distribute;
pub(crate) mod relabel;
pub(crate) mod sort_bucket;
