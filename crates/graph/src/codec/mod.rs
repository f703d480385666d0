//! Encodings of edges and numbers.

pub(crate) mod bitpack;
pub(crate) mod block;
pub(crate) mod pfor;
pub(crate) mod varint;
