//! Blocks of rows as Arrow record batches.

use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeBinaryArray, Float32Array, Float64Array, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use graphmill::advanced::{IdColumn, Values};
use graphmill::prelude::NumberValue;
use graphmill::{Block, IdType};

/// The rows of a block; `column` is the name of the values.
pub(crate) fn record_batch(block: &Block, column: &str) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<(&str, ArrayRef, bool)> = Vec::new();
    let nullable = block.reached.is_some();
    let reached = block.reached.as_deref();
    let nulls = reached.map(|reached| NullBuffer::new(BooleanBuffer::from(reached)));
    match &block.values {
        Values::Numbers(row) => {
            for (name, number) in row.columns() {
                let array: ArrayRef = match number {
                    NumberValue::Integer(number) => Arc::new(UInt64Array::from(vec![number])),
                    NumberValue::Float(number) => Arc::new(Float64Array::from(vec![number])),
                };
                columns.push((name, array, true));
            }
        }
        Values::Edges {
            destinations,
            weights,
        } => {
            columns.push(("source", ids(block, &block.ids, None)?, false));
            columns.push(("destination", ids(block, destinations, None)?, false));
            let weights = Float64Array::from(weights.clone());
            columns.push(("weight", Arc::new(weights), false));
        }
        values => {
            columns.push(("vertex", ids(block, &block.ids, None)?, false));
            let values: ArrayRef = match values {
                Values::F32(values) => Arc::new(Float32Array::new(values.clone().into(), nulls)),
                Values::F64(values) => Arc::new(Float64Array::new(values.clone().into(), nulls)),
                Values::U32(values) => Arc::new(UInt32Array::new(values.clone().into(), nulls)),
                Values::U64(values) => Arc::new(UInt64Array::new(values.clone().into(), nulls)),
                Values::Vertex(vertices) => ids(block, vertices, nulls)?,
                Values::Edges { .. } | Values::Numbers(_) => return Err(mistake()),
            };
            columns.push((column, values, nullable));
        }
    }
    let field = |(name, array, nullable): &(&str, ArrayRef, bool)| {
        let field = Field::new(*name, array.data_type().clone(), *nullable);
        match array.data_type() {
            // The canonical extension type of Arrow.
            DataType::FixedSizeBinary(_) => {
                let name = ("ARROW:extension:name".to_string(), "arrow.uuid".to_string());
                field.with_metadata([name].into())
            }
            _ => field,
        }
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(block.rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}

fn mistake() -> ArrowError {
    ArrowError::ComputeError("a block of another shape".to_string())
}

/// A column of ids of a block, in their type.
fn ids(
    block: &Block,
    column: &IdColumn,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    match column {
        IdColumn::Integers(ids) => {
            integers(block.id_type, ids.iter().map(|id| i128::from(*id)), nulls)
        }
        IdColumn::Signed(ids) => {
            integers(block.id_type, ids.iter().map(|id| i128::from(*id)), nulls)
        }
        IdColumn::Texts(texts) => {
            let lengths = (0..texts.len()).map(|row| texts.get(row).len());
            let offsets = OffsetBuffer::from_lengths(lengths);
            let bytes = Buffer::from(texts.all());
            Ok(Arc::new(StringArray::try_new(offsets, bytes, nulls)?))
        }
        IdColumn::Uuids(ids) => {
            let bytes = Buffer::from(ids.as_flattened());
            Ok(Arc::new(FixedSizeBinaryArray::try_new(16, bytes, nulls)?))
        }
    }
}

/// Integer ids in their type.
fn integers(
    id_type: IdType,
    ids: impl Iterator<Item = i128>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    fn array<T: ArrowPrimitiveType<Native: TryFrom<i128>>>(
        ids: impl Iterator<Item = i128>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, ArrowError> {
        let ids: Result<Vec<T::Native>, _> = ids.map(T::Native::try_from).collect();
        let ids = ids.map_err(|_| mistake())?;
        Ok(Arc::new(PrimitiveArray::<T>::new(ids.into(), nulls)))
    }
    match id_type {
        IdType::Int32 => array::<Int32Type>(ids, nulls),
        IdType::UInt32 => array::<UInt32Type>(ids, nulls),
        IdType::UInt64 => array::<UInt64Type>(ids, nulls),
        IdType::Int64 | IdType::Text | IdType::Uuid => array::<Int64Type>(ids, nulls),
    }
}
