//! Reads chunks one after the other, and waits for each.

use graphmill_storage::{Buffer, Disk, MemoryBudget, Operation, Queue};

use crate::batches::Batches;
use crate::error::FormatError;
use crate::file::page::cut_off;
use crate::stream::chunk::ChunkView;
use crate::stream::chunk_set::{ChunkPart, ChunkRead, ChunkSet};
use crate::stream::directory::Chunk;

/// Reads chunks of one set.
pub struct ChunkSetReader<'s> {
    set: &'s ChunkSet,
    batches: &'s Batches,
    queue: Box<dyn Queue>,
    arcs: Option<Buffer>,
    data: Option<Buffer>,
    bytes_read: u64,
}

impl<'s> ChunkSetReader<'s> {
    /// Returns the bytes of the budget that a reader takes; data is read if `with_data`.
    pub fn memory(set: &ChunkSet, with_data: bool) -> u64 {
        let data = if with_data {
            set.read_bytes_max(ChunkPart::Data)
        } else {
            0
        };
        (set.read_bytes_max(ChunkPart::Arcs) + data) as u64
    }
    /// Creates a reader.
    ///
    /// # Errors
    /// The budget has no room for a chunk.
    pub fn new(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        (set, batches): (&'s ChunkSet, &'s Batches),
        with_data: bool,
    ) -> Result<Self, FormatError> {
        let data = if with_data {
            set.read_bytes_max(ChunkPart::Data)
        } else {
            0
        };
        let buffer = |bytes| budget.buffer("a chunk of arcs", bytes);
        Ok(ChunkSetReader {
            set,
            batches,
            queue: disk.queue(1)?,
            arcs: Some(buffer(set.read_bytes_max(ChunkPart::Arcs))?),
            data: (data > 0).then(|| buffer(data)).transpose()?,
            bytes_read: 0,
        })
    }
    /// Reads a chunk; returns its arcs and their data.
    ///
    /// # Errors
    /// Reading fails, a page is not what was written, or the chunk makes no sense.
    pub fn chunk(&mut self, chunk: &Chunk) -> Result<(ChunkView<'_>, &[u8]), FormatError> {
        let read = self.set.read(chunk, ChunkPart::Arcs)?;
        let arcs = wait(&mut *self.queue, &mut self.arcs, &read)?;
        self.bytes_read += read.bytes as u64;
        let arcs = &arcs[self.set.check(&read, arcs)?];
        let view = ChunkView::parse(arcs, self.batches, chunk.batch())
            .map_err(|error| self.set.broken(chunk, &error))?;
        if view.edges() != chunk.edges() {
            let what = format!(
                "it has {} arcs, the directory says {}",
                view.edges(),
                chunk.edges()
            );
            return Err(self.set.broken(chunk, &FormatError::misuse(what)));
        }
        if self.data.is_none() {
            return Ok((view, &[]));
        }
        let read = self.set.read(chunk, ChunkPart::Data)?;
        let data = wait(&mut *self.queue, &mut self.data, &read)?;
        self.bytes_read += read.bytes as u64;
        Ok((view, &data[self.set.check(&read, data)?]))
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
