//! Batches dealt out to the nodes of the machine: each has a range of neighbouring batches, the same in every pass.
//!
//! A worker takes batches of the node that it runs on before batches of others. Memory lies on the node of the thread that first
//! writes to it, so rows, messages, cached cells and lists of a batch are near the workers that use them again. On a machine
//! of one node there is one range.

use std::ops::Range;
use std::sync::OnceLock;

use graphmill_raw::numa::Nodes;
use graphmill_raw::{AtomicRange, numa};

/// The positions of some batches, each to be taken once.
pub(crate) struct NumaQueue<'d> {
    /// The nodes that have processors.
    nodes: &'d [usize],
    /// For each node the positions up to the end of its range, those before its range taken.
    ranges: Vec<AtomicRange>,
}

impl<'d> NumaQueue<'d> {
    /// Creates a queue of the positions of `batches`, in order of their nodes; `all` counts all batches.
    pub(crate) fn new(batches: &[usize], all: usize) -> Self {
        Self::to(cpu_nodes(), batches, all)
    }

    fn to(nodes: &'d [usize], batches: &[usize], all: usize) -> Self {
        let count = nodes.len().max(1);
        // In whole batches of the graph, whichever of them are dealt.
        let begin =
            |node: usize| batches.partition_point(|batch| *batch < first_of(node, count, all));
        let range = |node: usize| {
            let Range { start, end } = begin(node)..begin(node + 1);
            AtomicRange::new(start as u64, end as u64)
        };
        NumaQueue {
            ranges: (0..count).map(range).collect(),
            nodes,
        }
    }

    /// Claims a free position.
    pub(crate) fn take(&self) -> Option<usize> {
        self.claim_if(|_| true)
    }

    /// The next position, if it is one that the caller can use: only one caller at a time.
    pub(crate) fn claim_if(&self, can_use: impl Fn(usize) -> bool) -> Option<usize> {
        self.take_near(current_node(), can_use)
    }

    /// Returns the number of unclaimed positions.
    pub(crate) fn left(&self) -> usize {
        self.ranges.iter().map(AtomicRange::remaining).sum::<u64>() as usize
    }

    fn take_near(&self, node: usize, can_use: impl Fn(usize) -> bool) -> Option<usize> {
        let home = self.nodes.iter().position(|of| *of == node).unwrap_or(0);
        let (others, own) = self.ranges.split_at(home);
        own.iter()
            .chain(others)
            .find_map(|range| {
                let next = range.limit() - range.remaining();
                (range.remaining() > 0 && can_use(next as usize)).then(|| range.claim(1).ok())?
            })
            .map(|position| position as usize)
    }
}

/// The node that the caller runs on, for all that matters: 0 where there is one.
pub(crate) fn current_node() -> usize {
    match cpu_nodes().len() {
        1 => 0,
        _ => numa::here().1,
    }
}

/// The nodes that have processors.
pub(crate) fn cpu_nodes() -> &'static [usize] {
    static NODES: OnceLock<Vec<usize>> = OnceLock::new();
    NODES.get_or_init(|| Nodes::with_processors().iter().collect())
}

/// Returns the first of `all` batches that belongs to a node, of `nodes` nodes.
pub(crate) fn first_of(node: usize, nodes: usize, all: usize) -> usize {
    node * all / nodes
}

/// Returns the node of a batch, of `all` batches.
pub(crate) fn node_of_batch(batch: usize, all: usize) -> usize {
    let count = cpu_nodes().len().max(1);
    (1..count)
        .take_while(|node| first_of(*node, count, all) <= batch)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_takes_its_node_first_and_batches_once() {
        let all: Vec<usize> = (0..10).collect();
        for (nodes, node, wanted) in [
            (vec![0], 0, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            (vec![0, 1], 1, vec![5, 6, 7, 8, 9, 0, 1, 2, 3, 4]),
            // Nodes without processors own no batches.
            (vec![0, 2, 5], 2, vec![3, 4, 5, 6, 7, 8, 9, 0, 1, 2]),
        ] {
            let queue = NumaQueue::to(&nodes, &all, 10);
            let taken: Vec<usize> =
                std::iter::from_fn(|| queue.take_near(node, |_| true)).collect();
            let mut sorted = taken.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, all);
            assert_eq!(taken, wanted);
        }
    }

    #[test]
    fn batch_keeps_its_node_for_any_active_set() {
        let queue = NumaQueue::to(&[0, 1], &[1, 5, 8], 10);
        let take = |queue: &NumaQueue, node| queue.take_near(node, |_| true);
        assert_eq!(take(&queue, 1), Some(1), "the position of batch 5");
        assert_eq!(queue.take_near(0, |position| position > 0), Some(2));
        assert_eq!(queue.left(), 1);
        assert_eq!([take(&queue, 0), take(&queue, 0)], [Some(0), None]);
        assert_eq!(take(&NumaQueue::to(&[0, 1], &[], 0), 0), None);
    }
}
