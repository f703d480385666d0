//! Buffers that slot phases keep from one pass to the next.

use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::kernel::fold_block::DecodeScratch;

/// The scratch memory that slot phases reuse.
pub(crate) struct SlotScratch<A, M> {
    /// The idle sets of accumulators.
    pub(crate) idle_accumulators: Vec<Accumulators<A>>,
    pub(crate) streams: Vec<CellStreams>,
    pub(crate) decode_scratch: Vec<DecodeScratch<M>>,
    /// Strips of one column group.
    pub(crate) group_strips: usize,
}

impl<A, M> Default for SlotScratch<A, M> {
    fn default() -> Self {
        SlotScratch {
            idle_accumulators: Vec::new(),
            streams: Vec::new(),
            decode_scratch: Vec::new(),
            group_strips: 0,
        }
    }
}
