//! Reads chunks one after the other, and waits for each.

use graphmill_storage::{Buffer, Disk, MemoryBudget, Operation, Queue};

use crate::batches::Batches;
use crate::error::FormatError;
use crate::file::page::cut_off;
use crate::stream::chunk::ChunkView;
use crate::stream::chunk_set::{ChunkRead, ChunkSet};
use crate::stream::directory::Chunk;

/// Reads chunks of one set.
pub struct ChunkSetReader<'s> {
    set: &'s ChunkSet,
    batches: &'s Batches,
    queue: Box<dyn Queue>,
    buffer: Option<Buffer>,
    with_data: bool,
    bytes_read: u64,
}

impl<'s> ChunkSetReader<'s> {
    /// Creates a reader; data is read if `with_data`.
    ///
    /// # Errors
    /// The budget has no room for a chunk.
    pub fn new(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        (set, batches): (&'s ChunkSet, &'s Batches),
        with_data: bool,
    ) -> Result<Self, FormatError> {
        let buffer = budget.buffer("a chunk of arcs", set.read_bytes_max(with_data))?;
        Ok(ChunkSetReader {
            set,
            batches,
            queue: disk.queue(1)?,
            buffer: Some(buffer),
            with_data,
            bytes_read: 0,
        })
    }
    /// Reads a chunk; returns its arcs and their data.
    ///
    /// # Errors
    /// Reading fails, a page is not what was written, or the chunk makes no sense.
    pub fn chunk(&mut self, chunk: &Chunk) -> Result<(ChunkView<'_>, &[u8]), FormatError> {
        let read = self.set.read(chunk, self.with_data)?;
        let pages = wait(&mut *self.queue, &mut self.buffer, &read)?;
        self.bytes_read += read.bytes as u64;
        let [arcs, data] = self.set.check(&read, pages)?;
        let view = self.set.parse(chunk, &pages[arcs], self.batches)?;
        Ok((view, &pages[data]))
    }
    /// Bytes read from the disk since the last call.
    pub fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }
}

fn wait<'b>(
    queue: &mut dyn Queue,
    place: &'b mut Option<Buffer>,
    read: &ChunkRead,
) -> Result<&'b [u8], FormatError> {
    let lost = || FormatError::misuse("a buffer was lost after a failed read");
    let buffer = place.take().ok_or_else(lost)?;
    let operation = Operation::Read {
        file: read.file.clone(),
        offset: read.offset,
        buffer,
        range: 0..read.bytes,
    };
    queue.submit(operation, 0);
    let done = queue.wait().ok_or_else(lost)?;
    *place = done.buffer;
    let found = done.result?;
    if found < read.bytes {
        return Err(cut_off(read.file.path(), read.offset, [read.bytes, found]));
    }
    let bytes = place.as_ref().and_then(|buffer| buffer.get(..read.bytes));
    bytes.ok_or_else(lost)
}
