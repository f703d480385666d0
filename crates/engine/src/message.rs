//! The messages of one pass: one value a source, batch by batch, with a bit for each source that emitted one.
//!
//! They stay in memory when the budget holds them for all vertices, else they go through a file, and each worker
//! holds as many batches of them as there is room for. The bits always stay in memory; those of a batch that has no message in this pass
//! say nothing.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use graphmill_graph::BlockView;
use graphmill_raw::{Element, SegmentMut, SegmentRef, Segments};
use graphmill_storage::{Buffer, Disk, Kind, Lease};
use zerocopy::FromBytes;

use crate::active::lock;
use crate::error::EngineError;
use crate::machine::Machine;
use crate::message_file::{MessageFile, Window};

const WORD: usize = 64;

/// The messages of all sources.
pub(crate) struct Messages<M: Element> {
    values: Values<M>,
    present: Segments<u64>,
    counts: Vec<AtomicU64>,
    /// Messages of the batch are still to come in this pass.
    awaited: Vec<AtomicBool>,
    spans: Vec<usize>,
    _leases: Vec<Lease>,
}

enum Values<M: Element> {
    Memory(Segments<M>),
    Disk {
        file: MessageFile,
        /// One a worker, and one for what comes from other ranks.
        windows: Vec<Mutex<Window>>,
        /// Batches that a window holds.
        held: usize,
    },
}

/// Where messages go that do not fit in memory.
pub(crate) struct OnDisk {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) path: PathBuf,
    /// Batches that each worker holds, and whoever takes what comes from other ranks.
    pub(crate) held: Vec<usize>,
}

impl<M: Element> Messages<M> {
    pub(crate) fn new(machine: &Machine, on_disk: Option<OnDisk>) -> Result<Self, EngineError> {
        let (batches, budget) = (&*machine.batches, &machine.budget);
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
        let mut leases = Vec::new();
        let mut memory = |bytes: usize| {
            let buffer = machine
                .tiers
                .buffer(Kind::Messages, budget, "messages", bytes)?;
            let (memory, lease) = buffer.into_parts();
            leases.push(lease);
            Ok::<_, EngineError>(memory)
        };
        let values = match on_disk {
            None => {
                let cuts = cuts(&|span| span);
                let bytes = cuts.last().copied().unwrap_or(0) * size_of::<M>();
                Values::Memory(Segments::new(memory(bytes)?, cuts))
            }
            Some(to) => {
                let bytes: Vec<usize> = spans.iter().map(|span| span * size_of::<M>()).collect();
                let widest = bytes.iter().max().copied().unwrap_or(0);
                let window = |held| Window::new(to.disk.as_ref(), budget, held, widest);
                Values::Disk {
                    held: to.held.first().copied().unwrap_or(1),
                    windows: (to.held.into_iter())
                        .map(|held| Ok(Mutex::new(window(held)?)))
                        .collect::<Result<_, EngineError>>()?,
                    file: MessageFile::create(Arc::clone(&to.disk), &to.path, bytes)?,
                }
            }
        };
        Ok(Messages {
            values,
            present: Segments::new(memory(words * 8)?, word_cuts),
            counts: spans.iter().map(|_| AtomicU64::new(0)).collect(),
            awaited: spans.iter().map(|_| AtomicBool::new(false)).collect(),
            spans,
            _leases: leases,
        })
    }

    pub(crate) fn in_memory(&self) -> bool {
        matches!(self.values, Values::Memory(_))
    }

    /// Batches whose messages a worker holds at the same time.
    pub(crate) fn held(&self) -> usize {
        match &self.values {
            Values::Memory(_) => usize::MAX,
            Values::Disk { held, .. } => *held,
        }
    }

    /// Bytes read from disk and written to it since the last call.
    pub(crate) fn take_traffic(&self) -> (u64, u64) {
        match &self.values {
            Values::Memory(_) => (0, 0),
            Values::Disk { file, .. } => file.take_traffic(),
        }
    }

    /// Forgets the messages of the last pass.
    pub(crate) fn clear(&mut self) {
        for count in &mut self.counts {
            *count.get_mut() = 0;
        }
        for awaited in &mut self.awaited {
            *awaited.get_mut() = false;
        }
    }

    /// Says that messages of these batches are still to come.
    pub(crate) fn expect_from(&self, batches: impl Iterator<Item = usize>) {
        for batch in batches {
            self.awaited[batch].store(true, Ordering::Relaxed);
        }
    }
    /// Says that all messages of these batches are there.
    pub(crate) fn come(&self, batches: Range<usize>) {
        for awaited in &self.awaited[batches] {
            awaited.store(false, Ordering::Release);
        }
    }
    /// Whether all messages of a batch are there.
    pub(crate) fn is_there(&self, batch: usize) -> bool {
        !self.awaited[batch].load(Ordering::Acquire)
    }

    /// Ends the signal phase: what was written to disk can be read from here on.
    pub(crate) fn seal(&self) -> Result<(), EngineError> {
        if let Values::Disk { file, windows, .. } = &self.values {
            for window in windows {
                lock(window).flush(file)?;
            }
        }
        Ok(())
    }

    /// Number of sources of a batch that emitted a message.
    pub(crate) fn count(&self, batch: usize) -> u64 {
        self.counts[batch].load(Ordering::Relaxed)
    }
    /// The bits of the sources of a batch that emitted a message.
    pub(crate) fn present(&self, batch: usize) -> Result<SegmentRef<'_, u64>, EngineError> {
        self.present.read(batch).ok_or(EngineError::ForeignArray)
    }
    /// Number of messages of some batches.
    pub(crate) fn total(&self, batches: Range<usize>) -> u64 {
        self.counts[batches]
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }

    /// The messages of one batch, to be written by a worker of the signal phase.
    pub(crate) fn begin(
        &self,
        batch: usize,
        worker: usize,
    ) -> Result<BatchWriter<'_, M>, EngineError> {
        let mut present = self.present.write(batch).ok_or(EngineError::ForeignArray)?;
        present.fill(0);
        let values = match &self.values {
            Values::Memory(values) => {
                ValuesMut::Memory(values.write(batch).ok_or(EngineError::ForeignArray)?)
            }
            Values::Disk { file, windows, .. } => {
                ValuesMut::Disk(lock(&windows[worker]).spare(file)?)
            }
        };
        Ok(BatchWriter {
            values,
            present,
            span: self.spans[batch],
        })
    }

    /// Hands in the messages of one batch.
    pub(crate) fn end(
        &self,
        batch: usize,
        writer: BatchWriter<'_, M>,
        count: u64,
        worker: usize,
    ) -> Result<(), EngineError> {
        self.counts[batch].store(count, Ordering::Relaxed);
        let BatchWriter {
            values, present, ..
        } = writer;
        drop(present);
        if let (ValuesMut::Disk(buffer), Values::Disk { file, windows, .. }) =
            (values, &self.values)
        {
            let mut window = lock(&windows[worker]);
            match count {
                0 => window.give_back(file, batch, buffer, false)?,
                _ => window.write(file, batch, buffer),
            }
        }
        self.come(batch..batch + 1);
        Ok(())
    }

    /// Says which batches a worker will read, in order of their first use.
    pub(crate) fn expect(
        &self,
        batches: impl Iterator<Item = usize>,
        worker: usize,
    ) -> Result<(), EngineError> {
        match &self.values {
            Values::Memory(_) => Ok(()),
            Values::Disk { file, windows, .. } => lock(&windows[worker]).start(file, batches),
        }
    }

    /// The messages of one batch, to be read by a worker of the slot phase, which said that it will.
    pub(crate) fn read(
        &self,
        batch: usize,
        worker: usize,
    ) -> Result<BatchMessages<'_, M>, EngineError> {
        let values = match &self.values {
            Values::Memory(values) => {
                ValuesRef::Memory(values.read(batch).ok_or(EngineError::ForeignArray)?)
            }
            Values::Disk { file, windows, .. } => {
                ValuesRef::Disk(lock(&windows[worker]).take(file, batch)?)
            }
        };
        let present = self.present(batch)?;
        Ok(BatchMessages {
            values,
            present,
            span: self.spans[batch],
            count: self.count(batch),
        })
    }

    /// Takes back what [`Messages::read`] lent; `again`: the worker will read it once more.
    pub(crate) fn give_back(
        &self,
        batch: usize,
        messages: BatchMessages<'_, M>,
        again: bool,
        worker: usize,
    ) -> Result<(), EngineError> {
        match (messages.values, &self.values) {
            (ValuesRef::Disk(buffer), Values::Disk { file, windows, .. }) => {
                lock(&windows[worker]).give_back(file, batch, buffer, again)
            }
            _ => Ok(()),
        }
    }
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
        if self.present.is_empty() {
            return false;
        }
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
            // Bits of a batch without messages are those of another pass.
            present: if self.count == 0 { &[] } else { &self.present },
            full: self.count == self.span as u64,
            sparse: self.count * 64 < self.span as u64,
        }
    }
}
