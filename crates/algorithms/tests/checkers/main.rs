//! The checkers accept what another method finds, and refuse it changed.

mod bfs;
mod cdlp;
mod mis;
mod mst;
mod odd;
mod pagerank;
mod registry;
mod rounding;
mod scc;
mod sssp;
mod wcc;
