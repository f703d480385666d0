//! Rules, and the graphs that follow from a rule and a seed.

use graphmill_graph::EdgeKind;

use super::circulant::Circulant;
use crate::error::IngestError;
use crate::options::Duplicates;

/// The order of the vertices of a Kronecker graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum KroneckerLabels {
    /// A permutation that depends on the seed: ranges of vertices have about equal shares of edges.
    #[default]
    Permuted,
    /// As the recursion draws them: the first of P ranges has 0.76^log2 P of the edges.
    Drawn,
}

/// A rule that generates edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphRule {
    /// R-MAT with the parameters of Graph 500 and `degree * 2^scale` edges.
    ///
    /// The parameters are 0.57 for A, and 0.19 for B and C.
    Kronecker {
        /// Logarithm of the number of vertices, 1 to 48.
        scale: u8,
        /// Edges for each vertex; stored both ways they are twice as many arcs, but for self-loops.
        degree: u64,
        /// Order of the vertices.
        labels: KroneckerLabels,
    },
    /// Both ends of each edge are drawn uniformly.
    Uniform {
        /// Number of vertices.
        vertices: u64,
        /// Number of edges.
        edges: u64,
    },
    /// Vertex `row * columns + column` has an edge to its right and to its lower neighbour.
    Grid {
        /// Number of rows.
        rows: u64,
        /// Number of columns.
        columns: u64,
    },
    /// Vertex i has edges to i + 1, i + 2, ..., i + degree, modulo the number of vertices.
    Consecutive {
        /// Number of vertices.
        vertices: u64,
        /// Edges from each vertex, fewer than there are vertices.
        degree: u64,
    },
    /// Vertex i has edges to i + gap, ..., i + degree gap, modulo the number of vertices, in this order.
    ///
    /// Every vertex has `degree` edges for any gap. If multiples of the gap coincide modulo that number, several edges join the same
    /// vertices. If one is a multiple of it, each vertex has an edge to itself.
    Scattered {
        /// Number of vertices.
        vertices: u64,
        /// Edges from each vertex.
        degree: u64,
        /// The distance between neighbours that follow each other.
        gap: u64,
    },
}

impl GraphRule {
    pub(super) fn circulant(self) -> Option<Circulant> {
        match self {
            GraphRule::Consecutive { vertices, degree } => {
                Some(Circulant::new(vertices, degree, 1))
            }
            GraphRule::Scattered {
                vertices,
                degree,
                gap,
            } => Some(Circulant::new(vertices, degree, gap)),
            _ => None,
        }
    }
}

/// A generated graph.
#[derive(Clone, Copy, Debug)]
pub struct Generated {
    pub(super) rule: GraphRule,
    pub(super) seed: u64,
    pub(super) weights: EdgeKind,
    pub(super) vertices: u64,
    pub(super) edges: u64,
}

impl Generated {
    /// Edges of a piece.
    pub(crate) const PIECE_EDGES: u64 = 1 << 18;
    /// Creates the graph of `rule` and `seed`.
    ///
    /// Weights are integers from 1 to 255, drawn uniformly, for either precision.
    ///
    /// # Errors
    /// Edges are to carry a record; there are no vertices to draw edges between, or too few, or more vertices or edges than 64 bits count.
    pub fn new(rule: GraphRule, seed: u64, weights: EdgeKind) -> Result<Self, IngestError> {
        let refuse = |problem| Err(IngestError::Generator { problem });
        if weights.is_record() {
            return refuse("generated edges carry a weight or nothing, and no record");
        }
        let counts = match rule {
            GraphRule::Kronecker { scale, .. } if !(1..=48).contains(&scale) => {
                return refuse("a Kronecker graph has a scale of 1 to 48");
            }
            GraphRule::Kronecker { scale, degree, .. } => {
                let vertices = 1u64 << scale;
                degree.checked_mul(vertices).map(|edges| (vertices, edges))
            }
            GraphRule::Uniform {
                vertices: 0,
                edges: 1..,
            }
            | GraphRule::Scattered {
                vertices: 0,
                degree: 1..,
                ..
            } => {
                return refuse("edges need vertices; give at least one");
            }
            GraphRule::Uniform { vertices, edges } => Some((vertices, edges)),
            GraphRule::Grid { rows, columns } => grid_counts(rows, columns),
            GraphRule::Consecutive { vertices, degree } if degree > 0 && degree >= vertices => {
                return refuse(
                    "a vertex of a consecutive graph has fewer neighbours than there are vertices",
                );
            }
            GraphRule::Consecutive { vertices, degree }
            | GraphRule::Scattered {
                vertices, degree, ..
            } => vertices.checked_mul(degree).map(|edges| (vertices, edges)),
        };
        let Some((vertices, edges)) = counts else {
            return refuse(
                "it would have more vertices or edges than can be counted: ask for fewer",
            );
        };
        Ok(Generated {
            rule,
            seed,
            weights,
            vertices,
            edges,
        })
    }

    /// Returns the number of different neighbours of each vertex, if some edges of it coincide.
    ///
    /// Edges coincide if multiples of the gap of a scattered graph are equal modulo the number of vertices.
    pub fn coinciding(&self) -> Option<u64> {
        let graph = self.rule.circulant()?;
        graph.repeats(false).then(|| graph.period())
    }

    /// Returns the graph as a circulant one, if its arcs can be generated in the order of the stored graph.
    ///
    /// `None` if the rule does not allow that, or if duplicate arcs need a decision.
    pub(crate) fn circulant(&self, directed: bool, duplicates: Duplicates) -> Option<Circulant> {
        let undecided = self.weights != EdgeKind::None || duplicates != Duplicates::Keep;
        self.rule
            .circulant()
            .filter(|graph| !undecided || !graph.repeats(!directed))
    }
}

/// A generated graph, and what it is as a circulant one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectSource<'a> {
    pub(crate) graph: &'a Generated,
    pub(crate) circulant: Circulant,
}

fn grid_counts(rows: u64, columns: u64) -> Option<(u64, u64)> {
    let right = rows.checked_mul(columns.saturating_sub(1))?;
    let down = rows.saturating_sub(1).checked_mul(columns)?;
    Some((rows.checked_mul(columns)?, right.checked_add(down)?))
}
