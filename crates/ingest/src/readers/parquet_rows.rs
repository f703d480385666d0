//! Rows of a Parquet file to edges: the cells of the wanted columns, and what they are converted to.

use graphmill_graph::EdgeKind;
use parquet::data_type::ByteArray;

use super::edge_columns::{DataColumn, OutOfRange, float_bits, integer_bits};
use super::parquet_cells::CellValue;
use super::text::values::{integer, integer_id, text_id};
use crate::edge_data::{EdgeDataBatch, weight_bits};
use crate::error::{CellProblem, IngestError};
use crate::limits::BATCH_EDGES_MAX;
use crate::source::{EdgeSink, Ids};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParquetType {
    Signed,
    Unsigned,
    Text,
    Float,
    Other,
}

/// The rows to read, and the types that they are converted to.
#[derive(Clone, Copy)]
pub(crate) struct RowRequest {
    /// The row group.
    pub(crate) group: usize,
    pub(crate) ids: Ids,
    pub(crate) id_last: u64,
    pub(crate) weights: EdgeKind,
    pub(crate) skips: bool,
}

/// Edges to be delivered.
pub(super) struct EdgeBatch {
    want: RowRequest,
    integers: Vec<(u64, u64)>,
    texts: Vec<(ByteArray, ByteArray)>,
    data: EdgeDataBatch,
}

impl EdgeBatch {
    pub(super) fn new(want: RowRequest) -> Self {
        Self {
            want,
            integers: Vec::with_capacity(BATCH_EDGES_MAX),
            texts: Vec::new(),
            data: EdgeDataBatch::default(),
        }
    }

    /// Adds an edge with the cells of its `data`; the error names the wrong cell.
    pub(super) fn push<'c>(
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
        match self.want.ids {
            Ids::Text => {
                let source = text_of(source).map_err(at(0))?;
                let destination = text_of(destination).map_err(at(1))?;
                self.texts.push((source, destination));
            }
            ids => {
                let last = self.want.id_last;
                let source = integer_of(source, ids, last).map_err(at(0))?;
                let destination = integer_of(destination, ids, last).map_err(at(1))?;
                self.integers.push((source, destination));
            }
        }
        self.data.push(bits, kind);
        Ok(())
    }

    pub(super) fn deliver(&mut self, sink: &mut dyn EdgeSink) -> Result<(), IngestError> {
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

fn integer_of(cell: &CellValue, ids: Ids, last: u64) -> Result<u64, CellProblem> {
    let number = match cell {
        CellValue::Null => return Err(CellProblem::Null),
        CellValue::Unsigned(number) => i128::from(*number),
        CellValue::Negative(number) => i128::from(*number),
        CellValue::Single(_) | CellValue::Float(_) => return Err(CellProblem::NotInteger),
        CellValue::Text(text) => integer(text.data()).ok_or(CellProblem::NotInteger)?,
    };
    match integer_id(number, ids) {
        Some(id) if id <= last => Ok(id),
        Some(_) => Err(CellProblem::Beyond {
            below: last.saturating_add(1),
        }),
        None if number < 0 => Err(CellProblem::Negative),
        None => Err(CellProblem::Huge),
    }
}

fn text_of(cell: &CellValue) -> Result<ByteArray, CellProblem> {
    match cell {
        CellValue::Null => Err(CellProblem::Null),
        CellValue::Unsigned(number) => Ok(number.to_string().into_bytes().into()),
        CellValue::Negative(number) => Ok(number.to_string().into_bytes().into()),
        CellValue::Single(_) | CellValue::Float(_) => Err(CellProblem::NoId),
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
        CellValue::Text(_) => return Err(CellProblem::NotWeight),
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
        CellValue::Text(_) => return Err(problem),
    };
    bits.map(|bits| field.part(bits))
        .map_err(|OutOfRange| problem)
}
