//! Lines of text to edges: SNAP and GAPBS lists, CSV, LDBC Graphalytics, the arcs of DIMACS, lists of vertices.
//!
//! 1. [`sniff`] decides from the first bytes of a file how it is read: its [`Dialect`].
//! 2. [`Parser::lines`] takes a run of bytes. Most lines are `integer separator integer`: a short loop that looks at eight
//!    bytes at once reads them.
//! 3. Whatever that loop does not know (quotes, odd spacing, long numbers, text, other columns) goes record by record through
//!    [`Cut`](record::Cut), which knows everything and decides what is an error.

mod dialect;
mod digits;
mod names;
mod record;
mod values;

use graphmill_graph::EdgeKind;
use memchr::memchr;

use crate::edge::{BATCH_EDGES_MAX, EdgeSink, Ids, PieceReport, SIGN};
use crate::error::{IngestError, LineProblem};
use dialect::{is_spaced_comment, past_mark};
use digits::{F32, F64, NONE, id_at, weight_at};
use record::{NoRecord, trim, undoubled};
use values::weight;
pub(crate) use values::{Integer, text_id};

pub(crate) use dialect::{Ask, Chosen, Columns, Dialect, Head, Syntax, choose, sniff};
pub use dialect::{Comments, Header, Quote, TextOptions};
pub use record::Delimiter;
pub(crate) use record::{Place, Quotes, line_ends};

/// Why lines could not be taken; a byte is counted from the first of those given, then of the file.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The line at this byte is malformed.
    Line {
        problem: LineProblem,
        found: String,
        at: u64,
    },
    /// The quotes that open in the record at this byte are not closed.
    Unclosed { at: u64 },
    /// The line at this byte is longer than a line may be.
    Endless { at: u64 },
    /// Something else.
    Other(IngestError),
}

impl Fault {
    /// The same, where so many bytes come before those given.
    pub(crate) fn after(self, before: u64) -> Self {
        match self {
            Self::Line { problem, found, at } => Self::Line {
                problem,
                found,
                at: before + at,
            },
            Self::Unclosed { at } => Self::Unclosed { at: before + at },
            Self::Endless { at } => Self::Endless { at: before + at },
            Self::Other(error) => Self::Other(error),
        }
    }
}

impl From<IngestError> for Fault {
    fn from(error: IngestError) -> Self {
        Self::Other(error)
    }
}

/// Bytes of a malformed line that its error shows.
const SHOWN_BYTES: usize = 60;

/// How a line starts, for an error.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)])
        .trim_end()
        .to_string()
}

/// What to do with a malformed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// It is an error.
    Fail,
    /// It is counted.
    Skip,
    /// It is counted, but an id that is no integer is an error, and so is a quote where none was: both decide how the file is read.
    Probe,
}

/// Turns lines into batches of edges.
#[derive(Debug)]
pub(crate) struct Parser<'d> {
    dialect: &'d Dialect,
    columns: Columns,
    ids: Ids,
    weights: EdgeKind,
    malformed: Malformed,
    /// The largest column that is wanted, from 0.
    last: usize,
    /// Wanted columns are the first ones, in order: the short loop knows them.
    is_plain: bool,
    /// Bytes that separate columns in the short loop.
    separators: [bool; 256],
    /// The bytes begin within a record, at such a place.
    within: Option<Place>,
    report: PieceReport,
    /// Line ends within records.
    inner_ends: u64,
    /// The last id that was no integer.
    no_integer: Vec<u8>,
    /// There are zero bytes among those at hand.
    has_zeros: bool,
    /// Whether an id is negative, or too large for a signed integer.
    negative: bool,
    huge: bool,
    edges: Vec<(u64, u64)>,
    weight_batch: Vec<f64>,
}

/// The wanted fields of a record.
struct Row<'a> {
    ends: [record::Field<'a>; 2],
    weight: &'a [u8],
}

impl<'d> Parser<'d> {
    /// A parser of the records of a file. `within`: the bytes begin inside a record, at such a place.
    pub(crate) fn new(
        dialect: &'d Dialect,
        columns: Columns,
        ids: Ids,
        weights: EdgeKind,
        malformed: Malformed,
        within: Option<Place>,
    ) -> Self {
        let mut separators = [false; 256];
        let marks: &[u8] = match &dialect.cut.delimiter {
            Delimiter::Blanks => b" \t",
            Delimiter::Byte(byte) => std::slice::from_ref(byte),
        };
        for &mark in marks {
            separators[usize::from(mark)] = true;
        }
        let [source, destination, weight] = dialect.wanted;
        let weight_last = match (columns, weights) {
            (Columns::Edge, EdgeKind::F32 | EdgeKind::F64) => weight,
            _ => 0,
        };
        let first = usize::from(dialect.syntax == Syntax::Dimacs);
        let is_plain = columns == Columns::Edge
            && [source, destination] == [first, first + 1]
            && (weights == EdgeKind::None || weight == first + 2)
            && !(dialect.columns == Some(2) && weights != EdgeKind::None)
            && !matches!(dialect.comments, Comments::Prefix(_));
        Self {
            dialect,
            columns,
            ids,
            weights,
            malformed,
            last: source.max(destination).max(weight_last),
            is_plain,
            separators,
            within,
            report: PieceReport::default(),
            inner_ends: 0,
            no_integer: Vec::new(),
            has_zeros: false,
            negative: false,
            huge: false,
            edges: Vec::with_capacity(BATCH_EDGES_MAX),
            weight_batch: Vec::with_capacity(BATCH_EDGES_MAX),
        }
    }

    /// What was in the lines so far.
    pub(crate) fn report(&self) -> PieceReport {
        let PieceReport {
            edges,
            comments,
            blank,
            headers,
            skipped,
            ..
        } = self.report;
        PieceReport {
            lines: edges + comments + blank + headers + skipped,
            ..self.report
        }
    }

    /// Line ends of the records so far.
    pub(crate) fn line_ends(&self) -> u64 {
        self.report().lines + self.inner_ends
    }

    /// The last id that was no integer, for a notice, and whether it is a number all the same.
    pub(crate) fn no_integer(&self) -> (String, bool) {
        let is_number = values::Cell::of(&self.no_integer).is_number()
            || self.no_integer.iter().all(u8::is_ascii_digit);
        (shown(&self.no_integer), is_number)
    }

    /// Whether an id was negative, and whether one was 2^63 or more.
    pub(crate) fn signs(&self) -> [bool; 2] {
        [self.negative, self.huge]
    }

    /// Takes the records of `bytes` that begin before `limit`, and returns where the first one begins that was not taken. The
    /// text ends with `bytes` if they are the `last`.
    ///
    /// # Errors
    /// A malformed line, unless those are skipped, an unclosed quote, or an error of `sink`.
    pub(crate) fn lines(
        &mut self,
        bytes: &[u8],
        limit: usize,
        last: bool,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, Fault> {
        let limit = limit.min(bytes.len());
        self.has_zeros = memchr(0, bytes).is_some();
        let mut at = 0;
        if let Some(place) = &mut self.within {
            match self.dialect.cut.record_from(bytes, 0, last, place) {
                Ok(record) => {
                    self.within = None;
                    at = record.next;
                }
                // A CR at the end waits for what follows it.
                Err(NoRecord::Partial) => {
                    let is_quoted = *place == Place::Quoted;
                    return Ok(bytes.len() - usize::from(!is_quoted && bytes.ends_with(b"\r")));
                }
                // The piece where the quote opens tells.
                Err(NoRecord::Unclosed) => return Ok(bytes.len()),
            }
        }
        match self.ids {
            Ids::Integer | Ids::Signed => self.integers(bytes, at, limit, last, sink),
            Ids::Text => self.texts(bytes, at, limit, last, sink),
        }
    }

    fn integers(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        limit: usize,
        last: bool,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, Fault> {
        while at < limit {
            if self.is_plain {
                at = match self.weights {
                    EdgeKind::None => self.easy::<NONE>(bytes, at, limit),
                    EdgeKind::F32 => self.easy::<F32>(bytes, at, limit),
                    EdgeKind::F64 => self.easy::<F64>(bytes, at, limit),
                };
            }
            if at < limit && self.edges.len() < BATCH_EDGES_MAX {
                let Some((line, next)) = self.record(bytes, at, last)? else {
                    break;
                };
                match self.integers_of(line) {
                    Ok(Some((edge, weight))) => {
                        self.edges.push(edge);
                        if self.weights != EdgeKind::None {
                            self.weight_batch.push(weight);
                        }
                    }
                    Ok(None) => {}
                    Err(problem) => self.malformed(problem, line, at)?,
                }
                at = next;
            }
            if self.edges.len() == BATCH_EDGES_MAX {
                self.flush(sink)?;
            }
        }
        self.flush(sink)?;
        Ok(at)
    }

    /// The record at `at`, without its end, and where the next begins; `None` where it goes on after `bytes`.
    fn record<'a>(
        &mut self,
        bytes: &'a [u8],
        at: usize,
        last: bool,
    ) -> Result<Option<(&'a [u8], usize)>, Fault> {
        let place = self.dialect.place(&bytes[at..]);
        match self.dialect.cut.record(bytes, at, last, place) {
            Ok(record) => {
                let line = &bytes[at..record.end];
                if self.dialect.cut.quotes == Quotes::Enclose {
                    self.inner_ends += line_ends(b'\n', line);
                }
                Ok(Some((past_mark(line), record.next)))
            }
            Err(NoRecord::Partial) => Ok(None),
            Err(NoRecord::Unclosed) => Err(Fault::Unclosed { at: at as u64 }),
        }
    }

    fn flush(&mut self, sink: &mut dyn EdgeSink) -> Result<(), Fault> {
        if !self.edges.is_empty() {
            sink.integers(&self.edges, &self.weight_batch)?;
            self.edges.clear();
            self.weight_batch.clear();
        }
        Ok(())
    }

    /// Reads easy lines from `at` on; returns where it stopped: at `limit`, at a line that is not easy, or because the
    /// batch is full.
    #[inline(always)]
    fn easy<const KIND: u8>(&mut self, bytes: &[u8], mut at: usize, limit: usize) -> usize {
        let before = self.edges.len();
        let dimacs = self.dialect.syntax == Syntax::Dimacs;
        let sign = if self.ids == Ids::Signed { SIGN } else { 0 };
        // Columns behind those that are wanted: any number, or this one.
        let others = (self.dialect.columns).map(|columns| columns.saturating_sub(self.last + 1));
        let (none, some) = (matches!(others, None | Some(0)), others != Some(0));
        let cut = self.dialect.cut;
        let separates = |at: usize| {
            bytes
                .get(at)
                .is_some_and(|&byte| self.separators[usize::from(byte)])
        };
        let mut easy_line = |at: usize| {
            let mut start = at;
            if dimacs {
                start += 2;
                if bytes.get(at..start) != Some(b"a ".as_slice()) {
                    return None;
                }
            }
            let (source, end) = id_at(bytes, start)?;
            if !separates(end) {
                return None;
            }
            let (destination, mut end) = id_at(bytes, end + 1)?;
            let mut weight = 0.0;
            if KIND != NONE {
                if !separates(end) {
                    return None;
                }
                (weight, end) = weight_at::<KIND>(bytes, end + 1)?;
            }
            let line_end = |end: usize| match bytes.get(end)? {
                b'\n' => Some(end + 1),
                b'\r' if bytes.get(end + 1) == Some(&b'\n') => Some(end + 2),
                _ => None,
            };
            let next = match line_end(end) {
                Some(next) if none => next,
                None if some && separates(end) => line_end(cut.fields_end(bytes, end, others)?)?,
                Some(_) | None => return None,
            };
            self.edges.push((source ^ sign, destination ^ sign));
            if KIND != NONE {
                self.weight_batch.push(weight);
            }
            Some((next, self.edges.len() == BATCH_EDGES_MAX))
        };
        while at < limit
            && let Some((next, full)) = easy_line(at)
        {
            at = next;
            if full {
                break;
            }
        }
        self.report.edges += (self.edges.len() - before) as u64;
        at
    }

    fn texts(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        limit: usize,
        last: bool,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, Fault> {
        let mut edges: Vec<(&[u8], &[u8])> = Vec::with_capacity(BATCH_EDGES_MAX);
        while at < limit {
            let Some((line, next)) = self.record(bytes, at, last)? else {
                break;
            };
            let edge = self.texts_of(line);
            match edge {
                Ok(Some((ends, weight))) => {
                    if self.weights != EdgeKind::None {
                        self.weight_batch.push(weight);
                    }
                    match ends {
                        [source, destination] if !source.doubled && !destination.doubled => {
                            edges.push((source.bytes, destination.bytes));
                        }
                        ends => {
                            // What holds doubled quotes is copied, and goes with the edges before it.
                            let texts = ends.map(|end| match end.doubled {
                                true => undoubled(end.bytes),
                                false => end.bytes.to_vec(),
                            });
                            let mut batch = edges.clone();
                            batch.push((&texts[0], &texts[1]));
                            sink.texts(&batch, &self.weight_batch)?;
                            edges.clear();
                            self.weight_batch.clear();
                        }
                    }
                }
                Ok(None) => {}
                Err(problem) => self.malformed(problem, line, at)?,
            }
            at = next;
            if edges.len() == BATCH_EDGES_MAX {
                sink.texts(&edges, &self.weight_batch)?;
                edges.clear();
                self.weight_batch.clear();
            }
        }
        if !edges.is_empty() {
            sink.texts(&edges, &self.weight_batch)?;
            self.weight_batch.clear();
        }
        Ok(at)
    }

    /// The edge of a line between integer ids, if it holds one, counted.
    fn integers_of(&mut self, line: &[u8]) -> Result<Option<IntegerEdge>, LineProblem> {
        let Some(row) = self.row(line)? else {
            return Ok(None);
        };
        let [source, destination, _] = self.dialect.wanted;
        let edge = (
            self.integer(row.ends[0], source + 1)?,
            self.integer(row.ends[1], destination + 1)?,
        );
        let weight = self.weight(row.weight)?;
        self.report.edges += 1;
        Ok(Some((edge, weight)))
    }

    fn integer(&mut self, field: record::Field<'_>, column: usize) -> Result<u64, LineProblem> {
        let bytes = field.bytes;
        // Blanks around an integer are not part of it, unless quotes enclose them.
        let text = if field.quoted { bytes } else { trim(bytes) };
        let Some(number) = Integer::parse(text) else {
            self.no_integer.clear();
            self.no_integer.extend_from_slice(bytes);
            return Err(LineProblem::NotInteger { column });
        };
        let is_huge = matches!(number, Integer::Unsigned(number) if number >= SIGN);
        self.negative |= matches!(number, Integer::Negative(_));
        self.huge |= is_huge;
        match (number, self.ids) {
            (Integer::Unsigned(number), Ids::Signed) if !is_huge => Ok(number ^ SIGN),
            (Integer::Negative(number), Ids::Signed) => Ok(number as u64 ^ SIGN),
            (Integer::Unsigned(number), Ids::Integer | Ids::Text) => Ok(number),
            (Integer::Negative(_), _) if self.malformed == Malformed::Probe => Ok(0),
            (Integer::Negative(_), _) => Err(LineProblem::Negative { column }),
            (Integer::Unsigned(_), Ids::Signed) => Err(LineProblem::Huge { column }),
        }
    }

    /// The same between text ids.
    fn texts_of<'a>(&mut self, line: &'a [u8]) -> Result<Option<TextEdge<'a>>, LineProblem> {
        let Some(row) = self.row(line)? else {
            return Ok(None);
        };
        let [source, destination, _] = self.dialect.wanted;
        for (end, column) in row.ends.iter().zip([source + 1, destination + 1]) {
            text_id(end.bytes, column)?;
            if self.has_zeros && end.bytes.contains(&0) {
                return Err(LineProblem::ZeroByte { column });
            }
        }
        let weight = self.weight(row.weight)?;
        self.report.edges += 1;
        Ok(Some((row.ends, weight)))
    }

    fn weight(&self, bytes: &[u8]) -> Result<f64, LineProblem> {
        match self.columns {
            Columns::Vertex => Ok(0.0),
            Columns::Edge => weight(bytes, self.weights, self.dialect.wanted[2] + 1),
        }
    }

    /// The wanted fields of a record, if it holds an edge; records of other kinds are counted.
    fn row<'a>(&mut self, line: &'a [u8]) -> Result<Option<Row<'a>>, LineProblem> {
        let dialect = self.dialect;
        let trimmed = trim(line);
        if trimmed.is_empty() {
            self.report.blank += 1;
            return Ok(None);
        }
        let is_comment = match &dialect.comments {
            Comments::Prefix(prefix) => line.starts_with(prefix.as_bytes()),
            Comments::None => {
                dialect.syntax == Syntax::Dimacs
                    && matches!(trimmed, [b'c' | b'p'] | [b'c' | b'p', b' ' | b'\t', ..])
            }
            Comments::Auto if matches!(line[0], b'#' | b'%' | b'/') => {
                if is_spaced_comment(line) {
                    return Err(LineProblem::LooksLikeComment);
                }
                false
            }
            Comments::Auto => false,
        };
        if is_comment {
            self.report.comments += 1;
            return Ok(None);
        }
        // One of numbers does not come again: it would be an edge to the quick look, too.
        let is_number = line
            .first()
            .is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'-'));
        if !is_number && dialect.header.as_deref() == Some(line) {
            self.report.headers += 1;
            return Ok(None);
        }
        let cut = &dialect.cut;
        let mut rest = Some(cut.strip(line));
        let [source, destination, weight] = dialect.wanted;
        let mut row = Row {
            ends: [record::Field {
                bytes: &[],
                quoted: false,
                doubled: false,
            }; 2],
            weight: &[],
        };
        for column in 0..=self.last {
            let Some(field) = cut.field(&mut rest, column + 1)? else {
                return Err(LineProblem::TooFewColumns {
                    found: column,
                    needed: self.last + 1,
                });
            };
            if column == 0
                && dialect.syntax == Syntax::Dimacs
                && !matches!(field.bytes, b"a" | b"e")
            {
                return Err(LineProblem::NotDimacs);
            }
            if column == source || column == destination {
                if field.bytes.is_empty() || !field.quoted && trim(field.bytes).is_empty() {
                    return Err(LineProblem::EmptyColumn { column: column + 1 });
                }
                if field.bytes == br"\N" && !field.quoted {
                    return Err(LineProblem::Null { column: column + 1 });
                }
                if cut.quotes == Quotes::Within && field.bytes.starts_with(b"\"") {
                    return Err(LineProblem::LeadingQuote { column: column + 1 });
                }
                if column == source {
                    row.ends[0] = field;
                }
                if column == destination {
                    row.ends[1] = field;
                }
            }
            if column == weight && self.weights != EdgeKind::None && self.columns == Columns::Edge {
                if trim(field.bytes).is_empty() {
                    return Err(LineProblem::EmptyColumn { column: column + 1 });
                }
                row.weight = field.bytes;
            }
        }
        let count = |rest| cut.count(rest, self.last + 2);
        match (dialect.columns, rest) {
            (Some(expected), None) if expected == self.last + 1 => {}
            (None, None) => {}
            (expected, rest) => {
                let found = self.last + 1 + rest.map_or(Ok(0), |rest| count(Some(rest)))?;
                if let Some(expected) = expected
                    && found != expected
                {
                    return Err(LineProblem::ColumnCount { found, expected });
                }
            }
        }
        Ok(Some(row))
    }

    fn malformed(&mut self, problem: LineProblem, line: &[u8], at: usize) -> Result<(), Fault> {
        let decides = matches!(
            problem,
            LineProblem::NotInteger { .. } | LineProblem::LateQuote { .. }
        );
        if self.malformed == Malformed::Fail || self.malformed == Malformed::Probe && decides {
            return Err(Fault::Line {
                problem,
                found: shown(line),
                at: at as u64,
            });
        }
        self.report.skipped += 1;
        Ok(())
    }
}

/// The ends and the weight of an edge between integers.
type IntegerEdge = ((u64, u64), f64);

/// Two ids and a weight.
type TextEdge<'a> = ([record::Field<'a>; 2], f64);
