//! Vertex arrays: typed columns in memory or on disk, and the rows that a pass names.

pub(crate) mod array_store;
pub(crate) mod checkpoint_copy;
pub(crate) mod graph_values;
pub(crate) mod row_file;
pub(crate) mod row_set;
pub(crate) mod rows;
pub(crate) mod vertex_array;
