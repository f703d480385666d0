//! Messages on disk: a file with a place for each batch, and the batches of it that one worker holds at a time.
//!
//! Invariants:
//! - a batch is written whole, at most once a pass, and read only after all writes of the pass have ended;
//! - a window never holds more batches than it has buffers, and each buffer is free, on its way, or held.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Budget, Buffer, Completion, Disk, FileHandle, Open, Operation, Queue};

use crate::error::EngineError;

/// Batches on their way to or from the disk for one worker, at most.
const DEPTH: usize = 8;

/// The file; it is removed when dropped.
#[derive(Debug)]
pub(crate) struct MessageFile {
    file: FileHandle,
    path: PathBuf,
    disk: Arc<dyn Disk>,
    /// Where the messages of each batch begin, at a multiple of the page, and where the last ones end.
    begins: Vec<u64>,
    /// Bytes and checksum of what was last written for each batch.
    bytes: Vec<usize>,
    checksums: Vec<AtomicU32>,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl MessageFile {
    /// A new file with places of so many bytes.
    pub(crate) fn create(
        disk: Arc<dyn Disk>,
        path: &Path,
        bytes: Vec<usize>,
    ) -> Result<Self, EngineError> {
        let mut begins = vec![0];
        let mut end = 0;
        for &bytes in &bytes {
            end += AlignedBuffer::footprint(bytes);
            begins.push(end);
        }
        Ok(MessageFile {
            file: disk.open(path, Open::Create)?,
            path: path.to_path_buf(),
            disk,
            begins,
            checksums: bytes.iter().map(|_| AtomicU32::new(0)).collect(),
            bytes,
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
        })
    }

    /// Bytes read and written since the last call.
    pub(crate) fn take_traffic(&self) -> (u64, u64) {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        (take(&self.bytes_read), take(&self.bytes_written))
    }

    fn place(&self, batch: usize) -> (u64, usize) {
        let (from, to) = (self.begins[batch], self.begins[batch + 1]);
        (from, (to - from) as usize)
    }
}

impl Drop for MessageFile {
    fn drop(&mut self) {
        // The file holds nothing once its engine is gone; a failure to remove it is no failure of the run.
        let _ = self.disk.remove_file(&self.path);
    }
}

/// The batches that one worker holds or has on their way.
#[derive(Debug)]
pub(crate) struct Window {
    queue: Box<dyn Queue>,
    free: Vec<Buffer>,
    /// What was read, `None` while it is on its way or lent.
    held: BTreeMap<usize, Option<Buffer>>,
    /// What to read next, in this order.
    todo: VecDeque<usize>,
}

impl Window {
    /// A window of so many batches of at most so many bytes.
    pub(crate) fn new(
        disk: &dyn Disk,
        budget: &Budget,
        batches: usize,
        batch_bytes: usize,
    ) -> Result<Self, EngineError> {
        let whole = AlignedBuffer::footprint(batch_bytes) as usize;
        let buffer = || budget.buffer("the messages of a batch", whole);
        Ok(Window {
            queue: disk.queue(batches.min(DEPTH))?,
            free: (0..batches).map(|_| buffer()).collect::<Result<_, _>>()?,
            held: BTreeMap::new(),
            todo: VecDeque::new(),
        })
    }

    /// A buffer to fill and to hand to [`Window::write`].
    pub(crate) fn spare(&mut self, file: &MessageFile) -> Result<Buffer, EngineError> {
        loop {
            if let Some(buffer) = self.free.pop() {
                return Ok(buffer);
            }
            self.wait(file)?;
        }
    }

    /// Starts to write the messages of a batch, which begin the buffer.
    pub(crate) fn write(&mut self, file: &MessageFile, batch: usize, buffer: Buffer) {
        let checksum = crc32fast::hash(&buffer[..file.bytes[batch]]);
        file.checksums[batch].store(checksum, Ordering::Relaxed);
        let (offset, length) = file.place(batch);
        let operation = Operation::Write {
            file: file.file.clone(),
            offset,
            buffer,
            range: 0..length,
        };
        file.bytes_written
            .fetch_add(length as u64, Ordering::Relaxed);
        self.queue.submit(operation, batch as u64);
    }

    /// Waits until all writes have ended.
    pub(crate) fn flush(&mut self, file: &MessageFile) -> Result<(), EngineError> {
        while let Some(done) = self.queue.wait() {
            self.accept(file, done)?;
        }
        Ok(())
    }

    /// Says which batches will be taken, in order of their first use, and starts to read them.
    pub(crate) fn start(
        &mut self,
        file: &MessageFile,
        batches: impl Iterator<Item = usize>,
    ) -> Result<(), EngineError> {
        // A pass that was given up may have left batches of its own here.
        self.todo.clear();
        self.flush(file)?;
        let left = std::mem::take(&mut self.held);
        self.free.extend(left.into_values().flatten());
        self.todo = batches.collect();
        self.pump(file)
    }

    /// Lends a batch that was announced; blocks until it is read.
    pub(crate) fn take(&mut self, file: &MessageFile, batch: usize) -> Result<Buffer, EngineError> {
        self.pump(file)?;
        loop {
            if let Some(buffer) = self.held.get_mut(&batch).and_then(Option::take) {
                return Ok(buffer);
            }
            self.wait(file)?;
        }
    }

    /// Takes a batch back; unless it will be taken again, its buffer goes to the next.
    pub(crate) fn give_back(
        &mut self,
        file: &MessageFile,
        batch: usize,
        buffer: Buffer,
        again: bool,
    ) -> Result<(), EngineError> {
        if again {
            self.held.insert(batch, Some(buffer));
            return Ok(());
        }
        self.held.remove(&batch);
        self.free.push(buffer);
        self.pump(file)
    }

    fn pump(&mut self, file: &MessageFile) -> Result<(), EngineError> {
        while !self.todo.is_empty()
            && let Some(buffer) = self.free.pop()
            && let Some(batch) = self.todo.pop_front()
        {
            let (offset, length) = file.place(batch);
            let operation = Operation::Read {
                file: file.file.clone(),
                offset,
                buffer,
                range: 0..length,
            };
            file.bytes_read.fetch_add(length as u64, Ordering::Relaxed);
            self.held.insert(batch, None);
            self.queue.submit(operation, batch as u64);
        }
        while let Some(done) = self.queue.poll() {
            self.accept(file, done)?;
        }
        Ok(())
    }

    /// Takes in one completed read or write, of which there must be some on their way.
    fn wait(&mut self, file: &MessageFile) -> Result<(), EngineError> {
        let done = self.queue.wait().ok_or(EngineError::NoReaders)?;
        self.accept(file, done)
    }

    fn accept(&mut self, file: &MessageFile, done: Completion) -> Result<(), EngineError> {
        let moved = done.result?;
        let Some(buffer) = done.buffer else {
            return Ok(());
        };
        let batch = done.token as usize;
        // Only what is read has a place in the window already.
        let Some(held) = self.held.get_mut(&batch) else {
            self.free.push(buffer);
            return Ok(());
        };
        let bytes = file.bytes[batch];
        if moved < bytes
            || crc32fast::hash(&buffer[..bytes]) != file.checksums[batch].load(Ordering::Relaxed)
        {
            return Err(EngineError::CorruptPage {
                path: file.path.clone(),
                offset: file.begins[batch],
            });
        }
        *held = Some(buffer);
        Ok(())
    }
}
