//! The phases of a pass: leaves that the superstep calls in order.

pub(crate) mod seek;
pub(crate) mod signal;
pub(crate) mod slot;
pub(crate) mod vertices;
