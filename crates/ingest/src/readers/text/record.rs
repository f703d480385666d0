//! Records and their fields: where a line of text ends, and where its columns do.
//!
//! A record ends with LF, CRLF or a lone CR. With [`Quotes::Enclose`] (RFC 4180) a field in quotes may hold separators, line
//! ends and doubled quotes. The `csv-core` crate reads such text too, but silently accepts uncertain input: quotes inside
//! a plain field, text after a closing quote, a quote that is never closed. Each is an error here.

use memchr::{memchr, memchr_iter, memchr2, memchr2_iter, memchr3};

use crate::error::LineProblem;

const QUOTE: u8 = b'"';
/// Bytes of the fields behind the requested ones that are scanned one by one.
const FIELDS_BYTES: usize = 32;
/// A byte-order mark.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// A separator of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Delimiter {
    /// Runs of spaces and tabs.
    Blanks,
    /// One such byte.
    Byte(u8),
}

impl Delimiter {
    /// Returns the option's spelling of it.
    pub fn name(self) -> String {
        match self {
            Self::Blanks => "space".into(),
            Self::Byte(b'\t') => "tab".into(),
            Self::Byte(byte) => char::from(byte).to_string(),
        }
    }
}

impl std::str::FromStr for Delimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.as_bytes()) {
            ("space" | " ", _) => Ok(Self::Blanks),
            ("tab" | "\\t", _) => Ok(Self::Byte(b'\t')),
            (_, &[byte])
                if byte.is_ascii_punctuation() && !matches!(byte, b'"' | b'-' | b'.' | b'+')
                    || text == "\t" =>
            {
                Ok(Self::Byte(text.as_bytes()[0]))
            }
            _ => Err("a delimiter is one character of punctuation, tab or space".into()),
        }
    }
}

/// The meaning of a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// A quote encloses a field (RFC 4180).
    Enclose,
    /// A quote is an error; in TSV, only one that begins a field.
    ///
    /// Programs write TSV without quotes.
    Absent,
    /// A quote is text, but no requested field begins with one.
    Within,
    /// A quote is text.
    Text,
}

/// The rules that cut records in fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordFormat {
    pub(crate) delimiter: Delimiter,
    pub(crate) quotes: Quotes,
    /// Blanks around a field do not count.
    pub(crate) trims: bool,
    /// Records end as they do by any usual separator: which one it is has to be found out.
    pub(crate) is_open: bool,
}

/// The state of the scan of a record at a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexState {
    /// A field begins there, or the record.
    Start,
    /// Outside of quotes.
    Plain,
    /// In quotes.
    Quoted,
    /// After a quote in quotes: the field ends, unless another quote follows.
    Closing,
    /// In a comment, where quotes are text.
    Comment,
}

/// A way through some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LexStep {
    /// The offset of the end.
    pub(crate) to: usize,
    /// The state at the end.
    pub(crate) state: LexState,
    /// A line ends there.
    pub(crate) ends: bool,
}

/// A record found in a run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordSpan {
    /// The offset of the line end.
    pub(super) end: usize,
    /// The offset of the next record.
    pub(super) next: usize,
}

/// A field of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field<'a> {
    /// The content, without enclosing quotes.
    pub(super) bytes: &'a [u8],
    /// True if the field was in quotes.
    pub(super) quoted: bool,
    /// True if the field holds doubled quotes.
    pub(super) doubled: bool,
}

impl Field<'_> {
    /// Returns the content with every doubled quote as one.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.bytes.len());
        let mut rest = self.bytes;
        while self.doubled
            && let Some(found) = memchr(QUOTE, rest)
        {
            text.extend_from_slice(&rest[..=found]);
            rest = rest.get(found + 2..).unwrap_or(&[]);
        }
        text.extend_from_slice(rest);
        text
    }
}

/// Why no record could be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRecord {
    /// The record continues after these bytes.
    Partial,
    /// The text ends in a quoted field.
    Unclosed,
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_blank(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_blank(*last)
    {
        bytes = rest;
    }
    bytes
}

/// The line end that begins at `end`; `None` where the bytes end in a CR that an LF may follow.
fn line_end(bytes: &[u8], end: usize, last: bool) -> Option<RecordSpan> {
    let next = match (bytes[end], bytes.get(end + 1)) {
        (b'\r', Some(b'\n')) => end + 2,
        (b'\r', None) if !last => return None,
        _ => end + 1,
    };
    Some(RecordSpan { end, next })
}

/// Returns the number of line ends in `bytes`, which follow the byte `before`.
pub(crate) fn line_ends(before: u8, bytes: &[u8]) -> u64 {
    // An LF after a CR ends no line of its own.
    let mut before = (before == b'\r').then_some(usize::MAX);
    let mut count = 0;
    for at in memchr2_iter(b'\r', b'\n', bytes) {
        let joined = bytes[at] == b'\n' && before == Some(at.wrapping_sub(1));
        count += u64::from(!joined);
        before = (bytes[at] == b'\r').then_some(at);
    }
    count
}

impl RecordFormat {
    /// The line from its first column on, to its last.
    pub(super) fn strip<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match self.delimiter {
            Delimiter::Blanks => trim(line),
            // A separator at the end ends an empty column.
            Delimiter::Byte(_) => line,
        }
    }

    fn separates(&self, byte: u8) -> bool {
        self.delimiter == Delimiter::Byte(byte)
            || self.is_open && matches!(byte, b',' | b'\t' | b';' | b'|')
    }

    /// Returns the record that begins at `at` in `state`: in a comment or at its start.
    ///
    /// The text ends with `bytes` if they are the `last`.
    #[inline]
    pub(super) fn record(
        &self,
        bytes: &[u8],
        at: usize,
        last: bool,
        mut state: LexState,
    ) -> Result<RecordSpan, NoRecord> {
        self.record_from(bytes, at, last, &mut state)
    }

    /// Returns the record from within it, at `at` in `state`; sets `state` to that at the end of the bytes.
    pub(super) fn record_from(
        &self,
        bytes: &[u8],
        mut at: usize,
        last: bool,
        state: &mut LexState,
    ) -> Result<RecordSpan, NoRecord> {
        while at < bytes.len() {
            let step = self.step(bytes, at, *state);
            if step.ends {
                return line_end(bytes, step.to - 1, last).ok_or(NoRecord::Partial);
            }
            (at, *state) = (step.to, step.state);
        }
        match (last, *state) {
            (false, _) => Err(NoRecord::Partial),
            (true, LexState::Quoted) => Err(NoRecord::Unclosed),
            (true, _) => Ok(RecordSpan {
                end: bytes.len(),
                next: bytes.len(),
            }),
        }
    }

    /// Advances from `at` to behind the next byte that changes the state: a quote or a line end.
    ///
    /// The quote opens or closes a field. A quote inside a plain field is text here, and an error where the field is cut.
    #[inline]
    pub(crate) fn step(&self, bytes: &[u8], at: usize, state: LexState) -> LexStep {
        let rest = bytes.get(at..).unwrap_or(&[]);
        let step = |to: usize, state, ends| LexStep { to, state, ends };
        let to = |found: usize, state| step(at + found + 1, state, false);
        let rest_is = |state| step(bytes.len(), state, false);
        let is_comment = state == LexState::Comment;
        match state {
            LexState::Quoted => match memchr(QUOTE, rest) {
                Some(found) => return to(found, LexState::Closing),
                None => return rest_is(LexState::Quoted),
            },
            LexState::Closing if rest.first() == Some(&QUOTE) => return to(0, LexState::Quoted),
            LexState::Closing | LexState::Start | LexState::Plain | LexState::Comment => {}
        }
        let found = match self.quotes == Quotes::Enclose && !is_comment {
            true => memchr3(QUOTE, b'\n', b'\r', rest),
            false => memchr2(b'\n', b'\r', rest),
        };
        match found {
            Some(found) if rest[found] == QUOTE && !is_comment => {
                let opens = match found {
                    0 => state == LexState::Start,
                    3 if state == LexState::Start && rest.starts_with(MARK) => true,
                    _ => self.separates(rest[found - 1]),
                };
                match opens {
                    true => to(found, LexState::Quoted),
                    false => to(found, LexState::Plain),
                }
            }
            Some(found) => step(at + found + 1, LexState::Start, true),
            None => rest_is(self.state_after(rest, state)),
        }
    }

    /// Returns the state after some bytes of a line that begin in `state` and hold no quote.
    pub(crate) fn state_after(&self, bytes: &[u8], state: LexState) -> LexState {
        match (state, bytes.last()) {
            (LexState::Comment, _) => LexState::Comment,
            (_, Some(last)) if self.separates(*last) => LexState::Start,
            (_, Some(_)) => LexState::Plain,
            (state, None) => state,
        }
    }

    /// Splits the next field off `rest`; `None` if there is none. After the last field `rest` is `None`.
    #[inline]
    pub(super) fn field<'a>(
        &self,
        rest: &mut Option<&'a [u8]>,
        column: usize,
    ) -> Result<Option<Field<'a>>, LineProblem> {
        let Some(bytes) = *rest else { return Ok(None) };
        let plain = |bytes| Field {
            bytes,
            ..Field::default()
        };
        let separator = match self.delimiter {
            Delimiter::Blanks => {
                // What NetworkX writes after the ends of an edge is one column: {'weight': 3}.
                let end = match bytes {
                    [b'{', ..] => bytes.len(),
                    _ => memchr2(b' ', b'\t', bytes).unwrap_or(bytes.len()),
                };
                let (field, after) = bytes.split_at(end);
                let after = trim(after);
                *rest = (!after.is_empty()).then_some(after);
                return Ok(Some(plain(field)));
            }
            Delimiter::Byte(separator) => separator,
        };
        let trimmed = if self.trims { trim(bytes) } else { bytes };
        if self.quotes == Quotes::Enclose && trimmed.first() == Some(&QUOTE) {
            let inner = &trimmed[1..];
            let mut doubled = false;
            let mut at = 0;
            let end = loop {
                let Some(found) = memchr(QUOTE, &inner[at..]) else {
                    return Err(LineProblem::Quotes { column });
                };
                at += found;
                if inner.get(at + 1) != Some(&QUOTE) {
                    break at;
                }
                doubled = true;
                at += 2;
            };
            let after = &inner[end + 1..];
            let after = if self.trims { trim(after) } else { after };
            *rest = match after {
                [] => None,
                [byte, after @ ..] if *byte == separator => Some(after),
                _ => return Err(LineProblem::Quotes { column }),
            };
            return Ok(Some(Field {
                bytes: &inner[..end],
                quoted: true,
                doubled,
            }));
        }
        let tabs = separator == b'\t';
        if self.quotes == Quotes::Absent && tabs && trimmed.first() == Some(&QUOTE) {
            return Err(LineProblem::LateQuote { column });
        }
        let end = match self.quotes {
            Quotes::Absent if tabs => memchr(separator, bytes),
            Quotes::Enclose | Quotes::Absent => memchr2(separator, QUOTE, bytes),
            Quotes::Within | Quotes::Text => memchr(separator, bytes),
        }
        .unwrap_or(bytes.len());
        let (field, after) = bytes.split_at(end);
        if separator != QUOTE && after.first() == Some(&QUOTE) {
            match self.quotes {
                Quotes::Enclose => return Err(LineProblem::Quotes { column }),
                Quotes::Absent => return Err(LineProblem::LateQuote { column }),
                Quotes::Within | Quotes::Text => {}
            }
        }
        *rest = after.get(1..);
        Ok(Some(plain(if self.trims { trim(field) } else { field })))
    }

    /// Returns the end of a line after the field that ends at `at` with a separator, by a quick scan.
    ///
    /// `count` fields must follow that one, or any number. `None` if the scan cannot tell.
    #[inline]
    pub(super) fn fields_end(
        &self,
        bytes: &[u8],
        at: usize,
        count: Option<usize>,
    ) -> Option<usize> {
        let quotes = matches!(self.quotes, Quotes::Enclose | Quotes::Absent);
        let (mut fields, mut after_blank) =
            (usize::from(self.delimiter != Delimiter::Blanks), true);
        let rest = bytes.get(at + 1..)?;
        for (i, &byte) in rest.iter().take(FIELDS_BYTES).enumerate() {
            match (byte, self.delimiter) {
                (b'\n' | b'\r', _) => {
                    return count
                        .is_none_or(|count| count == fields)
                        .then_some(at + 1 + i);
                }
                (QUOTE, _) if quotes => return None,
                (_, Delimiter::Byte(separator)) => fields += usize::from(byte == separator),
                (b'{' | 0x0b | 0x0c, _) => return None,
                (_, Delimiter::Blanks) => {
                    let is_blank = byte == b' ' || byte == b'\t';
                    fields += usize::from(after_blank && !is_blank);
                    after_blank = is_blank;
                }
            }
        }
        // Long fields: use the fast search.
        let end = match quotes {
            true => memchr3(b'\n', b'\r', QUOTE, rest)?,
            false => memchr2(b'\n', b'\r', rest)?,
        };
        let line = &rest[..end];
        let fields = || match self.delimiter {
            Delimiter::Byte(separator) => Some(memchr_iter(separator, line).count() + 1),
            Delimiter::Blanks if line.iter().any(|byte| matches!(byte, b'{' | 0x0b | 0x0c)) => None,
            Delimiter::Blanks => {
                let fields = line.split(|&byte| byte == b' ' || byte == b'\t');
                Some(fields.filter(|field| !field.is_empty()).count())
            }
        };
        let fits = count.is_none() || fields() == count;
        (fits && rest[end] != QUOTE).then_some(at + 1 + end)
    }

    /// Returns the number of fields in `bytes`; the first of them is column `column`.
    pub(super) fn count(&self, bytes: &[u8], column: usize) -> Result<usize, LineProblem> {
        if let Delimiter::Byte(separator) = self.delimiter
            && (matches!(self.quotes, Quotes::Within | Quotes::Text)
                || memchr(QUOTE, bytes).is_none())
        {
            return Ok(memchr_iter(separator, bytes).count() + 1);
        }
        let (mut rest, mut count) = (Some(bytes), 0);
        while self.field(&mut rest, column + count)?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(delimiter: u8, quotes: Quotes) -> RecordFormat {
        RecordFormat {
            delimiter: Delimiter::Byte(delimiter),
            quotes,
            trims: false,
            is_open: false,
        }
    }

    fn fields(cut: &RecordFormat, record: &str) -> Result<Vec<String>, LineProblem> {
        let mut rest = Some(record.as_bytes());
        let mut found = Vec::new();
        while let Some(field) = cut.field(&mut rest, found.len() + 1)? {
            found.push(String::from_utf8_lossy(&field.text()).into_owned());
        }
        assert_eq!(cut.count(record.as_bytes(), 1), Ok(found.len()));
        Ok(found)
    }

    #[test]
    fn record_fields_follow_rfc_4180() {
        let csv = cut(b',', Quotes::Enclose);
        let same = |record, expected: &[&str]| {
            assert_eq!(
                fields(&csv, record).as_deref(),
                Ok(&expected
                    .iter()
                    .map(|f| (*f).to_string())
                    .collect::<Vec<_>>()[..]),
                "{record}"
            );
        };
        same("a,b", &["a", "b"]);
        same(r#""a, x","b""#, &["a, x", "b"]);
        same(r#""say ""hi""",b,"#, &["say \"hi\"", "b", ""]);
        same(",", &["", ""]);
        same(r#""",x"#, &["", "x"]);
        same("\"one\ntwo\",x", &["one\ntwo", "x"]);
        for record in [r#"a"b,c"#, r#""a"b,c"#, r#"a,"b"#, r#"a, "b""#] {
            assert!(
                matches!(fields(&csv, record), Err(LineProblem::Quotes { .. })),
                "{record}"
            );
        }
    }

    #[test]
    fn records_end_with_every_line_end() {
        let csv = cut(b',', Quotes::Enclose);
        let text = b"a,b\r\n\"x\r\ny\",c\rd,e\nf";
        let mut at = 0;
        let mut found = Vec::new();
        while at < text.len() {
            let record = csv.record(text, at, true, LexState::Start).unwrap();
            found.push(&text[at..record.end]);
            at = record.next;
        }
        assert_eq!(found, [&b"a,b"[..], b"\"x\r\ny\",c", b"d,e", b"f"]);
        assert_eq!(
            csv.record(b"a,\"b", 0, true, LexState::Start),
            Err(NoRecord::Unclosed)
        );
        assert_eq!(
            csv.record(b"a,b\r", 0, false, LexState::Start),
            Err(NoRecord::Partial)
        );
        assert_eq!(line_ends(b'\n', b"a\r\nb\rc\n\n"), 4);
        assert_eq!(line_ends(b'\r', b"\na\n"), 1);
    }
}
