//! One algorithm, one file, with its judge.
//!
//! | file | what it answers |
//! | --- | --- |
//! | [`pagerank`] | how important is each vertex |
//! | [`bfs`] | how many arcs away is each vertex |
//! | [`wcc`] | which vertices hang together |
//! | [`sssp`] | how far away is each vertex |
//! | [`judge`] | what the judges share |
//! | [`registry`](registry()) | all of them by name, with their options |

#![forbid(unsafe_code)]

pub mod bfs;
mod flood;
mod index;
pub mod judge;
pub mod pagerank;
mod registry;
pub mod sssp;
pub mod wcc;

pub use index::{Index, fits_u32};
pub use registry::{
    AlgorithmError, Entry, OptionKind, OptionSpec, Output, Settings, Values, registry,
};
