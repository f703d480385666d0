//! The passes of addressed messages: sends, and asks.

pub(crate) mod asks;
pub(crate) mod block;
pub(crate) mod block_index;
pub(crate) mod box_sorter;
pub(crate) mod boxes;
pub(crate) mod direct_asks;
pub(crate) mod exchange;
pub(crate) mod pass;
pub(crate) mod receive;
