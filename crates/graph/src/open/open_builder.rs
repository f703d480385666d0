//! Opening a stored graph: its files, one after the other, into memory.
//!
//! 1. A file's length and its table of checksums are checked.
//! 2. Of a set of columns, the directory is read, and the lists of the pages of degrees and fan-out; of the ids, the first of
//!    every page. Each page that is read is checked.
//! 3. What was read has to make sense: counts are bounded by the bytes that are there before they are used.
//!
//! What stays is leased before it is allocated.

use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{Disk, Lease, MemoryBudget, Open};

use crate::batches::Batches;
use crate::cell::directory::{self, Column};
use crate::error::FormatError;
use crate::file::page::{
    DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide, PageReader, PagedFile,
};
use crate::manifest::{ColumnsMeta, IdKind, Manifest};
use crate::open::column_set::{ColumnFileSet, ColumnSet};
use crate::stream::chunk_set::ChunkSet;
use crate::stream::directory::ChunkList;
use crate::stream::shape::{ChunkPlace, ChunkShape};
use crate::vertex::degree_pages::DEGREE_PAGE_BYTES_MAX;
use crate::vertex::fanout_pages::fanout_page_bytes_max;
use crate::vertex::ids::page_index::IdIndex;
use crate::vertex::order::{ORDER, payload_bytes};
use crate::vertex::page_index::PageIndex;

/// What opening needs at every file.
pub(super) struct OpenBuilder<'a> {
    pub(super) disk: &'a Arc<dyn Disk>,
    pub(super) fetch: PageReader,
    pub(super) budget: &'a MemoryBudget,
    pub(super) path: &'a Path,
    pub(super) graph_id: u64,
    pub(super) meta: &'a Manifest,
    pub(super) batches: &'a Batches,
    /// Whether column files may be elsewhere.
    pub(super) in_part: bool,
}

impl OpenBuilder<'_> {
    fn open(&mut self, id: FileId, root: FileRoot) -> Result<PagedFile, FormatError> {
        let at = (&**self.disk, self.path, self.graph_id);
        PagedFile::open(at, &mut self.fetch, self.budget, id, root)
    }
    /// A range of a file's payload, and the lease for it.
    fn read(
        &mut self,
        paged: &PagedFile,
        range: std::ops::Range<u64>,
    ) -> Result<(Vec<u8>, Lease), FormatError> {
        let bytes = range.end - range.start;
        let lease = self.budget.lease("opening the stored graph", bytes)?;
        let mut out = Vec::with_capacity(bytes as usize);
        let handle = self.disk.open(&paged.id.path(self.path), Open::Read)?;
        let mut at = range.start;
        while at < range.end {
            let page = at / DISK_PAGE_BYTES;
            let page_bytes = paged.page_bytes(page);
            let found = (self.fetch).read(&handle, page * DISK_PAGE_BYTES, page_bytes)?;
            paged.check(self.path, self.graph_id, page, found)?;
            let from = (at % DISK_PAGE_BYTES) as usize;
            let to = ((range.end - page * DISK_PAGE_BYTES) as usize).min(page_bytes);
            out.extend_from_slice(found.get(from..to).unwrap_or(&[]));
            at = (page + 1) * DISK_PAGE_BYTES;
        }
        Ok((out, lease))
    }
    pub(super) fn columns(
        &mut self,
        side: FileSide,
        meta: &ColumnsMeta,
    ) -> Result<ColumnSet, FormatError> {
        if self.meta.stream.is_some() {
            return self.empty_columns(side, meta);
        }
        let directory = self.open(FileId::new(side, FileKind::Directory, 0), meta.directory)?;
        let (bytes, lease) = self.read(&directory, 0..directory.root.payload)?;
        let (batches, edge) = (self.batches.len(), self.meta.edge);
        let corrupt = |offset: u64, what: &str| directory.corrupt(self.path, offset, what);
        let shape = (batches, edge, self.meta.strip_edges_max);
        let parsed = directory::parse(&bytes, shape, self.budget, &corrupt)?;
        let (columns, mut leases) = (parsed.columns, parsed.leases);
        drop((bytes, lease));
        let arcs: u64 = columns.iter().map(Column::edges).sum();
        if arcs != self.meta.arcs {
            let what = format!(
                "its cells have {arcs} edges, graph.json says {}",
                self.meta.arcs
            );
            return Err(directory.corrupt(self.path, 0, what));
        }
        let bytes = parsed.files.len() * size_of::<ColumnFileSet>();
        leases.push(self.budget.lease("column files", bytes as u64)?);
        let mut files = Vec::with_capacity(parsed.files.len());
        for (number, roots) in parsed.files.iter().enumerate() {
            let mut file = ColumnFileSet::default();
            let data = FileId::new(side, FileKind::Data, number as u32);
            if !self.in_part || self.disk.exists(&data.path(self.path))? {
                for (at, kind) in FileKind::of_columns(edge).iter().enumerate() {
                    file[at] = Some(self.open(FileId::new(side, *kind, number as u32), roots[at])?);
                }
            }
            files.push(file);
        }
        let degrees = self.open(FileId::new(side, FileKind::Degrees, 0), meta.degrees)?;
        let degree_pages = self.pages(&degrees, DEGREE_PAGE_BYTES_MAX, &mut leases)?;
        let fanout = self.open(FileId::new(side, FileKind::Fanout, 0), meta.fanout)?;
        let page_bytes_max = fanout_page_bytes_max(batches);
        let fanout_pages = self.pages(&fanout, page_bytes_max, &mut leases)?;
        Ok(ColumnSet {
            side,
            columns,
            directory: Some(directory),
            degrees,
            degree_pages,
            fanout: Some(fanout),
            fanout_pages,
            files,
            _leases: leases,
        })
    }
    /// The columns of a graph of chunks: none has cells, but vertices have degrees.
    fn empty_columns(
        &mut self,
        side: FileSide,
        meta: &ColumnsMeta,
    ) -> Result<ColumnSet, FormatError> {
        let batches = self.batches.len();
        let bytes = (batches * size_of::<Column>()) as u64;
        let mut leases = vec![self.budget.lease("columns without cells", bytes)?];
        let degrees = self.open(FileId::new(side, FileKind::Degrees, 0), meta.degrees)?;
        let degree_pages = self.pages(&degrees, DEGREE_PAGE_BYTES_MAX, &mut leases)?;
        Ok(ColumnSet {
            side,
            columns: vec![Column::default(); batches],
            directory: None,
            degrees,
            degree_pages,
            fanout: None,
            fanout_pages: PageIndex::default(),
            files: Vec::new(),
            _leases: leases,
        })
    }
    /// Opens the chunks of a side; `None` if the graph has none.
    pub(super) fn chunks(&mut self, side: FileSide) -> Result<Option<ChunkSet>, FormatError> {
        let Some(stream) = self.meta.stream else {
            return Ok(None);
        };
        let root = match side {
            FileSide::Forward => Some(stream.directory),
            FileSide::Reverse => stream.reverse,
        };
        let Some(root) = root else { return Ok(None) };
        let directory = self.open(FileId::new(side, FileKind::ChunkDirectory, 0), root)?;
        let (bytes, lease) = self.read(&directory, 0..root.payload)?;
        let path = self.path;
        let corrupt = |offset: u64, what: &str| directory.corrupt(path, offset, what);
        let shape = ChunkShape {
            batches: self.batches.clone(),
            edge: self.meta.edge,
            chunk_bytes: stream.chunk_bytes as usize,
            side,
            file: 0,
        };
        let list = ChunkList::parse(&bytes, &shape, self.budget, &corrupt)?;
        drop((bytes, lease));
        if list.arcs != self.meta.arcs {
            let (arcs, said) = (list.arcs, self.meta.arcs);
            let what = format!("its chunks have {arcs} arcs, graph.json says {said}");
            return Err(corrupt(0, &what));
        }
        let place = ChunkPlace {
            disk: self.disk,
            budget: self.budget,
            folder: path,
            graph_id: self.graph_id,
        };
        let (disk, in_part) = (self.disk, self.in_part);
        let is_here = |number: usize| {
            let file = FileId::new(side, FileKind::Chunks, number as u32);
            Ok(!in_part || disk.exists(&file.path(path))?)
        };
        let mut set = ChunkSet::open(
            &place,
            &mut self.fetch,
            (&shape, self.meta.weights),
            list,
            &is_here,
        )?;
        set.directory = Some(directory);
        Ok(Some(set))
    }
    fn pages(
        &mut self,
        paged: &PagedFile,
        page_bytes_max: u64,
        leases: &mut Vec<Lease>,
    ) -> Result<PageIndex, FormatError> {
        let path = self.path;
        let broken = || paged.corrupt(path, paged.root.payload, "its list of pages makes no sense");
        let end = paged.root.payload.checked_sub(16).ok_or_else(broken)?;
        let (trailer, _) = self.read(paged, end..end + 16)?;
        let &[position, count] = trailer.as_chunks::<8>().0 else {
            return Err(broken());
        };
        let [position, count] = [position, count].map(u64::from_le_bytes);
        // An entry takes two bytes at least.
        if position > end || count > (end - position) / 2 {
            return Err(broken());
        }
        let bytes = PageIndex::memory(count);
        leases.push((self.budget).lease("where degrees and fan-out lists are", bytes)?);
        let (list, _lease) = self.read(paged, position..end)?;
        let vertices = self.meta.vertices;
        PageIndex::parse(&list, count, vertices, position, page_bytes_max).ok_or_else(broken)
    }
    pub(super) fn order(&mut self) -> Result<Option<PagedFile>, FormatError> {
        let Some(root) = self.meta.order else {
            return Ok(None);
        };
        let order = self.open(ORDER, root)?;
        if Some(root.payload) != payload_bytes(self.meta.vertices) {
            let what = format!("it is not the order of {} vertices", self.meta.vertices);
            return Err(order.corrupt(self.path, 0, what));
        }
        Ok(Some(order))
    }
    pub(super) fn ids(&mut self) -> Result<IdIndex, FormatError> {
        let ids = self.meta.ids;
        if ids.kind == IdKind::Dense {
            return Ok(IdIndex::default());
        }
        let data = self.open(FileId::new(FileSide::Forward, FileKind::Ids, 0), ids.data)?;
        let index = FileId::new(FileSide::Forward, FileKind::IdsIndex, 0);
        let index = self.open(index, ids.index)?;
        let (bytes, _lease) = self.read(&index, 0..index.root.payload)?;
        IdIndex::new(self.meta, data, index, &bytes, self.budget, self.path)
    }
}
