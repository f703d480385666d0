//! Messages between ranks: filters, frames, the all-to-all exchange.

pub(crate) mod all_to_all;
pub(crate) mod filter;
pub(crate) mod frame;
