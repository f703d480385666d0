//! The stream layout: arcs in chunks of one source batch each, in order of arrival.
//!
//! docs/reference/file-format.md describes every byte.

pub(crate) mod bins;
pub(crate) mod chunk;
pub(crate) mod chunk_file;
pub(crate) mod chunk_set;
pub(crate) mod directory;
pub(crate) mod encoder;
pub(crate) mod pair;
pub(crate) mod reader;
pub(crate) mod shape;
pub(crate) mod writer;
