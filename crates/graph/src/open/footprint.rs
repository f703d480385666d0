//! The counts that the memory of an open graph depends on, or bounds on them for one that is not open.
//!
//! A [`OpenFootprint`] is made where opening was refused for want of memory. It reads `graph.json` and asks for the lengths of the files,
//! so it takes little memory itself, and what it says is enough: counts that are only in the directories are bounded by the
//! directories' lengths, by the batches and by the edges.

use std::ops::Range;
use std::path::Path;

use graphmill_storage::{Disk, MemoryBudget};

use crate::batches::Batches;
use crate::cell::directory::{Column, DirectoryBounds};
use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide, PagedFile};
use crate::manifest::{IdKind, Manifest};
use crate::open::column_set::{ColumnFileSet, ColumnSet};
use crate::open::stored_graph::StoredGraph;
use crate::spec::{EdgeKind, Layout};
use crate::stream::directory::ChunkList;
use crate::stream::pair::PairLayout;
use crate::vertex::ids::page_index::index_bytes;
use crate::vertex::order::{ORDER, Order};
use crate::vertex::packed::PAGE_VERTICES;
use crate::vertex::page_index::PageIndex;

/// Bounds on the chunks of a graph, or of its transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkDims {
    /// Bytes of a chunk at most, without the data of its arcs.
    pub chunk_bytes: usize,
    /// Arcs of a chunk at most.
    pub edges_max: usize,
    /// Arcs of all chunks.
    pub arcs: u64,
}

impl ChunkDims {
    /// Returns the bounds for chunks of `chunk_bytes` bytes of a graph with `arcs` arcs.
    #[must_use]
    pub fn new(batches: &Batches, arcs: u64, chunk_bytes: usize) -> Option<ChunkDims> {
        let layout = PairLayout::new(batches).ok()?;
        let capacity = layout.capacity(batches.len(), chunk_bytes);
        let edges_max = usize::try_from(arcs).unwrap_or(usize::MAX).min(capacity);
        Some(ChunkDims {
            chunk_bytes: layout
                .chunk_bytes(batches.len(), edges_max)
                .min(chunk_bytes),
            edges_max,
            arcs,
        })
    }
}

/// The counts that the memory of a pass depends on, for all columns that passes read.
///
/// These are the columns of the graph, and of its reverse if it was imported with `--reverse`.
#[derive(Clone, Debug)]
pub struct GraphDims {
    /// The cut of the vertices.
    pub batches: Batches,
    /// The batches that this rank owns of them; none said where there is one rank, which owns all.
    pub own: Option<Range<usize>>,
    /// How vertices are named.
    pub ids: IdKind,
    /// The order of the vertices.
    pub order: Order,
    /// How arcs are stored.
    pub layout: Layout,
    /// True if every edge is stored both ways.
    pub symmetric: bool,
    /// What an edge carries.
    pub edge: EdgeKind,
    /// Sets of columns, 1 or 2.
    pub orientations: usize,
    /// Cells of all sets.
    pub cells: u64,
    /// Strips of the column that has most of them; 1 at least.
    pub strips_of_column: usize,
    /// Strips of all columns, of each 1 at least.
    pub strips: usize,
    /// Its chunks, in the stream layout.
    pub chunks: Option<ChunkDims>,
}

impl GraphDims {
    /// A graph without vertices: no graph takes less.
    #[must_use]
    pub fn nothing() -> GraphDims {
        GraphDims {
            batches: Batches::default(),
            own: None,
            ids: IdKind::Dense,
            order: Order::Id,
            layout: Layout::Column,
            symmetric: true,
            edge: EdgeKind::None,
            orientations: 1,
            cells: 0,
            strips_of_column: 1,
            strips: 0,
            chunks: None,
        }
    }
}

/// What a graph takes that is not open.
#[derive(Clone, Debug)]
pub struct OpenFootprint {
    /// Bytes of the budget that opening takes at most at one time; what stays is less.
    pub opening_bytes: u64,
    /// No count is less than it will turn out to be.
    pub measure: GraphDims,
}

/// Memory for the description while it is parsed that a forecast may take beside the budget.
const DESCRIPTION_BYTES_MAX: u64 = 32 << 20;
/// Bytes of an entry of a list of pages at most: two varints, of 64 and of 32 bits.
const LIST_ENTRY_BYTES_MAX: u64 = 15;
const LIST_TRAILER_BYTES: u64 = 16;

impl StoredGraph {
    /// What memory depends on.
    pub fn measure(&self) -> GraphDims {
        self.measure_of(None)
    }

    /// The same for a rank that owns some of the batches.
    pub fn measure_of(&self, own: Option<Range<usize>>) -> GraphDims {
        // The reverse of an undirected graph is not read.
        let orientations = || self.sets().take(1 + usize::from(self.directed()));
        let strips = || {
            (0..self.batches().len()).map(|batch| {
                let of = orientations().map(|set| set.column(batch).strips().len());
                of.max().unwrap_or(1).max(1)
            })
        };
        let cells = |set: &ColumnSet| -> u64 {
            let columns = set.columns().iter();
            columns.map(|column| column.cells().len() as u64).sum()
        };
        GraphDims {
            batches: self.batches().clone(),
            own,
            ids: self.id_kind(),
            order: self.order(),
            layout: self.layout(),
            symmetric: self.symmetric(),
            edge: self.edge_kind(),
            orientations: orientations().count(),
            cells: orientations().map(cells).sum(),
            strips_of_column: strips().max().unwrap_or(1),
            strips: strips().sum(),
            chunks: (self.meta().stream.as_ref()).and_then(|stream| {
                ChunkDims::new(self.batches(), self.arcs(), stream.chunk_bytes as usize)
            }),
        }
    }

    /// What the graph in directory `path` takes, without opening it.
    ///
    /// # Errors
    /// It is not a graph, or of another format; its description makes no sense, or is itself larger than a forecast may read.
    pub fn forecast(disk: &dyn Disk, path: &Path) -> Result<OpenFootprint, FormatError> {
        let budget = MemoryBudget::new(DESCRIPTION_BYTES_MAX);
        let (mut meta, _cuts) = Manifest::read(disk, &budget, path)?;
        let batches = Batches::new(std::mem::take(&mut meta.batches))?;
        let columns = |side| ColumnTotals::new(disk, path, &meta, &batches, side);
        let forward = columns(FileSide::Forward)?;
        let cuts = Manifest::cuts_bytes(batches.cuts().len() as u64);
        let mut kept = cuts + DISK_PAGE_BYTES + forward.kept;
        let mut transient = forward.transient;
        let (mut orientations, mut most) = (1, forward.most);
        if meta.reverse.is_some() {
            let reverse = columns(FileSide::Reverse)?;
            kept += reverse.kept;
            transient = transient.max(reverse.transient);
            if meta.directed {
                orientations += 1;
                most.cells += reverse.most.cells;
                most.strips_of_column = most.strips_of_column.max(reverse.most.strips_of_column);
                most.strips = most.strips.saturating_add(reverse.most.strips);
            }
        }
        if meta.ids.kind != IdKind::Dense {
            let length = |kind| length(disk, &FileId::new(FileSide::Forward, kind, 0).path(path));
            let (data, index) = (length(FileKind::Ids)?, length(FileKind::IdsIndex)?);
            kept += checksums(data) + checksums(index);
            kept += index_bytes(data / DISK_PAGE_BYTES, index);
            transient = transient.max(index);
        }
        let mut order = Order::Id;
        if meta.order.is_some() {
            order = Order::Degree;
            kept += checksums(length(disk, &ORDER.path(path))?);
        }
        Ok(OpenFootprint {
            opening_bytes: Manifest::reading_bytes(disk, path)?.max(kept + transient),
            measure: GraphDims {
                ids: meta.ids.kind,
                order,
                layout: meta.stream.map_or(Layout::Column, |_| Layout::Stream),
                symmetric: !meta.directed,
                edge: meta.edge,
                orientations,
                cells: most.cells,
                strips_of_column: most.strips_of_column.max(1) as usize,
                strips: most.strips.max(batches.len() as u64) as usize,
                chunks: (meta.stream.as_ref()).and_then(|stream| {
                    ChunkDims::new(&batches, meta.arcs, stream.chunk_bytes as usize)
                }),
                own: None,
                batches,
            },
        })
    }
}

/// What one set of columns takes.
struct ColumnTotals {
    most: DirectoryBounds,
    /// As long as the graph is open.
    kept: u64,
    /// While it is opened, at most at one time.
    transient: u64,
}

impl ColumnTotals {
    fn new(
        disk: &dyn Disk,
        path: &Path,
        meta: &Manifest,
        batches: &Batches,
        side: FileSide,
    ) -> Result<ColumnTotals, FormatError> {
        let is_stream = meta.stream.is_some();
        let path_of = |kind| FileId::new(side, kind, 0).path(path);
        let directory = path_of(match is_stream {
            true => FileKind::ChunkDirectory,
            false => FileKind::Directory,
        });
        let bytes = length(disk, &directory)?;
        let count = batches.len() as u64;
        let pages = batches.vertices().div_ceil(PAGE_VERTICES);
        let (most, mut kept) = if is_stream {
            let columns = count * size_of::<Column>() as u64 + PageIndex::memory(pages);
            let chunks = ChunkList::memory(ChunkList::chunks_max(bytes), count);
            (DirectoryBounds::default(), chunks + columns)
        } else {
            let most = DirectoryBounds::of(bytes, count, meta.arcs, meta.strip_edges_max);
            let columns = count * size_of::<ColumnFileSet>() as u64 + 2 * PageIndex::memory(pages);
            let kept = most.bytes + columns;
            (most, kept)
        };
        let degrees = path_of(FileKind::Degrees);
        let of_degrees = degrees.parent().filter(|_| is_stream);
        for folder in directory.parent().into_iter().chain(of_degrees) {
            for file in disk.list(folder)? {
                kept += checksums(length(disk, &file)?);
            }
        }
        let list = pages * LIST_ENTRY_BYTES_MAX + LIST_TRAILER_BYTES;
        Ok(ColumnTotals {
            most,
            kept,
            transient: bytes.max(list),
        })
    }
}

/// Returns the bytes of a file, at least the bytes of its payload.
fn length(disk: &dyn Disk, file: &Path) -> Result<u64, FormatError> {
    Ok(disk.stamp(file)?.bytes)
}

/// Returns an upper bound on the bytes of the checksums of a file of `file_bytes` bytes.
fn checksums(file_bytes: u64) -> u64 {
    PagedFile::memory(FileRoot::of(file_bytes))
}
