//! The checkers accept what another method finds, and refuse it changed.

mod bfs;
mod bp;
mod cdlp;
mod conductance;
mod mis;
mod mst;
mod odd;
mod output;
mod pagerank;
mod registry;
mod rounding;
mod scc;
mod spmv;
mod sssp;
mod wcc;
