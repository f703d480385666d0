//! Writes one column file: data, index, bitmaps, weights and the spool of its sources.

use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::Lease;

use crate::cell::directory::{CellSizes, FileRoots};
use crate::cell::source_index::SourceIndexBuilder;
use crate::codec::block::encode::BlockEncoder;
use crate::codec::block::layout::BLOCK_EDGES_MAX;
use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileSide};
use crate::file::page_writer::{PagedWriter, Temporary};
use crate::spec::EdgeKind;
use crate::weight_range::WeightRange;
use crate::write::shared::{CellMeta, ColumnFileManifest, WriterState};

/// The streams of the writer, in order of [`FileKind::OF_COLUMNS`].
const DATA: usize = 0;
const INDEX: usize = 1;
const BITMAPS: usize = 2;
const WEIGHTS: usize = 3;
/// Bytes of spool that are gathered before they are handed on.
const SPOOL_BYTES: usize = 32 << 10;

/// Bytes of the chunks of index, bitmaps and spool.
fn small_chunk(chunk_bytes: usize) -> usize {
    (chunk_bytes / 4).max(DISK_PAGE_BYTES as usize)
}

/// Bytes of the budget that one open column file takes whose chunks have `chunk_bytes`.
pub(super) fn memory(edge: EdgeKind, chunk_bytes: usize) -> u64 {
    let large = if edge == EdgeKind::None { 2 } else { 4 };
    (large * chunk_bytes + 6 * small_chunk(chunk_bytes)) as u64 + FIXED_BYTES
}

/// Cells that there is room for from the first on, and more of a file that has more.
const CELLS_MIN: usize = 256;

/// Room for how many more cells is leased at a time, where there is room for `leased`.
fn more_cells(leased: usize) -> usize {
    (leased / 4).max(CELLS_MIN)
}

/// Bytes of the budget that the notes of `cells` cells in `files` files take, at most.
pub(super) fn memory_of_cells(files: u64, cells: u64) -> u64 {
    (files * CELLS_MIN as u64 + cells + cells / 4) * size_of::<CellMeta>() as u64
}

/// Pending keys, the encoder's scratch and one block, at most.
const FIXED_BYTES: u64 = 512 << 10;

/// Writes one column file: data, index, bitmaps, weights and the spool.
pub struct ColumnFileWriter {
    shared: Arc<WriterState>,
    side: FileSide,
    number: usize,
    batches: Range<usize>,
    writer: PagedWriter,
    /// The stream of the spool, the last one.
    spool: usize,
    spool_file: Temporary,
    encoder: BlockEncoder,
    source_index: SourceIndexBuilder,
    /// Edges of the cell that do not make a whole block yet.
    pending: Vec<u64>,
    block: Vec<u8>,
    bitmap: Vec<u8>,
    cell: Option<OpenCell>,
    spooled: SourceRunEncoder,
    cells: Vec<CellMeta>,
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
    data_bytes: u64,
}

/// An encoder of the sources of a cell for the temporary file.
///
/// Each entry is the number of sources skipped and the number of edges minus 1, as varints.
#[derive(Default)]
struct SourceRunEncoder {
    bytes: Vec<u8>,
    handed_on: u64,
    hasher: crc32fast::Hasher,
    next: u64,
    source: u64,
    edges: u64,
}

impl SourceRunEncoder {
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
    pub(super) fn new(
        shared: &Arc<WriterState>,
        side: FileSide,
        number: usize,
    ) -> Result<Self, FormatError> {
        let none = || FormatError::misuse(format!("the shape has no column file {number}"));
        let batches = shared.files(side).get(number).cloned().ok_or_else(none)?;
        let fixed = (shared.budget).lease("writing the stored graph", FIXED_BYTES)?;
        let disk = &*shared.disk;
        let writer = PagedWriter::new(disk, &shared.budget, shared.graph_id)?;
        let mut writer = writer.syncing_all(shared.keeps);
        let large = shared.chunk_bytes();
        for &kind in FileKind::of_columns(shared.shape.edge) {
            let chunk_bytes = match kind {
                FileKind::Data | FileKind::Weights => large,
                _ => small_chunk(large),
            };
            let id = FileId::new(side, kind, number as u32);
            writer.add(disk, &shared.staging, id, chunk_bytes)?;
        }
        let spool_file = shared.spool(side, number);
        let spool = writer.add_temporary(disk, &spool_file.path, small_chunk(large))?;
        Ok(ColumnFileWriter {
            shared: Arc::clone(shared),
            side,
            number,
            batches,
            writer,
            spool,
            spool_file,
            encoder: BlockEncoder::default(),
            source_index: SourceIndexBuilder::default(),
            pending: Vec::with_capacity(BLOCK_EDGES_MAX),
            block: Vec::new(),
            bitmap: Vec::new(),
            cell: None,
            spooled: SourceRunEncoder::default(),
            cells: Vec::new(),
            range: None,
            leases: Vec::new(),
            leased_cells: 0,
            _fixed: fixed,
        })
    }
    /// Appends edges from `source_batch` to `destination_batch`.
    ///
    /// A key is the batch-local source in the high 32 bits and the batch-local destination in the low ones.
    /// `weights` are the edges' weights, little-endian, one for each key. Calls come in ascending order of
    /// destination batch, source batch and key. A cell may take several calls.
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
            let (bytes, edges) = (weights.len(), keys.len());
            let what = format!("{bytes} bytes of weights for {edges} edges");
            return Err(FormatError::misuse(what));
        }
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
            return Ok(());
        };
        let of = |cell: OpenCell| (cell.destination_batch, cell.source_batch);
        let mut cell = match self.cell {
            Some(cell) if of(cell) == (destination_batch, source_batch) => cell,
            before => {
                self.end_cell()?;
                self.open_cell(before.map(of), destination_batch, source_batch)?
            }
        };
        let pairs = keys.windows(2);
        let ascending = pairs.fold(true, |all, pair| all & (pair[0] <= pair[1]));
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
        if self.shared.shape.edge != EdgeKind::None {
            let range = WeightRange::of(weights, self.shared.shape.edge);
            self.range = WeightRange::join(self.range, range);
            self.writer.append(WEIGHTS, weights)?;
        }
        let mut rest = keys;
        if !self.pending.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK_EDGES_MAX - self.pending.len()));
            self.pending.extend_from_slice(now);
            rest = later;
            if self.pending.len() == BLOCK_EDGES_MAX {
                self.put_pending(&mut cell)?;
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
        let start = batches.start(destination_batch);
        Ok(OpenCell {
            destination_batch,
            source_batch,
            sources: batches.span(source_batch),
            destinations: batches.span(destination_batch),
            destination_bits: batches.bits(destination_batch),
            global_offset: start.wrapping_sub(batches.start(source_batch)) as i64,
            last_key: 0,
            edges: 0,
            data_bytes: 0,
        })
    }
    fn put_pending(&mut self, cell: &mut OpenCell) -> Result<(), FormatError> {
        let mut pending = std::mem::take(&mut self.pending);
        self.put_block(cell, &pending)?;
        pending.clear();
        self.pending = pending;
        Ok(())
    }
    fn put_block(&mut self, cell: &mut OpenCell, keys: &[u64]) -> Result<(), FormatError> {
        self.block.clear();
        (self.source_index).block(keys, cell.data_bytes, &mut self.block);
        self.writer.append(INDEX, &self.block)?;
        self.block.clear();
        let (bits, offset) = (cell.destination_bits, cell.global_offset);
        self.encoder.encode(keys, bits, offset, &mut self.block);
        self.writer.append(DATA, &self.block)?;
        cell.edges += keys.len() as u64;
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
            self.put_pending(&mut cell)?;
        }
        self.bitmap.clear();
        let of_cell = (cell.sources, self.shared.shape.csr_ratio, cell.data_bytes);
        let bitmap_lines = self.source_index.finish(of_cell, &mut self.bitmap);
        self.writer.append(BITMAPS, &self.bitmap)?;
        self.spooled.end_source();
        self.hand_on()?;
        let spooled = std::mem::take(&mut self.spooled);
        // The allocation stays.
        self.spooled.bytes = spooled.bytes;
        if self.cells.len() == self.leased_cells {
            let more = more_cells(self.leased_cells);
            let bytes = (more * size_of::<CellMeta>()) as u64;
            let lease = (self.shared.budget).lease("the directory of cells", bytes)?;
            self.leases.push(lease);
            self.cells.reserve_exact(more);
            self.leased_cells += more;
        }
        self.cells.push(CellMeta {
            sizes: CellSizes {
                destination_batch: cell.destination_batch as u32,
                source_batch: cell.source_batch as u32,
                edges: cell.edges,
                data_bytes: cell.data_bytes,
                bitmap_lines,
            },
            spool_bytes: spooled.handed_on,
            spool_checksum: spooled.hasher.finalize(),
        });
        Ok(())
    }
    /// Ends the file and makes it durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self) -> Result<(), FormatError> {
        self.end_cell()?;
        let mut roots = FileRoots::default();
        roots[..self.spool].copy_from_slice(&self.writer.finish()?[..self.spool]);
        let done = ColumnFileManifest {
            roots,
            cells: self.cells,
            spool: self.spool_file,
            weights: self.range,
            _leases: self.leases,
        };
        self.shared.note(self.side, self.number, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_file_cells_keep_to_leased_memory() {
        let mut leased = 0;
        while leased < 1 << 24 {
            // The room becomes larger when one cell more than before is noted.
            let cells = leased as u64 + 1;
            leased += more_cells(leased);
            let bytes = (leased * size_of::<CellMeta>()) as u64;
            assert!(bytes <= memory_of_cells(1, cells), "{cells} cells");
        }
    }
}
