//! The messages of one pass: one value a source, batch by batch, with a bit for each source that emitted one.
//!
//! They stay in memory when the budget holds them for all vertices, else they go through the page file, where a
//! batch of them is read once for each group of columns. The bits always stay in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use graphmill_graph::{Batches, BlockView};
use graphmill_raw::{AlignedBuffer, Element, SegmentMut, SegmentRef, Segments};
use graphmill_storage::{Budget, Buffer, Lease};
use zerocopy::FromBytes;

use crate::active::lock;
use crate::error::EngineError;
use crate::page_file::{Load, PageFile, PageTable, RowIo, Slot};

const WORD: usize = 64;

/// The messages of all sources.
pub(crate) struct Messages<M: Element> {
    values: Values<M>,
    present: Segments<u64>,
    counts: Vec<AtomicU64>,
    spans: Vec<usize>,
    _lease: Lease,
}

enum Values<M: Element> {
    Memory(Segments<M>),
    Disk {
        first: Vec<usize>,
        table: PageTable,
        written: Mutex<Vec<(usize, Slot)>>,
    },
}

impl<M: Element> Messages<M> {
    /// Bytes of the budget that the messages of a graph take, in memory or on disk.
    pub(crate) fn bytes(batches: &Batches, in_memory: bool) -> u64 {
        let words: u64 = (0..batches.len())
            .map(|b| batches.span(b).div_ceil(WORD as u64))
            .sum();
        8 * words
            + if in_memory {
                batches.vertices() * size_of::<M>() as u64
            } else {
                0
            }
    }

    pub(crate) fn new(
        batches: &Batches,
        in_memory: bool,
        pages: &PageFile,
        budget: &Budget,
    ) -> Result<Self, EngineError> {
        let lease = budget.lease("messages", Self::bytes(batches, in_memory))?;
        let spans: Vec<usize> = (0..batches.len())
            .map(|b| batches.span(b) as usize)
            .collect();
        let cuts = |of: &dyn Fn(usize) -> usize| {
            let mut cuts = vec![0];
            let mut at = 0;
            for &span in &spans {
                at += of(span);
                cuts.push(at);
            }
            cuts
        };
        let word_cuts = cuts(&|span| span.div_ceil(WORD));
        let words = word_cuts.last().copied().unwrap_or(0);
        let values = if in_memory {
            let cuts = cuts(&|span| span);
            let bytes = cuts.last().copied().unwrap_or(0) * size_of::<M>();
            Values::Memory(Segments::new(AlignedBuffer::zeroed(bytes)?, cuts))
        } else {
            let first = cuts(&|span| (span * size_of::<M>()).div_ceil(pages.page_bytes()));
            let table = vec![None; first.last().copied().unwrap_or(0)];
            Values::Disk {
                first,
                table,
                written: Mutex::default(),
            }
        };
        Ok(Messages {
            values,
            present: Segments::new(AlignedBuffer::zeroed(words * 8)?, word_cuts),
            counts: spans.iter().map(|_| AtomicU64::new(0)).collect(),
            spans,
            _lease: lease,
        })
    }

    pub(crate) fn in_memory(&self) -> bool {
        matches!(self.values, Values::Memory(_))
    }

    /// Forgets the messages of the last pass.
    pub(crate) fn clear(&mut self, pages: &PageFile) {
        for count in &mut self.counts {
            *count.get_mut() = 0;
        }
        if let Values::Disk { table, .. } = &mut self.values {
            pages.give_back(table.iter_mut().filter_map(Option::take));
        }
    }

    /// Ends the signal phase: what was written to disk can be read from here on.
    pub(crate) fn seal(&mut self) {
        if let Values::Disk { table, written, .. } = &mut self.values {
            for (page, slot) in
                std::mem::take(written.get_mut().unwrap_or_else(PoisonError::into_inner))
            {
                table[page] = Some(slot);
            }
        }
    }

    /// Number of sources of a batch that emitted a message.
    pub(crate) fn count(&self, batch: usize) -> u64 {
        self.counts[batch].load(Ordering::Relaxed)
    }
    /// Number of messages.
    pub(crate) fn total(&self) -> u64 {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }

    /// The messages of one batch, to be written by the signal phase.
    pub(crate) fn begin(
        &self,
        batch: usize,
        budget: &Budget,
    ) -> Result<BatchWriter<'_, M>, EngineError> {
        let span = self.spans[batch];
        let mut present = self.present.write(batch).ok_or(EngineError::ForeignArray)?;
        present.fill(0);
        let values = match &self.values {
            Values::Memory(values) => {
                ValuesMut::Memory(values.write(batch).ok_or(EngineError::ForeignArray)?)
            }
            Values::Disk { .. } => {
                ValuesMut::Disk(budget.buffer("the messages of a batch", span * size_of::<M>())?)
            }
        };
        Ok(BatchWriter {
            values,
            present,
            span,
        })
    }

    /// Hands in the messages of one batch.
    pub(crate) fn end(
        &self,
        batch: usize,
        writer: BatchWriter<'_, M>,
        count: u64,
        pages: &PageFile,
        io: &mut RowIo,
    ) -> Result<(), EngineError> {
        self.counts[batch].store(count, Ordering::Relaxed);
        if let (ValuesMut::Disk(buffer), Values::Disk { first, written, .. }) =
            (&writer.values, &self.values)
            && count > 0
        {
            let bytes = writer.span * size_of::<M>();
            let dirty = 0..first[batch + 1] - first[batch];
            io.store(pages, &buffer[..bytes], dirty, |page, slot| {
                lock(written).push((first[batch] + page, slot));
            })?;
        }
        Ok(())
    }

    /// The messages of one batch, to be read by the slot phase.
    pub(crate) fn read(
        &self,
        batch: usize,
        pages: &PageFile,
        ahead: &mut Ahead,
        budget: &Budget,
    ) -> Result<BatchMessages<'_, M>, EngineError> {
        let values = match &self.values {
            Values::Memory(values) => {
                ValuesRef::Memory(values.read(batch).ok_or(EngineError::ForeignArray)?)
            }
            Values::Disk { .. } => {
                if ahead.loading.as_ref().is_none_or(|l| l.batch != batch) {
                    self.read_ahead(batch, pages, ahead, budget)?;
                }
                self.go_on(pages, ahead, true)?;
                let loading = ahead.loading.take().ok_or(EngineError::ForeignArray)?;
                ValuesRef::Disk(loading.values)
            }
        };
        let present = self.present.read(batch).ok_or(EngineError::ForeignArray)?;
        Ok(BatchMessages {
            values,
            present,
            span: self.spans[batch],
            count: self.count(batch),
        })
    }

    /// Starts reading the messages of a batch that will be wanted next; nothing is done where they are in memory.
    pub(crate) fn read_ahead(
        &self,
        batch: usize,
        pages: &PageFile,
        ahead: &mut Ahead,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        if self.in_memory() {
            return Ok(());
        }
        // Reads of a batch that nobody asked for after all have to come back first.
        self.go_on(pages, ahead, true)?;
        ahead.loading = None;
        let bytes = self.spans[batch] * size_of::<M>();
        ahead.loading = Some(Loading {
            batch,
            values: budget.buffer("the messages of a batch", bytes)?,
            load: Load::default(),
        });
        self.go_on(pages, ahead, false)
    }

    /// Goes on reading what was started, with `wait` to the end.
    pub(crate) fn go_on(
        &self,
        pages: &PageFile,
        ahead: &mut Ahead,
        wait: bool,
    ) -> Result<(), EngineError> {
        let (Values::Disk { first, table, .. }, Some(loading), Some(io)) =
            (&self.values, &mut ahead.loading, &mut ahead.io)
        else {
            return Ok(());
        };
        let batch = loading.batch;
        let bytes = self.spans[batch] * size_of::<M>();
        let table = &table[first[batch]..first[batch + 1]];
        io.go_on(
            &mut loading.load,
            pages,
            table,
            &mut loading.values[..bytes],
            wait,
        )
    }
}

/// One worker's way to messages on disk: the batch after the one at hand is read while that is worked on.
#[derive(Default)]
pub(crate) struct Ahead {
    io: Option<RowIo>,
    loading: Option<Loading>,
}

impl Ahead {
    pub(crate) fn new(io: RowIo) -> Self {
        Ahead {
            io: Some(io),
            loading: None,
        }
    }
}

/// Messages of one batch on their way.
struct Loading {
    batch: usize,
    values: Buffer,
    load: Load,
}

/// The messages of one batch while they are written.
pub(crate) struct BatchWriter<'m, M: Element> {
    values: ValuesMut<'m, M>,
    present: SegmentMut<'m, u64>,
    span: usize,
}

enum ValuesMut<'m, M: Element> {
    Memory(SegmentMut<'m, M>),
    Disk(Buffer),
}

impl<M: Element> BatchWriter<'_, M> {
    /// The values by source, and the bits of the sources that emitted one.
    pub(crate) fn parts(&mut self) -> (&mut [M], &mut [u64]) {
        let values: &mut [M] = match &mut self.values {
            ValuesMut::Memory(values) => values,
            ValuesMut::Disk(buffer) => {
                let bytes = self.span * size_of::<M>();
                <[M]>::mut_from_bytes(&mut buffer[..bytes]).unwrap_or(&mut [])
            }
        };
        (values, &mut self.present)
    }
}

/// The messages of one batch while they are read.
pub(crate) struct BatchMessages<'m, M: Element> {
    values: ValuesRef<'m, M>,
    present: SegmentRef<'m, u64>,
    span: usize,
    count: u64,
}

enum ValuesRef<'m, M: Element> {
    Memory(SegmentRef<'m, M>),
    Disk(Buffer),
}

/// What a kernel sees of the messages of one batch.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'s, M> {
    /// By source; meaningless where the bit is not set.
    pub(crate) values: &'s [M],
    /// The bits of the sources that emitted one.
    pub(crate) present: &'s [u64],
    /// All sources of the batch emitted one.
    pub(crate) full: bool,
    /// Few did: it pays to look at the bits before a block is decoded.
    pub(crate) sparse: bool,
}

impl<M> Slots<'_, M> {
    #[inline(always)]
    pub(crate) fn has(&self, source: usize) -> bool {
        self.present
            .get(source / WORD)
            .is_some_and(|word| word >> (source % WORD) & 1 != 0)
    }
    /// Whether a source of a block may have emitted a message, told without decoding the block.
    pub(crate) fn any_of(&self, block: &BlockView<'_>) -> bool {
        let from = block.first_source() as usize;
        let to = block.last_source_max() as usize;
        let (first, last) = (
            from / WORD,
            (to / WORD).min(self.present.len().saturating_sub(1)),
        );
        let Some(words) = self.present.get(first..=last) else {
            return true;
        };
        words.iter().enumerate().any(|(i, &word)| {
            let mut word = word;
            if i == 0 {
                word &= !0 << (from % WORD);
            }
            word != 0
        })
    }
}

impl<M: Element> BatchMessages<'_, M> {
    pub(crate) fn slots(&self) -> Slots<'_, M> {
        let values: &[M] = match &self.values {
            ValuesRef::Memory(values) => values,
            ValuesRef::Disk(buffer) => {
                <[M]>::ref_from_bytes(&buffer[..self.span * size_of::<M>()]).unwrap_or(&[])
            }
        };
        Slots {
            values,
            present: &self.present,
            full: self.count == self.span as u64,
            sparse: self.count * 64 < self.span as u64,
        }
    }
}
