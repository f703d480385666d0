//! The bytes of a file in order, read ahead, as runs that begin with what the reader left of the run before.
//!
//! Invariants: `window` is the part of `current` that holds bytes not yet left behind; every other buffer is in `free`, in
//! `arrived`, or on its way. `ahead` lists the reads on their way or arrived, in order of offset.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{
    Buffer, Disk, FileHandle, GRAIN_BYTES, MemoryBudget, Open, Operation, Queue,
};

use crate::error::IngestError;

/// Bytes a reader may leave of a run: the longest line.
pub(crate) const HEADROOM_BYTES: usize = 64 << 10;
/// Bytes of a read.
const READ_BYTES: usize = 256 << 10;
/// Bytes of a read beyond those surely needed: most lines end in them.
const EXTRA_BYTES: usize = 16 << 10;
/// Buffers: one in use, the others on their way.
const BUFFERS: usize = 3;

/// A run of bytes after another.
pub(crate) trait ByteRuns {
    /// Returns the next run, and whether it is the last.
    ///
    /// It begins with the last `kept` bytes of the run before, at most [`HEADROOM_BYTES`].
    fn next(&mut self, kept: usize) -> Result<(&[u8], bool), IngestError>;

    /// Returns the bytes read of the file until now.
    fn taken(&self) -> u64;
}

#[derive(Debug)]
struct QueuedRead {
    /// Bytes it must bring.
    bytes: usize,
    arrived: Option<Buffer>,
}

#[derive(Debug)]
struct OpenedFile {
    file: FileHandle,
    bytes: u64,
    /// The offset of the next read.
    offset: u64,
    /// Up to where reads are made ahead of need.
    wanted: u64,
    /// Bytes of the first read before the start.
    before: usize,
}

/// One worker's buffers and queue, and the file that they are used for at the moment.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    disk: Arc<dyn Disk>,
    budget: MemoryBudget,
    queue: Box<dyn Queue>,
    free: Vec<Buffer>,
    ahead: VecDeque<QueuedRead>,
    /// Token of the first of `ahead`.
    first_token: u64,
    opened: Option<OpenedFile>,
    current: Option<Buffer>,
    window: Range<usize>,
    taken: u64,
}

impl ReadAhead {
    /// Bytes that one leases.
    pub(crate) const LEASED_BYTES: u64 = (BUFFERS * (HEADROOM_BYTES + READ_BYTES)) as u64;

    pub(crate) fn new(disk: &Arc<dyn Disk>, budget: &MemoryBudget) -> Result<Self, IngestError> {
        let free = (0..BUFFERS).map(|_| Self::buffer(budget));
        Ok(Self {
            free: free.collect::<Result<_, _>>()?,
            disk: Arc::clone(disk),
            budget: budget.clone(),
            queue: disk.queue(BUFFERS)?,
            ahead: VecDeque::with_capacity(BUFFERS),
            first_token: 0,
            opened: None,
            current: None,
            window: 0..0,
            taken: 0,
        })
    }

    fn buffer(budget: &MemoryBudget) -> Result<Buffer, IngestError> {
        Ok(budget.buffer("buffers to read edges", HEADROOM_BYTES + READ_BYTES)?)
    }

    /// Opens the file `path` of `bytes` bytes at byte `start`.
    ///
    /// It reads bytes up to `wanted` ahead, and bytes after it on request.
    pub(crate) fn open(
        &mut self,
        path: &Path,
        bytes: u64,
        start: u64,
        wanted: u64,
    ) -> Result<(), IngestError> {
        self.close()?;
        let file = self.disk.open(path, Open::Read)?;
        if file.len()? != bytes {
            return Err(changed(path));
        }
        let offset = start / GRAIN_BYTES as u64 * GRAIN_BYTES as u64;
        let before = (start - offset) as usize;
        self.opened = Some(OpenedFile {
            file,
            bytes,
            offset,
            wanted: wanted.min(bytes),
            before,
        });
        self.taken = 0;
        Ok(())
    }

    /// Waits for the reads in flight and collects all buffers.
    fn close(&mut self) -> Result<(), IngestError> {
        self.opened = None;
        self.window = 0..0;
        self.free.extend(self.current.take());
        while let Some(done) = self.queue.wait() {
            self.free.extend(done.buffer);
        }
        self.first_token += self.ahead.len() as u64;
        let ahead = self.ahead.drain(..);
        self.free.extend(ahead.filter_map(|read| read.arrived));
        while self.free.len() < BUFFERS {
            // One was lost in a failed read.
            self.free.push(Self::buffer(&self.budget)?);
        }
        Ok(())
    }

    /// Submits the reads that there are buffers for.
    fn submit(&mut self) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        while opened.offset < opened.bytes {
            let wanted = opened.wanted.saturating_sub(opened.offset);
            let most = match (wanted, self.ahead.len()) {
                (0, 0) => EXTRA_BYTES,
                (0, _) => return,
                (wanted, _) => READ_BYTES.min((wanted as usize).next_multiple_of(GRAIN_BYTES)),
            };
            let Some(buffer) = self.free.pop() else {
                return;
            };
            let range = HEADROOM_BYTES..HEADROOM_BYTES + most;
            let operation = Operation::Read {
                file: Arc::clone(&opened.file),
                offset: opened.offset,
                buffer,
                range,
            };
            self.queue
                .submit(operation, self.first_token + self.ahead.len() as u64);
            let bytes = (opened.bytes - opened.offset).min(most as u64);
            self.ahead.push_back(QueuedRead {
                bytes: bytes as usize,
                arrived: None,
            });
            opened.offset += bytes;
        }
    }

    /// The next read, when it has arrived; its buffer and how many bytes it holds.
    fn arrival(&mut self) -> Result<Option<(Buffer, usize)>, IngestError> {
        let lost = || IngestError::internal("a read of an input file got lost");
        while let Some(first) = self.ahead.front_mut() {
            if let Some(buffer) = first.arrived.take() {
                let bytes = first.bytes;
                self.ahead.pop_front();
                self.first_token += 1;
                return Ok(Some((buffer, bytes)));
            }
            let done = self.queue.wait().ok_or_else(lost)?;
            let place = (done.token - self.first_token) as usize;
            let read = self.ahead.get_mut(place).ok_or_else(lost)?;
            if done.result? != read.bytes {
                let opened = self.opened.as_ref().ok_or_else(lost)?;
                return Err(changed(opened.file.path()));
            }
            read.arrived = Some(done.buffer.ok_or_else(lost)?);
        }
        Ok(None)
    }

    /// The bytes of the present run that have not been consumed as a stream.
    fn unread(&self) -> &[u8] {
        let window = self.window.clone();
        let unread = self.current.as_ref().and_then(|buffer| buffer.get(window));
        unread.unwrap_or(&[])
    }
}

/// The error of a file that is not what it was.
pub(crate) fn changed(path: &Path) -> IngestError {
    IngestError::InputChanged {
        what: path.display().to_string(),
    }
}

impl ByteRuns for ReadAhead {
    fn next(&mut self, kept: usize) -> Result<(&[u8], bool), IngestError> {
        self.submit();
        let Some((mut buffer, bytes)) = self.arrival()? else {
            self.window.start = self.window.end - kept.min(self.window.len());
            return Ok((self.unread(), true));
        };
        let opened = self.opened.as_mut();
        let before = opened.map_or(0, |opened| std::mem::take(&mut opened.before));
        let before = before.min(bytes);
        let tail = self.unread();
        let tail = &tail[tail.len() - kept.min(tail.len())..];
        let start = HEADROOM_BYTES.checked_sub(tail.len()).ok_or_else(|| {
            IngestError::internal("more bytes are kept of a run than there is room for")
        })?;
        // Only the first read has bytes before its start, and it retains none of an earlier read.
        buffer[start..HEADROOM_BYTES].copy_from_slice(tail);
        self.window = start + before..HEADROOM_BYTES + bytes;
        self.taken += (bytes - before) as u64;
        self.free.extend(self.current.replace(buffer));
        self.submit();
        let mut opened = self.opened.iter();
        let is_submitted = opened.all(|opened| opened.offset == opened.bytes);
        Ok((self.unread(), is_submitted && self.ahead.is_empty()))
    }

    fn taken(&self) -> u64 {
        self.taken
    }
}

/// A stream of the bytes, for the decoders of compressed files.
impl Read for ReadAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?.read(out)?;
        self.consume(bytes);
        Ok(bytes)
    }
}

impl BufRead for ReadAhead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.window.is_empty() {
            self.next(0).map_err(io::Error::other)?;
        }
        Ok(self.unread())
    }

    fn consume(&mut self, bytes: usize) {
        self.window.start = (self.window.start + bytes).min(self.window.end);
    }
}
