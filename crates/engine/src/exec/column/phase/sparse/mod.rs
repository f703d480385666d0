//! The sparse pass: only the edges of active vertices.

pub(crate) mod adjacency;
pub(crate) mod index_lookup;
pub(crate) mod read_plan;
