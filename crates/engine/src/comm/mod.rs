//! Communication between ranks: collectives, and the memory of frames.

pub(crate) mod communicator;
pub(crate) mod wire;
