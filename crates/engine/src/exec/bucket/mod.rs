//! The bucket executor: passes whose messages travel in datagrams and are folded on arrival (docs/internals/buckets.md).

pub(crate) mod emit;
pub(crate) mod job;
pub(crate) mod kernel;
pub(crate) mod labels;
pub(crate) mod lanes;
pub(crate) mod plane;
pub(crate) mod superstep;
