//! Units of work and their placement: groups of columns, NUMA nodes.

pub(crate) mod numa;
pub(crate) mod steal;
pub(crate) mod tasks;
pub(crate) mod window;
