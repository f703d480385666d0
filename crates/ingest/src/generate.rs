//! Generated graphs: R-MAT (Kronecker), uniform and grid, as sources of edges.
//!
//! Edge number e of a graph depends on the seed and on e alone. So pieces are drawn in any order, by any number of
//! threads, and drawing one again gives the same edges.

mod kronecker;
mod random;

use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Disk, Stop};

use crate::edge::{BATCH_EDGES_MAX, EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};
use crate::error::IngestError;
use kronecker::Paths;
use random::{Permutation, Purpose, Sequence, below};

/// Edges of a piece.
const PIECE_EDGES: u64 = 1 << 18;

/// The greatest weight that is drawn; the least is 1.
const WEIGHT_MAX: u64 = 255;

/// How edges are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphRule {
    /// R-MAT with the parameters of Graph 500 (A 0.57, B and C 0.19), `degree * 2^scale` edges, labels permuted.
    Kronecker {
        /// Logarithm of the number of vertices, 1 to 48.
        scale: u8,
        /// Edges for each vertex.
        degree: u64,
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
}

/// A generated graph.
#[derive(Clone, Copy, Debug)]
pub struct Generated {
    rule: GraphRule,
    seed: u64,
    weighted: bool,
    vertices: u64,
    edges: u64,
}

impl Generated {
    /// The graph that `rule` and `seed` give; with `weighted`, edges have integer weights of 1 to 255.
    ///
    /// # Errors
    /// There are no vertices to draw edges between, or more vertices or edges than 64 bits count.
    pub fn new(rule: GraphRule, seed: u64, weighted: bool) -> Result<Self, IngestError> {
        let too_large = || IngestError::Generator {
            problem: "it would have more vertices or edges than can be counted: ask for fewer",
        };
        let (vertices, edges) = match rule {
            GraphRule::Kronecker { scale, .. } if !(1..=48).contains(&scale) => {
                return Err(IngestError::Generator {
                    problem: "a Kronecker graph has a scale of 1 to 48",
                });
            }
            GraphRule::Kronecker { scale, degree } => (
                1 << scale,
                degree.checked_mul(1 << scale).ok_or_else(too_large)?,
            ),
            GraphRule::Uniform {
                vertices: 0,
                edges: 1..,
            } => {
                return Err(IngestError::Generator {
                    problem: "edges need vertices: ask for at least one",
                });
            }
            GraphRule::Uniform { vertices, edges } => (vertices, edges),
            GraphRule::Grid { rows, columns } => {
                let vertices = rows.checked_mul(columns).ok_or_else(too_large)?;
                let right = rows
                    .checked_mul(columns.saturating_sub(1))
                    .ok_or_else(too_large)?;
                let down = rows
                    .saturating_sub(1)
                    .checked_mul(columns)
                    .ok_or_else(too_large)?;
                (vertices, right.checked_add(down).ok_or_else(too_large)?)
            }
        };
        Ok(Generated {
            rule,
            seed,
            weighted,
            vertices,
            edges,
        })
    }
}

/// What drawing edges of one graph takes, worked out once.
#[derive(Debug)]
struct Pencil {
    graph: Generated,
    paths: Paths,
    labels: Permutation,
    weights: Sequence,
}

impl Pencil {
    fn new(graph: Generated) -> Self {
        let scale = match graph.rule {
            GraphRule::Kronecker { scale, .. } => u32::from(scale),
            GraphRule::Uniform { .. } | GraphRule::Grid { .. } => 0,
        };
        Pencil {
            graph,
            paths: Paths::new(scale, graph.seed),
            labels: Permutation::new(scale, graph.seed),
            weights: Sequence::new(graph.seed, Purpose::Weight, 0),
        }
    }

    /// Edges number `from` up to `to`.
    fn draw(&self, from: u64, to: u64, edges: &mut Vec<(u64, u64)>, weights: &mut Vec<f64>) {
        edges.clear();
        weights.clear();
        match self.graph.rule {
            GraphRule::Kronecker { .. } => edges.extend((from..to).map(|e| {
                let (source, destination) = self.paths.ends(e);
                (self.labels.of(source), self.labels.of(destination))
            })),
            GraphRule::Uniform { vertices, .. } => {
                let sequence = |lane| Sequence::new(self.graph.seed, Purpose::Ends, lane);
                let (sources, destinations) = (sequence(0), sequence(1));
                edges.extend((from..to).map(|e| {
                    (
                        below(sources.at(e), vertices),
                        below(destinations.at(e), vertices),
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
        }
        if self.graph.weighted {
            weights.extend((from..to).map(|e| (below(self.weights.at(e), WEIGHT_MAX) + 1) as f64));
        }
    }
}

impl EdgeSource for Generated {
    fn pieces(&self) -> u64 {
        self.edges.div_ceil(PIECE_EDGES)
    }
    fn ids(&self) -> Ids {
        Ids::Integer
    }
    fn weights(&self) -> EdgeKind {
        if self.weighted {
            EdgeKind::F32
        } else {
            EdgeKind::None
        }
    }
    fn vertices(&self) -> Option<u64> {
        Some(self.vertices)
    }
    fn edges(&self) -> Option<u64> {
        Some(self.edges)
    }
    fn amount(&self) -> u64 {
        self.edges
    }
    fn rereads_fast(&self) -> bool {
        // A grid is counted out; the others cost more to draw than to read back.
        matches!(self.rule, GraphRule::Grid { .. }) && !self.weighted
    }
    fn reader_bytes(&self) -> u64 {
        (BATCH_EDGES_MAX * size_of::<(u64, u64, f64)>()) as u64
    }
    fn reader(
        &self,
        _: &Arc<dyn Disk>,
        budget: &Budget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        let lease = budget.lease("drawing edges", self.reader_bytes())?;
        Ok(Box::new(Drawing {
            pencil: Pencil::new(*self),
            edges: Vec::with_capacity(BATCH_EDGES_MAX),
            weights: Vec::with_capacity(BATCH_EDGES_MAX),
            _lease: lease,
        }))
    }
}

/// One worker's way to draw pieces.
struct Drawing {
    pencil: Pencil,
    edges: Vec<(u64, u64)>,
    weights: Vec<f64>,
    _lease: graphmill_storage::Lease,
}

impl PieceReader for Drawing {
    fn read(
        &mut self,
        piece: u64,
        stop: &Stop,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let mut report = PieceReport::default();
        let end = self.pencil.graph.edges.min((piece + 1) * PIECE_EDGES);
        let mut from = piece * PIECE_EDGES;
        while from < end {
            if stop.requested() {
                return Err(IngestError::Stopped);
            }
            let to = end.min(from + BATCH_EDGES_MAX as u64);
            self.pencil
                .draw(from, to, &mut self.edges, &mut self.weights);
            sink.integers(&self.edges, &self.weights)?;
            sink.progress(to - from);
            report.edges += to - from;
            from = to;
        }
        report.lines = report.edges;
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(rule: GraphRule, seed: u64) -> (Vec<(u64, u64)>, Vec<f64>) {
        let graph = Generated::new(rule, seed, true).unwrap();
        let (mut edges, mut weights) = (Vec::new(), Vec::new());
        Pencil::new(graph).draw(0, graph.edges, &mut edges, &mut weights);
        assert_eq!(
            (edges.len() as u64, weights.len()),
            (graph.edges, edges.len())
        );
        assert!(
            edges
                .iter()
                .all(|&(s, d)| s < graph.vertices && d < graph.vertices)
        );
        assert!(
            weights
                .iter()
                .all(|w| (1.0..=255.0).contains(w) && w.fract() == 0.0)
        );
        (edges, weights)
    }

    #[test]
    fn an_edge_depends_on_its_number_and_the_seed_alone() {
        for rule in [
            GraphRule::Kronecker {
                scale: 10,
                degree: 7,
            },
            GraphRule::Uniform {
                vertices: 999,
                edges: 5000,
            },
            GraphRule::Grid {
                rows: 30,
                columns: 41,
            },
        ] {
            let (edges, weights) = all(rule, 1);
            let graph = Generated::new(rule, 1, true).unwrap();
            let (mut some, mut their) = (Vec::new(), Vec::new());
            Pencil::new(graph).draw(100, 230, &mut some, &mut their);
            assert_eq!(
                (some.as_slice(), their.as_slice()),
                (&edges[100..230], &weights[100..230])
            );
            if !matches!(rule, GraphRule::Grid { .. }) {
                assert_ne!(all(rule, 2).0, edges);
            }
        }
    }

    #[test]
    fn a_grid_has_each_edge_once() {
        for (rows, columns) in [(1, 1), (1, 5), (5, 1), (2, 2), (3, 4)] {
            let (mut edges, _) = all(GraphRule::Grid { rows, columns }, 1);
            let mut expected = Vec::new();
            for v in 0..rows * columns {
                if v % columns + 1 < columns {
                    expected.push((v, v + 1));
                }
                if v / columns + 1 < rows {
                    expected.push((v, v + columns));
                }
            }
            edges.sort_unstable();
            assert_eq!(edges, expected, "{rows} x {columns}");
        }
    }

    #[test]
    fn kronecker_degrees_are_as_skewed_as_the_quadrants_say() {
        let (edges, _) = all(
            GraphRule::Kronecker {
                scale: 12,
                degree: 16,
            },
            3,
        );
        let mut degrees = vec![0u32; 1 << 12];
        edges.iter().for_each(|&(s, _)| degrees[s as usize] += 1);
        degrees.sort_unstable();
        // The heaviest source has quadrants A or B at every level: 0.76^12 of all edges.
        let heaviest = 0.76f64.powi(12) * edges.len() as f64;
        let found = f64::from(degrees[degrees.len() - 1]);
        assert!(
            (0.8..1.25).contains(&(found / heaviest)),
            "{found} where about {heaviest} are expected"
        );
        let silent = degrees.iter().filter(|d| **d == 0).count();
        assert!(silent > 300, "{silent} sources without an edge");
    }

    #[test]
    fn a_seed_gives_the_same_graph_in_every_version() {
        let kronecker = |scale| GraphRule::Kronecker { scale, degree: 4 };
        for (rule, expected) in [
            (kronecker(7), 0x934f_e3ba_b3bd_e247),
            (kronecker(11), 0x7f7d_032c_52f3_8394),
            (
                GraphRule::Uniform {
                    vertices: 1000,
                    edges: 3000,
                },
                0xdda9_dffd_6ba1_b4c9,
            ),
            (
                GraphRule::Grid {
                    rows: 17,
                    columns: 33,
                },
                0x347f_ad6d_f12a_c410,
            ),
        ] {
            let (edges, weights) = all(rule, 7);
            let numbers = edges
                .iter()
                .zip(&weights)
                .flat_map(|(&(s, d), &w)| [s, d, w as u64]);
            let hash = numbers.fold(0xcbf2_9ce4_8422_2325_u64, |hash, number| {
                (hash ^ number).wrapping_mul(0x0100_0000_01b3)
            });
            assert_eq!(hash, expected, "{rule:?}: {hash:#x}");
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        for rule in [
            GraphRule::Kronecker {
                scale: 0,
                degree: 1,
            },
            GraphRule::Kronecker {
                scale: 48,
                degree: 1 << 20,
            },
            GraphRule::Uniform {
                vertices: 0,
                edges: 1,
            },
            GraphRule::Grid {
                rows: 1 << 40,
                columns: 1 << 40,
            },
        ] {
            assert!(Generated::new(rule, 1, false).is_err(), "{rule:?}");
        }
        assert_eq!(
            all(
                GraphRule::Uniform {
                    vertices: 0,
                    edges: 0
                },
                1
            )
            .0,
            []
        );
        assert_eq!(
            all(
                GraphRule::Grid {
                    rows: 0,
                    columns: 9
                },
                1
            )
            .0,
            []
        );
    }
}
