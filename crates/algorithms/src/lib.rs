//! One algorithm, one file, with its checker.
//!
//! | file | what it answers |
//! | --- | --- |
//! | [`pagerank`] | how important is each vertex |
//! | [`bfs`] | how many arcs away is each vertex |
//! | [`wcc`] | which vertices hang together |
//! | [`scc`] | which vertices reach each other |
//! | [`mst`] | which edges connect each component at the least weight |
//! | [`mis`] | a set of vertices without neighbours in it that cannot grow |
//! | [`cdlp`] | which vertices form a community, by the labels of neighbours |
//! | [`sssp`] | how far away is each vertex |
//! | [`conductance`] | how well is a set separated from the rest |
//! | [`spmv`] | the matrix of the graph times a vector |
//! | [`bp`] | how likely is each of two states, given priors and neighbours |
//! | `foreign/` | programs in other languages |
//! | [`foreign_program`] | what such a program says of itself |
//! | `check.rs` | what the checkers share |
//! | [`ResultChecker`] | how arcs and a result come before a checker |
//! | [`registry`](registry()) | all of them by name |
//! | [`Entry`], [`OptionSpec`] | one algorithm: its options, how it runs, its checker |
//! | [`AlgorithmOptions`] | the options of a run |
//! | [`Output`], [`ResultShape`] | the result of a run |

#![forbid(unsafe_code)]

pub mod bfs;
pub mod bp;
pub mod cdlp;
pub mod check;
pub mod conductance;
mod entry;
mod foreign;
pub mod foreign_program;
pub mod mis;
mod mix;
pub mod mst;
mod option;
mod options;
mod output;
pub mod pagerank;
mod recorded;
mod registry;
pub mod scc;
pub mod spmv;
pub mod sssp;
mod vertex_index;
pub mod wcc;

pub use entry::{CheckerOf, Entry, GroupSizes};
pub use foreign::entry::{FOREIGN, FOREIGN_VERTICES};
pub use option::{OptionKind, OptionSpec};
pub use options::{AlgorithmError, AlgorithmOptions};
pub use output::{
    NO_EDGE, NumberRow, NumberValue, Output, OutputValues, ResultShape, edge_row, holds_edge,
    key_weight, weight_key,
};
pub use recorded::{ResultChecker, ResultType, ResultValue};
pub use registry::registry;
pub use vertex_index::{VertexIndex, fits_u32};
