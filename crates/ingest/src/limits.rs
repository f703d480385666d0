//! Limits on ids and on batches of edges.

/// Bytes of a text id at most.
pub const ID_BYTES_MAX: usize = 2000;

/// Edges of a batch at most.
pub const BATCH_EDGES_MAX: usize = 4096;
