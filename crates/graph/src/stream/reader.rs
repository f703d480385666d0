//! Reads chunks one after the other, and waits for each.

use graphmill_storage::{Disk, MemoryBudget};

use crate::batches::Batches;
use crate::error::FormatError;
use crate::file::page::PageReader;
use crate::stream::chunk::ChunkView;
use crate::stream::chunk_set::ChunkSet;
use crate::stream::directory::Chunk;

/// Reads chunks of one set.
pub struct ChunkSetReader<'s> {
    set: &'s ChunkSet,
    batches: &'s Batches,
    fetch: PageReader,
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
            fetch: PageReader::into_buffer(disk, buffer)?,
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
        let pages = self.fetch.read(&read.file, read.offset, read.bytes)?;
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
