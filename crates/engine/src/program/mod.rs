//! Program traits: the narrow waist between algorithms and executors.

pub(crate) mod ask;
pub(crate) mod count;
pub(crate) mod current_call;
pub(crate) mod edge;
pub(crate) mod footprint;
pub(crate) mod gas;
pub(crate) mod message;
pub(crate) mod monotone;
pub(crate) mod outbox;
pub(crate) mod send_error;
pub(crate) mod slot;
pub(crate) mod vertex;
