//! Files that give a value to vertices by their ids: results, references, and values that programs start from.
//!
//! [`open`](open::open) hands out their rows; [`fill`](fill::fill) puts the values into a vertex array.

mod fields;
pub(crate) mod fill;
pub(crate) mod open;
pub(crate) mod parity;
mod parquet;
pub(crate) mod text;
