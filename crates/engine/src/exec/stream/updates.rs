//! Update chunks at this rank's storage engine: a file of bins that were written because their accumulators are not in memory.
//!
//! ```text
//! header     magic u32 | batch u32 | phase u64 | updates u32 | bytes of an accumulator u32 | checksum u32 | 0 to byte 64
//! indices    a u32 each, padded to a multiple of 64 bytes
//! values     an accumulator each
//! ```
//!
//! The file belongs to one superstep. The next one begins at its start again.

use std::path::PathBuf;
use std::sync::Arc;

use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Buffer, MemoryBudget, Open};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::context::ExecContext;
use crate::engine_file::EngineFile;
use crate::error::EngineError;
use crate::memory::stream::{BIN_HEADER_BYTES, LIST_BLOCK_BYTES, ListEntry, bin_values_at};

const MAGIC: u32 = u32::from_le_bytes(*b"GMUC");
/// The bytes of a header before its checksum.
const CHECKED_BYTES: usize = size_of::<UpdateHeader>();
/// Space that is reserved ahead at least and at most, so that a full disk is found before a write.
const RESERVE_BYTES: [u64; 2] = [1 << 20, 64 << 20];

/// The place of an update chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpdateChunk {
    pub(crate) offset: u64,
    /// Bytes on disk, whole pages.
    pub(crate) bytes: usize,
}

/// The file of update chunks of one storage engine; it is removed when dropped.
#[derive(Debug)]
pub(crate) struct UpdateFile {
    pub(crate) file: EngineFile,
    reserved: u64,
    /// Bytes of the place of a chunk.
    place_bytes: usize,
    budget: MemoryBudget,
    /// The chunks of all batches in the order of their places, in blocks.
    list: Vec<Buffer>,
    len: u32,
    /// Of each batch the last unprocessed chunk, and the bytes of all.
    of_batch: Vec<(u32, u64)>,
}

/// No chunk.
const NONE: u32 = u32::MAX;
/// Entries of a block of the list.
const BLOCK: usize = LIST_BLOCK_BYTES / size_of::<ListEntry>();

impl UpdateFile {
    /// Creates the file for chunks of bins of `bin_bytes` bytes.
    pub(crate) fn create(context: &ExecContext, bin_bytes: usize) -> Result<Self, EngineError> {
        let (disk, path) = (Arc::clone(&context.disk), Self::path(context));
        Ok(UpdateFile {
            file: EngineFile::open(disk, &path, Open::CreatePrivate)?,
            reserved: 0,
            place_bytes: AlignedBuffer::footprint(bin_bytes) as usize,
            budget: context.budget.clone(),
            list: Vec::new(),
            len: 0,
            of_batch: vec![(NONE, 0); context.batches.len()],
        })
    }

    /// The path of the file.
    pub(crate) fn path(context: &ExecContext) -> PathBuf {
        context.scratch.join("updates")
    }

    /// Drops all chunks.
    pub(crate) fn clear(&mut self) {
        self.of_batch.fill((NONE, 0));
        self.len = 0;
    }

    /// Returns the place of a new chunk of a batch, which the caller writes.
    pub(crate) fn append(
        &mut self,
        batch: usize,
        bytes: usize,
    ) -> Result<UpdateChunk, EngineError> {
        let number = self.len as usize;
        if number == self.list.len() * BLOCK {
            let block = self
                .budget
                .buffer("the list of update chunks", LIST_BLOCK_BYTES)?;
            self.list.push(block);
        }
        let chunk = UpdateChunk {
            offset: (number * self.place_bytes) as u64,
            bytes: AlignedBuffer::footprint(bytes) as usize,
        };
        let end = chunk.offset + self.place_bytes as u64;
        if end > self.reserved {
            let [least, most] = RESERVE_BYTES;
            self.reserved = end + end.clamp(least, most);
            (self.file.disk).reserve(&self.file.handle, self.reserved)?;
        }
        let (last, left) = &mut self.of_batch[batch];
        self.list[number / BLOCK].typed_mut::<ListEntry>()[number % BLOCK] =
            [chunk.bytes as u32, *last];
        (*last, *left) = (self.len, *left + chunk.bytes as u64);
        self.len += 1;
        Ok(chunk)
    }

    /// Takes an unprocessed chunk of a batch.
    pub(crate) fn take(&mut self, batch: usize) -> Option<UpdateChunk> {
        let (last, left) = &mut self.of_batch[batch];
        let number = *last as usize;
        let block = self.list.get(number / BLOCK).filter(|_| *last != NONE)?;
        let [bytes, before] = block.typed::<ListEntry>()[number % BLOCK];
        (*last, *left) = (before, *left - u64::from(bytes));
        Some(UpdateChunk {
            offset: (number * self.place_bytes) as u64,
            bytes: bytes as usize,
        })
    }

    /// Bytes of the unprocessed chunks of a batch.
    pub(crate) fn bytes_left(&self, batch: usize) -> u64 {
        self.of_batch[batch].1
    }
}

/// The identity of an update chunk: its batch and its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpdateId {
    pub(crate) batch: usize,
    pub(crate) phase: u64,
}

/// The header of an update chunk, before its checksum.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct UpdateHeader {
    magic: u32,
    batch: u32,
    phase: u64,
    count: u32,
    width: u32,
}

impl UpdateHeader {
    fn new(id: UpdateId, count: usize, width: usize) -> Self {
        UpdateHeader {
            magic: MAGIC,
            batch: id.batch as u32,
            phase: id.phase,
            count: count as u32,
            width: width as u32,
        }
    }
}

/// Seals a bin, and returns the bytes of the chunk.
///
/// It moves the `count` values behind their indices, and writes the header.
pub(crate) fn seal(
    buffer: &mut Buffer,
    id: UpdateId,
    count: usize,
    capacity: usize,
    width: usize,
) -> usize {
    let (from, to) = (bin_values_at(capacity), bin_values_at(count));
    let bytes = to + count * width;
    buffer.copy_within(from..from + count * width, to);
    let indices_end = BIN_HEADER_BYTES + count * size_of::<u32>();
    buffer[indices_end..to].fill(0);
    let header = UpdateHeader::new(id, count, width);
    buffer[..BIN_HEADER_BYTES].fill(0);
    buffer[..CHECKED_BYTES].copy_from_slice(header.as_bytes());
    let checksum = checksum(&buffer[..bytes]);
    buffer[CHECKED_BYTES..CHECKED_BYTES + 4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The checksum of all bytes of a chunk except the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CHECKED_BYTES]);
    hasher.update(&bytes[BIN_HEADER_BYTES..]);
    hasher.finalize()
}

/// Returns the indices of a chunk, and the bytes of its values.
///
/// Returns `None` if it is not the one that was written.
pub(crate) fn parts(bytes: &[u8], id: UpdateId, width: usize) -> Option<(&[u32], &[u8])> {
    let (header, rest) = UpdateHeader::read_from_prefix(bytes).ok()?;
    let count = header.count as usize;
    let end = count
        .checked_mul(width)?
        .checked_add(bin_values_at(count))?;
    let chunk = bytes.get(..end)?;
    let said = u32::from_le_bytes(*rest.first_chunk()?);
    if header != UpdateHeader::new(id, count, width) || said != checksum(chunk) {
        return None;
    }
    let indices = &chunk[BIN_HEADER_BYTES..BIN_HEADER_BYTES + count * size_of::<u32>()];
    let values = &chunk[bin_values_at(count)..];
    Some((<[u32]>::ref_from_bytes(indices).ok()?, values))
}
