//! Writes the order of vertices: the ranks in order of index, then the indices in order of rank.

use std::sync::Arc;

use graphmill_raw::lock;

use crate::error::FormatError;
use crate::file::page::DISK_PAGE_BYTES;
use crate::file::page_writer::PagedWriter;
use crate::vertex::order::{ORDER, entry_bytes, payload_bytes};
use crate::write::graph_writer::GraphWriter;
use crate::write::shared::WriterState;

/// Bytes of a chunk on its way to the disk.
const CHUNK_BYTES: usize = 4 * DISK_PAGE_BYTES as usize;
/// Entries that are packed at once.
const RUN: usize = 1024;

/// Writes the file `order` of a graph whose vertices are not in the order of their ids.
pub struct OrderWriter {
    shared: Arc<WriterState>,
    writer: PagedWriter,
    bytes: Vec<u8>,
}

impl GraphWriter {
    /// A writer for the order of the vertices; a graph without it is in order of ids.
    ///
    /// # Errors
    /// The file cannot be made, or the budget has no room: see [`OrderWriter::MEMORY`].
    pub fn order(&self) -> Result<OrderWriter, FormatError> {
        let shared = Arc::clone(&self.shared);
        let mut writer = PagedWriter::new(&*shared.disk, &shared.budget, shared.graph_id)?;
        writer.add(&*shared.disk, &shared.staging, ORDER, CHUNK_BYTES)?;
        Ok(OrderWriter {
            shared,
            writer,
            bytes: Vec::with_capacity(8 * RUN),
        })
    }
}

impl OrderWriter {
    /// Bytes of the budget that it takes, without the checksums of all but the first GiB.
    pub const MEMORY: u64 = PagedWriter::memory(CHUNK_BYTES);

    /// Appends entries: the rank of each vertex in order of index, then the index of each in order of rank.
    ///
    /// # Errors
    /// The disk fails.
    pub fn push(&mut self, entries: &[u64]) -> Result<(), FormatError> {
        let width = entry_bytes(self.shared.shape.vertices()) as usize;
        for run in entries.chunks(RUN) {
            self.bytes.clear();
            for entry in run {
                self.bytes.extend_from_slice(&entry.to_le_bytes()[..width]);
            }
            self.writer.append(0, &self.bytes)?;
        }
        Ok(())
    }
    /// Ends the file and makes it durable.
    ///
    /// # Errors
    /// There are not two entries for each vertex, or the disk fails.
    pub fn finish(self) -> Result<(), FormatError> {
        let vertices = self.shared.shape.vertices();
        if Some(self.writer.position(0)) != payload_bytes(vertices) {
            return Err(FormatError::misuse("the order is not of all vertices"));
        }
        let roots = self.writer.finish()?;
        *lock(&self.shared.order) = roots.first().copied();
        Ok(())
    }
}
