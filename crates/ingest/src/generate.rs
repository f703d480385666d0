//! Generated graphs: R-MAT (Kronecker), uniform and grid, as sources of edges.
//!
//! Edge number e of a graph depends on the seed and on e alone. So pieces are drawn in any order, by any number of
//! threads, and drawing one again gives the same edges.

use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Disk, Stop};

use crate::edge::{BATCH_EDGES_MAX, EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};
use crate::error::IngestError;

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

/// What a random number is for; numbers for different purposes have nothing to do with each other.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Ends,
    Labels,
    Weight,
}

/// Random numbers by position: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014), whose n-th number needs none before it, from a start that depends on seed and purpose.
#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    start: u64,
}

impl Sequence {
    fn new(seed: u64, purpose: Purpose, lane: u64) -> Self {
        let purpose = (purpose as u64) << 32 | lane;
        Sequence {
            start: mix(seed ^ mix(purpose)),
        }
    }

    #[inline(always)]
    fn at(self, position: u64) -> u64 {
        mix(self
            .start
            .wrapping_add(position.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number below `bound` from one of all 64-bit numbers, uneven by less than `bound` / 2^64.
#[inline(always)]
fn below(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// Levels of the recursion that one random number of 32 bits decides.
const LEVELS: u32 = 5;

/// Random 32-bit numbers for one edge at most: 48 levels take ten.
const DRAWS_MAX: usize = 10;

/// The recursion of R-MAT (Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004),
/// several levels at a time: which of the 4^levels cells an edge falls into is drawn at once, by an alias table
/// (Walker, "An efficient method for generating discrete random variables with general distributions", TOMS 1977).
/// That a path of several levels can be drawn as one is from Huebschle-Schneider and Sanders, "Linear work generation
/// of R-MAT graphs", Network Science 2020.
#[derive(Debug)]
struct Paths {
    /// For the first levels, where their number is no multiple of [`LEVELS`].
    first: Cells,
    others: Cells,
    /// Draws of [`LEVELS`] levels.
    draws: usize,
    /// Each number decides two draws.
    sequences: [Sequence; DRAWS_MAX / 2 + 1],
}

impl Paths {
    fn new(scale: u32, seed: u64) -> Self {
        Paths {
            first: Cells::new(scale % LEVELS),
            others: Cells::new(LEVELS),
            draws: (scale / LEVELS) as usize,
            sequences: std::array::from_fn(|i| Sequence::new(seed, Purpose::Ends, i as u64)),
        }
    }

    /// The ends of edge number `edge`, before their labels are permuted.
    #[inline(always)]
    fn ends(&self, edge: u64) -> (u64, u64) {
        let [first, others @ ..] = &self.sequences;
        let (mut source, mut destination) = self.first.draw(first.at(edge) as u32);
        for (pair, sequence) in others.iter().enumerate().take(self.draws.div_ceil(2)) {
            let random = sequence.at(edge);
            let (s, d) = self.others.draw(random as u32);
            (source, destination) = (source << LEVELS | s, destination << LEVELS | d);
            if 2 * pair + 1 < self.draws {
                let (s, d) = self.others.draw((random >> 32) as u32);
                (source, destination) = (source << LEVELS | s, destination << LEVELS | d);
            }
        }
        (source, destination)
    }
}

/// The cells of some levels of the recursion, each as likely as the product of its quadrants. A cell's number has the
/// bits of its row above those of its column.
#[derive(Debug)]
struct Cells {
    levels: u32,
    /// Per cell the share of draws, of 2^(32 - 2 levels), that stay with it; in the low half the cell of the others.
    table: Vec<u64>,
}

impl Cells {
    /// In integers throughout, so that every machine has the same table.
    fn new(levels: u32) -> Self {
        // Quadrants A, B, C and D in hundredths.
        const QUADRANTS: [u64; 4] = [57, 19, 19, 5];
        let cells = 1u64 << (2 * levels);
        let weight = |cell: u64| -> u64 {
            let quadrant = |level| (cell >> (level + levels) & 1) << 1 | cell >> level & 1;
            (0..levels)
                .map(|level| QUADRANTS[quadrant(level) as usize & 3])
                .product()
        };
        // Each cell holds `cells` times its weight; a full one holds the weight of all.
        let full = 100u64.pow(levels);
        let mut held: Vec<u64> = (0..cells).map(|cell| weight(cell) * cells).collect();
        // Without levels there is one cell, and it does not matter that its share is lost in the shift below.
        let share = 1u64 << (32 - 2 * levels);
        let mut table: Vec<u64> = (0..cells).map(|cell| share << 32 | cell).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
            (0..held.len()).partition(|&cell| held[cell] < full);
        while let (Some(&from), Some(to)) = (rich.last(), poor.pop()) {
            table[to] = (held[to] * share / full) << 32 | from as u64;
            held[from] -= full - held[to];
            if held[from] < full {
                rich.pop();
                poor.push(from);
            }
        }
        Cells { levels, table }
    }

    /// The row and the column of the cell that 32 random bits choose.
    #[inline(always)]
    fn draw(&self, random: u32) -> (u64, u64) {
        let bits = 2 * self.levels;
        let own = random & ((1 << bits) - 1);
        let entry = self.table.get(own as usize).copied().unwrap_or(0);
        let cell = if u64::from(random >> bits) < entry >> 32 {
            own
        } else {
            entry as u32
        };
        let column = cell & ((1 << self.levels) - 1);
        (u64::from(cell >> self.levels), u64::from(column))
    }
}

/// A bijection of the numbers of `bits` bits: steps that can each be undone.
#[derive(Debug)]
struct Permutation {
    mask: u64,
    half: u32,
    keys: [u64; 4],
}

impl Permutation {
    fn new(bits: u32, seed: u64) -> Self {
        let keys = Sequence::new(seed, Purpose::Labels, 0);
        Permutation {
            mask: (1 << bits) - 1,
            half: bits.div_ceil(2),
            keys: std::array::from_fn(|i| keys.at(i as u64)),
        }
    }

    #[inline(always)]
    fn of(&self, label: u64) -> u64 {
        let mut x = label;
        for key in self.keys {
            // Adding, multiplying by an odd number and folding high bits onto low ones are bijections modulo 2^bits.
            x = x.wrapping_add(key).wrapping_mul(key | 1) & self.mask;
            x ^= x >> self.half;
        }
        x
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
    fn labels_are_permuted_one_to_one() {
        for bits in 1..=14 {
            let labels = Permutation::new(bits, 5);
            let mut seen = vec![false; 1 << bits];
            for label in 0..1 << bits {
                let to = labels.of(label) as usize;
                assert!(
                    !std::mem::replace(&mut seen[to], true),
                    "{bits} bits: two labels become {to}"
                );
            }
        }
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
    fn cells_are_as_likely_as_the_product_of_their_quadrants() {
        for levels in 1..=LEVELS {
            let cells = Cells::new(levels);
            let share = 1u64 << (32 - 2 * levels);
            let mut ways = vec![0u64; cells.table.len()];
            for (own, entry) in cells.table.iter().enumerate() {
                ways[own] += entry >> 32;
                ways[*entry as u32 as usize] += share - (entry >> 32);
            }
            for (cell, ways) in ways.into_iter().enumerate() {
                let quadrant = |level: u32| match (cell >> (level + levels) & 1, cell >> level & 1)
                {
                    (0, 0) => 0.57,
                    (1, 1) => 0.05,
                    _ => 0.19,
                };
                let expected = (0..levels).map(quadrant).product::<f64>() * 4_294_967_296.0;
                // Shares are rounded, those of all other cells to the disadvantage of the few likely ones.
                let error = (ways as f64 - expected).abs();
                assert!(
                    error <= 1100.0 && error <= 1.0 + expected / 500.0,
                    "{levels} levels, cell {cell}: {ways} of {expected}"
                );
            }
        }
    }

    #[test]
    fn each_level_of_an_edge_falls_into_the_quadrants_as_often_as_it_should() {
        let edges = 1 << 17;
        for scale in [1, 5, 12, 24, 48] {
            let paths = Paths::new(scale, 9);
            let mut counts = vec![[0u32; 4]; scale as usize];
            for edge in 0..edges {
                let (source, destination) = paths.ends(edge);
                assert!(source >> scale == 0 && destination >> scale == 0);
                for (level, counts) in counts.iter_mut().enumerate() {
                    counts[(source >> level & 1) as usize * 2
                        + (destination >> level & 1) as usize] += 1;
                }
            }
            for (level, counts) in counts.iter().enumerate() {
                for (count, share) in counts.iter().zip([0.57, 0.19, 0.19, 0.05]) {
                    let expected = share * edges as f64;
                    let sigma = (expected * (1.0 - share)).sqrt();
                    let off = (f64::from(*count) - expected).abs();
                    assert!(
                        off < 5.0 * sigma,
                        "scale {scale}, level {level}: {count} where {expected} are expected"
                    );
                }
            }
        }
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
