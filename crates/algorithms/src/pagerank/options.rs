//! The options of a PageRank run.

use graphmill_engine::PregelMode;

use super::vectors::Vectors;

/// Where the rank of vertices without outgoing arcs goes in each iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dangling {
    /// To every vertex in proportion to the chance of a jump there, as in LDBC Graphalytics.
    ///
    /// The scores then always sum to 1.
    #[default]
    Redistribute,
    /// Nowhere: ranks sum to less than 1.
    Drop,
}

/// The method that computes scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageRankMethod {
    /// One pass over all edges an iteration.
    #[default]
    Passes,
    /// By a vertex program, as in iPregel.
    ///
    /// Its pull version gives the same bits as passes; its push version adds in the order in which messages arrive.
    Pregel(PregelMode),
}

/// The options of a PageRank run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The method that computes scores.
    pub method: PageRankMethod,
    /// The chance to follow an arc rather than to jump, 0 to 1.
    pub damping: f64,
    /// The greatest number of iterations.
    pub iterations: u32,
    /// Stop when the ranks of all vertices together change by less than this in an iteration.
    pub tolerance: Option<f64>,
    /// The treatment of the score of vertices without outgoing arcs.
    pub dangling: Dangling,
    /// Jumps lead to these vertices only, with equal chance, in ascending order; empty: to any vertex.
    pub sources: Vec<u64>,
    /// Vectors of chances and scores; with them `sources` is empty.
    pub vectors: Vectors,
    /// True if a vertex splits its score over its out-arcs in proportion to their weights.
    ///
    /// Otherwise it splits it equally. A vertex whose weights sum to 0 counts as one without out-arcs.
    pub weighted: bool,
}
