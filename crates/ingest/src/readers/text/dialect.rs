//! How a file of text is read, decided from its first bytes: separator, quotes, comments, header, columns.
//!
//! 1. Lines at the start that are comments are set aside.
//! 2. The separator is the one that cuts all lines below into the same number of columns ([`Sniff::delimiter`]).
//! 3. The first line is a header where its cells differ from those below, or are names that programs write.
//! 4. The columns of the ids and the weight are found by option, by name, else by place.
//!
//! What stays uncertain is an error that names the option. docs/reading.md has the rules.

use std::cell;
use std::path::Path;

use super::names::{
    ids_of_datasets, known_pair, known_vertex, known_weight, look_like_a_pair,
    looks_like_a_vertex_name,
};
use super::record::{
    Cut, Delimiter, MARK, NoRecord, Place, Quotes, is_blank, line_ends, trim, undoubled,
};
use super::values::{Cell, is_missing};
use crate::error::{IngestError, LineProblem};

/// Records of a sample at most.
const SAMPLE_RECORDS: usize = 2000;

/// What lines are, by the name of the file or by option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Columns by any separator; blanks around them do not count.
    Text,
    /// Columns as in RFC 4180, by commas unless the file shows something else.
    Csv,
    /// The same by tabs.
    Tsv,
    /// `a u v w` and `e u v`; lines that start with `c` or `p` are comments.
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

/// Whether the first line of a file names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// By what it holds.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// What a quote means in a file of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quote {
    /// In CSV and TSV it encloses columns.
    #[default]
    Auto,
    /// It encloses columns.
    Encloses,
    /// It is text.
    None,
}

/// Which lines are comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Comments {
    /// Those before the first edge that start with `#`, `%` or `//`.
    #[default]
    Auto,
    /// All that start with this.
    Prefix(String),
    /// None.
    None,
}

/// How the lines of text files are read; the default decides everything from the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The column of the sources, by name or by number from 1.
    pub source_column: Option<String>,
    /// The column of the destinations.
    pub target_column: Option<String>,
    /// The column of the weights.
    pub weight_column: Option<String>,
    /// Whether the first line names the columns.
    pub header: Header,
    /// What separates columns.
    pub delimiter: Option<Delimiter>,
    /// What a quote means.
    pub quote: Quote,
    /// Which lines are comments.
    pub comments: Comments,
}

/// How the records of a file are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) syntax: Syntax,
    pub(crate) cut: Cut,
    pub(crate) comments: Comments,
    /// The columns of source, destination and weight, from 0.
    pub(crate) wanted: [usize; 3],
    /// Columns of every record, where the sample has one number of them.
    pub(crate) columns: Option<usize>,
    /// Whether the ids of all lines but the first are integers, and there are some.
    pub(crate) integers_below: bool,
    /// Whether the columns have names, of this file or of one before it.
    named: bool,
    /// The first line, where it names the columns.
    pub(crate) header: Option<Vec<u8>>,
    /// What the wanted columns are called: names of a header, else numbers from 1.
    pub(crate) names: [String; 3],
    /// What was decided though it could be otherwise, with the option.
    pub(crate) doubt: Option<String>,
}

impl Dialect {
    /// Whether a record that begins with these bytes is a comment.
    pub(crate) fn place(&self, bytes: &[u8]) -> Place {
        match &self.comments {
            Comments::Prefix(prefix) if past_mark(bytes).starts_with(prefix.as_bytes()) => {
                Place::Comment
            }
            _ => Place::Start,
        }
    }
}

/// The lines of a file before its first edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Where the first edge begins.
    pub(crate) bytes: u64,
    /// Line ends before it.
    pub(crate) lines: u64,
    pub(crate) comments: u64,
    pub(crate) blank: u64,
    pub(crate) headers: u64,
}

/// What is asked of a file.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) path: &'a Path,
    pub(crate) syntax: Syntax,
    pub(crate) columns: Columns,
    pub(crate) weighted: bool,
    /// Malformed lines are left out, so that the sample may hold some.
    pub(crate) skips: bool,
    pub(crate) options: &'a TextOptions,
    /// How the file before it is read: where two ways fit, this one's is taken.
    pub(crate) before: Option<&'a Dialect>,
}

/// A record of the sample.
#[derive(Clone, Copy)]
struct Line<'a> {
    start: usize,
    next: usize,
    text: &'a [u8],
}

/// The mark that a comment starts with.
fn mark(line: &[u8]) -> Option<&'static [u8]> {
    [&b"#"[..], b"%", b"//"]
        .into_iter()
        .find(|mark| line.starts_with(mark))
}

/// A mark and a blank.
pub(super) fn is_spaced_comment(line: &[u8]) -> bool {
    mark(line).is_some_and(|mark| line.get(mark.len()).is_some_and(|&after| is_blank(after)))
}

/// A mark that no id follows at once: a blank, the end of the line, another mark, or a slash.
fn is_surely_comment(line: &[u8]) -> bool {
    mark(line).is_some_and(|mark| {
        line.get(mark.len())
            .is_none_or(|&after| is_blank(after) || matches!(after, b'#' | b'%' | b'!' | b'/'))
    })
}

/// Text after a byte-order mark.
pub(super) fn past_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(MARK).unwrap_or(line)
}

/// Decides how a file that begins with `bytes` is read; they are all of it where it is `whole`.
pub(crate) fn sniff(
    ask: Ask<'_>,
    bytes: &[u8],
    whole: bool,
) -> Result<(Dialect, Head), IngestError> {
    let sniff = Sniff {
        ask,
        bytes,
        by_most: cell::Cell::new(false),
    };
    sniff.run(ask.options.delimiter, whole)
}

struct Sniff<'a> {
    ask: Ask<'a>,
    bytes: &'a [u8],
    /// Some lines are malformed: most decide, and the others are found when they are read.
    by_most: cell::Cell<bool>,
}

impl<'a> Sniff<'a> {
    fn refuse(&self, problem: impl Into<String>) -> IngestError {
        IngestError::input(self.ask.path, problem)
    }

    fn is_tabular(&self) -> bool {
        matches!(self.ask.syntax, Syntax::Csv | Syntax::Tsv)
            || self.ask.options.quote == Quote::Encloses
    }

    fn quotes(&self) -> Quotes {
        match (self.ask.options.quote, self.is_tabular()) {
            (Quote::None, _) => Quotes::Text,
            (Quote::Encloses, _) => Quotes::Enclose,
            (Quote::Auto, true) if self.has_quotes() => Quotes::Enclose,
            (Quote::Auto, true) => Quotes::Absent,
            (Quote::Auto, false) => Quotes::Within,
        }
    }

    /// Whether the line that begins with these bytes is a comment: one in the head of a file, before any edge, or any.
    fn is_comment(&self, line: &[u8], in_head: bool) -> bool {
        let line = past_mark(line);
        match &self.ask.options.comments {
            Comments::Auto => in_head && is_surely_comment(line),
            Comments::Prefix(prefix) => {
                line.starts_with(prefix.as_bytes()) || in_head && is_surely_comment(line)
            }
            Comments::None => false,
        }
    }

    /// Whether there are quotes that are not in comments; in TSV, whether one begins a field.
    fn has_quotes(&self) -> bool {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let mut lines = self.bytes.split_inclusive(is_end).skip_while(|line| {
            trim(line.trim_ascii_end()).is_empty() || self.is_comment(line, true)
        });
        let quotes = |line: &[u8]| match self.ask.syntax {
            Syntax::Tsv => memchr::memchr_iter(b'"', line).any(|at| {
                let before = at.checked_sub(1).map(|at| line[at]);
                before.is_none_or(|before| matches!(before, b'\t' | 0xbf))
            }),
            _ => memchr::memchr(b'"', line).is_some(),
        };
        lines.any(|line| quotes(line) && !self.is_comment(line, false))
    }

    fn cut(&self, delimiter: Delimiter) -> Cut {
        let blanks = delimiter == Delimiter::Blanks;
        Cut {
            delimiter,
            // Blanks cut what quotes enclose.
            quotes: match self.quotes() {
                Quotes::Enclose | Quotes::Absent if blanks => Quotes::Within,
                quotes => quotes,
            },
            trims: blanks || !self.is_tabular() && self.ask.options.delimiter.is_none(),
            is_open: false,
        }
    }

    /// The records of the sample, without blank lines.
    fn lines(
        &self,
        delimiter: Option<Delimiter>,
        whole: bool,
    ) -> Result<(Vec<Line<'a>>, u64), IngestError> {
        let cut = Cut {
            is_open: delimiter.is_none(),
            ..self.cut(delimiter.unwrap_or(Delimiter::Byte(b',')))
        };
        let (mut lines, mut blank, mut at) = (Vec::new(), 0, 0);
        let mut in_head = true;
        while at < self.bytes.len() && lines.len() < SAMPLE_RECORDS {
            let line = &self.bytes[at..];
            let place = match self.is_comment(line, in_head) {
                true => Place::Comment,
                false => Place::Start,
            };
            let record = match cut.record(self.bytes, at, whole, place) {
                Ok(record) => record,
                Err(NoRecord::Unclosed) => {
                    return Err(IngestError::UnclosedQuote {
                        path: self.ask.path.to_path_buf(),
                        line: 1 + line_ends(b'\n', &self.bytes[..at]),
                    });
                }
                Err(NoRecord::Partial) => break,
            };
            let text = past_mark(&self.bytes[at..record.end]);
            if trim(text).is_empty() {
                blank += u64::from(lines.is_empty());
            } else {
                in_head &= place == Place::Comment || mark(text).is_some();
                lines.push(Line {
                    start: at,
                    next: record.next,
                    text,
                });
            }
            at = record.next;
        }
        Ok((lines, blank))
    }

    fn run(
        &self,
        mut told: Option<Delimiter>,
        whole: bool,
    ) -> Result<(Dialect, Head), IngestError> {
        let (lines, _) = self.lines(told, whole)?;
        if self.ask.syntax == Syntax::Dimacs {
            return Ok((self.dimacs(), Head::default()));
        }
        let was_told = told.is_some();
        let mut first = 0;
        // Excel says the separator in a line of its own.
        if let Some(Line { text, .. }) = lines.first()
            && let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', separator] = text
            && self.is_tabular()
        {
            first = 1;
            told = told.or(Some(Delimiter::Byte(*separator)));
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
                    ask: Ask {
                        skips: false,
                        ..self.ask
                    },
                    bytes: self.bytes,
                    by_most: cell::Cell::new(false),
                };
                let found = strict.delimiter(body, told);
                self.by_most.set(strict.by_most.get());
                match found {
                    Ok(delimiter) => (doubtful, Some(delimiter)),
                    Err(_) => (lines.len(), told),
                }
            }
            Some(body) => (doubtful + marked, Some(self.delimiter(body, told)?)),
        };
        let default = match self.ask.syntax {
            Syntax::Csv => Delimiter::Byte(b','),
            Syntax::Tsv => Delimiter::Byte(b'\t'),
            Syntax::Text | Syntax::Dimacs => Delimiter::Blanks,
        };
        let before = self.ask.before.map(|before| before.cut.delimiter);
        let cut = self.cut(delimiter.or(before).unwrap_or(default));
        if !was_told && delimiter.is_some() && cut.quotes == Quotes::Enclose {
            // By the separator that was found other quotes may open a column.
            return self.run(Some(cut.delimiter), whole);
        }
        // Marked lines right above the edges that have as many columns are edges, or the header.
        let width = lines
            .get(body)
            .and_then(|line| self.width(&cut, line.text).ok());
        let mut start = body;
        while start > doubtful
            && width.is_some()
            && self.width(&cut, lines[start - 1].text).ok() == width
            && !self.is_edge_left_out(&cut, lines[start - 1].text, lines[body].text)
        {
            start -= 1;
        }
        self.decide(&lines, start, cut)
    }

    /// How many lines at the start are certainly comments.
    fn comments(&self, lines: &[Line<'_>]) -> usize {
        let is_comment = |line: &&Line<'_>| self.is_comment(line.text, true);
        // Such a line may stand behind one in doubt.
        let last = lines
            .iter()
            .take_while(|line| is_comment(line) || self.may_be_comment(line.text))
            .collect::<Vec<_>>();
        last.iter().rposition(is_comment).map_or(0, |last| last + 1)
    }

    /// Whether a line is an edge between integers behind the mark of a comment, above one without a mark: #1 2.
    fn is_edge_left_out(&self, cut: &Cut, line: &[u8], below: &[u8]) -> bool {
        let numbers = |line: &[u8]| {
            self.cells(cut, line).is_ok_and(|cells| {
                cells.len() >= 2 && cells[..2].iter().all(|cell| Cell::of(cell).is_number())
            })
        };
        mark(line).is_some_and(|mark| numbers(&line[mark.len()..])) && numbers(below)
    }

    fn may_be_comment(&self, line: &[u8]) -> bool {
        self.ask.options.comments == Comments::Auto && mark(line).is_some()
    }

    fn width(&self, cut: &Cut, line: &[u8]) -> Result<usize, IngestError> {
        cut.count(Some(cut.strip(line)), 1)
            .map_err(|problem| self.line_error(line, problem))
    }

    /// An error with the line that begins where `line` lies in the sample.
    fn line_error(&self, line: &[u8], problem: LineProblem) -> IngestError {
        let at = line.as_ptr() as usize - self.bytes.as_ptr() as usize;
        IngestError::Line {
            path: self.ask.path.to_path_buf(),
            line: 1 + line_ends(b'\n', &self.bytes[..at]),
            found: super::shown(line),
            problem,
        }
    }

    fn cells(&self, cut: &Cut, line: &[u8]) -> Result<Vec<Vec<u8>>, LineProblem> {
        let mut rest = Some(cut.strip(line));
        let mut cells = Vec::new();
        while let Some(field) = cut.field(&mut rest, cells.len() + 1)? {
            cells.push(if field.doubled {
                undoubled(field.bytes)
            } else {
                field.bytes.to_vec()
            });
        }
        Ok(cells)
    }

    /// Columns that a line has at least.
    fn needed(&self) -> usize {
        let number = |name: &Option<String>| name.as_ref().and_then(|name| name.parse().ok());
        let options = self.ask.options;
        let least = match self.ask.columns {
            Columns::Vertex => return 1,
            Columns::Edge => 2,
        };
        [&options.source_column, &options.target_column]
            .into_iter()
            .filter_map(number)
            .fold(least, usize::max)
    }

    /// What separates the columns of `body`.
    fn delimiter(
        &self,
        body: &[Line<'_>],
        told: Option<Delimiter>,
    ) -> Result<Delimiter, IngestError> {
        if let Some(told) = told {
            return Ok(told);
        }
        let blanks = Delimiter::Blanks;
        let [tab, comma] = [Delimiter::Byte(b'\t'), Delimiter::Byte(b',')];
        let others = [Delimiter::Byte(b';'), Delimiter::Byte(b'|')];
        let usual = match self.ask.syntax {
            Syntax::Csv => comma,
            Syntax::Text | Syntax::Tsv | Syntax::Dimacs => tab,
        };
        let needed = self.needed();
        let all_that_fit = |skips: bool| -> Vec<(Delimiter, Fit)> {
            let fits = |delimiter| self.fit(&self.cut(delimiter), body, needed, skips);
            [tab, comma, others[0], others[1], blanks]
                .into_iter()
                .filter_map(|delimiter| Some((delimiter, fits(delimiter)?)))
                .collect()
        };
        // Malformed lines may be left out, but where nothing is malformed nothing is.
        let mut fitting = all_that_fit(false);
        if fitting.is_empty() {
            fitting = all_that_fit(true);
            let most = fitting.iter().map(|(_, fit)| fit.lines).max().unwrap_or(0);
            fitting.retain(|(_, fit)| fit.lines == most);
            match (self.ask.skips, 2 * most > body.len()) {
                (true, _) if fitting.is_empty() => {
                    return Ok(if self.is_tabular() { usual } else { blanks });
                }
                (false, false) => fitting.clear(),
                _ => self.by_most.set(true),
            }
        }
        if self.ask.columns == Columns::Vertex {
            // A list with one column needs no separator.
            let single = |fit: &Fit| fit.width == Some(1);
            let cut: Vec<_> = fitting
                .iter()
                .filter(|(_, fit)| !single(fit))
                .copied()
                .collect();
            let bytes_cut = cut.iter().any(|(delimiter, _)| *delimiter != blanks);
            if cut.is_empty() || !bytes_cut && self.is_tabular() {
                return Ok(if self.is_tabular() { usual } else { blanks });
            }
            fitting = cut;
        }
        if self.is_tabular() {
            fitting.retain(|(delimiter, fit)| *delimiter != blanks || fit.integers);
        }
        // Tabs are blanks too.
        if fitting
            .iter()
            .any(|(delimiter, fit)| *delimiter == tab && fit.width.is_some())
        {
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
            [] => {
                // Tell what is wrong with the first line that no separator cuts.
                if body.is_empty() {
                    return Ok(usual);
                }
                // Each line is left out when it is read.
                if self.ask.skips {
                    return Ok(if self.is_tabular() { usual } else { blanks });
                }
                // By the separator that cuts most lines, the first that it does not cut.
                let cuts = |delimiter: &Delimiter| {
                    let cut = self.cut(*delimiter);
                    let is_cut = |line: &&Line<'_>| {
                        self.cells(&cut, line.text)
                            .is_ok_and(|cells| cells.len() >= needed)
                    };
                    body.iter().filter(is_cut).count()
                };
                let least = if self.is_tabular() { usual } else { blanks };
                let best = [others[1], others[0], comma, tab, least]
                    .into_iter()
                    .max_by_key(cuts)
                    .unwrap_or(least);
                if self.is_tabular()
                    && cuts(&best) == 0
                    && cuts(&blanks) == body.len()
                    && self.cells(&self.cut(best), body[0].text).is_ok()
                {
                    return Err(self.refuse(
                        "no character separates its columns; if blanks do, say --delimiter space",
                    ));
                }
                let cut = self.cut(best);
                let expected = self
                    .cells(&cut, body[0].text)
                    .map_or(needed, |cells| cells.len());
                let problem = |line: &Line<'_>| match self.cells(&cut, line.text) {
                    Err(problem) => Some(self.line_error(line.text, problem)),
                    Ok(cells) if cells.len() < needed => {
                        let found = cells.len();
                        let problem = LineProblem::TooFewColumns { found, needed };
                        Some(self.line_error(line.text, problem))
                    }
                    Ok(cells) if cells.len() != expected => {
                        let found = cells.len();
                        let problem = LineProblem::ColumnCount { found, expected };
                        Some(self.line_error(line.text, problem))
                    }
                    Ok(_) => None,
                };
                Err(body.iter().find_map(problem).unwrap_or_else(|| {
                    self.refuse(
                        "no separator cuts its lines into two columns; say which with --delimiter",
                    )
                }))
            }
            [(only, _)] => Ok(only),
            // Tabs are rarely part of a cell. Other characters are, where they are not what the ending of the name says.
            _ if has(usual) && usual == tab => Ok(usual),
            _ if has(usual)
                && !fitting.iter().any(|(other, fit)| {
                    ![usual, blanks].contains(other) && fit.width.is_some()
                }) =>
            {
                Ok(usual)
            }
            _ => {
                // The names of columns tell.
                let is_named = |(delimiter, _): &&(Delimiter, Fit)| {
                    let cells = body
                        .first()
                        .map(|line| self.cells(&self.cut(*delimiter), line.text));
                    cells.is_some_and(|cells| {
                        cells.is_ok_and(|cells| known_pair(&names_of(&cells)).is_some())
                    })
                };
                let mut named = fitting.iter().filter(is_named);
                if let (Some((named, _)), None) = (named.next(), named.next()) {
                    return Ok(*named);
                }
                let before = self.ask.before.map(|before| before.cut.delimiter);
                if let Some(before) = before.filter(|before| has(*before)) {
                    return Ok(before);
                }
                // One way to spell a list: 1, 2.
                let beside = |line: &Line<'_>| {
                    line.text
                        .split(|&byte| byte == b',')
                        .all(|field| !trim(field).iter().any(|&byte| is_blank(byte)))
                };
                if fitting.len() == 2 && has(comma) && has(blanks) && body.iter().all(beside) {
                    return Ok(comma);
                }
                let names: Vec<String> = fitting
                    .iter()
                    .map(|(delimiter, _)| match delimiter {
                        Delimiter::Byte(byte) if *byte != b'\t' => {
                            format!("--delimiter '{}'", char::from(*byte))
                        }
                        _ => format!("--delimiter {}", delimiter.name()),
                    })
                    .collect();
                let line = body
                    .first()
                    .map_or(1, |line| 1 + line_ends(b'\n', &self.bytes[..line.start]));
                Err(self.refuse(format!(
                    "line {line} and those below can be cut in more than one way; say {}",
                    names.join(" or ")
                )))
            }
        }
    }

    /// How `cut` fits all lines, or those that it `skips` not; `None` where one has fewer columns than needed.
    fn fit(&self, cut: &Cut, body: &[Line<'_>], needed: usize, skips: bool) -> Option<Fit> {
        let mut integers = true;
        let mut widths = Vec::with_capacity(body.len());
        let ends = self.places(None).unwrap_or([0, usize::from(needed > 1)]);
        for (row, line) in body.iter().enumerate() {
            let cells = match self.cells(cut, line.text) {
                Ok(cells) => cells,
                Err(_) if skips => continue,
                Err(_) => return None,
            };
            if cells.len() < needed {
                if skips {
                    continue;
                }
                return None;
            }
            widths.push(cells.len());
            let integer = |column: usize| {
                cells
                    .get(column)
                    .is_some_and(|cell| Cell::of(cell) == Cell::Integer)
            };
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

    /// The columns of the ends that the options give by number; `names` are those of a header.
    fn places(&self, names: Option<&[String]>) -> Option<[usize; 2]> {
        let options = self.ask.options;
        let place = |option: &Option<String>| self.place(option.as_deref()?, names);
        Some([
            place(&options.source_column)?,
            place(&options.target_column)?,
        ])
    }

    fn place(&self, column: &str, names: Option<&[String]>) -> Option<usize> {
        place(column, names)
    }

    /// Everything, where edges (or a header and edges) begin with line `start`, and comments before.
    fn decide(
        &self,
        lines: &[Line<'_>],
        start: usize,
        cut: Cut,
    ) -> Result<(Dialect, Head), IngestError> {
        let body = &lines[start.min(lines.len())..];
        let mut rows = Vec::with_capacity(body.len());
        for line in body {
            match self.cells(&cut, line.text) {
                Ok(cells) => rows.push(cells),
                Err(_) if self.ask.skips || self.by_most.get() => rows.push(Vec::new()),
                Err(problem) => return Err(self.line_error(line.text, problem)),
            }
        }
        let widths: Vec<usize> = rows.iter().map(Vec::len).collect();
        let mut names: Option<Vec<String>> = rows.first().map(|row| names_of(row));
        // A commented header: #source,target.
        if let Some(first) = names.as_mut().and_then(|names| names.first_mut())
            && self.ask.options.comments == Comments::Auto
            && let Some(bare) = first.strip_prefix('#')
        {
            *first = bare.to_string();
        }
        let header_names = names.clone();
        let (is_header, doubt) = match self.ask.options.header {
            Header::Yes => (!rows.is_empty(), None),
            Header::No => (false, None),
            Header::Auto => self.is_header(&rows, names.as_deref().unwrap_or(&[]), body)?,
        };
        let mut names = names.filter(|_| is_header);
        let header_width = names.as_ref().map(Vec::len);
        let (data, header_line) = match (is_header, body) {
            (true, [header, data @ ..]) => (data, Some(header)),
            _ => (body, None),
        };
        let rows = &rows[usize::from(is_header)..];
        // The header does not say which column has no name. R leaves out the name of the first column, other programs that of the last.
        let has_more = names.is_some()
            && !rows.is_empty()
            && rows
                .iter()
                .all(|row| Some(row.len()) == header_width.map(|width| width + 1));
        if let Some(names) = names.as_mut().filter(|_| has_more) {
            let ends_empty = |row: &Vec<Vec<u8>>| row.last().is_some_and(Vec::is_empty);
            if rows.iter().all(ends_empty) {
                names.push(String::new());
            } else if self.places(None).is_none() {
                return Err(self.refuse(format!(
                    "the first line names {} columns and the lines below have {}: say which hold the ids by number (--header yes --source-column 2 --target-column 3, if the first column has no name)",
                    names.len(),
                    names.len() + 1
                )));
            }
        }
        let index = (names.as_ref()).is_some_and(|names| names.len() > 2 && names[0].is_empty());
        let most = rows.iter().map(Vec::len).min().unwrap_or(usize::MAX);
        let Chosen {
            columns: wanted,
            names: called,
        } = choose(&self.ask, names.as_deref(), index.into(), most, &|column| {
            rows.iter().filter_map(|row| row.get(column)).any(|cell| {
                let text = String::from_utf8_lossy(cell);
                text.trim()
                    .parse::<f64>()
                    .is_ok_and(|number| number.fract() != 0.0)
            })
        })?;
        // Who names the columns takes lines of any length.
        let any_length =
            self.ask.columns == Columns::Vertex || self.places(names.as_deref()).is_some();
        let widths = widths[usize::from(has_more)..].to_vec();
        let width = width_of(
            widths,
            (self.ask.skips || self.by_most.get()) && !any_length,
        );
        // Others have the columns of the header.
        let width = match &names {
            Some(names) if !any_length => width.or(Some(names.len())),
            _ => width,
        };
        if width.is_none() && !rows.is_empty() && !any_length {
            let width = |row: &Vec<Vec<u8>>| row.len();
            let [least, most] = [rows.iter().map(width).min(), rows.iter().map(width).max()];
            return Err(self.refuse(format!(
                "its lines have from {} to {} columns, as an adjacency list has; if the ids are in the first two, say --source-column 1 --target-column 2",
                least.unwrap_or(0),
                most.unwrap_or(0)
            )));
        }
        // Names of columns that are names of rows too, over numbers: a matrix.
        let below = rows.get(usize::from(!is_header)..).unwrap_or(&[]);
        let is_row = |name: &&String| {
            let mut labels = below.iter().filter_map(|row| row.first());
            labels.any(|label| label == name.as_bytes())
        };
        let numbers = |row: &Vec<Vec<u8>>| {
            row.len() > 1 && row[1..].iter().all(|cell| Cell::of(cell).is_number())
        };
        if let Some([_, others @ ..]) = header_names.as_deref()
            && others.len() > 2
            && others.iter().any(|name| is_row(&name))
            && others
                .iter()
                .all(|name| Cell::of(name.as_bytes()) == Cell::Text)
            && below.iter().all(numbers)
        {
            return Err(self.refuse(
                "it looks like a matrix, with a column for each vertex; write one edge a line (UNPIVOT in DuckDB, stack in pandas)",
            ));
        }
        // Up to the first edge, or the end of the sample.
        let edges = data.first().map_or_else(
            || lines.last().map_or(0, |line| line.next),
            |line| line.start,
        );
        let comments = start.min(lines.len());
        let all_lines = line_ends(b'\n', &self.bytes[..edges]);
        let unended = edges > 0 && !matches!(self.bytes[edges - 1], b'\n' | b'\r');
        let within = header_line.map_or(0, |line| line_ends(b'\n', line.text));
        let lines_before = all_lines + u64::from(unended);
        let head = Head {
            bytes: edges as u64,
            lines: lines_before,
            comments: comments as u64,
            blank: (lines_before - within).saturating_sub(comments as u64 + u64::from(is_header)),
            headers: u64::from(is_header),
        };
        let is_integer = |row: &Vec<Vec<u8>>, column: usize| {
            row.get(column)
                .is_some_and(|cell| Cell::of(cell) == Cell::Integer)
        };
        let integers_below = rows.len() > 1
            && rows[1..]
                .iter()
                .all(|row| wanted[..2].iter().all(|&end| is_integer(row, end)));
        // A part without a header is read by that of the part before it.
        let before = self.ask.before.filter(|before| {
            names.is_none()
                && self.ask.options.header == Header::Auto
                && before.named
                && before.cut.delimiter == cut.delimiter
                && before.syntax == self.ask.syntax
                && width.is_some()
                && before.columns == width
        });
        let (wanted, called, doubt) = match before {
            Some(before) => (before.wanted, before.names.clone(), None),
            None => (wanted, called, doubt),
        };
        let dialect = Dialect {
            syntax: self.ask.syntax,
            cut,
            comments: self.ask.options.comments.clone(),
            wanted,
            columns: width,
            integers_below,
            named: names.is_some() || before.is_some(),
            header: header_line.map(|line| line.text.to_vec()),
            names: called,
            doubt,
        };
        Ok((dialect, head))
    }

    /// Whether the first of `rows` names the columns, and what to say where that is in doubt.
    fn is_header(
        &self,
        rows: &[Vec<Vec<u8>>],
        names: &[String],
        body: &[Line<'_>],
    ) -> Result<(bool, Option<String>), IngestError> {
        let Some((first, below)) = rows.split_first() else {
            return Ok((false, None));
        };
        // An option names a column of the first line.
        let options = self.ask.options;
        let by_option = [
            &options.source_column,
            &options.target_column,
            &options.weight_column,
        ]
        .into_iter()
        .flatten()
        .any(|column| {
            column.parse::<usize>().is_err() && self.place(column, Some(names)).is_some()
        });
        let known = match self.ask.columns {
            Columns::Edge => known_pair(names).is_some(),
            Columns::Vertex => known_vertex(names).is_some(),
        };
        let same_as_before = self
            .ask
            .before
            .and_then(|before| before.header.as_deref())
            .is_some_and(|header| body.first().is_some_and(|line| line.text == header));
        if by_option || same_as_before {
            return Ok((true, None));
        }
        let kind = |row: &Vec<Vec<u8>>, column: usize| {
            row.get(column).map_or(Cell::Empty, |cell| Cell::of(cell))
        };
        let numbers_below = |column: usize| {
            let mut kinds = below.iter().map(|row| kind(row, column));
            below.iter().any(|row| kind(row, column).is_number())
                && kinds.all(|kind| kind.is_number() || kind == Cell::Empty)
        };
        let pair = known_pair(names).filter(|_| known && self.ask.columns == Columns::Edge);
        let ends = self.places(None).or(pair).unwrap_or([0, 1]);
        // A name of a column is no id.
        let recurs = |column: usize| {
            first.get(column).is_some_and(|cell| {
                // The header itself may come again.
                let below = below.iter().filter(|row| *row != first);
                let mut ids = below.flat_map(|row| ends.map(|end| row.get(end)));
                ids.any(|id| id == Some(cell))
            })
        };
        let is_data = ends.into_iter().any(recurs);
        let line = super::shown(body.first().map_or(&[], |line| line.text));
        let either = || {
            self.refuse(format!(
                "its first line {line:?} may name the columns or be an edge: say --header yes or --header no"
            ))
        };
        if known {
            return match is_data && pair.is_some() {
                true => Err(either()),
                false => Ok((true, None)),
            };
        }
        let differs = |column: usize| {
            !is_data
                && kind(first, column) == Cell::Text
                && !is_missing(&first[column])
                && numbers_below(column)
        };
        let is_number = |end: &usize| kind(first, *end).is_number();
        let differ = (0..first.len())
            .filter(|column| differs(*column))
            .collect::<Vec<_>>();
        // A first column without a name that counts the rows is an index, as pandas writes it.
        let counts = |from: usize| {
            let mut rows = below.iter().enumerate();
            rows.all(|(at, row)| {
                let number = (from + at).to_string();
                row.first().is_some_and(|cell| cell == number.as_bytes())
            })
        };
        let indexed = kind(first, 0) == Cell::Empty
            && first.len() > 2
            && !below.is_empty()
            && (counts(0) || counts(1));
        if indexed {
            return Ok((true, None));
        }
        if !differ.is_empty() {
            if ends.iter().any(is_number) {
                return Err(either());
            }
            // A name over weights alone may as well be a weight that lacks.
            let by_ends = ends.iter().any(|end| differ.contains(end));
            let is_sure = by_ends || known_weight(names, ends).is_some();
            let doubt = (!is_sure).then(|| format!("if {line:?} is data: --header no"));
            return Ok((true, doubt));
        }
        if below.is_empty() || ends.iter().any(is_number) {
            return Ok((false, None));
        }
        let looks = match (self.ask.columns, names) {
            (Columns::Edge, _) => match (names.get(ends[0]), names.get(ends[1])) {
                (Some(first), Some(second)) => look_like_a_pair(first, second),
                _ => false,
            },
            (Columns::Vertex, [name, ..]) => looks_like_a_vertex_name(name),
            (Columns::Vertex, []) => false,
        };
        if looks && !is_data {
            let doubt = format!("if {line:?} is data: --header no");
            return Ok((true, Some(doubt)));
        }
        let doubt = (self.is_tabular() && !is_data)
            .then(|| format!("if {line:?} names the columns: --header yes"));
        Ok((false, doubt))
    }

    fn dimacs(&self) -> Dialect {
        Dialect {
            syntax: Syntax::Dimacs,
            cut: Cut {
                delimiter: Delimiter::Blanks,
                quotes: Quotes::Text,
                trims: true,
                is_open: false,
            },
            comments: Comments::None,
            wanted: [1, 2, 3],
            columns: None,
            integers_below: false,
            named: false,
            header: None,
            names: ["2".into(), "3".into(), "4".into()],
            doubt: None,
        }
    }
}

/// The columns of source, destination and weight, and what they are called: by a header, else by number from 1.
pub(crate) struct Chosen {
    pub(crate) columns: [usize; 3],
    pub(crate) names: [String; 3],
}

/// Where an option finds its column: by the name as it is written, by number from 1, or by the name in another case.
fn place(column: &str, names: Option<&[String]>) -> Option<usize> {
    let named = |is: &dyn Fn(&str) -> bool| names?.iter().position(|name| is(name.trim()));
    named(&|name| name == column)
        .or_else(|| column.parse::<usize>().ok()?.checked_sub(1))
        .or_else(|| named(&|name| name.eq_ignore_ascii_case(column)))
}

/// Finds the columns that are wanted: by option, by name, else from `index` on. Rows have `width` columns; `is_fraction` tells
/// which hold fractions, which are no ids.
pub(crate) fn choose(
    ask: &Ask<'_>,
    names: Option<&[String]>,
    index: usize,
    width: usize,
    is_fraction: &dyn Fn(usize) -> bool,
) -> Result<Chosen, IngestError> {
    let (options, refuse) = (ask.options, |problem| IngestError::input(ask.path, problem));
    let have = || match names {
        Some(names) => format!("it has {}", names.join(", ")),
        None => "it has no header (--header yes if the first line is one); give a number".into(),
    };
    let find = |option: &Option<String>, what: &str| match option {
        None => Ok(None),
        Some(column) => match (place(column, names), column.parse::<usize>()) {
            (Some(place), Ok(number)) if place + 1 != number && (1..=width).contains(&number) => {
                Err(refuse(format!(
                    "{what} {column}: column {} has that name and another that number: rename it",
                    place + 1
                )))
            }
            (Some(place), _) => Ok(Some(place)),
            (None, _) => Err(refuse(format!(
                "{what} {column}: there is no such column; {}",
                have()
            ))),
        },
    };
    let called = |column: usize| match names.and_then(|names| names.get(column)) {
        Some(name) if !name.is_empty() => {
            let shown = |c: char| match c.is_control() {
                true => c.escape_default().to_string(),
                false => c.to_string(),
            };
            name.chars().map(shown).collect()
        }
        _ => (column + 1).to_string(),
    };
    let chosen = |columns: [usize; 3]| Chosen {
        columns,
        names: columns.map(called),
    };
    if ask.columns == Columns::Vertex {
        return Ok(chosen([names.and_then(known_vertex).unwrap_or(index); 3]));
    }
    if let (Some(names), None, None) = (names, &options.source_column, &options.target_column)
        && let Some(column) = ids_of_datasets(names)
    {
        return Err(refuse(format!(
            "its ids are unique within {column} only: join both to one column, or say --source-column and --target-column if the ids are unique in all"
        )));
    }
    let source = find(&options.source_column, "--source-column")?;
    let target = find(&options.target_column, "--target-column")?;
    let known = names.and_then(known_pair);
    let [first, second] = known.unwrap_or([index, index + 1]);
    let ends = match (source, target) {
        (Some(source), None) if source == second => None,
        (None, Some(target)) if target == first => None,
        (source, target) => Some([source.unwrap_or(first), target.unwrap_or(second)]),
    };
    let Some(ends) = ends else {
        return Err(refuse(
            "give both --source-column and --target-column: one of them is the column that the other would be".into(),
        ));
    };
    if ends[0] == ends[1] {
        return Err(refuse(
            "--source-column and --target-column are one column".into(),
        ));
    }
    let is_guess = source.is_none() && target.is_none() && known.is_none();
    if let Some(names) = names
        && is_guess
        && names.len() > 2
        && ends.into_iter().any(is_fraction)
    {
        return Err(refuse(format!(
            "its columns are {}: say which hold the ids with --source-column and --target-column",
            names.join(", ")
        )));
    }
    let weight = match find(&options.weight_column, "--weight-column")? {
        Some(weight) => weight,
        None => names
            .and_then(|names| known_weight(names, ends))
            .unwrap_or(ends[0].max(ends[1]) + 1),
    };
    let needed = match ask.weighted {
        true => ends[0].max(ends[1]).max(weight),
        false => ends[0].max(ends[1]),
    };
    if let Some(names) = names
        && width < usize::MAX
        && needed >= width.max(names.len())
    {
        return Err(refuse(format!(
            "column {} is wanted and the columns are {}",
            needed + 1,
            names.join(", ")
        )));
    }
    Ok(chosen([ends[0], ends[1], weight]))
}

/// How a separator fits.
#[derive(Clone, Copy)]
struct Fit {
    /// Columns, where all lines have one number of them.
    width: Option<usize>,
    /// Both ids are integers in every line that is no header.
    integers: bool,
    /// Lines that it cuts.
    lines: usize,
}

/// What the cells of a header say.
fn names_of(cells: &[Vec<u8>]) -> Vec<String> {
    let name = |cell: &Vec<u8>| String::from_utf8_lossy(trim(cell)).into_owned();
    cells.iter().map(name).collect()
}

/// The one number of columns that lines have; where malformed ones are left out, that of most.
fn width_of(mut widths: Vec<usize>, skips: bool) -> Option<usize> {
    widths.sort_unstable();
    let groups = widths.chunk_by(|one, other| one == other);
    if skips {
        return groups.max_by_key(|group| group.len()).map(|group| group[0]);
    }
    let mut groups = groups.map(|group| group[0]);
    groups.next().filter(|_| groups.next().is_none())
}
