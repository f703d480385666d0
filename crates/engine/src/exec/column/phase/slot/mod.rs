//! The slot phase: cells to accumulators, accumulators to rows and the next active set.

pub(crate) mod apply;
pub(crate) mod block_ranges;
pub(crate) mod claim;
pub(crate) mod fold_group;
pub(crate) mod input;
pub(crate) mod merge;
pub(crate) mod phase;
pub(crate) mod scratch;
pub(crate) mod task;
