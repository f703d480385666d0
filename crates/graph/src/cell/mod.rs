//! The positions of cells in column files, and the positions of edges in cells.

pub(crate) mod directory;
pub(crate) mod source_index;
