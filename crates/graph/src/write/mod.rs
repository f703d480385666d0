//! Writes a graph: column files, then the tables and `graph.json`.

mod chunk_tables;
pub(crate) mod column_file;
pub(crate) mod degree_writer;
pub(crate) mod graph_writer;
pub(crate) mod handoff;
pub(crate) mod order_writer;
mod shared;
pub(crate) mod transfer;
mod vertex_tables;
