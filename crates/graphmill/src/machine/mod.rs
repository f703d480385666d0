//! The machine a run works on: its resources, its place in an MPI job, and how busy it was.

pub(crate) mod limits;
pub(crate) mod mpi;
pub(crate) mod plugin;
pub(crate) mod resources;
pub(crate) mod timeline;
