//! An open graph, and what the memory of one depends on.

pub(crate) mod column_set;
pub(crate) mod footprint;
mod open_builder;
pub(crate) mod stored_graph;
