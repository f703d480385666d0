//! A row of a result or a reference: a vertex and its value, from a line of text.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::{BufRead, Read};
use std::path::PathBuf;

use graphmill_algorithms::registry;

use crate::validate_error::ValidateError;

/// Rows in the order of their file.
pub(crate) type RowIter = Box<dyn Iterator<Item = Result<ResultRow, ValidateError>>>;

/// A longer line is no row.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// A vertex and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultRow {
    pub(crate) id: RowId,
    pub(crate) value: Value,
}

impl ResultRow {
    /// Bytes outside the row itself.
    pub(crate) fn bytes(&self) -> usize {
        let id = match &self.id {
            RowId::Integer(_) => 0,
            RowId::Text(text) => text.len(),
        };
        id + self.value.bytes()
    }
}

/// A vertex id; integers come before text, as numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowId {
    Integer(u64),
    Text(Box<[u8]>),
}

impl RowId {
    /// Bytes outside the id itself, with the overhead of their allocation; a number may become text.
    pub(crate) fn text_bytes(&self) -> u64 {
        match self {
            RowId::Integer(_) => 32,
            RowId::Text(text) => 32 + text.len() as u64,
        }
    }

    /// `007` is text: it is another id than `7`.
    pub(crate) fn parse(text: &[u8]) -> RowId {
        match integer(text) {
            Some(number) if text == b"0" || text[0] != b'0' => RowId::Integer(number),
            _ => RowId::Text(text.into()),
        }
    }
}

impl Display for RowId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowId::Integer(id) => id.fmt(to),
            RowId::Text(id) => String::from_utf8_lossy(id).fmt(to),
        }
    }
}

/// How the values of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueReading {
    /// Numbers where they are numbers, and unreached where they say so.
    Numbers,
    /// Text as written, for a caller that interprets it; only a null or an empty field is unreached.
    Words,
    /// Names of groups: integers where ids would be, else words.
    Names,
    /// None: a row may have an id alone.
    Ids,
}

impl ValueReading {
    pub(crate) fn value(self, text: &[u8]) -> Value {
        match self {
            _ if text.is_empty() || self == ValueReading::Ids => Value::Unreached,
            ValueReading::Numbers => Value::parse(text),
            ValueReading::Words | ValueReading::Ids => Value::Text(text.into()),
            ValueReading::Names => match RowId::parse(text) {
                RowId::Integer(name) => Value::Integer(name),
                RowId::Text(name) => Value::Text(name),
            },
        }
    }

    /// Returns the value of a field of a text column: a null is unreached, all else is a word.
    pub(crate) fn word(self, text: &[u8]) -> Value {
        match self {
            ValueReading::Names => self.value(text),
            ValueReading::Numbers | ValueReading::Words | ValueReading::Ids => {
                Value::Text(text.into())
            }
        }
    }

    /// A float of 32 bits, by the shortest text that gives it back.
    pub(crate) fn single(self, number: f32) -> Value {
        let text = number.to_string();
        match self {
            ValueReading::Numbers | ValueReading::Names => {
                Value::float(text.parse().unwrap_or(number.into()))
            }
            ValueReading::Words | ValueReading::Ids => Value::Text(text.into_bytes().into()),
        }
    }
}

/// What LDBC's references have for an unreached vertex of bfs.
const LONG_MAX: u64 = i64::MAX as u64;

/// A value as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// A null, or an empty field.
    Unreached,
    /// `inf` or `infinity`: unreached or, where values are vertices, one of that name.
    Infinity,
    /// 9223372036854775807 in text: unreached, or the vertex of that name.
    LongMax,
    Integer(u64),
    /// The bits of an f64.
    Float(u64),
    Text(Box<[u8]>),
}

impl Value {
    pub(crate) fn parse(text: &[u8]) -> Value {
        let number = text.trim_ascii();
        let float = || std::str::from_utf8(number).ok()?.parse().ok();
        match integer(number) {
            Some(LONG_MAX) => Value::LongMax,
            Some(number) => Value::Integer(number),
            None => float().map_or_else(|| Value::Text(text.into()), Value::float),
        }
    }

    pub(crate) fn float(number: f64) -> Value {
        match number {
            f64::INFINITY => Value::Infinity,
            number => Value::Float(number.to_bits()),
        }
    }

    /// Bytes outside the value itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// True if both are the same number, however written, the same text, or unreached.
    ///
    /// A NaN float equals no other float.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        use Value::{Infinity, LongMax, Unreached};
        match (self, other) {
            (Unreached | Infinity | LongMax, Unreached | Infinity | LongMax) => true,
            // What can be unreached or a vertex is what the other file says for sure.
            (LongMax, Value::Integer(integer)) | (Value::Integer(integer), LongMax) => {
                *integer == LONG_MAX
            }
            (Value::Text(a), Value::Text(b)) => a == b,
            (Unreached, Value::Text(_)) | (Value::Text(_), Unreached) => false,
            (Value::Text(word), number) | (number, Value::Text(word)) => match Value::parse(word) {
                Value::Text(_) => false,
                word => word.is_same(number) || word.is_nan() && number.is_nan(),
            },
            (Value::Float(a), Value::Float(b)) => f64::from_bits(*a) == f64::from_bits(*b),
            (Value::Integer(integer), Value::Float(float))
            | (Value::Float(float), Value::Integer(integer)) => {
                // The largest u64 would round up to 2^64, which no integer here is.
                let float = f64::from_bits(*float);
                float == *integer as f64 && float < u64::MAX as f64 && float as u64 == *integer
            }
            (a, b) => a == b,
        }
    }

    /// Within `share` of the expected number, or unreached both.
    pub(crate) fn is_close(&self, expected: &Value, share: f64) -> bool {
        match (self.number(), expected.number()) {
            (Some(found), Some(expected)) => (found - expected).abs() <= share * expected.abs(),
            _ => self.is_same(expected),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(bits) => Some(f64::from_bits(*bits)),
            Value::Unreached | Value::Infinity | Value::LongMax | Value::Text(_) => None,
        }
    }

    fn is_nan(&self) -> bool {
        self.number().is_some_and(f64::is_nan)
    }
}

impl Display for Value {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unreached => to.write_str("unreached"),
            Value::Infinity => to.write_str("inf"),
            Value::LongMax => LONG_MAX.fmt(to),
            Value::Integer(number) => number.fmt(to),
            Value::Float(bits) => write!(to, "{:?}", f64::from_bits(*bits)),
            Value::Text(text) => String::from_utf8_lossy(text).fmt(to),
        }
    }
}

/// Decimal digits only: no sign, no white space.
fn integer(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

/// The rows of a text, one a line.
///
/// It is CSV when its first line is a header that starts with `vertex,`, or the same with tabs, otherwise LDBC's text: an id and a value with white space
/// between them. With tabs the column is one of a result, unless any is allowed: the line might be a row of a vertex `vertex`.
/// Blank lines are passed over. In CSV a value may be empty: none.
pub(crate) struct TextRows<R> {
    text: R,
    path: PathBuf,
    /// Number of the line in `buffer`, from 1.
    line: u64,
    /// Line ends within it.
    breaks: u64,
    buffer: Vec<u8>,
    is_csv: bool,
    /// Of the columns of CSV.
    separator: u8,
    reading: ValueReading,
    /// True if `vertex`, a tab and any name is a header.
    any_column: bool,
}

impl<R: BufRead> TextRows<R> {
    pub(crate) fn new(
        text: R,
        path: PathBuf,
        reading: ValueReading,
        any_column: bool,
    ) -> TextRows<R> {
        TextRows {
            text,
            path,
            line: 0,
            breaks: 0,
            buffer: Vec::new(),
            is_csv: false,
            separator: b',',
            reading,
            any_column,
        }
    }

    fn row(&mut self) -> Result<Option<ResultRow>, ValidateError> {
        loop {
            self.buffer.clear();
            self.line += 1 + self.breaks;
            self.breaks = 0;
            if !self.read_line()? {
                return Ok(None);
            }
            if self.line == 1 {
                let text = self.buffer.strip_prefix(b"\xef\xbb\xbf");
                self.buffer = text.unwrap_or(&self.buffer).to_vec();
                let header = self.buffer.trim_ascii();
                if self.reading == ValueReading::Ids && header == b"vertex" {
                    self.is_csv = true;
                    continue;
                }
                let is_tsv = is_header_with_tabs(header, self.any_column);
                if header.starts_with(b"vertex,") || is_tsv {
                    self.separator = header[b"vertex".len()];
                    self.is_csv = true;
                    continue;
                }
            }
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            // A field between quotes may have line ends in it.
            while self.is_csv && is_within_quotes(&self.buffer, self.separator) {
                self.breaks += 1;
                if !self.read_line()? {
                    return Err(self.malformed("a quote that ends"));
                }
            }
            let (row, expected) = match self.is_csv {
                _ if self.reading == ValueReading::Ids => (
                    id_alone(&self.buffer, self.is_csv.then_some(self.separator)),
                    "an id, or an id and a value",
                ),
                // Blanks are a part of an id.
                true => (
                    separated(without_end(&self.buffer), self.separator),
                    "a vertex, a comma or tab, and a value",
                ),
                false => (
                    space_separated(&self.buffer),
                    "an id and a value (in CSV the first line is a header that starts with \"vertex,\")",
                ),
            };
            return match row {
                Some((id, value)) => Ok(Some(ResultRow {
                    id: RowId::parse(&id),
                    value: self.reading.value(&value),
                })),
                None => Err(self.malformed(expected)),
            };
        }
    }

    /// Appends the next line to the buffer; false behind the last.
    fn read_line(&mut self) -> Result<bool, ValidateError> {
        let left = LINE_BYTES_MAX.saturating_sub(self.buffer.len() as u64);
        let mut text = self.text.by_ref().take(left);
        let read = text.read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|source| ValidateError::Read {
            path: self.path.clone(),
            source,
        })?;
        if read as u64 == left && self.buffer.last() != Some(&b'\n') {
            return Err(self.malformed("a line of less than 64 KiB"));
        }
        Ok(read > 0)
    }

    fn malformed(&self, expected: &'static str) -> ValidateError {
        let start = &self.buffer[..self.buffer.len().min(80)];
        ValidateError::Malformed {
            path: self.path.clone(),
            line: self.line,
            found: String::from_utf8_lossy(start).trim().to_string(),
            expected,
        }
    }
}

impl<R: BufRead> Iterator for TextRows<R> {
    type Item = Result<ResultRow, ValidateError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.row().transpose()
    }
}

type Fields<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// True if a line of CSV ends between quotes.
fn is_within_quotes(line: &[u8], separator: u8) -> bool {
    let (mut is_quoted, mut may_open) = (false, true);
    for byte in line {
        match (byte, is_quoted) {
            // A quote that ends a field, or the first of two.
            (b'"', true) => (is_quoted, may_open) = (false, true),
            (b'"', false) => is_quoted = may_open,
            (_, true) => {}
            (byte, false) => may_open = *byte == separator,
        }
    }
    is_quoted
}

/// A line without its end.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether a line is the header of a result with tabs: a vertex may be called `vertex`, too.
fn is_header_with_tabs(line: &[u8], any_column: bool) -> bool {
    let column = line.strip_prefix(b"vertex\t");
    if any_column {
        return column.is_some();
    }
    let is_column = |name: &str| column == Some(name.as_bytes());
    is_column("parent") || registry().iter().any(|entry| is_column(entry.value))
}

fn space_separated(line: &[u8]) -> Option<Fields<'_>> {
    let words = line.split(u8::is_ascii_whitespace);
    let mut words = words.filter(|word| !word.is_empty());
    let (id, value) = (words.next()?, words.next()?);
    words.next().is_none().then_some((id.into(), value.into()))
}

/// Returns the id of a line, with no value.
///
/// It is the first field, or the first of one or two words if fields have no separator.
fn id_alone(line: &[u8], separator: Option<u8>) -> Option<Fields<'_>> {
    let id = match separator {
        Some(separator) => field(without_end(line), separator)?.0,
        None => {
            let word = line.trim_ascii();
            let is_one = !word.iter().any(u8::is_ascii_whitespace);
            let alone = || is_one.then_some(word.into());
            space_separated(line).map(|(id, _)| id).or_else(alone)?
        }
    };
    (!id.is_empty()).then_some((id, (&b""[..]).into()))
}

fn separated(line: &[u8], separator: u8) -> Option<Fields<'_>> {
    let (id, rest) = field(line, separator)?;
    let (value, rest) = field(rest?, separator)?;
    (rest.is_none() && !id.is_empty()).then_some((id, value))
}

type FieldAndRest<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

/// Returns the first field of a line of CSV, and the text after its separator if there is one.
///
/// Quotes inside a quoted field are doubled.
fn field(line: &[u8], separator: u8) -> Option<FieldAndRest<'_>> {
    let Some(mut rest) = line.strip_prefix(b"\"") else {
        let end = line.iter().position(|byte| *byte == separator);
        let text = &line[..end.unwrap_or(line.len())];
        return Some((text.into(), end.map(|end| &line[end + 1..])));
    };
    let mut text = Vec::new();
    loop {
        let quote = rest.iter().position(|byte| *byte == b'"')?;
        text.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.split_first() {
            Some((b'"', after)) => {
                text.push(b'"');
                rest = after;
            }
            Some((byte, _)) if *byte != separator => return None,
            end => return Some((text.into(), end.map(|(_, after)| after))),
        }
    }
}
