//! One file of chunks, while chunks are appended and when it is complete.

use std::ops::RangeInclusive;
use std::sync::Mutex;

use graphmill_raw::lock;
use graphmill_storage::MemoryBudget;

use crate::error::FormatError;
use crate::file::page::{FileId, FileKind, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::stream::chunk::ChunkView;
use crate::stream::directory::{Chunk, ChunkList};
use crate::stream::shape::{ChunkPlace, ChunkShape, SealedChunk};
use crate::weight_range::WeightRange;

/// Bytes of a part of a file on its way to the disk: as many as a chunk, but in this range.
const PART_BYTES: RangeInclusive<usize> = 64 << 10..=1 << 20;
/// Entries of chunks that are leased together.
const ENTRIES_STEP: usize = 4096;

/// Appends chunks to a file.
#[derive(Debug)]
pub(crate) struct ChunkFileWriter {
    state: Mutex<Appended>,
    budget: MemoryBudget,
}

struct Appended {
    writer: PagedWriter,
    done: ChunkFile,
}

impl std::fmt::Debug for Appended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.done.fmt(f)
    }
}

impl ChunkFileWriter {
    /// Bytes of the budget that it takes, without the entries of chunks.
    pub(crate) fn memory(shape: &ChunkShape) -> u64 {
        let entries = (ENTRIES_STEP * size_of::<Chunk>()) as u64;
        PagedWriter::memory(Self::part_bytes(shape)) + 8 * shape.batches.len() as u64 + entries
    }
    /// Returns the bytes that `chunks` entries take, and the checksums of as many full chunks.
    pub(crate) fn tables(shape: &ChunkShape, chunks: u64, arcs: u64) -> u64 {
        let entries = chunks.next_multiple_of(ENTRIES_STEP as u64) * size_of::<Chunk>() as u64;
        let data = arcs * shape.edge.bytes() as u64;
        entries + PagedWriter::checksums(chunks * shape.chunk_bytes as u64 + data)
    }
    fn part_bytes(shape: &ChunkShape) -> usize {
        (shape.chunk_bytes).clamp(*PART_BYTES.start(), *PART_BYTES.end())
    }
    pub(crate) fn create(place: &ChunkPlace<'_>, shape: &ChunkShape) -> Result<Self, FormatError> {
        let (disk, budget) = (&**place.disk, place.budget);
        let first = FileId::new(shape.side, FileKind::Chunks, shape.file);
        if let Some(folder) = first.path(place.folder).parent() {
            disk.create_dir_all(folder)?;
        }
        let mut writer = PagedWriter::new(disk, budget, place.graph_id)?;
        writer.add(disk, place.folder, first, Self::part_bytes(shape))?;
        let batches = shape.batches.len();
        let lease = budget.lease("the arcs into batches", 8 * batches as u64)?;
        let list = ChunkList {
            roots: vec![Default::default(); shape.file as usize + 1],
            arcs_into: vec![0; batches],
            leases: vec![lease],
            ..ChunkList::default()
        };
        let done = ChunkFile {
            side: shape.side,
            list,
            weights: None,
        };
        Ok(ChunkFileWriter {
            state: Mutex::new(Appended { writer, done }),
            budget: budget.clone(),
        })
    }
    /// Appends a chunk; `view` is what its bytes say.
    pub(crate) fn append(
        &self,
        shape: &ChunkShape,
        chunk: SealedChunk<'_>,
        view: &ChunkView<'_>,
    ) -> Result<(), FormatError> {
        let (arcs, data) = chunk.parts();
        let weights = WeightRange::of(data, shape.edge);
        let mut state = lock(&self.state);
        let Appended { writer, done } = &mut *state;
        let list = &mut done.list;
        if list.chunks.len() == list.chunks.capacity() {
            let bytes = (ENTRIES_STEP * size_of::<Chunk>()) as u64;
            let lease = self.budget.lease("the entries of chunks", bytes)?;
            list.leases.push(lease);
            list.chunks.reserve_exact(ENTRIES_STEP);
        }
        let numbers = [chunk.batch, arcs.len() as u32, view.edges() as u32];
        list.add(shape.file, numbers, shape.edge);
        done.weights = WeightRange::join(done.weights, weights);
        for run in view.runs() {
            list.arcs_into[run.destination_batch] += run.count as u64;
        }
        writer.append(0, chunk.bytes)
    }
    /// Makes the files durable.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) fn finish(self) -> Result<ChunkFile, FormatError> {
        let state = self.state.into_inner();
        let Appended { writer, mut done } = state.unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(root) = done.list.roots.last_mut() {
            *root = writer.finish()?[0];
        }
        Ok(done)
    }
}

/// A complete file of chunks.
#[derive(Debug)]
pub struct ChunkFile {
    pub(crate) side: FileSide,
    /// Its chunks; files of lower numbers have none.
    pub(crate) list: ChunkList,
    pub(crate) weights: Option<WeightRange>,
}

/// Bytes of the range of weights of an encoded file.
const HEAD_BYTES: usize = 2 * size_of::<f64>();

impl ChunkFile {
    /// Bytes of the chunks and their data.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.list.roots.iter().map(|root| root.payload).sum()
    }
    /// Removes a file that a killed import left, if there is one.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove(place: &ChunkPlace<'_>, shape: &ChunkShape) -> Result<(), FormatError> {
        let path = FileId::new(shape.side, FileKind::Chunks, shape.file).path(place.folder);
        if place.disk.exists(&path)? {
            place.disk.remove_file(&path)?;
        }
        Ok(())
    }
    /// Bytes of its longest chunk.
    pub(crate) fn bytes_max(&self) -> usize {
        self.list.chunks.iter().map(Chunk::bytes).max().unwrap_or(0)
    }
    /// The number of its arcs.
    pub fn arcs(&self) -> u64 {
        self.list.arcs
    }
    /// Encodes what the directory has to say of the file, for another rank.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let ends = (self.weights).map_or([f64::NAN; 2], |range| [range.least, range.greatest]);
        ends.iter().for_each(|end| out.extend(end.to_le_bytes()));
        self.list.put(&mut out);
        out
    }
    /// Decodes what another rank encoded.
    ///
    /// # Errors
    /// The bytes make no sense for a graph of `shape`, or the budget has no room.
    pub fn decode(
        bytes: &[u8],
        shape: &ChunkShape,
        budget: &MemoryBudget,
    ) -> Result<Self, FormatError> {
        let misuse = || FormatError::misuse("what another rank says of its chunks makes no sense");
        let (head, list) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(misuse)?;
        let ends = head.as_chunks().0;
        let [least, greatest] = [ends[0], ends[1]].map(f64::from_le_bytes);
        Ok(ChunkFile {
            side: shape.side,
            list: ChunkList::parse(list, shape, budget, &|_, _| misuse())?,
            weights: (least <= greatest).then_some(WeightRange { least, greatest }),
        })
    }
}
