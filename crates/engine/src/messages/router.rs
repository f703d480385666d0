//! Messages on their way to groups: pushed by the worker that has a batch, or buffered by the group.

use std::sync::atomic::Ordering;

use graphmill_raw::{AlignedBuffer, Element, lock};
use graphmill_storage::Buffer;

use crate::error::{EngineError, ensure};
use crate::messages::batch::ValuesRef;
use crate::messages::buffer::{MessageBuffer, SpilledMessages};
use crate::messages::run_codec::{self, RunEncoding, WORD};
use crate::messages::spill::{RunRef, SpillCursor, SpillFile};

impl<M: Element> MessageBuffer<M> {
    /// Writes a message run of a batch for each group that needs any of it.
    pub(crate) fn push(
        &self,
        spilled: &SpilledMessages,
        batch: usize,
        bytes: &[u8],
        spill_cursor: &mut SpillCursor,
        cursor: usize,
    ) -> Result<(), EngineError> {
        let Some(table) = &spilled.table else {
            return Ok(());
        };
        let span = self.spans[batch];
        let (values, present) = run_codec::parts::<M>(bytes, span);
        let mut selected = lock(&spilled.selected[cursor]);
        let selected = &mut selected[..present.len()];
        let mut out = Out {
            file: &spilled.file,
            buffer: None,
            used: 0,
            begun: Vec::new(),
            runs: Vec::with_capacity(table.groups_of(batch).count()),
        };
        let (mut pushed, mut scanned) = (0, 0);
        table.want(batch, table.groups_of(batch), cursor)?;
        for group in table.groups_of(batch) {
            let [count, looked_at] = table.select((batch, group), present, cursor, selected)?;
            scanned += looked_at + count;
            if count > 0 {
                pushed += count;
                let encoding = run_codec::encoding_for(count, span, size_of::<M>());
                let space = out.space(encoding, spill_cursor)?;
                run_codec::encode(space, values, selected, encoding);
                out.begun(group, encoding);
            }
        }
        out.write(spill_cursor);
        *lock(&spilled.pushed[batch]) = out.runs;
        self.dispatched[0].fetch_add(pushed, Ordering::Relaxed);
        self.dispatched[2].fetch_add(scanned, Ordering::Relaxed);
        Ok(())
    }

    /// Buffers a group's messages of a batch, in memory or, if all messages are pulled, on disk.
    ///
    /// The batch must be ready. Returns `false` and does nothing if the buffer is full.
    pub(crate) fn buffer_pulled(
        &self,
        batch: usize,
        group: usize,
        cursor: usize,
    ) -> Result<bool, EngineError> {
        let Some((spilled, table)) = self
            .spilled()
            .and_then(|spilled| Some((spilled, spilled.table.as_ref()?)))
        else {
            return Ok(false);
        };
        if self.count(batch) == 0 || !table.has(batch, group) {
            return Ok(true);
        }
        if !lock(&spilled.cursors[cursor]).can_buffer() {
            return Ok(false);
        }
        let span = self.spans[batch];
        table.want(batch, std::iter::once(group), cursor)?;
        self.prefetch(batch, cursor)?;
        let messages = self.read(batch, cursor)?;
        let slice = messages.slice();
        let mut selected = lock(&spilled.selected[cursor]);
        let selected = &mut selected[..span.div_ceil(WORD)];
        let [count, looked_at] = table.select((batch, group), slice.present, cursor, selected)?;
        let encoding = run_codec::encoding_for(count, span, size_of::<M>());
        let spill_cursor = &mut *lock(&spilled.cursors[cursor]);
        let mut is_buffered = count == 0 || spill_cursor.has_room(encoding);
        if !is_buffered && spilled.routing.all_is_pulled {
            spill_cursor.write_buffered(&spilled.file, |batch, run| {
                let mut runs = lock(&spilled.pushed[batch]);
                let at = runs.partition_point(|(other, _)| (*other as usize) < group);
                runs.insert(at, (group as u32, run));
            })?;
            is_buffered = spill_cursor.has_room(encoding);
            ensure(is_buffered, || spilled.file.no_buffer())?;
        }
        if is_buffered && count > 0 {
            spill_cursor.buffer_pulled(batch, encoding, |out| {
                run_codec::encode(out, slice.values, selected, encoding);
            });
            self.dispatched[1].fetch_add(count, Ordering::Relaxed);
        }
        self.dispatched[2].fetch_add(looked_at + count, Ordering::Relaxed);
        if let ValuesRef::Disk(buffer) = messages.values {
            spill_cursor.give_back(&spilled.file, batch, buffer, None)?;
        }
        Ok(is_buffered)
    }
}

/// Message runs of one batch for several groups while they are written.
struct Out<'f> {
    file: &'f SpillFile,
    buffer: Option<Buffer>,
    used: usize,
    /// Those in the buffer, and where they begin.
    begun: Vec<(u32, RunEncoding, usize)>,
    /// Those that have their place.
    runs: Vec<(u32, RunRef)>,
}

impl Out<'_> {
    /// Returns the space for a run of such an encoding.
    fn space(
        &mut self,
        encoding: RunEncoding,
        spill_cursor: &mut SpillCursor,
    ) -> Result<&mut [u8], EngineError> {
        let is_full = |buffer: &Buffer| self.used + encoding.bytes > buffer.len();
        if self.buffer.as_ref().is_some_and(is_full) {
            self.write(spill_cursor);
        }
        let buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            None => spill_cursor.spare(self.file)?,
        };
        let buffer = self.buffer.insert(buffer);
        let space = buffer.get_mut(self.used..self.used + encoding.bytes);
        space.ok_or_else(|| self.file.no_buffer())
    }

    /// Records that a run for a group fills the space that it got.
    fn begun(&mut self, group: usize, encoding: RunEncoding) {
        self.begun.push((group as u32, encoding, self.used));
        self.used = AlignedBuffer::footprint(self.used + encoding.bytes) as usize;
    }

    /// Gives all that is in the buffer its place, and starts to write it.
    fn write(&mut self, spill_cursor: &mut SpillCursor) {
        let Some(buffer) = self.buffer.take() else {
            return;
        };
        let used = std::mem::take(&mut self.used);
        let place = self.file.more(used);
        for (group, encoding, at) in self.begun.drain(..) {
            let run = self
                .file
                .run_ref(encoding, &buffer[at..], place + at as u64);
            self.runs.push((group, run));
        }
        spill_cursor.write(self.file, place, buffer, used);
    }
}
