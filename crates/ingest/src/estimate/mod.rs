//! Estimates of an import: bytes that each of its steps reads, writes and sends.
//!
//! | file | content |
//! | --- | --- |
//! | `estimator.rs` | [`estimate()`]: the steps in their order |
//! | `request.rs` | the input and the result: [`ImportEstimateRequest`], [`ImportEstimate`] |
//! | `streams.rs` | the bytes of records on their way to buckets |

mod estimator;
mod request;
mod streams;

pub use estimator::estimate;
pub use request::{ImportEstimate, ImportEstimateRequest, Input, Phase};
