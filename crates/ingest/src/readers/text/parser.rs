//! Parses runs of bytes into batches of edges, by a dialect.

mod uuids;

use graphmill_graph::EdgeKind;
use memchr::memchr;

use super::super::edge_columns::DataColumn;
use super::super::id_range::{IdFault, IdRange};
use super::comments::{is_spaced_comment, past_mark};
use super::dialect::{Comments, Dialect, Syntax};
use super::fault::{LineFault, ParseError, shown};
use super::record::{Delimiter, Field, LexState, NoRecord, Quotes, line_ends, trim};
use super::swar::{F32, F64, NONE, RECORD, field_at, id_at, weight_at};
use super::values::{FieldKind, data, integer, text_id, weight};
use crate::edge_data::{EdgeDataBatch, weight_bits};
use crate::error::{IngestError, LineProblem};
use crate::limits::BATCH_EDGES_MAX;
use crate::source::{EdgeSink, Ids, PieceReport, SIGN};

/// A policy for malformed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Fail at the first one.
    Fail,
    /// Count them.
    Skip,
    /// Count it, but fail at an id that is no integer, and at a quote outside of quoted columns.
    ///
    /// Both decide how the file is read.
    Probe,
}

/// Turns lines into batches of edges.
#[derive(Debug)]
pub(crate) struct Parser<'d> {
    dialect: &'d Dialect,
    range: IdRange,
    weights: EdgeKind,
    malformed: Malformed,
    /// The largest column that is wanted, from 0.
    last: usize,
    /// Wanted columns are the first ones, in order: the short loop knows them.
    is_plain: bool,
    /// The fields of a record, in the order of their columns.
    fields: Vec<DataColumn>,
    /// Bytes that separate columns in the short loop.
    separators: [bool; 256],
    /// The bytes begin within a record, at such a place.
    within: Option<LexState>,
    report: PieceReport,
    /// Line ends within records.
    inner_ends: u64,
    /// The last id that was no integer.
    no_integer: Vec<u8>,
    /// True if the bytes of this run hold a zero byte.
    has_zeros: bool,
    /// True if an id is negative.
    pub(crate) negative: bool,
    edges: Vec<(u64, u64)>,
    data: EdgeDataBatch,
}

/// The wanted fields of a record.
#[derive(Default)]
struct ParsedRow<'a> {
    ends: [Field<'a>; 2],
    weight: &'a [u8],
    /// A record of fields.
    record: u128,
}

impl<'d> Parser<'d> {
    /// A parser of the records of a file. `within`: the bytes begin inside a record, at such a place.
    pub(crate) fn new(
        dialect: &'d Dialect,
        range: IdRange,
        weights: EdgeKind,
        malformed: Malformed,
        within: Option<LexState>,
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
        let mut fields = dialect.data.clone();
        fields.sort_by_key(|field| field.column);
        let data_last = match weights {
            EdgeKind::F32 | EdgeKind::F64 => weight,
            EdgeKind::Record(_) => fields.last().map_or(0, |field| field.column),
            EdgeKind::None => 0,
        };
        let first = usize::from(dialect.syntax == Syntax::Dimacs);
        let is_plain = [source, destination] == [first, first + 1]
            && (!weights.is_weight() || weight == first + 2)
            && (first + 2..)
                .zip(&fields)
                .all(|(column, field)| column == field.column)
            && !(dialect.columns == Some(2) && weights != EdgeKind::None)
            && !matches!(dialect.comments, Comments::Prefix(_));
        Self {
            dialect,
            range,
            weights,
            malformed,
            last: source.max(destination).max(data_last),
            is_plain,
            fields,
            separators,
            within,
            report: PieceReport::default(),
            inner_ends: 0,
            no_integer: Vec::new(),
            has_zeros: false,
            negative: false,
            edges: Vec::with_capacity(BATCH_EDGES_MAX),
            data: EdgeDataBatch::with_capacity(BATCH_EDGES_MAX, weights),
        }
    }

    /// Returns the counts of the lines until now.
    pub(crate) fn report(&self) -> PieceReport {
        let mut all = self.report;
        all.lines = all.edges + all.comments + all.blank + all.headers + all.skipped;
        all
    }

    /// Line ends of the parsed records.
    pub(crate) fn line_ends(&self) -> u64 {
        self.report().lines + self.inner_ends
    }

    /// The last id that was no integer, for a notice, and whether it is a number all the same.
    pub(crate) fn no_integer(&self) -> (String, bool) {
        let is_number = FieldKind::classify(&self.no_integer).is_number()
            || self.no_integer.iter().all(u8::is_ascii_digit);
        (shown(&self.no_integer), is_number)
    }

    /// Parses the records of `bytes` that begin before `limit`.
    ///
    /// Returns where the first record begins that it did not take. The text ends with `bytes` if they are the `last`.
    ///
    /// # Errors
    /// A malformed line, unless those are skipped, an unclosed quote, or an error of `sink`.
    pub(crate) fn lines(
        &mut self,
        bytes: &[u8],
        limit: usize,
        last: bool,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, ParseError> {
        let limit = limit.min(bytes.len());
        self.has_zeros = memchr(0, bytes).is_some();
        let mut at = 0;
        if let Some(state) = &mut self.within {
            match self.dialect.cut.record_from(bytes, 0, last, state) {
                Ok(record) => {
                    self.within = None;
                    at = record.next;
                }
                // A CR at the end waits for what follows it.
                Err(NoRecord::Partial) => {
                    let is_quoted = *state == LexState::Quoted;
                    return Ok(bytes.len() - usize::from(!is_quoted && bytes.ends_with(b"\r")));
                }
                // The piece where the quote opens reports it.
                Err(NoRecord::Unclosed) => return Ok(bytes.len()),
            }
        }
        match self.range.ids {
            Ids::Integer | Ids::Signed | Ids::Wrapping => {
                self.integers(bytes, at, limit, last, sink)
            }
            Ids::Text => self.texts(bytes, at, limit, last, sink),
            Ids::Uuid => self.uuids(bytes, at, limit, last, sink),
        }
    }

    fn integers(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        limit: usize,
        last: bool,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, ParseError> {
        while at < limit {
            if self.is_plain {
                at = match self.weights {
                    EdgeKind::None => self.easy::<NONE>(bytes, at, limit),
                    EdgeKind::Record(_) => self.easy::<RECORD>(bytes, at, limit),
                    EdgeKind::F32 => self.easy::<F32>(bytes, at, limit),
                    EdgeKind::F64 => self.easy::<F64>(bytes, at, limit),
                };
            }
            if at < limit && self.edges.len() < BATCH_EDGES_MAX {
                let Some((line, next)) = self.record(bytes, at, last)? else {
                    break;
                };
                match self.integers_of(line) {
                    Ok(Some((edge, data))) => {
                        self.edges.push(edge);
                        self.data.push(data, self.weights);
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

    /// Returns the record at `at`, without its end, and the start of the next; `None` if it is incomplete.
    fn record<'a>(
        &mut self,
        bytes: &'a [u8],
        at: usize,
        last: bool,
    ) -> Result<Option<(&'a [u8], usize)>, ParseError> {
        let state = self.dialect.state(&bytes[at..]);
        match self.dialect.cut.record(bytes, at, last, state) {
            Ok(record) => {
                let line = &bytes[at..record.end];
                if self.dialect.cut.quotes == Quotes::Enclose {
                    self.inner_ends += line_ends(b'\n', line);
                }
                Ok(Some((past_mark(line), record.next)))
            }
            Err(NoRecord::Partial) => Ok(None),
            Err(NoRecord::Unclosed) => Err(ParseError::At(at as u64, LineFault::Unclosed)),
        }
    }

    fn flush(&mut self, sink: &mut dyn EdgeSink) -> Result<(), IngestError> {
        if !self.edges.is_empty() {
            sink.integers(&self.edges, self.data.data())?;
            self.edges.clear();
            self.data.clear();
        }
        Ok(())
    }

    /// Reads easy lines from `at` on and returns where it stopped.
    ///
    /// It stops at `limit`, at a line that is not easy, or because the batch is full.
    #[inline(always)]
    fn easy<const KIND: u8>(&mut self, bytes: &[u8], mut at: usize, limit: usize) -> usize {
        let before = self.edges.len();
        let id_last = self.range.last();
        let dimacs = self.dialect.syntax == Syntax::Dimacs;
        let sign = if self.range.ids == Ids::Signed {
            SIGN
        } else {
            0
        };
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
            if source.max(destination) > id_last {
                return None;
            }
            let mut data = 0;
            if KIND == RECORD {
                for field in &self.fields {
                    if !separates(end) {
                        return None;
                    }
                    let (bits, past) = field_at(bytes, end + 1, field.kind)?;
                    (data, end) = (data | field.part(bits), past);
                }
            } else if KIND != NONE {
                if !separates(end) {
                    return None;
                }
                let (weight, past) = weight_at::<KIND>(bytes, end + 1)?;
                let kind = [EdgeKind::F64, EdgeKind::F32][usize::from(KIND == F32)];
                (data, end) = (weight_bits(weight, kind).into(), past);
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
            match KIND {
                NONE => {}
                RECORD => self.data.push(data, self.weights),
                _ => self.data.push_low(data as u64),
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
    ) -> Result<usize, ParseError> {
        let mut edges: Vec<(&[u8], &[u8])> = Vec::with_capacity(BATCH_EDGES_MAX);
        while at < limit {
            let Some((line, next)) = self.record(bytes, at, last)? else {
                break;
            };
            match self.texts_of(line) {
                Ok(Some((ends, data))) => {
                    self.data.push(data, self.weights);
                    match ends {
                        [source, destination] if !source.doubled && !destination.doubled => {
                            edges.push((source.bytes, destination.bytes));
                        }
                        ends => {
                            // Fields with doubled quotes are copied, and delivered with the edges before them.
                            let texts = ends.map(|end| end.text());
                            let mut batch = std::mem::take(&mut edges);
                            batch.push((&texts[0], &texts[1]));
                            self.flush_texts(&mut batch, sink)?;
                        }
                    }
                }
                Ok(None) => {}
                Err(problem) => self.malformed(problem, line, at)?,
            }
            at = next;
            if edges.len() == BATCH_EDGES_MAX {
                self.flush_texts(&mut edges, sink)?;
            }
        }
        self.flush_texts(&mut edges, sink)?;
        Ok(at)
    }

    fn flush_texts(
        &mut self,
        edges: &mut Vec<(&[u8], &[u8])>,
        sink: &mut dyn EdgeSink,
    ) -> Result<(), IngestError> {
        if !edges.is_empty() {
            sink.texts(edges, self.data.data())?;
            edges.clear();
            self.data.clear();
        }
        Ok(())
    }

    /// The edge of a line between integer ids, if it holds one, counted.
    fn integers_of(&mut self, line: &[u8]) -> Result<Option<IntegerEdge>, LineProblem> {
        let Some(row) = self.row(line)? else {
            return Ok(None);
        };
        let [source, destination, _] = self.dialect.wanted;
        let source = self.integer(row.ends[0], source + 1)?;
        let destination = self.integer(row.ends[1], destination + 1)?;
        let data = self.data_of(&row)?;
        self.report.edges += 1;
        Ok(Some(((source, destination), data)))
    }

    /// Returns the data of an edge.
    fn data_of(&self, row: &ParsedRow<'_>) -> Result<u128, LineProblem> {
        let kind = self.weights;
        if !kind.is_weight() {
            return Ok(row.record);
        }
        let weight = weight(row.weight, kind, self.dialect.wanted[2] + 1)?;
        Ok(weight_bits(weight, kind).into())
    }

    fn integer(&mut self, field: Field<'_>, column: usize) -> Result<u64, LineProblem> {
        let bytes = field.bytes;
        // Blanks around an integer are not part of it, unless quotes enclose them.
        let text = if field.quoted { bytes } else { trim(bytes) };
        let Some(number) = integer(text) else {
            self.no_integer.clear();
            self.no_integer.extend_from_slice(bytes);
            return Err(LineProblem::NotInteger { column });
        };
        self.negative |= number < 0;
        match self.range.deliver(number) {
            Err(IdFault::Negative) if self.malformed == Malformed::Probe => Ok(0),
            id => id.map_err(|fault| LineProblem::of_id(fault, column)),
        }
    }

    /// Parses the line as an edge between text ids.
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
        let data = self.data_of(&row)?;
        self.report.edges += 1;
        Ok(Some((row.ends, data)))
    }

    /// The wanted fields of a record, if it holds an edge; records of other kinds are counted.
    fn row<'a>(&mut self, line: &'a [u8]) -> Result<Option<ParsedRow<'a>>, LineProblem> {
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
        let is_number = matches!(line, [b'0'..=b'9' | b'-', ..]);
        if !is_number && dialect.header.as_deref() == Some(line) {
            self.report.headers += 1;
            return Ok(None);
        }
        let cut = &dialect.cut;
        let mut rest = Some(cut.strip(line));
        let [source, destination, weight] = dialect.wanted;
        let mut row = ParsedRow::default();
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
            if self.weights.is_record() {
                for wanted in self.fields.iter().filter(|wanted| wanted.column == column) {
                    row.record |= data(field.bytes, *wanted)?;
                }
            } else if column == weight && self.weights != EdgeKind::None {
                if trim(field.bytes).is_empty() {
                    return Err(LineProblem::EmptyColumn { column: column + 1 });
                }
                row.weight = field.bytes;
            }
        }
        let others = rest.map_or(Ok(0), |rest| cut.count(rest, self.last + 2))?;
        let found = self.last + 1 + others;
        match dialect.columns {
            Some(expected) if found != expected => {
                Err(LineProblem::ColumnCount { found, expected })
            }
            _ => Ok(Some(row)),
        }
    }

    fn malformed(
        &mut self,
        problem: LineProblem,
        line: &[u8],
        at: usize,
    ) -> Result<(), ParseError> {
        let decides = matches!(
            problem,
            LineProblem::NotInteger { .. } | LineProblem::LateQuote { .. }
        );
        if self.malformed == Malformed::Fail || self.malformed == Malformed::Probe && decides {
            let found = shown(line);
            let fault = LineFault::Malformed { problem, found };
            return Err(ParseError::At(at as u64, fault));
        }
        self.report.skipped += 1;
        Ok(())
    }
}

/// The ends and the data of an edge between integers.
type IntegerEdge = ((u64, u64), u128);

/// Two ids and the data of an edge.
type TextEdge<'a> = ([Field<'a>; 2], u128);
