//! Models of the size of a graph on disk: of a stored graph, or of an expected one.

pub(crate) mod expected;
mod expected_profile;
pub(crate) mod numbers;
pub(crate) mod profile;
