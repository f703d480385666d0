//! Finds the separator: the one that cuts all lines of the sample into the same number of columns.

use super::columns::{names_of, width_of};
use super::dialect::{RecordKind, Syntax};
use super::names::known_pair;
use super::record::{Delimiter, RecordFormat, is_blank, line_ends, trim};
use super::sample::{SampleRecord, Sniff};
use super::values::FieldKind;
use crate::error::{IngestError, LineProblem};

/// The fit of a separator.
#[derive(Clone, Copy)]
struct Fit {
    /// Columns, where all lines have one number of them.
    width: Option<usize>,
    /// Both ids are integers in every line that is no header.
    integers: bool,
    /// Lines that it cuts.
    lines: usize,
}

impl Sniff<'_> {
    /// Returns the separator of the columns of `body`.
    pub(super) fn delimiter(
        &self,
        body: &[SampleRecord<'_>],
        delimiter: Option<Delimiter>,
    ) -> Result<Delimiter, IngestError> {
        if let Some(delimiter) = delimiter {
            return Ok(delimiter);
        }
        let blanks = Delimiter::Blanks;
        let [tab, comma] = [Delimiter::Byte(b'\t'), Delimiter::Byte(b',')];
        let others = [Delimiter::Byte(b';'), Delimiter::Byte(b'|')];
        let usual = match self.request.syntax {
            Syntax::Csv => comma,
            Syntax::Text | Syntax::Tsv | Syntax::Dimacs => tab,
        };
        let default = if self.is_tabular() { usual } else { blanks };
        let needed = self.needed();
        let all_that_fit = |skips: bool| -> Vec<(Delimiter, Fit)> {
            let fits = |delimiter| self.fit(&self.cut(delimiter), body, needed, skips);
            [tab, comma, others[0], others[1], blanks]
                .into_iter()
                .filter_map(|delimiter| Some((delimiter, fits(delimiter)?)))
                .collect()
        };
        // Only malformed lines may be skipped.
        let mut fitting = all_that_fit(false);
        if fitting.is_empty() {
            fitting = all_that_fit(true);
            let most = fitting.iter().map(|(_, fit)| fit.lines).max().unwrap_or(0);
            fitting.retain(|(_, fit)| fit.lines == most);
            match (self.request.skips, 2 * most > body.len()) {
                (true, _) if fitting.is_empty() => return Ok(default),
                (false, false) => fitting.clear(),
                _ => self.by_most.set(true),
            }
        }
        if self.request.columns == RecordKind::Vertex {
            // A list with one column needs no separator.
            fitting.retain(|(_, fit)| fit.width != Some(1));
            let bytes_cut = fitting.iter().any(|(delimiter, _)| *delimiter != blanks);
            if fitting.is_empty() || !bytes_cut && self.is_tabular() {
                return Ok(default);
            }
        }
        if self.is_tabular() {
            fitting.retain(|(delimiter, fit)| *delimiter != blanks || fit.integers);
        }
        // Tabs are blanks too.
        let mut tabs = fitting.iter().filter(|(delimiter, _)| *delimiter == tab);
        if tabs.any(|(_, fit)| fit.width.is_some()) {
            fitting.retain(|(delimiter, _)| *delimiter != blanks);
        }
        let keep = |fitting: &mut Vec<(Delimiter, Fit)>, is: fn(&Fit) -> bool| {
            if fitting.iter().any(|(_, fit)| is(fit)) {
                fitting.retain(|(_, fit)| is(fit));
            }
        };
        keep(&mut fitting, |fit| fit.width.is_some());
        keep(&mut fitting, |fit| fit.integers);
        if self.by_most.get() && fitting.iter().any(|(delimiter, _)| *delimiter != blanks) {
            fitting.retain(|(delimiter, _)| *delimiter != blanks);
        }
        let has = |delimiter| fitting.iter().any(|(found, _)| *found == delimiter);
        match fitting[..] {
            [] => self.no_delimiter(body, usual, default),
            [(only, _)] => Ok(only),
            // Tabs are rarely part of a cell. Other characters may be, unless the name's ending says that they separate.
            _ if has(usual) && usual == tab => Ok(usual),
            _ if has(usual)
                && !fitting.iter().any(|(other, fit)| {
                    ![usual, blanks].contains(other) && fit.width.is_some()
                }) =>
            {
                Ok(usual)
            }
            _ => self.one_of(&fitting, body),
        }
    }

    /// Returns the separator of lines that none cuts alike, or the error of the first line not cut.
    fn no_delimiter(
        &self,
        body: &[SampleRecord<'_>],
        usual: Delimiter,
        default: Delimiter,
    ) -> Result<Delimiter, IngestError> {
        let needed = self.needed();
        // Report the problem with the first line that no separator cuts.
        if body.is_empty() {
            return Ok(usual);
        }
        // Each line is left out when it is read.
        if self.request.skips {
            return Ok(default);
        }
        // By the separator that cuts most lines, the first that it does not cut.
        let cuts = |delimiter: &Delimiter| {
            let cut = self.cut(*delimiter);
            let cells = body.iter().map(|line| self.cells(&cut, line.text));
            cells
                .flatten()
                .filter(|cells| cells.len() >= needed)
                .count()
        };
        let others = [b'|', b';', b',', b'\t'].map(Delimiter::Byte);
        let best = others.into_iter().chain([default]).max_by_key(cuts);
        let best = best.unwrap_or(default);
        if self.is_tabular()
            && cuts(&best) == 0
            && cuts(&Delimiter::Blanks) == body.len()
            && self.cells(&self.cut(best), body[0].text).is_ok()
        {
            return Err(self.refuse(
                "no character separates its columns; if blanks do, say --delimiter space",
            ));
        }
        let cut = self.cut(best);
        let count = |line: &SampleRecord<'_>| self.cells(&cut, line.text).map(|cells| cells.len());
        let expected = count(&body[0]).unwrap_or(needed);
        let problem = |line: &SampleRecord<'_>| {
            let problem = match count(line) {
                Err(problem) => problem,
                Ok(found) if found < needed => LineProblem::TooFewColumns { found, needed },
                Ok(found) if found != expected => LineProblem::ColumnCount { found, expected },
                Ok(_) => return None,
            };
            Some(self.line_error(line.text, problem))
        };
        Err(body.iter().find_map(problem).unwrap_or_else(|| {
            self.refuse("no separator cuts its lines into two columns; say which with --delimiter")
        }))
    }

    /// Returns the one of several separators that something else speaks for.
    fn one_of(
        &self,
        fitting: &[(Delimiter, Fit)],
        body: &[SampleRecord<'_>],
    ) -> Result<Delimiter, IngestError> {
        let has = |delimiter| fitting.iter().any(|(found, _)| *found == delimiter);
        // The names of columns tell.
        let is_named = |(delimiter, _): &&(Delimiter, Fit)| {
            let first = body.first().map_or(&[][..], |line| line.text);
            let cells = self.cells(&self.cut(*delimiter), first);
            cells.is_ok_and(|cells| known_pair(&names_of(&cells)).is_some())
        };
        let mut named = fitting.iter().filter(is_named);
        if let (Some((named, _)), None) = (named.next(), named.next()) {
            return Ok(*named);
        }
        let before = self.request.before.map(|before| before.cut.delimiter);
        if let Some(before) = before.filter(|before| has(*before)) {
            return Ok(before);
        }
        // One way to spell a list: 1, 2.
        let beside = |line: &SampleRecord<'_>| {
            let mut fields = line.text.split(|&byte| byte == b',');
            fields.all(|field| !trim(field).iter().any(|&byte| is_blank(byte)))
        };
        let comma = Delimiter::Byte(b',');
        if fitting.len() == 2 && has(comma) && has(Delimiter::Blanks) && body.iter().all(beside) {
            return Ok(comma);
        }
        let name = |(delimiter, _): &(Delimiter, Fit)| match delimiter {
            Delimiter::Blanks | Delimiter::Byte(b'\t') => {
                format!("--delimiter {}", delimiter.name())
            }
            Delimiter::Byte(byte) => format!("--delimiter '{}'", char::from(*byte)),
        };
        let names: Vec<String> = fitting.iter().map(name).collect();
        let start = body.first().map_or(0, |line| line.start);
        let line = 1 + line_ends(b'\n', &self.bytes[..start]);
        Err(self.refuse(format!(
            "line {line} and those below can be cut in more than one way; say {}",
            names.join(" or ")
        )))
    }

    /// Returns the fit of `cut` to all lines except skipped ones; `None` if one has too few columns.
    fn fit(
        &self,
        cut: &RecordFormat,
        body: &[SampleRecord<'_>],
        needed: usize,
        skips: bool,
    ) -> Option<Fit> {
        let mut integers = true;
        let mut widths = Vec::with_capacity(body.len());
        let first = [0, usize::from(needed > 1)];
        let ends = self.end_columns(None).unwrap_or(first);
        for (row, line) in body.iter().enumerate() {
            let cells = match self.cells(cut, line.text) {
                Ok(cells) if cells.len() >= needed => cells,
                _ if skips => continue,
                _ => return None,
            };
            widths.push(cells.len());
            let integer = |column: usize| FieldKind::at(&cells, column) == FieldKind::Integer;
            // The first line may be a header.
            integers &= row == 0 && body.len() > 1 || ends.into_iter().all(integer);
        }
        if widths.is_empty() && !body.is_empty() {
            return None;
        }
        let lines = widths.len();
        let width = width_of(widths, skips);
        Some(Fit {
            width,
            integers,
            lines,
        })
    }
}
