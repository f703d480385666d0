//! Step 1 of an import, *scan*: the edges are read once, and a slow input goes to an edge file on the way.
//!
//! Of the memory that the reading leaves, half is for a bitmap of the ids that occur, in proportion to the
//! input at most. Few edges between distant ids need a dictionary, which step 2 makes if the bitmap does not hold the ids.

use super::context::ImportContext;
use crate::error::IngestError;
use crate::external::bucket_file::buffer_bytes;
use crate::external::edge_file::{EDGE_CHUNK_BYTES_MAX, EdgeFileWriter, TempEdgeFile};
use crate::external::reread::EdgeReplay;
use crate::ids::bitmap::IdBitmap;
use crate::layout::histogram::ArcHistograms;
use crate::layout::scan::{EDGE_FILE_BUFFERS, Scan, Scanned, needs_spool};
use crate::options::SelfLoops;
use crate::progress::Meter;
use crate::source::{EdgeSource, Ids, PieceReport};

/// Bytes of a chunk of the edge file, at least.
const CHUNK_BYTES_MIN: usize = 16 << 10;

/// Bytes of the bitmap of ids, ranks included, for each byte of the input, at most.
///
/// For text with 15 bytes an edge, that is a range of 160 ids an edge. A bitmap of a wider range is nearly all gaps.
const BITMAP_SHARE: u64 = 4;
/// Bytes that it may take however short the input.
const BITMAP_BYTES_FREE: u64 = 12 << 20;

/// The memory that a scan needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanMemory {
    pub(crate) lanes: u64,
    /// Bytes of a reader, of edges or of vertices.
    pub(crate) reader_bytes: u64,
    pub(crate) reverse: bool,
    /// True if a list of vertices is read after the edges, while the results of the edges are held.
    pub(crate) vertices: bool,
}

impl ScanMemory {
    /// Bytes by chunks of `chunk_bytes`.
    fn bytes(&self, chunk_bytes: usize) -> u64 {
        let sums = ArcHistograms::bytes(self.reverse);
        let lane = sums + (EDGE_FILE_BUFFERS * chunk_bytes) as u64 + self.reader_bytes;
        // The tables of edge files that are short.
        let found = sums + self.lanes * EdgeFileWriter::TABLE_BYTES;
        let held = if self.vertices { found } else { 0 };
        self.lanes * lane + found + held
    }

    /// Returns the bytes of a chunk, and of the reading, with `available` bytes free.
    ///
    /// Chunks become shorter before the reading fails.
    pub(crate) fn fitting(&self, available: u64) -> (usize, u64) {
        let most = EDGE_CHUNK_BYTES_MAX;
        let mut chunk_bytes = buffer_bytes(available, self.lanes * 64, CHUNK_BYTES_MIN, most);
        while self.bytes(chunk_bytes) > available && chunk_bytes > CHUNK_BYTES_MIN {
            chunk_bytes /= 2;
        }
        (chunk_bytes, self.bytes(chunk_bytes))
    }

    /// Returns the bytes with the shortest chunks.
    pub(crate) fn least_bytes(&self) -> u64 {
        self.bytes(CHUNK_BYTES_MIN)
    }
}

/// Returns the most bytes of a bitmap of ids, with `free` bytes free and an input of `amount` bytes.
pub(crate) fn id_bitmap_bytes_max(free: u64, amount: u64) -> u64 {
    let worth = amount.saturating_mul(BITMAP_SHARE).max(BITMAP_BYTES_FREE);
    (free / 2).min(worth)
}

/// Bytes of a reader of the edges, or of the vertices if that takes more.
pub(crate) fn reader_bytes(edges: &dyn EdgeSource, vertices: Option<&dyn EdgeSource>) -> u64 {
    let vertices = vertices.map_or(0, EdgeSource::reader_bytes);
    edges.reader_bytes().max(vertices)
}

/// The edges and counts that the scan leaves.
pub(crate) struct ScanResult<'a> {
    pub(crate) source: EdgeReplay<'a>,
    pub(crate) vertices: Option<EdgeReplay<'a>>,
    pub(crate) scanned: Scanned,
    pub(crate) id_bitmap: Option<IdBitmap>,
}

impl<'a> ImportContext<'a> {
    /// Step 1.
    pub(crate) fn scan(&mut self) -> Result<ScanResult<'a>, IngestError> {
        let (resources, comm) = (self.resources, self.comm);
        let disk = &**resources.disk;
        let known = self.source.vertices().is_some();
        if known && self.vertices.is_some() {
            return Err(IngestError::VerticesKnown);
        }
        let need = ScanMemory {
            lanes: self.lanes(),
            reader_bytes: reader_bytes(self.source, self.vertices),
            reverse: self.options.turns_round(),
            vertices: self.vertices.is_some(),
        };
        let (chunk_bytes, needed) = need.fitting(resources.budget.available());
        let edge_file = |name: &str, source: &dyn EdgeSource| {
            TempEdgeFile::create(
                disk,
                self.temporary.join(name),
                chunk_bytes,
                source.weights(),
            )
        };
        let edges_spool = needs_spool(self.source).then(|| edge_file("input", self.source));
        let edges_spool = edges_spool.transpose()?;
        IngestError::check_free("the first reading of the edges", needed, resources.budget)?;
        // Of all ranks, since their ids are put together.
        let amount = self.source.amount() + self.vertices.map_or(0, EdgeSource::amount);
        let amount = match self.source.is_stream() {
            false => comm.sum(amount)?,
            // Its length is not known.
            true => u64::MAX,
        };
        let may_be_dense = matches!(self.source.ids(), Ids::Integer | Ids::Wrapping);
        let id_bitmap = (may_be_dense && !known).then(|| {
            let bytes_max = id_bitmap_bytes_max(resources.budget.available() - needed, amount);
            let bytes_max = bytes_max.min(self.options.work_bytes_max);
            IdBitmap::new(resources.budget, bytes_max)
        });
        let scan = |source: &'a dyn EdgeSource, edge_file: Option<&TempEdgeFile>, step| {
            let meter = Meter::new(resources.progress, step, source.amount());
            let scan = Scan {
                resources,
                options: self.options,
                meter: &meter,
                source,
                id_bitmap: id_bitmap.as_ref(),
                edge_file,
            };
            scan.run()
        };
        let mut scanned = scan(self.source, edges_spool.as_ref(), "scan")?;
        self.edges_here = scanned.report.edges;
        scanned.merge_ranks(&comm)?;
        let vertices = match self.vertices {
            None => None,
            Some(vertices) => {
                let edge_file = edge_file("vertices", vertices)?;
                let mut found = scan(vertices, Some(&edge_file), "vertices")?;
                found.merge_ranks(&comm)?;
                scanned.id_max = scanned.id_max.max(found.id_max);
                scanned.sample.merge(found.sample);
                self.report.vertex_lines = found.report.lines;
                self.report.vertex_lines_skipped = found.report.skipped;
                self.report.temporary_bytes += found.temporary_bytes;
                Some(EdgeReplay::TempFile(
                    edge_file.arrange(|piece| found.starts[piece as usize]),
                ))
            }
        };
        let source = match edges_spool {
            Some(edge_file) => {
                EdgeReplay::TempFile(edge_file.arrange(|piece| scanned.starts[piece as usize]))
            }
            None => EdgeReplay::Input(self.source, std::mem::take(&mut scanned.starts)),
        };
        // What was rewritten while it was read is a mixture, of whatever length it is.
        for read in [Some(self.source), self.vertices].into_iter().flatten() {
            read.check_unchanged(disk)?;
        }
        self.report_read(scanned.report, scanned.loops);
        self.report.temporary_bytes += scanned.temporary_bytes;
        self.done("scan");
        Ok(ScanResult {
            source,
            vertices,
            scanned,
            id_bitmap,
        })
    }

    /// Puts what all ranks read in the report.
    pub(super) fn report_read(&mut self, read: PieceReport, loops: u64) {
        let report = &mut self.report;
        (report.lines, report.edges, report.skipped) = (read.lines, read.edges, read.skipped);
        (report.comments, report.blank) = (read.comments + read.headers, read.blank);
        if self.options.self_loops == SelfLoops::Drop {
            report.dropped_self_loops = loops;
        }
    }
}
