//! Metrics of passes: counts, bytes moved in memory, time on slow tiers.

pub(crate) mod run;
pub(crate) mod tier_model;
pub(crate) mod traffic;
