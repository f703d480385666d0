//! The dictionary between vertex ids and their ranks in ascending order, on disk in pages of 64 KiB. Ranks are indices unless the
//! graph has an order of its own.
//!
//! In memory there is only the first id of every page. Invariants: ids ascend strictly; a page needs no other page.

pub(crate) mod id;
pub(crate) mod page;
pub(crate) mod page_index;
pub(crate) mod writer;
