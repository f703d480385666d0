//! Edge programs in other languages: their functions are called by address.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `combine.rs` | the ways to fold messages |
//! | `step.rs` | one pass |
//! | `drive.rs` | all passes, and the result |
//! | `entry.rs` | how a run names a program |

mod combine;
mod drive;
pub(crate) mod entry;
mod step;
