//! One algorithm, one file, with its judge.
//!
//! | file | what it answers |
//! | --- | --- |
//! | [`pagerank`] | how important is each vertex |
//! | [`bfs`] | how many arcs away is each vertex |
//! | [`wcc`] | which vertices hang together |
//! | [`sssp`] | how far away is each vertex |
//! | [`judge`] | what the judges share |

#![forbid(unsafe_code)]

pub mod bfs;
pub mod judge;
pub mod pagerank;
pub mod sssp;
pub mod wcc;
