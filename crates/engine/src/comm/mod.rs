//! Communication between ranks: collectives, the memory of frames, and the constants of flow control.

pub(crate) mod communicator;
pub(crate) mod wire;
