//! Messages on disk: a file of message runs, and the batches that one cursor holds at a time.
//!
//! Invariants:
//! - the whole run of each batch has a place of its own; runs for column groups follow these places, one after the other as
//!   they are written;
//! - a run is read only after it was written: a batch *lands* once all its writes have completed;
//! - each buffer of a cursor is free, on its way, or held.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Buffer, Completion, Disk, MemoryBudget, Open, Queue};

use crate::engine_file::EngineFile;
use crate::error::{EngineError, ensure};
use crate::graph_view::starts;
use crate::messages::run_codec::RunEncoding;

/// Reads and writes on their way for one cursor, at most.
const DEPTH: usize = 8;

/// The place of a run, and its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunRef {
    pub(crate) encoding: RunEncoding,
    offset: u64,
    checksum: u32,
}

/// The file.
#[derive(Debug)]
pub(crate) struct SpillFile {
    pub(crate) file: EngineFile,
    /// Where the place of each batch begins, and where the last one ends.
    begins: Vec<u64>,
    /// The offset of the next run for a group.
    end: AtomicU64,
}

impl SpillFile {
    /// Creates a file with places of `bytes` bytes.
    pub(crate) fn create(
        disk: Arc<dyn Disk>,
        path: &Path,
        bytes: impl Iterator<Item = usize>,
    ) -> Result<Self, EngineError> {
        let begins = starts(bytes.map(AlignedBuffer::footprint));
        Ok(SpillFile {
            file: EngineFile::open(disk, path, Open::CreatePrivate)?,
            end: AtomicU64::new(begins[begins.len() - 1]),
            begins,
        })
    }

    /// Discards all runs for column groups.
    pub(crate) fn clear(&mut self) {
        *self.end.get_mut() = self.begins[self.begins.len() - 1];
    }

    /// The place of a batch.
    pub(crate) fn place(&self, batch: usize) -> u64 {
        self.begins[batch]
    }

    /// Reserves `bytes` bytes for runs of column groups.
    pub(crate) fn more(&self, bytes: usize) -> u64 {
        let bytes = AlignedBuffer::footprint(bytes);
        self.end.fetch_add(bytes, Ordering::Relaxed)
    }

    /// Returns the run that will be written `offset` bytes into the reserved space.
    pub(crate) fn run_ref(&self, encoding: RunEncoding, bytes: &[u8], offset: u64) -> RunRef {
        RunRef {
            encoding,
            offset,
            checksum: crc32fast::hash(&bytes[..encoding.bytes]),
        }
    }

    /// The error for a buffer, or a run, that never arrives.
    pub(crate) fn no_buffer(&self) -> EngineError {
        EngineError::NoBuffer {
            path: self.file.path.clone(),
        }
    }
}

/// The reads and writes of one worker, or of the messages from or to another rank.
#[derive(Debug)]
pub(crate) struct SpillCursor {
    queue: Box<dyn Queue>,
    pub(crate) free: Vec<Buffer>,
    /// The loaded batches.
    loaded: BTreeMap<usize, LoadedBatch>,
    /// The batches to read next, in this order; those without a run are buffered.
    todo: VecDeque<(usize, Option<RunRef>)>,
    /// The runs that its group has buffered.
    buffered: Option<BufferedRuns>,
    /// True if a buffer is left free for such runs.
    buffers_runs: bool,
    /// Number of writes started, and of those in flight.
    writes: u64,
    writing: BTreeSet<u64>,
    /// Batches whose writes are all started, with the number of writes at that time.
    landing: VecDeque<(u64, usize)>,
}

/// Message runs that a group has pulled, in memory.
#[derive(Debug)]
struct BufferedRuns {
    buffer: Buffer,
    used: usize,
    /// Where each begins.
    runs: BTreeMap<usize, (usize, RunEncoding)>,
}

/// The state of a batch in a cursor.
#[derive(Debug)]
enum LoadedBatch {
    Coming(RunRef),
    /// Loaded, as written or as the last borrower returned it.
    Here(Buffer, ReadRun),
    Lent,
}

/// The state of a run that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadRun {
    AsWritten(RunEncoding),
    /// As returned by a borrower, with this number of messages.
    Again(u64),
}

const READ: u64 = 0;
const WRITE: u64 = 1;

impl SpillCursor {
    /// Creates a cursor with `buffers` buffers for runs of at most `run_bytes` bytes.
    pub(crate) fn new(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        buffers: usize,
        run_bytes: usize,
    ) -> Result<Self, EngineError> {
        let whole = AlignedBuffer::footprint(run_bytes) as usize;
        let buffer = || budget.buffer("the messages of a batch", whole);
        Ok(SpillCursor {
            queue: disk.queue(buffers.min(DEPTH))?,
            free: (0..buffers).map(|_| buffer()).collect::<Result<_, _>>()?,
            loaded: BTreeMap::new(),
            todo: VecDeque::new(),
            buffered: None,
            buffers_runs: false,
            writes: 0,
            writing: BTreeSet::new(),
            landing: VecDeque::new(),
        })
    }

    /// A buffer to fill, to be given to [`SpillCursor::write`] or back to the free ones.
    pub(crate) fn spare(&mut self, file: &SpillFile) -> Result<Buffer, EngineError> {
        loop {
            if let Some(buffer) = self.free.pop() {
                return Ok(buffer);
            }
            self.wait(file)?;
        }
    }

    /// Starts to write the first bytes of a buffer.
    pub(crate) fn write(&mut self, file: &SpillFile, offset: u64, buffer: Buffer, bytes: usize) {
        let length = AlignedBuffer::footprint(bytes) as usize;
        let operation = file.file.write(offset, buffer, length);
        self.queue.submit(operation, self.writes << 1 | WRITE);
        self.writing.insert(self.writes);
        self.writes += 1;
    }

    /// Says that all of a batch was given to be written.
    pub(crate) fn ends(&mut self, batch: usize) {
        self.landing.push_back((self.writes, batch));
    }

    /// Returns a batch whose writes have all completed.
    pub(crate) fn landed(&mut self) -> Option<usize> {
        let (writes, batch) = *self.landing.front()?;
        if self.writing.first().is_some_and(|first| *first < writes) {
            return None;
        }
        self.landing.pop_front();
        Some(batch)
    }

    /// Takes in what has ended.
    pub(crate) fn poll(&mut self, file: &SpillFile) -> Result<(), EngineError> {
        while let Some(completion) = self.queue.poll() {
            self.accept(file, completion)?;
        }
        Ok(())
    }

    /// Waits until all reads and writes have ended.
    pub(crate) fn flush(&mut self, file: &SpillFile) -> Result<(), EngineError> {
        while let Some(completion) = self.queue.wait() {
            self.accept(file, completion)?;
        }
        Ok(())
    }

    /// Discards pending reads, loaded batches and buffered runs.
    ///
    /// Leaves a buffer free if more will be buffered.
    pub(crate) fn start(
        &mut self,
        file: &SpillFile,
        buffers_runs: bool,
    ) -> Result<(), EngineError> {
        self.buffers_runs = buffers_runs;
        self.todo.clear();
        self.flush(file)?;
        self.free
            .extend(self.buffered.take().map(|buffered| buffered.buffer));
        for (_, batch) in std::mem::take(&mut self.loaded) {
            if let LoadedBatch::Here(buffer, _) = batch {
                self.free.push(buffer);
            }
        }
        Ok(())
    }

    /// Queues a read behind all earlier ones.
    pub(crate) fn want(&mut self, batch: usize, run: RunRef) {
        self.todo.push_back((batch, Some(run)));
    }

    /// Queues the buffered run of a batch, if there is one; returns true if so.
    pub(crate) fn want_buffered(&mut self, batch: usize) -> bool {
        let is_there =
            (self.buffered.as_ref()).is_some_and(|buffered| buffered.runs.contains_key(&batch));
        if is_there {
            self.todo.push_back((batch, None));
        }
        is_there
    }

    /// True if a batch can be read at once, and its run buffered if that has room.
    pub(crate) fn can_buffer(&self) -> bool {
        let needed = 1 + usize::from(self.buffered.is_none());
        self.todo.is_empty() && self.free.len() >= needed
    }

    /// True if a run of such an encoding fits in the buffer for runs.
    pub(crate) fn has_room(&mut self, encoding: RunEncoding) -> bool {
        if self.buffered.is_none()
            && let Some(buffer) = self.free.pop()
        {
            self.buffered = Some(BufferedRuns {
                buffer,
                used: 0,
                runs: BTreeMap::new(),
            });
        }
        let fits =
            |buffered: &BufferedRuns| buffered.used + encoding.bytes <= buffered.buffer.len();
        self.buffered.as_ref().is_some_and(fits)
    }

    /// Buffers a run of a batch, which `put` writes, if there is a buffer for runs.
    pub(crate) fn buffer_pulled(
        &mut self,
        batch: usize,
        encoding: RunEncoding,
        put: impl FnOnce(&mut [u8]),
    ) {
        if let Some(buffered) = &mut self.buffered {
            let at = buffered.used;
            put(&mut buffered.buffer[at..at + encoding.bytes]);
            buffered.runs.insert(batch, (at, encoding));
            buffered.used = AlignedBuffer::footprint(at + encoding.bytes) as usize;
        }
    }

    /// Writes the buffered runs to disk, and reports the place of each.
    pub(crate) fn write_buffered(
        &mut self,
        file: &SpillFile,
        mut tell: impl FnMut(usize, RunRef),
    ) -> Result<(), EngineError> {
        let Some(buffered) = self.buffered.take() else {
            return Ok(());
        };
        let place = file.more(buffered.used);
        for (batch, (at, encoding)) in buffered.runs {
            let run = file.run_ref(encoding, &buffered.buffer[at..], place + at as u64);
            tell(batch, run);
        }
        self.write(file, place, buffered.buffer, buffered.used);
        self.flush(file)
    }

    /// Starts to read what there is room for.
    pub(crate) fn pump(&mut self, file: &SpillFile) -> Result<(), EngineError> {
        let left_free = usize::from(self.buffers_runs && self.buffered.is_none());
        while self.free.len() > left_free
            && let Some((batch, run)) = self.todo.pop_front()
            && let Some(mut buffer) = self.free.pop()
        {
            let Some(run) = run else {
                if let Some(buffered) = &self.buffered
                    && let Some(&(at, encoding)) = buffered.runs.get(&batch)
                {
                    buffer[..encoding.bytes]
                        .copy_from_slice(&buffered.buffer[at..at + encoding.bytes]);
                    let loaded = LoadedBatch::Here(buffer, ReadRun::AsWritten(encoding));
                    self.loaded.insert(batch, loaded);
                }
                continue;
            };
            let length = AlignedBuffer::footprint(run.encoding.bytes) as usize;
            let operation = file.file.read(run.offset, buffer, length);
            self.loaded.insert(batch, LoadedBatch::Coming(run));
            self.queue.submit(operation, (batch as u64) << 1 | READ);
        }
        self.poll(file)
    }

    /// Lends a requested batch; blocks until it is read.
    pub(crate) fn take(
        &mut self,
        file: &SpillFile,
        batch: usize,
    ) -> Result<(Buffer, ReadRun), EngineError> {
        self.pump(file)?;
        loop {
            if let Some(loaded) = self.loaded.get_mut(&batch) {
                match std::mem::replace(loaded, LoadedBatch::Lent) {
                    LoadedBatch::Here(buffer, state) => return Ok((buffer, state)),
                    other => *loaded = other,
                }
            }
            self.wait(file)?;
            self.pump(file)?;
        }
    }

    /// Takes a run back; its buffer is reused unless the run will be taken again.
    pub(crate) fn give_back(
        &mut self,
        file: &SpillFile,
        batch: usize,
        buffer: Buffer,
        again: Option<u64>,
    ) -> Result<(), EngineError> {
        match again {
            Some(count) => {
                let loaded = LoadedBatch::Here(buffer, ReadRun::Again(count));
                self.loaded.insert(batch, loaded);
                Ok(())
            }
            None => {
                self.loaded.remove(&batch);
                self.free.push(buffer);
                self.pump(file)
            }
        }
    }

    /// Processes one completed read or write; some must be in flight.
    fn wait(&mut self, file: &SpillFile) -> Result<(), EngineError> {
        let completion = self.queue.wait().ok_or_else(|| file.no_buffer())?;
        self.accept(file, completion)
    }

    fn accept(&mut self, file: &SpillFile, completion: Completion) -> Result<(), EngineError> {
        let number = completion.token >> 1;
        let moved = completion.result?;
        let Some(buffer) = completion.buffer else {
            return Ok(());
        };
        if completion.token & 1 == WRITE {
            self.writing.remove(&number);
            self.free.push(buffer);
            return Ok(());
        }
        match self.loaded.get_mut(&(number as usize)) {
            None => self.free.push(buffer),
            Some(loaded) => {
                if let LoadedBatch::Coming(run) = loaded {
                    let bytes = run.encoding.bytes;
                    let is_as_written =
                        moved >= bytes && crc32fast::hash(&buffer[..bytes]) == run.checksum;
                    ensure(is_as_written, || file.file.corrupt(run.offset))?;
                    *loaded = LoadedBatch::Here(buffer, ReadRun::AsWritten(run.encoding));
                }
            }
        }
        Ok(())
    }
}
