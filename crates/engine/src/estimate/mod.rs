//! An estimate of the bytes that a run would read, write and send.

pub(crate) mod buckets;
pub(crate) mod model;
pub(crate) mod rank_estimator;
pub(crate) mod routing;
pub(crate) mod spill;
pub(crate) mod stream;
pub(crate) mod uniting;
