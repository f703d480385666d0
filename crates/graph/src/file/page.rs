//! Pages: 64 KiB of a file and its checksum; which files a graph has and how each is opened.
//!
//! Invariant: bytes leave this crate only after [`PagedFile::check`] accepted the page they lie in.

use std::fmt;
use std::path::{Path, PathBuf};

use graphmill_raw::failpoint;
use graphmill_storage::{Buffer, Disk, FileHandle, Lease, MemoryBudget, Open, Operation, Queue};
use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::spec::EdgeKind;

/// Bytes of a page, the unit of checksums.
pub const DISK_PAGE_BYTES: u64 = 64 << 10;
/// Direct I/O keeps to multiples of this.
pub(crate) const GRAIN: u64 = 4096;

/// Which of the two sets of columns a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileSide {
    /// `columns/`, and the files of the whole graph.
    Forward,
    /// `reverse/`: the graph with every arc turned round.
    Reverse,
}

impl FileSide {
    pub(crate) const ALL: [FileSide; 2] = [FileSide::Forward, FileSide::Reverse];
    /// The directory of its files.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            FileSide::Forward => "columns",
            FileSide::Reverse => "reverse",
        }
    }
    /// The directory of its chunks.
    pub(crate) fn chunk_folder(self) -> &'static str {
        match self {
            FileSide::Forward => "stream",
            FileSide::Reverse => "stream-reverse",
        }
    }
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// Blocks of cells.
    Data,
    /// The list of the blocks of each cell.
    Index,
    /// Weights, in the order of the edges.
    Weights,
    /// Where the cells are.
    Directory,
    /// Out-degrees.
    Degrees,
    /// Destination batches of every vertex.
    Fanout,
    /// Vertex ids.
    Ids,
    /// The first id of every page.
    IdsIndex,
    /// Ranks by index and indices by rank.
    Order,
    /// Which sources have edges in a cell, for each that has such a bitmap.
    Bitmaps,
    /// Chunks of arcs, each with the data of its arcs behind it.
    Chunks,
    /// Where the chunks are.
    ChunkDirectory,
}

impl FileKind {
    /// What the files of a column file are.
    pub(crate) const OF_COLUMNS: [FileKind; 4] = [
        FileKind::Data,
        FileKind::Index,
        FileKind::Bitmaps,
        FileKind::Weights,
    ];
    /// Returns the kinds that a graph with these edges has.
    pub(crate) fn of_columns(edge: EdgeKind) -> &'static [FileKind] {
        &FileKind::OF_COLUMNS[..3 + usize::from(edge != EdgeKind::None)]
    }
}

/// The name of one file of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Its set of columns.
    pub side: FileSide,
    /// What it holds.
    pub kind: FileKind,
    /// Its number among files of its kind and side.
    pub number: u32,
}

impl FileId {
    pub(crate) const fn new(side: FileSide, kind: FileKind, number: u32) -> Self {
        FileId { side, kind, number }
    }
    /// Where the file lies in the graph's directory.
    pub fn path(&self, graph: &Path) -> PathBuf {
        graph.join(self.to_string())
    }
    fn prefix(&self, graph_id: u64, page: u64) -> [u8; 24] {
        let mut prefix = [0; 24];
        // Ids are summed without the graph's id: they are written before it is known.
        if !matches!(self.kind, FileKind::Ids | FileKind::IdsIndex) {
            prefix[..8].copy_from_slice(&graph_id.to_le_bytes());
        }
        prefix[8] = self.side as u8;
        prefix[9] = self.kind as u8;
        prefix[12..16].copy_from_slice(&self.number.to_le_bytes());
        prefix[16..].copy_from_slice(&page.to_le_bytes());
        prefix
    }
    /// The checksum of a page of this file. Source: docs/reference/file-format.md, "Pages".
    pub(crate) fn checksum(&self, graph_id: u64, page: u64, bytes: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.prefix(graph_id, page));
        hasher.update(bytes);
        hasher.finalize()
    }
    /// The checksum of this file's table, to be fed the table's bytes and the zeros after it.
    pub(crate) fn table_hasher(&self, graph_id: u64) -> crc32fast::Hasher {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.prefix(graph_id, u64::MAX));
        hasher
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.side.folder();
        let chunks = self.side.chunk_folder();
        match self.kind {
            FileKind::Chunks => write!(f, "{chunks}/{:05}.chunks", self.number),
            FileKind::ChunkDirectory => write!(f, "{chunks}/directory"),
            FileKind::Data => write!(f, "{folder}/{:05}.data", self.number),
            FileKind::Index => write!(f, "{folder}/{:05}.index", self.number),
            FileKind::Weights => write!(f, "{folder}/{:05}.weights", self.number),
            FileKind::Directory => write!(f, "{folder}/directory"),
            FileKind::Degrees => write!(f, "{folder}/degrees"),
            FileKind::Fanout => write!(f, "{folder}/fanout"),
            FileKind::Ids => write!(f, "ids"),
            FileKind::IdsIndex => write!(f, "ids.index"),
            FileKind::Order => write!(f, "order"),
            FileKind::Bitmaps => write!(f, "{folder}/{:05}.bitmaps", self.number),
        }
    }
}

/// What a file must add up to, kept apart from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRoot {
    /// Bytes of the payload.
    pub(crate) payload: u64,
    /// Checksum of the checksum table.
    pub(crate) checksum: u32,
}

impl FileRoot {
    /// A root whose checksum does not matter.
    pub(crate) fn of(payload: u64) -> Self {
        let checksum = 0;
        FileRoot { payload, checksum }
    }
    /// Returns the bytes of the payload and the zeros after it.
    ///
    /// The caller has refused the root of a file that no disk could hold.
    pub(crate) fn padded(&self) -> u64 {
        self.payload.next_multiple_of(GRAIN)
    }
    pub(crate) fn pages(&self) -> u64 {
        self.padded().div_ceil(DISK_PAGE_BYTES)
    }
    /// Bytes of the table and the zeros after it.
    pub(crate) fn table_padded(&self) -> u64 {
        (self.pages() * 4).next_multiple_of(GRAIN)
    }
    /// Bytes of the whole file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.padded() + self.table_padded()
    }
}

/// Reads that wait, one at a time: one queue and one buffer.
pub(crate) struct PageReader {
    queue: Box<dyn Queue>,
    buffer: Option<Buffer>,
}

impl PageReader {
    pub(crate) fn new(disk: &dyn Disk, budget: &MemoryBudget) -> Result<Self, FormatError> {
        let page = budget.buffer("a page of the stored graph", DISK_PAGE_BYTES as usize)?;
        Self::into_buffer(disk, page)
    }
    /// Returns a reader into another buffer.
    pub(crate) fn into_buffer(disk: &dyn Disk, buffer: Buffer) -> Result<Self, FormatError> {
        Ok(PageReader {
            queue: disk.queue(1)?,
            buffer: Some(buffer),
        })
    }
    /// Reads `bytes` bytes (a multiple of 4096, the buffer at most) at `offset`.
    pub(crate) fn read(
        &mut self,
        file: &FileHandle,
        offset: u64,
        bytes: usize,
    ) -> Result<&[u8], FormatError> {
        let lost = || FormatError::misuse("a buffer was lost after a failed read");
        let read = Operation::Read {
            file: file.clone(),
            offset,
            buffer: self.buffer.take().ok_or_else(lost)?,
            range: 0..bytes,
        };
        self.queue.submit(read, 0);
        let done = self.queue.wait();
        let done = done.ok_or_else(|| FormatError::misuse("a read got lost"))?;
        self.buffer = done.buffer;
        let read = done.result?;
        if read < bytes {
            return Err(cut_off(file.path(), offset, [bytes, read]));
        }
        let bytes = self.buffer.as_ref().and_then(|buffer| buffer.get(..bytes));
        bytes.ok_or_else(|| FormatError::misuse("a read lost its buffer"))
    }
}

/// Bytes of a file that make no sense.
pub(crate) fn malformed(path: PathBuf, offset: u64, what: impl Into<String>) -> FormatError {
    FormatError::Malformed {
        path,
        page: offset / DISK_PAGE_BYTES,
        offset,
        what: what.into(),
    }
}

/// A file that ends before it should: `expected` and `found` bytes were read from `offset` on.
pub(crate) fn cut_off(path: &Path, offset: u64, [expected, found]: [usize; 2]) -> FormatError {
    FormatError::Length {
        path: path.to_path_buf(),
        page: (offset + found as u64) / DISK_PAGE_BYTES,
        expected: offset + expected as u64,
        found: offset + found as u64,
    }
}

/// One file of a graph with its checksums.
#[derive(Debug)]
pub(crate) struct PagedFile {
    pub(crate) id: FileId,
    pub(crate) root: FileRoot,
    pub(crate) table: Box<[u32]>,
    pub(crate) _lease: Lease,
}

impl PagedFile {
    /// Checks a file's length against its root and reads its checksum table.
    pub(crate) fn open(
        (disk, graph, graph_id): (&dyn Disk, &Path, u64),
        fetch: &mut PageReader,
        budget: &MemoryBudget,
        id: FileId,
        root: FileRoot,
    ) -> Result<Self, FormatError> {
        let path = id.path(graph);
        let file = disk.open(&path, Open::Read)?;
        let found = file.len()?;
        // No overflow: a payload is compared with a file's length before anything is computed from it.
        let expected = match root.payload > found {
            true => root.payload,
            false => root.file_bytes(),
        };
        if found != expected {
            return Err(FormatError::Length {
                path,
                page: expected.min(found).min(root.payload) / DISK_PAGE_BYTES,
                expected,
                found,
            });
        }
        let bytes = PagedFile::memory(root);
        let _lease = budget.lease("checksums of the stored graph", bytes)?;
        let mut table = Vec::with_capacity(root.pages() as usize);
        let mut hasher = id.table_hasher(graph_id);
        for offset in (root.padded()..expected).step_by(DISK_PAGE_BYTES as usize) {
            let bytes = (expected - offset).min(DISK_PAGE_BYTES) as usize;
            let bytes = fetch.read(&file, offset, bytes)?;
            hasher.update(bytes);
            let (sums, left) = (
                bytes.as_chunks::<4>().0,
                root.pages() as usize - table.len(),
            );
            table.extend(sums.iter().take(left).map(|sum| u32::from_le_bytes(*sum)));
        }
        let checksum = match root.payload {
            0 => 0,
            _ => hasher.finalize(),
        };
        if checksum != root.checksum {
            return Err(FormatError::Table {
                path,
                pages: root.pages(),
                offset: root.padded(),
                expected: root.checksum,
                found: checksum,
            });
        }
        Ok(PagedFile {
            id,
            root,
            table: table.into(),
            _lease,
        })
    }
    /// Bytes of the budget that a file takes while it is open: its checksums.
    pub(crate) fn memory(root: FileRoot) -> u64 {
        root.pages() * 4
    }
    /// Bytes of page `page`, which is one of the file.
    pub(crate) fn page_bytes(&self, page: u64) -> usize {
        let left = self.root.padded().saturating_sub(page * DISK_PAGE_BYTES);
        left.min(DISK_PAGE_BYTES) as usize
    }
    /// Checks that `bytes` are page number `page`.
    #[inline]
    pub(crate) fn check(
        &self,
        graph: &Path,
        graph_id: u64,
        page: u64,
        bytes: &[u8],
    ) -> Result<(), FormatError> {
        let found = self.id.checksum(graph_id, page, bytes);
        let expected = self.table.get(page as usize);
        failpoint!(GraphPagesNotChecked: expected = expected.and(Some(&found)));
        match expected {
            Some(&expected) if expected == found => Ok(()),
            expected => Err(FormatError::Page {
                path: self.id.path(graph),
                page,
                offset: page * DISK_PAGE_BYTES,
                expected: expected.copied().unwrap_or(0),
                found,
            }),
        }
    }
    /// Bytes that make no sense although they have their checksum.
    pub(crate) fn corrupt(
        &self,
        graph: &Path,
        offset: u64,
        what: impl Into<String>,
    ) -> FormatError {
        malformed(self.id.path(graph), offset, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_checksum_covers_its_position() {
        let id = FileId::new(FileSide::Forward, FileKind::Data, 3);
        let bytes = [7u8; 4096];
        let sum = id.checksum(1, 2, &bytes);
        assert_ne!(sum, id.checksum(1, 3, &bytes), "page");
        assert_ne!(sum, id.checksum(9, 2, &bytes), "graph");
        assert_ne!(
            sum,
            FileId { number: 4, ..id }.checksum(1, 2, &bytes),
            "file"
        );
        assert_ne!(
            sum,
            FileId {
                kind: FileKind::Index,
                ..id
            }
            .checksum(1, 2, &bytes),
            "kind"
        );
        assert_ne!(
            sum,
            FileId {
                side: FileSide::Reverse,
                ..id
            }
            .checksum(1, 2, &bytes),
            "side"
        );
    }

    #[test]
    fn page_file_length_follows_from_payload() {
        for (payload, padded, pages, file) in [
            (0, 0, 0, 0),
            (1, 4096, 1, 8192),
            (65536, 65536, 1, 69632),
            (65537, 69632, 2, 73728),
        ] {
            let root = FileRoot {
                payload,
                checksum: 0,
            };
            assert_eq!(
                (root.padded(), root.pages(), root.file_bytes()),
                (padded, pages, file)
            );
        }
    }
}
