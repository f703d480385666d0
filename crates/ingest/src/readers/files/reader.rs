//! How a piece of a file is read: its lines, or its pairs, and where a faulty line stands.

use std::sync::Arc;

use graphmill_storage::{Budget, Disk, GRAIN_BYTES, Lease, Stop};

use super::FileSource;
use crate::edge::{BATCH_EDGES_MAX, EdgeSink, PieceReader, PieceReport};
use crate::error::IngestError;
use crate::readers::compression::{Compression, Unpacker};
use crate::readers::file_bytes::{FileBytes, HEADROOM_BYTES, Runs};
use crate::readers::input::{Content, InputFile};
use crate::readers::raw_pairs;
use crate::readers::text::{Fault, Parser, Rules, Syntax};

/// Bytes of a file that are looked at for what no text has.
const LOOK_BYTES: usize = 4096;
/// Bytes of a batch: ids or references to them, and weights.
const BATCH_BYTES: u64 = (BATCH_EDGES_MAX * (4 + 1) * size_of::<u64>()) as u64;
/// Bytes of a reader, besides what unpacking takes.
pub(super) const READER_BYTES: u64 = FileBytes::LEASED_BYTES + BATCH_BYTES;

/// One worker's reader.
pub(super) struct FileReader<'a> {
    source: &'a FileSource,
    bytes: FileBytes,
    unpacker: Option<Unpacker>,
    _batch: Lease,
}

impl<'a> FileReader<'a> {
    pub(super) fn new(
        source: &'a FileSource,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
    ) -> Result<Self, IngestError> {
        let unpacker_bytes = source.unpacker_bytes();
        let unpacker = if unpacker_bytes > 0 {
            Some(Unpacker::new(budget, unpacker_bytes)?)
        } else {
            None
        };
        let batch = budget.lease("a batch of edges", BATCH_BYTES)?;
        Ok(Self {
            source,
            bytes: FileBytes::new(disk, budget)?,
            unpacker,
            _batch: batch,
        })
    }

    /// Gives `parser` the lines that begin in `range` (of the unpacked bytes when the file is compressed, and then from
    /// 0); returns the number of unpacked bytes that were looked at.
    pub(super) fn text(
        &mut self,
        file: &InputFile,
        range: std::ops::Range<u64>,
        parser: &mut Parser,
        stop: &Stop,
        sink: &mut dyn EdgeSink,
    ) -> Result<u64, Fault> {
        match (file.compression, &mut self.unpacker) {
            (Compression::None, _) => {
                // The byte before the range tells whether a line begins with it.
                let start = range.start.saturating_sub(1);
                let wanted = range.end.saturating_add(GRAIN_BYTES as u64);
                self.bytes.open(&file.path, file.bytes, start, wanted)?;
                lines(&mut self.bytes, file, range, parser, stop, sink)
            }
            (compression, Some(unpacker)) => {
                self.bytes.open(&file.path, file.bytes, 0, file.bytes)?;
                let mut unpacked = unpacker.open(&file.path, compression, &mut self.bytes)?;
                lines(&mut unpacked, file, range, parser, stop, sink)
            }
            (_, None) => {
                Err(IngestError::internal("there is no memory to unpack a compressed file").into())
            }
        }
    }

    fn pairs(
        &mut self,
        file: &InputFile,
        width: raw_pairs::Width,
        range: std::ops::Range<u64>,
        stop: &Stop,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        match (file.compression, &mut self.unpacker) {
            (Compression::None, _) => {
                self.bytes
                    .open(&file.path, file.bytes, range.start, range.end)?;
                raw_pairs::pairs(
                    &mut self.bytes,
                    width,
                    file,
                    range.end - range.start,
                    stop,
                    sink,
                )
            }
            (compression, Some(unpacker)) => {
                self.bytes.open(&file.path, file.bytes, 0, file.bytes)?;
                let mut unpacked = unpacker.open(&file.path, compression, &mut self.bytes)?;
                raw_pairs::pairs(&mut unpacked, width, file, u64::MAX, stop, sink)
            }
            (_, None) => Err(IngestError::internal(
                "there is no memory to unpack a compressed file",
            )),
        }
    }

    /// The error of a fault after `parser` took the lines from byte `start` of a file on: with the number of the line.
    pub(super) fn fail<T>(
        &mut self,
        fault: Fault,
        file: &InputFile,
        start: u64,
        parser: &Parser,
        stop: &Stop,
    ) -> Result<T, IngestError> {
        let path = file.path.clone();
        let mut line = || {
            let before = self.lines_before(file, start, stop)?;
            Ok::<_, IngestError>(before + parser.report().lines + 1)
        };
        Err(match fault {
            Fault::Line { problem, found } => IngestError::Line {
                path,
                line: line()?,
                found,
                problem,
            },
            Fault::Endless => IngestError::EndlessLine {
                path,
                line: line()?,
                bytes_max: HEADROOM_BYTES,
            },
            Fault::Other(error) => error,
        })
    }

    /// The lines of a plain file that end before byte `start`, and the one that `start` lies in.
    fn lines_before(
        &mut self,
        file: &InputFile,
        start: u64,
        stop: &Stop,
    ) -> Result<u64, IngestError> {
        let Some(mut left) = start.checked_sub(1) else {
            return Ok(0);
        };
        self.bytes.open(&file.path, file.bytes, 0, left)?;
        let mut lines = 1;
        loop {
            if stop.requested() {
                return Err(IngestError::Stopped);
            }
            let (run, last) = self.bytes.next(0)?;
            let run = &run[..run.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            lines += run.iter().filter(|&&byte| byte == b'\n').count() as u64;
            left -= run.len() as u64;
            if last || left == 0 {
                return Ok(lines);
            }
        }
    }
}

impl PieceReader for FileReader<'_> {
    fn read(
        &mut self,
        piece: u64,
        stop: &Stop,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let source = self.source;
        let index = source
            .first_pieces
            .partition_point(|&first| first <= piece)
            .wrapping_sub(1);
        let (Some(file), Some(first)) = (
            source.input.edges.get(index),
            source.first_pieces.get(index),
        ) else {
            return Err(IngestError::internal("a piece is read that does not exist"));
        };
        let range = match file.compression {
            Compression::None => {
                let start = (piece - first) * source.piece_bytes;
                start..(start + source.piece_bytes).min(file.bytes)
            }
            _ => 0..u64::MAX,
        };
        let syntax = match file.content {
            Content::Pairs(width) => return self.pairs(file, width, range, stop, sink),
            Content::Text(syntax) => syntax,
        };
        let rules = Rules {
            syntax,
            columns: source.columns,
            ids: source.ids,
            weights: source.weights,
            skip: source.skip,
        };
        let mut parser = Parser::new(rules, range.start == 0);
        match self.text(file, range.clone(), &mut parser, stop, sink) {
            Ok(_) => Ok(parser.report()),
            Err(fault) => self.fail(fault, file, range.start, &parser, stop),
        }
    }
}

/// Gives `parser` the lines of `runs` that begin in `range`; `runs` begin with the byte before it, if there is one.
/// Returns where the last run ended.
fn lines(
    runs: &mut impl Runs,
    file: &InputFile,
    range: std::ops::Range<u64>,
    parser: &mut Parser,
    stop: &Stop,
    sink: &mut dyn EdgeSink,
) -> Result<u64, Fault> {
    let mut at_start = range.start == 0;
    // Whether a line that began before the range may still go on.
    let mut inside = range.start > 0;
    // Offset in the file of the run's first byte.
    let mut offset = range.start.saturating_sub(1);
    let (mut kept, mut taken) = (0, 0);
    loop {
        if stop.requested() {
            return Err(IngestError::Stopped.into());
        }
        let (run, last) = runs.next(kept)?;
        let bytes = run.len();
        let mut start = 0;
        if std::mem::take(&mut at_start) {
            start = start_of_text(file, run)?;
        }
        let whole = match run.iter().rposition(|&byte| byte == b'\n') {
            _ if last => bytes,
            Some(end) => end + 1,
            None => 0,
        };
        if inside {
            match run.iter().position(|&byte| byte == b'\n') {
                Some(end) => (start, inside) = (end + 1, false),
                None => start = bytes,
            }
        }
        let whole = whole.max(start);
        let limit = range.end.saturating_sub(offset + start as u64);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        parser.lines(&run[start..whole], limit, sink)?;
        kept = bytes - whole;
        offset += whole as u64;
        sink.progress(runs.taken() - taken);
        taken = runs.taken();
        if last || offset >= range.end {
            return Ok(offset);
        }
        if kept > HEADROOM_BYTES {
            return Err(Fault::Endless);
        }
    }
}

/// Where the text of a file that begins with `run` begins: after a byte-order mark.
fn start_of_text(file: &InputFile, run: &[u8]) -> Result<usize, IngestError> {
    let start = if run.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let head = &run[start..run.len().min(LOOK_BYTES)];
    if head.contains(&0) {
        let problem = "the file holds zero bytes, so it is no text in UTF-8; if it holds raw pairs, say --format raw-u32 or raw-u64";
        return Err(IngestError::input(&file.path, problem));
    }
    if file.content != Content::Text(Syntax::Dimacs) && head.starts_with(b"%%MatrixMarket") {
        return Err(IngestError::input(
            &file.path,
            "a Matrix Market file, which is not read; remove its first two lines to read its entries as edges",
        ));
    }
    Ok(start)
}
