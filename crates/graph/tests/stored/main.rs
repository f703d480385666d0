//! Stored graphs as the rest of the program writes and reads them: one behaviour a file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a_broken_writer_is_noticed;
mod any_change_is_noticed;
mod every_shape_reads_back;
mod model;
mod streams_of_extents;
