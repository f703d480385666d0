//! The messages of one pass: one value a source, batch by batch, with a bit for each source that emitted one.
//!
//! They stay in memory when the budget holds them for all vertices, else they go through a file, and each worker
//! holds as many batches of them as fit. The bits always stay in memory; the bits of a batch that has no message in this pass
//! have no meaning. On disk a batch is one message run that every column group reads, or a run for each group that
//! needs some of it, or both, as the pass routes them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use graphmill_raw::{BorrowedSegments, Element, SegmentRef, lock};
use graphmill_storage::{DataKind, Lease};

use crate::comm::wire::PEERS;
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::graph_view::starts;
use crate::memory::run_bytes;
use crate::messages::batch::{BatchMessages, BatchWriter, ValuesMut, ValuesRef};
use crate::messages::routing::{Routing, RoutingMode};
use crate::messages::routing_table::RoutingTable;
use crate::messages::run_codec::{self, WORD};
use crate::messages::spill::{ReadRun, RunRef, SpillCursor, SpillFile};

/// The messages of all sources.
pub(crate) struct MessageBuffer<M: Element> {
    values: MessageValues<M>,
    present: BorrowedSegments<u64>,
    counts: Vec<AtomicU64>,
    /// Messages of the batch are still to come in this pass.
    awaited: Vec<AtomicBool>,
    pub(crate) spans: Vec<usize>,
    /// Batches of this rank.
    own: Range<usize>,
    /// Messages routed by push and by pull, and elements scanned for it.
    pub(crate) dispatched: [AtomicU64; 3],
    _leases: Vec<Lease>,
}

enum MessageValues<M: Element> {
    Memory(BorrowedSegments<M>),
    Disk(Box<SpilledMessages>),
}

/// Messages on disk.
pub(crate) struct SpilledMessages {
    pub(crate) file: SpillFile,
    /// One cursor for each worker, then for each peer one to receive from it, then one to send to it.
    pub(crate) windows: Vec<Mutex<SpillCursor>>,
    /// The sources that one group needs, while its run is encoded: one set a cursor.
    pub(crate) selected: Vec<Mutex<Vec<u64>>>,
    /// Batches that the window of a worker holds.
    window_batches: usize,
    workers: usize,
    pub(crate) dispatch: Routing,
    pub(crate) graph: Option<Arc<RoutingTable>>,
    /// All of each batch.
    whole: Vec<Mutex<Option<RunRef>>>,
    /// The runs of each batch for column groups, in order of these.
    pub(crate) pushed: Vec<Mutex<Vec<(u32, RunRef)>>>,
    /// There is no other rank to send this one's to.
    is_alone: bool,
    _lease: Lease,
}

impl SpilledMessages {
    /// Creates the messages of a pass on disk; `window_batches` are the batches that each window holds.
    fn new<M: Element>(
        context: &ExecContext,
        spans: &[usize],
        window_batches: &[usize],
    ) -> Result<Self, EngineError> {
        let (disk, path) = (context.graph.disk(), context.scratch.join("messages"));
        let width = size_of::<M>();
        let widest = spans.iter().max().copied().unwrap_or(0);
        let most = run_bytes::bytes_max(widest, width);
        let window = |window_batches: &usize| {
            let window = SpillCursor::new(disk.as_ref(), &context.budget, *window_batches, most)?;
            Ok(Mutex::new(window))
        };
        let words = widest.div_ceil(WORD);
        let selected = (window_batches.len() * words * 8) as u64;
        let _lease = (context.budget).lease("sources that a run needs", selected)?;
        let places = spans.iter().map(|span| (span * width).next_multiple_of(8));
        let windows = window_batches.iter().map(window);
        Ok(SpilledMessages {
            file: SpillFile::create(Arc::clone(disk), &path, places)?,
            window_batches: window_batches.first().copied().unwrap_or(1),
            selected: window_batches
                .iter()
                .map(|_| Mutex::new(vec![0; words]))
                .collect(),
            windows: windows.collect::<Result<_, EngineError>>()?,
            workers: context.workers.count(),
            dispatch: Routing::default(),
            graph: None,
            whole: spans.iter().map(|_| Mutex::new(None)).collect(),
            pushed: spans.iter().map(|_| Mutex::new(Vec::new())).collect(),
            is_alone: context.ranks.alone(),
            _lease,
        })
    }

    /// Returns the routing mode of a batch.
    fn way(&self, own: &Range<usize>, batch: usize) -> RoutingMode {
        match own.contains(&batch) {
            true => self.dispatch.own,
            false => self.dispatch.others,
        }
    }

    /// Returns the run of a batch that a group reads.
    fn piece(&self, batch: usize, run: usize) -> Option<RunRef> {
        let pushed = lock(&self.pushed[batch]);
        let number = pushed.binary_search_by_key(&run, |(run, _)| *run as usize);
        number.ok().map(|number| pushed[number].1)
    }
}

impl<M: Element> MessageBuffer<M> {
    /// Creates the buffer; `window_batches` are the batches that each window holds if messages are on disk.
    pub(crate) fn new(
        context: &ExecContext,
        window_batches: Option<&[usize]>,
    ) -> Result<Self, EngineError> {
        let (batches, tiers) = (&*context.batches, &context.tiers);
        let span = |batch| batches.span(batch) as usize;
        let spans: Vec<usize> = (0..batches.len()).map(span).collect();
        let mut leases = Vec::new();
        let mut memory = |entries: usize, bytes: usize| {
            let (bytes, budget) = (entries * bytes, &context.budget);
            let buffer = tiers.buffer(DataKind::Messages, budget, "messages", bytes)?;
            let (memory, lease) = buffer.into_parts();
            leases.push(lease);
            Ok::<_, EngineError>(memory)
        };
        let values = match window_batches {
            None => {
                let memory = memory(spans.iter().sum(), size_of::<M>())?;
                let cuts = starts(spans.iter().copied());
                MessageValues::Memory(BorrowedSegments::new(memory, cuts))
            }
            Some(window_batches) => MessageValues::Disk(Box::new(SpilledMessages::new::<M>(
                context,
                &spans,
                window_batches,
            )?)),
        };
        let words = starts(spans.iter().map(|span| span.div_ceil(WORD)));
        let present = memory(words[spans.len()], size_of::<u64>())?;
        Ok(MessageBuffer {
            values,
            present: BorrowedSegments::new(present, words),
            counts: spans.iter().map(|_| AtomicU64::new(0)).collect(),
            awaited: spans.iter().map(|_| AtomicBool::new(false)).collect(),
            spans,
            own: context.ranks.own(),
            dispatched: Default::default(),
            _leases: leases,
        })
    }

    pub(crate) fn filed(&self) -> Option<&SpilledMessages> {
        match &self.values {
            MessageValues::Memory(_) => None,
            MessageValues::Disk(filed) => Some(filed),
        }
    }

    pub(crate) fn in_memory(&self) -> bool {
        self.filed().is_none()
    }

    /// Returns the batches whose messages a worker holds at the same time.
    pub(crate) fn window_batches(&self) -> usize {
        self.filed().map_or(usize::MAX, |filed| {
            filed.dispatch.window_batches(filed.window_batches)
        })
    }

    /// Other ranks that it has windows for at the same time.
    pub(crate) fn peers(&self) -> usize {
        self.filed()
            .map_or(PEERS, |filed| (filed.windows.len() - filed.workers) / 2)
    }

    /// Bytes read from disk and written to it since the last call.
    pub(crate) fn take_traffic(&self) -> (u64, u64) {
        self.filed().map_or((0, 0), |filed| {
            let (read, written) = filed.file.take_traffic();
            let graph = filed.graph.as_ref();
            let lists = graph.map_or(0, |graph| graph.take_bytes_read());
            (read + lists, written)
        })
    }

    /// Returns the messages routed by push and by pull, and elements scanned for it, since the last call.
    pub(crate) fn take_dispatched(&self) -> [u64; 3] {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        self.dispatched.each_ref().map(take)
    }

    /// Discards the messages of the last pass and sets the routing and its table for this one.
    ///
    /// # Errors
    /// What an earlier pass had on its way could not be read or written.
    pub(crate) fn reset(
        &mut self,
        dispatch: Routing,
        graph: Option<Arc<RoutingTable>>,
    ) -> Result<(), EngineError> {
        self.counts.fill_with(AtomicU64::default);
        self.awaited.fill_with(AtomicBool::default);
        if let MessageValues::Disk(filed) = &mut self.values {
            filed.file.clear();
            for (whole, pushed) in filed.whole.iter().zip(&filed.pushed) {
                *lock(whole) = None;
                lock(pushed).clear();
            }
            // Without a table no messages are routed.
            filed.dispatch = graph.as_ref().map_or(Routing::default(), |_| dispatch);
            filed.graph = graph;
            // Buffers that a group filled, or had read ahead, are free again.
            for window in &filed.windows {
                lock(window).start(&filed.file, false)?;
            }
        }
        Ok(())
    }

    /// Returns the routing mode of a batch.
    pub(crate) fn routing(&self, batch: usize) -> RoutingMode {
        self.filed()
            .map_or(RoutingMode::None, |filed| filed.way(&self.own, batch))
    }

    /// True if groups pull whether or not they have to wait.
    pub(crate) fn all_is_pulled(&self) -> bool {
        self.filed()
            .is_some_and(|filed| filed.dispatch.all_is_pulled)
    }

    /// Says that messages of these batches are still to come.
    pub(crate) fn mark_pending(&self, batches: impl Iterator<Item = usize>) {
        for batch in batches {
            self.awaited[batch].store(true, Ordering::Relaxed);
        }
    }
    /// Says that all messages of these batches are there.
    pub(crate) fn mark_ready(&self, batches: Range<usize>) {
        for awaited in &self.awaited[batches] {
            awaited.store(false, Ordering::Release);
        }
    }
    /// True if all messages of a batch are there.
    pub(crate) fn is_ready(&self, batch: usize) -> bool {
        !self.awaited[batch].load(Ordering::Acquire)
    }

    /// Waits until what a worker has written can be read.
    pub(crate) fn flush_io(&self, worker: usize) -> Result<(), EngineError> {
        self.in_window(worker, SpillCursor::flush)
    }
    /// Records which writes of a worker have completed.
    pub(crate) fn poll_io(&self, worker: usize) -> Result<(), EngineError> {
        self.in_window(worker, SpillCursor::poll)
    }

    /// Runs `f` on a worker's cursor, if there is one, and records its completed writes.
    fn in_window(
        &self,
        worker: usize,
        work: impl FnOnce(&mut SpillCursor, &SpillFile) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let Some(filed) = self.filed() else {
            return Ok(());
        };
        let window = &mut *lock(&filed.windows[worker]);
        work(window, &filed.file)?;
        self.reap(window);
        Ok(())
    }

    fn reap(&self, window: &mut SpillCursor) {
        while let Some(batch) = window.landed() {
            self.mark_ready(batch..batch + 1);
        }
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
        batches.map(|batch| self.count(batch)).sum()
    }

    /// Opens a writer of the messages of one batch.
    pub(crate) fn open_writer(
        &self,
        batch: usize,
        worker: usize,
    ) -> Result<BatchWriter<'_, M>, EngineError> {
        let mut present = self.present.write(batch).ok_or(EngineError::ForeignArray)?;
        present.fill(0);
        let values = match &self.values {
            MessageValues::Memory(values) => {
                ValuesMut::Memory(values.write(batch).ok_or(EngineError::ForeignArray)?)
            }
            MessageValues::Disk(filed) => {
                let window = &mut *lock(&filed.windows[worker]);
                let buffer = window.spare(&filed.file)?;
                self.reap(window);
                ValuesMut::Disk(buffer)
            }
        };
        Ok(BatchWriter {
            values,
            present,
            span: self.spans[batch],
        })
    }

    /// Commits the messages of one batch: pushes them to the groups that need them, or writes them whole.
    pub(crate) fn commit(
        &self,
        batch: usize,
        writer: BatchWriter<'_, M>,
        count: u64,
        worker: usize,
    ) -> Result<(), EngineError> {
        self.counts[batch].store(count, Ordering::Relaxed);
        let (values, present, span) = (writer.values, writer.present, writer.span);
        let (ValuesMut::Disk(mut buffer), Some(filed)) = (values, self.filed()) else {
            drop(present);
            self.mark_ready(batch..batch + 1);
            return Ok(());
        };
        let window = &mut *lock(&filed.windows[worker]);
        let is_pushed = filed.way(&self.own, batch) == RoutingMode::Push;
        let is_sent = !filed.is_alone && self.own.contains(&batch);
        if count > 0 && is_pushed {
            self.push(filed, batch, (&buffer, &present), window, worker)?;
        }
        if count > 0 && (!is_pushed || is_sent) {
            let form = run_codec::compact::<M>(&mut buffer, &present, span, count);
            let offset = filed.file.place(batch);
            *lock(&filed.whole[batch]) = Some(filed.file.piece(form, &buffer, offset));
            window.write(&filed.file, offset, buffer, form.bytes);
        } else {
            window.free.push(buffer);
        }
        drop(present);
        window.ends(batch);
        window.poll(&filed.file)?;
        self.reap(window);
        Ok(())
    }

    /// Clears the list of batches that a worker will read.
    pub(crate) fn restart_reader(&self, worker: usize) -> Result<(), EngineError> {
        // Only workers buffer runs.
        let pulls = |filed: &SpilledMessages| {
            worker < filed.workers && filed.dispatch.has(RoutingMode::Pull)
        };
        let puts_aside = self.filed().is_some_and(pulls);
        self.in_window(worker, |window, file| window.start(file, puts_aside))
    }

    /// True if a group may need messages of a batch that is ready.
    pub(crate) fn has(&self, batch: usize, run: usize) -> bool {
        let is_needed = |filed: &SpilledMessages| match filed.way(&self.own, batch) {
            RoutingMode::Push => filed.piece(batch, run).is_some(),
            RoutingMode::None | RoutingMode::Pull => true,
        };
        self.count(batch) > 0 && self.filed().is_none_or(is_needed)
    }

    /// Announces that a worker will read all of a batch next; returns true if it has messages.
    pub(crate) fn prefetch(&self, batch: usize, worker: usize) -> Result<bool, EngineError> {
        let Some(filed) = self.filed() else {
            return Ok(self.count(batch) > 0);
        };
        let piece = *lock(&filed.whole[batch]);
        self.want_piece(filed, batch, piece, &mut lock(&filed.windows[worker]))
    }

    /// As [`MessageBuffer::prefetch`], for the messages routed to a group.
    pub(crate) fn prefetch_for_group(
        &self,
        batch: usize,
        run: usize,
        worker: usize,
    ) -> Result<bool, EngineError> {
        let Some(filed) = self.filed() else {
            return Ok(false);
        };
        let window = &mut *lock(&filed.windows[worker]);
        if window.want_aside(batch) {
            window.pump(&filed.file)?;
            return Ok(true);
        }
        self.want_piece(filed, batch, filed.piece(batch, run), window)
    }

    fn want_piece(
        &self,
        filed: &SpilledMessages,
        batch: usize,
        piece: Option<RunRef>,
        window: &mut SpillCursor,
    ) -> Result<bool, EngineError> {
        if let Some(piece) = piece {
            window.want(batch, piece);
            window.pump(&filed.file)?;
            self.reap(window);
        }
        Ok(piece.is_some())
    }

    /// The messages of one batch, to be read by a worker, who said that it will if they are on disk.
    pub(crate) fn read(
        &self,
        batch: usize,
        worker: usize,
    ) -> Result<BatchMessages<'_, M>, EngineError> {
        let span = self.spans[batch];
        let (values, count) = match &self.values {
            MessageValues::Memory(values) => {
                let values = values.read(batch).ok_or(EngineError::ForeignArray)?;
                let values = ValuesRef::Memory(values, self.present(batch)?);
                (values, self.count(batch))
            }
            MessageValues::Disk(filed) => {
                let (mut buffer, taken) = lock(&filed.windows[worker]).take(&filed.file, batch)?;
                let count = match taken {
                    ReadRun::AsWritten(form) => {
                        let known = self.present(batch)?;
                        run_codec::expand::<M>(&mut buffer, form, span, &known)
                            .ok_or_else(|| filed.file.corrupt(filed.file.place(batch)))?;
                        self.dispatched[2].fetch_add(form.count, Ordering::Relaxed);
                        form.count
                    }
                    ReadRun::Again(count) => count,
                };
                (ValuesRef::Disk(buffer), count)
            }
        };
        Ok(BatchMessages {
            values,
            span,
            count,
        })
    }

    /// Takes back what [`MessageBuffer::read`] lent; `again`: the worker will read it once more.
    pub(crate) fn release(
        &self,
        batch: usize,
        messages: BatchMessages<'_, M>,
        again: bool,
        worker: usize,
    ) -> Result<(), EngineError> {
        match (messages.values, self.filed()) {
            (ValuesRef::Disk(buffer), Some(filed)) => {
                let again = again.then_some(messages.count);
                lock(&filed.windows[worker]).give_back(&filed.file, batch, buffer, again)
            }
            _ => Ok(()),
        }
    }
}
