//! The library as a program calls it: one behaviour a file.

mod checkpoints;
mod common;
mod examples;
mod ids;
mod validate;
mod vertex_files;
