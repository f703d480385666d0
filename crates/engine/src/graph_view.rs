//! A stored graph in one direction: its cells by source batch, and bytes of them on disk.

use std::ops::{Add, Range};
use std::sync::Arc;

use graphmill_graph::{Cell, Extent, GraphDims, StoredGraph};
use graphmill_storage::{Lease, MemoryBudget};

use crate::error::EngineError;

/// The bytes that a sparse pass may have to read, because they are not in memory, on all ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UncachedBytes {
    /// Of the lists of the blocks of cells.
    pub(crate) block_lists: u64,
    /// Of cells, and of the weights that are asked for.
    pub(crate) cells: u64,
    /// Of these, in memory and not.
    pub(crate) all_cells: u64,
    /// Of fan-out lists.
    pub(crate) fanout: u64,
    /// Files that an edge lies in: one, or that of its weight too.
    pub(crate) files: u64,
}

/// A graph in one orientation: as stored, or transposed.
pub(crate) struct GraphView {
    pub(crate) graph: Arc<StoredGraph>,
    /// The cells of each source batch, one row after the other, and where each row begins.
    pub(crate) cells_by_source: (Vec<CellPosition>, Vec<usize>),
    /// Bytes of the lists of blocks of the column that has most of them.
    pub(crate) longest_block_lists: u64,
    /// Bytes of all lists of blocks, and cells without weights.
    pub(crate) bytes: CellBytes,
    _lease: Lease,
}

impl GraphView {
    pub(crate) fn new(graph: Arc<StoredGraph>, budget: &MemoryBudget) -> Result<Self, EngineError> {
        let columns = graph.forward().columns().iter();
        let cells = columns.map(|column| column.cells().len() as u64).sum();
        let bytes = rows_bytes(cells, graph.batches().len() + 1);
        let _lease = budget.lease("the rows of cells", bytes)?;
        let (mut bytes, mut longest_block_lists) = (CellBytes::default(), 0);
        for column in graph.forward().columns() {
            let sum = |of: fn(&Cell) -> u64| column.cells().iter().map(of).sum::<u64>();
            let block_lists = sum(Cell::block_list_bytes);
            longest_block_lists = block_lists.max(longest_block_lists);
            bytes.block_lists += block_lists;
            bytes.cells += sum(Cell::data_bytes);
        }
        Ok(GraphView {
            bytes,
            longest_block_lists,
            cells_by_source: cells_by_source(&graph),
            graph,
            _lease,
        })
    }

    /// Returns the bytes of the budget for all orientations that passes use.
    pub(crate) fn memory(graph: &GraphDims) -> u64 {
        rows_bytes(graph.cells, graph.orientations * (graph.batches.len() + 1))
    }
}

/// Returns the bytes of `cells` cells in rows, and of `begins` row offsets.
fn rows_bytes(cells: u64, begins: usize) -> u64 {
    cells * size_of::<CellPosition>() as u64 + (begins * size_of::<usize>()) as u64
}

/// Where one cell of a row is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CellPosition {
    pub(crate) column: u32,
    /// Its position among the cells of the column.
    pub(crate) position: u32,
}

/// The cells of each source batch, in order of columns, and where each row begins.
fn cells_by_source(graph: &StoredGraph) -> (Vec<CellPosition>, Vec<usize>) {
    let batches = graph.batches().len();
    let mut lengths = vec![0; batches];
    for cell in (0..batches).flat_map(|column| graph.column(column).cells()) {
        lengths[cell.source_batch()] += 1;
    }
    let begins = starts(lengths.into_iter());
    let mut next = begins.clone();
    let mut places = vec![CellPosition::default(); begins[batches]];
    for column in 0..batches {
        for (position, cell) in graph.column(column).cells().iter().enumerate() {
            let at = &mut next[cell.source_batch()];
            places[*at] = CellPosition {
                column: column as u32,
                position: position as u32,
            };
            *at += 1;
        }
    }
    (places, begins)
}

/// Returns where each of some parts begins that follow each other, and where the last one ends.
pub(crate) fn starts<T: Copy + Default + Add<Output = T>>(
    lengths: impl Iterator<Item = T>,
) -> Vec<T> {
    let ends = lengths.scan(T::default(), |end, length| {
        *end = *end + length;
        Some(*end)
    });
    std::iter::once(T::default()).chain(ends).collect()
}

/// Returns the extent of a range of bytes, counted from the first of another extent.
pub(crate) fn within(whole: Extent, part: &Range<u64>) -> Extent {
    let start = whole.bytes.start;
    Extent {
        bytes: start + part.start..start + part.end,
        ..whole
    }
}

/// Adds an extent to others; it is one with the last if it begins where that ends.
pub(crate) fn join(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        Some(last) if last.file == next.file && last.bytes.end == next.bytes.start => {
            last.bytes.end = next.bytes.end;
        }
        _ => extents.push(next),
    }
}

/// Bytes of cells, and of what a search on disk needs to find blocks in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellBytes {
    pub(crate) block_lists: u64,
    pub(crate) cells: u64,
}
