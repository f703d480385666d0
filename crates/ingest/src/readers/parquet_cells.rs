//! Cells of a Parquet column: the integers, floats and texts that a file can have.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::Result as ParquetResult;

use super::parquet_bytes::guarded;
use super::thrift::broken;
use crate::limits::BATCH_EDGES_MAX;

/// A value of a column.
#[derive(Clone, Debug)]
pub enum CellValue {
    /// There is no value.
    Null,
    /// An integer that is not negative.
    Unsigned(u64),
    /// An integer below 0.
    Negative(i64),
    /// A 32-bit float.
    Single(f32),
    /// A 64-bit float.
    Float(f64),
    /// The bytes of a text.
    Text(ByteArray),
    /// The bytes of a UUID.
    Uuid([u8; 16]),
}

/// Returns the next cells of a column, at most a batch; none at its end.
///
/// # Errors
/// The column is damaged, or has another type.
pub fn cells(column: &mut ColumnReader, is_unsigned: bool) -> ParquetResult<Vec<CellValue>> {
    use ColumnReader::*;
    let integer = |value: i64| match is_unsigned || value >= 0 {
        true => CellValue::Unsigned(value as u64),
        false => CellValue::Negative(value),
    };
    guarded(|| match column {
        Int32ColumnReader(column) => cells_of(column, |&value| match is_unsigned {
            true => CellValue::Unsigned((value as u32).into()),
            false => integer(value.into()),
        }),
        Int64ColumnReader(column) => cells_of(column, |&value| integer(value)),
        FloatColumnReader(column) => cells_of(column, |&value| CellValue::Single(value)),
        DoubleColumnReader(column) => cells_of(column, |&value| CellValue::Float(value)),
        ByteArrayColumnReader(column) => cells_of(column, |value| CellValue::Text(value.clone())),
        FixedLenByteArrayColumnReader(column) => cells_of(column, |value| {
            value
                .data()
                .try_into()
                .map_or(CellValue::Null, CellValue::Uuid)
        }),
        _ => Err(broken("a column is neither integers nor floats nor text")),
    })
}

fn cells_of<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    cell: impl Fn(&T::T) -> CellValue,
) -> ParquetResult<Vec<CellValue>> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (records, _, _) =
        column.read_records(BATCH_EDGES_MAX, Some(&mut levels), None, &mut values)?;
    if levels.is_empty() {
        // Without nulls there are no levels.
        return Ok(values.iter().map(cell).collect());
    }
    let mut values = values.iter();
    let next = |level: &i16| match level {
        0 => Some(CellValue::Null),
        _ => values.next().map(&cell),
    };
    let cells: Option<Vec<CellValue>> = levels.iter().take(records).map(next).collect();
    cells.ok_or_else(|| broken("a column has fewer values than its levels say"))
}
