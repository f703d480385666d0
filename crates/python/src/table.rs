//! Blocks of rows as Arrow record batches.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, Field, Schema};
use graphmill::Block;
use graphmill::advanced::{IdColumn, Values};
use graphmill::prelude::NumberValue;

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
            columns.push(("source", ids(&block.ids, None)?, false));
            columns.push(("destination", ids(destinations, None)?, false));
            let weights = Float64Array::from(weights.clone());
            columns.push(("weight", Arc::new(weights), false));
        }
        values => {
            columns.push(("vertex", ids(&block.ids, None)?, false));
            let values: ArrayRef = match values {
                Values::F32(values) => Arc::new(Float32Array::new(values.clone().into(), nulls)),
                Values::F64(values) => Arc::new(Float64Array::new(values.clone().into(), nulls)),
                Values::U32(values) => Arc::new(UInt32Array::new(values.clone().into(), nulls)),
                Values::U64(values) => Arc::new(UInt64Array::new(values.clone().into(), nulls)),
                Values::Vertex(vertices) => ids(vertices, nulls)?,
                Values::Edges { .. } | Values::Numbers(_) => return Err(mistake()),
            };
            columns.push((column, values, nullable));
        }
    }
    let field = |(name, array, nullable): &(&str, ArrayRef, bool)| {
        Field::new(*name, array.data_type().clone(), *nullable)
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(block.rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}

fn mistake() -> ArrowError {
    ArrowError::ComputeError("a block of another shape".to_string())
}

/// A column of ids.
fn ids(column: &IdColumn, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    Ok(match column {
        IdColumn::Integers(ids) => Arc::new(UInt64Array::new(ids.clone().into(), nulls)),
        IdColumn::Signed(ids) => Arc::new(Int64Array::new(ids.clone().into(), nulls)),
        IdColumn::Texts(texts) => {
            let lengths = (0..texts.len()).map(|row| texts.get(row).len());
            let offsets = OffsetBuffer::from_lengths(lengths);
            let bytes = Buffer::from(texts.all());
            Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
        }
    })
}
