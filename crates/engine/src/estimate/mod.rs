//! What a run would read, write and send, before it starts.

pub(crate) mod model;
pub(crate) mod rank_estimator;
pub(crate) mod routing;
pub(crate) mod spill;
