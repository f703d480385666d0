//! Fields of lines: the header of a result as text, and the columns of its rows.

use std::borrow::Cow;
use std::sync::Arc;

use graphmill_algorithms::{ResultShape, registry};

use crate::result::rows::EDGE_COLUMNS;

/// The names of the columns of a row of numbers.
pub(super) type ColumnNames = Arc<[Arc<str>]>;

/// What the rows of a text with a header are, and the separator of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextHeader {
    /// A vertex and its value.
    Vertices(u8),
    /// Both ends of an edge, and its weight.
    Edges(u8),
    /// One row of numbers of these names.
    Numbers(u8, ColumnNames),
}

/// Returns what a first line says; `None` if it is no header.
///
/// With `any_numbers` names that no algorithm has are a header of numbers too.
pub(super) fn header(line: &[u8], any_column: bool, any_numbers: bool) -> Option<TextHeader> {
    if line.starts_with(b"vertex,") || is_header_with_tabs(line, any_column) {
        return Some(TextHeader::Vertices(line[b"vertex".len()]));
    }
    for separator in [b',', b'\t'] {
        let columns = line.split(|byte| *byte == separator);
        let names: Option<Vec<&str>> = columns.map(|name| str::from_utf8(name).ok()).collect();
        let Some(names) = names else { continue };
        if names == EDGE_COLUMNS {
            return Some(TextHeader::Edges(separator));
        }
        // Two words with a tab between may be an id and its value.
        let is_one = separator == b',' && !line.iter().any(u8::is_ascii_whitespace);
        let is_row = (is_one || names.len() > 1) && space_separated(line).is_none();
        let is_any = any_numbers && is_row;
        if let Some(names) = number_columns(&names, is_any) {
            return Some(TextHeader::Numbers(separator, names));
        }
    }
    None
}

/// Returns the names of a row of numbers, if an algorithm has these or any names will do.
pub(super) fn number_columns(names: &[&str], any: bool) -> Option<ColumnNames> {
    let is_name = |name: &&str| {
        let is_text = !name.is_empty() && !name.contains(char::is_control);
        is_text && name.parse::<f64>().is_err()
    };
    let is_known = |shape| matches!(shape, ResultShape::Numbers(known) if known == names);
    let is_row = any && names.first() != Some(&"vertex") && names.iter().all(is_name)
        || registry().iter().any(|entry| is_known(entry.shape));
    is_row.then(|| names.iter().copied().map(Arc::from).collect())
}

/// Returns the fields of a line; `None` if a quote does not end, or if they are not `count`.
pub(super) fn all_fields(line: &[u8], separator: u8, count: usize) -> Option<Vec<Cow<'_, [u8]>>> {
    let (mut fields, mut rest) = (Vec::new(), Some(without_end(line)));
    while let Some(text) = rest {
        let (found, after) = field(text, separator)?;
        fields.push(found);
        rest = after;
    }
    (fields.len() == count).then_some(fields)
}

pub(super) type Fields<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// True if a line of CSV ends between quotes.
pub(super) fn is_within_quotes(line: &[u8], separator: u8) -> bool {
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
pub(super) fn without_end(line: &[u8]) -> &[u8] {
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

pub(super) fn space_separated(line: &[u8]) -> Option<Fields<'_>> {
    let words = line.split(u8::is_ascii_whitespace);
    let mut words = words.filter(|word| !word.is_empty());
    let (id, value) = (words.next()?, words.next()?);
    words.next().is_none().then_some((id.into(), value.into()))
}

/// Returns the id of a line, with no value.
///
/// It is the first field, or the first of one or two words if fields have no separator.
pub(super) fn id_alone(line: &[u8], separator: Option<u8>) -> Option<Fields<'_>> {
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

pub(super) fn separated(line: &[u8], separator: u8) -> Option<Fields<'_>> {
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
