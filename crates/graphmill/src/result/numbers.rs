//! A result that is one row of numbers, as CSV or as Parquet; a number without a value is empty, or null.
//!
//! A part without the row has the columns alone.

use std::sync::Arc;

use graphmill_algorithms::{NumberRow, NumberValue};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::result::csv::{bytes_of, csv_writer};
use crate::result_error::ResultError;

/// Returns the header and, if the rank has it, the row as CSV.
pub(super) fn to_csv(tabs: bool, row: &NumberRow, has_row: bool) -> Result<Vec<u8>, ResultError> {
    let mut rows = csv_writer(tabs);
    rows.write_record(row.columns().map(|column| column.0))?;
    if has_row {
        let texts = row.columns().map(|column| column.1.text());
        rows.write_record(texts.map(Option::unwrap_or_default))?;
    }
    bytes_of(rows)
}

/// Returns the columns and, if the rank has it, the row as Parquet.
pub(super) fn to_parquet(row: &NumberRow, has_row: bool) -> Result<Vec<u8>, ResultError> {
    let mut columns = Vec::new();
    for (name, number) in row.columns() {
        let (physical, logical) = match number {
            NumberValue::Integer(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            NumberValue::Float(_) => (Physical::DOUBLE, None),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL)
            .build()?;
        columns.push(Arc::new(column));
    }
    let schema = Type::group_type_builder("graphmill")
        .with_fields(columns)
        .build()?;
    let created_by = concat!("graphmill ", env!("CARGO_PKG_VERSION")).to_string();
    let properties = WriterProperties::builder().set_created_by(created_by);
    let properties = Arc::new(properties.build());
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties)?;
    if has_row {
        let mut group = file.next_row_group()?;
        for (_, number) in row.columns() {
            let mut column = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("a column is missing".into()))?;
            match (column.untyped(), number) {
                (ColumnWriter::Int64ColumnWriter(to), NumberValue::Integer(number)) => {
                    let values: Vec<i64> = number.iter().map(|number| *number as i64).collect();
                    to.write_batch(&values, Some(&[values.len() as i16]), None)?;
                }
                (ColumnWriter::DoubleColumnWriter(to), NumberValue::Float(number)) => {
                    let values: Vec<f64> = number.into_iter().collect();
                    to.write_batch(&values, Some(&[values.len() as i16]), None)?;
                }
                _ => {}
            }
            column.close()?;
        }
        group.close()?;
    }
    Ok(file.into_inner()?)
}
