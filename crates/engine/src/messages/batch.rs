//! The messages of one batch, while they are written and while they are read.

use graphmill_graph::BlockView;
use graphmill_raw::{Element, SegmentMut, SegmentRef};
use graphmill_storage::Buffer;

use crate::messages::run_codec::{self, WORD};

/// The messages of one batch while they are written.
pub(crate) struct BatchWriter<'m, M: Element> {
    pub(crate) values: ValuesMut<'m, M>,
    pub(crate) span: usize,
}

pub(crate) enum ValuesMut<'m, M: Element> {
    Memory(SegmentMut<'m, M>, SegmentMut<'m, u64>),
    Disk(Buffer),
}

impl<M: Element> BatchWriter<'_, M> {
    /// The values by source, and the bits of the sources that emitted one.
    pub(crate) fn parts(&mut self) -> (&mut [M], &mut [u64]) {
        match &mut self.values {
            ValuesMut::Memory(values, present) => (values, present),
            ValuesMut::Disk(buffer) => run_codec::parts_mut(buffer, self.span),
        }
    }
}

/// The messages of one batch while they are read.
pub(crate) struct BatchMessages<'m, M: Element> {
    pub(crate) values: ValuesRef<'m, M>,
    pub(crate) span: usize,
    pub(crate) count: u64,
}

pub(crate) enum ValuesRef<'m, M: Element> {
    Memory(SegmentRef<'m, M>, SegmentRef<'m, u64>),
    Disk(Buffer),
}

/// The messages of one batch, by source, with the bits of the sources that emitted one.
pub(crate) struct SignalledMessages {
    pub(crate) buffer: Buffer,
    pub(crate) span: usize,
    pub(crate) count: u64,
}

impl SignalledMessages {
    pub(crate) fn slice<M: Element>(&self) -> MessageSlice<'_, M> {
        let (values, present) = run_codec::parts(&self.buffer, self.span);
        MessageSlice {
            values,
            present,
            full: self.count == self.span as u64,
            few: false,
        }
    }
}

/// A kernel's view of the messages of one batch.
#[derive(Clone, Copy)]
pub(crate) struct MessageSlice<'s, M> {
    /// By source; meaningless where the bit is not set.
    pub(crate) values: &'s [M],
    /// The bits of the sources that emitted one.
    pub(crate) present: &'s [u64],
    /// True if all sources of the batch emitted one.
    pub(crate) full: bool,
    /// Fewer than one source in 64 emitted one: it pays to look at the bits before a block is decoded.
    pub(crate) few: bool,
}

impl<M> MessageSlice<'_, M> {
    #[inline(always)]
    pub(crate) fn has(&self, source: usize) -> bool {
        self.present
            .get(source / WORD)
            .is_some_and(|word| word >> (source % WORD) & 1 != 0)
    }
    /// Returns whether a source of a block may have emitted a message, without decoding the block.
    pub(crate) fn any_of(&self, block: &BlockView<'_>) -> bool {
        if self.present.is_empty() {
            return false;
        }
        let from = block.first_source() as usize;
        let last = (block.last_source_max() as usize / WORD).min(self.present.len() - 1);
        match self.present.get(from / WORD..=last) {
            Some([first, others @ ..]) => {
                first >> (from % WORD) != 0 || others.iter().any(|word| *word != 0)
            }
            Some([]) => false,
            None => true,
        }
    }
}

impl<M: Element> BatchMessages<'_, M> {
    pub(crate) fn slice(&self) -> MessageSlice<'_, M> {
        let (values, present): (&[M], &[u64]) = match &self.values {
            ValuesRef::Memory(values, present) => (values, present),
            ValuesRef::Disk(buffer) => run_codec::parts(buffer, self.span),
        };
        MessageSlice {
            values,
            // The bits of a batch without messages are left from another pass.
            present: if self.count == 0 { &[] } else { present },
            full: self.count == self.span as u64,
            few: self.count * 64 < self.span as u64,
        }
    }
}
