//! Messages on their way to groups: pushed by the worker that has a batch, or buffered by the group.

use std::sync::atomic::Ordering;

use graphmill_raw::{AlignedBuffer, Element, lock};
use graphmill_storage::Buffer;
use zerocopy::FromBytes;

use crate::error::{EngineError, ensure};
use crate::messages::buffer::{MessageBuffer, SpilledMessages};
use crate::messages::run_codec::{self, RunEncoding, WORD};
use crate::messages::spill::{RunRef, SpillCursor, SpillFile};

impl<M: Element> MessageBuffer<M> {
    /// Writes a message run of a batch for each group that needs any of it.
    pub(crate) fn push(
        &self,
        filed: &SpilledMessages,
        batch: usize,
        (values, present): (&[u8], &[u64]),
        window: &mut SpillCursor,
        worker: usize,
    ) -> Result<(), EngineError> {
        let Some(graph) = &filed.graph else {
            return Ok(());
        };
        let span = self.spans[batch];
        let values = <[M]>::ref_from_bytes(&values[..span * size_of::<M>()]).unwrap_or(&[]);
        let mut selected = lock(&filed.selected[worker]);
        let selected = &mut selected[..present.len()];
        let mut out = Out {
            file: &filed.file,
            buffer: None,
            used: 0,
            begun: Vec::new(),
            pieces: Vec::with_capacity(graph.groups_of(batch).count()),
        };
        let (mut pushed, mut scanned) = (0, 0);
        graph.want(batch, graph.groups_of(batch), worker)?;
        for run in graph.groups_of(batch) {
            let [count, looked_at] = graph.select((batch, run), present, worker, selected)?;
            scanned += looked_at + count;
            if count > 0 {
                pushed += count;
                let form = run_codec::encoding_for(count, span, size_of::<M>());
                let room = out.room(form, window)?;
                run_codec::encode(room, values, selected, form);
                out.begun(run, form);
            }
        }
        out.write(window);
        *lock(&filed.pushed[batch]) = out.pieces;
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
        run: usize,
        worker: usize,
    ) -> Result<bool, EngineError> {
        let Some((filed, graph)) = self
            .filed()
            .and_then(|filed| Some((filed, filed.graph.as_ref()?)))
        else {
            return Ok(false);
        };
        if self.count(batch) == 0 {
            return Ok(true);
        }
        let span = self.spans[batch];
        let mut selected = lock(&filed.selected[worker]);
        let selected = &mut selected[..span.div_ceil(WORD)];
        let present = self.present(batch)?;
        graph.want(batch, std::iter::once(run), worker)?;
        let [count, looked_at] = graph.select((batch, run), &present, worker, selected)?;
        drop(present);
        self.dispatched[2].fetch_add(looked_at, Ordering::Relaxed);
        if count == 0 {
            return Ok(true);
        }
        let form = run_codec::encoding_for(count, span, size_of::<M>());
        let has_room = || lock(&filed.windows[worker]).has_room_aside(form);
        if !has_room() {
            if !filed.dispatch.all_is_pulled {
                return Ok(false);
            }
            lock(&filed.windows[worker]).write_aside(&filed.file, |batch, piece| {
                let mut pieces = lock(&filed.pushed[batch]);
                let at = pieces.partition_point(|(other, _)| (*other as usize) < run);
                pieces.insert(at, (run as u32, piece));
            })?;
            ensure(has_room(), || filed.file.no_buffer())?;
        }
        self.prefetch(batch, worker)?;
        let messages = self.read(batch, worker)?;
        lock(&filed.windows[worker]).buffer_pulled(batch, form, |out| {
            run_codec::encode(out, messages.slots().values, selected, form);
        });
        self.release(batch, messages, false, worker)?;
        self.dispatched[1].fetch_add(count, Ordering::Relaxed);
        self.dispatched[2].fetch_add(count, Ordering::Relaxed);
        Ok(true)
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
    pieces: Vec<(u32, RunRef)>,
}

impl Out<'_> {
    /// Returns the space for a run of such an encoding.
    fn room(
        &mut self,
        form: RunEncoding,
        window: &mut SpillCursor,
    ) -> Result<&mut [u8], EngineError> {
        let is_full = |buffer: &Buffer| self.used + form.bytes > buffer.len();
        if self.buffer.as_ref().is_some_and(is_full) {
            self.write(window);
        }
        let buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            None => window.spare(self.file)?,
        };
        let buffer = self.buffer.insert(buffer);
        let room = buffer.get_mut(self.used..self.used + form.bytes);
        room.ok_or_else(|| self.file.no_buffer())
    }

    /// Records that a run for a group fills the space that it got.
    fn begun(&mut self, run: usize, form: RunEncoding) {
        self.begun.push((run as u32, form, self.used));
        self.used = AlignedBuffer::footprint(self.used + form.bytes) as usize;
    }

    /// Gives all that is in the buffer its place, and starts to write it.
    fn write(&mut self, window: &mut SpillCursor) {
        let Some(buffer) = self.buffer.take() else {
            return;
        };
        let used = std::mem::take(&mut self.used);
        let place = self.file.more(used);
        for (run, form, at) in self.begun.drain(..) {
            let piece = self.file.piece(form, &buffer[at..], place + at as u64);
            self.pieces.push((run, piece));
        }
        window.write(self.file, place, buffer, used);
    }
}
