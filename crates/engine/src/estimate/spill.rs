//! The sizes of the message runs that a rank routes to its groups, and of the lists that route them.

use graphmill_raw::AlignedBuffer;

use crate::error::EngineError;
use crate::estimate::model::{PlannedRank, RunEstimateRequest};
use crate::messages::routing_table::list_bytes;
use crate::messages::run_codec;

/// The message runs of all batches for the groups of one rank, if every vertex with edges sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpillEstimate {
    /// Messages in them.
    pub(crate) messages: f64,
    /// Bytes on disk, of batches of this rank and of others.
    pub(crate) bytes: [f64; 2],
    /// By column group.
    pub(crate) of_groups: Vec<f64>,
    /// Bytes of the lists in memory.
    pub(crate) lists: f64,
    /// On disk, of batches of this rank and of others.
    pub(crate) lists_on_disk: [f64; 2],
}

impl SpillEstimate {
    /// Adds the message runs of a batch: `counts` has the messages of each column group, maybe a fraction.
    fn add(&mut self, is_own: bool, span: usize, width: usize, counts: &[f64]) {
        let of = usize::from(!is_own);
        for (group, count) in counts.iter().enumerate() {
            let (chance, each) = (count.min(1.0), count.max(1.0).round() as u64);
            let each = each.min(span as u64);
            let on_disk = |bytes| chance * AlignedBuffer::footprint(bytes) as f64;
            let list = list_bytes(each, span);
            let piece = on_disk(run_codec::encoding_for(each, span, width).bytes);
            self.messages += count;
            self.bytes[of] += piece;
            self.of_groups[group] += piece;
            self.lists += chance * list as f64;
            self.lists_on_disk[of] += on_disk(list);
        }
    }

    /// Returns the bytes that groups write and read again if they pull all messages into a buffer.
    pub(crate) fn aside(&self, buffer: u64) -> u64 {
        let of_group = |bytes: &f64| (*bytes as u64) / buffer.max(1) * buffer;
        self.of_groups.iter().map(of_group).sum()
    }
}

/// Returns the message runs of each rank that may route messages, in one scan of the senders.
pub(crate) fn count_pieces(
    question: &RunEstimateRequest<'_>,
    ranks: &[PlannedRank<'_>],
) -> Result<Vec<SpillEstimate>, EngineError> {
    let mut pieces = vec![SpillEstimate::default(); ranks.len()];
    let (mut groups, mut firsts) = (0, Vec::new());
    for (rank, pieces) in ranks.iter().zip(&mut pieces) {
        firsts.push(groups);
        groups += rank.groups_to_dispatch();
        pieces.of_groups.resize(rank.groups_to_dispatch(), 0.0);
    }
    if groups == 0 {
        return Ok(pieces);
    }
    let groups_of = |batch| {
        let of_rank = |(rank, first): (&PlannedRank<'_>, &usize)| {
            let (groups, first) = (rank.groups_from(batch).into_iter(), *first);
            groups.map(move |group| group.map(|group| first + group))
        };
        ranks.iter().zip(&firsts).flat_map(of_rank).collect()
    };
    let (outline, width) = (question.outline, question.sizes.message);
    outline.needs(groups, groups_of, question.budget, |batch, counts| {
        let span = outline.measure.batches.span(batch) as usize;
        for ((rank, first), pieces) in ranks.iter().zip(&firsts).zip(&mut pieces) {
            let counts = &counts[*first..][..pieces.of_groups.len()];
            pieces.add(rank.of.own.contains(&batch), span, width, counts);
        }
    })?;
    Ok(pieces)
}
