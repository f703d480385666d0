//! Active sets.

pub(crate) mod active_set;
pub(crate) mod bitmap;
pub(crate) mod codec;
