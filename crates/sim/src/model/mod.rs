//! A model of the cluster of the paper on Chaos (Roy et al., SOSP 2015), for figures that take 32 machines.
//!
//! The model runs no algorithm. It moves chunks between disks, interfaces and cores, with the work of each algorithm as
//! numbers. Windows and the criterion of stealing are the functions of the engine. It models neither a page cache nor
//! incast, and a message costs its round trip only.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `hardware.rs` | machines, and choices of a run |
//! | `graph.rs` | sizes of graphs and shares of ranges |
//! | `algorithms.rs` | the passes of the ten algorithms |
//! | `plan.rs` | the input and the result of a phase |
//! | `phase.rs` | one phase, chunk by chunk |
//! | `job.rs` | binning and the passes of an algorithm |
//! | `figures.rs` | [`figure`]: the rows of a figure |

mod algorithms;
mod figures;
mod graph;
mod hardware;
mod job;
mod phase;
mod plan;
#[cfg(test)]
mod tests;

pub use figures::{FIGURES, FigureTable, figure};
