//! What follows from the sources of all cells: out-degrees, and the destination batches of every vertex.
//!
//! 1. The spools of the column files say, cell by cell, which sources a cell has and how many edges each. Cells are
//!    taken row by row (by source batch, then destination batch), all cells of a row side by side.
//! 2. A page of 4096 vertices is collected from the cells of the rows it lies in, then written. Pages without edges are
//!    passed over, so memory and time follow from the edges, not from the range of indices.

use graphmill_storage::{Disk, FileHandle, GrowingLease, Open};
use std::ops::Range;

use crate::batches::Batches;
use crate::cell::directory::LEASE_STEP_BYTES;
use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::{
    DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide, GRAIN, PageReader, malformed,
};
use crate::file::page_writer::PagedWriter;
use crate::vertex::degree_pages::put_degrees;
use crate::vertex::fanout_pages::FanoutPage;
use crate::vertex::packed::PAGE_VERTICES;
use crate::vertex::page_index::PageIndex;
use crate::write::shared::{ColumnFileManifest, WriterState};

/// Bytes of a cell's spool in memory: at most, and at least where memory is short.
const WINDOW_MAX: usize = DISK_PAGE_BYTES as usize;
const WINDOW_MIN: usize = 512;
/// Two varints at most.
const GROUP_BYTES: usize = 20;
/// Bytes of spools that are held whole, at most.
const HELD_MAX: u64 = 64 << 20;
/// Bytes of a chunk of degrees and of fan-out on its way to the disk.
const CHUNK_BYTES: usize = DISK_PAGE_BYTES as usize * 4;
/// Bytes of a pair of a page: the pair, its sorted copy and what it is packed to.
const PAIR_BYTES: u64 = 3 * 8;

/// Returns the bytes that the pages take at most.
///
/// These are a place for each batch in the union of a chunk; number and length of each page, of degrees and
/// of fan-out; and the pairs of one page.
fn pages_bytes(batches: &Batches, arcs: u64) -> u64 {
    let pages = arcs.min(batches.vertices().div_ceil(PAGE_VERTICES));
    let pairs = arcs.min(PAGE_VERTICES.saturating_mul(batches.len() as u64));
    let pairs = pairs.next_multiple_of(PAGE_VERTICES);
    8 * batches.len() as u64 + 2 * 16 * pages + PAIR_BYTES * pairs + LEASE_STEP_BYTES
}

/// Returns the bytes of the budget that [`write`] takes at most if memory is short.
///
/// The graph has `arcs` edges in `cells` cells.
pub(crate) fn memory(batches: &Batches, arcs: u64, cells: u64) -> u64 {
    let files = 2 * PagedWriter::memory(CHUNK_BYTES) + DISK_PAGE_BYTES;
    let streams = cells.min(batches.len() as u64) * stream_bytes(WINDOW_MIN as u64);
    // Of what the pages leave, a quarter at most holds spools.
    let row = (streams + LEASE_STEP_BYTES) * 4 / 3;
    files + cells * size_of::<SourceRun>() as u64 + pages_bytes(batches, arcs) + row
}

/// Returns the bytes that [`write`] reads of `bytes` bytes of source runs.
///
/// The graph has about `arcs` edges in `cells` cells, and `available` bytes are free.
pub(crate) fn bytes_read(
    bytes: u64,
    batches: &Batches,
    (arcs, cells): (u64, u64),
    available: u64,
) -> u64 {
    let files = 2 * PagedWriter::memory(CHUNK_BYTES);
    let taken = files + cells * size_of::<SourceRun>() as u64 + pages_bytes(batches, arcs);
    let spare = available.saturating_sub(taken);
    if bytes <= HELD_MAX.min(spare / 4) {
        return bytes;
    }
    let of_cell = bytes / cells.max(1);
    let row = (batches.len() as u64).max(1);
    let window = (spare / 4 / row).clamp(WINDOW_MIN as u64, WINDOW_MAX as u64);
    let windows = of_cell.div_ceil(window.max(1)).max(1);
    // Each begins and ends within a page of the disk.
    bytes.saturating_add(cells.saturating_mul(windows).saturating_mul(GRAIN))
}

/// Bytes of a cell of a row whose window has `window` bytes.
fn stream_bytes(window: u64) -> u64 {
    size_of::<SourceRunReader>() as u64 + window + GROUP_BYTES as u64
}

/// The spool of one cell.
#[derive(Clone, Copy, Default)]
struct SourceRun {
    source_batch: u32,
    destination_batch: u32,
    file: u32,
    checksum: u32,
    offset: u64,
    bytes: u64,
}

/// Spools that are open at a time.
const OPEN_MAX: usize = 16;

/// All spools, in memory when they are small.
struct SourceRunFiles<'a> {
    disk: &'a dyn Disk,
    files: &'a [ColumnFileManifest],
    /// Those that were read last, each in the place that follows from its number.
    open: [Option<(usize, FileHandle)>; OPEN_MAX],
    held: Vec<Vec<u8>>,
    fetch: PageReader,
    lease: GrowingLease<'a>,
}

/// Bytes of the spool of a file as it lies on disk.
fn spool_bytes(file: &ColumnFileManifest) -> u64 {
    let cells = file.cells.iter().map(|cell| cell.spool_bytes);
    cells.sum::<u64>().next_multiple_of(GRAIN)
}

impl<'a> SourceRunFiles<'a> {
    /// `spare`: bytes that are free and not meant for something else.
    fn open(
        shared: &'a WriterState,
        files: &'a [ColumnFileManifest],
        spare: u64,
    ) -> Result<Self, FormatError> {
        let disk = &*shared.disk;
        let mut spools = SourceRunFiles {
            disk,
            files,
            open: [const { None }; OPEN_MAX],
            held: Vec::new(),
            fetch: PageReader::new(disk, &shared.budget)?,
            lease: GrowingLease::new(&shared.budget, "the sources of all cells", LEASE_STEP_BYTES),
        };
        let bytes: u64 = files.iter().map(spool_bytes).sum();
        if bytes <= HELD_MAX.min(spare / 4) {
            for number in 0..files.len() {
                spools.hold(number)?;
            }
        }
        Ok(spools)
    }
    /// Reads the whole spool of the next file.
    fn hold(&mut self, number: usize) -> Result<(), FormatError> {
        let length = spool_bytes(&self.files[number]);
        self.lease.take(length)?;
        let file = self.file(number)?;
        let mut whole = Vec::with_capacity(length as usize);
        while (whole.len() as u64) < length {
            let now = (length - whole.len() as u64).min(DISK_PAGE_BYTES) as usize;
            whole.extend_from_slice(self.fetch.read(&file, whole.len() as u64, now)?);
        }
        self.held.push(whole);
        Ok(())
    }
    /// A spool, opened again when others took its place meanwhile.
    fn file(&mut self, number: usize) -> Result<FileHandle, FormatError> {
        let place = &mut self.open[number % OPEN_MAX];
        if let Some((held, file)) = place
            && *held == number
        {
            return Ok(file.clone());
        }
        // The one before is closed first.
        *place = None;
        let file = self.disk.open(&self.files[number].spool.path, Open::Read)?;
        *place = Some((number, file.clone()));
        Ok(file)
    }
    /// Appends at most `bytes` bytes at `offset` of a spool to `out`, at least one.
    fn read(
        &mut self,
        file: usize,
        offset: u64,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        if let Some(whole) = self.held.get(file) {
            let from = offset as usize;
            out.extend_from_slice(whole.get(from..from + bytes).unwrap_or(&[]));
            return Ok(());
        }
        let from = offset - offset % GRAIN;
        let skip = (offset - from) as usize;
        let now = (skip + bytes)
            .next_multiple_of(GRAIN as usize)
            .min(DISK_PAGE_BYTES as usize);
        let file = self.file(file)?;
        let read = self.fetch.read(&file, from, now)?;
        out.extend_from_slice(&read[skip..now.min(skip + bytes)]);
        Ok(())
    }
}

/// One cell of the current row: its sources in ascending order.
#[derive(Default)]
struct SourceRunReader {
    /// The bytes of it that are still to be read.
    run: SourceRun,
    window: Vec<u8>,
    at: usize,
    hasher: crc32fast::Hasher,
    /// The next source, batch-local, and its edges; `u64::MAX`: there is none.
    source: u64,
    edges: u64,
    after: u64,
}

impl SourceRunReader {
    fn begin(&mut self, run: &SourceRun) {
        self.run = *run;
        self.window.clear();
        self.at = 0;
        self.hasher = crc32fast::Hasher::new();
        self.after = 0;
    }
    #[inline]
    fn advance(
        &mut self,
        spools: &mut SourceRunFiles<'_>,
        window_bytes: usize,
    ) -> Result<(), FormatError> {
        if self.window.len() - self.at < GROUP_BYTES && self.run.bytes > 0 {
            self.fill(spools, window_bytes)?;
        }
        if self.at == self.window.len() {
            self.source = u64::MAX;
            return Ok(());
        }
        let passed = varint::get(&self.window, &mut self.at);
        let edges = varint::get(&self.window, &mut self.at);
        let (Some(passed), Some(edges)) = (passed, edges) else {
            return Err(self.broken(spools));
        };
        let (source, more) = (self.after.checked_add(passed), edges.checked_add(1));
        let (Some(source), Some(edges)) = (source, more) else {
            return Err(self.broken(spools));
        };
        (self.source, self.edges, self.after) = (source, edges, source.saturating_add(1));
        Ok(())
    }
    fn fill(
        &mut self,
        spools: &mut SourceRunFiles<'_>,
        window_bytes: usize,
    ) -> Result<(), FormatError> {
        self.window.drain(..self.at);
        self.at = 0;
        let run = &mut self.run;
        while run.bytes > 0 && self.window.len() < window_bytes {
            let kept = self.window.len();
            let now = run.bytes.min((window_bytes - kept) as u64) as usize;
            spools.read(run.file as usize, run.offset, now, &mut self.window)?;
            let got = &self.window[kept..];
            self.hasher.update(got);
            run.offset += got.len() as u64;
            run.bytes -= got.len() as u64;
        }
        if run.bytes == 0 && std::mem::take(&mut self.hasher).finalize() != run.checksum {
            return Err(self.broken(spools));
        }
        Ok(())
    }
    fn broken(&self, spools: &SourceRunFiles<'_>) -> FormatError {
        let path = spools.files[self.run.file as usize].spool.path.clone();
        let what = "a temporary file did not read back as it was written, so the disk is failing";
        malformed(path, self.run.offset, what)
    }
}

/// The page that is being collected, and the files it goes to.
struct Tables<'a> {
    writer: PagedWriter,
    lease: GrowingLease<'a>,
    page: u64,
    degrees: Box<[u64; PAGE_VERTICES as usize]>,
    fanout: FanoutPage,
    pairs_leased: usize,
    bytes: Vec<u8>,
    /// Number and bytes of the pages written, of degrees and fan-out.
    pages: [Vec<(u64, u32)>; 2],
    batches: usize,
}

impl Tables<'_> {
    fn end_page(&mut self) -> Result<(), FormatError> {
        if self.fanout.pairs.is_empty() {
            return Ok(());
        }
        for stream in 0..2 {
            self.bytes.clear();
            match stream {
                0 => put_degrees(&mut self.bytes, &self.degrees),
                _ => self.fanout.put(&mut self.bytes, self.batches),
            }
            self.lease.take(16)?;
            self.pages[stream].push((self.page, self.bytes.len() as u32));
            self.writer.append(stream, &self.bytes)?;
        }
        self.degrees.fill(0);
        Ok(())
    }
    /// Adds the sources of a row of cells; returns the sum of their degrees.
    fn add_row(
        &mut self,
        row: Range<u64>,
        streams: &mut [SourceRunReader],
        spools: &mut SourceRunFiles<'_>,
        window_bytes: usize,
    ) -> Result<u64, FormatError> {
        let (start, span) = (row.start, row.end - row.start);
        let mut sum = 0u64;
        let least = |streams: &[SourceRunReader]| streams.iter().map(|stream| stream.source).min();
        while let Some(next) = least(streams).filter(|&next| next < u64::MAX) {
            if next >= span {
                return Err(streams[0].broken(spools));
            }
            let page = (start + next) / PAGE_VERTICES;
            if page != self.page {
                self.end_page()?;
                self.page = page;
            }
            // Of this page, the batch-local sources before `end` belong to the row.
            let first = page * PAGE_VERTICES;
            let end = (first + PAGE_VERTICES - start).min(span);
            for stream in &mut *streams {
                while stream.source < end {
                    let v = (start + stream.source - first) as usize;
                    self.degrees[v] += stream.edges;
                    sum = sum.saturating_add(stream.edges);
                    if self.fanout.pairs.len() == self.pairs_leased {
                        self.lease.take(PAIR_BYTES * PAGE_VERTICES)?;
                        self.pairs_leased += PAGE_VERTICES as usize;
                        self.fanout.pairs.reserve_exact(PAGE_VERTICES as usize);
                    }
                    let pair = (v as u16, stream.run.destination_batch);
                    self.fanout.pairs.push(pair);
                    stream.advance(spools, window_bytes)?;
                }
            }
        }
        Ok(sum)
    }
    fn finish(mut self) -> Result<[FileRoot; 2], FormatError> {
        self.end_page()?;
        for stream in 0..2 {
            self.bytes.clear();
            let position = self.writer.position(stream);
            PageIndex::put(&mut self.bytes, position, &self.pages[stream]);
            self.writer.append(stream, &self.bytes)?;
        }
        let roots = self.writer.finish()?.try_into();
        roots.map_err(|_| FormatError::misuse("degrees and fan-out are two files"))
    }
}

/// Returns the runs of all cells, in order of their source batches.
fn source_runs(files: &[ColumnFileManifest], cells: usize) -> Vec<SourceRun> {
    let mut pieces = Vec::with_capacity(cells);
    for (number, file) in files.iter().enumerate() {
        let mut offset = 0;
        for cell in &file.cells {
            pieces.push(SourceRun {
                source_batch: cell.sizes.source_batch,
                destination_batch: cell.sizes.destination_batch,
                file: number as u32,
                checksum: cell.spool_checksum,
                offset,
                bytes: cell.spool_bytes,
            });
            offset += cell.spool_bytes;
        }
    }
    pieces.sort_unstable_by_key(|piece| (piece.source_batch, piece.destination_batch));
    pieces
}

/// Writes degrees and fan-out of one side; their roots. `arcs`: what the degrees must add up to.
pub(crate) fn write(
    shared: &WriterState,
    side: FileSide,
    files: &[ColumnFileManifest],
    arcs: u64,
) -> Result<[FileRoot; 2], FormatError> {
    let (disk, budget): (&dyn Disk, _) = (&*shared.disk, &shared.budget);
    let batches = &shared.shape.batches;
    let cells: usize = files.iter().map(|file| file.cells.len()).sum();
    let bytes = (cells * size_of::<SourceRun>()) as u64;
    let _lease = budget.lease("the cells in order of source", bytes)?;
    let pieces = source_runs(files, cells);

    let mut writer = PagedWriter::new(disk, budget, shared.graph_id)?;
    for kind in [FileKind::Degrees, FileKind::Fanout] {
        let id = FileId::new(side, kind, 0);
        writer.add(disk, &shared.staging, id, CHUNK_BYTES)?;
    }
    let pages = pages_bytes(batches, arcs);
    let spare = || budget.available().saturating_sub(pages);
    let mut spools = SourceRunFiles::open(shared, files, spare())?;
    let rows = || pieces.chunk_by(|a, b| a.source_batch == b.source_batch);
    let row_max = rows().map(<[SourceRun]>::len).max().unwrap_or(0);
    let room = (spare() / 4) as usize / row_max.max(1);
    let window_bytes = room.clamp(WINDOW_MIN, WINDOW_MAX);
    let widest = pieces.iter().map(|piece| piece.bytes).max().unwrap_or(0);
    let row_bytes = row_max as u64 * stream_bytes(widest.min(window_bytes as u64));
    let _streams = budget.lease("the sources of a row", row_bytes)?;
    let mut streams: Vec<SourceRunReader> = Vec::with_capacity(row_max);
    let mut tables = Tables {
        writer,
        lease: GrowingLease::new(budget, "degrees and fan-out", LEASE_STEP_BYTES),
        page: 0,
        degrees: Box::new([0; PAGE_VERTICES as usize]),
        fanout: FanoutPage::default(),
        pairs_leased: 0,
        bytes: Vec::new(),
        pages: [Vec::new(), Vec::new()],
        batches: batches.len(),
    };
    // For each batch a place in the union of a chunk.
    tables.lease.take(8 * batches.len() as u64)?;
    let mut sum = 0u64;
    for row in rows() {
        if streams.len() < row.len() {
            streams.resize_with(row.len(), SourceRunReader::default);
        }
        let streams = &mut streams[..row.len()];
        for (stream, piece) in streams.iter_mut().zip(row) {
            stream.begin(piece);
            stream.advance(&mut spools, window_bytes)?;
        }
        let row = batches.range(row[0].source_batch as usize);
        sum = sum.saturating_add(tables.add_row(row, streams, &mut spools, window_bytes)?);
    }
    if sum != arcs {
        let what = format!("degrees add up to {sum} of {arcs} edges");
        return Err(FormatError::misuse(what));
    }
    tables.finish()
}
