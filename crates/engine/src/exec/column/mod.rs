//! The column executor: one pass over all edges, phase by phase.

pub(crate) mod edge_pass;
pub(crate) mod kernel;
pub(crate) mod phase;
pub(crate) mod prepare;
pub(crate) mod scratch;
