//! Decisions before a pass, by cost: the kernel, and how messages are routed.

pub(crate) mod kernel;
pub(crate) mod routing;
pub(crate) mod routing_cost;
pub(crate) mod routing_memory;
pub(crate) mod routing_stats;
