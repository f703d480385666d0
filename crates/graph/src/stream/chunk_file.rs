//! One file of chunks, and the file of their data, while chunks are appended and when it is complete.

use std::sync::Mutex;

use graphmill_raw::lock;
use graphmill_storage::{Lease, MemoryBudget};

use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::{FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::stream::chunk::ChunkView;
use crate::stream::directory::{ChunkBounds, ChunkEntry, ChunkList, NumberReader, put_file};
use crate::stream::shape::{ChunkPlace, ChunkShape, SealedChunk};
use crate::weight_range::WeightRange;

/// Bytes of a part of a file on its way to the disk.
const PART_BYTES: usize = 1 << 20;
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
    pub(crate) fn memory(shape: &ChunkShape, part_bytes: usize) -> u64 {
        let files = 1 + u64::from(shape.edge.bytes() > 0);
        let entries = (ENTRIES_STEP * size_of::<ChunkEntry>()) as u64;
        files * PagedWriter::memory(part_bytes) + 8 * shape.batches.len() as u64 + entries
    }
    /// Returns the bytes of a part for a budget of `total` bytes.
    pub(crate) fn part_bytes(total: u64) -> usize {
        let share = (total / 128).next_power_of_two();
        share.clamp(64 << 10, PART_BYTES as u64) as usize
    }
    pub(crate) fn create(place: &ChunkPlace<'_>, shape: &ChunkShape) -> Result<Self, FormatError> {
        let (disk, budget) = (&**place.disk, place.budget);
        let first = FileId::new(shape.side, FileKind::Chunks, shape.file);
        if let Some(folder) = first.path(place.folder).parent() {
            disk.create_dir_all(folder)?;
        }
        let mut writer = PagedWriter::new(disk, budget, place.graph_id)?;
        let part_bytes = Self::part_bytes(budget.total());
        writer.add(disk, place.folder, first, part_bytes)?;
        if shape.edge.bytes() > 0 {
            let data = FileId::new(shape.side, FileKind::ChunkData, shape.file);
            writer.add(disk, place.folder, data, part_bytes)?;
        }
        let batches = shape.batches.len();
        let lease = budget.lease("the arcs into batches", 8 * batches as u64)?;
        let done = ChunkFile {
            side: shape.side,
            number: shape.file,
            roots: [FileRoot::default(); 2],
            chunks: Vec::new(),
            arcs_into: vec![0; batches],
            weights: None,
            leases: vec![lease],
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
        if done.chunks.len() == done.chunks.capacity() {
            let bytes = (ENTRIES_STEP * size_of::<ChunkEntry>()) as u64;
            let lease = self.budget.lease("the entries of chunks", bytes)?;
            done.leases.push(lease);
            done.chunks.reserve_exact(ENTRIES_STEP);
        }
        done.chunks.push(ChunkEntry {
            batch: chunk.batch,
            bytes: arcs.len() as u32,
            edges: view.edges() as u32,
        });
        done.weights = WeightRange::join(done.weights, weights);
        for run in view.runs() {
            done.arcs_into[run.destination_batch] += run.count as u64;
        }
        writer.append(0, arcs)?;
        match data {
            [] => Ok(()),
            data => writer.append(1, data),
        }
    }
    /// Makes the files durable.
    pub(crate) fn finish(self) -> Result<ChunkFile, FormatError> {
        let state = self.state.into_inner();
        let Appended { writer, mut done } = state.unwrap_or_else(|poisoned| poisoned.into_inner());
        for (to, root) in done.roots.iter_mut().zip(writer.finish()?) {
            *to = root;
        }
        Ok(done)
    }
}

/// A complete file of chunks, with the file of their data.
#[derive(Debug)]
pub struct ChunkFile {
    pub(crate) side: FileSide,
    pub(crate) number: u32,
    pub(crate) roots: [FileRoot; 2],
    pub(crate) chunks: Vec<ChunkEntry>,
    pub(crate) arcs_into: Vec<u64>,
    pub(crate) weights: Option<WeightRange>,
    leases: Vec<Lease>,
}

impl ChunkFile {
    /// Bytes of the chunks, and of the data of their arcs.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.roots.iter().map(|root| root.payload).sum()
    }
    /// Removes the files of an earlier writer of the same name.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove(place: &ChunkPlace<'_>, shape: &ChunkShape) -> Result<(), FormatError> {
        for kind in [FileKind::Chunks, FileKind::ChunkData] {
            let path = FileId::new(shape.side, kind, shape.file).path(place.folder);
            if place.disk.exists(&path)? {
                place.disk.remove_file(&path)?;
            }
        }
        Ok(())
    }
    /// Which side of the graph it is.
    pub fn side(&self) -> FileSide {
        self.side
    }
    /// Bytes of its longest chunk, without the data of arcs.
    pub fn bytes_max(&self) -> usize {
        let bytes = self.chunks.iter().map(|chunk| chunk.bytes as usize);
        bytes.max().unwrap_or(0)
    }
    /// The number of arcs.
    pub fn arcs(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.edges)).sum()
    }
    /// The arcs into each batch.
    pub fn arcs_into(&self) -> &[u64] {
        &self.arcs_into
    }
    /// What another rank must know of it; [`decode`](Self::decode) reads it there.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, self.side as u64);
        varint::put(&mut out, self.number.into());
        let ends = (self.weights).map_or([f64::NAN; 2], |range| [range.least, range.greatest]);
        ends.iter().for_each(|end| out.extend(end.to_le_bytes()));
        put_file(&mut out, &self.roots, &self.chunks);
        self.arcs_into
            .iter()
            .for_each(|&arcs| varint::put(&mut out, arcs));
        out
    }
    /// Reads what another rank knows of its file of the same graph.
    ///
    /// # Errors
    /// The bytes make no sense, or the budget has no room.
    pub fn decode(
        bytes: &[u8],
        shape: &ChunkShape,
        budget: &MemoryBudget,
    ) -> Result<Self, FormatError> {
        let misuse = || FormatError::misuse("what another rank says of its chunks makes no sense");
        let bytes_max = ChunkList::memory(bytes.len() as u64, shape.batches.len() as u64);
        let lease = budget.lease("the entries of chunks", bytes_max)?;
        let mut from = NumberReader { bytes, at: 0 };
        let mut decode = || {
            let side = *FileSide::ALL.get(usize::try_from(from.number()?).ok()?)?;
            let number = u32::try_from(from.number()?).ok()?;
            let ends = bytes.get(from.at..)?.as_chunks().0.get(..2)?;
            let [least, greatest] = [ends[0], ends[1]].map(f64::from_le_bytes);
            from.at += 16;
            let roots = [from.root()?, from.root()?];
            let bounds = ChunkBounds::new(&shape.batches, shape.edge, shape.chunk_bytes).ok()?;
            let count = from.count(3)?;
            let chunks = (0..count).map(|_| bounds.entry(&mut from));
            let chunks = chunks.collect::<Option<Vec<_>>>()?;
            let arcs_into = (0..shape.batches.len()).map(|_| from.number());
            Some(ChunkFile {
                side,
                number,
                roots,
                chunks,
                arcs_into: arcs_into.collect::<Option<Vec<_>>>()?,
                weights: (least <= greatest).then_some(WeightRange { least, greatest }),
                leases: Vec::new(),
            })
        };
        let mut file = decode().ok_or_else(misuse)?;
        if from.at != bytes.len() {
            return Err(misuse());
        }
        file.leases.push(lease);
        Ok(file)
    }
}
