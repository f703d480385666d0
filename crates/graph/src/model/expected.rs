//! A statistical model of a graph that is known by its numbers alone.
//!
//! A graph is made of *classes* of vertices: how many there are, and how many edges each of them has on average. Vertices of all
//! classes are mixed over the indices, as labels of generated graphs are permuted. So any range of indices has its share of every class,
//! and a cell follows from the spans of its two batches.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::batches::Batches;
use crate::model::numbers::SenderCounts;

/// How edges are spread over vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum DegreeModel {
    /// As in R-MAT with the Graph 500 parameters (A 0.57, B and C 0.19).
    #[default]
    Kronecker,
    /// Both ends of each edge are any vertex.
    Uniform,
}

/// Vertices that have the same number of edges on average.
#[derive(Clone, Copy, Debug)]
pub(super) struct DegreeClass {
    pub(super) vertices: f64,
    /// Arcs that leave one, and as many that reach it.
    pub(super) degree: f64,
}

/// A model of a graph with a given number of vertices and edges.
#[derive(Clone, Debug)]
pub struct GraphModel {
    pub(super) classes: Vec<DegreeClass>,
    pub(super) vertices: u64,
    pub(super) arcs: u64,
    pub(super) directed: bool,
}

/// The chance that an end of an edge has a 0 in one of its bits: quadrants A and B, or A and C.
const ZERO: f64 = 0.76;

impl GraphModel {
    /// Of `edges` between vertices 0..`vertices`, at least one of them; undirected ones are two arcs each.
    #[must_use]
    pub fn new(like: DegreeModel, vertices: u64, edges: u64, directed: bool) -> Self {
        // An undirected edge is stored both ways.
        let arcs = edges.saturating_mul(2 - u64::from(directed));
        let mean = arcs as f64 / vertices as f64;
        let classes = match like {
            DegreeModel::Uniform => vec![DegreeClass {
                vertices: vertices as f64,
                degree: mean,
            }],
            DegreeModel::Kronecker => {
                let levels = u64::BITS - vertices.saturating_sub(1).leading_zeros();
                let n = f64::from(levels);
                // The number of ones in a label is binomial.
                let mut share = 0.5f64.powi(levels as i32);
                let class = |ones: u32| {
                    let class = DegreeClass {
                        vertices: vertices as f64 * share,
                        degree: mean
                            * (2.0 * ZERO).powi((levels - ones) as i32)
                            * (2.0 - 2.0 * ZERO).powi(ones as i32),
                    };
                    share *= (n - f64::from(ones)) / (f64::from(ones) + 1.0);
                    class
                };
                (0..=levels).map(class).collect()
            }
        };
        GraphModel {
            classes,
            vertices,
            arcs,
            directed,
        }
    }

    /// Stored edges.
    #[must_use]
    pub fn arcs(&self) -> u64 {
        self.arcs
    }

    /// How many of the vertices have edges.
    #[must_use]
    pub fn occurring(&self) -> u64 {
        // An arc of an undirected graph is counted at its source and, turned round, at its destination.
        let ends = if self.directed { 2.0 } else { 1.0 };
        self.having(ends).min(self.vertices as f64) as u64
    }

    /// How many vertices have an edge among such a share of all.
    pub(super) fn having(&self, share: f64) -> f64 {
        let having = |class: &DegreeClass| class.vertices * -(-class.degree * share).exp_m1();
        self.classes.iter().map(having).sum()
    }

    pub(crate) fn senders(&self, vertices: u64, ranges: &[Range<u64>]) -> SenderCounts {
        let length = |range: &Range<u64>| range.end - range.start;
        let share = |length: u64| length as f64 / vertices.max(1) as f64;
        // Ranges have few lengths.
        let lengths: BTreeSet<u64> = ranges.iter().map(length).collect();
        let having = lengths
            .into_iter()
            .map(|length| (length, self.having(share(length))));
        let having: BTreeMap<u64, f64> = having.collect();
        let all = self.having(1.0);
        let each = |from: &Range<u64>| {
            let of = |to: &Range<u64>| (share(length(from)) * having[&length(to)]) as u64;
            ranges.iter().map(of).collect()
        };
        SenderCounts {
            all: (ranges.iter())
                .map(|from| (share(length(from)) * all) as u64)
                .collect(),
            to: ranges.iter().map(each).collect(),
        }
    }

    /// Calls `f` as [`GraphProfile::needs`](crate::GraphProfile::needs) does.
    pub(crate) fn needs(
        &self,
        batches: &Batches,
        groups: usize,
        groups_of: impl Fn(usize) -> Vec<Option<usize>>,
        mut f: impl FnMut(usize, &[f64]),
    ) {
        let share = |span: u64| span as f64 / batches.vertices().max(1) as f64;
        // Groups have few spans, and are the same for many batches.
        let mut of_span = BTreeMap::new();
        let (mut last, mut having) = (Vec::new(), Vec::new());
        for batch in 0..batches.len() {
            let of_column = groups_of(batch);
            if batch == 0 || of_column != last {
                let mut spans = vec![0; groups];
                for (column, group) in of_column.iter().enumerate() {
                    if let Some(span) = group.and_then(|group| spans.get_mut(group)) {
                        *span += batches.span(column);
                    }
                }
                let new = |span: &u64| self.having(share(*span));
                let of = |span| *of_span.entry(span).or_insert_with_key(new);
                having = spans.into_iter().map(of).collect::<Vec<f64>>();
                last = of_column;
            }
            let here = share(batches.span(batch));
            let counts: Vec<f64> = having.iter().map(|having| here * having).collect();
            f(batch, &counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degree_classes_cover_all_vertices_and_arcs() {
        for (like, vertices, edges, directed) in [
            (DegreeModel::Kronecker, 1 << 16, 1 << 20, true),
            (DegreeModel::Kronecker, 1 << 38, 1 << 40, false),
            (DegreeModel::Kronecker, 1_000_003, 5_000_000, true),
            (DegreeModel::Uniform, 1_000_003, 5_000_000, false),
            (DegreeModel::Kronecker, 1, 7, true),
            (DegreeModel::Kronecker, u64::MAX, u64::MAX, false),
        ] {
            let graph = GraphModel::new(like, vertices, edges, directed);
            let all: f64 = graph.classes.iter().map(|class| class.vertices).sum();
            let arcs = |class: &DegreeClass| class.vertices * class.degree;
            let arcs: f64 = graph.classes.iter().map(arcs).sum();
            let near = |found: f64, wanted: u64| (found / wanted as f64 - 1.0).abs() < 1e-9;
            assert!(near(all, vertices) && near(arcs, graph.arcs()), "{graph:?}");
            assert!(graph.occurring() <= vertices);
        }
    }

    #[test]
    fn sources_of_a_column_group_are_counted_once() {
        let batches = Batches::new(vec![0, 300, 600, 900, 1000]).unwrap();
        let graph = GraphModel::new(DegreeModel::Kronecker, 1000, 5000, true);
        // The last column is in no group; the first two are in one, or each in its own.
        let count = |groups: [Option<usize>; 4]| {
            let mut counts = Vec::new();
            graph.needs(
                &batches,
                3,
                |_| groups.to_vec(),
                |batch, of_groups| {
                    assert_eq!(batch, counts.len());
                    counts.push([of_groups[0], of_groups[1], of_groups[2]]);
                },
            );
            counts
        };
        let together = count([Some(0), Some(0), Some(1), None]);
        let apart = count([Some(0), Some(1), Some(2), None]);
        for batch in 0..4 {
            let ([both, third, none], [first, second, _]) = (together[batch], apart[batch]);
            assert_eq!((first, none), (second, 0.0));
            assert!(both > first && both < first + second);
            assert_eq!(third, apart[batch][2]);
            assert!((both * 1000.0 / batches.span(batch) as f64 - graph.having(0.6)).abs() < 1e-6);
        }
    }
}
