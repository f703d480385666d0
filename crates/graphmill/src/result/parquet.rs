//! Blocks as Parquet: columns `vertex` and the algorithm's value, snappy, one row group a block; null where a vertex was not reached.
//!
//! The same blocks give the same bytes. Ids are in ascending order, so integer ids are stored as deltas. The library's low-level
//! column writers are used: pages leave as they fill, so that one block and one page a column are in memory.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::types::{ColumnPath, Type};

use super::block::{Block, Labels, Texts, Values};
use super::{ResultError, RowWriter, Shape};

pub(super) struct ParquetRows<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> ParquetRows<W> {
    pub(super) fn new(sink: W, shape: &Shape) -> Result<ParquetRows<W>, ResultError> {
        let value = if shape.nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let columns = vec![
            Arc::new(column(
                "vertex",
                &of_labels(&shape.ids),
                Repetition::REQUIRED,
            )?),
            Arc::new(column(&shape.column, &of_values(&shape.values), value)?),
        ];
        let schema = Type::group_type_builder("graphmill")
            .with_fields(columns)
            .build()?;
        let vertex = ColumnPath::from("vertex");
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("graphmill ", env!("CARGO_PKG_VERSION")).to_string())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_column_dictionary_enabled(vertex.clone(), false);
        if matches!(shape.ids, Labels::Integers(_) | Labels::Signed(_)) {
            properties = properties.set_column_encoding(vertex, Encoding::DELTA_BINARY_PACKED);
        }
        if matches!(shape.values, Values::F32(_) | Values::F64(_)) {
            // Few floats are equal: a dictionary would be built and thrown away.
            let value = ColumnPath::from(shape.column.as_str());
            properties = properties.set_column_dictionary_enabled(value, false);
        }
        let file = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties.build()))?;
        Ok(ParquetRows { file })
    }
}

impl<W: Write + Send> RowWriter<W> for ParquetRows<W> {
    fn block(&mut self, block: &Block) -> Result<(), ResultError> {
        let mut group = self.file.next_row_group()?;
        write_labels(next_column(&mut group)?, &block.ids, None)?;
        let column = next_column(&mut group)?;
        let reached = block.reached.as_deref();
        match &block.values {
            Values::F32(values) => write::<FloatType>(column, only(values, reached), reached)?,
            Values::F64(values) => write::<DoubleType>(column, only(values, reached), reached)?,
            Values::U32(values) => {
                let bits = only(values, reached).map(|value| value as i32);
                write::<Int32Type>(column, bits, reached)?;
            }
            Values::U64(values) => {
                let bits = only(values, reached).map(|value| value as i64);
                write::<Int64Type>(column, bits, reached)?;
            }
            Values::Vertex(labels) => write_labels(column, labels, reached)?,
        }
        group.close()?;
        Ok(())
    }

    fn finish(self) -> Result<W, ResultError> {
        Ok(self.file.into_inner()?)
    }
}

/// What an id or a value is called in Parquet: unsigned integers and UTF-8 text are annotated as such.
fn of_labels(labels: &Labels) -> (Physical, Option<LogicalType>) {
    match labels {
        Labels::Integers(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Labels::Signed(_) => (Physical::INT64, Some(LogicalType::integer(64, true))),
        Labels::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    }
}

fn of_values(values: &Values) -> (Physical, Option<LogicalType>) {
    match values {
        Values::F32(_) => (Physical::FLOAT, None),
        Values::F64(_) => (Physical::DOUBLE, None),
        Values::U32(_) => (Physical::INT32, Some(LogicalType::integer(32, false))),
        Values::U64(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Values::Vertex(labels) => of_labels(labels),
    }
}

fn column(
    name: &str,
    (physical, logical): &(Physical, Option<LogicalType>),
    repetition: Repetition,
) -> Result<Type, ResultError> {
    Ok(Type::primitive_type_builder(name, *physical)
        .with_logical_type(logical.clone())
        .with_repetition(repetition)
        .build()?)
}

fn next_column<'a, W: Write + Send>(
    group: &'a mut SerializedRowGroupWriter<'_, W>,
) -> Result<SerializedColumnWriter<'a>, ResultError> {
    group.next_column()?.ok_or_else(|| {
        parquet::errors::ParquetError::General("the schema has two columns".into()).into()
    })
}

/// The values of the rows that have one.
fn only<T: Copy>(values: &[T], reached: Option<&[bool]>) -> impl Iterator<Item = T> {
    values
        .iter()
        .enumerate()
        .filter(move |&(row, _)| reached.is_none_or(|reached| reached[row]))
        .map(|(_, &value)| value)
}

fn write_labels(
    column: SerializedColumnWriter<'_>,
    labels: &Labels,
    reached: Option<&[bool]>,
) -> Result<(), ResultError> {
    match labels {
        Labels::Integers(ids) => {
            let bits = only(ids, reached).map(|id| id as i64);
            write::<Int64Type>(column, bits, reached)
        }
        Labels::Signed(ids) => write::<Int64Type>(column, only(ids, reached), reached),
        Labels::Texts(texts) => {
            let slices = slices(texts)?;
            let kept = slices
                .into_iter()
                .enumerate()
                .filter(|&(row, _)| reached.is_none_or(|reached| reached[row]));
            write::<ByteArrayType>(column, kept.map(|(_, text)| text), reached)
        }
    }
}

/// Every text as a slice of one shared allocation.
fn slices(texts: &Texts) -> Result<Vec<ByteArray>, ResultError> {
    let whole: ByteArray = texts.all().to_vec().into();
    let mut start = 0;
    texts
        .iter()
        .map(|text| {
            if std::str::from_utf8(text).is_err() {
                return Err(ResultError::NotUtf8 {
                    id: String::from_utf8_lossy(text).into_owned(),
                });
            }
            let slice = whole.slice(start, text.len());
            start += text.len();
            Ok(slice)
        })
        .collect()
}

fn write<T: DataType>(
    mut column: SerializedColumnWriter<'_>,
    values: impl Iterator<Item = T::T>,
    reached: Option<&[bool]>,
) -> Result<(), ResultError> {
    let values: Vec<T::T> = values.collect();
    let levels: Option<Vec<i16>> =
        reached.map(|reached| reached.iter().map(|&reached| i16::from(reached)).collect());
    column
        .typed::<T>()
        .write_batch(&values, levels.as_deref(), None)?;
    column.close()?;
    Ok(())
}
