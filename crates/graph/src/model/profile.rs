//! What a graph is on disk, column by column: of one that is stored, or expected of one that is not.
//!
//! An estimate of an import or a run needs no other facts about a graph.

use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::MemoryBudget;

use crate::cell::directory::{Cell, Column, FileRoots};
use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileKind, PagedFile};
use crate::manifest::Manifest;
use crate::model::expected::GraphModel;
use crate::model::numbers::{ColumnModel, FileBytes, SenderCounts, file_bytes};
use crate::open::column_set::ColumnFileSet;
use crate::open::footprint::GraphDims;
use crate::open::stored_graph::StoredGraph;
use crate::partition::partition;
use crate::read::page_cache::PageCache;
use crate::stream::chunk_set::ChunkSet;
use crate::vertex::fanout_pages::FanoutChunk;
use crate::vertex::ids::page_index::index_bytes;
use crate::vertex::packed::PAGE_VERTICES;
use crate::vertex::page_index::PageIndex;

/// A graph in numbers.
#[derive(Clone, Debug)]
pub struct GraphProfile {
    /// What the memory of a run depends on.
    pub measure: GraphDims,
    /// Stored edges.
    pub arcs: u64,
    /// The cells into each destination batch.
    pub columns: Vec<ColumnModel>,
    /// Of whole files, padding and checksums included.
    pub files: FileBytes,
    /// Bytes of the budget that the open graph takes.
    pub open_bytes: u64,
    pub(crate) source: ProfileSource,
}

/// Who knows which vertices have edges to where.
#[derive(Clone, Debug)]
pub(crate) enum ProfileSource {
    Expected(GraphModel),
    Stored(Arc<StoredGraph>),
}

/// The arcs into each batch of a graph of chunks, which has no cells.
fn columns_of_chunks(chunks: &ChunkSet, batches: usize) -> Vec<ColumnModel> {
    let column = |batch| ColumnModel::of_chunks(chunks.arcs_into(batch));
    (0..batches).map(column).collect()
}

impl GraphProfile {
    /// Of a graph that is open on a budget of its own.
    pub fn of_stored(graph: &Arc<StoredGraph>, budget: &MemoryBudget) -> Self {
        let set = graph.forward();
        let column = |column: &Column| {
            let sum = |of: fn(&Cell) -> u64| column.cells().iter().map(of).sum();
            ColumnModel {
                cells: column.cells().len() as u64,
                strips: column.strips().len().max(1),
                edges: column.edges(),
                data_bytes: sum(Cell::data_bytes),
                block_list_bytes: sum(Cell::block_list_bytes),
                bitmap_bytes: sum(Cell::bitmap_bytes),
                sources_bytes: 0,
                file: column.file(),
            }
        };
        let bytes = |kind| graph.sets().map(|set| set.bytes(kind)).sum::<u64>();
        let of_chunks = |part: usize| graph.chunk_sets().map(|set| set.bytes()[part]).sum::<u64>();
        let of_forward = |kind| set.bytes(kind);
        let reverse = |kind| bytes(kind) - of_forward(kind);
        let own = |paged: Option<&PagedFile>| paged.map_or(0, |paged| paged.root.file_bytes());
        GraphProfile {
            measure: graph.measure(),
            arcs: graph.arcs(),
            columns: match graph.chunks() {
                None => set.columns().iter().map(column).collect(),
                Some(chunks) => columns_of_chunks(chunks, graph.batches().len()),
            },
            files: FileBytes {
                // Chunks are what cells are in the column layout.
                data: bytes(FileKind::Data) + of_chunks(0),
                index: bytes(FileKind::Index),
                bitmaps: bytes(FileKind::Bitmaps),
                weights: bytes(FileKind::Weights) + of_chunks(1),
                directory: bytes(FileKind::Directory),
                degrees: file_bytes(of_forward(FileKind::Degrees)),
                fanout: of_forward(FileKind::Fanout),
                reverse: match reverse(FileKind::Degrees) {
                    0 => 0,
                    degrees => file_bytes(degrees) + reverse(FileKind::Fanout),
                },
                ids: own(graph.ids().data()) + own(graph.ids().index()),
                order: own(graph.order_file()),
            },
            open_bytes: budget.total() - budget.available(),
            source: ProfileSource::Stored(Arc::clone(graph)),
        }
    }

    /// Returns the bytes of the budget that an open graph of `column_files` column files takes.
    ///
    /// `ids` are the payload bytes of the dictionary and of its index.
    pub(crate) fn open_bytes(
        measure: &GraphDims,
        column_files: u64,
        files: &FileBytes,
        ids: [u64; 2],
    ) -> u64 {
        let batches = measure.batches.len() as u64;
        let pages = measure.batches.vertices().div_ceil(PAGE_VERTICES);
        let strips = measure.strips as u64 * size_of::<Range<usize>>() as u64;
        let parts = [
            measure.cells.saturating_mul(size_of::<Cell>() as u64),
            batches * size_of::<Column>() as u64 + strips,
            column_files * (size_of::<ColumnFileSet>() + size_of::<FileRoots>()) as u64,
            2 * PageIndex::memory(pages),
            Manifest::cuts_bytes(batches + 1),
            files.all() / DISK_PAGE_BYTES * size_of::<u32>() as u64,
            match ids {
                [0, _] => 0,
                [data, index] => index_bytes(data / DISK_PAGE_BYTES, index),
            },
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the cut of the batches into partitions ([`partition()`](crate::partition())).
    ///
    /// It assumes that every rank has all the edges that it needs.
    #[must_use]
    pub fn cuts(&self, ranks: usize) -> Vec<usize> {
        let ranks = ranks.max(1);
        if let ProfileSource::Stored(graph) = &self.source {
            let here = vec![vec![true; self.columns.len()]; ranks];
            if let Some(cuts) = partition(graph, &here, None) {
                return cuts;
            }
        }
        // Where all batches are alike runs of as many are.
        let count = self.columns.len();
        (0..=ranks).map(|rank| rank * count / ranks).collect()
    }

    /// Returns which vertices of the partitions between `cuts` send messages, if all with edges do.
    ///
    /// It reads the fan-out lists of a stored graph. A graph of chunks has none, and no senders.
    ///
    /// # Errors
    /// Reading fails, or the budget has no room for a page.
    pub fn senders(
        &self,
        cuts: &[usize],
        budget: &MemoryBudget,
    ) -> Result<SenderCounts, FormatError> {
        let batches = &self.measure.batches;
        let ranges = (cuts.windows(2)).map(|cut| batches.cut(cut[0])..batches.cut(cut[1]));
        let ranges: Vec<Range<u64>> = ranges.collect();
        let vertices = batches.vertices();
        if self.measure.chunks.is_some() {
            let none = vec![0; ranges.len()];
            return Ok(SenderCounts {
                to: vec![none.clone(); ranges.len()],
                all: none,
            });
        }
        let graph = match &self.source {
            ProfileSource::Expected(graph) => return Ok(graph.senders(vertices, &ranges)),
            ProfileSource::Stored(graph) => graph,
        };
        let mut reader = PageCache::new(graph, budget, 2)?;
        let owner = |batch: usize| cuts.partition_point(|cut| *cut <= batch).saturating_sub(1);
        let counts = ranges.iter().map(|range| {
            let group = |batch| Some(owner(batch));
            having(graph, &mut reader, range, ranges.len(), group)
        });
        let (all, to) = counts.collect::<Result<_, _>>()?;
        Ok(SenderCounts { all, to })
    }

    /// Calls `f(batch, counts)` with the number of vertices of each batch with edges to each group.
    ///
    /// `counts` has an entry for each of `groups` groups of columns. `groups_of(batch)` names the group of
    /// every column that edges of the batch reach. It reads the fan-out lists of a stored graph.
    ///
    /// # Errors
    /// Reading fails, or the budget has no room for a page.
    pub fn needs(
        &self,
        groups: usize,
        groups_of: impl Fn(usize) -> Vec<Option<usize>>,
        budget: &MemoryBudget,
        mut f: impl FnMut(usize, &[f64]),
    ) -> Result<(), FormatError> {
        let batches = &self.measure.batches;
        let graph = match &self.source {
            ProfileSource::Expected(expected) => {
                expected.needs(batches, groups, groups_of, f);
                return Ok(());
            }
            ProfileSource::Stored(graph) => graph,
        };
        let mut reader = PageCache::new(graph, budget, 2)?;
        for batch in 0..batches.len() {
            let of_column = groups_of(batch);
            let group = |column: usize| of_column.get(column).copied().flatten();
            let (_, counts) = having(graph, &mut reader, &batches.range(batch), groups, group)?;
            let counts: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
            f(batch, &counts);
        }
        Ok(())
    }

    /// The source batches that a strip of a column covers, with those whose cells are empty.
    #[must_use]
    pub fn strip_sources(&self, column: usize, strip: usize) -> Range<usize> {
        let batches = self.columns.len();
        match &self.source {
            ProfileSource::Stored(graph) => graph.column(column).strip_sources(strip, batches),
            // All cells are alike.
            ProfileSource::Expected(_) => {
                let of_strip = batches.div_ceil(self.columns[column].strips);
                let begin = |strip: usize| (strip * of_strip).min(batches);
                begin(strip)..begin(strip + 1)
            }
        }
    }

    /// Calls `f` with the source batch of each cell of a strip, and the probability that the cell exists.
    pub fn each_cell(&self, column: usize, strip: usize, f: &mut dyn FnMut(usize, f64)) {
        match &self.source {
            ProfileSource::Stored(graph) => (graph.column(column).strip_cells(strip).iter())
                .for_each(|cell| f(cell.source_batch(), 1.0)),
            ProfileSource::Expected(_) => {
                let chance = self.columns[column].cells as f64 / self.columns.len() as f64;
                (self.strip_sources(column, strip)).for_each(|batch| f(batch, chance));
            }
        }
    }

    /// Calls `f` with each cell of a column: source batch, probability that it exists, mean bytes.
    pub fn each_cell_of_column(&self, column: usize, f: &mut dyn FnMut(usize, f64, f64)) {
        match &self.source {
            ProfileSource::Stored(graph) => (graph.column(column).cells().iter())
                .for_each(|cell| f(cell.source_batch(), 1.0, cell.data_bytes() as f64)),
            ProfileSource::Expected(_) => {
                let batches = self.columns.len();
                let of = &self.columns[column];
                let [chance, bytes] =
                    [of.cells, of.data_bytes].map(|all| all as f64 / batches as f64);
                (0..batches).for_each(|batch| f(batch, chance, bytes));
            }
        }
    }

    /// True if every edge is stored both ways.
    #[must_use]
    pub fn symmetric(&self) -> bool {
        self.measure.symmetric
    }

    /// Bytes of the weight of an edge.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.measure.edge.bytes() as u64
    }
}

/// Returns how many of some vertices have edges, and how many have edges to each group of columns.
fn having(
    graph: &StoredGraph,
    reader: &mut PageCache,
    range: &Range<u64>,
    groups: usize,
    group_of: impl Fn(usize) -> Option<usize>,
) -> Result<(u64, Vec<u64>), FormatError> {
    let (mut all, mut to) = (0, vec![0; groups]);
    let (mut of_position, mut last) = (Vec::new(), vec![u64::MAX; groups]);
    let each_chunk = |first: u64, chunk: &FanoutChunk<'_>| {
        of_position.clear();
        for position in 0..chunk.union() {
            of_position.push(group_of(chunk.batch(position)?));
        }
        let end = range.end.min(first + FanoutChunk::VERTICES as u64);
        for v in first.max(range.start)..end {
            let mut any = false;
            chunk.each((v - first) as usize, |position| {
                any = true;
                if let Some(group) = of_position[position]
                    && std::mem::replace(&mut last[group], v) != v
                {
                    to[group] += 1;
                }
            })?;
            all += u64::from(any);
        }
        Some(())
    };
    graph.fanouts_in(graph.forward(), reader, range.clone(), each_chunk)?;
    Ok((all, to))
}
