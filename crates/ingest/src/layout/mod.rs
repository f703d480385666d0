//! Decides which batch and which column file each arc belongs to, from counts of the edges.

pub(crate) mod arc_count;
pub(crate) mod batch_cut;
pub(crate) mod degree_file;
pub(crate) mod degree_order;
pub(crate) mod edge_key;
pub(crate) mod histogram;
pub(crate) mod scan;
