//! One worker's lines of arcs, one for each source batch, and the memory in which the worker seals full chunks.

use graphmill_raw::{AlignedBuffer, lock};
use graphmill_storage::{Buffer, Lease};

use crate::error::FormatError;
use crate::stream::chunk_file::ChunkFileWriter;
use crate::stream::directory::ChunkList;
use crate::stream::encoder::{ChunkPacker, open_arc};
use crate::stream::pair::PairLayout;
use crate::stream::shape::{ChunkRoute, ChunkShape, SealedChunk, StoreHere};
use crate::stream::writer::{ChunkWriter, FillingChunk};

/// Arcs of a line.
const LINE: usize = 64;

impl ChunkWriter {
    /// Returns the bytes of the budget that a writer with `lanes` workers takes.
    ///
    /// [`tables_memory`](Self::tables_memory) and out-degrees come on top.
    ///
    /// # Errors
    /// The batches are not of the same power of two.
    pub fn memory(shape: &ChunkShape, lanes: usize) -> Result<u64, FormatError> {
        let layout = PairLayout::new(&shape.batches)?;
        let (batches, data) = (shape.batches.len(), shape.edge.bytes());
        let capacity = layout.capacity(batches, shape.chunk_bytes);
        let open =
            AlignedBuffer::footprint(8 * capacity) + AlignedBuffer::footprint(data * capacity);
        let lane = ChunkBins::<StoreHere>::memory(shape, capacity) + open;
        let file = ChunkFileWriter::memory(shape);
        // The last chunks are sealed by one more.
        Ok(file + batches as u64 * open + (lanes as u64 + 1) * lane)
    }
    /// Returns the bytes that the directory of a file with `arcs` arcs takes at most, also once it is open.
    ///
    /// These are the entries of its chunks, twice, and its checksums.
    ///
    /// # Errors
    /// The batches are not of the same power of two.
    pub fn tables_memory(shape: &ChunkShape, arcs: u64) -> Result<u64, FormatError> {
        let batches = shape.batches.len();
        let capacity = PairLayout::new(&shape.batches)?.capacity(batches, shape.chunk_bytes);
        // Of each batch one chunk is not full.
        let chunks = arcs / capacity.max(1) as u64 + batches as u64;
        let open = ChunkList::memory(chunks, batches as u64);
        let starts = (size_of::<usize>() * (batches + 1)) as u64;
        Ok(ChunkFileWriter::tables(shape, chunks, arcs) + open + starts)
    }
    /// Returns the bins of one worker.
    ///
    /// # Errors
    /// The budget has no room.
    pub fn bins<R: ChunkRoute>(&self, route: R) -> Result<ChunkBins<'_, R>, FormatError> {
        ChunkBins::new(self, route)
    }
    /// Seals the chunks that are not full, once all bins are finished.
    ///
    /// # Errors
    /// The disk, the budget or the route fails.
    pub fn flush<R: ChunkRoute>(&self, route: &R) -> Result<(), R::Error> {
        let mut sealer = ChunkSealer::new(self)?;
        for (batch, open) in self.open.iter().enumerate() {
            if let Some(chunk) = lock(open).take() {
                sealer.seal(self, batch, &chunk, route)?;
            }
        }
        Ok(())
    }
}

/// One worker's bins.
#[derive(Debug)]
pub struct ChunkBins<'w, R> {
    writer: &'w ChunkWriter,
    route: R,
    vertices: u64,
    bits: u32,
    data_bytes: usize,
    lines: Vec<[u64; LINE]>,
    /// The data of the arcs of each line.
    data: Vec<u8>,
    fill: Vec<u32>,
    /// An empty chunk to replace a full one.
    spare: Option<FillingChunk>,
    sealer: ChunkSealer,
    _lease: Lease,
}

impl<'w, R: ChunkRoute> ChunkBins<'w, R> {
    fn line_bytes(shape: &ChunkShape) -> u64 {
        let line = LINE * (8 + shape.edge.bytes()) + 4;
        (shape.batches.len() * line) as u64
    }
    /// Bytes of the budget that one worker takes, without an empty chunk.
    pub(crate) fn memory(shape: &ChunkShape, capacity: usize) -> u64 {
        let out = shape.chunk_bytes + capacity * shape.edge.bytes();
        let sealer = AlignedBuffer::footprint(out) + ChunkPacker::memory(shape.batches.len());
        Self::line_bytes(shape) + sealer
    }
    pub(crate) fn new(writer: &'w ChunkWriter, route: R) -> Result<Self, FormatError> {
        let (shape, batches) = (&writer.shape, writer.shape.batches.len());
        let lease = writer
            .budget
            .lease("lines of arcs", Self::line_bytes(shape))?;
        let data_bytes = shape.edge.bytes();
        Ok(ChunkBins {
            route,
            vertices: shape.batches.vertices(),
            bits: writer.layout.bits,
            data_bytes,
            lines: vec![[0; LINE]; batches],
            data: vec![0; batches * LINE * data_bytes],
            fill: vec![0; batches],
            spare: Some(writer.empty()?),
            sealer: ChunkSealer::new(writer)?,
            writer,
            _lease: lease,
        })
    }
    /// Adds an arc between two vertex indices. The lowest byte of `data` is the first that is stored.
    ///
    /// # Errors
    /// An end is no vertex; or a chunk is full, and the disk, the budget or the route fails.
    #[inline(always)]
    pub fn push(&mut self, source: u64, destination: u64, data: u128) -> Result<(), R::Error> {
        if source.max(destination) >= self.vertices {
            let what = format!(
                "an arc from {source} to {destination} of {} vertices",
                self.vertices
            );
            return Err(FormatError::misuse(what).into());
        }
        let batch = (source >> self.bits) as usize;
        let fill = self.fill[batch] as usize % LINE;
        self.lines[batch][fill] = open_arc(source, destination, self.writer.layout);
        let at = batch * LINE + fill;
        match self.data_bytes {
            0 => (),
            4 => self.data.as_chunks_mut::<4>().0[at] = (data as u32).to_le_bytes(),
            8 => self.data.as_chunks_mut::<8>().0[at] = (data as u64).to_le_bytes(),
            bytes => {
                self.data[at * bytes..(at + 1) * bytes]
                    .copy_from_slice(&data.to_le_bytes()[..bytes]);
            }
        }
        self.fill[batch] = fill as u32 + 1;
        match fill + 1 == LINE {
            true => self.end_line(batch),
            false => Ok(()),
        }
    }
    /// Copies a line into the open chunk of its batch, and seals that if it is full.
    #[inline(never)]
    fn end_line(&mut self, batch: usize) -> Result<(), R::Error> {
        let count = std::mem::take(&mut self.fill[batch]) as usize;
        let (writer, bytes) = (self.writer, self.data_bytes);
        let mut done = 0;
        while done < count {
            let mut place = lock(&writer.open[batch]);
            let open = match &mut *place {
                Some(open) => open,
                none => none.insert(writer.empty()?),
            };
            let (from, to) = (done, open.filled);
            let now = (count - from).min(writer.capacity - to);
            open.arcs.typed_mut()[to..to + now]
                .copy_from_slice(&self.lines[batch][from..from + now]);
            if bytes > 0 {
                let line = (batch * LINE + from) * bytes;
                open.data[to * bytes..(to + now) * bytes]
                    .copy_from_slice(&self.data[line..line + now * bytes]);
            }
            open.filled += now;
            done += now;
            if open.filled == writer.capacity {
                let spare = match self.spare.take() {
                    Some(spare) => spare,
                    None => writer.empty()?,
                };
                let mut full = std::mem::replace(open, spare);
                drop(place);
                self.sealer.seal(writer, batch, &full, &self.route)?;
                full.filled = 0;
                self.spare = Some(full);
            }
        }
        Ok(())
    }
    /// Copies all lines into open chunks.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn finish(mut self) -> Result<(), R::Error> {
        (0..self.fill.len()).try_for_each(|batch| self.end_line(batch))
    }
}

/// The memory in which one worker encodes chunks.
#[derive(Debug)]
pub(crate) struct ChunkSealer {
    encoder: ChunkPacker,
    out: Buffer,
}

impl ChunkSealer {
    pub(crate) fn new(writer: &ChunkWriter) -> Result<Self, FormatError> {
        let (budget, batches) = (&writer.budget, writer.shape.batches.len());
        Ok(ChunkSealer {
            encoder: ChunkPacker::new(budget, batches, writer.layout)?,
            out: budget.buffer("a sealed chunk", writer.sealed_bytes_max())?,
        })
    }
    /// Encodes the arcs of a chunk, and sends or stores it.
    pub(crate) fn seal<R: ChunkRoute>(
        &mut self,
        writer: &ChunkWriter,
        batch: usize,
        chunk: &FillingChunk,
        route: &R,
    ) -> Result<(), R::Error> {
        if chunk.filled == 0 {
            return Ok(());
        }
        let arcs = &chunk.arcs.typed::<u64>()[..chunk.filled];
        writer.count(batch, arcs);
        let bytes = writer.shape.edge.bytes();
        let data = &chunk.data[..chunk.filled * bytes];
        let lengths = self.encoder.encode(arcs, data, bytes, &mut self.out);
        let [arcs, data] =
            lengths.ok_or_else(|| FormatError::misuse("a chunk is longer than it can be"))?;
        let sealed = SealedChunk {
            batch: batch as u32,
            arcs_bytes: arcs,
            bytes: &self.out[..arcs + data],
        };
        match route.send(sealed)? {
            true => Ok(()),
            false => Ok(writer.store_own(sealed)?),
        }
    }
}
