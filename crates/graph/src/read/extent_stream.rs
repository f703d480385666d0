//! Streams byte ranges of a graph's files, read ahead over a queue, each page checked just before its first use.
//!
//! 1. [`ExtentReader::start`] lists extents. [`pump`](ExtentReader::pump) submits reads of whole pages, a chunk each,
//!    while there are buffers. [`accept`](ExtentReader::accept) takes their completions, in any order.
//! 2. [`front`](ExtentReader::front) checks the next pages of the first chunk and shows the bytes that are checked and
//!    not consumed. Fewer than 64 KiB at the end of a chunk are copied in front of the next chunk, so that no block is
//!    ever seen in two parts.
//!
//! Invariant: chunks are in the order of their sequence numbers, and only the first is consumed from.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use graphmill_storage::{Buffer, Completion, FileHandle, MemoryBudget, Operation, Queue};

use crate::error::FormatError;
use crate::file::extent::Extent;
use crate::file::page::{DISK_PAGE_BYTES, FileId, cut_off};
use crate::open::stored_graph::StoredGraph;

/// Room in front of a chunk for what the chunk before left over.
const HEADROOM: usize = DISK_PAGE_BYTES as usize;
/// Pages checked at once: few enough to be in cache when they are consumed.
const CHECK_PAGES: u64 = 2;

/// A read on its way or waiting to be consumed: pages of one extent.
#[derive(Debug)]
struct PendingChunk {
    extent: usize,
    buffer: Option<Buffer>,
    /// First page, and where its bytes are in the buffer.
    first_page: u64,
    bytes: usize,
    /// Pages that are checked.
    checked: u64,
    /// Unconsumed bytes of the extent in the buffer; grows into the headroom if a rest is put in front.
    range: Range<usize>,
    arrived: bool,
    last_of_extent: bool,
}

/// The bytes at the front of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front<'a> {
    /// Position of the extent in the list it was started with.
    pub extent: usize,
    /// Bytes not consumed yet, at least 64 KiB unless they are the last of their extent.
    pub bytes: &'a [u8],
    /// Whether they are the last of their extent.
    pub last: bool,
}

/// Streams extents of one graph.
#[derive(Debug)]
pub struct ExtentReader {
    graph: Arc<StoredGraph>,
    id: u32,
    chunk_bytes: usize,
    free: Vec<Buffer>,
    extents: Vec<Extent>,
    /// Where the next read begins: extent, and byte of the file.
    next_extent: usize,
    next_byte: u64,
    handle: Option<(FileId, FileHandle)>,
    chunks: VecDeque<PendingChunk>,
    /// Sequence number of the first chunk.
    first_sequence: u32,
    /// Reads whose chunks were dropped by a new start, and that have not come back.
    in_flight: usize,
    bytes_read: u64,
}

/// Readers made so far; tokens carry the number.
static READERS: AtomicU32 = AtomicU32::new(1);

fn whole_pages(chunk_bytes: usize) -> usize {
    chunk_bytes
        .max(1)
        .next_multiple_of(DISK_PAGE_BYTES as usize)
}

fn lost() -> FormatError {
    FormatError::misuse("a chunk was lost after a failed read")
}

impl ExtentReader {
    /// Returns a reader with `depth` buffers of `chunk_bytes` each, rounded up to whole pages.
    ///
    /// Each buffer has 64 KiB of headroom.
    ///
    /// # Errors
    /// The budget has no room for the buffers: [`memory`](Self::memory).
    pub fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        chunk_bytes: usize,
        depth: usize,
    ) -> Result<Self, FormatError> {
        let chunk_bytes = whole_pages(chunk_bytes);
        // With one buffer there is nowhere to put the rest of a chunk.
        let free =
            (0..depth.max(2)).map(|_| budget.buffer("reading edges", HEADROOM + chunk_bytes));
        Ok(ExtentReader {
            graph: Arc::clone(graph),
            id: READERS.fetch_add(1, Ordering::Relaxed),
            chunk_bytes,
            free: free.collect::<Result<_, _>>()?,
            extents: Vec::new(),
            next_extent: 0,
            next_byte: 0,
            handle: None,
            chunks: VecDeque::new(),
            first_sequence: 0,
            in_flight: 0,
            bytes_read: 0,
        })
    }
    /// Bytes of the budget that a reader takes.
    pub fn memory(chunk_bytes: usize, depth: usize) -> u64 {
        ((whole_pages(chunk_bytes) + HEADROOM) * depth.max(2)) as u64
    }
    /// Begins a new list of extents and drops the rest of the list before.
    ///
    /// Reads of the old list that are in flight return through [`accept`](Self::accept).
    ///
    /// # Errors
    /// An extent does not lie in its file.
    pub fn start(&mut self, extents: Vec<Extent>) -> Result<(), FormatError> {
        for extent in &extents {
            let payload = self.graph.paged(extent.file)?.root.payload;
            if extent.bytes.start > extent.bytes.end || extent.bytes.end > payload {
                let Extent { file, bytes } = extent;
                let what = format!("bytes {bytes:?} of {file}, which has {payload}");
                return Err(FormatError::misuse(what));
            }
        }
        self.first_sequence = self.first_sequence.wrapping_add(self.chunks.len() as u32);
        let dropped = self.chunks.drain(..);
        self.free.extend(dropped.filter_map(|chunk| chunk.buffer));
        self.extents = extents;
        self.next_extent = 0;
        self.next_byte = 0;
        Ok(())
    }
    /// Submits reads as long as there are free buffers and extents left.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn pump(&mut self, queue: &mut dyn Queue) -> Result<(), FormatError> {
        while let Some(extent) = self.extents.get(self.next_extent) {
            if extent.bytes.is_empty() {
                self.next_extent += 1;
                continue;
            }
            let Some(buffer) = self.free.pop() else { break };
            let begin = extent.bytes.start.max(self.next_byte);
            let first_page = begin / DISK_PAGE_BYTES;
            let offset = first_page * DISK_PAGE_BYTES;
            let padded = self.graph.paged(extent.file)?.root.padded();
            let end = (offset + self.chunk_bytes as u64)
                .min(extent.bytes.end.next_multiple_of(DISK_PAGE_BYTES))
                .min(padded);
            let last_of_extent = end >= extent.bytes.end;
            let place = |byte: u64| HEADROOM + (byte - offset) as usize;
            let bytes = (end - offset) as usize;
            let file = match &self.handle {
                Some((id, handle)) if *id == extent.file => handle.clone(),
                _ => match self.graph.handle(extent.file) {
                    Ok(handle) => self.handle.insert((extent.file, handle)).1.clone(),
                    Err(error) => {
                        self.free.push(buffer);
                        return Err(error);
                    }
                },
            };
            let sequence = self.first_sequence.wrapping_add(self.chunks.len() as u32);
            let token = u64::from(self.id) << 32 | u64::from(sequence);
            self.chunks.push_back(PendingChunk {
                extent: self.next_extent,
                buffer: None,
                first_page,
                bytes,
                checked: 0,
                range: place(begin)..place(end.min(extent.bytes.end)),
                arrived: false,
                last_of_extent,
            });
            if last_of_extent {
                self.next_extent += 1;
                self.next_byte = 0;
            } else {
                self.next_byte = end;
            }
            self.in_flight += 1;
            let read = Operation::Read {
                file,
                offset,
                buffer,
                range: HEADROOM..HEADROOM + bytes,
            };
            queue.submit(read, token);
        }
        Ok(())
    }
    /// Takes a completion, or gives it back when it is another reader's.
    ///
    /// # Errors
    /// The read failed or the file ends before it should.
    pub fn accept(&mut self, done: Completion) -> Result<Option<Completion>, FormatError> {
        if !self.owns(done.token) {
            return Ok(Some(done));
        }
        self.in_flight -= 1;
        let position = (done.token as u32).wrapping_sub(self.first_sequence) as usize;
        let Some(chunk) = self.chunks.get_mut(position) else {
            // A read of a dropped list: its bytes and its error do not matter.
            self.free.extend(done.buffer);
            return Ok(None);
        };
        chunk.buffer = done.buffer;
        let read = done.result?;
        if read < chunk.bytes {
            let path = self.extents[chunk.extent].file.path(self.graph.path());
            let start = chunk.first_page * DISK_PAGE_BYTES;
            return Err(cut_off(&path, start, [chunk.bytes, read]));
        }
        chunk.arrived = true;
        self.bytes_read += read as u64;
        Ok(None)
    }
    /// Whether a completion with this token is for this reader.
    pub fn owns(&self, token: u64) -> bool {
        (token >> 32) as u32 == self.id
    }
    /// Reads submitted and not accepted.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
    /// Whether all extents are consumed.
    pub fn is_done(&self) -> bool {
        let mut left = self.extents[self.next_extent..].iter();
        self.chunks.is_empty() && left.all(|extent| extent.bytes.is_empty())
    }
    /// Bytes read from the disk since the last call.
    pub fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_read)
    }
    /// Returns the bytes at the front; `None` if they have not arrived, or there are none left.
    ///
    /// If the caller consumed nothing, the next call returns the same bytes or more. It skips empty extents.
    ///
    /// # Errors
    /// A page is not what was written; its file and number are named.
    pub fn front(&mut self) -> Result<Option<&[u8]>, FormatError> {
        Ok(self.view()?.map(|front| front.bytes))
    }
    /// Returns the bytes at the front; waits for them on a queue that only this reader uses.
    ///
    /// Returns `None` if there are none left.
    ///
    /// # Errors
    /// As [`front`](Self::front), or a read failed.
    pub fn wait(&mut self, queue: &mut dyn Queue) -> Result<Option<&[u8]>, FormatError> {
        loop {
            self.pump(queue)?;
            if self.front()?.is_some() {
                return self.front();
            }
            if self.is_done() {
                return Ok(None);
            }
            let done = queue.wait();
            let done = done.ok_or_else(|| FormatError::misuse("a read got lost"))?;
            if self.accept(done)?.is_some() {
                return Err(FormatError::misuse("a read of another reader"));
            }
        }
    }
    /// As [`front`](Self::front), with the extent's position.
    ///
    /// # Errors
    /// As [`front`](Self::front).
    pub fn view(&mut self) -> Result<Option<Front<'_>>, FormatError> {
        let is_ready = self.ready()?;
        let Some(chunk) = self.chunks.front().filter(|_| is_ready) else {
            return Ok(None);
        };
        let end = chunk.range.end.min(chunk.checked_end());
        let bytes = chunk.buffer.as_ref();
        let bytes = bytes.and_then(|buffer| buffer.get(chunk.range.start..end));
        Ok(Some(Front {
            extent: chunk.extent,
            bytes: bytes.ok_or_else(lost)?,
            last: chunk.last_of_extent && end == chunk.range.end,
        }))
    }
    /// Checks pages and joins chunks until enough is there to show.
    fn ready(&mut self) -> Result<bool, FormatError> {
        loop {
            let Some(chunk) = self.chunks.front_mut().filter(|chunk| chunk.arrived) else {
                return Ok(false);
            };
            let end = chunk.range.end.min(chunk.checked_end());
            let shown = end.saturating_sub(chunk.range.start);
            if shown >= HEADROOM {
                return Ok(true);
            }
            if end < chunk.range.end {
                chunk.check(&self.graph, &self.extents[chunk.extent])?;
                continue;
            }
            if chunk.last_of_extent {
                if shown > 0 {
                    return Ok(true);
                }
                self.drop_front();
                continue;
            }
            // The rest of this chunk goes in front of the next.
            if !self.chunks.get(1).is_some_and(|next| next.arrived) {
                return Ok(false);
            }
            let rest = self.drop_front();
            let (Some((buffer, range)), Some(next)) = (rest, self.chunks.front_mut()) else {
                return Err(lost());
            };
            let at = next.range.start - shown;
            if let (Some(into), Some(from)) = (next.buffer.as_mut(), buffer.get(range)) {
                into[at..at + shown].copy_from_slice(from);
                next.range.start = at;
            }
            self.free.push(buffer);
        }
    }
    /// Removes the first chunk; returns its buffer and its unconsumed range, if it has one.
    ///
    /// Without such a range the buffer becomes free.
    fn drop_front(&mut self) -> Option<(Buffer, Range<usize>)> {
        let chunk = self.chunks.pop_front()?;
        self.first_sequence = self.first_sequence.wrapping_add(1);
        let buffer = chunk.buffer?;
        if chunk.last_of_extent {
            self.free.push(buffer);
            return None;
        }
        Some((buffer, chunk.range))
    }
    /// Moves the front `bytes` on, at most what it shows.
    pub fn consume(&mut self, bytes: usize) {
        if let Some(chunk) = self.chunks.front_mut() {
            let end = chunk.range.end.min(chunk.checked_end());
            chunk.range.start = (chunk.range.start + bytes).min(end.max(chunk.range.start));
        }
    }
}

impl PendingChunk {
    /// Where in the buffer the checked pages end.
    fn checked_end(&self) -> usize {
        HEADROOM + ((self.checked * DISK_PAGE_BYTES) as usize).min(self.bytes)
    }
    /// Checks the next pages.
    fn check(&mut self, graph: &StoredGraph, extent: &Extent) -> Result<(), FormatError> {
        let paged = graph.paged(extent.file)?;
        let buffer = self.buffer.as_ref().ok_or_else(lost)?;
        let from = self.checked_end();
        let to = (from + (CHECK_PAGES * DISK_PAGE_BYTES) as usize).min(HEADROOM + self.bytes);
        for bytes in buffer[from..to].chunks(DISK_PAGE_BYTES as usize) {
            graph.check(paged, self.first_page + self.checked, bytes)?;
            self.checked += 1;
        }
        Ok(())
    }
}
