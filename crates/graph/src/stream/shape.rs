//! What the chunks of one file have in common, where the file is made, and where full chunks go.

use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{Disk, MemoryBudget};

use crate::batches::Batches;
use crate::error::FormatError;
use crate::file::page::FileSide;
use crate::spec::EdgeKind;

/// Bytes of a chunk by default.
pub const STREAM_CHUNK_BYTES: usize = 4 << 20;
/// Bytes of a chunk at least, unless the user asks for fewer.
pub const STREAM_CHUNK_BYTES_MIN: usize = 64 << 10;
/// Bytes of a chunk at most, so that its counts, and its bytes with any data, fit 32 bits.
pub const STREAM_CHUNK_BYTES_MAX: usize = 1 << 27;

/// What chunks of one file have in common.
#[derive(Clone, Debug)]
pub struct ChunkShape {
    /// The cut of the vertices: batches of the same power of two of vertices.
    pub batches: Batches,
    /// What an arc carries.
    pub edge: EdgeKind,
    /// Bytes of a chunk at most, without the data of its arcs.
    pub chunk_bytes: usize,
    /// The graph, or the graph with every arc turned round.
    pub side: FileSide,
    /// The number of the file.
    pub file: u32,
}

/// Where a file of chunks is made.
#[derive(Clone, Copy)]
pub struct ChunkPlace<'p> {
    /// The disk.
    pub disk: &'p Arc<dyn Disk>,
    /// The memory.
    pub budget: &'p MemoryBudget,
    /// The directory of the graph.
    pub folder: &'p Path,
    /// The number that tells the graph from others.
    pub graph_id: u64,
}

/// Where full chunks go.
pub trait ChunkRoute: Sync {
    /// What can fail.
    type Error: From<FormatError>;
    /// Sends a chunk to another file than that of the writer; returns whether it did.
    ///
    /// # Errors
    /// Sending fails.
    fn send(&self, chunk: SealedChunk<'_>) -> Result<bool, Self::Error>;
}

/// All full chunks go to the file of the writer.
#[derive(Clone, Copy, Debug)]
pub struct StoreHere;

impl ChunkRoute for StoreHere {
    type Error = FormatError;
    fn send(&self, _chunk: SealedChunk<'_>) -> Result<bool, FormatError> {
        Ok(false)
    }
}

/// The bytes of a full chunk, on their way to a file.
#[derive(Clone, Copy, Debug)]
pub struct SealedChunk<'c> {
    /// The batch of its sources.
    pub batch: u32,
    /// Bytes of the chunk, before the data of its arcs.
    pub arcs_bytes: usize,
    /// The chunk, then the data of its arcs in their order.
    pub bytes: &'c [u8],
}

impl<'c> SealedChunk<'c> {
    /// The chunk and the data of its arcs.
    pub(crate) fn parts(&self) -> (&'c [u8], &'c [u8]) {
        self.bytes.split_at(self.arcs_bytes.min(self.bytes.len()))
    }
}
