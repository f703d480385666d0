//! The chunks of one side of an open graph, or of a copy in scratch: where each is, and how it is read and checked.

use std::ops::Range;
use std::path::{Path, PathBuf};

use graphmill_storage::{Disk, FileHandle, Lease, Open};

use crate::batches::Batches;
use crate::error::FormatError;
use crate::file::page::{
    DISK_PAGE_BYTES, FileId, FileKind, FileSide, MetadataReader, PagedFile, malformed,
};
use crate::spec::EdgeKind;
use crate::stream::chunk_file::ChunkFile;
use crate::stream::directory::{Chunk, ChunkList};
use crate::stream::shape::ChunkPlace;
use crate::weight_range::WeightRange;

/// Which bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkPart {
    /// The arcs.
    Arcs,
    /// The data of the arcs, in their order.
    Data,
}

/// A page-aligned read of a chunk's arcs, or of their data.
#[derive(Clone, Debug)]
pub struct ChunkRead {
    /// The file.
    pub file: FileHandle,
    /// Where the read begins, in bytes.
    pub offset: u64,
    /// Bytes to read.
    pub bytes: usize,
    number: usize,
    part: ChunkPart,
    /// The bytes of the chunk in the read.
    range: Range<usize>,
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
    files: Vec<[Option<OpenFile>; 2]>,
    /// `None` for a copy in scratch.
    pub(crate) directory: Option<PagedFile>,
    _leases: Vec<Lease>,
}

/// What the chunks of a set have in common.
pub(crate) struct ChunkSetShape<'s> {
    pub(crate) side: FileSide,
    pub(crate) batches: &'s Batches,
    pub(crate) edge: EdgeKind,
    pub(crate) weights: Option<WeightRange>,
    pub(crate) chunk_bytes: usize,
}

impl ChunkSet {
    /// Opens files of chunks that are not part of a stored graph: a copy in scratch.
    ///
    /// Files with other numbers are elsewhere.
    ///
    /// # Errors
    /// A file is not what was written, the disk fails, or the budget has no room.
    pub fn of_files(
        place: &ChunkPlace<'_>,
        (batches, edge): (&Batches, EdgeKind),
        chunk_bytes: usize,
        files: &[ChunkFile],
    ) -> Result<Self, FormatError> {
        let mut list = ChunkList::default();
        let side = files.first().map_or(FileSide::Forward, |file| file.side);
        let count = files.iter().map(|file| file.number as usize + 1).max();
        list.roots = vec![Default::default(); count.unwrap_or(0)];
        list.arcs_into = vec![0; batches.len()];
        let chunks: usize = files.iter().map(|file| file.chunks.len()).sum();
        let bytes = ChunkList::memory(3 * chunks as u64, batches.len() as u64);
        list.leases
            .push(place.budget.lease("the directory of chunks", bytes)?);
        let mut weights = None;
        for file in files {
            let mut ends = [0; 2];
            for entry in &file.chunks {
                list.add(file.number, *entry, edge, &mut ends);
            }
            list.roots[file.number as usize] = file.roots;
            let into = list.arcs_into.iter_mut().zip(&file.arcs_into);
            into.for_each(|(sum, arcs)| *sum += arcs);
            weights = WeightRange::join(weights, file.weights);
        }
        list.sort();
        let shape = ChunkSetShape {
            side,
            batches,
            edge,
            weights,
            chunk_bytes,
        };
        let mut fetch = MetadataReader::new(&**place.disk, place.budget)?;
        let here = |number: usize| files.iter().any(|file| file.number as usize == number);
        Self::open(place, &mut fetch, &shape, list, &|number| Ok(here(number)))
    }
    /// Opens the files of a list that are here.
    pub(crate) fn open(
        place: &ChunkPlace<'_>,
        fetch: &mut MetadataReader,
        shape: &ChunkSetShape<'_>,
        list: ChunkList,
        is_here: &dyn Fn(usize) -> Result<bool, FormatError>,
    ) -> Result<Self, FormatError> {
        let (disk, side): (&dyn Disk, _) = (&**place.disk, shape.side);
        let mut files = Vec::with_capacity(list.roots.len());
        for (number, roots) in list.roots.iter().enumerate() {
            let mut file = [None, None];
            if is_here(number)? {
                let kinds = [FileKind::Chunks, FileKind::ChunkData];
                let kinds = &kinds[..1 + usize::from(shape.edge.bytes() > 0)];
                for ((place_of, kind), root) in file.iter_mut().zip(kinds).zip(roots) {
                    let id = FileId::new(side, *kind, number as u32);
                    let at = (disk, place.folder, place.graph_id);
                    let paged = PagedFile::open(at, fetch, place.budget, id, *root)?;
                    let handle = disk.open(&id.path(place.folder), Open::Read)?;
                    *place_of = Some(OpenFile { handle, paged });
                }
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
            weights: shape.weights,
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
    /// Arcs of the chunk with most; 0 without chunks.
    pub fn edges_max(&self) -> usize {
        self.edges_max
    }
    /// Bytes that a read of a part of a chunk takes at most: whole pages.
    pub fn read_bytes_max(&self, part: ChunkPart) -> usize {
        let bytes = match part {
            ChunkPart::Arcs => self.chunk_bytes,
            ChunkPart::Data => self.edges_max * self.edge.bytes(),
        };
        let page = DISK_PAGE_BYTES as usize;
        if bytes == 0 {
            0
        } else {
            bytes.next_multiple_of(page) + page
        }
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
        self.files.get(file).is_some_and(|file| file[0].is_some())
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
    /// The arcs of all chunks.
    pub fn arcs(&self) -> u64 {
        self.arcs_into.iter().sum()
    }
    /// Bytes of all files of arcs, or of their data, that are here.
    pub fn bytes(&self, part: ChunkPart) -> u64 {
        let files = self
            .files
            .iter()
            .filter_map(|file| file[part as usize].as_ref());
        files.map(|file| file.paged.root.payload).sum()
    }
    fn open_file(&self, number: usize, part: ChunkPart) -> Result<&OpenFile, FormatError> {
        let file = self
            .files
            .get(number)
            .and_then(|file| file[part as usize].as_ref());
        file.ok_or_else(|| {
            let path = self.file_id(number, part).path(&self.path);
            FormatError::Elsewhere { path }
        })
    }
    fn file_id(&self, number: usize, part: ChunkPart) -> FileId {
        let kind = match part {
            ChunkPart::Arcs => FileKind::Chunks,
            ChunkPart::Data => FileKind::ChunkData,
        };
        FileId::new(self.side, kind, number as u32)
    }
    /// Returns the read that holds a part of a chunk of this set.
    ///
    /// # Errors
    /// Another host has the file.
    pub fn read(&self, chunk: &Chunk, part: ChunkPart) -> Result<ChunkRead, FormatError> {
        let file = self.open_file(chunk.file(), part)?;
        let (start, bytes) = match part {
            ChunkPart::Arcs => (chunk.offset, chunk.bytes()),
            ChunkPart::Data => (chunk.data_offset, chunk.edges() * self.edge.bytes()),
        };
        let offset = start - start % DISK_PAGE_BYTES;
        let end = start.saturating_add(bytes as u64);
        let end_page = end.checked_next_multiple_of(DISK_PAGE_BYTES).unwrap_or(end);
        let read_end = end_page.min(file.paged.root.padded());
        let skip = (start - offset) as usize;
        Ok(ChunkRead {
            file: file.handle.clone(),
            offset,
            bytes: read_end.saturating_sub(offset) as usize,
            number: chunk.file(),
            part,
            range: skip..skip + bytes,
        })
    }
    /// Checks every page of a finished read, and returns the chunk's own bytes as a range of it.
    ///
    /// # Errors
    /// A page is not what was written there, the read is too short, or a weight is no number of the graph.
    pub fn check(&self, read: &ChunkRead, pages: &[u8]) -> Result<Range<usize>, FormatError> {
        let paged = &self.open_file(read.number, read.part)?.paged;
        if pages.len() < read.bytes || read.range.end > read.bytes {
            let path = paged.id.path(&self.path);
            let ends = [read.bytes.max(read.range.end), pages.len()];
            return Err(crate::file::page::cut_off(&path, read.offset, ends));
        }
        let first = read.offset / DISK_PAGE_BYTES;
        for (page, bytes) in (first..).zip(pages[..read.bytes].chunks(DISK_PAGE_BYTES as usize)) {
            self.check_page(paged, page, bytes)?;
        }
        Ok(read.range.clone())
    }
    /// Checks a page of one of its files.
    pub(crate) fn check_page(
        &self,
        paged: &PagedFile,
        page: u64,
        bytes: &[u8],
    ) -> Result<(), FormatError> {
        paged.check(&self.path, self.graph_id, page, bytes)?;
        if paged.id.kind != FileKind::ChunkData {
            return Ok(());
        }
        paged.check_weights((&self.path, page), bytes, self.weights, self.edge)
    }
    /// The error for a chunk that makes no sense although its pages have their checksums.
    pub fn broken(&self, chunk: &Chunk, error: &FormatError) -> FormatError {
        let path = self.file_id(chunk.file(), ChunkPart::Arcs).path(&self.path);
        let what = format!("a chunk of batch {} makes no sense: {error}", chunk.batch);
        malformed(path, chunk.offset, what)
    }
    pub(crate) fn paged(&self, id: FileId) -> Option<&PagedFile> {
        let of = |part: ChunkPart| {
            let file = self.files.get(id.number as usize)?;
            Some(&file[part as usize].as_ref()?.paged)
        };
        match id.kind {
            FileKind::ChunkDirectory => self.directory.as_ref(),
            FileKind::Chunks => of(ChunkPart::Arcs),
            FileKind::ChunkData => of(ChunkPart::Data),
            _ => None,
        }
    }
    /// The directory, and all files that are here.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &PagedFile> {
        let files = self
            .files
            .iter()
            .flatten()
            .flatten()
            .map(|file| &file.paged);
        self.directory.iter().chain(files)
    }
    /// The directory of the graph.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
