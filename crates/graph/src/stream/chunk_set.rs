//! The chunks of one side of an open graph, or of a copy in scratch: where each is, and how it is read and checked.

use std::ops::Range;
use std::path::PathBuf;

use graphmill_storage::{Disk, FileHandle, Lease, Open};

use crate::batches::Batches;
use crate::error::FormatError;
use crate::file::page::{
    DISK_PAGE_BYTES, FileId, FileKind, FileSide, PageReader, PagedFile, malformed,
};
use crate::spec::EdgeKind;
use crate::stream::chunk::ChunkView;
use crate::stream::chunk_file::ChunkFile;
use crate::stream::directory::{Chunk, ChunkList};
use crate::stream::shape::{ChunkPlace, ChunkShape};
use crate::weight_range::WeightRange;

/// A read of a chunk: whole pages of a file.
#[derive(Clone, Debug)]
pub struct ChunkRead {
    /// The file.
    pub file: FileHandle,
    /// The first byte to read.
    pub offset: u64,
    /// The number of bytes to read.
    pub bytes: usize,
    number: usize,
    /// The bytes of its arcs among them, and of their data.
    parts: [Range<usize>; 2],
}

/// A file that is here.
#[derive(Debug)]
struct OpenFile {
    handle: FileHandle,
    paged: PagedFile,
}

/// The chunks of one side of a graph.
#[derive(Debug)]
pub struct ChunkSet {
    side: FileSide,
    path: PathBuf,
    graph_id: u64,
    edge: EdgeKind,
    weights: Option<WeightRange>,
    chunk_bytes: usize,
    edges_max: usize,
    chunks: Vec<Chunk>,
    /// Where the chunks of each batch begin.
    starts: Vec<usize>,
    arcs_into: Vec<u64>,
    /// Arcs and data of each file; neither if another host has them.
    files: Vec<Option<OpenFile>>,
    /// `None` for a copy in scratch.
    pub(crate) directory: Option<PagedFile>,
    _leases: Vec<Lease>,
}

impl ChunkSet {
    /// Opens a complete file of chunks, whatever its graph has beside it.
    ///
    /// # Errors
    /// The file is not what was written, or the budget has no room.
    pub fn of_file(
        place: &ChunkPlace<'_>,
        shape: &ChunkShape,
        file: &ChunkFile,
    ) -> Result<Self, FormatError> {
        let ChunkList { chunks, roots, .. } = &file.list;
        let bytes = ChunkList::memory(chunks.len() as u64, shape.batches.len() as u64);
        let list = ChunkList {
            roots: roots.clone(),
            chunks: chunks.clone(),
            arcs_into: file.list.arcs_into.clone(),
            arcs: file.list.arcs,
            leases: vec![place.budget.lease("the directory of chunks", bytes)?],
        };
        let shape = ChunkShape {
            chunk_bytes: file.bytes_max(),
            side: file.side,
            ..shape.clone()
        };
        let mut fetch = PageReader::new(&**place.disk, place.budget)?;
        let is_here = |number: usize| Ok(number + 1 == roots.len());
        Self::open(place, &mut fetch, (&shape, file.weights), list, &is_here)
    }
    /// Opens the chunks of a directory, whose files may be elsewhere.
    pub(crate) fn open(
        place: &ChunkPlace<'_>,
        fetch: &mut PageReader,
        (shape, weights): (&ChunkShape, Option<WeightRange>),
        mut list: ChunkList,
        is_here: &dyn Fn(usize) -> Result<bool, FormatError>,
    ) -> Result<Self, FormatError> {
        list.sort();
        let (disk, side): (&dyn Disk, _) = (&**place.disk, shape.side);
        let mut files = Vec::with_capacity(list.roots.len());
        for (number, root) in list.roots.iter().enumerate() {
            let mut file = None;
            if is_here(number)? {
                let id = FileId::new(side, FileKind::Chunks, number as u32);
                let at = (disk, place.folder, place.graph_id);
                let paged = PagedFile::open(at, fetch, place.budget, id, *root)?;
                let handle = disk.open(&id.path(place.folder), Open::Read)?;
                file = Some(OpenFile { handle, paged });
            }
            files.push(file);
        }
        let (chunks, batches) = (list.chunks, shape.batches.len());
        let starts = (0..=batches)
            .map(|batch| chunks.partition_point(|chunk| chunk.batch() < batch))
            .collect();
        Ok(ChunkSet {
            side,
            path: place.folder.to_path_buf(),
            graph_id: place.graph_id,
            edge: shape.edge,
            weights,
            chunk_bytes: shape.chunk_bytes,
            edges_max: chunks.iter().map(Chunk::edges).max().unwrap_or(0),
            chunks,
            starts,
            arcs_into: list.arcs_into,
            files,
            directory: None,
            _leases: list.leases,
        })
    }
    /// Which side of the graph it is.
    pub fn side(&self) -> FileSide {
        self.side
    }
    /// Bytes of a chunk at most, without the data of its arcs.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }
    /// Bytes that a read of a chunk takes at most, with the data of its arcs or without: whole pages.
    pub fn read_bytes_max(&self, with_data: bool) -> usize {
        let width = if with_data { self.edge.bytes() } else { 0 };
        let page = DISK_PAGE_BYTES as usize;
        (self.chunk_bytes + self.edges_max * width).next_multiple_of(page) + page
    }
    /// True if it is part of a stored graph, and no copy in scratch.
    pub fn is_stored(&self) -> bool {
        self.directory.is_some()
    }
    /// The number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }
    /// True if this host has a file.
    pub fn has_file(&self, file: usize) -> bool {
        self.files.get(file).is_some_and(Option::is_some)
    }
    /// All chunks, by source batch, then file, then offset.
    pub fn all(&self) -> &[Chunk] {
        &self.chunks
    }
    /// The chunks of a source batch.
    pub fn of_batch(&self, batch: usize) -> &[Chunk] {
        let place = |at: usize| self.starts.get(at).copied().unwrap_or(self.chunks.len());
        &self.chunks[place(batch)..place(batch + 1)]
    }
    /// The position of the first chunk of a source batch among all.
    pub fn first_of(&self, batch: usize) -> usize {
        self.starts.get(batch).copied().unwrap_or(self.chunks.len())
    }
    /// The arcs into a batch; 0 of a batch beyond the last.
    pub fn arcs_into(&self, batch: usize) -> u64 {
        self.arcs_into.get(batch).copied().unwrap_or(0)
    }
    /// Bytes of the arcs in all files that are here, and of their data.
    pub fn bytes(&self) -> [u64; 2] {
        let here = |chunk: &&Chunk| self.has_file(chunk.file());
        let arcs = |chunk: &Chunk| u64::from(chunk.edges);
        let data =
            self.chunks.iter().filter(here).map(arcs).sum::<u64>() * self.edge.bytes() as u64;
        let payloads = self
            .files
            .iter()
            .flatten()
            .map(|file| file.paged.root.payload);
        [payloads.sum::<u64>() - data, data]
    }
    fn open_file(&self, number: usize) -> Result<&OpenFile, FormatError> {
        let file = self.files.get(number).and_then(Option::as_ref);
        file.ok_or_else(|| FormatError::Elsewhere {
            path: self.file_path(number),
        })
    }
    fn file_path(&self, number: usize) -> PathBuf {
        FileId::new(self.side, FileKind::Chunks, number as u32).path(&self.path)
    }
    /// Returns the read that holds a chunk of this set, with the data of its arcs or without.
    ///
    /// # Errors
    /// Another host has the file.
    pub fn read(&self, chunk: &Chunk, with_data: bool) -> Result<ChunkRead, FormatError> {
        let file = self.open_file(chunk.file())?;
        let width = if with_data { self.edge.bytes() } else { 0 };
        let offset = chunk.offset - chunk.offset % DISK_PAGE_BYTES;
        let start = (chunk.offset - offset) as usize;
        let data = start + chunk.bytes();
        let end = data + chunk.edges() * width;
        let read_end = (offset + end as u64).next_multiple_of(DISK_PAGE_BYTES);
        let read_end = read_end.min(file.paged.root.padded());
        Ok(ChunkRead {
            file: file.handle.clone(),
            offset,
            bytes: read_end.saturating_sub(offset) as usize,
            number: chunk.file(),
            parts: [start..data, data..end],
        })
    }
    /// Checks every page of a finished read; returns where the arcs of the chunk are, and their data.
    ///
    /// # Errors
    /// A page is not what was written there, the read is too short, or a weight is no number of the graph.
    pub fn check(&self, read: &ChunkRead, pages: &[u8]) -> Result<[Range<usize>; 2], FormatError> {
        let paged = &self.open_file(read.number)?.paged;
        let end = read.parts[1].end;
        if pages.len() < read.bytes || end > read.bytes {
            let ends = [read.bytes.max(end), pages.len()];
            let path = self.file_path(read.number);
            return Err(crate::file::page::cut_off(&path, read.offset, ends));
        }
        let first = read.offset / DISK_PAGE_BYTES;
        for (page, bytes) in (first..).zip(pages[..read.bytes].chunks(DISK_PAGE_BYTES as usize)) {
            paged.check(&self.path, self.graph_id, page, bytes)?;
        }
        let data = read.parts[1].clone();
        if !WeightRange::holds(self.weights, &pages[data.clone()], self.edge) {
            let at = read.offset + data.start as u64;
            return Err(paged.corrupt(&self.path, at, WeightRange::NOT_HELD));
        }
        Ok(read.parts.clone())
    }
    /// Parses the arcs of a chunk whose pages have their checksums.
    ///
    /// # Errors
    /// They make no sense, or are not as many as the directory says.
    pub fn parse<'c>(
        &self,
        chunk: &Chunk,
        arcs: &'c [u8],
        batches: &Batches,
    ) -> Result<ChunkView<'c>, FormatError> {
        let broken = |problem: String| {
            let what = format!("a chunk of batch {} makes no sense: {problem}", chunk.batch);
            malformed(self.file_path(chunk.file()), chunk.offset, what)
        };
        let view = ChunkView::parse(arcs, batches, chunk.batch());
        let view = view.map_err(|error| broken(error.to_string()))?;
        let (found, said) = (view.edges(), chunk.edges());
        match found == said {
            true => Ok(view),
            false => Err(broken(format!(
                "it has {found} arcs, the directory says {said}"
            ))),
        }
    }
    pub(crate) fn paged(&self, id: FileId) -> Option<&PagedFile> {
        match id.kind {
            FileKind::ChunkDirectory => self.directory.as_ref(),
            FileKind::Chunks => {
                let file = self.files.get(id.number as usize)?;
                Some(&file.as_ref()?.paged)
            }
            _ => None,
        }
    }
    /// The directory, and all files that are here.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &PagedFile> {
        let files = self.files.iter().flatten().map(|file| &file.paged);
        self.directory.iter().chain(files)
    }
}
