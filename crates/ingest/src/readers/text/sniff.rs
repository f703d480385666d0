//! How a file of text is read, decided from its first bytes: separator, quotes, comments, header, columns.
//!
//! 1. Lines at the start that are comments are set aside.
//! 2. The separator is the one that cuts all lines below into the same number of columns (`separator.rs`).
//! 3. The first line is a header where its cells differ from those below, or are names that programs write.
//! 4. The columns of the ids and the weight are found by option, by name, else by place.
//!
//! What stays uncertain is an error that names the option. docs/guide/formats-and-ids.md has the rules.

use std::cell;

use super::super::edge_columns::DataColumn;
use super::columns::{choose, column_index, names_of, width_of};
use super::dialect::{Comments, Dialect, DialectRequest, Header, Preamble, RecordKind, Syntax};
use super::record::{Delimiter, Quotes, RecordFormat, line_ends};
use super::sample::{SampleRecord, Sniff};
use super::values::FieldKind;
use crate::error::IngestError;
use crate::source::PieceReport;

/// Decides how a file that begins with `bytes` is read; they are all of it where it is `whole`.
pub(crate) fn sniff(
    request: DialectRequest<'_>,
    bytes: &[u8],
    whole: bool,
) -> Result<(Dialect, Preamble), IngestError> {
    let sniff = Sniff {
        request,
        bytes,
        by_most: cell::Cell::new(false),
    };
    sniff.run(request.options.delimiter, whole)
}

impl Sniff<'_> {
    fn run(
        &self,
        mut given: Option<Delimiter>,
        whole: bool,
    ) -> Result<(Dialect, Preamble), IngestError> {
        let lines = self.lines(given, whole)?;
        if self.request.syntax == Syntax::Dimacs {
            return Ok((self.dimacs()?, Preamble::default()));
        }
        let is_given = given.is_some();
        let mut first = 0;
        // Excel names the separator in a line of its own.
        if let Some(SampleRecord { text, .. }) = lines.first()
            && let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', separator] = text
            && self.is_tabular()
        {
            first = 1;
            given = given.or(Some(Delimiter::Byte(*separator)));
        }
        let doubtful = first + self.comments(&lines[first..]);
        let marked = lines[doubtful..]
            .iter()
            .take_while(|line| self.may_be_comment(line.text))
            .count();
        let (body, delimiter) = match lines.get(doubtful + marked..) {
            // All lines are marked: the marks are of ids, if they are cut as edges are.
            None | Some([]) => {
                let body = &lines[doubtful..];
                // Whether malformed lines are left out or not, such lines are the same.
                let strict = Sniff {
                    request: DialectRequest {
                        skips: false,
                        ..self.request
                    },
                    bytes: self.bytes,
                    by_most: cell::Cell::new(false),
                };
                let found = strict.delimiter(body, given);
                self.by_most.set(strict.by_most.get());
                match found {
                    Ok(delimiter) => (doubtful, Some(delimiter)),
                    Err(_) => (lines.len(), given),
                }
            }
            Some(body) => (doubtful + marked, Some(self.delimiter(body, given)?)),
        };
        let default = match self.request.syntax {
            Syntax::Csv => Delimiter::Byte(b','),
            Syntax::Tsv => Delimiter::Byte(b'\t'),
            Syntax::Text | Syntax::Dimacs => Delimiter::Blanks,
        };
        let before = self.request.before.map(|before| before.cut.delimiter);
        let cut = self.cut(delimiter.or(before).unwrap_or(default));
        if !is_given && delimiter.is_some() && cut.quotes == Quotes::Enclose {
            // By the separator that was found other quotes may open a column.
            return self.run(Some(cut.delimiter), whole);
        }
        // Marked lines right above the edges that have as many columns are edges, or the header.
        let width_of = |line: &SampleRecord<'_>| cut.count(cut.strip(line.text), 1).ok();
        let width = lines.get(body).and_then(width_of);
        let mut start = body;
        while start > doubtful
            && width.is_some()
            && width_of(&lines[start - 1]) == width
            && !self.is_edge_left_out(&cut, lines[start - 1].text, lines[body].text)
        {
            start -= 1;
        }
        self.decide(&lines, start, cut)
    }

    /// Returns how many lines at the start are certainly comments.
    fn comments(&self, lines: &[SampleRecord<'_>]) -> usize {
        let is_comment = |line: &&SampleRecord<'_>| self.is_comment(line.text, true);
        // Such a line may stand behind one in doubt.
        let is_edge = |line| !is_comment(&line) && !self.may_be_comment(line.text);
        let doubtful = &lines[..lines.iter().position(is_edge).unwrap_or(lines.len())];
        let last = doubtful.iter().rposition(|line| is_comment(&line));
        last.map_or(0, |last| last + 1)
    }

    /// Everything, where edges (or a header and edges) begin with line `start`, and comments before.
    fn decide(
        &self,
        lines: &[SampleRecord<'_>],
        start: usize,
        cut: RecordFormat,
    ) -> Result<(Dialect, Preamble), IngestError> {
        let body = &lines[start.min(lines.len())..];
        let cells = |line: &SampleRecord<'_>| match self.cells(&cut, line.text) {
            Err(_) if self.request.skips || self.by_most.get() => Ok(Vec::new()),
            cells => cells.map_err(|problem| self.line_error(line.text, problem)),
        };
        let rows = body.iter().map(cells).collect::<Result<Vec<_>, _>>()?;
        let widths: Vec<usize> = rows.iter().map(Vec::len).collect();
        let mut names: Option<Vec<String>> = rows.first().map(|row| names_of(row));
        // A commented header: #source,target.
        if let Some(first) = names.as_mut().and_then(|names| names.first_mut())
            && self.request.options.comments == Comments::Auto
            && let Some(bare) = first.strip_prefix('#')
        {
            *first = bare.to_string();
        }
        let header_names = names.clone();
        let (is_header, doubt) = match self.request.options.header {
            Header::Yes => (!rows.is_empty(), None),
            Header::No => (false, None),
            Header::Auto => self.is_header(&rows, names.as_deref().unwrap_or(&[]), body)?,
        };
        let mut names = names.filter(|_| is_header);
        let (data, header_line) = match (is_header, body) {
            (true, [header, data @ ..]) => (data, Some(header)),
            _ => (body, None),
        };
        let rows = &rows[usize::from(is_header)..];
        let has_more = self.name_index(&mut names, rows)?;
        let index = (names.as_ref()).is_some_and(|names| names.len() > 2 && names[0].is_empty());
        let most = rows.iter().map(Vec::len).min().unwrap_or(usize::MAX);
        let is_fraction = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).any(|cell| {
                let number = String::from_utf8_lossy(cell).trim().parse::<f64>();
                number.is_ok_and(|number| number.fract() != 0.0)
            })
        };
        let named = names.as_deref();
        let mut chosen = choose(&self.request, named, index.into(), most, &is_fraction)?;
        let widths = widths[usize::from(has_more)..].to_vec();
        let width = self.columns_of(named, widths, rows)?;
        let below = rows.get(usize::from(!is_header)..).unwrap_or(&[]);
        if header_names.is_some_and(|names| is_matrix(&names, below)) {
            return Err(self.refuse(
                "it looks like a matrix, with a column for each vertex; write one edge a line (UNPIVOT in DuckDB, stack in pandas)",
            ));
        }
        let head = self.preamble(lines, start, header_line, data);
        let is_edge = |row: &Vec<Vec<u8>>| {
            let mut ends = chosen.columns[..2].iter();
            ends.all(|&end| FieldKind::at(row, end) == FieldKind::Integer)
        };
        let integers_below = rows.len() > 1 && rows[1..].iter().all(is_edge);
        let before = self.before_as(&cut, width, names.is_some());
        let fields = self.request.options.edge_data.fields();
        let mut data = DataColumn::all(fields, &chosen.data);
        if let Some(before) = before {
            data.clone_from(&before.data);
            (chosen.columns, chosen.names) = (before.wanted, before.names.clone());
        }
        let dialect = Dialect {
            syntax: self.request.syntax,
            cut,
            comments: self.request.options.comments.clone(),
            wanted: chosen.columns,
            data,
            columns: width,
            integers_below,
            named: names.is_some() || before.is_some(),
            header: header_line.map(|line| line.text.to_vec()),
            names: chosen.names,
            doubt: doubt.filter(|_| before.is_none()),
        };
        Ok((dialect, head))
    }

    /// Names the column that rows have and the header lacks; returns whether there is one.
    fn name_index(
        &self,
        names: &mut Option<Vec<String>>,
        rows: &[Vec<Vec<u8>>],
    ) -> Result<bool, IngestError> {
        // Which column has no name is uncertain: R leaves out the name of the first, others leave out the last.
        let Some(names) = names else { return Ok(false) };
        let has_more = !rows.is_empty() && rows.iter().all(|row| row.len() == names.len() + 1);
        if has_more {
            let ends_empty = |row: &Vec<Vec<u8>>| row.last().is_some_and(Vec::is_empty);
            if rows.iter().all(ends_empty) {
                names.push(String::new());
            } else if self.end_columns(None).is_none() {
                return Err(self.refuse(format!(
                    "the first line names {} columns and the lines below have {}: say which hold the ids by number (--header yes --source-column 2 --target-column 3, if the first column has no name)",
                    names.len(),
                    names.len() + 1
                )));
            }
        }
        Ok(has_more)
    }

    /// Returns the lines before the first edge, which the sample may not hold.
    fn preamble(
        &self,
        lines: &[SampleRecord<'_>],
        start: usize,
        header_line: Option<&SampleRecord<'_>>,
        data: &[SampleRecord<'_>],
    ) -> Preamble {
        // Up to the first edge, or the end of the sample.
        let end = lines.last().map_or(0, |line| line.next);
        let edges = data.first().map_or(end, |line| line.start);
        let unended = edges > 0 && !matches!(self.bytes[edges - 1], b'\n' | b'\r');
        let all_lines = line_ends(b'\n', &self.bytes[..edges]) + u64::from(unended);
        let within = header_line.map_or(0, |line| line_ends(b'\n', line.text));
        let mut report = PieceReport {
            comments: start.min(lines.len()) as u64,
            headers: u64::from(header_line.is_some()),
            ..PieceReport::default()
        };
        let named = report.comments + report.headers;
        report.lines = named.max(all_lines - within);
        report.blank = report.lines - named;
        Preamble {
            bytes: edges as u64,
            line_ends: all_lines,
            report,
        }
    }

    /// Returns the dialect of the part before it, whose header names the columns of a part without one.
    fn before_as(
        &self,
        cut: &RecordFormat,
        width: Option<usize>,
        has_names: bool,
    ) -> Option<&Dialect> {
        self.request.before.filter(|before| {
            !has_names
                && self.request.options.header == Header::Auto
                && before.named
                && before.cut.delimiter == cut.delimiter
                && before.syntax == self.request.syntax
                && width.is_some()
                && before.columns == width
        })
    }

    /// Returns the number of columns of every line, given the `widths` of lines in the sample.
    fn columns_of(
        &self,
        names: Option<&[String]>,
        widths: Vec<usize>,
        rows: &[Vec<Vec<u8>>],
    ) -> Result<Option<usize>, IngestError> {
        // Who names the columns takes lines of any length.
        let any_length =
            self.request.columns == RecordKind::Vertex || self.end_columns(names).is_some();
        let skips = self.request.skips || self.by_most.get();
        let width = width_of(widths, skips && !any_length);
        // Others have the columns of the header.
        let width = match names {
            Some(names) if !any_length => width.or(Some(names.len())),
            _ => width,
        };
        if width.is_none() && !rows.is_empty() && !any_length {
            let widths = rows.iter().map(Vec::len);
            let [least, most] = [widths.clone().min(), widths.max()];
            return Err(self.refuse(format!(
                "its lines have from {} to {} columns, as an adjacency list has; if the ids are in the first two, say --source-column 1 --target-column 2",
                least.unwrap_or(0),
                most.unwrap_or(0)
            )));
        }
        Ok(width)
    }

    fn dimacs(&self) -> Result<Dialect, IngestError> {
        let options = &self.request.options.edge_data;
        let columns = options.columns().iter().map(|column| {
            let problem = || format!("--edge-data {column}: DIMACS has no header; give a number");
            column_index(column, None).ok_or_else(|| self.refuse(problem()))
        });
        let columns = columns.collect::<Result<Vec<usize>, IngestError>>()?;
        Ok(Dialect {
            syntax: Syntax::Dimacs,
            cut: RecordFormat {
                delimiter: Delimiter::Blanks,
                quotes: Quotes::Text,
                trims: true,
                is_open: false,
            },
            comments: Comments::None,
            wanted: [1, 2, 3],
            data: DataColumn::all(options.fields(), &columns),
            columns: None,
            integers_below: false,
            named: false,
            header: None,
            names: ["2".into(), "3".into(), "4".into()],
            doubt: None,
        })
    }
}

/// True if names of columns are names of rows too, over numbers.
fn is_matrix(names: &[String], below: &[Vec<Vec<u8>>]) -> bool {
    let [_, others @ ..] = names else {
        return false;
    };
    let is_row = |name: &String| {
        let mut labels = below.iter().filter_map(|row| row.first());
        labels.any(|label| label == name.as_bytes())
    };
    let is_text = |name: &String| FieldKind::classify(name.as_bytes()) == FieldKind::Text;
    let numbers = |row: &Vec<Vec<u8>>| {
        let mut cells = (1..row.len()).map(|column| FieldKind::at(row, column));
        row.len() > 1 && cells.all(FieldKind::is_number)
    };
    others.len() > 2
        && others.iter().any(is_row)
        && others.iter().all(is_text)
        && below.iter().all(numbers)
}
