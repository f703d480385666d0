//! The directory of the chunks of one side: which chunks each file has, and how many arcs go into each batch.
//!
//! ```text
//! files | per file: root: payload: u64, checksum: u32 | chunks
//!         per chunk: source batch, bytes, arcs
//! arcs into each batch
//! ```
//!
//! All other numbers are varints.

use graphmill_storage::{GrowingLease, Lease, MemoryBudget};

use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::FileRoot;
use crate::spec::EdgeKind;
use crate::stream::pair::{PADDING, PairLayout};
use crate::stream::shape::ChunkShape;

/// Bytes of a chunk's entry at least.
const ENTRY_BYTES_MIN: usize = 3;
/// Bytes of a file's entry at least.
const FILE_BYTES_MIN: usize = ROOT_BYTES + 1;
const ROOT_BYTES: usize = 12;
const LEASE_STEP_BYTES: u64 = 64 << 10;

/// A chunk of a stored graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub(crate) batch: u32,
    pub(crate) file: u32,
    pub(crate) edges: u32,
    pub(crate) bytes: u32,
    /// Where it begins in the file: its arcs, then their data.
    pub(crate) offset: u64,
}

impl Chunk {
    /// The batch of the sources of its arcs.
    pub fn batch(&self) -> usize {
        self.batch as usize
    }
    /// The file that holds it.
    pub fn file(&self) -> usize {
        self.file as usize
    }
    /// The number of its arcs.
    pub fn edges(&self) -> usize {
        self.edges as usize
    }
    /// The bytes of its arcs.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

/// The chunks of all files of one side.
#[derive(Debug, Default)]
pub(crate) struct ChunkList {
    pub(crate) roots: Vec<FileRoot>,
    /// In order of file and offset, until they are sorted.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) arcs_into: Vec<u64>,
    pub(crate) arcs: u64,
    pub(crate) leases: Vec<Lease>,
}

/// A reader of numbers that ends where the bytes do.
struct NumberReader<'n> {
    bytes: &'n [u8],
    at: usize,
}

impl NumberReader<'_> {
    fn number(&mut self) -> Option<u64> {
        varint::get(self.bytes, &mut self.at)
    }
    /// A count of things that each take `bytes` bytes at least.
    fn count(&mut self, bytes: usize) -> Option<usize> {
        let left = self.bytes.len().saturating_sub(self.at) / bytes;
        let count = usize::try_from(self.number()?).ok()?;
        (count <= left).then_some(count)
    }
    fn root(&mut self) -> Option<FileRoot> {
        let rest = self.bytes.get(self.at..)?;
        let (payload, rest) = rest.split_first_chunk()?;
        let checksum = rest.first_chunk()?;
        self.at += ROOT_BYTES;
        Some(FileRoot {
            payload: u64::from_le_bytes(*payload),
            checksum: u32::from_le_bytes(*checksum),
        })
    }
    /// Reads the batch, the bytes and the arcs of a chunk; `None` if they make no sense.
    ///
    /// A chunk of `pair` has at most `capacity` arcs.
    fn chunk(&mut self, batches: usize, pair: PairLayout, capacity: usize) -> Option<[u32; 3]> {
        let mut next = || u32::try_from(self.number()?).ok();
        let [batch, bytes, edges] = [next()?, next()?, next()?];
        // The arcs, their number, and a run at least.
        let least = edges as usize * pair.bytes + PADDING + 4 + 3;
        let most = pair.chunk_bytes(batches, edges as usize);
        let sound = (batch as usize) < batches
            && (least..=most).contains(&(bytes as usize))
            && (1..=capacity).contains(&(edges as usize));
        sound.then_some([batch, bytes, edges])
    }
}

impl ChunkList {
    /// Bytes of a chunk in memory, with what sorting takes.
    const CHUNK_MEMORY: u64 = 2 * size_of::<Chunk>() as u64;
    /// Returns the bytes of the budget that a directory of `chunks` chunks takes at most.
    pub(crate) fn memory(chunks: u64, batches: u64) -> u64 {
        chunks * Self::CHUNK_MEMORY + 16 * batches + 2 * LEASE_STEP_BYTES
    }
    /// Returns the most chunks that an encoded directory of `bytes` bytes has.
    pub(crate) fn chunks_max(bytes: u64) -> u64 {
        bytes / ENTRY_BYTES_MIN as u64
    }
    /// Appends the directory.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.roots.len() as u64);
        let mut rest = &self.chunks[..];
        for (file, root) in self.roots.iter().enumerate() {
            out.extend(root.payload.to_le_bytes());
            out.extend(root.checksum.to_le_bytes());
            let count = rest.partition_point(|chunk| chunk.file() <= file);
            let (of_file, later) = rest.split_at(count);
            varint::put(out, count as u64);
            for number in of_file.iter().flat_map(|of| [of.batch, of.bytes, of.edges]) {
                varint::put(out, number.into());
            }
            rest = later;
        }
        (self.arcs_into.iter()).for_each(|&arcs| varint::put(out, arcs));
    }
    /// Parses the directory; `corrupt` makes the error of where and why it makes no sense.
    pub(crate) fn parse(
        bytes: &[u8],
        shape: &ChunkShape,
        budget: &MemoryBudget,
        corrupt: &dyn Fn(u64, &str) -> FormatError,
    ) -> Result<Self, FormatError> {
        let (pair, batches) = (PairLayout::new(&shape.batches)?, shape.batches.len());
        let capacity = pair.capacity(batches, shape.chunk_bytes);
        let mut from = NumberReader { bytes, at: 0 };
        let mut list = ChunkList::default();
        let mut lease = GrowingLease::new(budget, "the directory of chunks", LEASE_STEP_BYTES);
        let nonsense = |from: &NumberReader<'_>, what: &str| Err(corrupt(from.at as u64, what));
        let Some(files) = from.count(FILE_BYTES_MIN) else {
            return nonsense(&from, "its number of files is too large");
        };
        for file in 0..files {
            let (Some(root), Some(count)) = (from.root(), from.count(ENTRY_BYTES_MIN)) else {
                return nonsense(&from, "its number of chunks is too large");
            };
            lease.take(count as u64 * Self::CHUNK_MEMORY)?;
            list.chunks.reserve_exact(count);
            for _ in 0..count {
                let Some(chunk) = from.chunk(batches, pair, capacity) else {
                    return nonsense(&from, "a chunk makes no sense");
                };
                list.add(file as u32, chunk, shape.edge);
            }
            if list.end(file as u32, shape.edge) != root.payload {
                return nonsense(&from, "the chunks of a file are not all its bytes");
            }
            list.roots.push(root);
        }
        lease.take(16 * batches as u64)?;
        let arcs_into = (0..batches).map(|_| from.number());
        let Some(arcs_into) = arcs_into.collect::<Option<Vec<u64>>>() else {
            return nonsense(&from, "the arcs into batches are cut off");
        };
        let into = (arcs_into.iter()).fold(0u64, |sum, arcs| sum.saturating_add(*arcs));
        if from.at != bytes.len() || into != list.arcs {
            let what = "the arcs into batches are not the arcs of the chunks";
            return nonsense(&from, what);
        }
        (list.arcs_into, list.leases) = (arcs_into, lease.into_leases());
        Ok(list)
    }
    /// Where the last chunk of a file ends.
    fn end(&self, file: u32, edge: EdgeKind) -> u64 {
        let last = self.chunks.last().filter(|last| last.file == file);
        last.map_or(0, |last| {
            let data = u64::from(last.edges) * edge.bytes() as u64;
            last.offset + u64::from(last.bytes) + data
        })
    }
    /// Adds a chunk behind the last of its file.
    pub(crate) fn add(&mut self, file: u32, [batch, bytes, edges]: [u32; 3], edge: EdgeKind) {
        let offset = self.end(file, edge);
        self.arcs += u64::from(edges);
        self.chunks.push(Chunk {
            batch,
            file,
            edges,
            bytes,
            offset,
        });
    }
    /// Adds the chunks of the next file.
    pub(crate) fn join(&mut self, next: ChunkList) {
        self.roots
            .extend(next.roots.into_iter().skip(self.roots.len()));
        self.chunks.extend(next.chunks);
        self.arcs += next.arcs;
        self.arcs_into.resize(next.arcs_into.len(), 0);
        std::iter::zip(&mut self.arcs_into, next.arcs_into).for_each(|(sum, arcs)| *sum += arcs);
        self.leases.extend(next.leases);
    }
    /// Puts the chunks in order of source batch, file and offset.
    pub(crate) fn sort(&mut self) {
        self.chunks
            .sort_unstable_by_key(|chunk| (chunk.batch, chunk.file, chunk.offset));
    }
}
