//! Writes a graph: column files, then the tables and `graph.json`.

pub(crate) mod column_file;
pub(crate) mod graph_writer;
pub(crate) mod handoff;
pub(crate) mod order_writer;
mod shared;
pub(crate) mod transfer;
mod vertex_tables;
