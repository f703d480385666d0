//! Stored graphs as the rest of the program writes and reads them: one behaviour a file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken_writer;
mod chunks;
mod damage;
mod extent_reader;
mod model;
mod round_trip;
