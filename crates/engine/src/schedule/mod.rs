//! Units of work and their placement: groups of columns, NUMA nodes.

pub(crate) mod numa;
pub(crate) mod tasks;
