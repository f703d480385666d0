//! A stored graph, open: its description, its directory and its checksums in memory, the rest on disk.
//!
//! Opening reads `graph.json`, the directories, the checksum tables of all files and the sparse indices of degrees,
//! fan-out and ids; every file's length and table is checked then, every page when it is read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;
use graphmill_storage::{Disk, FileHandle, Lease, MemoryBudget, Open};

use crate::batches::Batches;
use crate::cell::directory::{self, Column};
use crate::edge_fields::EdgeFields;
use crate::error::FormatError;
use crate::file::extent::Extent;
use crate::file::page::{
    DISK_PAGE_BYTES, FileId, FileKind, FileSide, PageReader, PagedFile, malformed,
};
use crate::id_type::IdType;
use crate::manifest::{IdKind, Manifest, NAME};
use crate::open::column_set::ColumnSet;
use crate::open::open_builder::OpenBuilder;
use crate::spec::{EdgeKind, Layout};
use crate::stream::chunk_set::ChunkSet;
use crate::stream::pair::PairLayout;
use crate::stream::shape::STREAM_CHUNK_BYTES_MAX;
use crate::vertex::ids::page_index::IdIndex;
use crate::weight_range::WeightRange;

/// Files that are kept open; more are opened again when they are needed.
const HANDLES_MAX: usize = 256;

/// A graph on disk, open for reading. Shared by reference; nothing in it changes.
#[derive(Debug)]
pub struct StoredGraph {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    graph_id: u64,
    meta: Arc<Manifest>,
    batches: Arc<Batches>,
    forward: Arc<ColumnSet>,
    reverse: Option<Arc<ColumnSet>>,
    /// The chunks of each side, in the stream layout.
    chunks: Option<Arc<ChunkSet>>,
    reverse_chunks: Option<Arc<ChunkSet>>,
    ids: Arc<IdIndex>,
    order: Option<Arc<PagedFile>>,
    handles: Mutex<Vec<(FileId, FileHandle)>>,
    _cuts: Arc<Lease>,
}

impl StoredGraph {
    /// Opens the graph in directory `path`.
    ///
    /// The open graph leases its memory from `budget` until it is dropped: about 50 bytes a cell, 4 a page,
    /// 16 for 4096 vertices, 8 and the id for each 64 KiB of ids.
    ///
    /// # Errors
    /// It is not a graph, or of another format; a file is missing, has another length or other checksums than those written down; a
    /// directory makes no sense; the budget is too small.
    pub fn open(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
    ) -> Result<Self, FormatError> {
        Self::open_with(disk, budget, path, false)
    }

    /// Opens a graph like [`open`](Self::open), but other hosts may have some of its column files.
    ///
    /// [`has_batch`](Self::has_batch) returns which batches are in this directory.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_in_part(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
    ) -> Result<Self, FormatError> {
        Self::open_with(disk, budget, path, true)
    }

    fn open_with(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        in_part: bool,
    ) -> Result<Self, FormatError> {
        let (mut meta, cuts) = Manifest::read(&**disk, budget, path)?;
        let describe = |what: String| {
            let path = path.join(NAME);
            FormatError::Description { path, what }
        };
        let graph_id = u64::from_str_radix(&meta.graph_id, 16);
        let graph_id = graph_id.map_err(|_| describe("its graph id is no number".into()))?;
        let batches =
            Batches::new(std::mem::take(&mut meta.batches)).map_err(|e| describe(e.to_string()))?;
        if batches.vertices() != meta.vertices {
            let (end, vertices) = (batches.vertices(), meta.vertices);
            let what = format!("its batches end at {end} of {vertices} vertices");
            return Err(describe(what));
        }
        if let Some(edges) = meta.edge_vertices
            && (edges.count > meta.vertices || meta.order.is_some() || !meta.directed)
        {
            let what = "its vertices of edges are not the last ones of a directed graph";
            return Err(describe(what.into()));
        }
        let fields = EdgeFields::new(meta.edge_fields.list().to_vec()).map_err(describe)?;
        if fields.kind() != Some(meta.edge).filter(|edge| edge.is_record()) {
            let what = "edge_fields and the kind of edge data disagree on the bytes of an edge";
            return Err(describe(what.into()));
        }
        let has_weights = meta.edge.is_weight() && meta.arcs > 0;
        if meta.weights.is_some() != has_weights {
            let what = "its range of weights is not that of its edges";
            return Err(describe(what.into()));
        }
        if let Some(stream) = &meta.stream {
            let is_sound = PairLayout::new(&batches).is_ok()
                && stream.reverse.is_some() == meta.reverse.is_some()
                && (4096..=STREAM_CHUNK_BYTES_MAX as u64).contains(&stream.chunk_bytes)
                && meta.order.is_none();
            if !is_sound {
                let what =
                    "its section on chunks contradicts its batches, its order or its reverse";
                return Err(describe(what.into()));
            }
        }
        let fetch = PageReader::new(&**disk, budget)?;
        let mut opening = OpenBuilder {
            disk,
            fetch,
            budget,
            path,
            graph_id,
            meta: &meta,
            batches: &batches,
            in_part,
        };
        let forward = opening.columns(FileSide::Forward, &meta.columns)?;
        let reverse = (meta.reverse.as_ref()).map(|meta| opening.columns(FileSide::Reverse, meta));
        let reverse = reverse.transpose()?;
        let chunks = opening.chunks(FileSide::Forward)?;
        let reverse_chunks = opening.chunks(FileSide::Reverse)?;
        let ids = opening.ids()?;
        let order = opening.order()?;
        Ok(StoredGraph {
            disk: Arc::clone(disk),
            path: path.to_path_buf(),
            graph_id,
            meta: Arc::new(meta),
            batches: Arc::new(batches),
            forward: Arc::new(forward),
            reverse: reverse.map(Arc::new),
            chunks: chunks.map(Arc::new),
            reverse_chunks: reverse_chunks.map(Arc::new),
            ids: Arc::new(ids),
            order: order.map(Arc::new),
            handles: Mutex::default(),
            _cuts: Arc::new(cuts),
        })
    }
    /// Returns the transpose of the graph; `None` if it was imported without `--reverse`.
    ///
    /// The forward columns of one are the reverse columns of the other. Both share all that is in memory.
    /// An undirected graph has none, because it is its own transpose.
    #[must_use]
    pub fn transpose(&self) -> Option<StoredGraph> {
        if self.symmetric() {
            return None;
        }
        let columns = (self.reverse.clone()?, Some(Arc::clone(&self.forward)));
        Some(self.turned(columns, self.reverse_chunks.clone()))
    }
    /// Returns the transpose of a graph in the stream layout, whose chunks are these.
    ///
    /// It has the degrees of this graph.
    #[must_use]
    pub fn transposed_by(&self, chunks: ChunkSet) -> StoredGraph {
        self.turned((Arc::clone(&self.forward), None), Some(Arc::new(chunks)))
    }
    /// Returns the graph with these columns and chunks; its own chunks are the reverse of these.
    fn turned(
        &self,
        (forward, reverse): (Arc<ColumnSet>, Option<Arc<ColumnSet>>),
        chunks: Option<Arc<ChunkSet>>,
    ) -> StoredGraph {
        StoredGraph {
            disk: Arc::clone(&self.disk),
            path: self.path.clone(),
            graph_id: self.graph_id,
            meta: Arc::clone(&self.meta),
            batches: Arc::clone(&self.batches),
            forward,
            reverse,
            chunks,
            reverse_chunks: self.chunks.clone(),
            ids: Arc::clone(&self.ids),
            order: self.order.clone(),
            handles: Mutex::default(),
            _cuts: Arc::clone(&self._cuts),
        }
    }
    /// True if this directory has the column of a batch, and that of the reverse if there is one.
    pub fn has_batch(&self, batch: usize) -> bool {
        if self.meta.stream.is_some() {
            return self
                .chunk_sets()
                .all(|set| (0..set.files()).all(|file| set.has_file(file)));
        }
        let file_of = |set: &ColumnSet| set.columns[batch].file() as usize;
        self.sets().all(|set| set.files[file_of(set)][0].is_some())
    }
    /// |V|.
    pub fn vertices(&self) -> u64 {
        self.meta.vertices
    }
    /// The number of vertices that have ids; the vertices of edges come after them.
    pub fn named_vertices(&self) -> u64 {
        self.meta.named_vertices()
    }
    /// Number of stored edges; an undirected edge is two.
    pub fn arcs(&self) -> u64 {
        self.meta.arcs
    }
    /// The cut of the vertices.
    pub fn batches(&self) -> &Batches {
        &self.batches
    }
    /// What an edge carries.
    pub fn edge_kind(&self) -> EdgeKind {
        self.meta.edge
    }
    /// The fields of the record that an edge carries; none if it carries a weight or nothing.
    pub fn edge_fields(&self) -> &EdgeFields {
        &self.meta.edge_fields
    }
    /// Whether edges have a direction.
    pub fn directed(&self) -> bool {
        self.meta.directed
    }
    /// Whether every edge is stored both ways.
    pub fn symmetric(&self) -> bool {
        !self.meta.directed
    }
    /// A number that tells it from other graphs.
    pub fn graph_id(&self) -> u64 {
        self.graph_id
    }
    /// What `graph.json` says.
    pub fn meta(&self) -> &Manifest {
        &self.meta
    }
    /// The directory it was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The disk it was opened on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }
    /// The type of ids outside, which results have.
    pub fn id_type(&self) -> IdType {
        self.meta.ids.id_type()
    }
    /// How vertices are named.
    pub fn id_kind(&self) -> IdKind {
        self.meta.ids.kind
    }
    /// The columns of the graph.
    #[inline]
    pub fn forward(&self) -> &ColumnSet {
        &self.forward
    }
    /// The columns of the graph with every arc turned round, when it was imported with `--reverse`.
    #[inline]
    pub fn reverse(&self) -> Option<&ColumnSet> {
        self.reverse.as_deref()
    }
    /// The forward columns, and the reverse ones if there are any.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &ColumnSet> {
        std::iter::once(self.forward()).chain(self.reverse())
    }
    /// The cells into batch `d`.
    #[inline]
    pub fn column(&self, d: usize) -> &Column {
        self.forward.column(d)
    }
    /// How its arcs are stored.
    pub fn layout(&self) -> Layout {
        match self.meta.stream {
            None => Layout::Column,
            Some(_) => Layout::Stream,
        }
    }
    /// The chunks of the graph; `None` in the column layout.
    pub fn chunks(&self) -> Option<&ChunkSet> {
        self.chunks.as_deref()
    }
    /// The chunks of the graph with every arc turned round, when it was imported with `--reverse`.
    pub fn reverse_chunks(&self) -> Option<&ChunkSet> {
        self.reverse_chunks.as_deref()
    }
    /// The number of files of chunks of each side; 0 in the column layout.
    pub fn chunk_files(&self) -> usize {
        self.chunks().map_or(0, ChunkSet::files)
    }
    /// True if this host has a file of chunks, of both sides if there are two.
    pub fn has_chunk_file(&self, file: usize) -> bool {
        self.chunk_sets().all(|set| set.has_file(file))
    }
    /// The forward chunks, and the reverse ones if there are any.
    pub(crate) fn chunk_sets(&self) -> impl Iterator<Item = &ChunkSet> {
        self.chunks().into_iter().chain(self.reverse_chunks())
    }
    /// Where the blocks of a cell of the graph are.
    pub fn data_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        self.forward.data_extent(column, cell)
    }
    /// Where the list of blocks of a cell of the graph is.
    pub fn block_list_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        self.forward.block_list_extent(column, cell)
    }
    /// Where the bitmap of a cell of the graph is.
    pub fn bitmap_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        self.forward.bitmap_extent(column, cell)
    }
    /// Where the weights of a cell of the graph are.
    pub fn weights_extent(&self, column: usize, cell: &directory::Cell) -> Extent {
        self.forward.weights_extent(column, cell, self.meta.edge)
    }
    /// The error for a cell whose blocks are not as many as the directory says.
    pub fn corrupt_cell(&self, column: usize, cell: &directory::Cell) -> FormatError {
        let extent = self.data_extent(column, cell);
        let from = cell.source_batch();
        let what = format!("the cell of batches {from} to {column} makes no sense");
        self.corrupt(extent.file, extent.bytes.start, what)
    }
    /// The error for a number beyond the last vertex of a batch, found in a cell of its column.
    pub fn outside_batch(&self, batch: usize, local: u64) -> FormatError {
        let column = self.column(batch);
        let file = FileId::new(self.forward.side, FileKind::Data, column.file());
        let at = (column.cells().first()).map_or(0, |cell| cell.data().start);
        let what = format!("an edge ends at vertex {local} of batch {batch}, which has fewer");
        self.corrupt(file, at, what)
    }
    /// The error for degrees of a batch's vertices that its cells contradict.
    pub fn degrees_disagree(&self, batch: usize) -> FormatError {
        let what = format!("the degrees of batch {batch} are not those of its cells");
        self.corrupt(self.forward.degrees.id, 0, what)
    }
    /// The error for bytes that make no sense although they have their checksum.
    pub fn corrupt(&self, file: FileId, offset: u64, what: impl Into<String>) -> FormatError {
        malformed(file.path(&self.path), offset, what)
    }
    /// Bytes of a file's payload.
    pub(crate) fn paged(&self, id: FileId) -> Result<&PagedFile, FormatError> {
        let found = match id.kind {
            FileKind::Ids => self.ids.data(),
            FileKind::IdsIndex => self.ids.index(),
            FileKind::Order => self.order_file(),
            FileKind::Chunks | FileKind::ChunkDirectory => {
                let mut sets = self.chunk_sets().filter(|set| set.side() == id.side);
                sets.next().and_then(|set| set.paged(id))
            }
            _ => self.side(id.side)?.paged(id),
        };
        // Only files of columns may be missing in an open graph.
        found.ok_or_else(|| {
            let path = id.path(&self.path);
            FormatError::Elsewhere { path }
        })
    }
    /// All files but graph.json.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &PagedFile> {
        let ids = [self.ids.data(), self.ids.index(), self.order_file()];
        let columns = self.sets().flat_map(ColumnSet::all_files);
        let chunks = self.chunk_sets().flat_map(ChunkSet::all_files);
        columns.chain(chunks).chain(ids.into_iter().flatten())
    }
    #[inline]
    pub(crate) fn check(
        &self,
        paged: &PagedFile,
        page: u64,
        bytes: &[u8],
    ) -> Result<(), FormatError> {
        paged.check(&self.path, self.graph_id, page, bytes)?;
        match paged.id.kind {
            FileKind::Weights => self.check_weights(paged, page, bytes),
            _ => Ok(()),
        }
    }
    /// Rejects weights that are not numbers or outside the range of graph.json: algorithms rely on it.
    fn check_weights(&self, paged: &PagedFile, page: u64, bytes: &[u8]) -> Result<(), FormatError> {
        let at = page * DISK_PAGE_BYTES;
        let payload = paged.root.payload.saturating_sub(at).min(DISK_PAGE_BYTES);
        let weights = bytes.get(..payload as usize).unwrap_or(bytes);
        match WeightRange::holds(self.meta.weights, weights, self.meta.edge) {
            true => Ok(()),
            false => Err(self.corrupt(paged.id, at, WeightRange::NOT_HELD)),
        }
    }
    /// An open file.
    pub(crate) fn handle(&self, id: FileId) -> Result<FileHandle, FormatError> {
        let mut handles = lock(&self.handles);
        match handles.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => Ok(handles[at].1.clone()),
            Err(mut at) => {
                let handle = self.disk.open(&id.path(&self.path), Open::Read)?;
                if handles.len() >= HANDLES_MAX {
                    // Who reads a file now holds its handle; it stays open as long as that.
                    handles.clear();
                    at = 0;
                }
                handles.insert(at, (id, handle.clone()));
                Ok(handle)
            }
        }
    }
    /// The order of the vertices, where it is not that of ids.
    pub(crate) fn order_file(&self) -> Option<&PagedFile> {
        self.order.as_deref()
    }
    /// The dictionary.
    pub(crate) fn ids(&self) -> &IdIndex {
        &self.ids
    }
    /// The columns of one of the two sides, as they were imported, whichever way round the graph is seen.
    ///
    /// # Errors
    /// The graph has no reverse.
    #[inline]
    pub fn side(&self, side: FileSide) -> Result<&ColumnSet, FormatError> {
        let found = self.sets().find(|set| set.side == side);
        found.ok_or_else(|| {
            FormatError::misuse("this graph has no reverse (import it with --reverse)")
        })
    }
}
