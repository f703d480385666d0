//! What a line may be and what its columns say, for every line that there is: slow, and the one place that decides what is an
//! error.

use graphmill_graph::EdgeKind;

use crate::edge::{ID_BYTES_MAX, Ids};
use crate::error::LineProblem;

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
pub(super) struct Row<'a> {
    pub(super) source: &'a [u8],
    pub(super) destination: &'a [u8],
    /// Empty when none is wanted.
    pub(super) weight: &'a [u8],
}

/// What a line is.
pub(super) enum Line<'a> {
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
    pub(super) fn line<'a>(&self, line: &'a [u8]) -> Result<Line<'a>, LineProblem> {
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
    pub(super) fn is_header(&self, row: &Row<'_>) -> bool {
        if !matches!(self.syntax, Syntax::Csv | Syntax::Tsv) {
            return false;
        }
        match (self.ids, self.columns) {
            (Ids::Integer, _) => !is_number(row.source) && !is_number(row.destination),
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
    pub(super) fn weight(&self, bytes: &[u8]) -> Result<f64, LineProblem> {
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
pub(super) fn text_id(id: &[u8], column: u8) -> Result<&[u8], LineProblem> {
    if id.len() > ID_BYTES_MAX {
        return Err(LineProblem::LongId { column });
    }
    if std::str::from_utf8(id).is_err() {
        return Err(LineProblem::NotUtf8 { column });
    }
    Ok(id)
}

/// Whether `bytes` are a number of any kind, so that they name no column.
fn is_number(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// The number that all of `bytes` say in decimal digits.
pub(super) fn integer(bytes: &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let digit = |byte: u8| Some(u64::from(byte.wrapping_sub(b'0'))).filter(|&digit| digit < 10);
    rest.iter().try_fold(digit(first)?, |number, &byte| {
        number.checked_mul(10)?.checked_add(digit(byte)?)
    })
}
