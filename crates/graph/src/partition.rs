//! The cut of the batches into partitions, contiguous runs that one rank owns each (DFOGraph, section 2.2).
//!
//! Batch `b` weighs `alpha |V_b| + |E_in| + |E_out|`, which is about what a pass reads, writes and sends for it where alpha is 2P - 1
//! (section 4.5). Of all cuts the one is taken whose partitions differ least: the sum of the squares of their weights is the smallest.

use std::ops::Range;

use crate::open::stored_graph::StoredGraph;

/// Returns the cut of the batches into one partition per rank: `r` owns `cuts[r]..cuts[r + 1]`.
///
/// The default of `alpha` is 2P - 1. `here` holds, for each rank, which batches it
/// [has](StoredGraph::has_batch). If no rank has all batches, consecutive ranks with the same batches share
/// a run of them. Returns `None` if the ranks together lack a batch, or have them out of rank order.
#[must_use]
pub fn partition(
    graph: &StoredGraph,
    here: &[Vec<bool>],
    alpha: Option<u64>,
) -> Option<Vec<usize>> {
    let ranks = here.len();
    let batches = graph.batches();
    let alpha = alpha.unwrap_or(2 * ranks as u64 - 1);
    let spans = (0..batches.len()).map(|batch| batches.span(batch));
    let mut weights: Vec<u64> = spans.map(|span| alpha.saturating_mul(span)).collect();
    if let Some(set) = graph.chunks() {
        for (batch, weight) in weights.iter_mut().enumerate() {
            let out = set.of_batch(batch).iter().map(|chunk| chunk.edges() as u64);
            *weight = weight.saturating_add(out.sum::<u64>().saturating_add(set.arcs_into(batch)));
        }
    }
    for (batch, column) in graph.forward().columns().iter().enumerate() {
        for cell in column.cells() {
            for end in [batch, cell.source_batch()] {
                weights[end] = weights[end].saturating_add(cell.edges());
            }
        }
    }
    let mut cuts = vec![0];
    for alike in here.chunk_by(|a, b| a == b) {
        let start = cuts[cuts.len() - 1];
        let has = |batch: &usize| alike[0].get(*batch) == Some(&true);
        let end = start + (start..).take_while(has).count();
        let of_these = cut(&weights[start..end], alike.len());
        cuts.extend(of_these[1..].iter().map(|cut| start + cut));
    }
    (cuts[ranks] == batches.len()).then_some(cuts)
}

/// Cuts weighted things into `runs` runs, none empty if there are enough things.
fn cut(weights: &[u64], runs: usize) -> Vec<usize> {
    let count = weights.len();
    if count <= runs {
        return (0..=runs).map(|run| run.min(count)).collect();
    }
    let mut before = vec![0u128];
    for weight in weights {
        before.push(before[before.len() - 1] + u128::from(*weight));
    }
    // A unit keeps the sums of squares within 128 bits.
    let unit = (before[count] >> 60) + 1;
    let square = |run: Range<usize>| {
        let weight = (before[run.end] - before[run.start]) / unit;
        weight * weight
    };
    // The least sum of squares of the first `end` things in as many runs as were looked at, and where the last of each begins.
    let mut least: Vec<u128> = (0..=count).map(|end| square(0..end)).collect();
    let mut begins = Vec::new();
    for run in 1..runs {
        let mut next = vec![0; count + 1];
        let mut begin = vec![0; count + 1];
        // The later a run ends the later it begins: so half of the ends have half of the beginnings to look at.
        let mut todo = vec![(run + 1..count + 1, run..count)];
        while let Some((ends, from)) = todo.pop() {
            if ends.is_empty() {
                continue;
            }
            let end = ends.start + ends.len() / 2;
            let sums = (from.start..from.end.min(end))
                .map(|begin| (least[begin] + square(begin..end), begin));
            let Some((sum, at)) = sums.min() else {
                continue;
            };
            (next[end], begin[end]) = (sum, at);
            todo.push((ends.start..end, from.start..at + 1));
            todo.push((end + 1..ends.end, at..from.end));
        }
        least = next;
        begins.push(begin);
    }
    let mut cuts = vec![count];
    for begin in begins.iter().rev() {
        cuts.push(begin[cuts[cuts.len() - 1]]);
    }
    cuts.push(0);
    cuts.reverse();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(weights: &[u64], cuts: &[usize]) -> u64 {
        let runs = cuts.windows(2).map(|run| &weights[run[0]..run[1]]);
        runs.map(|run| run.iter().sum::<u64>().pow(2)).sum()
    }

    /// The least over all cuts, tried one by one.
    fn least(weights: &[u64], runs: usize) -> u64 {
        match runs {
            1 => weights.iter().sum::<u64>().pow(2),
            _ => (0..=weights.len())
                .map(|end| {
                    let last = weights[end..].iter().sum::<u64>().pow(2);
                    last + least(&weights[..end], runs - 1)
                })
                .min()
                .unwrap(),
        }
    }

    #[test]
    fn partition_is_the_most_even_one() {
        let mut x = 1u64;
        for round in 0..300 {
            let weights: Vec<u64> = (0..1 + round % 12)
                .map(|_| {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    x >> 33 & 0xff
                })
                .collect();
            for runs in 1..6 {
                let cuts = cut(&weights, runs);
                assert_eq!((cuts[0], cuts.len()), (0, runs + 1));
                assert_eq!(cuts[runs], weights.len());
                assert!(cuts.is_sorted(), "{weights:?} {cuts:?}");
                assert_eq!(
                    squares(&weights, &cuts),
                    least(&weights, runs),
                    "{weights:?} {cuts:?}"
                );
            }
        }
    }

    #[test]
    fn partition_gives_each_rank_a_batch_if_possible() {
        for (weights, runs) in [(vec![1; 4], 3), (vec![0; 9], 4), (vec![9, 0, 0, 0], 4)] {
            let cuts = cut(&weights, runs);
            assert!(cuts.windows(2).all(|run| run[0] < run[1]), "{cuts:?}");
        }
        assert_eq!(cut(&[5, 5], 4).len(), 5);
        assert_eq!(cut(&[], 3), [0, 0, 0, 0]);
    }
}
