//! Writes a stored graph: column files first, in any order and from any thread, then what follows from them.
//!
//! 1. [`GraphWriter::column_file`] gives a writer for one file; edges go in by destination batch, source batch, key.
//!    Besides its data, index and weights it writes a temporary spool: for each cell its sources and how many edges each
//!    has.
//! 2. [`GraphWriter::finish`] writes the directory, reads the spools row by row for degrees and fan-out, and puts
//!    `graph.json` last. A directory without it is not a graph, so a crash leaves none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use graphmill_storage::{Budget, Disk, Lease};

use crate::block::{BLOCK_EDGES_MAX, BlockEncoder};
use crate::directory::{self, CellSizes, FileRoots};
use crate::error::FormatError;
use crate::extent_reader::CHUNK_BYTES;
use crate::frame_writer::{FrameWriter, Temporary};
use crate::frames::{FRAME_BYTES, FileId, FileKind, Side};
use crate::ids::IdsSummary;
use crate::meta::{ColumnsMeta, FORMAT, Meta};
use crate::shape::{EdgeKind, Shape};
use crate::source_index::SourceIndexBuilder;
use crate::sources;
use crate::varint;
use crate::weights::WeightRange;

/// Bytes of spool that are gathered before they are handed on.
const SPOOL_BYTES: usize = 32 << 10;

/// What only the import knows, for `graph.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The vertex ids, as many as the shape has vertices.
    pub ids: IdsSummary,
    /// Edges in the input, before policies and doubling.
    pub input_edges: u64,
    /// What was left out, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Options of the import.
    pub options: BTreeMap<String, String>,
    /// Name and version of the program that writes.
    pub program: String,
}

/// What the spool and the directory say of one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellNote {
    pub(crate) sizes: CellSizes,
    pub(crate) spool_bytes: u64,
    pub(crate) spool_checksum: u32,
}

/// A column file that is complete.
pub(crate) struct FileDone {
    pub(crate) roots: FileRoots,
    pub(crate) cells: Vec<CellNote>,
    pub(crate) spool: Temporary,
    weights: Option<WeightRange>,
    _leases: Vec<Lease>,
}

/// What all parts of the writer know.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) budget: Budget,
    pub(crate) staging: PathBuf,
    pub(crate) shape: Shape,
    pub(crate) graph_id: u64,
    done: Mutex<BTreeMap<(Side, usize), FileDone>>,
}

impl Shared {
    fn files(&self, side: Side) -> &[Range<usize>] {
        match side {
            Side::Forward => &self.shape.files,
            Side::Reverse => self.shape.reverse_files.as_deref().unwrap_or(&[]),
        }
    }
    /// Bytes of a chunk on its way to the disk: less where memory is short. The graph's bytes do not depend on it.
    pub(crate) fn chunk_bytes(&self) -> usize {
        let share = (self.budget.total() / 128).next_power_of_two();
        share.clamp(FRAME_BYTES, CHUNK_BYTES as u64) as usize
    }
}

/// Writes one graph into a directory.
pub struct GraphWriter {
    shared: Arc<Shared>,
}

impl GraphWriter {
    /// A writer into directory `staging`, which it makes and which should have nothing in it but the ids.
    ///
    /// # Errors
    /// The column files of the shape do not cover its batches, or the directory cannot be made.
    pub fn create(
        disk: Arc<dyn Disk>,
        budget: Budget,
        staging: &Path,
        shape: Shape,
    ) -> Result<Self, FormatError> {
        shape.check()?;
        disk.create_dir_all(&staging.join("columns"))?;
        if shape.reverse_files.is_some() {
            disk.create_dir_all(&staging.join("reverse"))?;
        }
        let graph_id = shape.graph_id();
        let staging = staging.to_path_buf();
        Ok(GraphWriter {
            shared: Arc::new(Shared {
                disk,
                budget,
                staging,
                shape,
                graph_id,
                done: Mutex::default(),
            }),
        })
    }
    /// A writer for column file number `i` of the shape.
    ///
    /// # Errors
    /// The files cannot be made, or the budget has no room: at most [`memory`](Self::memory).
    pub fn column_file(&self, i: usize) -> Result<ColumnFileWriter, FormatError> {
        ColumnFileWriter::new(&self.shared, Side::Forward, i)
    }
    /// A writer for column file number `i` of the reverse graph: its edges are given with source and destination swapped.
    ///
    /// # Errors
    /// As for [`column_file`](Self::column_file).
    pub fn reverse_column_file(&self, i: usize) -> Result<ColumnFileWriter, FormatError> {
        ColumnFileWriter::new(&self.shared, Side::Reverse, i)
    }
    /// Bytes of the budget that one open column file takes, besides 64 for each cell.
    pub fn memory(&self) -> u64 {
        memory(self.shared.shape.edge, self.shared.chunk_bytes())
    }
    /// The same where memory is short, of a graph with such edges.
    pub fn memory_least(edge: EdgeKind) -> u64 {
        memory(edge, FRAME_BYTES as usize)
    }
    /// Writes everything else, once all column files are finished, and `graph.json` last. The caller gives the directory
    /// its name.
    ///
    /// # Errors
    /// A column file was not written, the ids are not as many as the vertices, the disk fails, or the budget has no room.
    pub fn finish(self, facts: Facts) -> Result<(), FormatError> {
        let shared = &*self.shared;
        let (shape, disk) = (&shared.shape, &*shared.disk);
        if facts.ids.count() != shape.vertices() {
            let what = format!(
                "{} ids for {} vertices",
                facts.ids.count(),
                shape.vertices()
            );
            return Err(FormatError::misuse(what));
        }
        let (columns, arcs, weights) = self.columns(Side::Forward)?;
        let reverse = match &shape.reverse_files {
            Some(_) => Some(self.columns(Side::Reverse)?),
            None => None,
        };
        if let Some((_, reverse_arcs, _)) = reverse.filter(|reverse| reverse.1 != arcs) {
            return Err(FormatError::misuse(format!(
                "{arcs} edges, but {reverse_arcs} in reverse"
            )));
        }
        disk.sync_dir(&shared.staging.join("columns"))?;
        if reverse.is_some() {
            disk.sync_dir(&shared.staging.join("reverse"))?;
        }
        disk.sync_dir(&shared.staging)?;
        let meta = Meta {
            format: FORMAT,
            program: facts.program,
            graph_id: format!("{:016x}", shared.graph_id),
            vertices: shape.vertices(),
            arcs,
            input_edges: facts.input_edges,
            dropped: facts.dropped,
            options: facts.options,
            edge: shape.edge,
            directed: shape.directed,
            strip_edges_max: shape.strip_edges_max,
            csr_ratio: shape.csr_ratio,
            batches: shape.batches.cuts().to_vec(),
            ids: facts.ids.meta,
            columns,
            reverse: reverse.map(|(columns, ..)| columns),
            weights,
            checksum: String::new(),
        };
        meta.write(disk, &shared.budget, &shared.staging)
    }
    /// Writes the directory, degrees and fan-out of one side; their roots, the number of edges and the range of weights.
    fn columns(&self, side: Side) -> Result<(ColumnsMeta, u64, Option<WeightRange>), FormatError> {
        let shared = &*self.shared;
        let mut done = shared.done.lock().unwrap_or_else(PoisonError::into_inner);
        let files: Vec<FileDone> = (0..shared.files(side).len())
            .map(|i| {
                done.remove(&(side, i))
                    .ok_or_else(|| FormatError::misuse(format!("column file {i} was not finished")))
            })
            .collect::<Result<_, _>>()?;
        drop(done);
        let mut writer = FrameWriter::new(&*shared.disk, &shared.budget, shared.graph_id)?;
        let id = FileId::new(side, FileKind::Directory, 0);
        let stream = writer.add(&*shared.disk, &shared.staging, id, FRAME_BYTES as usize)?;
        let mut bytes = Vec::new();
        let (mut arcs, mut weights) = (0, None);
        varint::put(&mut bytes, files.len() as u64);
        for (file, batches) in files.iter().zip(shared.files(side)) {
            // Forty bytes a cell cover four numbers in memory and on their way.
            let _lease = shared
                .budget
                .lease("the directory of cells", 80 * file.cells.len() as u64)?;
            let cells: Vec<CellSizes> = file.cells.iter().map(|cell| cell.sizes).collect();
            arcs += cells.iter().map(|cell| cell.edges).sum::<u64>();
            weights = WeightRange::join(weights, file.weights);
            directory::put_file(&mut bytes, batches, &file.roots, &cells);
            writer.append(stream, &bytes)?;
            bytes.clear();
        }
        writer.append(stream, &bytes)?;
        let directory = writer.finish()?[0];
        let (degrees, fanout) = sources::write(shared, side, &files, arcs)?;
        Ok((
            ColumnsMeta {
                directory,
                degrees,
                fanout,
            },
            arcs,
            weights,
        ))
    }
}

/// Bytes of the chunks of index and spool.
fn small_chunk(chunk_bytes: usize) -> usize {
    (chunk_bytes / 4).max(FRAME_BYTES as usize)
}

/// Bytes of the budget that one open column file takes whose chunks have `chunk_bytes`.
fn memory(edge: EdgeKind, chunk_bytes: usize) -> u64 {
    let large = if edge == EdgeKind::None { 2 } else { 4 };
    (large * chunk_bytes + 4 * small_chunk(chunk_bytes)) as u64 + FIXED_BYTES
}

/// Pending keys, the encoder's scratch and one block, at most.
const FIXED_BYTES: u64 = 512 << 10;

/// Writes one column file: data, index, weights and the spool.
pub struct ColumnFileWriter {
    shared: Arc<Shared>,
    side: Side,
    number: usize,
    batches: Range<usize>,
    writer: FrameWriter,
    data: usize,
    index: usize,
    weights: Option<usize>,
    spool: usize,
    spool_file: Temporary,
    encoder: BlockEncoder,
    source_index: SourceIndexBuilder,
    /// Edges of the cell that do not make a whole block yet.
    pending: Vec<u64>,
    block: Vec<u8>,
    cell: Option<OpenCell>,
    spooled: Spooled,
    cells: Vec<CellNote>,
    range: Option<WeightRange>,
    leases: Vec<Lease>,
    leased_cells: usize,
    _fixed: Lease,
}

/// The cell that edges go into.
#[derive(Clone, Copy)]
struct OpenCell {
    destination_batch: usize,
    source_batch: usize,
    sources: u64,
    destinations: u64,
    destination_bits: u32,
    /// First vertex of the destination batch minus that of the source batch.
    global_offset: i64,
    last_key: u64,
    edges: u64,
    blocks: u64,
    data_bytes: u64,
}

/// The sources of a cell on their way to the spool: for each, how many were passed over and its edges minus 1, as varints.
#[derive(Default)]
struct Spooled {
    bytes: Vec<u8>,
    handed_on: u64,
    hasher: crc32fast::Hasher,
    next: u64,
    source: u64,
    edges: u64,
}

impl Spooled {
    #[inline]
    fn add(&mut self, keys: &[u64]) {
        let (mut source, mut edges) = (self.source, self.edges);
        for &key in keys {
            if key >> 32 == source {
                edges += 1;
            } else {
                (self.source, self.edges) = (source, edges);
                self.end_source();
                (source, edges) = (key >> 32, 1);
            }
        }
        (self.source, self.edges) = (source, edges);
    }
    #[inline]
    fn end_source(&mut self) {
        if self.edges > 0 {
            varint::put(&mut self.bytes, self.source - self.next);
            varint::put(&mut self.bytes, self.edges - 1);
            self.next = self.source + 1;
        }
    }
}

impl ColumnFileWriter {
    fn new(shared: &Arc<Shared>, side: Side, number: usize) -> Result<Self, FormatError> {
        let batches = shared.files(side).get(number).cloned();
        let batches = batches
            .ok_or_else(|| FormatError::misuse(format!("the shape has no column file {number}")))?;
        let fixed = shared
            .budget
            .lease("writing the stored graph", FIXED_BYTES)?;
        let disk = &*shared.disk;
        let mut writer = FrameWriter::new(disk, &shared.budget, shared.graph_id)?;
        let id = |kind| FileId::new(side, kind, number as u32);
        let large = shared.chunk_bytes();
        let data = writer.add(disk, &shared.staging, id(FileKind::Data), large)?;
        let index = writer.add(
            disk,
            &shared.staging,
            id(FileKind::Index),
            small_chunk(large),
        )?;
        let weights = match shared.shape.edge {
            EdgeKind::None => None,
            _ => Some(writer.add(disk, &shared.staging, id(FileKind::Weights), large)?),
        };
        let path = id(FileKind::Data)
            .path(&shared.staging)
            .with_extension("spool");
        let spool = writer.add_temporary(disk, &path, small_chunk(large))?;
        Ok(ColumnFileWriter {
            shared: Arc::clone(shared),
            side,
            number,
            batches,
            writer,
            data,
            index,
            weights,
            spool,
            spool_file: Temporary {
                disk: Arc::clone(&shared.disk),
                path,
            },
            encoder: BlockEncoder::default(),
            source_index: SourceIndexBuilder::default(),
            pending: Vec::with_capacity(BLOCK_EDGES_MAX),
            block: Vec::new(),
            cell: None,
            spooled: Spooled::default(),
            cells: Vec::new(),
            range: None,
            leases: Vec::new(),
            leased_cells: 0,
            _fixed: fixed,
        })
    }
    /// Appends edges from `source_batch` to `destination_batch`. A key is the batch-local source in the high 32 bits and the
    /// batch-local destination in the low ones; `weights` are the edges' weights, little-endian, as many as keys. Calls
    /// are in ascending order of destination batch, source batch and key; a cell may come in several calls.
    ///
    /// # Errors
    /// The order is another, a vertex is outside its batch, the disk fails, or the budget has no room.
    pub fn edges(
        &mut self,
        destination_batch: usize,
        source_batch: usize,
        keys: &[u64],
        weights: &[u8],
    ) -> Result<(), FormatError> {
        if weights.len() != keys.len() * self.shared.shape.edge.bytes() {
            let what = format!(
                "{} bytes of weights for {} edges",
                weights.len(),
                keys.len()
            );
            return Err(FormatError::misuse(what));
        }
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
            return Ok(());
        };
        let mut cell = match self.cell {
            Some(cell)
                if (cell.destination_batch, cell.source_batch)
                    == (destination_batch, source_batch) =>
            {
                cell
            }
            before => {
                let before = before.map(|cell| (cell.destination_batch, cell.source_batch));
                self.end_cell()?;
                self.open_cell(before, destination_batch, source_batch)?
            }
        };
        let ascending = keys
            .windows(2)
            .fold(true, |all, pair| all & (pair[0] <= pair[1]));
        let destination_max = keys.iter().fold(0, |max, &key| max.max(key as u32));
        if !ascending
            || first < cell.last_key
            || last >> 32 >= cell.sources
            || u64::from(destination_max) >= cell.destinations
        {
            return Err(FormatError::misuse(format!(
                "edges from batch {source_batch} to batch {destination_batch} are out of order or outside their batches"
            )));
        }
        cell.last_key = last;
        if let Some(stream) = self.weights {
            let range = WeightRange::of(weights, self.shared.shape.edge);
            self.range = WeightRange::join(self.range, range);
            self.writer.append(stream, weights)?;
        }
        let mut rest = keys;
        if !self.pending.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK_EDGES_MAX - self.pending.len()));
            self.pending.extend_from_slice(now);
            rest = later;
            if self.pending.len() == BLOCK_EDGES_MAX {
                let pending = std::mem::take(&mut self.pending);
                self.put_block(&mut cell, &pending)?;
                self.pending = pending;
                self.pending.clear();
            }
        }
        let (blocks, rest) = rest.as_chunks::<BLOCK_EDGES_MAX>();
        for block in blocks {
            self.put_block(&mut cell, block)?;
        }
        self.pending.extend_from_slice(rest);
        self.cell = Some(cell);
        Ok(())
    }
    fn open_cell(
        &mut self,
        before: Option<(usize, usize)>,
        destination_batch: usize,
        source_batch: usize,
    ) -> Result<OpenCell, FormatError> {
        let batches = &self.shared.shape.batches;
        if before.is_some_and(|before| before >= (destination_batch, source_batch))
            || !self.batches.contains(&destination_batch)
            || source_batch >= batches.len()
        {
            return Err(FormatError::misuse(format!(
                "the cell from batch {source_batch} to batch {destination_batch} does not belong behind {before:?} in column file {}",
                self.number
            )));
        }
        Ok(OpenCell {
            destination_batch,
            source_batch,
            sources: batches.span(source_batch),
            destinations: batches.span(destination_batch),
            destination_bits: batches.bits(destination_batch),
            global_offset: batches
                .start(destination_batch)
                .wrapping_sub(batches.start(source_batch)) as i64,
            last_key: 0,
            edges: 0,
            blocks: 0,
            data_bytes: 0,
        })
    }
    fn put_block(&mut self, cell: &mut OpenCell, keys: &[u64]) -> Result<(), FormatError> {
        self.source_index.block(keys, cell.data_bytes);
        self.block.clear();
        self.encoder.encode(
            keys,
            cell.destination_bits,
            cell.global_offset,
            &mut self.block,
        );
        self.writer.append(self.data, &self.block)?;
        cell.edges += keys.len() as u64;
        cell.blocks += 1;
        cell.data_bytes += self.block.len() as u64;
        self.spooled.add(keys);
        if self.spooled.bytes.len() >= SPOOL_BYTES {
            self.hand_on()?;
        }
        Ok(())
    }
    fn hand_on(&mut self) -> Result<(), FormatError> {
        self.spooled.hasher.update(&self.spooled.bytes);
        self.spooled.handed_on += self.spooled.bytes.len() as u64;
        self.writer.append(self.spool, &self.spooled.bytes)?;
        self.spooled.bytes.clear();
        Ok(())
    }
    fn end_cell(&mut self) -> Result<(), FormatError> {
        let Some(mut cell) = self.cell.take() else {
            return Ok(());
        };
        if !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.put_block(&mut cell, &pending)?;
            self.pending = pending;
            self.pending.clear();
        }
        self.block.clear();
        self.source_index
            .finish(cell.sources, self.shared.shape.csr_ratio, &mut self.block);
        if cell.blocks == 1 && self.block.len() as u64 > cell.data_bytes {
            self.block.clear();
        }
        self.writer.append(self.index, &self.block)?;
        self.spooled.end_source();
        self.hand_on()?;
        let Spooled {
            bytes,
            handed_on,
            hasher,
            ..
        } = std::mem::take(&mut self.spooled);
        // The allocation stays.
        self.spooled.bytes = bytes;
        if self.cells.len() == self.leased_cells {
            let more = self.leased_cells.max(256);
            let bytes = (more * size_of::<CellNote>()) as u64;
            self.leases
                .push(self.shared.budget.lease("the directory of cells", bytes)?);
            self.cells.reserve_exact(more);
            self.leased_cells += more;
        }
        self.cells.push(CellNote {
            sizes: CellSizes {
                destination_batch: cell.destination_batch as u32,
                source_batch: cell.source_batch as u32,
                edges: cell.edges,
                data_bytes: cell.data_bytes,
                index_bytes: self.block.len() as u64,
            },
            spool_bytes: handed_on,
            spool_checksum: hasher.finalize(),
        });
        Ok(())
    }
    /// Ends the file and makes it durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self) -> Result<(), FormatError> {
        self.end_cell()?;
        let roots = self.writer.finish()?;
        let root = |stream: usize| roots.get(stream).copied().unwrap_or_default();
        let done = FileDone {
            roots: [
                root(self.data),
                root(self.index),
                self.weights.map(root).unwrap_or_default(),
            ],
            cells: self.cells,
            spool: self.spool_file,
            weights: self.range,
            _leases: self.leases,
        };
        let mut all = self
            .shared
            .done
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match all.insert((self.side, self.number), done) {
            None => Ok(()),
            Some(_) => Err(FormatError::misuse(format!(
                "column file {} was written twice",
                self.number
            ))),
        }
    }
}
