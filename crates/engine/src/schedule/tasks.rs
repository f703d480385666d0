//! The columns of a rank, of an open graph or of one known only by its counts, and the column groups that workers fold.

use std::ops::Range;

use graphmill_graph::Batches;

use crate::schedule::numa;

/// The columns of a rank.
pub(crate) trait ColumnLayout {
    /// The batches of the graph.
    fn batches(&self) -> &Batches;
    /// Returns the columns of the rank.
    fn own(&self) -> Range<usize>;
    /// Strips that the fold of a batch is made of, 1 at least.
    fn strips(&self, batch: usize) -> usize;
    /// The source batches that a strip of a column covers, with those whose cells are empty.
    fn strip_sources(&self, batch: usize, strip: usize) -> Range<usize>;
    /// Calls `f` with the source batch of each cell of a strip, and the chance that there is one.
    fn each_cell(&self, batch: usize, strip: usize, f: &mut dyn FnMut(usize, f64));
}

/// A target of a column group: one strip of the fold of one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripRef {
    pub(crate) batch: usize,
    pub(crate) strip: usize,
}

/// Returns the column groups of a rank, each of `group` strips, in the same order in every pass.
pub(crate) fn column_groups(columns: &impl ColumnLayout, group: usize) -> Vec<Vec<StripRef>> {
    let batches = columns.batches().len();
    let of_batch = |batch| (0..columns.strips(batch)).map(move |strip| StripRef { batch, strip });
    let targets: Vec<StripRef> = columns.own().flat_map(of_batch).collect();
    // A group belongs to one node, or its strips would be folded before those that they wait for.
    let of_nodes = targets.chunk_by(|a, b| {
        numa::node_of_batch(a.batch, batches) == numa::node_of_batch(b.batch, batches)
    });
    of_nodes
        .flat_map(|targets| targets.chunks(group.max(1)).map(<[StripRef]>::to_vec))
        .collect()
}

/// Returns how many groups have cells of each batch.
///
/// That is how often its messages are read without routing.
pub(crate) fn reads(columns: &impl ColumnLayout, groups: &[Vec<StripRef>]) -> Vec<f64> {
    let mut reads = vec![0.0; columns.batches().len()];
    let mut without = vec![1.0; reads.len()];
    for group in groups {
        for target in group {
            let mut one = |from: usize, chance: f64| without[from] *= 1.0 - chance;
            columns.each_cell(target.batch, target.strip, &mut one);
        }
        for (reads, without) in reads.iter_mut().zip(&mut without) {
            *reads += 1.0 - std::mem::replace(without, 1.0);
        }
    }
    reads
}

/// The mean over all vertices of a figure of their batches.
pub(crate) fn mean(batches: &Batches, of_batch: &[f64]) -> f64 {
    let of = |(batch, figure): (usize, &f64)| batches.span(batch) as f64 * figure;
    let sum: f64 = of_batch.iter().enumerate().map(of).sum();
    sum / (batches.vertices() as f64).max(1.0)
}

/// Which side of an arc folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldSide {
    /// Destinations fold; a target is a strip of a column.
    Scatter,
    /// Sources fold; a target is a strip of a row, cut where the column of the same batch is cut.
    Gather,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six batches of ten vertices, three of them this rank's, of two strips each.
    ///
    /// The first source is in every cell of the first strip, any other in half of the cells of the second.
    struct Six(Batches);

    impl ColumnLayout for Six {
        fn batches(&self) -> &Batches {
            &self.0
        }
        fn own(&self) -> Range<usize> {
            1..4
        }
        fn strips(&self, _: usize) -> usize {
            2
        }
        fn strip_sources(&self, _: usize, strip: usize) -> Range<usize> {
            [0..1, 1..6][strip].clone()
        }
        fn each_cell(&self, batch: usize, strip: usize, f: &mut dyn FnMut(usize, f64)) {
            let chance = if strip == 0 { 1.0 } else { 0.5 };
            self.strip_sources(batch, strip)
                .for_each(|from| f(from, chance));
        }
    }

    #[test]
    fn column_group_reads_a_batch_once() {
        let columns = Six(Batches::new((0..=6).map(|batch| 10 * batch).collect()).unwrap());
        for (group, first, others) in [
            (1, 3.0, 1.5),
            (2, 3.0, 1.5),
            (4, 2.0, 1.25),
            (6, 1.0, 0.875),
        ] {
            let groups = column_groups(&columns, group);
            assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), 6);
            if numa::cpu_nodes().len() > 1 {
                continue;
            }
            let reads = reads(&columns, &groups);
            assert_eq!(
                reads,
                [first, others, others, others, others, others],
                "{group}"
            );
            assert_eq!(mean(&columns.0, &reads), (first + 5.0 * others) / 6.0);
        }
    }
}
