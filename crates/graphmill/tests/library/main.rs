//! The library as a program calls it: one behaviour a file.

#![expect(
    clippy::disallowed_methods,
    reason = "the files and the time of a program around the library"
)]

mod answers;
mod beliefs;
mod checkpoints;
mod common;
mod edge_results;
mod examples;
mod ids;
mod sums;
mod validate;
mod vertex_files;
