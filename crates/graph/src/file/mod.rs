//! The files of a graph: pages of 64 KiB with checksums.

pub(crate) mod extent;
pub(crate) mod page;
pub(crate) mod page_writer;
