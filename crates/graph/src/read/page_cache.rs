//! Small reads that wait: frames of any file of a graph, with a cache of those used last.
//!
//! For seeks: indices of cells, degrees, fan-out lists and ids of a few vertices. Long runs go through
//! [`ExtentReader`](crate::ExtentReader), which does not wait.

use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::{Buffer, MemoryBudget, Operation, Queue};

use crate::error::FormatError;
use crate::file::page::{FRAME_BYTES, FileId, cut_off};
use crate::open::stored_graph::StoredGraph;

struct CachedPage {
    buffer: Option<Buffer>,
    frame: Option<(FileId, u64)>,
    bytes: usize,
    used: u64,
}

/// Reads ranges of a graph's files, frame by frame, each checked before its bytes are given out.
pub struct PageCache {
    graph: Arc<StoredGraph>,
    queue: Box<dyn Queue>,
    slots: Vec<CachedPage>,
    uses: u64,
    bytes_read: u64,
}

impl PageCache {
    /// A reader that keeps `frames` frames of 64 KiB, at least one.
    ///
    /// # Errors
    /// The budget has no room for them.
    pub fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        frames: usize,
    ) -> Result<Self, FormatError> {
        let frames = frames.max(1);
        let mut slots = Vec::with_capacity(frames);
        for _ in 0..frames {
            let buffer = budget.buffer("frames of the stored graph", FRAME_BYTES as usize)?;
            slots.push(CachedPage {
                buffer: Some(buffer),
                frame: None,
                bytes: 0,
                used: 0,
            });
        }
        let queue = graph.disk().queue(frames.min(32))?;
        Ok(PageCache {
            graph: Arc::clone(graph),
            queue,
            slots,
            uses: 0,
            bytes_read: 0,
        })
    }
    /// The graph it reads.
    pub fn graph(&self) -> &Arc<StoredGraph> {
        &self.graph
    }
    /// Bytes read from the disk since the last call.
    pub fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }
    /// Appends bytes `range` of a file's payload to `out`. The caller has leased memory for them.
    ///
    /// # Errors
    /// The disk fails, a frame is not what was written, or the range does not lie in the file.
    pub fn read(
        &mut self,
        file: FileId,
        range: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        let mut at = range.start;
        while at < range.end {
            let frame = at / FRAME_BYTES;
            let from = (at % FRAME_BYTES) as usize;
            let now = (FRAME_BYTES - at % FRAME_BYTES).min(range.end - at);
            let ahead = (range.end - 1) / FRAME_BYTES;
            let bytes = self.frame_ahead(file, frame, ahead)?;
            let part = bytes.get(from..from + now as usize);
            out.extend_from_slice(
                part.ok_or_else(|| FormatError::misuse(format!("{file} ends before byte {at}")))?,
            );
            at += now;
        }
        Ok(())
    }
    /// One frame of a file; the last one of a file includes the zeros after the payload.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn frame(&mut self, file: FileId, frame: u64) -> Result<&[u8], FormatError> {
        self.frame_ahead(file, frame, frame)
    }
    /// Returns a page; if it is not cached, reads the pages after it up to `last` too, if they fit.
    pub(crate) fn frame_ahead(
        &mut self,
        file: FileId,
        frame: u64,
        last: u64,
    ) -> Result<&[u8], FormatError> {
        let held = self
            .slots
            .iter()
            .position(|slot| slot.frame == Some((file, frame)));
        let at = match held {
            Some(at) => at,
            None => self.load(file, frame, last)?,
        };
        self.uses += 1;
        let slot = &mut self.slots[at];
        slot.used = self.uses;
        let buffer = slot
            .buffer
            .as_ref()
            .and_then(|buffer| buffer.get(..slot.bytes));
        buffer.ok_or_else(|| FormatError::misuse("a buffer was lost after a failed read"))
    }
    fn load(&mut self, file: FileId, frame: u64, last: u64) -> Result<usize, FormatError> {
        let graph = Arc::clone(&self.graph);
        let framed = graph.framed(file)?;
        if frame >= framed.root.frames() {
            return Err(FormatError::misuse(format!("{file} has no frame {frame}")));
        }
        let handle = graph.handle(file)?;
        let last = last
            .min(framed.root.frames() - 1)
            .min(frame + self.slots.len() as u64 - 1);
        for frame in frame..=last {
            if self
                .slots
                .iter()
                .any(|slot| slot.frame == Some((file, frame)))
            {
                continue;
            }
            let oldest = (0..self.slots.len()).filter(|&at| self.slots[at].buffer.is_some());
            let Some(at) = oldest.min_by_key(|&at| self.slots[at].used) else {
                break;
            };
            let slot = &mut self.slots[at];
            let Some(buffer) = slot.buffer.take() else {
                break;
            };
            // Not to be found before it is checked.
            slot.frame = None;
            slot.bytes = framed.frame_bytes(frame);
            self.uses += 1;
            slot.used = self.uses;
            let read = Operation::Read {
                file: handle.clone(),
                offset: frame * FRAME_BYTES,
                buffer,
                range: 0..slot.bytes,
            };
            self.queue.submit(read, frame << 16 | at as u64);
        }
        let mut outcome = Ok(());
        let mut found = None;
        while let Some(done) = self.queue.wait() {
            let (frame_read, at) = (done.token >> 16, (done.token & 0xffff) as usize);
            let slot = &mut self.slots[at];
            slot.buffer = done.buffer;
            let checked =
                done.result
                    .map_err(FormatError::from)
                    .and_then(|read| match &slot.buffer {
                        Some(buffer) if read == slot.bytes => {
                            graph.check(framed, frame_read, &buffer[..read])
                        }
                        _ => {
                            let start = frame_read * FRAME_BYTES;
                            Err(cut_off(
                                handle.path(),
                                start + slot.bytes as u64,
                                start + read as u64,
                            ))
                        }
                    });
            match checked {
                Ok(()) => {
                    self.bytes_read += slot.bytes as u64;
                    slot.frame = Some((file, frame_read));
                    if frame_read == frame {
                        found = Some(at);
                    }
                }
                // The frame that was asked for counts; others may never be needed.
                Err(error) if frame_read == frame => outcome = Err(error),
                Err(_) => {}
            }
        }
        outcome?;
        found.ok_or_else(|| FormatError::misuse("a frame was read and got lost"))
    }
}
