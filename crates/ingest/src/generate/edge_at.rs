//! Any edges of any generated graph, by their numbers.

use graphmill_graph::EdgeKind;

use super::counter_rng::{CounterRng, Permutation, RngStream, below};
use super::kronecker::RmatWalk;
use super::rule::{Generated, GraphRule, KroneckerLabels};
use crate::edge_data::{EdgeDataBatch, weight_bits};

/// The greatest weight that is drawn; the least is 1, as in the GAP benchmark suite.
const WEIGHT_MAX: u64 = 255;

/// The weights of a graph's edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightRng(CounterRng);

impl WeightRng {
    /// Returns the weight of edge number `edge`: an integer.
    #[inline(always)]
    pub(crate) fn weight(self, edge: u64) -> f64 {
        (below(self.0.number(edge), WEIGHT_MAX) + 1) as f64
    }
}

impl Generated {
    pub(crate) fn weigher(&self) -> WeightRng {
        WeightRng(CounterRng::new(self.seed, RngStream::Weight, 0))
    }
}

/// A generator of the edges of one graph, with its tables.
#[derive(Debug)]
pub(super) struct EdgeGenerator {
    pub(super) graph: Generated,
    paths: RmatWalk,
    labels: Permutation,
    weights: WeightRng,
}

impl EdgeGenerator {
    pub(super) fn new(graph: Generated) -> Self {
        let scale = match graph.rule {
            GraphRule::Kronecker { scale, .. } => u32::from(scale),
            _ => 0,
        };
        EdgeGenerator {
            graph,
            paths: RmatWalk::new(scale, graph.seed),
            labels: Permutation::new(scale, graph.seed),
            weights: graph.weigher(),
        }
    }

    /// Edges number `from` up to `to`.
    pub(super) fn draw(
        &self,
        from: u64,
        to: u64,
        edges: &mut Vec<(u64, u64)>,
        weights: &mut EdgeDataBatch,
    ) {
        edges.clear();
        weights.clear();
        match self.graph.rule {
            GraphRule::Kronecker {
                labels: KroneckerLabels::Drawn,
                ..
            } => edges.extend((from..to).map(|e| self.paths.ends(e))),
            GraphRule::Kronecker { .. } => edges.extend((from..to).map(|e| {
                let (source, destination) = self.paths.ends(e);
                (self.labels.map(source), self.labels.map(destination))
            })),
            GraphRule::Uniform { vertices, .. } => {
                let sequence = |lane| CounterRng::new(self.graph.seed, RngStream::Ends, lane);
                let (sources, destinations) = (sequence(0), sequence(1));
                edges.extend((from..to).map(|e| {
                    (
                        below(sources.number(e), vertices),
                        below(destinations.number(e), vertices),
                    )
                }));
            }
            GraphRule::Grid { columns, .. } => {
                // Each row has its edges to the right, then those down; the last has none down.
                let of_a_row = 2 * columns - 1;
                let (mut row, mut i) = (from / of_a_row, from % of_a_row);
                edges.extend((from..to).map(|_| {
                    let start = row * columns;
                    let edge = if i < columns - 1 {
                        (start + i, start + i + 1)
                    } else {
                        let v = start + i - (columns - 1);
                        (v, v + columns)
                    };
                    i += 1;
                    if i == of_a_row {
                        (row, i) = (row + 1, 0);
                    }
                    edge
                }));
            }
            GraphRule::Consecutive { .. } | GraphRule::Scattered { .. } => {
                let graph = self.graph.rule.circulant();
                edges.extend(graph.into_iter().flat_map(|graph| graph.edges(from, to)));
            }
        }
        let kind = self.graph.weights;
        if kind != EdgeKind::None {
            weights.extend_low((from..to).map(|e| weight_bits(self.weights.weight(e), kind)));
        }
    }
}
