//! The pass of addressed messages.

pub(crate) mod block;
pub(crate) mod exchange;
pub(crate) mod pass;
