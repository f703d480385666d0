//! A row of a result or a reference: a vertex and its value, from a line of text.
//!
//! Of results of other shapes a row is an edge and its weight, or a column and its number.

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::sync::Arc;

use crate::validate_error::ValidateError;
use crate::vertex_file::fields::{
    ColumnNames, TextHeader, all_fields, header, id_alone, is_within_quotes, separated,
    space_separated, without_end,
};

/// Rows in the order of their file.
pub(crate) type RowIter = Box<dyn Iterator<Item = Result<ResultRow, ValidateError>>>;

/// A longer line is no row.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// A vertex and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultRow {
    pub(crate) id: RowId,
    pub(crate) value: Value,
    /// The number of its line, from 1; 0 in Parquet files and in directories.
    pub(crate) line: u64,
}

impl ResultRow {
    /// Bytes outside the row itself.
    pub(crate) fn bytes(&self) -> usize {
        self.id.bytes() + self.value.bytes()
    }
}

/// A vertex id; integers come before text, as numbers. Or what a row has instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowId {
    Integer(u64),
    Text(Box<[u8]>),
    /// Both ends of an edge, the smaller id first.
    Edge(Box<[RowId; 2]>),
    /// The name of a column.
    Column(Arc<str>),
}

impl RowId {
    /// An edge between two vertices.
    pub(crate) fn edge(a: RowId, b: RowId) -> RowId {
        RowId::Edge(Box::new(if a <= b { [a, b] } else { [b, a] }))
    }

    /// What the id is of, and the id.
    pub(crate) fn named(&self) -> String {
        match self {
            RowId::Integer(_) | RowId::Text(_) => format!("vertex {self}"),
            RowId::Edge(_) => format!("edge {self}"),
            RowId::Column(_) => format!("column {self}"),
        }
    }

    /// Bytes outside the id itself.
    fn bytes(&self) -> usize {
        match self {
            RowId::Integer(_) | RowId::Column(_) => 0,
            RowId::Text(text) => text.len(),
            RowId::Edge(ends) => {
                size_of::<[RowId; 2]>() + ends.iter().map(RowId::bytes).sum::<usize>()
            }
        }
    }

    /// Bytes outside the id itself, with the overhead of their allocation; a number may become text.
    pub(crate) fn text_bytes(&self) -> u64 {
        32 + self.bytes() as u64
    }

    /// `007` is text: it is another id than `7`.
    pub(crate) fn parse(text: &[u8]) -> RowId {
        match id_number(text) {
            Some(number) => RowId::Integer(number),
            None => RowId::Text(text.into()),
        }
    }
}

impl Display for RowId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowId::Integer(id) => id.fmt(to),
            RowId::Text(id) => String::from_utf8_lossy(id).fmt(to),
            RowId::Edge(ends) => write!(to, "{} - {}", ends[0], ends[1]),
            RowId::Column(name) => name.fmt(to),
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
    /// True if rows may be of something else than vertices; ids and names of groups are of vertices alone.
    pub(super) fn takes_tables(self) -> bool {
        matches!(self, ValueReading::Numbers | ValueReading::Words)
    }

    pub(crate) fn value(self, text: &[u8]) -> Value {
        match self {
            _ if text.is_empty() || self == ValueReading::Ids => Value::Unreached,
            ValueReading::Numbers => Value::parse(text),
            ValueReading::Words | ValueReading::Ids => Value::Text(text.into()),
            ValueReading::Names => match id_number(text) {
                Some(name) => Value::Integer(name),
                None => Value::Text(text.into()),
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

/// An id as a number, unless it has more digits than the number needs.
fn id_number(text: &[u8]) -> Option<u64> {
    integer(text).filter(|_| text == b"0" || text[0] != b'0')
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
/// Headers of edges and of rows of numbers are CSV too; numbers may have any names where [`ValueReading::Numbers`] are read.
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
    /// What the header says.
    header: Option<TextHeader>,
    /// Of the columns of CSV.
    separator: u8,
    /// Numbers of a row that are not handed out yet.
    ready: VecDeque<ResultRow>,
    /// True once a row of numbers was read.
    has_numbers: bool,
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
            header: None,
            separator: b',',
            ready: VecDeque::new(),
            has_numbers: false,
            reading,
            any_column,
        }
    }

    fn row(&mut self) -> Result<Option<ResultRow>, ValidateError> {
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Ok(Some(row));
            }
            self.buffer.clear();
            self.line += 1 + self.breaks;
            self.breaks = 0;
            if !self.read_line()? {
                return Ok(None);
            }
            if self.line == 1 && self.takes_header() {
                continue;
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
            match &self.header {
                Some(TextHeader::Edges(_)) => return self.edge().map(Some),
                Some(TextHeader::Numbers(_, names)) => {
                    let names = Arc::clone(names);
                    self.numbers(&names)?;
                    continue;
                }
                Some(TextHeader::Vertices(_)) | None => {}
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
                    line: self.line,
                })),
                None => Err(self.malformed(expected)),
            };
        }
    }

    /// Returns true if the first line is a header, and remembers it.
    fn takes_header(&mut self) -> bool {
        let text = self.buffer.strip_prefix(b"\xef\xbb\xbf");
        self.buffer = text.unwrap_or(&self.buffer).to_vec();
        let line = self.buffer.trim_ascii();
        if self.reading == ValueReading::Ids && line == b"vertex" {
            self.is_csv = true;
            return true;
        }
        let any_numbers = self.reading == ValueReading::Numbers;
        let found = header(line, self.any_column, any_numbers);
        let takes_tables = self.reading.takes_tables();
        self.header =
            found.filter(|found| takes_tables || matches!(found, TextHeader::Vertices(_)));
        let Some(header) = &self.header else {
            return false;
        };
        self.is_csv = true;
        self.separator = match header {
            TextHeader::Vertices(separator)
            | TextHeader::Edges(separator)
            | TextHeader::Numbers(separator, _) => *separator,
        };
        true
    }

    /// The line as an edge and its weight.
    fn edge(&self) -> Result<ResultRow, ValidateError> {
        let fields = all_fields(&self.buffer, self.separator, 3);
        let fields = fields.filter(|fields| !fields[0].is_empty() && !fields[1].is_empty());
        let fields =
            fields.ok_or_else(|| self.malformed("a source, a destination and a weight"))?;
        let [source, destination] = [0, 1].map(|end| RowId::parse(&fields[end]));
        Ok(ResultRow {
            id: RowId::edge(source, destination),
            value: self.reading.value(&fields[2]),
            line: self.line,
        })
    }

    /// Makes the line ready as columns with their numbers.
    fn numbers(&mut self, names: &ColumnNames) -> Result<(), ValidateError> {
        let fields = all_fields(&self.buffer, self.separator, names.len());
        let fields =
            fields.ok_or_else(|| self.malformed("as many numbers as the header has names"))?;
        if std::mem::replace(&mut self.has_numbers, true) {
            let expected = "no second row of numbers (rows of vertices have a header that starts with \"vertex,\")";
            return Err(self.malformed(expected));
        }
        for (name, field) in names.iter().zip(fields) {
            let value = self.reading.value(&field);
            if self.reading == ValueReading::Numbers && matches!(value, Value::Text(_)) {
                return Err(self.malformed("a number for each name of the header"));
            }
            let (id, line) = (RowId::Column(Arc::clone(name)), self.line);
            self.ready.push_back(ResultRow { id, value, line });
        }
        Ok(())
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
