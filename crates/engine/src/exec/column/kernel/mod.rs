//! Building blocks that all phases of the column executor share.

pub(crate) mod accumulators;
pub(crate) mod apply_batch;
pub(crate) mod cell_stream;
pub(crate) mod fold_block;
pub(crate) mod pass;
pub(crate) mod signal_batch;
