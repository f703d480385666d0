//! Streams of bytes into paged files, several over one queue; checksums are computed on the way.
//!
//! 1. Bytes gather in a chunk (whole pages). A full chunk is summed page by page and handed to the queue, while
//!    the next fills: two chunks a stream.
//! 2. [`PagedWriter::finish`] pads and writes the last chunk, then the table, syncs, and tells the roots.

use std::path::{Path, PathBuf};

use graphmill_storage::{
    Buffer, Completion, Disk, FileHandle, Lease, MemoryBudget, Open, Operation, Queue,
};

use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileRoot, GRAIN};

/// Entries of a checksum table that are leased together.
const TABLE_STEP: usize = 16 << 10;

struct PageStream {
    file: FileHandle,
    /// `None` for a temporary file, which has no pages.
    id: Option<FileId>,
    chunk: Option<Buffer>,
    spare: Vec<Buffer>,
    filled: usize,
    /// Where in the file the chunk goes.
    offset: u64,
    payload: u64,
    table: Vec<u32>,
    leases: Vec<Lease>,
}

/// Writes paged files.
pub(crate) struct PagedWriter {
    queue: Box<dyn Queue>,
    graph_id: u64,
    streams: Vec<PageStream>,
    /// Temporary files are made durable too.
    syncs_all: bool,
    budget: MemoryBudget,
}

impl PagedWriter {
    pub(crate) fn new(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        graph_id: u64,
    ) -> Result<Self, FormatError> {
        Ok(PagedWriter {
            queue: disk.queue(8)?,
            graph_id,
            streams: Vec::new(),
            syncs_all: false,
            budget: budget.clone(),
        })
    }
    /// The same, which makes temporary files durable too if `syncs_all`.
    pub(crate) fn syncing_all(self, syncs_all: bool) -> Self {
        PagedWriter { syncs_all, ..self }
    }
    /// Returns the bytes of the budget that a file with chunks of `chunk_bytes` takes.
    ///
    /// These are two chunks, and the checksums of 1 GiB.
    pub(crate) const fn memory(chunk_bytes: usize) -> u64 {
        (2 * chunk_bytes.next_multiple_of(DISK_PAGE_BYTES as usize) + 4 * TABLE_STEP) as u64
    }
    /// Returns the bytes of the budget that the checksums of `bytes` bytes take.
    pub(crate) fn checksums(bytes: u64) -> u64 {
        4 * (bytes.div_ceil(DISK_PAGE_BYTES)).next_multiple_of(TABLE_STEP as u64)
    }
    /// Adds a file of the graph; the number by which [`append`](Self::append) knows it.
    pub(crate) fn add(
        &mut self,
        disk: &dyn Disk,
        graph: &Path,
        id: FileId,
        chunk_bytes: usize,
    ) -> Result<usize, FormatError> {
        self.add_file(disk, &id.path(graph), Some(id), chunk_bytes)
    }
    /// Adds a temporary file: bytes as they come, zeros to a multiple of 4096 at the end, no checksums.
    pub(crate) fn add_temporary(
        &mut self,
        disk: &dyn Disk,
        path: &Path,
        chunk_bytes: usize,
    ) -> Result<usize, FormatError> {
        self.add_file(disk, path, None, chunk_bytes)
    }
    fn add_file(
        &mut self,
        disk: &dyn Disk,
        path: &Path,
        id: Option<FileId>,
        chunk_bytes: usize,
    ) -> Result<usize, FormatError> {
        let chunk_bytes = chunk_bytes.next_multiple_of(DISK_PAGE_BYTES as usize);
        let buffer = || self.budget.buffer("writing the stored graph", chunk_bytes);
        let (chunk, spare) = (Some(buffer()?), vec![buffer()?]);
        self.streams.push(PageStream {
            file: disk.open(path, Open::Create)?,
            id,
            chunk,
            spare,
            filled: 0,
            offset: 0,
            payload: 0,
            table: Vec::new(),
            leases: Vec::new(),
        });
        Ok(self.streams.len() - 1)
    }
    /// Bytes appended to a stream so far.
    pub(crate) fn position(&self, stream: usize) -> u64 {
        self.streams[stream].payload
    }
    /// Appends bytes to a stream.
    pub(crate) fn append(&mut self, stream: usize, bytes: &[u8]) -> Result<(), FormatError> {
        self.streams[stream].payload += bytes.len() as u64;
        self.fill(stream, bytes, true)
    }
    /// Fills chunks, and writes those that are full; of a checksum table, which has no checksums, all.
    fn fill(
        &mut self,
        stream: usize,
        mut bytes: &[u8],
        is_payload: bool,
    ) -> Result<(), FormatError> {
        loop {
            let s = &mut self.streams[stream];
            let lost = || FormatError::misuse("a chunk was lost after a failed write");
            let chunk = s.chunk.as_mut().ok_or_else(lost)?;
            let now = bytes.len().min(chunk.len() - s.filled);
            chunk[s.filled..s.filled + now].copy_from_slice(&bytes[..now]);
            s.filled += now;
            bytes = &bytes[now..];
            if s.filled == chunk.len() || !is_payload {
                self.flush(stream, is_payload)?;
            }
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }
    /// Hands the chunk to the disk, up to the next multiple of 4096, and takes an empty one.
    fn flush(&mut self, stream: usize, summed: bool) -> Result<(), FormatError> {
        let s = &mut self.streams[stream];
        let Some(mut buffer) = s.chunk.take() else {
            return Ok(());
        };
        let bytes = s.filled.next_multiple_of(GRAIN as usize);
        if bytes > 0 {
            buffer[s.filled..bytes].fill(0);
            if let (Some(id), true) = (s.id, summed) {
                for page in buffer[..bytes].chunks(DISK_PAGE_BYTES as usize) {
                    if s.table.len() == s.table.capacity() {
                        let step = TABLE_STEP as u64 * 4;
                        let lease = self.budget.lease("checksums of the stored graph", step)?;
                        s.leases.push(lease);
                        s.table.reserve_exact(TABLE_STEP);
                    }
                    let sum = id.checksum(self.graph_id, s.table.len() as u64, page);
                    s.table.push(sum);
                }
            }
            let write = Operation::Write {
                file: s.file.clone(),
                offset: s.offset,
                buffer,
                range: 0..bytes,
            };
            self.queue.submit(write, stream as u64);
            s.offset += bytes as u64;
            s.filled = 0;
            while let Some(done) = self.queue.poll() {
                self.take_back(done)?;
            }
            while self.streams[stream].spare.is_empty() {
                let done = self.queue.wait();
                self.take_back(done.ok_or_else(|| FormatError::misuse("a write got lost"))?)?;
            }
            let spare = self.streams[stream].spare.pop();
            buffer = spare.ok_or_else(|| FormatError::misuse("a write lost its buffer"))?;
        }
        self.streams[stream].chunk = Some(buffer);
        Ok(())
    }
    fn take_back(&mut self, done: Completion) -> Result<(), FormatError> {
        done.result?;
        if let Some(stream) = self.streams.get_mut(done.token as usize) {
            stream.spare.extend(done.buffer);
        }
        Ok(())
    }
    /// Writes the last pages and the tables, syncs all files, and returns their roots in order.
    pub(crate) fn finish(mut self) -> Result<Vec<FileRoot>, FormatError> {
        let mut roots = Vec::with_capacity(self.streams.len());
        for stream in 0..self.streams.len() {
            self.flush(stream, true)?;
            let payload = self.streams[stream].payload;
            let mut checksum = 0;
            if let (Some(id), true) = (self.streams[stream].id, payload > 0) {
                let table = std::mem::take(&mut self.streams[stream].table);
                let mut hasher = id.table_hasher(self.graph_id);
                for part in table.chunks(TABLE_STEP) {
                    let sums = part.iter().flat_map(|sum| sum.to_le_bytes());
                    let mut bytes: Vec<u8> = sums.collect();
                    bytes.resize(bytes.len().next_multiple_of(GRAIN as usize), 0);
                    hasher.update(&bytes);
                    self.fill(stream, &bytes, false)?;
                }
                checksum = hasher.finalize();
            }
            self.streams[stream].leases.clear();
            roots.push(FileRoot { payload, checksum });
        }
        while let Some(done) = self.queue.wait() {
            self.take_back(done)?;
        }
        let is_synced = |stream: &&PageStream| stream.id.is_some() || self.syncs_all;
        for stream in self.streams.iter().filter(is_synced) {
            let file = stream.file.clone();
            self.queue.submit(Operation::Sync { file }, u64::MAX);
        }
        while let Some(done) = self.queue.wait() {
            done.result?;
        }
        Ok(roots)
    }
}

/// The temporary files of the step, removed when it is over.
#[derive(Debug)]
pub(crate) struct Temporary {
    pub(crate) disk: std::sync::Arc<dyn Disk>,
    pub(crate) path: PathBuf,
    /// It is somebody else's to remove.
    pub(crate) stays: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.stays {
            // The graph does not need the file any more; a failure to remove it is the caller's, who removes the staging.
            let _ = self.disk.remove_file(&self.path);
        }
    }
}
