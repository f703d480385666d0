//! Files as a source of edges: the pieces they are cut in, and how a piece is read.
//!
//! A piece of plain text is the lines that begin in a range of bytes, so every line is in one piece. A piece of raw pairs
//! is a range of bytes. A compressed file is one piece, since it can only be read from its start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Disk, GRAIN_BYTES, Lease, Stop};

use super::compression::{Compression, Unpacker};
use super::file_bytes::{FileBytes, HEADROOM_BYTES, Runs, changed};
use super::input::{Content, Format, Input, InputFile, vertex_file};
use super::raw_pairs;
use super::text::{Columns, Fault, Parser, Rules, Syntax};
use crate::edge::{BATCH_EDGES_MAX, EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};
use crate::error::IngestError;

/// Unpacked bytes from which the kind of the ids is found out.
const DETECT_BYTES: u64 = 64 << 20;
/// Bytes of a piece, unless said otherwise.
const PIECE_BYTES: u64 = 16 << 20;
/// Bytes of a file that are looked at for what no text has.
const LOOK_BYTES: usize = 4096;

/// What to do with a malformed line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It is an error.
    #[default]
    Stop,
    /// It is left out and counted.
    Skip,
}

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// What the files are.
    pub format: Format,
    /// What the ids are; `None`: integers if all are in the first 64 MiB, else text.
    pub ids: Option<Ids>,
    /// Whether the third column is a weight: a finite number, negative ones too, that is rounded to this type.
    pub weights: EdgeKind,
    /// What to do with a malformed line.
    pub on_error: OnError,
    /// Bytes of a piece of a file that is not compressed; does not change what is read.
    pub piece_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: Format::Auto,
            ids: None,
            weights: EdgeKind::None,
            on_error: OnError::Stop,
            piece_bytes: PIECE_BYTES,
        }
    }
}

/// Edge files, or a list of vertices.
#[derive(Debug)]
pub struct FileSource {
    input: Input,
    columns: Columns,
    ids: Ids,
    weights: EdgeKind,
    skip: bool,
    piece_bytes: u64,
    /// The number of the first piece of each file, and of all pieces.
    first_pieces: Vec<u64>,
}

impl FileSource {
    /// Bytes of the budget that a reader of these files takes, as far as their names tell: those of folders are not looked at.
    pub fn reader_bytes_by_name<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> u64 {
        let unpacker = |path: &PathBuf| Compression::of_name(path).leased_bytes();
        READER_BYTES + paths.into_iter().map(unpacker).max().unwrap_or(0)
    }

    /// The edges of `paths`: files, or folders of them (see [`InputFile`] for which), in this order.
    ///
    /// Looks at the names, the first bytes and, where the ids may be anything, the first 64 MiB.
    ///
    /// # Errors
    /// A file cannot be read, is of a format that is not read, or does not fit `options` or the other files.
    pub fn open(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        paths: &[PathBuf],
        options: &ReadOptions,
        stop: &Stop,
    ) -> Result<Self, IngestError> {
        let input = Input::find(
            disk,
            paths,
            options.format,
            &mut FileBytes::new(disk, budget)?,
        )?;
        let Some(first) = input.edges.first() else {
            let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
            return Err(IngestError::input(
                path,
                "no file of edges is among the inputs",
            ));
        };
        let pairs = |file: &&InputFile| matches!(file.content, Content::Pairs(_));
        let raw = input.edges.iter().find(pairs);
        if let Some(raw) = raw
            && options.weights != EdgeKind::None
        {
            return Err(IngestError::input(
                &raw.path,
                "raw pairs have no weights (--weights none)",
            ));
        }
        if let Some(raw) = raw
            && options.ids == Some(Ids::Text)
        {
            return Err(IngestError::input(
                &raw.path,
                "the ids of raw pairs are integers (--ids int)",
            ));
        }
        let first = first.path.clone();
        let mut source = Self::of(input, Columns::Edge, options);
        if options.ids.is_none() {
            source.ids = source.detect(disk, budget, stop)?;
            let raw = source.input.edges.iter().find(pairs);
            if source.ids == Ids::Text
                && let Some(raw) = raw
            {
                let problem = format!(
                    "raw pairs have integer ids, but not all ids of the other files are ({})",
                    first.display()
                );
                return Err(IngestError::input(&raw.path, problem));
            }
        }
        Ok(source)
    }

    /// The vertices in the first column of the files `paths`, each as an edge from itself to itself.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_vertices(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        paths: &[PathBuf],
        ids: Ids,
        on_error: OnError,
    ) -> Result<Self, IngestError> {
        let mut bytes = FileBytes::new(disk, budget)?;
        let edges = paths
            .iter()
            .map(|path| vertex_file(disk, path, &mut bytes))
            .collect::<Result<_, _>>()?;
        let options = ReadOptions {
            ids: Some(ids),
            on_error,
            ..ReadOptions::default()
        };
        Ok(Self::of(
            Input {
                edges,
                ..Input::default()
            },
            Columns::Vertex,
            &options,
        ))
    }

    fn of(input: Input, columns: Columns, options: &ReadOptions) -> Self {
        // A multiple of the grain, and so of a pair.
        let piece_bytes = options
            .piece_bytes
            .clamp(1, 1 << 40)
            .next_multiple_of(GRAIN_BYTES as u64);
        let mut first_pieces = vec![0];
        let mut pieces = 0;
        for file in &input.edges {
            pieces += match file.compression {
                Compression::None => file.bytes.div_ceil(piece_bytes),
                _ => 1,
            };
            first_pieces.push(pieces);
        }
        Self {
            input,
            columns,
            ids: options.ids.unwrap_or(Ids::Integer),
            weights: options.weights,
            skip: options.on_error == OnError::Skip,
            piece_bytes,
            first_pieces,
        }
    }

    /// The files, in order.
    pub fn files(&self) -> &[InputFile] {
        &self.input.edges
    }

    /// LDBC files of vertices (`.v`) among the inputs.
    pub fn vertex_files(&self) -> &[PathBuf] {
        &self.input.vertices
    }

    /// Files of the folders among the inputs that were left out.
    pub fn left_out(&self) -> &[PathBuf] {
        &self.input.left_out
    }

    /// What the ids of the first bytes are.
    fn detect(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        stop: &Stop,
    ) -> Result<Ids, IngestError> {
        let mut reader = FileReader::new(self, disk, budget)?;
        let mut left = DETECT_BYTES;
        let (mut headers, mut edges) = (false, false);
        for file in &self.input.edges {
            let Content::Text(syntax) = file.content else {
                edges = true;
                continue;
            };
            let rules = Rules {
                syntax,
                columns: self.columns,
                ids: Ids::Integer,
                weights: EdgeKind::None,
                skip: true,
            };
            let mut parser = Parser::new(rules, true);
            let read = reader
                .text(file, 0..left, &mut parser, stop, &mut Nowhere)
                .or_else(|fault| reader.fail(fault, file, 0, &parser, stop))?;
            let report = parser.report();
            if parser.not_integers() > 0 {
                return Ok(Ids::Text);
            }
            headers |= report.headers > 0;
            edges |= report.edges > 0;
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
        // A single line of text looks like a header until it turns out that nothing follows, in any file: programs that
        // write in parts write some with a header alone.
        Ok(if headers && !edges {
            Ids::Text
        } else {
            Ids::Integer
        })
    }
}

/// What takes edges that are only looked at.
struct Nowhere;

impl EdgeSink for Nowhere {
    fn integers(&mut self, _: &[(u64, u64)], _: &[f64]) -> Result<(), IngestError> {
        Ok(())
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: &[f64]) -> Result<(), IngestError> {
        Ok(())
    }
}

impl EdgeSource for FileSource {
    fn pieces(&self) -> u64 {
        self.first_pieces.last().copied().unwrap_or(0)
    }

    fn ids(&self) -> Ids {
        self.ids
    }

    fn weights(&self) -> EdgeKind {
        self.weights
    }

    fn vertices(&self) -> Option<u64> {
        None
    }

    fn edges(&self) -> Option<u64> {
        self.input
            .edges
            .iter()
            .map(|file| match (file.content, file.compression) {
                (Content::Pairs(width), Compression::None) => {
                    Some(file.bytes / width.pair_bytes() as u64)
                }
                _ => None,
            })
            .sum()
    }

    fn amount(&self) -> u64 {
        self.input.edges.iter().map(|file| file.bytes).sum()
    }

    fn rereads_fast(&self) -> bool {
        self.edges().is_some()
    }

    fn check_unchanged(&self, disk: &dyn Disk) -> Result<(), IngestError> {
        for file in &self.input.edges {
            if disk.stamp(&file.path)? != file.stamp {
                return Err(changed(&file.path));
            }
        }
        Ok(())
    }

    fn reader_bytes(&self) -> u64 {
        READER_BYTES + self.unpacker_bytes()
    }

    fn reader(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(FileReader::new(self, disk, budget)?))
    }
}

/// Bytes of a batch: ids or references to them, and weights.
const BATCH_BYTES: u64 = (BATCH_EDGES_MAX * (4 + 1) * size_of::<u64>()) as u64;
/// Bytes of a reader, besides what unpacking takes.
const READER_BYTES: u64 = FileBytes::LEASED_BYTES + BATCH_BYTES;

impl FileSource {
    fn unpacker_bytes(&self) -> u64 {
        self.input
            .edges
            .iter()
            .map(|file| file.compression.leased_bytes())
            .max()
            .unwrap_or(0)
    }
}

/// One worker's reader.
struct FileReader<'a> {
    source: &'a FileSource,
    bytes: FileBytes,
    unpacker: Option<Unpacker>,
    _batch: Lease,
}

impl<'a> FileReader<'a> {
    fn new(
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
    fn text(
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
    fn fail<T>(
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
