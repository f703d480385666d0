//! Rows of a table to edges: the cells of the wanted columns, and what they are converted to.

use std::path::Path;

use graphmill_graph::{EdgeKind, uuid_of, uuid_text};
use parquet::data_type::ByteArray;

use super::edge_columns::{DataColumn, OutOfRange, float_bits, integer_bits};
use super::id_range::IdRange;
use super::parquet_cells::CellValue;
use super::table_columns::TableColumns;
use super::text::dialect::RecordKind;
use super::text::values::{integer, text_id};
use crate::edge_data::{EdgeDataBatch, weight_bits};
use crate::error::{CellProblem, IngestError};
use crate::limits::BATCH_EDGES_MAX;
use crate::source::{EdgeSink, Ids, PieceReport};

/// What rows are converted to.
#[derive(Clone, Copy, Debug)]
pub struct RowRequest {
    pub(crate) ids: IdRange,
    pub(crate) weights: EdgeKind,
    /// Leave out rows that are no edges.
    pub(crate) skips: bool,
}

/// Turns the rows of a table into edges.
pub struct TableRows<'a> {
    columns: &'a TableColumns,
    path: &'a Path,
    want: RowRequest,
    batch: EdgeBatch,
    report: PieceReport,
}

impl<'a> TableRows<'a> {
    /// No rows yet, of a table that is called `path`.
    pub fn new(columns: &'a TableColumns, path: &'a Path, want: RowRequest) -> Self {
        Self {
            columns,
            path,
            want,
            batch: EdgeBatch::new(want),
            report: PieceReport::default(),
        }
    }

    /// Delivers rows, at most [`BATCH_EDGES_MAX`].
    ///
    /// `cells` has the cells of the wanted columns, as many of each. `before` rows of the table come before them.
    ///
    /// # Errors
    /// A row is no edge, and such rows are not skipped; an error of the sink.
    pub fn push(
        &mut self,
        cells: &[Vec<CellValue>],
        before: u64,
        sink: &mut dyn EdgeSink,
    ) -> Result<(), IngestError> {
        let columns = self.columns;
        for row in 0..cells.first().map_or(0, Vec::len) {
            let column = |place: usize| cells.get(place).map(|column| &column[row]);
            let (Some(source), destination) = (column(0), column(1)) else {
                break;
            };
            let destination = match columns.columns {
                RecordKind::Vertex => source,
                RecordKind::Edge => destination.unwrap_or(source),
            };
            let data = cells.iter().skip(2).map(|column| &column[row]);
            let pushed = self.batch.push(source, destination, data, &columns.data);
            if let Err((place, problem)) = pushed {
                if self.want.skips {
                    self.report.skipped += 1;
                    continue;
                }
                return Err(IngestError::Row {
                    path: self.path.to_path_buf(),
                    row: before + row as u64 + 1,
                    column: columns.wanted_names[place].clone(),
                    problem,
                });
            }
            self.report.edges += 1;
        }
        self.batch.deliver(sink)
    }

    /// Returns the counts of all rows.
    pub fn report(mut self) -> PieceReport {
        self.report.lines = self.report.edges + self.report.skipped;
        self.report
    }
}

/// Edges to be delivered.
struct EdgeBatch {
    want: RowRequest,
    integers: Vec<(u64, u64)>,
    texts: Vec<(ByteArray, ByteArray)>,
    data: EdgeDataBatch,
}

impl EdgeBatch {
    fn new(want: RowRequest) -> Self {
        Self {
            want,
            integers: Vec::with_capacity(BATCH_EDGES_MAX),
            texts: Vec::new(),
            data: EdgeDataBatch::default(),
        }
    }

    /// Adds an edge with the cells of its `data`; the error names the wrong cell.
    fn push<'c>(
        &mut self,
        source: &CellValue,
        destination: &CellValue,
        data: impl Iterator<Item = &'c CellValue>,
        fields: &[DataColumn],
    ) -> Result<(), (usize, CellProblem)> {
        let at = |place| move |problem| (place, problem);
        let kind = self.want.weights;
        let mut bits = 0;
        for (i, cell) in data.enumerate() {
            bits |= match fields.get(i) {
                Some(field) => field_of(cell, *field),
                None => weight_of(cell, kind).map(|weight| weight_bits(weight, kind).into()),
            }
            .map_err(at(2 + i))?;
        }
        let range = self.want.ids;
        let bytes_of = match range.ids {
            Ids::Text => text_of,
            Ids::Uuid => uuid_bytes_of,
            Ids::Integer | Ids::Signed | Ids::Wrapping => {
                let source = integer_of(source, range).map_err(at(0))?;
                let destination = integer_of(destination, range).map_err(at(1))?;
                self.integers.push((source, destination));
                self.data.push(bits, kind);
                return Ok(());
            }
        };
        let source = bytes_of(source).map_err(at(0))?;
        let destination = bytes_of(destination).map_err(at(1))?;
        self.texts.push((source, destination));
        self.data.push(bits, kind);
        Ok(())
    }

    fn deliver(&mut self, sink: &mut dyn EdgeSink) -> Result<(), IngestError> {
        if !self.integers.is_empty() {
            sink.integers(&self.integers, self.data.data())?;
        }
        if !self.texts.is_empty() {
            let texts = self.texts.iter();
            let texts: Vec<(&[u8], &[u8])> = texts
                .map(|(source, destination)| (source.data(), destination.data()))
                .collect();
            sink.texts(&texts, self.data.data())?;
        }
        self.integers.clear();
        self.texts.clear();
        self.data.clear();
        Ok(())
    }
}

fn integer_of(cell: &CellValue, range: IdRange) -> Result<u64, CellProblem> {
    let number = match cell {
        CellValue::Null => return Err(CellProblem::Null),
        CellValue::Unsigned(number) => i128::from(*number),
        CellValue::Negative(number) => i128::from(*number),
        CellValue::Single(_) | CellValue::Float(_) | CellValue::Uuid(_) => {
            return Err(CellProblem::NotInteger);
        }
        CellValue::Text(text) => integer(text.data()).ok_or(CellProblem::NotInteger)?,
    };
    Ok(range.deliver(number)?)
}

fn uuid_bytes_of(cell: &CellValue) -> Result<ByteArray, CellProblem> {
    let uuid = match cell {
        CellValue::Null => return Err(CellProblem::Null),
        CellValue::Uuid(uuid) => Some(*uuid),
        CellValue::Text(text) => uuid_of(text.data()),
        _ => None,
    };
    uuid.map(|uuid| uuid.to_vec().into())
        .ok_or(CellProblem::NotUuid)
}

fn text_of(cell: &CellValue) -> Result<ByteArray, CellProblem> {
    match cell {
        CellValue::Null => Err(CellProblem::Null),
        CellValue::Unsigned(number) => Ok(number.to_string().into_bytes().into()),
        CellValue::Negative(number) => Ok(number.to_string().into_bytes().into()),
        CellValue::Single(_) | CellValue::Float(_) => Err(CellProblem::NoId),
        CellValue::Uuid(uuid) => Ok(uuid_text(*uuid).to_vec().into()),
        CellValue::Text(text) if text.is_empty() => Err(CellProblem::Empty),
        CellValue::Text(text) if text_id(text.data(), 1).is_err() => Err(CellProblem::NoId),
        CellValue::Text(text) => Ok(text.clone()),
    }
}

fn weight_of(cell: &CellValue, kind: EdgeKind) -> Result<f64, CellProblem> {
    let weight = match cell {
        CellValue::Null => return Err(CellProblem::Null),
        CellValue::Unsigned(number) => *number as f64,
        CellValue::Negative(number) => *number as f64,
        CellValue::Single(number) => f64::from(*number),
        CellValue::Float(number) => *number,
        CellValue::Text(_) | CellValue::Uuid(_) => return Err(CellProblem::NotWeight),
    };
    let rounded = match kind {
        EdgeKind::F32 => f64::from(weight as f32),
        EdgeKind::F64 | EdgeKind::None | EdgeKind::Record(_) => weight,
    };
    let finite = rounded.is_finite().then_some(rounded);
    finite.ok_or(CellProblem::NotWeight)
}

fn field_of(cell: &CellValue, field: DataColumn) -> Result<u128, CellProblem> {
    let problem = CellProblem::NotField { kind: field.kind };
    let bits = match cell {
        CellValue::Null => return Err(CellProblem::Null),
        CellValue::Unsigned(number) => integer_bits((*number).into(), field.kind),
        CellValue::Negative(number) => integer_bits((*number).into(), field.kind),
        CellValue::Single(number) => float_bits((*number).into(), field.kind).ok_or(problem)?,
        CellValue::Float(number) => float_bits(*number, field.kind).ok_or(problem)?,
        CellValue::Text(_) | CellValue::Uuid(_) => return Err(problem),
    };
    bits.map(|bits| field.part(bits))
        .map_err(|OutOfRange| problem)
}
