//! Reads an open graph: streams of extents, cached reads of pages, and look-ups on top of both.

pub(crate) mod extent_stream;
pub(crate) mod fanout_table;
pub(crate) mod id_cursor;
mod ids;
mod order;
pub(crate) mod page_cache;
mod vertex_tables;
