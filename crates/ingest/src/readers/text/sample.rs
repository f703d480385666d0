//! The sample: the first lines of a file, which decide how the file is read.

use std::cell;

use super::columns::column_index;
use super::comments::{is_surely_comment, mark, past_mark};
use super::dialect::{Comments, DialectRequest, Quote, RecordKind, Syntax};
use super::fault::shown;
use super::record::{Delimiter, LexState, NoRecord, Quotes, RecordFormat, line_ends, trim};
use super::values::FieldKind;
use crate::error::{IngestError, LineProblem};

/// Records of a sample at most.
const SAMPLE_RECORDS: usize = 2000;

/// A record of the sample.
#[derive(Clone, Copy)]
pub(super) struct SampleRecord<'a> {
    pub(super) start: usize,
    pub(super) next: usize,
    pub(super) text: &'a [u8],
}

pub(super) struct Sniff<'a> {
    pub(super) request: DialectRequest<'a>,
    pub(super) bytes: &'a [u8],
    /// Some lines are malformed: most decide, and the others are found when they are read.
    pub(super) by_most: cell::Cell<bool>,
}

impl<'a> Sniff<'a> {
    pub(super) fn refuse(&self, problem: impl Into<String>) -> IngestError {
        IngestError::input(self.request.path, problem)
    }

    pub(super) fn is_tabular(&self) -> bool {
        matches!(self.request.syntax, Syntax::Csv | Syntax::Tsv)
            || self.request.options.quote == Quote::Encloses
    }

    fn quotes(&self) -> Quotes {
        match (self.request.options.quote, self.is_tabular()) {
            (Quote::None, _) => Quotes::Text,
            (Quote::Encloses, _) => Quotes::Enclose,
            (Quote::Auto, true) if self.has_quotes() => Quotes::Enclose,
            (Quote::Auto, true) => Quotes::Absent,
            (Quote::Auto, false) => Quotes::Within,
        }
    }

    /// True if the line that begins with these bytes is a comment.
    ///
    /// `in_head`: the line lies before the first edge of the file.
    pub(super) fn is_comment(&self, line: &[u8], in_head: bool) -> bool {
        let line = past_mark(line);
        match &self.request.options.comments {
            Comments::Auto => in_head && is_surely_comment(line),
            Comments::Prefix(prefix) => {
                line.starts_with(prefix.as_bytes()) || in_head && is_surely_comment(line)
            }
            Comments::None => false,
        }
    }

    /// True if quotes occur outside of comments; in TSV, if one begins a field.
    fn has_quotes(&self) -> bool {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let mut lines = self.bytes.split_inclusive(is_end).skip_while(|line| {
            trim(line.trim_ascii_end()).is_empty() || self.is_comment(line, true)
        });
        let quotes = |line: &[u8]| match self.request.syntax {
            Syntax::Tsv => memchr::memchr_iter(b'"', line).any(|at| {
                let before = at.checked_sub(1).map(|at| line[at]);
                before.is_none_or(|before| matches!(before, b'\t' | 0xbf))
            }),
            _ => memchr::memchr(b'"', line).is_some(),
        };
        lines.any(|line| quotes(line) && !self.is_comment(line, false))
    }

    pub(super) fn cut(&self, delimiter: Delimiter) -> RecordFormat {
        let blanks = delimiter == Delimiter::Blanks;
        RecordFormat {
            delimiter,
            // Blanks cut what quotes enclose.
            quotes: match self.quotes() {
                Quotes::Enclose | Quotes::Absent if blanks => Quotes::Within,
                quotes => quotes,
            },
            trims: blanks || !self.is_tabular() && self.request.options.delimiter.is_none(),
            is_open: false,
        }
    }

    /// The records of the sample, without blank lines.
    pub(super) fn lines(
        &self,
        delimiter: Option<Delimiter>,
        whole: bool,
    ) -> Result<Vec<SampleRecord<'a>>, IngestError> {
        let cut = RecordFormat {
            is_open: delimiter.is_none(),
            ..self.cut(delimiter.unwrap_or(Delimiter::Byte(b',')))
        };
        let (mut lines, mut at, mut in_head) = (Vec::new(), 0, true);
        while at < self.bytes.len() && lines.len() < SAMPLE_RECORDS {
            let line = &self.bytes[at..];
            let state = match self.is_comment(line, in_head) {
                true => LexState::Comment,
                false => LexState::Start,
            };
            let record = match cut.record(self.bytes, at, whole, state) {
                Ok(record) => record,
                Err(NoRecord::Unclosed) => {
                    return Err(IngestError::UnclosedQuote {
                        path: self.request.path.to_path_buf(),
                        line: 1 + line_ends(b'\n', &self.bytes[..at]),
                    });
                }
                Err(NoRecord::Partial) => break,
            };
            let text = past_mark(&self.bytes[at..record.end]);
            if !trim(text).is_empty() {
                in_head &= state == LexState::Comment || mark(text).is_some();
                lines.push(SampleRecord {
                    start: at,
                    next: record.next,
                    text,
                });
            }
            at = record.next;
        }
        Ok(lines)
    }

    /// True if a line is an edge behind a comment's mark (`#1 2`), above a line without one.
    ///
    /// Its ends are integers.
    pub(super) fn is_edge_left_out(&self, cut: &RecordFormat, line: &[u8], below: &[u8]) -> bool {
        let numbers = |line: &[u8]| {
            let cells = self.cells(cut, line).unwrap_or_default();
            [0, 1]
                .iter()
                .all(|&end| FieldKind::at(&cells, end).is_number())
        };
        mark(line).is_some_and(|mark| numbers(&line[mark.len()..])) && numbers(below)
    }

    pub(super) fn may_be_comment(&self, line: &[u8]) -> bool {
        self.request.options.comments == Comments::Auto && mark(line).is_some()
    }

    /// An error with the line that begins where `line` lies in the sample.
    pub(super) fn line_error(&self, line: &[u8], problem: LineProblem) -> IngestError {
        let at = line.as_ptr() as usize - self.bytes.as_ptr() as usize;
        IngestError::Line {
            path: self.request.path.to_path_buf(),
            line: 1 + line_ends(b'\n', &self.bytes[..at]),
            found: shown(line),
            problem,
        }
    }

    pub(super) fn cells(
        &self,
        cut: &RecordFormat,
        line: &[u8],
    ) -> Result<Vec<Vec<u8>>, LineProblem> {
        let mut rest = Some(cut.strip(line));
        let mut cells = Vec::new();
        while let Some(field) = cut.field(&mut rest, cells.len() + 1)? {
            cells.push(field.text());
        }
        Ok(cells)
    }

    /// Columns that a line has at least.
    pub(super) fn needed(&self) -> usize {
        if self.request.columns == RecordKind::Vertex {
            return 1;
        }
        let options = self.request.options;
        let names = [&options.source_column, &options.target_column];
        let numbers = names
            .into_iter()
            .flatten()
            .filter_map(|name| name.parse().ok());
        numbers.fold(2, usize::max)
    }

    /// Returns the columns of the ends that the options give by number; `names` are those in a header.
    pub(super) fn end_columns(&self, names: Option<&[String]>) -> Option<[usize; 2]> {
        let options = self.request.options;
        let source = column_index(options.source_column.as_deref()?, names)?;
        let target = column_index(options.target_column.as_deref()?, names)?;
        Some([source, target])
    }
}
