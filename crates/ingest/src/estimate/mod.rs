//! Estimates of an import: bytes that each of its steps reads, writes and sends.
//!
//! | file | content |
//! | --- | --- |
//! | `chunks.rs` | the steps of the stream layout |
//! | `estimator.rs` | [`estimate()`]: the steps in their order |
//! | `request.rs` | the input and the result: [`ImportEstimateRequest`], [`ImportEstimate`] |
//! | `streams.rs` | the bytes of records on their way to buckets |

mod chunks;
mod estimator;
mod request;
mod streams;

pub use estimator::estimate;
pub use request::{ImportEstimate, ImportEstimateRequest, Input, Phase};
