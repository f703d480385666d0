//! How a pass shares out the memory budget.

pub(crate) mod buckets;
pub(crate) mod plan;
pub(crate) mod run_bytes;
pub(crate) mod stream;
pub(crate) mod stream_buffers;
pub(crate) mod transposed;
