//! The directory of the chunks of one side: which chunks each file has, and how many arcs go into each batch.
//!
//! ```text
//! files | per file: roots of arcs and of data: payload: u64, checksum: u32 each | chunks
//!         per chunk: source batch, bytes, arcs
//! arcs into each batch
//! ```
//!
//! All numbers but the roots are varints.

use graphmill_storage::{GrowingLease, Lease, MemoryBudget};

use crate::batches::Batches;
use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::FileRoot;
use crate::spec::EdgeKind;
use crate::stream::pair::{PADDING, PairLayout};

/// Bytes of a chunk's entry at least.
const ENTRY_BYTES_MIN: usize = 3;
/// Bytes of a file's entry at least.
const FILE_BYTES_MIN: usize = ROOTS_BYTES + 1;
const ROOTS_BYTES: usize = 2 * 12;
const LEASE_STEP_BYTES: u64 = 64 << 10;

/// A chunk of a stored graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub(crate) batch: u32,
    pub(crate) file: u32,
    pub(crate) edges: u32,
    pub(crate) bytes: u32,
    /// Where its arcs begin in the file, and its data in the file of data.
    pub(crate) offset: u64,
    pub(crate) data_offset: u64,
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

/// What the directory says of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    pub(crate) batch: u32,
    pub(crate) bytes: u32,
    pub(crate) edges: u32,
}

/// Appends the entry of a file.
pub(crate) fn put_file(out: &mut Vec<u8>, roots: &[FileRoot; 2], chunks: &[ChunkEntry]) {
    for root in roots {
        out.extend(root.payload.to_le_bytes());
        out.extend(root.checksum.to_le_bytes());
    }
    varint::put(out, chunks.len() as u64);
    for chunk in chunks {
        [chunk.batch, chunk.bytes, chunk.edges]
            .iter()
            .for_each(|&number| varint::put(out, number.into()));
    }
}

/// What chunks must agree with.
pub(crate) struct ChunkBounds<'b> {
    batches: &'b Batches,
    edge: EdgeKind,
    chunk_bytes: usize,
    pair: PairLayout,
}

impl<'b> ChunkBounds<'b> {
    pub(crate) fn new(
        batches: &'b Batches,
        edge: EdgeKind,
        chunk_bytes: usize,
    ) -> Result<Self, FormatError> {
        let pair = PairLayout::new(batches)?;
        Ok(ChunkBounds {
            batches,
            edge,
            chunk_bytes,
            pair,
        })
    }
    /// Reads the entry of a chunk; `None` if it makes no sense.
    pub(crate) fn entry(&self, from: &mut NumberReader<'_>) -> Option<ChunkEntry> {
        let mut next = || u32::try_from(from.number()?).ok();
        let entry = ChunkEntry {
            batch: next()?,
            bytes: next()?,
            edges: next()?,
        };
        // The arcs, their number, and a run at least.
        let least = entry.edges as usize * self.pair.bytes + PADDING + 4 + 3;
        let sound = (entry.batch as usize) < self.batches.len()
            && entry.bytes as usize <= self.chunk_bytes
            && entry.bytes as usize >= least
            && entry.edges > 0;
        sound.then_some(entry)
    }
}

/// The chunks of all files, in order of source batch, file and offset.
#[derive(Debug, Default)]
pub(crate) struct ChunkList {
    pub(crate) roots: Vec<[FileRoot; 2]>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) arcs_into: Vec<u64>,
    pub(crate) arcs: u64,
    pub(crate) leases: Vec<Lease>,
}

/// A reader of numbers that ends where the bytes do.
pub(crate) struct NumberReader<'n> {
    pub(crate) bytes: &'n [u8],
    pub(crate) at: usize,
}

impl NumberReader<'_> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        varint::get(self.bytes, &mut self.at)
    }
    /// A count of things that each take `bytes` bytes at least.
    pub(crate) fn count(&mut self, bytes: usize) -> Option<usize> {
        let left = self.bytes.len().saturating_sub(self.at) / bytes;
        let count = usize::try_from(self.number()?).ok()?;
        (count <= left).then_some(count)
    }
    pub(crate) fn root(&mut self) -> Option<FileRoot> {
        let rest = self.bytes.get(self.at..)?;
        let (payload, rest) = rest.split_first_chunk()?;
        let checksum = rest.first_chunk()?;
        self.at += 12;
        Some(FileRoot {
            payload: u64::from_le_bytes(*payload),
            checksum: u32::from_le_bytes(*checksum),
        })
    }
}

impl ChunkList {
    /// Bytes of a chunk in memory, with what sorting takes.
    const CHUNK_MEMORY: u64 = 2 * size_of::<Chunk>() as u64;
    /// Returns the bytes of the budget that the chunks of a directory of `bytes` bytes take at most.
    pub(crate) fn memory(bytes: u64, batches: u64) -> u64 {
        bytes / ENTRY_BYTES_MIN as u64 * Self::CHUNK_MEMORY + 16 * batches + 2 * LEASE_STEP_BYTES
    }
    /// Parses the directory; the second value is where and why it makes no sense.
    pub(crate) fn parse(
        bytes: &[u8],
        bounds: &ChunkBounds<'_>,
        budget: &MemoryBudget,
        corrupt: &dyn Fn(u64, &str) -> FormatError,
    ) -> Result<Self, FormatError> {
        let mut from = NumberReader { bytes, at: 0 };
        let mut list = ChunkList::default();
        let mut lease = GrowingLease::new(budget, "the directory of chunks", LEASE_STEP_BYTES);
        let nonsense = |from: &NumberReader<'_>, what: &str| Err(corrupt(from.at as u64, what));
        let Some(files) = from.count(FILE_BYTES_MIN) else {
            return nonsense(&from, "its number of files is too large");
        };
        for file in 0..files {
            let roots = from.root().and_then(|arcs| Some([arcs, from.root()?]));
            let (Some(roots), Some(count)) = (roots, from.count(ENTRY_BYTES_MIN)) else {
                return nonsense(&from, "its number of chunks is too large");
            };
            lease.take(count as u64 * Self::CHUNK_MEMORY)?;
            list.chunks.reserve_exact(count);
            let mut ends = [0u64; 2];
            for _ in 0..count {
                let Some(entry) = bounds.entry(&mut from) else {
                    return nonsense(&from, "a chunk makes no sense");
                };
                list.add(file as u32, entry, bounds.edge, &mut ends);
            }
            if ends != roots.map(|root| root.payload) {
                return nonsense(&from, "the chunks of a file are not all its bytes");
            }
            list.roots.push(roots);
        }
        lease.take(16 * bounds.batches.len() as u64)?;
        for _ in 0..bounds.batches.len() {
            let Some(arcs) = from.number() else {
                return nonsense(&from, "the arcs into batches are cut off");
            };
            list.arcs_into.push(arcs);
        }
        let into = list
            .arcs_into
            .iter()
            .fold(0u64, |sum, arcs| sum.saturating_add(*arcs));
        if from.at != bytes.len() || into != list.arcs {
            return nonsense(
                &from,
                "the arcs into batches are not the arcs of the chunks",
            );
        }
        list.sort();
        list.leases = lease.into_leases();
        Ok(list)
    }
    /// Adds a chunk, which begins in its files where `ends` says.
    pub(crate) fn add(
        &mut self,
        file: u32,
        entry: ChunkEntry,
        edge: EdgeKind,
        ends: &mut [u64; 2],
    ) {
        self.arcs += u64::from(entry.edges);
        self.chunks.push(Chunk {
            batch: entry.batch,
            file,
            edges: entry.edges,
            bytes: entry.bytes,
            offset: ends[0],
            data_offset: ends[1],
        });
        ends[0] += u64::from(entry.bytes);
        ends[1] += u64::from(entry.edges) * edge.bytes() as u64;
    }
    pub(crate) fn sort(&mut self) {
        self.chunks
            .sort_unstable_by_key(|chunk| (chunk.batch, chunk.file, chunk.offset));
    }
}
