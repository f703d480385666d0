//! The rows of a result in ascending order of ids, and the blocks in which they are written.
//!
//! The engine returns an algorithm's values batch by batch. If indices have another order, `id_order_window.rs` sorts the values by id
//! first. The rows are all, or the rows of the vertices of some batches.
//!
//! Rows are numbered by ranks, places in the order of ids, so that ids and values can be read apart, and more than once. The end of a block
//! depends on the stored graph alone.

use std::ops::Range;
use std::sync::Arc;

use graphmill_algorithms::{Output, OutputValues as Array, holds_edge};
use graphmill_engine::Engine;
use graphmill_graph::{DISK_PAGE_BYTES, EdgeKind, GraphDims, IdKind, Order, StoredGraph};
use graphmill_storage::{Lease, MemoryBudget};

use crate::error::Error;
use crate::result::encode::EncodeTask;
use crate::result::id_order_window::IdOrderWindow;
use crate::result::memory::OutputMemory;
use crate::result::ordinals::OrdinalLookup;
use crate::result::sizes::{BLOCK_ROWS, DICTIONARY_BYTES, NAMES_BYTES, WRITER_BYTES};
use crate::result::values::{EdgePart, VALUE_BYTES, ValueColumn, element_bytes, ends};
use crate::result_error::ResultError;

/// Pages of ids that a block has ids of, at most: few rows where ids are long.
const BLOCK_PAGES: usize = 8;
/// Rows and blocks of a group, which is a row group in Parquet, at most.
pub(super) const GROUP_ROWS: u64 = if cfg!(test) { 1 << 17 } else { 1 << 20 };
const GROUP_BLOCKS: usize = 128;
/// Bytes of text ids that go out at a time.
pub(super) const TEXT_BYTES: usize = 2 << 20;
/// Bytes of a row of a block: id, value, whether there is one, and a column again as what a file holds.
const ROW_BYTES: usize = 48;
/// Bytes of a row with text ids, without the ids; add 8 bytes for each row of a group.
const TEXT_ROW_BYTES: usize = 128;
/// What memory is rounded up to.
const PAGE_BYTES: u64 = 1 << 13;
/// Bytes with which several workers are busy.
const WORKERS_BYTES: u64 = 64 << 20;

/// The columns of a result whose rows are edges.
pub(crate) const EDGE_COLUMNS: [&str; 3] = ["source", "destination", "weight"];

/// Bytes of memory that the result of a run on `graph` takes on its way out, at least.
///
/// An element of the array has `element` bytes.
pub(crate) fn bytes_needed(graph: &GraphDims, element: u64) -> u64 {
    let rows = row_bytes(graph, element) + paged_bytes(graph, element) + 16 * DISK_PAGE_BYTES;
    let window = IdOrderWindow::bytes_least(graph, element);
    rows + window + OrdinalLookup::bytes_least(graph) + WRITER_BYTES
}

/// Bytes with which values are put in the order of ids in one go, and all workers encode them.
pub(crate) fn bytes_wanted(graph: &GraphDims, element: u64) -> u64 {
    let window = IdOrderWindow::bytes_wanted(graph, element);
    bytes_needed(graph, element) + window + WORKERS_BYTES
}

/// Bytes of the widest batch of values while it is read from disk.
fn paged_bytes(graph: &GraphDims, element: u64) -> u64 {
    (graph.batches.widest() * element).next_multiple_of(PAGE_BYTES)
}

/// Bytes of the widest batch of values, of a block while it is encoded, and of the names in it.
///
/// Rows that hold edges have a mark each.
fn row_bytes(graph: &GraphDims, element: u64) -> u64 {
    let rows = graph.batches.vertices().min(BLOCK_ROWS);
    let block = match graph.ids {
        IdKind::Dense | IdKind::Integer | IdKind::Signed => rows * ROW_BYTES as u64,
        // Twice eight bytes more: of the vertex and of its value.
        IdKind::Uuid => rows * (ROW_BYTES as u64 + 16),
        IdKind::Text => rows * TEXT_ROW_BYTES as u64 + 4 * TEXT_BYTES as u64,
    };
    let held = if element > VALUE_BYTES {
        element + 1
    } else {
        element
    };
    graph.batches.widest() * held + block
}

/// Whether the values of a result are vertices.
pub(crate) fn are_vertices(output: &Output) -> bool {
    let is_ordinal = matches!(output.values, Array::Ordinal32(_) | Array::Ordinal64(_));
    is_ordinal || are_indices(output)
}

/// Whether the values of a result are vertices by index.
fn are_indices(output: &Output) -> bool {
    matches!(output.values, Array::Vertex32(_) | Array::Vertex64(_))
}

/// Whether the rows of a result are edges.
pub(crate) fn are_edges(output: &Output) -> bool {
    matches!(output.values, Array::Edges(_))
}

/// Consecutive rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowBlock {
    /// The ranks of their ids; if the rows are of some batches, ids without a row are among them.
    pub(super) ranks: Range<u64>,
    pub(super) rows: u64,
}

/// The rows of a result.
pub(crate) struct ResultRows<'a> {
    engine: &'a Engine,
    pub(super) output: &'a Output,
    pub(super) graph: Arc<StoredGraph>,
    pub(super) budget: MemoryBudget,
    /// The range of ranks that holds the ranks of the rows.
    pub(super) ranks: Range<u64>,
    /// True if some ranks of the range have no row.
    is_part: bool,
    /// Of rows that are edges, what tasks hold of them.
    part: EdgePart,
    /// Where the vertices are not in order of ids.
    window: Option<IdOrderWindow>,
    /// Where values are vertices by index.
    ordinals: Option<OrdinalLookup>,
    /// Values of a batch, or of the window, and the ranks of their ids.
    held: ValueColumn,
    held_ranks: Range<u64>,
    /// Which of them are rows; empty where all are.
    marks: Vec<bool>,
    _lease: Lease,
}

impl<'a> ResultRows<'a> {
    /// The rows of the vertices of `batches`, which the engine can read.
    ///
    /// # Errors
    /// The budget has no room for a batch and a block.
    pub(crate) fn new(
        engine: &'a Engine,
        output: &'a Output,
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        batches: Range<usize>,
    ) -> Result<ResultRows<'a>, Error> {
        let measure = graph.measure();
        let element = element_bytes(&output.values);
        let lease = budget.lease("rows of the result", row_bytes(&measure, element))?;
        let all = 0..graph.batches().len();
        let is_ordered = graph.order() == Order::Id;
        let ranks = match is_ordered {
            _ if batches.is_empty() => 0..0,
            true => {
                // The vertices of edges are no rows.
                let [start, end] = [batches.start, batches.end]
                    .map(|cut| graph.batches().cut(cut).min(graph.named_vertices()));
                start..end
            }
            false => 0..graph.vertices(),
        };
        let is_part = !is_ordered && batches != all || are_edges(output);
        let leave = paged_bytes(&measure, element) + 8 * DISK_PAGE_BYTES + WRITER_BYTES;
        let ordinals = are_indices(output)
            .then(|| {
                let leave = leave + IdOrderWindow::bytes_least(&measure, element);
                OrdinalLookup::new(graph, budget, leave)
            })
            .transpose()?;
        let window = (!is_ordered)
            .then(|| IdOrderWindow::new(graph, budget, &output.values, batches, leave))
            .transpose()?;
        Ok(ResultRows {
            engine,
            output,
            graph: Arc::clone(graph),
            budget: budget.clone(),
            ranks,
            is_part,
            part: EdgePart::Whole,
            window,
            ordinals,
            held: ValueColumn::empty(&output.values),
            held_ranks: 0..0,
            marks: Vec::new(),
            _lease: lease,
        })
    }

    /// Leaves only the rows whose ids have these ranks.
    pub(crate) fn narrow(&mut self, ranks: &Range<u64>) {
        let end = self.ranks.end.min(ranks.end);
        self.ranks = self.ranks.start.max(ranks.start).min(end)..end;
    }

    /// True if the column holds vertices whose ids are not their numbers.
    pub(super) fn has_names(&self) -> bool {
        self.holds_vertices() && self.graph.id_kind() != IdKind::Dense
    }

    /// True if the column holds vertices: as values, or as ends of edges.
    pub(super) fn holds_vertices(&self) -> bool {
        match are_edges(self.output) {
            true => !matches!(self.part, EdgePart::Weight { .. }),
            false => are_vertices(self.output),
        }
    }

    /// True if a vertex may have no value.
    pub(super) fn is_nullable(&self) -> bool {
        self.output.nullable && !are_edges(self.output)
    }

    /// From now on tasks hold that part of edges.
    pub(super) fn select(&mut self, part: EdgePart) {
        self.part = part;
    }

    /// The part of edges that is their weight.
    pub(super) fn weight_part(&self) -> EdgePart {
        let single = self.graph.edge_kind() == EdgeKind::F32;
        EdgePart::Weight { single }
    }

    /// What of the memory that is free now is for what.
    pub(super) fn memory(&self) -> OutputMemory {
        let element = element_bytes(&self.output.values);
        let paged = paged_bytes(&self.graph.measure(), element);
        let leave = paged + 8 * DISK_PAGE_BYTES + WRITER_BYTES;
        OutputMemory {
            is_text: self.graph.id_kind().has_bytes(),
            extra: self.budget.available().saturating_sub(leave) / 2,
        }
    }

    /// Returns the rows whose names are looked up together, their bytes, and the lease for both.
    pub(super) fn lookup_memory(&self) -> Result<(u64, u64, Lease), Error> {
        let free = self.memory().extra / 2;
        // A row has a rank, a bit in a bitmap of few bytes more, and as a rule a short name.
        let rows = (free / 64).clamp(BLOCK_ROWS, GROUP_ROWS);
        let bytes = (free / 2).clamp(NAMES_BYTES, 16 * NAMES_BYTES);
        let more = (rows - BLOCK_ROWS) * 32 + (bytes - NAMES_BYTES);
        let lease = self.budget.lease("names of vertices", more)?;
        Ok((rows, bytes, lease))
    }

    /// Returns the bytes of the names that one pass finds, and their lease.
    ///
    /// The lease includes `set_bytes` for a set of vertices.
    ///
    /// `None` if there is little memory.
    pub(super) fn names_memory(&self, set_bytes: u64) -> Option<(u64, Lease)> {
        let free = 2 * self.memory().extra;
        // Values of a group, its set, and its dictionary.
        let group = GROUP_ROWS * 16 + set_bytes + DICTIONARY_BYTES;
        let bytes = free.checked_sub(group + set_bytes)?;
        let lease = self.budget.lease("names of vertices", bytes + set_bytes);
        Some((bytes, lease.ok()?))
    }

    /// Returns the block that starts at a rank, of at most `rows_max` rows.
    ///
    /// If it has no row, no later rank has one.
    pub(super) fn block(&mut self, at: u64, rows_max: u64) -> Result<RowBlock, Error> {
        let end = self.ranks.end;
        if !self.is_part {
            let end = end.min(at + rows_max);
            let end = end.min(self.graph.rank_after_pages(at, BLOCK_PAGES - 1));
            let (ranks, rows) = (at..end, end.saturating_sub(at));
            return Ok(RowBlock { ranks, rows });
        }
        let (mut rank, mut rows) = (at, 0);
        while rank < end && rows < rows_max {
            self.hold(rank)?;
            let from = (rank - self.held_ranks.start) as usize;
            for is_row in &self.marks[from..] {
                if rows == rows_max {
                    break;
                }
                rows += u64::from(*is_row);
                rank += 1;
            }
        }
        let ranks = at..rank;
        Ok(RowBlock { ranks, rows })
    }

    /// Returns the blocks from a rank on that are written together; none after the last row.
    ///
    /// Together they have at most `rows_max` rows.
    pub(super) fn group(&mut self, at: u64, rows_max: u64) -> Result<Vec<RowBlock>, Error> {
        let (mut blocks, mut at, mut rows) = (Vec::new(), at, 0);
        while at < self.ranks.end && rows < rows_max && blocks.len() < GROUP_BLOCKS {
            let block = self.block(at, BLOCK_ROWS.min(rows_max - rows))?;
            at = block.ranks.end;
            rows += block.rows;
            if block.rows > 0 {
                blocks.push(block);
            }
        }
        Ok(blocks)
    }

    /// Sets up a task: the values of those ranks, where they are wanted, and which are rows.
    pub(super) fn fill(
        &mut self,
        block: &RowBlock,
        wants_values: bool,
        task: &mut EncodeTask,
    ) -> Result<(), Error> {
        task.range = block.ranks.clone();
        if !wants_values && !self.is_part {
            return Ok(());
        }
        let empty = ValueColumn::empty_part(&self.output.values, self.part);
        if !task.raw.is_like(&empty) {
            task.raw = empty;
        }
        task.raw.resize(0);
        let (part, are_edges) = (self.part, are_edges(self.output));
        self.each_held(&block.ranks, |held, rows, marks| {
            if !are_edges {
                task.marks.extend_from_slice(marks);
            }
            task.raw.append(held, rows, marks, part);
        })?;
        if are_edges {
            // Tasks know nothing of ranks without an edge, which may be many.
            task.range = 0..task.raw.len() as u64;
        }
        Ok(())
    }

    /// Sets up tasks over some blocks, one after the other.
    pub(super) fn fill_each(
        &mut self,
        blocks: &[RowBlock],
        wants_values: bool,
    ) -> impl FnMut(&mut EncodeTask) -> Result<bool, Error> {
        let mut blocks = blocks.iter();
        move |task| match blocks.next() {
            Some(block) => self.fill(block, wants_values, task).map(|()| true),
            None => Ok(false),
        }
    }

    /// The vertices that are values of those rows, or ends of edges, one after the other.
    pub(super) fn vertices(&mut self, block: &RowBlock, to: &mut Vec<u64>) -> Result<(), Error> {
        let (nullable, part) = (self.is_nullable(), self.part);
        self.each_held(&block.ranks, |held, rows, marks| {
            for (place, row) in rows.enumerate() {
                let is_row = marks.get(place) != Some(&false);
                match held {
                    _ if !is_row || nullable && held.is_null(row) => {}
                    ValueColumn::Edges(edges) => {
                        let [source, destination] = ends(&edges[row]);
                        let wants = |end| part == EdgePart::Whole || part == end;
                        to.extend(wants(EdgePart::Source).then_some(source));
                        to.extend(wants(EdgePart::Destination).then_some(destination));
                    }
                    _ => to.push(held.integer(row)),
                }
            }
        })
    }

    /// Calls `each` with values, the places of those for `ranks` among them, and the marks of these.
    fn each_held(
        &mut self,
        ranks: &Range<u64>,
        mut each: impl FnMut(&ValueColumn, Range<usize>, &[bool]),
    ) -> Result<(), Error> {
        let mut rank = ranks.start;
        while rank < ranks.end {
            self.hold(rank)?;
            let at = (rank - self.held_ranks.start) as usize;
            let count = (ranks.end.min(self.held_ranks.end) - rank) as usize;
            let marks = self.marks.get(at..at + count).unwrap_or_default();
            each(&self.held, at..at + count, marks);
            rank += count as u64;
        }
        Ok(())
    }

    /// Holds the value of the vertex of a rank, and others beside it.
    fn hold(&mut self, rank: u64) -> Result<(), Error> {
        if self.held_ranks.contains(&rank) {
            return Ok(());
        }
        let values = &self.output.values;
        self.held_ranks = match &mut self.window {
            Some(window) => {
                window.seek(rank);
                window.next(self.engine, values, &mut self.held, &mut self.marks)?;
                rank..rank + self.held.len() as u64
            }
            None => {
                let batch = self.graph.batches().batch_of(rank);
                self.held_ranks = 0..0;
                self.marks.clear();
                self.held.read(self.engine, values, batch)?;
                self.graph.batches().range(batch)
            }
        };
        if let Some(ordinals) = &mut self.ordinals {
            // A row without a value holds no vertex, so its number is not looked up.
            let (nullable, marks) = (self.output.nullable, &self.marks);
            let has_vertex = |values: &ValueColumn, row| {
                marks.get(row) != Some(&false) && !(nullable && values.is_null(row))
            };
            ordinals.replace(&mut self.held, self.output.column, has_vertex)?;
        }
        if let ValueColumn::Edges(rows) = &self.held {
            let vertices = self.graph.named_vertices();
            self.marks.resize(rows.len(), true);
            for (mark, row) in self.marks.iter_mut().zip(rows) {
                *mark &= holds_edge(row);
                let last = ends(row)[1];
                if *mark && last >= vertices {
                    let error = ResultError::NoEnd {
                        ordinal: last,
                        vertices,
                    };
                    self.held_ranks = 0..0;
                    return Err(Error::Result(error));
                }
            }
        }
        Ok(())
    }
}
