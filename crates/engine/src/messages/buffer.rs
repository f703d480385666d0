//! The messages of one pass: one value a source, batch by batch, with a bit for each source that emitted one.
//!
//! They stay in memory when the budget holds them for all vertices, else they go through a file, and each worker
//! holds as many batches of them as fit. The bits of a batch are where its values are. They have no meaning
//! if the batch has no message in this pass. On disk a batch is one message run that every column group reads, or a run for each group
//! that needs some of it, or both, as the pass routes them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use graphmill_raw::{BorrowedSegments, Element, lock};
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
    /// Values, and bits of the sources that emitted one.
    Memory(BorrowedSegments<M>, BorrowedSegments<u64>),
    Disk(Box<SpilledMessages>),
}

/// Messages on disk.
pub(crate) struct SpilledMessages {
    pub(crate) file: SpillFile,
    /// One cursor for each worker, then for each peer one to receive from it, then one to send to it.
    pub(crate) cursors: Vec<Mutex<SpillCursor>>,
    /// The sources that one group needs, while its run is encoded: one set a cursor.
    pub(crate) selected: Vec<Mutex<Vec<u64>>>,
    /// Batches that the window of a worker holds.
    window_batches: usize,
    workers: usize,
    pub(crate) routing: Routing,
    pub(crate) table: Option<Arc<RoutingTable>>,
    /// All of each batch.
    whole: Vec<Mutex<Option<RunRef>>>,
    /// The runs of each batch for column groups, in order of these.
    pub(crate) pushed: Vec<Mutex<Vec<(u32, RunRef)>>>,
    /// There is no other rank to send this one's to.
    is_alone: bool,
    _lease: Lease,
}

impl SpilledMessages {
    /// Creates the messages of a pass on disk; `buffers` counts the buffers of each cursor.
    fn new<M: Element>(
        context: &ExecContext,
        spans: &[usize],
        buffers: &[usize],
    ) -> Result<Self, EngineError> {
        let (disk, path) = (context.graph.disk(), context.scratch.join("messages"));
        let width = size_of::<M>();
        let widest = spans.iter().max().copied().unwrap_or(0);
        let most = run_bytes::bytes_max(widest, width);
        let spill_cursor = |count: &usize| {
            let spill_cursor = SpillCursor::new(disk.as_ref(), &context.budget, *count, most)?;
            Ok(Mutex::new(spill_cursor))
        };
        let words = widest.div_ceil(WORD);
        let selected = (buffers.len() * words * 8) as u64;
        let _lease = (context.budget).lease("sources that a run needs", selected)?;
        let places = spans.iter().map(|span| run_bytes::bytes_max(*span, width));
        let cursors = buffers.iter().map(spill_cursor);
        Ok(SpilledMessages {
            file: SpillFile::create(Arc::clone(disk), &path, places)?,
            window_batches: buffers.first().copied().unwrap_or(1),
            selected: buffers.iter().map(|_| Mutex::new(vec![0; words])).collect(),
            cursors: cursors.collect::<Result<_, EngineError>>()?,
            workers: context.workers.count(),
            routing: Routing::default(),
            table: None,
            whole: spans.iter().map(|_| Mutex::new(None)).collect(),
            pushed: spans.iter().map(|_| Mutex::new(Vec::new())).collect(),
            is_alone: context.ranks.alone(),
            _lease,
        })
    }

    /// Returns how the messages of a batch are routed.
    fn routing_mode(&self, own: &Range<usize>, batch: usize) -> RoutingMode {
        match own.contains(&batch) {
            true => self.routing.own,
            false => self.routing.others,
        }
    }

    /// Returns the run of a batch that a group reads.
    fn run_of_group(&self, batch: usize, group: usize) -> Option<RunRef> {
        let pushed = lock(&self.pushed[batch]);
        let number = pushed.binary_search_by_key(&group, |(group, _)| *group as usize);
        number.ok().map(|number| pushed[number].1)
    }
}

impl<M: Element> MessageBuffer<M> {
    /// Creates the buffer; `buffers` counts the buffers of each cursor if messages are on disk.
    pub(crate) fn new(
        context: &ExecContext,
        buffers: Option<&[usize]>,
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
        let values = match buffers {
            None => {
                let words = starts(spans.iter().map(|span| span.div_ceil(WORD)));
                let present = memory(words[spans.len()], size_of::<u64>())?;
                let values = memory(spans.iter().sum(), size_of::<M>())?;
                let cuts = starts(spans.iter().copied());
                MessageValues::Memory(
                    BorrowedSegments::new(values, cuts),
                    BorrowedSegments::new(present, words),
                )
            }
            Some(buffers) => MessageValues::Disk(Box::new(SpilledMessages::new::<M>(
                context, &spans, buffers,
            )?)),
        };
        Ok(MessageBuffer {
            values,
            counts: spans.iter().map(|_| AtomicU64::new(0)).collect(),
            awaited: spans.iter().map(|_| AtomicBool::new(false)).collect(),
            spans,
            own: context.ranks.own(),
            dispatched: Default::default(),
            _leases: leases,
        })
    }

    pub(crate) fn spilled(&self) -> Option<&SpilledMessages> {
        match &self.values {
            MessageValues::Memory(..) => None,
            MessageValues::Disk(spilled) => Some(spilled),
        }
    }

    pub(crate) fn in_memory(&self) -> bool {
        self.spilled().is_none()
    }

    /// Returns the messages of all vertices; `None` if they are on disk.
    ///
    /// The message of a vertex that sent none is meaningless.
    pub(crate) fn all(&mut self) -> Option<&mut [M]> {
        match &mut self.values {
            MessageValues::Memory(values, _) => Some(values.all()),
            MessageValues::Disk(_) => None,
        }
    }

    /// Returns the batches whose messages a worker holds at the same time.
    pub(crate) fn window_batches(&self) -> usize {
        self.spilled().map_or(usize::MAX, |spilled| {
            spilled.routing.window_batches(spilled.window_batches)
        })
    }

    /// Other ranks that it has cursors for at the same time.
    pub(crate) fn peers(&self) -> usize {
        self.spilled().map_or(PEERS, |spilled| {
            (spilled.cursors.len() - spilled.workers) / 2
        })
    }

    /// Bytes read from disk and written to it since the last call.
    pub(crate) fn take_traffic(&self) -> [u64; 2] {
        self.spilled().map_or([0; 2], |spilled| {
            let [read, written] = spilled.file.file.take_traffic();
            let table = spilled.table.as_ref();
            let lists = table.map_or(0, |table| table.take_bytes_read());
            [read + lists, written]
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
        routing: Routing,
        table: Option<Arc<RoutingTable>>,
    ) -> Result<(), EngineError> {
        self.counts.fill_with(AtomicU64::default);
        self.awaited.fill_with(AtomicBool::default);
        if let MessageValues::Disk(spilled) = &mut self.values {
            spilled.file.clear();
            for (whole, pushed) in spilled.whole.iter().zip(&spilled.pushed) {
                *lock(whole) = None;
                lock(pushed).clear();
            }
            // Without a table no messages are routed.
            spilled.routing = table.as_ref().map_or(Routing::default(), |_| routing);
            spilled.table = table;
            // Buffers that a group filled, or had read ahead, are free again.
            for cursor in &spilled.cursors {
                lock(cursor).start(&spilled.file, false)?;
            }
        }
        Ok(())
    }

    /// Returns the routing mode of a batch.
    pub(crate) fn routing(&self, batch: usize) -> RoutingMode {
        self.spilled().map_or(RoutingMode::None, |spilled| {
            spilled.routing_mode(&self.own, batch)
        })
    }

    /// True if groups pull whether or not they have to wait.
    pub(crate) fn all_is_pulled(&self) -> bool {
        self.spilled()
            .is_some_and(|spilled| spilled.routing.all_is_pulled)
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

    /// Waits until what a cursor has written can be read.
    pub(crate) fn flush_io(&self, cursor: usize) -> Result<(), EngineError> {
        self.with_cursor(cursor, SpillCursor::flush)
    }
    /// Records which writes of a cursor have completed.
    pub(crate) fn poll_io(&self, cursor: usize) -> Result<(), EngineError> {
        self.with_cursor(cursor, SpillCursor::poll)
    }

    /// Calls `work` with a cursor if messages are on disk, and records its completed writes.
    fn with_cursor(
        &self,
        cursor: usize,
        work: impl FnOnce(&mut SpillCursor, &SpillFile) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let Some(spilled) = self.spilled() else {
            return Ok(());
        };
        let spill_cursor = &mut *lock(&spilled.cursors[cursor]);
        work(spill_cursor, &spilled.file)?;
        self.reap(spill_cursor);
        Ok(())
    }

    fn reap(&self, spill_cursor: &mut SpillCursor) {
        while let Some(batch) = spill_cursor.landed() {
            self.mark_ready(batch..batch + 1);
        }
    }

    /// Number of sources of a batch that emitted a message.
    pub(crate) fn count(&self, batch: usize) -> u64 {
        self.counts[batch].load(Ordering::Relaxed)
    }
    /// Number of messages of some batches.
    pub(crate) fn total(&self, batches: Range<usize>) -> u64 {
        batches.map(|batch| self.count(batch)).sum()
    }

    /// Opens a writer of the messages of one batch.
    pub(crate) fn open_writer(
        &self,
        batch: usize,
        cursor: usize,
    ) -> Result<BatchWriter<'_, M>, EngineError> {
        let values = match &self.values {
            MessageValues::Memory(values, present) => {
                let values = values.write(batch).ok_or(EngineError::ForeignArray)?;
                ValuesMut::Memory(
                    values,
                    present.write(batch).ok_or(EngineError::ForeignArray)?,
                )
            }
            MessageValues::Disk(spilled) => {
                let spill_cursor = &mut *lock(&spilled.cursors[cursor]);
                let buffer = spill_cursor.spare(&spilled.file)?;
                self.reap(spill_cursor);
                ValuesMut::Disk(buffer)
            }
        };
        let span = self.spans[batch];
        let mut writer = BatchWriter { values, span };
        writer.parts().1.fill(0);
        Ok(writer)
    }

    /// Commits the messages of one batch.
    ///
    /// On disk it pushes them to the groups that need them, or writes them whole. It does both with a pushed batch of this rank
    /// if there are other ranks.
    pub(crate) fn commit(
        &self,
        batch: usize,
        writer: BatchWriter<'_, M>,
        count: u64,
        cursor: usize,
    ) -> Result<(), EngineError> {
        self.counts[batch].store(count, Ordering::Relaxed);
        let (ValuesMut::Disk(mut buffer), Some(spilled)) = (writer.values, self.spilled()) else {
            self.mark_ready(batch..batch + 1);
            return Ok(());
        };
        let spill_cursor = &mut *lock(&spilled.cursors[cursor]);
        let is_pushed = spilled.routing_mode(&self.own, batch) == RoutingMode::Push;
        let is_sent = !spilled.is_alone && self.own.contains(&batch);
        if count > 0 && is_pushed {
            self.push(spilled, batch, &buffer, spill_cursor, cursor)?;
        }
        if count > 0 && (!is_pushed || is_sent) {
            let encoding = run_codec::compact::<M>(&mut buffer, writer.span, count);
            let offset = spilled.file.place(batch);
            *lock(&spilled.whole[batch]) = Some(spilled.file.run_ref(encoding, &buffer, offset));
            spill_cursor.write(&spilled.file, offset, buffer, encoding.bytes);
        } else {
            spill_cursor.free.push(buffer);
        }
        spill_cursor.ends(batch);
        spill_cursor.poll(&spilled.file)?;
        self.reap(spill_cursor);
        Ok(())
    }

    /// Clears the list of batches that a cursor will read.
    pub(crate) fn restart_cursor(&self, cursor: usize) -> Result<(), EngineError> {
        // Only workers buffer runs.
        let pulls = |spilled: &SpilledMessages| {
            cursor < spilled.workers && spilled.routing.has(RoutingMode::Pull)
        };
        let buffers_runs = self.spilled().is_some_and(pulls);
        self.with_cursor(cursor, |spill_cursor, file| {
            spill_cursor.start(file, buffers_runs)
        })
    }

    /// True if a group may need messages of a batch that is ready.
    pub(crate) fn has(&self, batch: usize, group: usize) -> bool {
        let is_needed = |spilled: &SpilledMessages| match spilled.routing_mode(&self.own, batch) {
            RoutingMode::Push => spilled.run_of_group(batch, group).is_some(),
            RoutingMode::None | RoutingMode::Pull => true,
        };
        self.count(batch) > 0 && self.spilled().is_none_or(is_needed)
    }

    /// Announces that a cursor will read all of a batch next; returns true if it has messages.
    pub(crate) fn prefetch(&self, batch: usize, cursor: usize) -> Result<bool, EngineError> {
        let Some(spilled) = self.spilled() else {
            return Ok(self.count(batch) > 0);
        };
        let run = *lock(&spilled.whole[batch]);
        self.want_run(spilled, batch, run, &mut lock(&spilled.cursors[cursor]))
    }

    /// As [`MessageBuffer::prefetch`], for the messages routed to a group.
    pub(crate) fn prefetch_for_group(
        &self,
        batch: usize,
        group: usize,
        cursor: usize,
    ) -> Result<bool, EngineError> {
        let Some(spilled) = self.spilled() else {
            return Ok(false);
        };
        let spill_cursor = &mut *lock(&spilled.cursors[cursor]);
        if spill_cursor.want_buffered(batch) {
            spill_cursor.pump(&spilled.file)?;
            return Ok(true);
        }
        self.want_run(
            spilled,
            batch,
            spilled.run_of_group(batch, group),
            spill_cursor,
        )
    }

    fn want_run(
        &self,
        spilled: &SpilledMessages,
        batch: usize,
        run: Option<RunRef>,
        spill_cursor: &mut SpillCursor,
    ) -> Result<bool, EngineError> {
        if let Some(run) = run {
            spill_cursor.want(batch, run);
            spill_cursor.pump(&spilled.file)?;
            self.reap(spill_cursor);
        }
        Ok(run.is_some())
    }

    /// The messages of one batch, read by a cursor; on disk they must be prefetched.
    pub(crate) fn read(
        &self,
        batch: usize,
        cursor: usize,
    ) -> Result<BatchMessages<'_, M>, EngineError> {
        let span = self.spans[batch];
        let (values, count) = match &self.values {
            MessageValues::Memory(values, present) => {
                let values = values.read(batch).ok_or(EngineError::ForeignArray)?;
                let present = present.read(batch).ok_or(EngineError::ForeignArray)?;
                (ValuesRef::Memory(values, present), self.count(batch))
            }
            MessageValues::Disk(spilled) => {
                let (mut buffer, state) =
                    lock(&spilled.cursors[cursor]).take(&spilled.file, batch)?;
                let count = match state {
                    ReadRun::AsWritten(encoding) => {
                        run_codec::expand::<M>(&mut buffer, encoding, span)
                            .ok_or_else(|| spilled.file.file.corrupt(spilled.file.place(batch)))?;
                        self.dispatched[2].fetch_add(encoding.count, Ordering::Relaxed);
                        encoding.count
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

    /// Takes back what [`MessageBuffer::read`] lent; `again`: the cursor will read it once more.
    pub(crate) fn release(
        &self,
        batch: usize,
        messages: BatchMessages<'_, M>,
        again: bool,
        cursor: usize,
    ) -> Result<(), EngineError> {
        match (messages.values, self.spilled()) {
            (ValuesRef::Disk(buffer), Some(spilled)) => {
                let again = again.then_some(messages.count);
                lock(&spilled.cursors[cursor]).give_back(&spilled.file, batch, buffer, again)
            }
            _ => Ok(()),
        }
    }
}
