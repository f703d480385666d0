//! Work and where it runs: runs of columns, NUMA nodes.

pub(crate) mod numa;
pub(crate) mod tasks;
