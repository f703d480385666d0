//! Generated graphs: R-MAT (Kronecker), uniform, grid, consecutive and scattered, as sources of edges.
//!
//! Edge number e of a graph depends on the seed and on e alone. So pieces are drawn in any order, by any number of
//! threads, and drawing one again gives the same edges.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `rule.rs` | [`GraphRule`], and [`Generated`], the graph of a rule |
//! | `draw.rs` | a generated graph as a source of edges |
//! | `edge_at.rs` | any edges of any graph, by their numbers |
//! | `kronecker.rs`, `circulant.rs` | the rules that take more than a few lines |
//! | `sorted_arcs.rs` | the arcs of circulant graphs in the order of the stored graph |
//! | `counter_rng.rs` | random numbers by position |

pub(crate) mod circulant;
mod counter_rng;
mod draw;
pub(crate) mod edge_at;
mod kronecker;
pub(crate) mod rule;
pub(crate) mod sorted_arcs;
#[cfg(test)]
mod tests;

pub use rule::{Generated, GraphRule, KroneckerLabels};
