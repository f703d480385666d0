//! One subcommand a file; each returns the exit code of the process.

pub(crate) mod algorithms;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod mpi;
mod options;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod validate;
pub(crate) mod verify;
