//! Opening a stored graph: its files, one after the other, into memory.
//!
//! 1. A file's length and its table of checksums are checked.
//! 2. Of a set of columns, the directory is read, and the lists of the pages of degrees and fan-out; of the ids, the first of
//!    every page. Each page that is read is checked.
//! 3. What was read has to make sense: counts are bounded by the bytes that are there before they are used.
//!
//! What stays is leased before it is allocated.

use std::path::Path;

use graphmill_storage::{Disk, Lease, MemoryBudget, Open};

use crate::batches::Batches;
use crate::cell::directory::{self, Column, DirectoryError};
use crate::error::FormatError;
use crate::file::page::{
    DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide, MetadataReader, PagedFile, seed,
};
use crate::manifest::{ColumnsMeta, IdKind, Manifest};
use crate::open::column_set::{ColumnFileSet, ColumnSet};
use crate::spec::EdgeKind;
use crate::vertex::degree_pages::DEGREE_PAGE_BYTES_MAX;
use crate::vertex::fanout_pages::fanout_page_bytes_max;
use crate::vertex::ids::page_index::IdIndex;
use crate::vertex::order::{ORDER, payload_bytes};
use crate::vertex::page_index::PageIndex;

/// What opening needs at every file.
pub(super) struct OpenBuilder<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) fetch: MetadataReader,
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
        let graph_id = seed(id, self.graph_id);
        PagedFile::open(
            self.disk,
            &mut self.fetch,
            self.budget,
            self.path,
            graph_id,
            id,
            root,
        )
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
            let found = self
                .fetch
                .read(&handle, page * DISK_PAGE_BYTES, page_bytes)?;
            paged.check(self.path, seed(paged.id, self.graph_id), page, found)?;
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
        let directory = self.open(FileId::new(side, FileKind::Directory, 0), meta.directory)?;
        let (bytes, lease) = self.read(&directory, 0..directory.root.payload)?;
        let (batches, edge) = (self.batches.len(), self.meta.edge);
        let parsed = directory::parse(
            &bytes,
            batches,
            edge,
            self.meta.strip_edges_max,
            self.budget,
        );
        let directory::Directory {
            columns,
            files: roots,
            mut leases,
        } = parsed.map_err(|fault| match fault {
            DirectoryError::At { offset, what } => directory.corrupt(self.path, offset, what),
            DirectoryError::Other(error) => *error,
        })?;
        drop((bytes, lease));
        let arcs: u64 = columns.iter().map(Column::edges).sum();
        if arcs != self.meta.arcs {
            let what = format!(
                "its cells have {arcs} edges, graph.json says {}",
                self.meta.arcs
            );
            return Err(directory.corrupt(self.path, 0, what));
        }
        leases.push(self.budget.lease(
            "column files",
            (roots.len() * size_of::<ColumnFileSet>()) as u64,
        )?);
        let mut files = Vec::with_capacity(roots.len());
        for (number, roots) in roots.iter().enumerate() {
            let mut file = ColumnFileSet::default();
            let data = FileId::new(side, FileKind::Data, number as u32);
            if self.in_part && !self.disk.exists(&data.path(self.path))? {
                files.push(file);
                continue;
            }
            for (at, kind) in FileKind::OF_COLUMNS.into_iter().enumerate() {
                if kind != FileKind::Weights || edge != EdgeKind::None {
                    file[at] = Some(self.open(FileId::new(side, kind, number as u32), roots[at])?);
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
            directory,
            degrees,
            degree_pages,
            fanout,
            fanout_pages,
            files,
            _leases: leases,
        })
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
        let (words, _) = trailer.as_chunks::<8>();
        let [position, count] = words
            .iter()
            .map(|w| u64::from_le_bytes(*w))
            .collect::<Vec<_>>()[..]
        else {
            return Err(broken());
        };
        // An entry takes two bytes at least.
        if position > end || count > (end - position) / 2 {
            return Err(broken());
        }
        leases.push(self.budget.lease(
            "where degrees and fan-out lists are",
            PageIndex::memory(count),
        )?);
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
            return Ok(IdIndex::dense());
        }
        let data = self.open(FileId::new(FileSide::Forward, FileKind::Ids, 0), ids.data)?;
        let index = self.open(
            FileId::new(FileSide::Forward, FileKind::IdsIndex, 0),
            ids.index,
        )?;
        let (bytes, _lease) = self.read(&index, 0..index.root.payload)?;
        IdIndex::new(
            ids.kind,
            ids.pages,
            self.meta.vertices,
            data,
            index,
            &bytes,
            self.budget,
            self.path,
        )
    }
}
