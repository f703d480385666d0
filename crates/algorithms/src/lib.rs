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
//! | [`registry`](registry()) | all of them by name |
//! | [`Entry`], [`OptionSpec`] | one algorithm: its options, how it runs, its judge |
//! | [`Settings`] | the options of a run |

#![forbid(unsafe_code)]

pub mod bfs;
mod case;
mod entry;
mod index;
pub mod judge;
mod option;
pub mod pagerank;
mod registry;
mod settings;
pub mod sssp;
pub mod wcc;

pub use case::{Given, Judge, Takes};
pub use entry::{Entry, GroupSizes, JudgeOf, Output, Values};
pub use index::{Index, fits_u32};
pub use option::{OptionKind, OptionSpec};
pub use registry::registry;
pub use settings::{AlgorithmError, Settings};
