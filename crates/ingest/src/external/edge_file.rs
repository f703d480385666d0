//! Edges kept in a temporary file in a compact binary form, so that text is parsed, and a generator run, only once.
//!
//! A chunk holds edges that follow each other in the input; which ones, memory knows. Integer ids take 4 bytes each in
//! a chunk where all fit, else 8; text ids their length and their bytes. The data of an edge follows its ids.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_graph::EdgeKind;
use graphmill_raw::lock;
use graphmill_storage::{
    Buffer, CancelToken, Disk, FileHandle, Lease, MemoryBudget, Open, RecordReader, RecordWriter,
    corrupt,
};

use super::bucket_file::{
    BucketChunkWriter, ChunkReader, HEADER_BYTES, decode_chunk_bytes, lease_table, seal_chunk,
};
use crate::edge_data::{EdgeData, EdgeDataBatch};
use crate::error::IngestError;

/// Bytes of a chunk at most.
pub(crate) const EDGE_CHUNK_BYTES_MAX: usize = 256 << 10;
/// Chunks that are read as one task.
const UNIT_CHUNKS: usize = 16;
/// Edges decoded at once.
const DECODE: usize = 1024;

/// The encoding of the ids of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdEncoding {
    Four,
    Eight,
    Text,
}

#[derive(Clone, Copy, Debug)]
struct EdgeChunk {
    /// The piece of the input.
    piece: u64,
    /// The number of the first edge within the piece; in an [`OrderedEdgeFile`] within the input.
    first: u64,
    edges: u32,
    width: IdEncoding,
    offset: u64,
}

/// Edges in a temporary file.
#[derive(Debug)]
pub(crate) struct TempEdgeFile {
    file: FileHandle,
    chunk_bytes: usize,
    weights: EdgeKind,
    end: AtomicU64,
    table: Mutex<ChunkTable>,
}

/// The offsets and contents of the chunks.
#[derive(Debug, Default)]
struct ChunkTable {
    chunks: Vec<EdgeChunk>,
    leases: Vec<Lease>,
}

/// A receiver of the edges of an edge file, a run at a time, with the first edge's number in the input.
pub(crate) trait EdgeBatchSink {
    /// Edges between integer ids, with their data.
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        data: EdgeData<'_>,
        sequence: u64,
    ) -> Result<(), IngestError>;
    /// Edges between text ids; an error where edges are between indices.
    fn texts(
        &mut self,
        _edges: &[(&[u8], &[u8])],
        _data: EdgeData<'_>,
        _sequence: u64,
    ) -> Result<(), IngestError> {
        Err(IngestError::internal("text ids where indices are expected"))
    }
}

impl TempEdgeFile {
    /// A new file `path` in chunks of `chunk_bytes`.
    pub(crate) fn create(
        disk: &dyn Disk,
        path: PathBuf,
        chunk_bytes: usize,
        weights: EdgeKind,
    ) -> Result<Self, IngestError> {
        let file = disk.open(&path, Open::CreatePrivate)?;
        Ok(Self {
            file,
            chunk_bytes,
            weights,
            end: AtomicU64::new(0),
            table: Mutex::default(),
        })
    }

    /// Sorts the chunks in the order of the input; `first_of` returns the number of a piece's first edge.
    pub(crate) fn arrange(self, first_of: impl Fn(u64) -> u64) -> OrderedEdgeFile {
        let mut table = std::mem::take(&mut *lock(&self.table));
        for chunk in &mut table.chunks {
            chunk.first += first_of(chunk.piece);
        }
        table.chunks.sort_unstable_by_key(|chunk| chunk.first);
        OrderedEdgeFile {
            file: self.file,
            chunk_bytes: self.chunk_bytes,
            weights: self.weights,
            table,
        }
    }
}

/// A complete edge file, in the order of the input.
#[derive(Debug)]
pub(crate) struct OrderedEdgeFile {
    pub(crate) file: FileHandle,
    /// Bytes of a chunk.
    pub(crate) chunk_bytes: usize,
    weights: EdgeKind,
    table: ChunkTable,
}

impl OrderedEdgeFile {
    /// Number of units: runs of chunks that one task reads.
    pub(crate) fn units(&self) -> u64 {
        self.table.chunks.len().div_ceil(UNIT_CHUNKS) as u64
    }

    /// The numbers of the first edge of each unit.
    pub(crate) fn unit_starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.table
            .chunks
            .iter()
            .step_by(UNIT_CHUNKS)
            .map(|chunk| chunk.first)
    }

    /// Writes the contents and offsets of the chunks.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        out.put_u64(self.chunk_bytes as u64)?;
        out.put_u64(self.table.chunks.len() as u64)?;
        for chunk in &self.table.chunks {
            out.put_u64(chunk.first)?;
            out.put_u32(chunk.edges)?;
            out.put_u32(chunk.width as u32)?;
            out.put_u64(chunk.offset)?;
        }
        Ok(())
    }

    /// The file at `path` that [was encoded](OrderedEdgeFile::encode) there, of edges with such weights.
    pub(crate) fn decode(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        (path, weights): (&Path, EdgeKind),
        from: &mut RecordReader<'_>,
    ) -> io::Result<Self> {
        let chunk_bytes = decode_chunk_bytes(from)?;
        if chunk_bytes > EDGE_CHUNK_BYTES_MAX {
            return Err(corrupt());
        }
        let count = from.count(24)?;
        let lease = lease_table(budget, count * size_of::<EdgeChunk>() as u64)?;
        let one = |_| {
            Ok(EdgeChunk {
                // The number of the first edge is that in the input.
                piece: 0,
                first: from.number()?,
                edges: from.word()?,
                width: match from.word()? {
                    0 => IdEncoding::Four,
                    1 => IdEncoding::Eight,
                    2 => IdEncoding::Text,
                    _ => return Err(corrupt()),
                },
                offset: from.number()?,
            })
        };
        let chunks = (0..count).map(one).collect::<io::Result<_>>()?;
        Ok(Self {
            file: disk.open(path, Open::Read).map_err(io::Error::other)?,
            chunk_bytes,
            weights,
            table: ChunkTable {
                chunks,
                leases: vec![lease],
            },
        })
    }

    /// Reads one unit; its edges come in the order of the input.
    pub(crate) fn read(
        &self,
        unit: u64,
        chunk_reader: &mut ChunkReader,
        stop: &CancelToken,
        sink: &mut impl EdgeBatchSink,
    ) -> Result<(), IngestError> {
        let from = unit as usize * UNIT_CHUNKS;
        let chunks = &self.table.chunks[from..self.table.chunks.len().min(from + UNIT_CHUNKS)];
        let mut next = chunks.iter();
        let runs = chunks
            .iter()
            .map(|chunk| (chunk.offset, self.chunk_bytes as u64));
        chunk_reader.read(
            &self.file,
            self.chunk_bytes,
            runs,
            stop,
            |records| match next.next() {
                Some(chunk) => self.decode_chunk(chunk, records, sink),
                None => Ok(()),
            },
        )
    }

    fn decode_chunk(
        &self,
        chunk: &EdgeChunk,
        records: &[u8],
        sink: &mut impl EdgeBatchSink,
    ) -> Result<(), IngestError> {
        let damaged = || IngestError::damaged(self.file.path(), chunk.offset);
        let data_bytes = self.weights.bytes();
        let mut left = ByteCursor(records);
        let mut at = chunk.first;
        let end = at.checked_add(chunk.edges.into()).ok_or_else(damaged)?;
        let mut data = EdgeDataBatch::with_capacity(DECODE, self.weights);
        let width = match chunk.width {
            IdEncoding::Four => 4,
            IdEncoding::Eight => 8,
            IdEncoding::Text => {
                let mut edges: Vec<(&[u8], &[u8])> = Vec::with_capacity(DECODE);
                while at < end {
                    edges.clear();
                    data.clear();
                    for _ in 0..(end - at).min(DECODE as u64) {
                        let source = left.text().ok_or_else(damaged)?;
                        edges.push((source, left.text().ok_or_else(damaged)?));
                        let bytes = left.take(data_bytes).ok_or_else(damaged)?;
                        data.push(wide_word(bytes), self.weights);
                    }
                    sink.texts(&edges, data.data(), at)?;
                    at += edges.len() as u64;
                }
                return Ok(());
            }
        };
        let record_bytes = 2 * width + data_bytes;
        let mut edges = Vec::with_capacity(DECODE);
        while at < end {
            edges.clear();
            data.clear();
            let count = (end - at).min(DECODE as u64) as usize;
            let run = left.take(count * record_bytes).ok_or_else(damaged)?;
            match (width, data_bytes) {
                (4, 0) => decode_records::<4, 8>(run, &mut edges, &mut data),
                (4, 4) => decode_records::<4, 12>(run, &mut edges, &mut data),
                (4, 8) => decode_records::<4, 16>(run, &mut edges, &mut data),
                (8, 0) => decode_records::<8, 16>(run, &mut edges, &mut data),
                (8, 4) => decode_records::<8, 20>(run, &mut edges, &mut data),
                (8, 8) => decode_records::<8, 24>(run, &mut edges, &mut data),
                _ => {
                    for record in run.chunks_exact(record_bytes) {
                        let (ends, bytes) = record.split_at(2 * width);
                        edges.push((word(&ends[..width]), word(&ends[width..])));
                        data.push(wide_word(bytes), self.weights);
                    }
                }
            }
            sink.integers(&edges, data.data(), at)?;
            at += count as u64;
        }
        Ok(())
    }
}

/// Appends the edges of records of `BYTES` bytes: two ids of `ID` bytes, and data or none.
#[inline(always)]
fn decode_records<const ID: usize, const BYTES: usize>(
    records: &[u8],
    edges: &mut Vec<(u64, u64)>,
    data: &mut EdgeDataBatch,
) {
    let records = records.as_chunks::<BYTES>().0;
    let ends = |record: &[u8; BYTES]| (word(&record[..ID]), word(&record[ID..2 * ID]));
    edges.extend(records.iter().map(ends));
    if BYTES > 2 * ID {
        data.extend_low(records.iter().map(|record| word(&record[2 * ID..])));
    }
}

/// Writes edges to records of `BYTES` bytes, as [`decode_records`] reads them.
#[inline(always)]
fn encode_records<const ID: usize, const BYTES: usize>(
    edges: &[(u64, u64)],
    data: EdgeData<'_>,
    out: &mut [u8],
) {
    let records = out.as_chunks_mut::<BYTES>().0;
    for (record, edge) in records.iter_mut().zip(edges) {
        record[..ID].copy_from_slice(&edge.0.to_le_bytes()[..ID]);
        record[ID..2 * ID].copy_from_slice(&edge.1.to_le_bytes()[..ID]);
    }
    for (record, data) in records.iter_mut().zip(data.low) {
        record[2 * ID..].copy_from_slice(&data.to_le_bytes()[..BYTES - 2 * ID]);
    }
}

/// Bytes not yet read.
pub(crate) struct ByteCursor<'a>(pub(crate) &'a [u8]);

impl<'a> ByteCursor<'a> {
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns the next id, which is after its length; `None` if it is incomplete.
    #[inline]
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        self.0 = rest;
        Some(text)
    }
}

/// Writes an id after its length; returns the bytes behind it.
#[inline]
pub(crate) fn put_text<'o>(out: &'o mut [u8], id: &[u8]) -> &'o mut [u8] {
    let (length, rest) = out.split_at_mut(2);
    let (text, rest) = rest.split_at_mut(id.len());
    length.copy_from_slice(&(id.len() as u16).to_le_bytes());
    text.copy_from_slice(id);
    rest
}

/// A little-endian number of at most 8 bytes.
#[inline(always)]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// A little-endian number of at most 16 bytes.
fn wide_word(bytes: &[u8]) -> u128 {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(word)
}

/// One worker's way into a [`TempEdgeFile`].
#[derive(Debug)]
pub(crate) struct EdgeFileWriter<'a> {
    edge_file: &'a TempEdgeFile,
    chunk_writer: BucketChunkWriter,
    budget: MemoryBudget,
    chunks: Vec<EdgeChunk>,
    open: Option<(EdgeChunk, Buffer)>,
    /// Bytes in use of the open chunk, with its header.
    at: usize,
}

/// Chunks whose descriptions in memory are leased at once.
const LEASED_CHUNKS: usize = 1024;
/// Edges encoded at once.
const ENCODE: usize = 128;

impl<'a> EdgeFileWriter<'a> {
    /// Bytes of the table that a worker leases at a time.
    pub(crate) const TABLE_BYTES: u64 = (LEASED_CHUNKS * size_of::<EdgeChunk>()) as u64;

    /// `buffers` chunks of memory at most.
    pub(crate) fn new(
        edge_file: &'a TempEdgeFile,
        disk: &dyn Disk,
        budget: &MemoryBudget,
        buffers: usize,
    ) -> Result<Self, IngestError> {
        let chunk_writer =
            BucketChunkWriter::new(disk, budget, edge_file.chunk_bytes, buffers.max(2))?;
        Ok(Self {
            edge_file,
            chunk_writer,
            budget: budget.clone(),
            chunks: Vec::new(),
            open: None,
            at: 0,
        })
    }

    /// Edges between integer ids: those from number `first` on of a piece of the input.
    pub(crate) fn integers(
        &mut self,
        piece: u64,
        first: u64,
        edges: &[(u64, u64)],
        data: EdgeData<'_>,
    ) -> Result<(), IngestError> {
        let data_bytes = self.edge_file.weights.bytes();
        for (block, edges) in edges.chunks(ENCODE).enumerate() {
            let from = block * ENCODE;
            let all = edges.iter().fold(0, |all, edge| all | edge.0 | edge.1);
            let is_open_wide =
                matches!(&self.open, Some((open, _)) if open.width == IdEncoding::Eight);
            let narrow = u32::try_from(all).is_ok() && !is_open_wide;
            let (width, bytes) = match narrow {
                true => (IdEncoding::Four, 4),
                false => (IdEncoding::Eight, 8),
            };
            let record_bytes = 2 * bytes + data_bytes;
            let first = first + from as u64;
            let out = self.reserve(piece, first, width, edges.len() * record_bytes)?;
            let data = data.skip(from);
            match (bytes, data_bytes) {
                (4, 0) => encode_records::<4, 8>(edges, data, out),
                (4, 4) => encode_records::<4, 12>(edges, data, out),
                (4, 8) => encode_records::<4, 16>(edges, data, out),
                (8, 0) => encode_records::<8, 16>(edges, data, out),
                (8, 4) => encode_records::<8, 20>(edges, data, out),
                (8, 8) => encode_records::<8, 24>(edges, data, out),
                _ => {
                    for (i, (out, edge)) in
                        out.chunks_exact_mut(record_bytes).zip(edges).enumerate()
                    {
                        let (ends, out) = out.split_at_mut(2 * bytes);
                        ends[..bytes].copy_from_slice(&edge.0.to_le_bytes()[..bytes]);
                        ends[bytes..].copy_from_slice(&edge.1.to_le_bytes()[..bytes]);
                        out.copy_from_slice(&data.get(i).to_le_bytes()[..data_bytes]);
                    }
                }
            }
            self.count(edges.len());
        }
        Ok(())
    }

    /// Adds edges between text ids.
    pub(crate) fn texts(
        &mut self,
        piece: u64,
        first: u64,
        edges: &[(&[u8], &[u8])],
        data: EdgeData<'_>,
    ) -> Result<(), IngestError> {
        let data_bytes = self.edge_file.weights.bytes();
        for (i, (source, target)) in edges.iter().enumerate() {
            let bytes = 4 + source.len() + target.len() + data_bytes;
            let out = self.reserve(piece, first + i as u64, IdEncoding::Text, bytes)?;
            let out = put_text(put_text(out, source), target);
            out.copy_from_slice(&data.get(i).to_le_bytes()[..data_bytes]);
            self.count(1);
        }
        Ok(())
    }

    /// Room for the next edges, in a chunk that ends with the edge before them.
    fn reserve(
        &mut self,
        piece: u64,
        first: u64,
        width: IdEncoding,
        bytes: usize,
    ) -> Result<&mut [u8], IngestError> {
        let follows = matches!(&self.open, Some((chunk, _))
            if chunk.piece == piece
                && chunk.first + u64::from(chunk.edges) == first
                && chunk.width == width
                && self.at + bytes <= self.edge_file.chunk_bytes);
        if !follows {
            self.flush()?;
            let chunk_bytes = self.edge_file.chunk_bytes as u64;
            let offset = self.edge_file.end.fetch_add(chunk_bytes, Relaxed);
            self.open = Some((
                EdgeChunk {
                    piece,
                    first,
                    edges: 0,
                    width,
                    offset,
                },
                self.chunk_writer.take()?,
            ));
            self.at = HEADER_BYTES;
        }
        let at = self.at;
        self.at += bytes;
        self.open
            .as_mut()
            .and_then(|(_, buffer)| buffer.get_mut(at..at + bytes))
            .ok_or_else(|| {
                IngestError::internal("an edge is larger than a chunk of a temporary file")
            })
    }

    fn count(&mut self, edges: usize) {
        if let Some((chunk, _)) = &mut self.open {
            chunk.edges += edges as u32;
        }
    }

    fn flush(&mut self) -> Result<(), IngestError> {
        let Some((chunk, mut buffer)) = self.open.take() else {
            return Ok(());
        };
        seal_chunk(&mut buffer, self.at, chunk.offset);
        self.chunk_writer
            .write(&self.edge_file.file, chunk.offset, buffer, self.at);
        if self.chunks.len() == self.chunks.capacity() {
            self.hand_over()?;
        }
        self.chunks.push(chunk);
        Ok(())
    }

    /// Moves the descriptions of chunks to the edge file and leases memory for more.
    fn hand_over(&mut self) -> Result<(), IngestError> {
        let lease = self
            .budget
            .lease("the table of a temporary file", Self::TABLE_BYTES)?;
        let mut table = lock(&self.edge_file.table);
        table.chunks.append(&mut self.chunks);
        table.leases.push(lease);
        self.chunks.reserve_exact(LEASED_CHUNKS);
        Ok(())
    }

    /// Writes the remaining edges, waits for the disk, and returns the bytes written.
    pub(crate) fn finish(mut self) -> Result<u64, IngestError> {
        self.flush()?;
        lock(&self.edge_file.table).chunks.append(&mut self.chunks);
        self.chunk_writer.drain()
    }
}
