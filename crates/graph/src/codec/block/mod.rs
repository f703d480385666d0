//! Blocks: up to 4,096 consecutive edges of one cell, the unit of the codec and of the kernels.
//!
//! A block says all about itself. Its edges are in *groups*, one a source; one bit an edge says whether it is the
//! first of its group, so a kernel goes from group to group without a branch. Whatever bytes a block is made of,
//! [`BlockView`](view::BlockView) never reads outside them, and hands out no group number of 4,096 or more and no destination of
//! `1 << dst_bits` or more.

pub(crate) mod encode;
mod gap;
pub(crate) mod group;
pub(crate) mod layout;
#[cfg(test)]
mod tests;
pub(crate) mod view;
