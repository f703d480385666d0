//! Bins arcs into chunks: an open chunk for each source batch, shared by workers, and the file of full ones.
//!
//! 1. A worker gathers arcs in a line for each source batch ([`ChunkBins`]), and copies full lines into the open chunk.
//! 2. The worker that fills a chunk replaces it by an empty one, encodes it, and appends it to the file, or sends it on.
//! 3. [`ChunkWriter::flush`] does so with the chunks that are not full.

use std::sync::Mutex;

use graphmill_raw::{AlignedBuffer, lock};
use graphmill_storage::{Buffer, MemoryBudget};

use crate::batches::Batches;
use crate::error::FormatError;
use crate::file::page::FileSide;
use crate::stream::chunk::ChunkView;
use crate::stream::chunk_file::{ChunkFile, ChunkFileWriter};
use crate::stream::encoder::local_source;
use crate::stream::pair::PairLayout;
use crate::stream::shape::{ChunkPlace, ChunkShape, STREAM_CHUNK_BYTES_MAX, SealedChunk};

/// The memory of an open chunk.
#[derive(Debug)]
pub(crate) struct FillingChunk {
    pub(crate) arcs: Buffer,
    pub(crate) data: Buffer,
    pub(crate) filled: usize,
}

/// Bins arcs into chunks of one file.
#[derive(Debug)]
pub struct ChunkWriter {
    pub(crate) shape: ChunkShape,
    pub(crate) layout: PairLayout,
    /// Arcs of a full chunk.
    pub(crate) capacity: usize,
    /// Per source batch; `None` before its first arc.
    pub(crate) open: Vec<Mutex<Option<FillingChunk>>>,
    pub(crate) budget: MemoryBudget,
    file: ChunkFileWriter,
    /// Per batch the out-degrees of its vertices, if they are counted.
    degrees: Option<Vec<Mutex<Buffer>>>,
}

impl ChunkWriter {
    /// Creates the file, for [`memory`](Self::memory) bytes of the budget.
    ///
    /// # Errors
    /// The batches are not of the same power of two, the disk fails, or the budget has no room.
    pub fn create(place: &ChunkPlace<'_>, shape: ChunkShape) -> Result<Self, FormatError> {
        let layout = PairLayout::new(&shape.batches)?;
        if !(4096..=STREAM_CHUNK_BYTES_MAX).contains(&shape.chunk_bytes) {
            let what = format!("chunks of {} bytes", shape.chunk_bytes);
            return Err(FormatError::misuse(what));
        }
        let batches = shape.batches.len();
        Ok(ChunkWriter {
            layout,
            capacity: layout.capacity(batches, shape.chunk_bytes),
            open: (0..batches).map(|_| Mutex::new(None)).collect(),
            budget: place.budget.clone(),
            file: ChunkFileWriter::create(place, &shape)?,
            degrees: None,
            shape,
        })
    }
    /// Counts out-degrees while chunks are filled: 4 bytes a vertex more.
    ///
    /// # Errors
    /// The budget has no room.
    pub fn counting(mut self) -> Result<Self, FormatError> {
        let batches = &self.shape.batches;
        let counts = (0..batches.len()).map(|batch| {
            let bytes = 4 * batches.span(batch) as usize;
            let mut counts = self.budget.buffer("out-degrees", bytes)?;
            // A page that is read first is faulted in twice.
            counts.fill(0);
            Ok(Mutex::new(counts))
        });
        self.degrees = Some(counts.collect::<Result<_, FormatError>>()?);
        Ok(self)
    }
    /// Returns the bytes of the budget that out-degrees take.
    pub fn degrees_memory(batches: &Batches) -> u64 {
        let counts = |batch| AlignedBuffer::footprint(4 * batches.span(batch) as usize);
        (0..batches.len()).map(counts).sum()
    }
    /// The side of the graph that its arcs are of.
    pub fn side(&self) -> FileSide {
        self.shape.side
    }
    /// Bytes of a sealed chunk at most, with the data of its arcs.
    pub fn sealed_bytes_max(&self) -> usize {
        self.shape.chunk_bytes + self.capacity * self.shape.edge.bytes()
    }
    /// Appends a chunk that another writer of the same shape sealed.
    ///
    /// # Errors
    /// The chunk makes no sense, or the disk fails.
    pub fn store(&self, chunk: SealedChunk<'_>) -> Result<(), FormatError> {
        let (arcs, data) = chunk.parts();
        let view = ChunkView::parse(arcs, &self.shape.batches, chunk.batch as usize)?;
        let is_whole = arcs.len() <= self.shape.chunk_bytes
            && data.len() == view.edges() * self.shape.edge.bytes();
        if view.edges() == 0 || !is_whole {
            return Err(FormatError::misuse(
                "a chunk of another rank has another length",
            ));
        }
        self.file.append(&self.shape, chunk, &view)
    }
    /// Appends a chunk of this writer.
    pub(crate) fn store_own(&self, chunk: SealedChunk<'_>) -> Result<(), FormatError> {
        let view = ChunkView::counted(chunk.parts().0, &self.shape.batches)?;
        self.file.append(&self.shape, chunk, &view)
    }
    /// Memory for an open chunk.
    pub(crate) fn empty(&self) -> Result<FillingChunk, FormatError> {
        let buffer = |bytes: usize| self.budget.buffer("an open chunk", bytes);
        Ok(FillingChunk {
            arcs: buffer(8 * self.capacity)?,
            data: buffer(self.shape.edge.bytes() * self.capacity)?,
            filled: 0,
        })
    }
    /// Adds the arcs of a batch to the degrees of their sources.
    pub(crate) fn count(&self, batch: usize, arcs: &[u64]) {
        let Some(degrees) = &self.degrees else { return };
        let mut degrees = lock(&degrees[batch]);
        let degrees = degrees.typed_mut::<u32>();
        for &arc in arcs {
            if let Some(degree) = degrees.get_mut(local_source(arc)) {
                *degree = degree.saturating_add(1);
            }
        }
    }
    /// Frees all memory but that of the degrees, and makes the files durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(self) -> Result<(ChunkFile, CountedDegrees), FormatError> {
        let counted = CountedDegrees(self.degrees);
        Ok((self.file.finish()?, counted))
    }
}

/// Out-degrees that were counted while chunks were filled.
#[derive(Debug)]
pub struct CountedDegrees(Option<Vec<Mutex<Buffer>>>);

impl CountedDegrees {
    /// True if there are degrees of all vertices, and each fits 32 bits.
    pub fn are_whole(&self) -> bool {
        let fits = |batch: &Mutex<Buffer>| !lock(batch).typed::<u32>().contains(&u32::MAX);
        self.0
            .as_ref()
            .is_some_and(|batches| batches.iter().all(fits))
    }
    /// Adds the degrees of a batch to `out`.
    pub fn add(&self, batch: usize, out: &mut [u64]) {
        if let Some(degrees) = self.0.as_ref().and_then(|batches| batches.get(batch)) {
            let degrees = lock(degrees);
            let pairs = out.iter_mut().zip(degrees.typed::<u32>());
            pairs.for_each(|(to, &degree)| *to += u64::from(degree));
        }
    }
}
