//! One set of columns of an open graph: its directory and where its files are.
//!
//! Every column names a column file of the set; every file has its checksums in memory.

use std::ops::Range;

use graphmill_storage::Lease;

use crate::cell::directory::{self, Column};
use crate::file::extent::Extent;
use crate::file::page::{FileId, FileKind, FileSide, PagedFile};
use crate::spec::EdgeKind;
use crate::vertex::page_index::PageIndex;

/// The files of a column file, in the order of [`FileKind::OF_COLUMNS`].
///
/// A graph without weights has no weights file. A directory without the column file has none of them.
pub(crate) type ColumnFileSet = [Option<PagedFile>; FileKind::OF_COLUMNS.len()];

/// One set of columns: the graph, or the graph with every arc turned round.
#[derive(Debug)]
pub struct ColumnSet {
    pub(crate) side: FileSide,
    pub(crate) columns: Vec<Column>,
    /// `None` in the stream layout, whose columns have no cells.
    pub(crate) directory: Option<PagedFile>,
    pub(crate) degrees: PagedFile,
    pub(crate) degree_pages: PageIndex,
    /// `None` in the stream layout.
    pub(crate) fanout: Option<PagedFile>,
    pub(crate) fanout_pages: PageIndex,
    /// The open files of each column file.
    pub(crate) files: Vec<ColumnFileSet>,
    pub(crate) _leases: Vec<Lease>,
}

impl ColumnSet {
    /// Which set it is.
    pub fn side(&self) -> FileSide {
        self.side
    }
    /// The cells into batch `d`.
    #[inline]
    pub fn column(&self, d: usize) -> &Column {
        &self.columns[d]
    }
    /// All columns, by destination batch.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
    /// Bytes of all files of a kind, payload only.
    pub fn bytes(&self, kind: FileKind) -> u64 {
        let of_kind = |file: &&PagedFile| file.id.kind == kind;
        (self.all_files().filter(of_kind))
            .map(|file| file.root.payload)
            .sum()
    }
    /// Where the blocks of a cell are. `cell`: a position in the column's cells.
    pub fn data_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        self.extent(FileKind::Data, column, cell.data())
    }
    /// Where the list of blocks of a cell is.
    pub fn block_list_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        self.extent(FileKind::Index, column, cell.block_list())
    }
    /// Where the bitmap of a cell is.
    pub fn bitmap_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        self.extent(FileKind::Bitmaps, column, cell.bitmap())
    }
    /// Where the weights of a cell are, for weights of `edge`.
    pub fn weights_extent(&self, column: usize, cell: &directory::Cell, edge: EdgeKind) -> Extent {
        let bytes = cell.weights(edge.bytes() as u64);
        self.extent(FileKind::Weights, column, bytes)
    }
    fn extent(&self, kind: FileKind, column: usize, bytes: Range<u64>) -> Extent {
        let file = FileId::new(self.side, kind, self.columns[column].file());
        Extent { file, bytes }
    }
    /// The name of its file of fan-out lists.
    pub(crate) fn fanout_id(&self) -> FileId {
        FileId::new(self.side, FileKind::Fanout, 0)
    }
    pub(crate) fn paged(&self, id: FileId) -> Option<&PagedFile> {
        match id.kind {
            FileKind::Directory => self.directory.as_ref(),
            FileKind::Degrees => Some(&self.degrees),
            FileKind::Fanout => self.fanout.as_ref(),
            kind => {
                let at = (FileKind::OF_COLUMNS.iter()).position(|of_column| *of_column == kind)?;
                self.files.get(id.number as usize)?[at].as_ref()
            }
        }
    }
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &PagedFile> {
        let tables = [&self.directory, &self.fanout].into_iter().flatten();
        tables
            .chain([&self.degrees])
            .chain(self.files.iter().flatten().flatten())
    }
}
