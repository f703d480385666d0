//! Writes a stored graph: column files first, in any order and from any thread, then what follows from them.
//!
//! 1. [`GraphWriter::column_file`] gives a writer for one file; edges go in by destination batch, source batch, key.
//!    It writes data, index, bitmaps and weights, and a temporary file with the sources of each cell and
//!    the number of edges of each.
//! 2. [`GraphWriter::finish`] writes the directory, reads the spools row by row for degrees and fan-out, and puts
//!    `graph.json` last. A directory without it is not a graph, so a crash leaves none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;
use graphmill_storage::{Disk, MemoryBudget};

use crate::batches::Batches;
use crate::cell::directory::{self, CellSizes};
use crate::codec::varint;
use crate::edge_fields::EdgeFields;
use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::manifest::{ColumnsMeta, EdgeVertices, FORMAT, Manifest, StreamMeta};
use crate::spec::{EdgeKind, GraphSpec};
use crate::stream::chunk_file::ChunkFile;
use crate::stream::pair::PairLayout;
use crate::vertex::ids::writer::IdsSummary;
use crate::weight_range::WeightRange;
use crate::write::chunk_tables::{self, SideTables};
use crate::write::column_file::{ColumnFileWriter, memory, memory_of_cells};
use crate::write::degree_writer::DegreeWriter;
use crate::write::shared::{ColumnFileManifest, SPOOL, WriterState, chunk_bytes};
use crate::write::vertex_tables;

/// What only the import knows, for `graph.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishInfo {
    /// The vertex ids, as many as the shape has vertices that stand for no edge.
    pub ids: IdsSummary,
    /// The vertices that stand for edges, after those with ids.
    pub edge_vertices: Option<EdgeVertices>,
    /// Edges in the input, before policies and doubling.
    pub input_edges: u64,
    /// What was left out, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Options of the import.
    pub options: BTreeMap<String, String>,
    /// Name and version of the program that writes.
    pub program: String,
    /// The fields of the record that an edge carries; none if it carries a weight or nothing.
    pub edge_fields: EdgeFields,
}

/// Removes the temporary files of column files in a directory, once the graph there is finished.
///
/// # Errors
/// The directory cannot be listed, or one of them not removed.
pub fn remove_temporary(disk: &dyn Disk, folder: &Path) -> Result<(), FormatError> {
    let columns = FileSide::ALL.map(|side| folder.join(side.folder()));
    let is_there = |path: &PathBuf| disk.is_dir(path).unwrap_or(false);
    for columns in columns.into_iter().filter(is_there) {
        for path in disk.list(&columns)? {
            if path.extension().is_some_and(|ending| ending == SPOOL) {
                disk.remove_file(&path)?;
            }
        }
        // None comes back when power is cut.
        disk.sync_dir(&columns)?;
    }
    Ok(())
}

/// The sides that a graph of a shape has.
fn sides(shape: &GraphSpec) -> &'static [FileSide] {
    &FileSide::ALL[..1 + usize::from(shape.reverse_files.is_some())]
}

/// Bytes of a cell while its file is put into the directory: four numbers in memory and on their way.
const DIRECTORY_CELL_BYTES: u64 = 80;

/// Writes one graph into a directory.
pub struct GraphWriter {
    pub(crate) shared: Arc<WriterState>,
}

impl GraphWriter {
    /// A writer into directory `staging`, which it makes and which should have nothing in it but the ids.
    ///
    /// # Errors
    /// The column files of the shape do not cover its batches, or the directory cannot be made.
    pub fn create(
        disk: Arc<dyn Disk>,
        budget: MemoryBudget,
        staging: &Path,
        shape: GraphSpec,
    ) -> Result<Self, FormatError> {
        shape.check()?;
        if shape.chunk_bytes.is_some() {
            PairLayout::new(&shape.batches)?;
        }
        for side in sides(&shape) {
            disk.create_dir_all(&staging.join(side.folder()))?;
        }
        let graph_id = shape.graph_id();
        let staging = staging.to_path_buf();
        let shared = Arc::new(WriterState {
            disk,
            budget,
            staging,
            shape,
            graph_id,
            keeps: false,
            done: Mutex::default(),
            chunks: Mutex::default(),
            degrees: Mutex::default(),
            order: Mutex::default(),
        });
        Ok(GraphWriter { shared })
    }
    /// The number that tells the graph from others.
    pub fn graph_id(&self) -> u64 {
        self.shared.graph_id
    }
    /// Makes the temporary files of column files durable; the writer must not have written anything yet.
    ///
    /// They stay until the caller [removes them](remove_temporary). If the graph is not finished, another writer
    /// resumes with [its order](Self::order_made) and the column files. For each of these it
    /// [takes in](crate::ManifestDecoder::take) what this writer [sends](Self::tell_of).
    #[must_use]
    pub fn keeping(mut self) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.keeps = true;
        }
        self
    }
    /// A writer for column file number `i` of the shape.
    ///
    /// # Errors
    /// The files cannot be made, or the budget has no room: see [`memory`](Self::memory).
    pub fn column_file(&self, i: usize) -> Result<ColumnFileWriter, FormatError> {
        ColumnFileWriter::new(&self.shared, FileSide::Forward, i)
    }
    /// Returns a writer for column file `i` of the reverse graph.
    ///
    /// The caller passes its edges with source and destination swapped.
    ///
    /// # Errors
    /// As for [`column_file`](Self::column_file).
    pub fn reverse_column_file(&self, i: usize) -> Result<ColumnFileWriter, FormatError> {
        ColumnFileWriter::new(&self.shared, FileSide::Reverse, i)
    }
    /// Takes in a complete file of chunks of the graph, from this writer's rank or another.
    pub fn take_chunks(&self, file: ChunkFile) {
        lock(&self.shared.chunks).push(file);
    }
    /// Returns a writer of the degrees of a graph of chunks.
    ///
    /// # Errors
    /// The file cannot be made, or the budget has no room.
    pub fn degrees(&self, side: FileSide) -> Result<DegreeWriter<'_>, FormatError> {
        DegreeWriter::new(&self.shared, side)
    }
    /// Returns the bytes that one open column file takes of a budget of `total` bytes.
    ///
    /// They exclude [`memory_of_cells`](Self::memory_of_cells).
    pub fn memory(edge: EdgeKind, total: u64) -> u64 {
        memory(edge, chunk_bytes(total))
    }
    /// Returns the bytes of the budget that the cell records take at most until the graph is finished.
    pub fn memory_of_cells(files: u64, cells: u64) -> u64 {
        memory_of_cells(files, cells)
    }
    /// Returns the bytes of the budget that [`finish`](Self::finish) takes at most, without cell records.
    ///
    /// The graph has `arcs` edges in `cells` cells. One column file has `cells_of_file` of them.
    pub fn memory_to_finish(shape: &GraphSpec, arcs: u64, cells: u64, cells_of_file: u64) -> u64 {
        let writer = PagedWriter::memory(DISK_PAGE_BYTES as usize);
        let directory = DIRECTORY_CELL_BYTES * cells_of_file + writer;
        directory.max(vertex_tables::memory(&shape.batches, arcs, cells))
    }
    /// Returns the bytes that [`finish`](Self::finish) reads of temporary files of `sources_bytes` bytes.
    ///
    /// The graph has about `arcs` edges in `cells` cells, and `available` bytes are free.
    pub fn read_to_finish(
        batches: &Batches,
        (arcs, cells): (u64, u64),
        sources_bytes: u64,
        available: u64,
    ) -> u64 {
        vertex_tables::bytes_read(sources_bytes, batches, (arcs, cells), available)
    }
    /// Writes everything else, once all column files are finished, and `graph.json` last.
    ///
    /// The caller gives the directory its name.
    ///
    /// # Errors
    /// A column file was not written, the ids are not as many as the vertices, the disk fails, or the budget has no room.
    pub fn finish(self, facts: FinishInfo) -> Result<(), FormatError> {
        let shared = &*self.shared;
        let (shape, disk) = (&shared.shape, &*shared.disk);
        let (ids, vertices) = (facts.ids.count, shape.vertices());
        let of_edges = facts.edge_vertices.map_or(0, |edges| edges.count);
        if ids.checked_add(of_edges) != Some(vertices) {
            let what = format!("{ids} ids for {vertices} vertices, {of_edges} of them of edges");
            return Err(FormatError::misuse(what));
        }
        if facts.edge_fields.kind() != Some(shape.edge).filter(|edge| edge.is_record()) {
            let what = format!("fields {} for edges of {:?}", facts.edge_fields, shape.edge);
            return Err(FormatError::misuse(what));
        }
        let side = |side| match shape.chunk_bytes {
            None => self.columns(side),
            Some(_) => chunk_tables::write(shared, side),
        };
        let forward = side(FileSide::Forward)?;
        let reverse = shape.reverse_files.as_ref();
        let reverse = reverse.map(|_| side(FileSide::Reverse)).transpose()?;
        let (arcs, weights) = (forward.arcs, forward.weights);
        if let Some(reverse) = reverse.filter(|reverse| reverse.arcs != arcs) {
            let what = format!("{arcs} edges, but {} in reverse", reverse.arcs);
            return Err(FormatError::misuse(what));
        }
        for side in sides(shape) {
            disk.sync_dir(&shared.staging.join(side.folder()))?;
        }
        disk.sync_dir(&shared.staging)?;
        let order = *lock(&shared.order);
        let meta = Manifest {
            format: FORMAT,
            program: facts.program,
            graph_id: format!("{:016x}", shared.graph_id),
            vertices,
            edge_vertices: facts.edge_vertices,
            arcs,
            input_edges: facts.input_edges,
            dropped: facts.dropped,
            options: facts.options,
            edge: shape.edge,
            edge_fields: facts.edge_fields,
            directed: shape.directed,
            strip_edges_max: shape.strip_edges_max,
            csr_ratio: shape.csr_ratio,
            batches: shape.batches.cuts().to_vec(),
            ids: facts.ids.meta,
            columns: forward.columns,
            reverse: reverse.map(|reverse| reverse.columns),
            stream: shape.chunk_bytes.map(|bytes| StreamMeta {
                chunk_bytes: bytes as u64,
                directory: forward.chunks,
                reverse: reverse.map(|reverse| reverse.chunks),
            }),
            order,
            weights,
            checksum: String::new(),
        };
        meta.write(disk, &shared.budget, &shared.staging)
    }
    /// Writes the directory, degrees and fan-out of one side.
    ///
    /// Returns their roots, the number of edges and the range of weights.
    fn columns(&self, side: FileSide) -> Result<SideTables, FormatError> {
        let shared = &*self.shared;
        let mut done = lock(&shared.done);
        let file = |i| {
            let none = || FormatError::misuse(format!("column file {i} was not finished"));
            done.remove(&(side, i)).ok_or_else(none)
        };
        let files = (0..shared.files(side).len()).map(file);
        let files: Vec<ColumnFileManifest> = files.collect::<Result<_, _>>()?;
        drop(done);
        let mut writer = PagedWriter::new(&*shared.disk, &shared.budget, shared.graph_id)?;
        let id = FileId::new(side, FileKind::Directory, 0);
        let stream = writer.add(&*shared.disk, &shared.staging, id, DISK_PAGE_BYTES as usize)?;
        let mut bytes = Vec::new();
        let (mut arcs, mut weights) = (0, None);
        varint::put(&mut bytes, files.len() as u64);
        for (file, batches) in files.iter().zip(shared.files(side)) {
            let leased = DIRECTORY_CELL_BYTES * file.cells.len() as u64;
            let _lease = (shared.budget).lease("the directory of cells", leased)?;
            let cells: Vec<CellSizes> = file.cells.iter().map(|cell| cell.sizes).collect();
            arcs += cells.iter().map(|cell| cell.edges).sum::<u64>();
            weights = WeightRange::join(weights, file.weights);
            directory::put_file(&mut bytes, batches, &file.roots, &cells);
            writer.append(stream, &bytes)?;
            bytes.clear();
        }
        writer.append(stream, &bytes)?;
        let directory = writer.finish()?[0];
        let [degrees, fanout] = vertex_tables::write(shared, side, &files, arcs)?;
        let columns = ColumnsMeta {
            directory,
            degrees,
            fanout,
        };
        Ok(SideTables {
            columns,
            chunks: FileRoot::default(),
            arcs,
            weights,
        })
    }
}
