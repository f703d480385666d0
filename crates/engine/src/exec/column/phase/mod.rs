//! The phases of a pass: `edge_pass.rs` calls them in order.

pub(crate) mod message_exchange;
pub(crate) mod signal;
pub(crate) mod slot;
pub(crate) mod sparse;
