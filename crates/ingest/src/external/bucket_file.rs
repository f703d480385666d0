//! Temporary files: chunks of records, each chunk of one bucket, written and read with direct I/O.
//!
//! 1. Each worker fills one open chunk a bucket; a full one is sealed (length, checksum) and copied to a slab.
//! 2. A slab holds chunks in the order in which they were full, whatever their bucket, and is written in the background
//!    when it is full: few large writes however small the chunks, and few extents, which a file system removes fast.
//!    Memory keeps the offset of each chunk.
//! 3. Chunks are read back ahead of their use, verified, and handed out in order.
//!
//! A worker waits for the disk here only when all its buffers are in flight.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_fabric::protocol_error;
use graphmill_raw::lock;
use graphmill_storage::{
    Buffer, CancelToken, Disk, FileHandle, Lease, MemoryBudget, Open, Operation, Queue,
    RecordReader, RecordWriter, StorageError, corrupt,
};

use super::shuffle::BucketShuffle;
use crate::error::IngestError;

/// Length, checksum and offset of a chunk, in front of its records.
pub(crate) const HEADER_BYTES: usize = 16;
/// Operations of one worker in flight.
const QUEUE_DEPTH: usize = 32;
/// The grain of direct I/O.
pub(crate) const GRAIN: usize = 4096;

/// Returns one of `shares` shares of free memory, as a power of two from `least` to `most` bytes.
pub(crate) fn buffer_bytes(available: u64, shares: u64, least: usize, most: usize) -> usize {
    let share = available / shares.max(1);
    let power = share.checked_ilog2().map_or(0, |power| 1u64 << power);
    usize::try_from(power).unwrap_or(most).clamp(least, most)
}

/// Buffers that fill up and go to disk in the background.
#[derive(Debug)]
pub(crate) struct BucketChunkWriter {
    queue: Box<dyn Queue>,
    budget: MemoryBudget,
    free: Vec<Buffer>,
    buffer_bytes: usize,
    made: usize,
    made_max: usize,
    written: u64,
}

impl BucketChunkWriter {
    /// At most `buffers` buffers of `buffer_bytes`, made when first needed.
    pub(crate) fn new(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        buffer_bytes: usize,
        buffers: usize,
    ) -> Result<Self, IngestError> {
        let queue = disk.queue(QUEUE_DEPTH)?;
        Ok(Self {
            queue,
            budget: budget.clone(),
            free: Vec::new(),
            buffer_bytes,
            made: 0,
            made_max: buffers,
            written: 0,
        })
    }

    /// An empty buffer; waits for one that is being written when all are in use.
    pub(crate) fn take(&mut self) -> Result<Buffer, IngestError> {
        loop {
            while let Some(done) = self.queue.poll() {
                self.free.extend(done.buffer);
                done.result?;
            }
            if let Some(buffer) = self.free.pop() {
                return Ok(buffer);
            }
            if self.made < self.made_max {
                self.made += 1;
                return Ok(self
                    .budget
                    .buffer("buffers of temporary files", self.buffer_bytes)?);
            }
            if !self.reap()? {
                return Err(IngestError::internal(
                    "every buffer of a temporary file is in use and none is being written",
                ));
            }
        }
    }

    /// Writes the first `bytes` of a buffer, rounded up to the grain of direct I/O.
    pub(crate) fn write(&mut self, file: &FileHandle, offset: u64, buffer: Buffer, bytes: usize) {
        let bytes = bytes.next_multiple_of(GRAIN).min(self.buffer_bytes);
        self.written += bytes as u64;
        self.queue.submit(
            Operation::Write {
                file: file.clone(),
                offset,
                buffer,
                range: 0..bytes,
            },
            offset,
        );
    }

    /// Waits until all is written; returns how many bytes that were in all.
    pub(crate) fn drain(&mut self) -> Result<u64, IngestError> {
        while self.reap()? {}
        Ok(self.written)
    }

    /// Waits for one written buffer and returns it to the free ones; false if none is in flight.
    fn reap(&mut self) -> Result<bool, IngestError> {
        let Some(done) = self.queue.wait() else {
            return Ok(false);
        };
        self.free.extend(done.buffer);
        done.result?;
        Ok(true)
    }
}

/// Buffers that runs of a file are read into ahead of their use.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    queue: Box<dyn Queue>,
    free: Vec<Buffer>,
}

impl ChunkReader {
    /// `buffers` buffers of `buffer_bytes`, a multiple of the chunks to be read.
    pub(crate) fn new(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        buffer_bytes: usize,
        buffers: usize,
    ) -> Result<Self, IngestError> {
        let queue = disk.queue(QUEUE_DEPTH)?;
        let free = (0..buffers.max(1))
            .map(|_| budget.buffer("buffers of temporary files", buffer_bytes))
            .collect::<Result<_, _>>()?;
        Ok(Self { queue, free })
    }

    /// Reads runs of chunks and calls `each` with the records of every chunk, in order.
    ///
    /// A run is an offset and a length; chunks have `chunk_bytes` bytes.
    pub(crate) fn read(
        &mut self,
        file: &FileHandle,
        chunk_bytes: usize,
        runs: impl IntoIterator<Item = (u64, u64)>,
        stop: &CancelToken,
        mut each: impl FnMut(&[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let piece_bytes = self.free.first().map_or(chunk_bytes, |buffer| {
            buffer.len() / chunk_bytes * chunk_bytes
        }) as u64;
        let mut pieces = runs.into_iter().flat_map(|(offset, bytes)| {
            (0..bytes.div_ceil(piece_bytes)).map(move |piece| {
                let at = piece * piece_bytes;
                (offset + at, (bytes - at).min(piece_bytes) as usize)
            })
        });
        // Reads in flight, in order, and buffers that arrived before their turn.
        let mut expected = VecDeque::new();
        let mut early: Vec<(u64, Buffer, usize)> = Vec::new();
        loop {
            while let Some(buffer) = self.free.pop() {
                let Some((offset, bytes)) = pieces.next() else {
                    self.free.push(buffer);
                    break;
                };
                expected.push_back((offset, bytes));
                self.queue.submit(
                    Operation::Read {
                        file: file.clone(),
                        offset,
                        buffer,
                        range: 0..bytes,
                    },
                    offset,
                );
            }
            let Some((offset, bytes)) = expected.pop_front() else {
                return Ok(());
            };
            let (buffer, read) = loop {
                if let Some(i) = early.iter().position(|(arrived, ..)| *arrived == offset) {
                    let (_, buffer, read) = early.swap_remove(i);
                    break (buffer, read);
                }
                let done = self
                    .queue
                    .wait()
                    .ok_or_else(|| IngestError::internal("a read of a temporary file got lost"))?;
                let read = done.result?;
                early.extend(done.buffer.map(|buffer| (done.token, buffer, read)));
            };
            IngestError::check_stop(stop)?;
            if read.div_ceil(chunk_bytes) != bytes.div_ceil(chunk_bytes) {
                return Err(IngestError::damaged(file.path(), offset + read as u64));
            }
            for at in (0..read).step_by(chunk_bytes) {
                let chunk = &buffer[at..read.min(at + chunk_bytes)];
                each(open_chunk(chunk, file.path(), offset + at as u64)?)?;
            }
            self.free.push(buffer);
        }
    }
}

/// Writes length, checksum and offset in front of the records of a chunk that ends at `end`.
pub(crate) fn seal_chunk(chunk: &mut [u8], end: usize, offset: u64) {
    let (header, rest) = chunk.split_at_mut(HEADER_BYTES);
    header[0..4].copy_from_slice(&((end - HEADER_BYTES) as u32).to_le_bytes());
    header[4..8].copy_from_slice(&crc32fast::hash(&rest[..end - HEADER_BYTES]).to_le_bytes());
    header[8..16].copy_from_slice(&offset.to_le_bytes());
}

/// The records of a chunk, once they are known to be what was written there.
fn open_chunk<'a>(chunk: &'a [u8], path: &Path, offset: u64) -> Result<&'a [u8], IngestError> {
    let damaged = || IngestError::damaged(path, offset);
    let (header, rest) = chunk.split_at_checked(HEADER_BYTES).ok_or_else(damaged)?;
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let records = rest.get(..word(0) as usize).ok_or_else(damaged)?;
    let stored = u64::from(word(8)) | u64::from(word(12)) << 32;
    if stored != offset || crc32fast::hash(records) != word(4) {
        return Err(damaged());
    }
    Ok(records)
}

/// Reads the bytes of a chunk of a temporary file: whole grains.
pub(super) fn decode_chunk_bytes(from: &mut RecordReader<'_>) -> io::Result<usize> {
    let chunk_bytes = from.number()? as usize;
    let is_sound = chunk_bytes >= GRAIN && chunk_bytes.is_multiple_of(GRAIN);
    is_sound.then_some(chunk_bytes).ok_or_else(corrupt)
}

/// Leases the table of a temporary file that is read from a record.
pub(super) fn lease_table(budget: &MemoryBudget, bytes: u64) -> io::Result<Lease> {
    let lease = budget.lease("the table of a temporary file", bytes);
    lease.map_err(StorageError::from).map_err(io::Error::other)
}

/// Chunks whose offsets are leased at once.
const LEASED_CHUNKS: u64 = 1 << 12;

/// A temporary file of buckets.
#[derive(Debug)]
pub(crate) struct BucketFile {
    file: FileHandle,
    /// Bytes of a chunk.
    pub(crate) chunk_bytes: usize,
    end: AtomicU64,
    /// Offsets of the chunks of each bucket.
    buckets: Vec<Mutex<Vec<u64>>>,
    leases: Mutex<Vec<Lease>>,
}

impl BucketFile {
    /// Bytes of the table that a worker leases at a time, for `LEASED_CHUNKS` chunks.
    const TABLE_BYTES: u64 = LEASED_CHUNKS * size_of::<u64>() as u64;

    /// Returns the most bytes that the table of `chunks` chunks takes if `lanes` workers write them.
    pub(crate) fn table_bytes(chunks: u64, lanes: u64) -> u64 {
        (chunks / LEASED_CHUNKS + lanes) * Self::TABLE_BYTES
    }

    /// A new file `path` of `buckets` buckets, in chunks of `chunk_bytes` (a multiple of the grain).
    pub(crate) fn create(
        disk: &dyn Disk,
        path: PathBuf,
        buckets: usize,
        chunk_bytes: usize,
    ) -> Result<Self, IngestError> {
        let file = disk.open(&path, Open::CreatePrivate)?;
        let buckets = (0..buckets).map(|_| Mutex::default()).collect();
        Ok(Self {
            file,
            chunk_bytes,
            end: AtomicU64::new(0),
            buckets,
            leases: Mutex::default(),
        })
    }

    /// Number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Number of all chunks.
    fn all_chunks(&self) -> usize {
        (0..self.buckets()).map(|bucket| self.chunks(bucket)).sum()
    }

    /// Number of chunks of a bucket.
    pub(crate) fn chunks(&self, bucket: usize) -> usize {
        lock(&self.buckets[bucket]).len()
    }

    /// Reads all records of a bucket: `each` gets whole chunks.
    pub(crate) fn read(
        &self,
        bucket: usize,
        chunk_reader: &mut ChunkReader,
        stop: &CancelToken,
        each: impl FnMut(&[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        self.read_chunks(bucket, 0..self.chunks(bucket), chunk_reader, stop, each)
    }

    /// Reads some chunks of a bucket, in the order in which their only writer wrote them.
    pub(crate) fn read_chunks(
        &self,
        bucket: usize,
        chunks: Range<usize>,
        chunk_reader: &mut ChunkReader,
        stop: &CancelToken,
        each: impl FnMut(&[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let runs = chunks.map(|chunk| {
            let offset = lock(&self.buckets[bucket])[chunk];
            (offset, self.chunk_bytes as u64)
        });
        chunk_reader.read(&self.file, self.chunk_bytes, runs, stop, each)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes the offsets of the chunks, after all of them are written.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        out.put_u64(self.chunk_bytes as u64)?;
        out.put_u64(self.buckets.len() as u64)?;
        out.put_u64(self.all_chunks() as u64)?;
        let mut tables = self.buckets.iter().map(lock);
        tables.try_for_each(|chunks| out.put_u64s(chunks.iter().copied()))
    }

    /// The file at `path` that [was encoded](BucketFile::encode) there.
    pub(crate) fn decode(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        path: &Path,
        from: &mut RecordReader<'_>,
    ) -> io::Result<Self> {
        let chunk_bytes = decode_chunk_bytes(from)?;
        let buckets = from.count(size_of::<u64>() as u64)?;
        let chunks = from.count(size_of::<u64>() as u64)?;
        let lease = lease_table(budget, Self::table_bytes(chunks, 1))?;
        let file = disk.open(path, Open::Read).map_err(io::Error::other)?;
        let table = |_| Ok(Mutex::new(from.numbers()?));
        let buckets = (0..buckets).map(table).collect::<io::Result<_>>()?;
        let bucket_file = Self {
            end: AtomicU64::new(file.len().map_err(io::Error::other)?),
            file,
            chunk_bytes,
            buckets,
            leases: Mutex::new(vec![lease]),
        };
        let is_sound = bucket_file.all_chunks() as u64 == chunks;
        is_sound.then_some(bucket_file).ok_or_else(corrupt)
    }
}

/// Runs `work`, which fills buckets of a file, and receives the chunks of other ranks meanwhile.
///
/// Returns the result of `work` and the bytes that the received chunks took on disk. The shuffle's memory is leased meanwhile.
pub(crate) fn fill<T: Send>(
    bucket_file: &BucketFile,
    shuffle: Option<&BucketShuffle<'_>>,
    disk: &dyn Disk,
    budget: &MemoryBudget,
    slab_bytes: usize,
    work: impl FnOnce() -> Result<T, IngestError>,
) -> Result<(T, u64), IngestError> {
    let Some(shuffle) = shuffle else {
        return Ok((work()?, 0));
    };
    let mut taker = BucketWriter::new(bucket_file, disk, budget, slab_bytes)?;
    let take = |_, bucket: usize, records: &[u8]| taker.chunk(bucket, records);
    let done = shuffle.while_taking(take, work)?;
    Ok((done, taker.finish()?))
}

/// The chunk of one bucket that a worker is filling.
#[derive(Debug, Default)]
struct OpenChunk {
    buffer: Option<Buffer>,
    /// Bytes in use, with the header.
    at: usize,
}

/// A slab that a worker is filling.
#[derive(Debug)]
struct Slab {
    buffer: Buffer,
    offset: u64,
    at: usize,
}

/// Slabs of one worker: one that fills, the others on their way to the disk.
pub(crate) const SLABS: usize = 4;

/// One worker's way into a [`BucketFile`].
#[derive(Debug)]
pub(crate) struct BucketWriter<'a> {
    bucket_file: &'a BucketFile,
    budget: MemoryBudget,
    chunk_writer: BucketChunkWriter,
    slab_bytes: usize,
    slab: Option<Slab>,
    open: Vec<OpenChunk>,
    /// Chunks that may be written before more are leased.
    chunks_left: u64,
    /// The shuffle that sends chunks of other ranks' buckets.
    shuffle: Option<&'a BucketShuffle<'a>>,
}

impl<'a> BucketWriter<'a> {
    /// Creates a writer; it leases a chunk a bucket and [`SLABS`] slabs when it first needs them.
    ///
    /// A slab has `slab_bytes` bytes, at least a chunk.
    pub(crate) fn new(
        bucket_file: &'a BucketFile,
        disk: &dyn Disk,
        budget: &MemoryBudget,
        slab_bytes: usize,
    ) -> Result<Self, IngestError> {
        let slab_bytes = slab_bytes.max(bucket_file.chunk_bytes);
        let chunk_writer = BucketChunkWriter::new(disk, budget, slab_bytes, SLABS)?;
        let open = bucket_file.buckets.iter().map(|_| OpenChunk::default());
        Ok(Self {
            bucket_file,
            budget: budget.clone(),
            chunk_writer,
            slab_bytes,
            slab: None,
            open: open.collect(),
            chunks_left: 0,
            shuffle: None,
        })
    }

    /// Returns the writer with a shuffle, to which it passes the records of other ranks' buckets.
    pub(crate) fn sending(self, shuffle: Option<&'a BucketShuffle<'a>>) -> Self {
        Self { shuffle, ..self }
    }

    /// Returns space for the next `bytes` bytes of records of a bucket, in one chunk.
    ///
    /// `bytes` is at most a chunk less its header.
    #[inline]
    pub(crate) fn reserve(
        &mut self,
        bucket: usize,
        bytes: usize,
    ) -> Result<&mut [u8], IngestError> {
        let open = &self.open[bucket];
        if open.buffer.is_none() || open.at + bytes > self.bucket_file.chunk_bytes {
            self.turn(bucket)?;
        }
        let open = &mut self.open[bucket];
        let at = open.at;
        open.at += bytes;
        open.buffer
            .as_mut()
            .and_then(|buffer| buffer.get_mut(at..at + bytes))
            .ok_or_else(|| {
                IngestError::internal("a record is larger than a chunk of a temporary file")
            })
    }

    /// Empties the open chunk of a bucket.
    #[cold]
    fn turn(&mut self, bucket: usize) -> Result<(), IngestError> {
        self.flush(bucket)?;
        let open = &mut self.open[bucket];
        if open.buffer.is_none() {
            open.buffer = Some(
                self.budget
                    .buffer("buckets of temporary files", self.bucket_file.chunk_bytes)?,
            );
        }
        open.at = HEADER_BYTES;
        Ok(())
    }

    /// Copies the open chunk of a bucket to the slab, or sends it on.
    fn flush(&mut self, bucket: usize) -> Result<(), IngestError> {
        let open = &mut self.open[bucket];
        let end = std::mem::take(&mut open.at);
        if end <= HEADER_BYTES {
            return Ok(());
        }
        let Some(buffer) = open.buffer.take() else {
            return Ok(());
        };
        let records = &buffer[HEADER_BYTES..end];
        let sent = match self.shuffle {
            Some(shuffle) => shuffle.send(bucket, records)?,
            None => false,
        };
        if !sent {
            self.chunk(bucket, records)?;
        }
        self.open[bucket].buffer = Some(buffer);
        Ok(())
    }

    /// Copies records of a bucket to the slab, as a chunk of their own.
    pub(crate) fn chunk(&mut self, bucket: usize, records: &[u8]) -> Result<(), IngestError> {
        let end = HEADER_BYTES + records.len();
        let bytes = end.next_multiple_of(GRAIN);
        if bytes > self.bucket_file.chunk_bytes {
            return Err(protocol_error().into());
        }
        let is_full = |slab: &Slab| slab.at + bytes > self.slab_bytes;
        if self.slab.as_ref().is_some_and(is_full) {
            self.flush_slab();
        }
        let slab = match &mut self.slab {
            Some(slab) => slab,
            none => {
                let offset = self
                    .bucket_file
                    .end
                    .fetch_add(self.slab_bytes as u64, Relaxed);
                none.insert(Slab {
                    buffer: self.chunk_writer.take()?,
                    offset,
                    at: 0,
                })
            }
        };
        let offset = slab.offset + slab.at as u64;
        if let Some(room) = slab.buffer.get_mut(slab.at..slab.at + end) {
            room[HEADER_BYTES..].copy_from_slice(records);
            seal_chunk(room, end, offset);
        }
        slab.at += bytes;
        if self.chunks_left == 0 {
            lock(&self.bucket_file.leases).push(
                self.budget
                    .lease("the table of a temporary file", BucketFile::TABLE_BYTES)?,
            );
            self.chunks_left = LEASED_CHUNKS;
        }
        self.chunks_left -= 1;
        lock(&self.bucket_file.buckets[bucket]).push(offset);
        Ok(())
    }

    fn flush_slab(&mut self) {
        if let Some(Slab { buffer, offset, at }) = self.slab.take() {
            self.chunk_writer
                .write(&self.bucket_file.file, offset, buffer, at);
        }
    }

    /// Writes the remaining chunks, waits for the disk, and returns the bytes written.
    pub(crate) fn finish(mut self) -> Result<u64, IngestError> {
        for bucket in 0..self.open.len() {
            self.flush(bucket)?;
        }
        self.flush_slab();
        self.chunk_writer.drain()
    }
}
