//! The cut of each rank's batches into lanes, with about as many arcs into each.

use std::ops::Range;

use graphmill_graph::{Batches, StoredGraph};

use crate::comm::communicator::Communicator;

/// The lanes of all ranks, in the order of their vertices.
#[derive(Debug)]
pub(crate) struct LaneCuts {
    /// For each rank, the first batch of each of its lanes, and the end.
    cuts: Vec<Vec<usize>>,
}

impl LaneCuts {
    /// Cuts the batches of each rank into as many lanes as `lanes` says.
    ///
    /// All ranks compute the same, since the directory of the graph is at each.
    pub(crate) fn new(graph: &StoredGraph, ranks: &Communicator, lanes: &[usize]) -> Self {
        // A batch without arcs takes time too.
        let weight = |batch: usize| graph.column(batch).edges() + graph.batches().span(batch);
        let cuts = lanes.iter().enumerate().map(|(rank, lanes)| {
            let batches = ranks.of(rank);
            let total: u64 = batches.clone().map(weight).sum();
            let mut cuts = vec![batches.start];
            let mut sum = 0;
            for batch in batches.clone() {
                sum += weight(batch);
                while cuts.len() < *lanes && sum >= share(total, cuts.len(), *lanes) {
                    cuts.push(batch + 1);
                }
            }
            cuts.resize(lanes + 1, batches.end);
            cuts
        });
        LaneCuts {
            cuts: cuts.collect(),
        }
    }

    /// The number of lanes of a rank.
    pub(crate) fn count(&self, rank: usize) -> usize {
        self.cuts[rank].len() - 1
    }

    /// The number of lanes of each rank.
    pub(crate) fn counts(&self) -> Vec<usize> {
        (0..self.cuts.len()).map(|rank| self.count(rank)).collect()
    }

    /// The batches of a lane.
    pub(crate) fn batches(&self, rank: usize, lane: usize) -> Range<usize> {
        self.cuts[rank][lane]..self.cuts[rank][lane + 1]
    }

    /// The lane of a batch of a rank.
    pub(crate) fn lane_of(&self, rank: usize, batch: usize) -> usize {
        self.cuts[rank].partition_point(|cut| *cut <= batch) - 1
    }

    /// Returns the most vertices that a lane has.
    pub(crate) fn widest(&self, batches: &Batches) -> u64 {
        let cuts = self.cuts.iter().flat_map(|cuts| cuts.windows(2));
        let spans = cuts.map(|cut| batches.cut(cut[1]) - batches.cut(cut[0]));
        spans.max().unwrap_or(0)
    }
}

/// Returns the first `parts` of `count` equal parts of a total.
fn share(total: u64, parts: usize, count: usize) -> u64 {
    (u128::from(total) * parts as u128 / count as u128) as u64
}
