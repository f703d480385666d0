//! The phases of a pass: leaves that `superstep.rs` calls in order.

pub(crate) mod exchange;
pub(crate) mod signal;
pub(crate) mod slot;
pub(crate) mod sparse;
