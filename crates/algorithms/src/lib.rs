//! One algorithm, one file, with its judge.
//!
//! | file | what it answers |
//! | --- | --- |
//! | [`pagerank`] | how important is each vertex |
//! | [`bfs`] | how many arcs away is each vertex |
//! | [`wcc`] | which vertices hang together |
//! | [`sssp`] | how far away is each vertex |
//! | [`judge`] | what the judges share |
//! | [`Judge`] | how arcs and a result come before a judge |
//! | [`registry`](registry()) | all of them by name, with their options |
//! | [`Settings`] | the options of a run |

#![forbid(unsafe_code)]

pub mod bfs;
mod case;
mod index;
pub mod judge;
pub mod pagerank;
mod registry;
mod settings;
pub mod sssp;
pub mod wcc;

pub use case::{Given, Judge, Takes};
pub use index::{Index, fits_u32};
pub use registry::{Entry, GroupSizes, JudgeOf, OptionKind, OptionSpec, Output, Values, registry};
pub use settings::{AlgorithmError, Settings};
