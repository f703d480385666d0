//! The stream executor: passes over unsorted chunks of arcs (docs/internals/stream.md).

pub(crate) mod bins;
pub(crate) mod disk_io;
pub(crate) mod gather;
pub(crate) mod hand_over;
pub(crate) mod help;
pub(crate) mod kernel;
pub(crate) mod peers;
pub(crate) mod protocol;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod scratch;
pub(crate) mod service;
pub(crate) mod storage_engine;
pub(crate) mod superstep;
pub(crate) mod transpose;
pub(crate) mod updates;
