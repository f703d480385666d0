//! Messages of a pass, in memory and on disk, and how they are routed.

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod router;
pub(crate) mod routing;
pub(crate) mod routing_size;
pub(crate) mod routing_table;
pub(crate) mod run_codec;
pub(crate) mod spill;
