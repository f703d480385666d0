//! Buffers that slot phases keep from one pass to the next.

use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::kernel::fold::DecodeScratch;

/// The scratch memory that slot phases reuse.
pub(crate) struct SlotScratch<A, M> {
    /// The idle sets of accumulators.
    pub(crate) free: Vec<Accumulators<A>>,
    pub(crate) readers: Vec<CellStreams>,
    pub(crate) scratch: Vec<DecodeScratch<M>>,
    /// Targets of one group.
    pub(crate) group: usize,
}

impl<A, M> Default for SlotScratch<A, M> {
    fn default() -> Self {
        SlotScratch {
            free: Vec::new(),
            readers: Vec::new(),
            scratch: Vec::new(),
            group: 0,
        }
    }
}
