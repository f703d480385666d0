//! What is kept of an import that is interrupted, and the folders where it works.

pub(crate) mod job;
pub(crate) mod staging;
pub(crate) mod step_log;
pub(crate) mod workdir;
