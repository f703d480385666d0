//! What a pass of the bucket executor would move (BlitzG, section V; `exec/bucket/`).
//!
//! A rank reads the rows of its vertices once, before the first pass. In a pass each arc to a vertex of another rank sends a message, in
//! buckets of one length. Combined messages are as many as the vertices that they reach, if arcs are spread evenly.

use std::ops::Range;

use graphmill_fabric::bucket::{BUCKET_BYTES, HEADER_BYTES, TAG_BYTES};

use crate::cache::cells::CellCache;
use crate::config::CombineChoice;
use crate::estimate::model::{
    PlannedRank, RankEstimator, RunEstimate, RunEstimateRequest, weight_bytes,
};
use crate::exec::bucket::emit::COMBINED_FROM;
use crate::memory::buckets::{BucketShape, role_counts};
use crate::program::footprint::ProgramFootprint;

/// Buckets before a lane sends an acknowledgement alone.
const ACKNOWLEDGED: f64 = 64.0;
/// Steps along an arc that take as long as sending, receiving and opening a message, sealed.
const SENT_COST: f64 = 2.0;

/// What the rows of a rank have into one column.
#[derive(Clone, Copy, Debug, Default)]
struct RowPart {
    arcs: f64,
    data_bytes: f64,
    list_bytes: f64,
}

/// Returns the part of a column that is in the rows of some batches.
fn row_part(question: &RunEstimateRequest<'_>, column: usize, own: &Range<usize>) -> RowPart {
    let (outline, mut data_bytes) = (question.outline, 0.0);
    outline.each_cell_of_column(column, &mut |source, chance, bytes| {
        if own.contains(&source) {
            data_bytes += chance * bytes;
        }
    });
    let of = &outline.columns[column];
    let share = data_bytes / (of.data_bytes as f64).max(1.0);
    RowPart {
        arcs: share * of.edges as f64,
        data_bytes,
        list_bytes: share * of.block_list_bytes as f64,
    }
}

/// Returns what the memory of a rank with some batches depends on; `None` for another executor.
pub(crate) fn bucket_shape(
    question: &RunEstimateRequest<'_>,
    own: &Range<usize>,
    sizes: ProgramFootprint,
) -> Option<BucketShape> {
    let combine = question.buckets?;
    let (outline, tiers) = (question.outline, question.tiers);
    let batches = &outline.measure.batches;
    let weight = weight_bytes(outline, sizes.weighted);
    let memory = |data: f64, arcs: f64, lists: f64| {
        // Lists of blocks, and fan-out lists.
        let index = lists as u64 + outline.files.fanout;
        let data = data as u64 + arcs as u64 * weight;
        CellCache::memory_of(tiers, [own.len(), batches.len()], index, data)
    };
    let mut all = RowPart::default();
    for column in 0..batches.len() {
        let part = row_part(question, column, own);
        all.arcs += part.arcs;
        all.data_bytes += part.data_bytes;
        all.list_bytes += part.list_bytes;
    }
    let mut rows = memory(all.data_bytes, all.arcs, all.list_bytes);
    let columns = &outline.columns[own.clone()];
    let sum =
        |of: fn(&graphmill_graph::ColumnModel) -> u64| columns.iter().map(of).sum::<u64>() as f64;
    let into = sum(|column| column.edges);
    if outline.measure.orientations == 2 {
        rows += memory(
            sum(|column| column.data_bytes),
            into,
            sum(|column| column.block_list_bytes),
        );
    }
    let ranks = question.cuts.len() - 1;
    let [.., lanes] = role_counts(question.threads, None);
    let against = if outline.symmetric() { 0.0 } else { all.arcs };
    Some(BucketShape {
        rows,
        loading: CellCache::loading_by(1),
        ranks,
        foreign: lanes * (ranks - 1),
        roles: None,
        dpdk: 0,
        queues: true,
        combines: combine != CombineChoice::Never,
        batches: own.len(),
        own: batches.cut(own.end) - batches.cut(own.start),
        labels: (into + against) as u64,
    })
}

impl PlannedRank<'_> {
    /// Returns the estimate of passes in buckets.
    pub(crate) fn in_buckets(&self) -> RunEstimate {
        let (of, combine) = (&self.of, self.of.question.buckets.unwrap_or_default());
        let batches = &of.question.outline.measure.batches;
        let (mut rows, mut arcs, mut sent) = (0.0, 0.0, 0.0);
        for column in 0..batches.len() {
            let part = row_part(of.question, column, &of.own);
            rows += part.data_bytes;
            arcs += part.arcs;
            if of.own.contains(&column) {
                continue;
            }
            let span = batches.span(column) as f64;
            let is_combined = of.sizes.windows == 0
                && match combine {
                    CombineChoice::Never => false,
                    CombineChoice::Auto => part.arcs >= COMBINED_FROM as f64 * span,
                    CombineChoice::Always => true,
                };
            sent += match is_combined {
                true => span * -(-part.arcs / span).exp_m1(),
                false => part.arcs,
            };
        }
        let message = (size_of::<u32>() + of.sizes.accumulator.max(of.sizes.message)) as f64;
        let room = (BUCKET_BYTES - HEADER_BYTES - TAG_BYTES) as f64;
        let buckets = match message > room {
            true => sent * (message / room).ceil(),
            false => sent / (room / message).floor(),
        };
        let weight = weight_bytes(of.question.outline, of.sizes.weighted);
        let read = rows + arcs * weight as f64;
        let mut start = self.start;
        start.read += read as u64;
        let mut pass = self.pass;
        pass.sent = (buckets * (1.0 + 1.0 / ACKNOWLEDGED)) as u64 * BUCKET_BYTES as u64;
        RunEstimate {
            start,
            early: pass,
            pass,
            arcs: (arcs + SENT_COST * sent) as u64,
            cached_cell_bytes: read as u64,
            cell_bytes: read as u64,
            ..self.facts_of_rank()
        }
    }
}

impl RankEstimator<'_> {
    /// True if passes are of the bucket executor.
    pub(crate) fn is_in_buckets(&self) -> bool {
        self.question.buckets.is_some()
    }
}
