//! Rows as text, columns separated by commas or tabs: a header, then one row a vertex, or one an edge.
//!
//! Where a vertex was not reached numbers are `inf`, and vertices nothing: `inf` may be the name of one.
//!
//! Floats are written in the fewest digits that read back to the same bits.

use std::io::Write;
use std::sync::Arc;

use graphmill_algorithms::key_weight;
use graphmill_graph::{Id, uuid_text};

use crate::error::Error;
use crate::result::encode::{EncodePool, EncodeScratch, EncodeTask, Encoder};
use crate::result::names::{VertexNames, fewer_ids, id_of};
use crate::result::rows::{EDGE_COLUMNS, ResultRows, are_edges, are_vertices};
use crate::result::sizes::{BLOCK_ROWS, OUTPUT_BYTES};
use crate::result::values::{EdgePart, ValueColumn, ends};
use crate::result::walk::walk;
use crate::result_error::ResultError;

/// Rows that a worker writes at a time.
const ROWS: u64 = BLOCK_ROWS / 2;

/// Writes rows to `sink`; tells `note` of rows that are written.
///
/// # Errors
/// Ids or values cannot be read, the sink fails, or work is to stop.
pub(super) fn write(
    sink: &mut dyn Write,
    tabs: bool,
    rows: &mut ResultRows<'_>,
    pool: &mut EncodePool,
    note: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut header = csv_writer(tabs);
    let is_of_edges = are_edges(rows.output);
    let columns = match is_of_edges {
        true => &EDGE_COLUMNS[..],
        false => &["vertex", rows.output.column],
    };
    header.write_record(columns).map_err(ResultError::from)?;
    sink.write_all(&bytes_of(header)?)
        .map_err(ResultError::Write)?;
    let put = |task: &mut EncodeTask| {
        sink.write_all(&task.out).map_err(ResultError::Write)?;
        note(std::mem::take(&mut task.summary.rows));
        Ok(())
    };
    if is_of_edges {
        let is_single = rows.weight_part() == EdgePart::Weight { single: true };
        let encoder = |names| CsvEdges {
            tabs,
            is_single,
            names,
        };
        return walk(rows, pool, ROWS / 2, encoder, put);
    }
    let (nullable, are_vertices) = (rows.output.nullable, are_vertices(rows.output));
    let encoder = |names| CsvRows {
        tabs,
        nullable,
        are_vertices,
        names,
    };
    walk(rows, pool, ROWS, encoder, put)
}

/// Encodes rows that are edges.
struct CsvEdges {
    tabs: bool,
    /// Weights have 32 bits.
    is_single: bool,
    /// The names of both ends, if their names are not their numbers.
    names: Option<Arc<VertexNames>>,
}

impl Encoder for CsvEdges {
    fn encode(&self, task: &mut EncodeTask, _: &mut EncodeScratch) -> Result<bool, Error> {
        let (mut number, mut float) = (itoa::Buffer::new(), ryu::Buffer::new());
        let mut rows = csv_writer(self.tabs);
        let mut bytes = 0;
        let ValueColumn::Edges(edges) = &task.raw else {
            return Ok(true);
        };
        while task.row < edges.len() && bytes < OUTPUT_BYTES {
            let edge = &edges[task.row];
            for end in ends(edge) {
                bytes += put_id(&mut rows, id_of(self.names.as_deref(), end), &mut number)?;
            }
            let weight = key_weight(edge[0]);
            bytes += match self.is_single {
                true => put(&mut rows, text(weight as f32, &mut float))?,
                false => put(&mut rows, text(weight, &mut float))?,
            };
            rows.write_record(None::<&[u8]>)
                .map_err(ResultError::from)?;
            task.row += 1;
            task.summary.rows += 1;
        }
        let is_done = task.row == edges.len();
        task.out = bytes_of(rows)?;
        Ok(is_done)
    }
}

pub(super) fn csv_writer(tabs: bool) -> csv::Writer<Vec<u8>> {
    csv::WriterBuilder::new()
        .delimiter(if tabs { b'\t' } else { b',' })
        .from_writer(Vec::new())
}

pub(super) fn bytes_of(rows: csv::Writer<Vec<u8>>) -> Result<Vec<u8>, ResultError> {
    rows.into_inner()
        .map_err(|error| ResultError::Write(error.into_error()))
}

struct CsvRows {
    tabs: bool,
    nullable: bool,
    are_vertices: bool,
    /// The names of vertices that are values, if their names are not their numbers.
    names: Option<Arc<VertexNames>>,
}

impl Encoder for CsvRows {
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error> {
        let (mut number, mut float) = (itoa::Buffer::new(), ryu::Buffer::new());
        let reached = self.nullable.then(|| task.raw.reached(0..task.raw.len()));
        let mut rows = csv_writer(self.tabs);
        let mut bytes = 0;
        lane.ids.seek(task.next);
        while task.next < task.range.end && bytes < OUTPUT_BYTES {
            let id = lane.ids.next()?.ok_or_else(fewer_ids)?;
            if task.is_row() {
                let row = task.row;
                bytes += put_id(&mut rows, id, &mut number)?;
                let is_reached = reached.as_ref().is_none_or(|reached| reached[row]);
                bytes += match &task.raw {
                    _ if !is_reached && self.are_vertices => put(&mut rows, "")?,
                    _ if !is_reached => put(&mut rows, "inf")?,
                    ValueColumn::F32(values) => put(&mut rows, text(values[row], &mut float))?,
                    ValueColumn::F64(values) => put(&mut rows, text(values[row], &mut float))?,
                    values => {
                        let id = id_of(self.names.as_deref(), values.integer(row));
                        put_id(&mut rows, id, &mut number)?
                    }
                };
                rows.write_record(None::<&[u8]>)
                    .map_err(ResultError::from)?;
                task.row += 1;
                task.summary.rows += 1;
            }
            task.next += 1;
        }
        task.out = bytes_of(rows)?;
        Ok(task.next == task.range.end)
    }
}

/// Writes a field; returns its length.
fn put(rows: &mut csv::Writer<Vec<u8>>, field: impl AsRef<[u8]>) -> Result<usize, ResultError> {
    rows.write_field(&field)?;
    Ok(field.as_ref().len() + 1)
}

fn put_id(
    rows: &mut csv::Writer<Vec<u8>>,
    id: Id<'_>,
    number: &mut itoa::Buffer,
) -> Result<usize, ResultError> {
    match id {
        Id::Integer(id) => put(rows, number.format(id)),
        Id::Signed(id) => put(rows, number.format(id)),
        Id::Text(id) => put(rows, id),
        Id::Uuid(id) => put(rows, uuid_text(id)),
    }
}

/// Returns the text of a float; `ryu` has its own spelling for NaN and infinity.
fn text<F: ryu::Float + Into<f64>>(value: F, buffer: &mut ryu::Buffer) -> &str {
    match value.into() {
        f64::INFINITY => "inf",
        f64::NEG_INFINITY => "-inf",
        wide if wide.is_nan() => "nan",
        _ => buffer.format_finite(value),
    }
}
