//! One set of columns of an open graph: its directory and where its files are.
//!
//! Every column names a column file of the set; every file has its checksums in memory.

use graphmill_storage::Lease;

use crate::directory::{self, Column};
use crate::extent_reader::Extent;
use crate::frames::{FileId, FileKind, Framed, Side};
use crate::pages::PageIndex;
use crate::shape::EdgeKind;

/// One set of columns: the graph, or the graph with every arc turned round.
#[derive(Debug)]
pub struct ColumnSet {
    pub(super) side: Side,
    pub(super) columns: Vec<Column>,
    pub(super) directory: Framed,
    pub(super) degrees: Framed,
    pub(super) degree_pages: PageIndex,
    pub(super) fanout: Framed,
    pub(super) fanout_pages: PageIndex,
    /// Data, index and weights of each column file.
    pub(super) files: Vec<[Option<Framed>; 3]>,
    pub(super) _leases: Vec<Lease>,
}

impl ColumnSet {
    /// Which set it is.
    pub fn side(&self) -> Side {
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
    /// Whether the file of column `d` is in this folder.
    pub(super) fn has_column(&self, d: usize) -> bool {
        let file = self.files.get(self.columns[d].file() as usize);
        file.is_some_and(|[data, ..]| data.is_some())
    }
    /// Number of column files.
    pub fn files(&self) -> usize {
        self.files.len()
    }
    /// Bytes of all files of a kind, payload only.
    pub fn bytes(&self, kind: FileKind) -> u64 {
        let of_files = |i: usize| {
            self.files
                .iter()
                .filter_map(|f| f[i].as_ref())
                .map(|f| f.root.payload)
                .sum()
        };
        match kind {
            FileKind::Data => of_files(0),
            FileKind::Index => of_files(1),
            FileKind::Weights => of_files(2),
            FileKind::Directory => self.directory.root.payload,
            FileKind::Degrees => self.degrees.root.payload,
            FileKind::Fanout => self.fanout.root.payload,
            FileKind::Ids | FileKind::IdsIndex | FileKind::Order => 0,
        }
    }
    /// Where the blocks of a cell are. `cell`: a position in the column's cells.
    pub fn data_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        Extent {
            file: FileId::new(self.side, FileKind::Data, self.columns[column].file()),
            bytes: cell.data(),
        }
    }
    /// Where the index of a cell is.
    pub fn index_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        Extent {
            file: FileId::new(self.side, FileKind::Index, self.columns[column].file()),
            bytes: cell.index(),
        }
    }
    /// Where the weights of a cell are, for weights of `edge`.
    pub fn weights_extent(&self, column: usize, cell: &directory::Cell, edge: EdgeKind) -> Extent {
        let bytes = cell.weights(edge.bytes() as u64);
        Extent {
            file: FileId::new(self.side, FileKind::Weights, self.columns[column].file()),
            bytes,
        }
    }
    /// Where the fan-out's pages are, and their file.
    pub(crate) fn fanout_pages(&self) -> (&PageIndex, FileId) {
        (&self.fanout_pages, self.fanout.id)
    }
    pub(super) fn framed(&self, id: FileId) -> Option<&Framed> {
        let of_file = |i: usize| self.files.get(id.number as usize)?[i].as_ref();
        match id.kind {
            FileKind::Data => of_file(0),
            FileKind::Index => of_file(1),
            FileKind::Weights => of_file(2),
            FileKind::Directory => Some(&self.directory),
            FileKind::Degrees => Some(&self.degrees),
            FileKind::Fanout => Some(&self.fanout),
            FileKind::Ids | FileKind::IdsIndex | FileKind::Order => None,
        }
    }
    pub(super) fn all_files(&self) -> impl Iterator<Item = &Framed> {
        [&self.directory, &self.degrees, &self.fanout]
            .into_iter()
            .chain(self.files.iter().flatten().flatten())
    }
}
