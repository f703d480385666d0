//! The checkers accept what another method finds, and refuse it changed.

mod bfs;
mod odd;
mod pagerank;
mod registry;
mod rounding;
mod sssp;
mod wcc;
