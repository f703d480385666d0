//! What an engine keeps of the graph in memory from pass to pass.

pub(crate) mod adjacency;
pub(crate) mod cells;
pub(crate) mod degree_sketch;
pub(crate) mod eviction;
pub(crate) mod graph_cache;
