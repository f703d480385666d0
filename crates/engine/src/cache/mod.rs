//! Caches of the graph that outlive a pass: cells, adjacency lists, degrees.

pub(crate) mod adjacency;
pub(crate) mod cached_runs;
pub(crate) mod cells;
pub(crate) mod degree_sketch;
pub(crate) mod eviction;
pub(crate) mod graph_cache;
