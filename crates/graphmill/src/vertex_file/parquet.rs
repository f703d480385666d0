//! The rows of a Parquet file whose first column is `vertex` and whose second is a value; null means unreached.
//!
//! A file may also have edges, or a row of numbers.
//!
//! Negative integers are taken by their text, and 32-bit floats by the shortest text that gives them back, so that a result reads the
//! same as the CSV of the same run. The library's panics on broken files become errors.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_graph::uuid_text;
use graphmill_ingest::parquet_pages::{CellValue, cells, column_reader, footer, pages_bytes};
use graphmill_storage::{Lease, MemoryBudget, RandomAccessFile};
use parquet::basic::ConvertedType;
use parquet::column::reader::ColumnReader;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ParquetMetaData;

use crate::result::rows::EDGE_COLUMNS;
use crate::validate_error::ValidateError;
use crate::vertex_file::fields::{ColumnNames, number_columns};
use crate::vertex_file::text::{ResultRow, RowId, RowIter, Value, ValueReading};

/// Reads the footer of the file.
pub(crate) fn rows(
    file: RandomAccessFile,
    budget: &MemoryBudget,
    path: &Path,
    reading: ValueReading,
) -> Result<RowIter, ValidateError> {
    let read = footer(file.clone(), budget)?;
    let (metadata, lease) = read.map_err(|error| unreadable(path, error))?;
    let columns = metadata.file_metadata().schema_descr().columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let mut levels = columns
        .iter()
        .map(|of| (of.max_def_level(), of.max_rep_level()));
    let is_flat = levels.all(|(definition, repetition)| definition <= 1 && repetition == 0);
    let shape = shape_of(&names, reading).filter(|_| is_flat);
    let Some(shape) = shape else {
        let names = names.join(", ");
        let what = format!("it has the columns {names}, expected vertex and one value");
        return Err(unreadable(path, what));
    };
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    let unsigned = columns.iter().map(|column| {
        let kind = column.converted_type();
        [UINT_8, UINT_16, UINT_32, UINT_64].contains(&kind)
    });
    let (unsigned, count) = (unsigned.collect(), columns.len());
    let (budget, path) = (budget.clone(), path.to_path_buf());
    Ok(Box::new(ParquetRows {
        file,
        metadata,
        _lease: lease,
        budget,
        path,
        reading,
        groups_read: 0,
        group: None,
        ready: VecDeque::new(),
        shape,
        unsigned,
        count,
    }))
}

/// What the rows of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TableShape {
    /// A vertex, and its value if there is one.
    Vertices,
    /// Both ends of an edge, and its weight.
    Edges,
    /// Numbers of these names.
    Numbers(ColumnNames),
}

/// Returns what the names of the columns say.
fn shape_of(names: &[&str], reading: ValueReading) -> Option<TableShape> {
    match names {
        ["vertex", _] => Some(TableShape::Vertices),
        // A file of ids alone.
        ["vertex"] if reading == ValueReading::Ids => Some(TableShape::Vertices),
        _ if !reading.takes_tables() => None,
        names if names == EDGE_COLUMNS => Some(TableShape::Edges),
        names => {
            let any = reading == ValueReading::Numbers;
            number_columns(names, any).map(TableShape::Numbers)
        }
    }
}

struct ParquetRows {
    file: RandomAccessFile,
    metadata: ParquetMetaData,
    _lease: Lease,
    budget: MemoryBudget,
    path: PathBuf,
    reading: ValueReading,
    groups_read: usize,
    group: Option<RowGroup>,
    ready: VecDeque<ResultRow>,
    shape: TableShape,
    /// Whether each column is of unsigned integers.
    unsigned: Vec<bool>,
    /// Number of columns.
    count: usize,
}

/// The columns of the row group that is being read, and the memory of their pages.
struct RowGroup {
    columns: Vec<ColumnReader>,
    _pages: Lease,
}

impl Iterator for ParquetRows {
    type Item = Result<ResultRow, ValidateError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Some(Ok(row));
            }
            if self.group.is_none() && self.groups_read == self.metadata.num_row_groups() {
                return None;
            }
            if let Err(error) = self.read() {
                return Some(Err(error));
            }
        }
    }
}

impl ParquetRows {
    /// Decodes the next rows of the group, or opens the next group.
    fn read(&mut self) -> Result<(), ValidateError> {
        let path = self.path.clone();
        let Some(group) = &mut self.group else {
            let group = self.metadata.row_group(self.groups_read);
            let bytes = pages_bytes(group.columns().iter());
            let pages = self.budget.lease("pages of a Parquet file", bytes)?;
            let rows = group.num_rows().max(0) as u64;
            let column = |column| {
                column_reader(self.file.clone(), &self.budget, group.column(column), rows)
                    .map_err(|error| unreadable(&path, error))
            };
            let columns = (0..self.count).map(column).collect::<Result<_, _>>()?;
            self.group = Some(RowGroup {
                columns,
                _pages: pages,
            });
            self.groups_read += 1;
            return Ok(());
        };
        let columns = group.columns.iter_mut().zip(&self.unsigned);
        let columns = columns.map(|(column, unsigned)| cells(column, *unsigned));
        let columns = columns.collect::<ParquetResult<Vec<_>>>();
        let columns = columns.map_err(|error| unreadable(&path, error))?;
        let count = columns.first().map_or(0, Vec::len);
        if columns.iter().any(|column| column.len() != count) {
            return Err(unreadable(&path, "its columns differ in length"));
        }
        if count == 0 {
            self.group = None;
        }
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        for _ in 0..count {
            let mut cells = columns.iter_mut().filter_map(Iterator::next);
            if let TableShape::Numbers(names) = &self.shape {
                for (name, cell) in names.iter().zip(cells) {
                    let (id, value) = (
                        RowId::Column(Arc::clone(name)),
                        value_of(cell, self.reading),
                    );
                    self.ready.push_back(ResultRow { id, value, line: 0 });
                }
                continue;
            }
            let mut id = || match cells.next() {
                Some(CellValue::Unsigned(id)) => Ok(RowId::Integer(id)),
                Some(CellValue::Negative(id)) => Ok(RowId::parse(id.to_string().as_bytes())),
                Some(CellValue::Text(id)) => Ok(RowId::parse(id.data())),
                Some(CellValue::Uuid(id)) => Ok(RowId::parse(&uuid_text(id))),
                _ => Err(unreadable(&path, "a vertex is null or a float")),
            };
            let id = match self.shape {
                TableShape::Edges => RowId::edge(id()?, id()?),
                TableShape::Vertices | TableShape::Numbers(_) => id()?,
            };
            // A file of ids alone has no value.
            let value = cells.next().unwrap_or(CellValue::Null);
            let value = value_of(value, self.reading);
            self.ready.push_back(ResultRow { id, value, line: 0 });
        }
        Ok(())
    }
}

/// A cell as a value.
fn value_of(cell: CellValue, reading: ValueReading) -> Value {
    match cell {
        CellValue::Null => Value::Unreached,
        CellValue::Unsigned(value) => Value::Integer(value),
        CellValue::Negative(value) => reading.word(value.to_string().as_bytes()),
        CellValue::Single(value) => reading.single(value),
        CellValue::Float(value) => Value::float(value),
        CellValue::Text(value) => reading.word(value.data()),
        CellValue::Uuid(value) => reading.word(&uuid_text(value)),
    }
}

fn unreadable(path: &Path, what: impl ToString) -> ValidateError {
    ValidateError::Read {
        path: path.to_path_buf(),
        source: std::io::Error::other(what.to_string()),
    }
}
