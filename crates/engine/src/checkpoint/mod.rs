//! Checkpoints of a run: written between passes, loaded after a kill.

pub(crate) mod checkpointer;
pub(crate) mod files;
pub(crate) mod snapshot;
