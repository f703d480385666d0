//! The numbers that a graph on disk is made of.

use crate::file::page::FileRoot;

/// The cells into one destination batch; of an expected graph what they are on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ColumnModel {
    /// Cells that are not empty.
    pub cells: u64,
    /// Strips that they are folded in, 1 at least.
    pub strips: usize,
    /// Edges into the batch.
    pub edges: u64,
    /// Bytes of blocks.
    pub data_bytes: u64,
    /// Bytes of lists of blocks.
    pub block_list_bytes: u64,
    /// Bytes of bitmaps.
    pub bitmap_bytes: u64,
    /// Bytes of temporary source lists while the graph is written; 0 of a stored graph.
    pub sources_bytes: u64,
    /// Number of its column file.
    pub file: u32,
}

impl ColumnModel {
    /// The arcs into a batch of a graph of chunks, which has no cells.
    pub(crate) fn of_chunks(edges: u64) -> Self {
        ColumnModel {
            strips: 1,
            edges,
            ..ColumnModel::default()
        }
    }
}

/// Bytes of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileBytes {
    /// Blocks of all column files.
    pub data: u64,
    /// Their indices: lists of blocks.
    pub index: u64,
    /// Their bitmaps of sources.
    pub bitmaps: u64,
    /// Their weights.
    pub weights: u64,
    /// Where the cells are.
    pub directory: u64,
    /// Out-degrees.
    pub degrees: u64,
    /// Destination batches of every vertex.
    pub fanout: u64,
    /// Degrees and batches of the arcs in reverse, if the graph has them.
    pub reverse: u64,
    /// Vertex ids and the index of them.
    pub ids: u64,
    /// The order of the vertices.
    pub order: u64,
}

impl FileBytes {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.columns() + self.of_all()
    }
    /// Those that ranks write for themselves.
    #[must_use]
    pub fn columns(&self) -> u64 {
        let parts = [self.data, self.index, self.bitmaps, self.weights];
        parts.into_iter().fold(0, u64::saturating_add)
    }
    /// Those that are written once for all ranks.
    #[must_use]
    pub fn of_all(&self) -> u64 {
        let parts = [
            self.directory,
            self.degrees,
            self.fanout,
            self.reverse,
            self.ids,
            self.order,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Of the vertices of each partition how many have edges at all, and to which partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderCounts {
    /// To any.
    pub all: Vec<u64>,
    /// By partition of the vertex, then by that of its edges.
    pub to: Vec<Vec<u64>>,
}

/// Bytes of a file of the graph with so long a payload.
#[must_use]
pub fn file_bytes(payload: u64) -> u64 {
    // Beyond what any disk holds a few bytes more or less say nothing.
    FileRoot::of(payload.min(u64::MAX >> 2)).file_bytes()
}
