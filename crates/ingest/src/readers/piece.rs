//! How a piece of a file is read: its lines, or its pairs, and where a faulty line stands.

use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::{CancelToken, Disk, GRAIN_BYTES, Lease, MemoryBudget};

use super::binary;
use super::compression::{Compression, Unpacker};
use super::files::FileSource;
use super::input_file::{FileContent, InputFile};
use super::parquet::ParquetFile;
use super::read_ahead::{ByteRuns, HEADROOM_BYTES, ReadAhead};
use super::table_rows::RowRequest;
use super::text::fault::{LineFault, ParseError};
use super::text::parser::{Malformed, Parser};
use super::text::record::{LexState, line_ends};
use crate::error::IngestError;
use crate::limits::BATCH_EDGES_MAX;
use crate::source::{EdgeSink, PieceReader, PieceReport};

/// Bytes of a batch: ids or references to them, and the data of edges.
const BATCH_BYTES: u64 = (BATCH_EDGES_MAX * (4 + 2) * size_of::<u64>()) as u64;
/// Bytes of a reader, without the memory of unpacking.
pub(super) const READER_BYTES: u64 = ReadAhead::LEASED_BYTES + BATCH_BYTES;

/// One worker's reader.
pub(super) struct FileReader<'a> {
    source: &'a FileSource,
    bytes: ReadAhead,
    unpacker: Option<Unpacker>,
    _batch: Lease,
    /// For a row group of a Parquet file.
    _group: Lease,
    disk: Arc<dyn Disk>,
    budget: MemoryBudget,
}

impl<'a> FileReader<'a> {
    pub(super) fn new(
        source: &'a FileSource,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
    ) -> Result<Self, IngestError> {
        let unpacker_bytes = source.unpacker_bytes();
        let unpacker = (unpacker_bytes > 0).then(|| Unpacker::new(budget, unpacker_bytes));
        let unpacker = unpacker.transpose()?;
        let batch = budget.lease("a batch of edges", BATCH_BYTES)?;
        // Its columns have leases of their own.
        let group = source.parquet_bytes(ParquetFile::group_bytes);
        Ok(Self {
            source,
            bytes: ReadAhead::new(disk, budget)?,
            unpacker,
            _batch: batch,
            _group: budget.lease("a row group of a Parquet file", group)?,
            disk: Arc::clone(disk),
            budget: budget.clone(),
        })
    }

    /// Passes `parser` the records that begin in `range`, after the head of the file.
    ///
    /// The range counts unpacked bytes if the file is compressed, and then from 0. Returns the number of unpacked bytes read.
    pub(super) fn text(
        &mut self,
        file: &InputFile,
        range: Range<u64>,
        parser: &mut Parser<'_>,
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<u64, ParseError> {
        let FileContent::Text(_, head) = &file.content else {
            return Err(IngestError::internal("pairs are read as text").into());
        };
        let (start, skip) = match file.compression {
            Compression::None if range.end <= head.bytes => return Ok(range.end),
            // The byte before the range shows whether a line begins with the range.
            Compression::None => (range.start.saturating_sub(1).max(head.bytes), 0),
            _ => (0, head.bytes),
        };
        let wanted = range.end.saturating_add(GRAIN_BYTES as u64);
        self.runs(file, start..wanted, |runs| {
            lines(runs, start, skip, range.end, parser, stop, sink)
        })
    }

    /// Passes `take` the runs of bytes from the start of `range` on; of a compressed file all, unpacked.
    ///
    /// The bytes of the range are read ahead.
    fn runs<T, E: From<IngestError>>(
        &mut self,
        file: &InputFile,
        range: Range<u64>,
        take: impl FnOnce(&mut dyn ByteRuns) -> Result<T, E>,
    ) -> Result<T, E> {
        let (path, bytes) = (&file.path, file.bytes);
        if file.compression == Compression::None {
            self.bytes.open(path, bytes, range.start, range.end)?;
            return take(&mut self.bytes);
        }
        let no_memory = || IngestError::internal("there is no memory to unpack a compressed file");
        let unpacker = self.unpacker.as_mut().ok_or_else(no_memory)?;
        self.bytes.open(path, bytes, 0, bytes)?;
        take(&mut unpacker.open(path, file.compression, &mut self.bytes)?)
    }

    /// The error of a fault, with the number of its line; faults say which byte of the file it begins with.
    pub(super) fn fail<T>(
        &mut self,
        fault: ParseError,
        file: &InputFile,
        stop: &CancelToken,
    ) -> Result<T, IngestError> {
        let (at, fault) = match fault {
            ParseError::At(at, fault) => (at, fault),
            ParseError::Other(error) => return Err(error),
        };
        let line = 1 + self.runs(file, 0..at, |runs| count_lines(runs, at, stop))?;
        let path = file.path.clone();
        Err(match fault {
            LineFault::Malformed { problem, found } => IngestError::Line {
                path,
                line,
                found,
                problem,
            },
            LineFault::Unclosed => IngestError::UnclosedQuote { path, line },
            LineFault::Endless => IngestError::EndlessLine {
                path,
                line,
                bytes_max: HEADROOM_BYTES,
            },
        })
    }
}

/// Line ends in the first `end` bytes of `runs`.
fn count_lines(runs: &mut dyn ByteRuns, end: u64, stop: &CancelToken) -> Result<u64, IngestError> {
    let (mut lines, mut left, mut before) = (0, end, b'\n');
    loop {
        IngestError::check_stop(stop)?;
        let (run, last) = runs.next(0)?;
        let run = &run[..run.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        lines += line_ends(before, run);
        before = run.last().copied().unwrap_or(before);
        left -= run.len() as u64;
        if last || left == 0 {
            return Ok(lines);
        }
    }
}

impl PieceReader for FileReader<'_> {
    fn read(
        &mut self,
        piece: u64,
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let source = self.source;
        let (files, firsts) = (&source.input.edges, &source.first_pieces);
        let index = firsts.partition_point(|&first| first <= piece);
        let index = index.wrapping_sub(1);
        let (Some(file), Some(first)) = (files.get(index), firsts.get(index)) else {
            return Err(IngestError::internal("a piece is read that does not exist"));
        };
        let range = match file.compression {
            Compression::None => {
                let start = (piece - first) * source.piece_bytes;
                start..(start + source.piece_bytes).min(file.bytes)
            }
            _ => 0..u64::MAX,
        };
        let (dialect, head) = match &file.content {
            FileContent::Pairs(width) => {
                let ids = source.id_range();
                return self.runs(file, range.clone(), |runs| {
                    binary::pairs(runs, *width, (file, range, ids), stop, sink)
                });
            }
            FileContent::Parquet(parquet) => {
                let want = RowRequest {
                    ids: source.id_range(),
                    weights: source.weights,
                    skips: source.skip,
                };
                let (disk, budget) = (&self.disk, &self.budget);
                let rows = ((piece - first) as usize, want);
                return parquet.read(disk, budget, &file.path, rows, stop, sink);
            }
            FileContent::Text(dialect, head) => (dialect, head),
        };
        // A piece after the first begins within a line, but for the one that begins with the first edge.
        let state = file.states.get((piece - first) as usize).copied();
        let within = (range.start > head.bytes).then_some(state.unwrap_or(LexState::Plain));
        let malformed = match source.skip {
            true => Malformed::Skip,
            false => Malformed::Fail,
        };
        let mut parser = Parser::new(
            dialect,
            source.id_range(),
            source.weights,
            malformed,
            within,
        );
        let is_first = range.start == 0;
        if let Err(fault) = self.text(file, range, &mut parser, stop, sink) {
            return self.fail(fault, file, stop);
        }
        let mut report = parser.report();
        if is_first {
            report.add(head.report);
        }
        Ok(report)
    }
}

/// Passes `parser` the records of `runs` that begin before byte `end` of the file.
///
/// It skips the first `skip` bytes; `runs` begin with byte `offset`. Returns where the first record begins that it did not take.
fn lines(
    runs: &mut dyn ByteRuns,
    mut offset: u64,
    mut skip: u64,
    end: u64,
    parser: &mut Parser<'_>,
    stop: &CancelToken,
    sink: &mut dyn EdgeSink,
) -> Result<u64, ParseError> {
    let (mut kept, mut taken) = (0, 0);
    loop {
        IngestError::check_stop(stop)?;
        let (run, last) = runs.next(kept)?;
        let bytes = run.len();
        let start = bytes.min(usize::try_from(skip).unwrap_or(usize::MAX));
        skip -= start as u64;
        let begins = offset + start as u64;
        let limit = usize::try_from(end.saturating_sub(begins)).unwrap_or(usize::MAX);
        let done = parser
            .lines(&run[start..], limit, last, sink)
            .map_err(|fault| fault.after(begins))?;
        kept = bytes - start - done;
        offset = begins + done as u64;
        sink.progress(runs.taken() - taken);
        taken = runs.taken();
        if last || offset >= end {
            return Ok(offset);
        }
        if kept > HEADROOM_BYTES {
            return Err(ParseError::At(offset, LineFault::Endless));
        }
    }
}
