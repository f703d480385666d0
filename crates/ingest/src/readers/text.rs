//! Lines of text to edges: SNAP and GAPBS lists, CSV, LDBC Graphalytics, the arcs of DIMACS, lists of vertices.
//!
//! 1. [`Parser::lines`] takes a run of whole lines. Most lines are `integer separator integer`: a short loop that looks at
//!    eight bytes at once reads them.
//! 2. Whatever that loop does not know (comments, blank lines, odd spacing, long numbers, text) goes line by line through
//!    [`Rules::row`], which knows everything and decides what is an error.
//!
//! What a line may be: see [`Syntax`]. A line that starts with `#`, `%` or `//` is a comment, and so are all but the arcs
//! of DIMACS. Columns beyond those wanted are ignored. Lines end with LF or CRLF; the last may lack its end.

use graphmill_graph::EdgeKind;

use crate::edge::{BATCH_EDGES_MAX, EdgeSink, ID_BYTES_MAX, Ids, PieceReport};
use crate::error::{IngestError, LineProblem};

/// How the columns of a line are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// By white space, or by one comma or semicolon with or without white space around.
    Text,
    /// By one comma. Spaces inside a column count, around it they do not; so do quotes around a whole column.
    Csv,
    /// By one tab, else like CSV.
    Tsv,
    /// Like text, after an `a` at the start; lines that start with `c` or `p` are comments.
    Dimacs,
}

/// What is wanted of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Source, destination and, for graphs with weights, a weight.
    Edge,
    /// One vertex, delivered as the pair of itself and itself.
    Vertex,
}

/// What lines mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) syntax: Syntax,
    pub(crate) columns: Columns,
    pub(crate) ids: Ids,
    pub(crate) weights: EdgeKind,
    /// Malformed lines are counted, not errors.
    pub(crate) skip: bool,
}

/// Why lines could not be taken.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This line is malformed; [`PieceReport::lines`] lines came before it.
    Line { problem: LineProblem, found: String },
    /// Something else.
    Other(IngestError),
}

impl From<IngestError> for Fault {
    fn from(error: IngestError) -> Self {
        Self::Other(error)
    }
}

/// Bytes of a malformed line that its error shows.
const SHOWN_BYTES: usize = 60;

/// Column names by which a line is known as a header where ids are text.
const HEADERS: &[(&str, &str)] = &[
    ("source", "target"),
    ("source", "destination"),
    ("source", "dest"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("start", "end"),
    ("head", "tail"),
    ("tail", "head"),
    ("u", "v"),
];
const VERTEX_HEADERS: &[&str] = &["id", "vertex", "node", "name"];

/// A line's wanted columns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row<'a> {
    source: &'a [u8],
    destination: &'a [u8],
    /// Empty when none is wanted.
    weight: &'a [u8],
}

/// What a line is.
enum Line<'a> {
    Blank,
    Comment,
    Row(Row<'a>),
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_white(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_white(*last)
    {
        bytes = rest;
    }
    bytes
}

impl Rules {
    /// What `line`, without its end, is.
    fn line<'a>(&self, line: &'a [u8]) -> Result<Line<'a>, LineProblem> {
        let trimmed = trim(line);
        match (self.syntax, trimmed) {
            (_, []) => Ok(Line::Blank),
            (_, [b'#' | b'%', ..] | [b'/', b'/', ..]) => Ok(Line::Comment),
            (Syntax::Dimacs, [b'c' | b'p']) => Ok(Line::Comment),
            (Syntax::Dimacs, [b'c' | b'p', white, ..]) if is_white(*white) => Ok(Line::Comment),
            (Syntax::Dimacs, [b'a', white, arc @ ..]) if is_white(*white) => {
                self.row(trim(arc)).map(Line::Row)
            }
            (Syntax::Dimacs, _) => Err(LineProblem::NotDimacs),
            (Syntax::Text, _) => self.row(trimmed).map(Line::Row),
            // A tab at the start separates an empty column.
            (Syntax::Csv | Syntax::Tsv, _) => self.row(line).map(Line::Row),
        }
    }

    fn row<'a>(&self, mut line: &'a [u8]) -> Result<Row<'a>, LineProblem> {
        let mut found: [&[u8]; 3] = [&[]; 3];
        let needed: u8 = match (self.columns, self.weights) {
            (Columns::Vertex, _) => 1,
            (Columns::Edge, EdgeKind::None) => 2,
            (Columns::Edge, _) => 3,
        };
        for (column, slot) in (0..needed).zip(&mut found) {
            match self.column(&mut line) {
                Some([]) => return Err(LineProblem::EmptyColumn { column: column + 1 }),
                Some([b'"', ..]) if matches!(self.syntax, Syntax::Csv | Syntax::Tsv) => {
                    return Err(LineProblem::Quotes { column: column + 1 });
                }
                Some(bytes) => *slot = bytes,
                None => {
                    return Err(LineProblem::TooFewColumns {
                        found: column,
                        needed,
                    });
                }
            }
        }
        let [source, destination, weight] = found;
        let destination = if self.columns == Columns::Vertex {
            source
        } else {
            destination
        };
        Ok(Row {
            source,
            destination,
            weight,
        })
    }

    /// Takes the next column off `line`; `None` at its end.
    fn column<'a>(&self, line: &mut &'a [u8]) -> Option<&'a [u8]> {
        let bytes = *line;
        if bytes.is_empty() {
            return None;
        }
        let mark = match self.syntax {
            Syntax::Csv => b',',
            Syntax::Tsv => b'\t',
            Syntax::Text | Syntax::Dimacs => {
                let is_mark = |byte: u8| matches!(byte, b',' | b';');
                let end = bytes
                    .iter()
                    .position(|&byte| is_white(byte) || is_mark(byte))
                    .unwrap_or(bytes.len());
                let (column, rest) = bytes.split_at(end);
                let rest = trim(rest);
                *line = match rest {
                    [first, rest @ ..] if is_mark(*first) => trim(rest),
                    _ => rest,
                };
                return Some(column);
            }
        };
        let end = bytes
            .iter()
            .position(|&byte| byte == mark)
            .unwrap_or(bytes.len());
        let (column, rest) = bytes.split_at(end);
        *line = rest.get(1..).unwrap_or(&[]);
        Some(match trim(column) {
            [b'"', inner @ .., b'"'] if !inner.contains(&b'"') => inner,
            column => column,
        })
    }

    /// Whether the first line with columns names them instead of holding an edge.
    fn is_header(&self, row: &Row<'_>) -> bool {
        if !matches!(self.syntax, Syntax::Csv | Syntax::Tsv) {
            return false;
        }
        match (self.ids, self.columns) {
            (Ids::Integer, _) => {
                integer(row.source).is_none() && integer(row.destination).is_none()
            }
            (Ids::Text, Columns::Edge) => HEADERS.iter().any(|(source, destination)| {
                row.source.eq_ignore_ascii_case(source.as_bytes())
                    && row.destination.eq_ignore_ascii_case(destination.as_bytes())
            }),
            (Ids::Text, Columns::Vertex) => VERTEX_HEADERS
                .iter()
                .any(|name| row.source.eq_ignore_ascii_case(name.as_bytes())),
        }
    }

    /// The weight that `bytes` says.
    fn weight(&self, bytes: &[u8]) -> Result<f64, LineProblem> {
        let column = 3;
        let text = std::str::from_utf8(bytes).map_err(|_| LineProblem::NotWeight { column })?;
        // Spelled-out infinities are refused, numbers too large are told apart from them.
        let is_number = bytes.iter().any(u8::is_ascii_digit);
        let weight = match self.weights {
            EdgeKind::None => return Ok(0.0),
            EdgeKind::F32 => text.parse::<f32>().map(f64::from),
            EdgeKind::F64 => text.parse::<f64>(),
        };
        match weight {
            Ok(weight) if weight.is_finite() => Ok(weight),
            Ok(_) if is_number => Err(LineProblem::WeightTooLarge { column }),
            _ => Err(LineProblem::NotWeight { column }),
        }
    }
}

/// A text id, when it may be one.
fn text_id(id: &[u8], column: u8) -> Result<&[u8], LineProblem> {
    if id.len() > ID_BYTES_MAX {
        return Err(LineProblem::LongId { column });
    }
    if std::str::from_utf8(id).is_err() {
        return Err(LineProblem::NotUtf8 { column });
    }
    Ok(id)
}

/// The number that all of `bytes` say in decimal digits.
fn integer(bytes: &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let digit = |byte: u8| Some(u64::from(byte.wrapping_sub(b'0'))).filter(|&digit| digit < 10);
    rest.iter().try_fold(digit(first)?, |number, &byte| {
        number.checked_mul(10)?.checked_add(digit(byte)?)
    })
}

/// Number of decimal digits that eight bytes of text start with, and the eight bytes less `'0'` each.
#[inline(always)]
fn digits_of(bytes: &[u8; 8]) -> (u32, u64) {
    let digits = u64::from_le_bytes(*bytes) ^ 0x3030_3030_3030_3030;
    // A byte above 9 gets its high bit set; a carry can only spoil bytes after the first such byte.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    (others.trailing_zeros() / 8, digits)
}

/// The value of eight digits, the first in the lowest byte.
#[inline(always)]
fn value_of(digits: u64) -> u64 {
    const MASK: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let upper = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & MASK).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

const POWERS_OF_TEN: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The number of at most 15 digits at `at`, and where it ends. `None`: there is none, it is longer, or so near to the
/// end of `bytes` that eight bytes at once cannot be looked at.
#[inline(always)]
fn number_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let (count, digits) = digits_of(bytes.get(at..)?.first_chunk()?);
    if count == 0 {
        return None;
    }
    let value = value_of(digits << ((8 - count) * 8));
    if count < 8 {
        return Some((value, at + count as usize));
    }
    let (count, digits) = digits_of(bytes.get(at + 8..)?.first_chunk()?);
    match count {
        0 => Some((value, at + 8)),
        1..8 => {
            let low = value_of(digits << ((8 - count) * 8));
            Some((
                value * POWERS_OF_TEN[count as usize & 7] + low,
                at + 8 + count as usize,
            ))
        }
        _ => None,
    }
}

/// Where the next line begins, counted from `at` in a line.
#[inline(always)]
fn next_line(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let others = u64::from_le_bytes(*word) ^ 0x0a0a_0a0a_0a0a_0a0a;
        let found = others.wrapping_sub(0x0101_0101_0101_0101) & !others & 0x8080_8080_8080_8080;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8 + 1;
        }
        at += 8;
    }
    match bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|&byte| byte == b'\n'))
    {
        Some(found) => at + found + 1,
        None => bytes.len(),
    }
}

/// The decimal number at `at` that ends a line or a column, as a weight that needs no care in rounding: its digits make
/// an integer that the type holds exactly, divided by a power of ten that it holds exactly too (Clinger, "How to read
/// floating point numbers accurately", PLDI 1990, section 3).
#[inline(always)]
fn weight_at<const KIND: u8>(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let (whole, mut end) = number_at(bytes, at)?;
    let (mut digits, mut scale) = (whole, 1);
    if bytes.get(end) == Some(&b'.') {
        let (fraction, past) = number_at(bytes, end + 1)?;
        scale = *POWERS_OF_TEN.get(past - end - 1)?;
        digits = whole.checked_mul(scale)?.checked_add(fraction)?;
        end = past;
    }
    match KIND {
        F32 if digits < 1 << 24 => Some((f64::from(digits as f32 / scale as f32), end)),
        F64 if digits < 1 << 53 => Some((digits as f64 / scale as f64, end)),
        _ => None,
    }
}

const NONE: u8 = 0;
const F32: u8 = 1;
const F64: u8 = 2;

/// Turns lines into batches of edges.
#[derive(Debug)]
pub(crate) struct Parser {
    rules: Rules,
    /// Bytes that separate columns in the short loop.
    separators: [bool; 256],
    report: PieceReport,
    /// Whether the first line with columns may be a header.
    header_allowed: bool,
    /// Lines whose ids are no integers, though they should.
    not_integers: u64,
    edges: Vec<(u64, u64)>,
    weights: Vec<f64>,
}

impl Parser {
    /// A parser of lines that mean what `rules` say; `file_start`: the first line is the first of a file.
    pub(crate) fn new(rules: Rules, file_start: bool) -> Self {
        let mut separators = [false; 256];
        let marks: &[u8] = match rules.syntax {
            Syntax::Text | Syntax::Dimacs => b" \t,;",
            Syntax::Csv => b",",
            Syntax::Tsv => b"\t",
        };
        for &mark in marks {
            separators[usize::from(mark)] = true;
        }
        Self {
            rules,
            separators,
            report: PieceReport::default(),
            header_allowed: file_start,
            not_integers: 0,
            edges: Vec::with_capacity(BATCH_EDGES_MAX),
            weights: Vec::with_capacity(BATCH_EDGES_MAX),
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

    /// Lines skipped because an id was no integer.
    pub(crate) fn not_integers(&self) -> u64 {
        self.not_integers
    }

    /// Takes the lines of `bytes` that begin before `limit`, and returns where the first line after them begins. All
    /// lines are whole; the last may lack its end when it is the last of the file.
    ///
    /// # Errors
    /// A malformed line, unless those are skipped, or an error of `sink`.
    pub(crate) fn lines(
        &mut self,
        bytes: &[u8],
        limit: usize,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, Fault> {
        let limit = limit.min(bytes.len());
        match self.rules.ids {
            Ids::Integer => self.integers(bytes, limit, sink),
            Ids::Text => self.texts(bytes, limit, sink),
        }
    }

    fn integers(
        &mut self,
        bytes: &[u8],
        limit: usize,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, Fault> {
        let mut at = 0;
        while at < limit {
            if self.rules.columns == Columns::Edge {
                at = match self.rules.weights {
                    EdgeKind::None => self.easy::<NONE>(bytes, at, limit),
                    EdgeKind::F32 => self.easy::<F32>(bytes, at, limit),
                    EdgeKind::F64 => self.easy::<F64>(bytes, at, limit),
                };
            }
            if at < limit && self.edges.len() < BATCH_EDGES_MAX {
                let (line, next) = line_at(bytes, at);
                match self.integers_of(line) {
                    Ok(Some((edge, weight))) => {
                        self.edges.push(edge);
                        if self.rules.weights != EdgeKind::None {
                            self.weights.push(weight);
                        }
                    }
                    Ok(None) => {}
                    Err(problem) => self.malformed(problem, line)?,
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

    fn flush(&mut self, sink: &mut dyn EdgeSink) -> Result<(), Fault> {
        if !self.edges.is_empty() {
            sink.integers(&self.edges, &self.weights)?;
            self.edges.clear();
            self.weights.clear();
        }
        Ok(())
    }

    /// Reads easy lines from `at` on; returns where it stopped: at `limit`, at a line that is not easy, or because the
    /// batch is full.
    #[inline(always)]
    fn easy<const KIND: u8>(&mut self, bytes: &[u8], mut at: usize, limit: usize) -> usize {
        let before = self.edges.len();
        let dimacs = self.rules.syntax == Syntax::Dimacs;
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
            let (source, end) = number_at(bytes, start)?;
            if !separates(end) {
                return None;
            }
            let (destination, mut end) = number_at(bytes, end + 1)?;
            let mut weight = 0.0;
            if KIND != NONE {
                if !separates(end) {
                    return None;
                }
                (weight, end) = weight_at::<KIND>(bytes, end + 1)?;
            }
            let next = match bytes.get(end)? {
                b'\n' => end + 1,
                b'\r' if bytes.get(end + 1) == Some(&b'\n') => end + 2,
                _ if separates(end) => next_line(bytes, end),
                _ => return None,
            };
            self.edges.push((source, destination));
            if KIND != NONE {
                self.weights.push(weight);
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
        let taken = (self.edges.len() - before) as u64;
        self.report.edges += taken;
        self.header_allowed &= taken == 0;
        at
    }

    fn texts(
        &mut self,
        bytes: &[u8],
        limit: usize,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, Fault> {
        let mut edges: Vec<(&[u8], &[u8])> = Vec::with_capacity(BATCH_EDGES_MAX);
        let mut at = 0;
        while at < limit {
            let (line, next) = line_at(bytes, at);
            match self.texts_of(line) {
                Ok(Some((edge, weight))) => {
                    edges.push(edge);
                    if self.rules.weights != EdgeKind::None {
                        self.weights.push(weight);
                    }
                }
                Ok(None) => {}
                Err(problem) => self.malformed(problem, line)?,
            }
            at = next;
            if edges.len() == BATCH_EDGES_MAX || at >= limit && !edges.is_empty() {
                sink.texts(&edges, &self.weights)?;
                edges.clear();
                self.weights.clear();
            }
        }
        Ok(at)
    }

    /// The edge of a line between integer ids, if it holds one, counted.
    fn integers_of(&mut self, line: &[u8]) -> Result<Option<IntegerEdge>, LineProblem> {
        let Some(row) = self.row(line)? else {
            return Ok(None);
        };
        let id = |bytes, column| integer(bytes).ok_or(LineProblem::NotInteger { column });
        let edge = (id(row.source, 1)?, id(row.destination, 2)?);
        let weight = if row.weight.is_empty() {
            0.0
        } else {
            self.rules.weight(row.weight)?
        };
        self.report.edges += 1;
        Ok(Some((edge, weight)))
    }

    /// The same between text ids.
    fn texts_of<'a>(&mut self, line: &'a [u8]) -> Result<Option<TextEdge<'a>>, LineProblem> {
        let Some(row) = self.row(line)? else {
            return Ok(None);
        };
        let edge = (text_id(row.source, 1)?, text_id(row.destination, 2)?);
        let weight = if row.weight.is_empty() {
            0.0
        } else {
            self.rules.weight(row.weight)?
        };
        self.report.edges += 1;
        Ok(Some((edge, weight)))
    }

    /// The columns of a line, if it holds an edge; lines of other kinds are counted.
    fn row<'a>(&mut self, line: &'a [u8]) -> Result<Option<Row<'a>>, LineProblem> {
        match self.rules.line(line)? {
            Line::Blank => self.report.blank += 1,
            Line::Comment => self.report.comments += 1,
            Line::Row(row) => {
                let header = std::mem::take(&mut self.header_allowed) && self.rules.is_header(&row);
                if !header {
                    return Ok(Some(row));
                }
                self.report.headers += 1;
            }
        }
        Ok(None)
    }

    fn malformed(&mut self, problem: LineProblem, line: &[u8]) -> Result<(), Fault> {
        self.header_allowed = false;
        if !self.rules.skip {
            let found = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)])
                .trim_end()
                .to_string();
            return Err(Fault::Line { problem, found });
        }
        self.report.skipped += 1;
        self.not_integers += u64::from(matches!(problem, LineProblem::NotInteger { .. }));
        Ok(())
    }
}

/// The ends and the weight of an edge between integers.
type IntegerEdge = ((u64, u64), f64);

/// Two ids and a weight.
type TextEdge<'a> = ((&'a [u8], &'a [u8]), f64);

/// The line that begins at `at`, without its end, and where the next begins.
fn line_at(bytes: &[u8], at: usize) -> (&[u8], usize) {
    let next = next_line(bytes, at);
    let line = &bytes[at..next];
    (line.strip_suffix(b"\n").unwrap_or(line), next)
}
