//! Detects whether the first line of a file names the columns.

use super::columns::column_index;
use super::dialect::RecordKind;
use super::fault::shown;
use super::names::{
    known_pair, known_vertex, known_weight, look_like_a_pair, looks_like_a_vertex_name,
};
use super::sample::{SampleRecord, Sniff};
use super::values::{FieldKind, is_missing};
use crate::error::IngestError;

impl Sniff<'_> {
    /// Returns whether the first of `rows` is a header, and a text about the doubt.
    pub(super) fn is_header(
        &self,
        rows: &[Vec<Vec<u8>>],
        names: &[String],
        body: &[SampleRecord<'_>],
    ) -> Result<(bool, Option<String>), IngestError> {
        let Some((first, below)) = rows.split_first() else {
            return Ok((false, None));
        };
        let is_edge = self.request.columns == RecordKind::Edge;
        let pair = known_pair(names).filter(|_| is_edge);
        let known = pair.is_some() || !is_edge && known_vertex(names).is_some();
        let text = body.first().map(|line| line.text);
        let before = self.request.before;
        let header_before = before.and_then(|before| before.header.as_deref());
        let same_as_before = header_before.is_some() && header_before == text;
        if self.is_named(names) || same_as_before {
            return Ok((true, None));
        }
        let numbers_below = |column: usize| {
            let mut kinds = below.iter().map(|row| FieldKind::at(row, column));
            kinds.clone().any(FieldKind::is_number)
                && kinds.all(|kind| kind.is_number() || kind == FieldKind::Empty)
        };
        let ends = self.end_columns(None).or(pair).unwrap_or([0, 1]);
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
        let line = shown(text.unwrap_or_default());
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
                && FieldKind::at(first, column) == FieldKind::Text
                && !is_missing(&first[column])
                && numbers_below(column)
        };
        let is_number = |end: &usize| FieldKind::at(first, *end).is_number();
        let columns = 0..first.len();
        let differ: Vec<usize> = columns.filter(|column| differs(*column)).collect();
        let indexed = FieldKind::at(first, 0) == FieldKind::Empty
            && first.len() > 2
            && !below.is_empty()
            && (counts_rows(below, 0) || counts_rows(below, 1));
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
        let looks = match (self.request.columns, names) {
            (RecordKind::Edge, _) => match (names.get(ends[0]), names.get(ends[1])) {
                (Some(first), Some(second)) => look_like_a_pair(first, second),
                _ => false,
            },
            (RecordKind::Vertex, [name, ..]) => looks_like_a_vertex_name(name),
            (RecordKind::Vertex, []) => false,
        };
        if looks && !is_data {
            let doubt = format!("if {line:?} is data: --header no");
            return Ok((true, Some(doubt)));
        }
        let doubt = (self.is_tabular() && !is_data)
            .then(|| format!("if {line:?} names the columns: --header yes"));
        Ok((false, doubt))
    }

    /// True if an option names a column of the first line.
    fn is_named(&self, names: &[String]) -> bool {
        let options = self.request.options;
        let ends = [&options.source_column, &options.target_column];
        let ends = ends.into_iter().chain([&options.weight_column]).flatten();
        let mut columns = ends.chain(options.edge_data.columns());
        columns.any(|column| {
            column.parse::<usize>().is_err() && column_index(column, Some(names)).is_some()
        })
    }
}

/// True if the first column counts the rows from `from` on, as an index of pandas does.
fn counts_rows(rows: &[Vec<Vec<u8>>], from: usize) -> bool {
    rows.iter().enumerate().all(|(at, row)| {
        let number = (from + at).to_string();
        row.first().is_some_and(|cell| cell == number.as_bytes())
    })
}
