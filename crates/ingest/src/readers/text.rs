//! Lines of text to edges: SNAP and GAPBS lists, CSV, LDBC Graphalytics, the arcs of DIMACS, lists of vertices.
//!
//! 1. [`Parser::lines`] takes a run of whole lines. Most lines are `integer separator integer`: a short loop that looks at
//!    eight bytes at once reads them.
//! 2. Whatever that loop does not know (comments, blank lines, odd spacing, long numbers, text) goes line by line through
//!    [`Rules::row`], which knows everything and decides what is an error.
//!
//! What a line may be: see [`Syntax`]. A line that starts with `#`, `%` or `//` is a comment, and so are all but the arcs
//! of DIMACS. Columns beyond those wanted are ignored. Lines end with LF or CRLF; the last may lack its end.

mod digits;
mod rules;

use graphmill_graph::EdgeKind;

use crate::edge::{BATCH_EDGES_MAX, EdgeSink, Ids, PieceReport};
use crate::error::{IngestError, LineProblem};
use digits::{F32, F64, NONE, next_line, number_at, weight_at};
use rules::{Line, Row, integer, text_id};

pub(crate) use rules::{Columns, Rules, Syntax};

/// Why lines could not be taken.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This line is malformed; [`PieceReport::lines`] lines came before it.
    Line { problem: LineProblem, found: String },
    /// The line after those is longer than a line may be.
    Endless,
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
    /// The number, from 1, of the first line with columns, where its ids are no integers.
    odd_first: Option<u64>,
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
            odd_first: None,
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

    /// The number of the first line with columns, where it alone was skipped because an id was no integer, and edges came after it.
    pub(crate) fn odd_first(&self) -> Option<u64> {
        self.odd_first
            .filter(|_| self.not_integers == 1 && self.report.edges > 0)
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
        if matches!(problem, LineProblem::NotInteger { .. }) {
            let PieceReport {
                lines,
                edges,
                skipped,
                headers,
                ..
            } = self.report();
            if edges + skipped + headers == 0 {
                self.odd_first = Some(lines + 1);
            }
            self.not_integers += 1;
        }
        self.report.skipped += 1;
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
