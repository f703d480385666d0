//! External-memory primitives: temporary files, the shuffle between ranks, sorting, numbered tasks.

pub(crate) mod bucket_file;
pub(crate) mod edge_file;
pub(crate) mod parallel;
pub(crate) mod radix_sort;
pub(crate) mod reread;
pub(crate) mod shuffle;
