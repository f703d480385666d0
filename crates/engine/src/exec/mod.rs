//! The executors.

pub(crate) mod bucket;
pub(crate) mod column;
pub(crate) mod in_memory;
pub(crate) mod label_table;
pub(crate) mod label_windows;
pub(crate) mod send_pass;
pub(crate) mod stream;
pub(crate) mod vertex_pass;
