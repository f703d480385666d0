//! Parquet files: which columns are the edges, and their rows, a row group at a time.
//!
//! A row group is a piece. A reader leases what the wanted columns of the largest row group unpack to, as the footer says;
//! `parquet_bytes.rs` refuses pages that are larger.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use graphmill_graph::IdType;
use graphmill_storage::{CancelToken, Disk, Lease, MemoryBudget, RandomAccessFile};
use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use super::parquet_bytes::{column_reader, footer, pages_bytes};
use super::parquet_cells::cells;
use super::table_columns::{ColumnType, TableColumns};
use super::table_rows::{RowRequest, TableRows};
use super::text::dialect::DialectRequest;
use crate::error::IngestError;
use crate::source::{EdgeSink, Ids, PieceReport};

/// Bytes of a column that are read at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// A file, and the columns that are read of it.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    metadata: ParquetMetaData,
    _lease: Lease,
    pub(super) columns: TableColumns,
    /// The columns whose integers have no sign.
    unsigned: Vec<bool>,
}

impl ParquetFile {
    /// Reads the footer, and finds the columns as [`DialectRequest`] wants them.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        request: DialectRequest<'_>,
    ) -> Result<Self, IngestError> {
        let path = request.path;
        let file = RandomAccessFile::open(disk, budget, path, 64 << 10)?;
        let bytes = file.bytes();
        let (metadata, lease) = footer(file, budget)?.map_err(|error| broken(path, error))?;
        let columns = metadata.file_metadata().schema_descr().columns().iter();
        let (names, types): (Vec<String>, Vec<ColumnType>) = columns
            .map(|column| (column.path().string(), type_of(column)))
            .unzip();
        let columns = TableColumns::choose(&request, &names, &types)?;
        check_chunks(path, &metadata, &columns.wanted, bytes)?;
        let is_unsigned = |column: &usize| matches!(types[*column], ColumnType::Ids(ids) if ids.integer_max().is_some() && !ids.is_signed());
        Ok(Self {
            unsigned: columns.wanted.iter().map(is_unsigned).collect(),
            columns,
            metadata,
            _lease: lease,
        })
    }

    /// Row groups.
    pub(crate) fn pieces(&self) -> u64 {
        self.metadata.num_row_groups() as u64
    }

    /// Returns how the ids of their columns are delivered.
    pub(crate) fn ids(&self) -> Ids {
        match self.columns.id_type() {
            IdType::Text => Ids::Text,
            IdType::Uuid => Ids::Uuid,
            IdType::Int32 | IdType::Int64 | IdType::UInt32 | IdType::UInt64 => {
                let is_negative = |(column, id_type): (usize, IdType)| {
                    id_type.is_signed() && self.may_be_negative(column)
                };
                match self.columns.ids().any(is_negative) {
                    true => Ids::Signed,
                    false => Ids::Integer,
                }
            }
        }
    }

    /// True unless statistics show that a column holds no negative integers.
    fn may_be_negative(&self, column: usize) -> bool {
        self.metadata.row_groups().iter().any(|group| {
            let chunk = group.column(column);
            let least = chunk.statistics().and_then(Statistics::min_bytes_opt);
            match (least, chunk.column_type()) {
                (Some(&[a, b, c, d]), Physical::INT32) => i32::from_le_bytes([a, b, c, d]) < 0,
                (Some(least), Physical::INT64) => least
                    .try_into()
                    .is_ok_and(|least| i64::from_le_bytes(least) < 0),
                // A group of nulls alone has no least value.
                _ => group.num_rows() > 0,
            }
        })
    }

    fn chunks(&self, group: usize) -> impl Iterator<Item = &ColumnChunkMetaData> {
        let group = self.metadata.row_group(group);
        self.columns
            .wanted
            .iter()
            .map(|&column| group.column(column))
    }

    /// Bytes that a reader leases for the files of columns that it has open.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        (self.columns.wanted.len() * CHUNK_BYTES) as u64
    }

    /// Bytes that a reader leases for any row group, packed and unpacked, with its dictionaries.
    pub(crate) fn group_bytes(&self) -> u64 {
        let groups = 0..self.metadata.num_row_groups();
        let bytes = groups.map(|group| pages_bytes(self.chunks(group)));
        bytes.max().unwrap_or(0)
    }

    /// Delivers the rows of a row group; the caller has leased [`group_bytes`](Self::group_bytes).
    pub(crate) fn read(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        (group, want): (usize, RowRequest),
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let before = self.metadata.row_groups()[..group].iter();
        let rows_before = before.fold(0_i64, |rows, group| rows.saturating_add(group.num_rows()));
        let rows = self.metadata.row_group(group).num_rows().max(0) as u64;
        let group_bytes = packed_bytes(self.metadata.row_group(group), &self.columns.wanted);
        let mut readers = Vec::with_capacity(self.columns.wanted.len());
        for chunk in self.chunks(group) {
            let file = RandomAccessFile::open(disk, budget, path, CHUNK_BYTES)?;
            let reader = column_reader(file, budget, chunk, rows);
            readers.push(reader.map_err(|error| broken(path, error))?);
        }
        let mut table = TableRows::new(&self.columns, path, want);
        let (mut done, mut reported) = (0, 0);
        while done < rows {
            IngestError::check_stop(stop)?;
            let columns = readers.iter_mut().zip(&self.unsigned);
            let cells = columns.map(|(column, is_unsigned)| cells(column, *is_unsigned));
            let cells = cells.collect::<ParquetResult<Vec<_>>>();
            let cells = cells.map_err(|error| broken(path, error))?;
            let count = cells[0].len();
            if count == 0 || cells.iter().any(|column| column.len() != count) {
                let problem = format!("row group {group} has fewer rows than it says");
                return Err(broken(path, problem));
            }
            table.push(&cells, rows_before as u64 + done, sink)?;
            done += count as u64;
            let bytes = (u128::from(group_bytes) * u128::from(done) / u128::from(rows)) as u64;
            sink.progress(bytes - reported);
            reported = bytes;
        }
        Ok(table.report())
    }
}

/// Refuses chunks of the `wanted` columns that overlap or are packed in an old way.
///
/// Overlapping chunks would be read again and again.
fn check_chunks(
    path: &Path,
    metadata: &ParquetMetaData,
    wanted: &[usize],
    bytes: u64,
) -> Result<(), IngestError> {
    let mut chunk_bytes = 0_u64;
    for group in metadata.row_groups() {
        chunk_bytes = chunk_bytes.saturating_add(packed_bytes(group, wanted));
        if chunk_bytes > bytes {
            return Err(broken(path, "its columns have more bytes than the file"));
        }
        let mut packings = wanted
            .iter()
            .map(|&column| group.column(column).compression());
        if packings.any(|packing| packing == Compression::LZ4) {
            return Err(IngestError::input(
                path,
                "it is packed with the old LZ4 of Hadoop; write it with zstd, snappy or lz4_raw",
            ));
        }
    }
    Ok(())
}

/// Returns the packed bytes of the `wanted` columns; a column that several fields read counts once.
fn packed_bytes(group: &RowGroupMetaData, wanted: &[usize]) -> u64 {
    let first = |(place, column): &(usize, &usize)| !wanted[..*place].contains(column);
    let chunks = wanted.iter().enumerate().filter(first);
    let sizes = chunks.map(|(_, &column)| group.column(column).compressed_size().max(0) as u64);
    sizes.fold(0, u64::saturating_add)
}

/// Returns the type of a column.
fn type_of(column: &ColumnDescriptor) -> ColumnType {
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return ColumnType::Other;
    }
    let integer = |is_signed| {
        let is_wide = column.physical_type() == Physical::INT64;
        ColumnType::Ids(match (is_signed, is_wide) {
            (true, true) => IdType::Int64,
            (true, false) => IdType::Int32,
            (false, true) => IdType::UInt64,
            (false, false) => IdType::UInt32,
        })
    };
    match (
        column.physical_type(),
        column.logical_type_ref(),
        column.converted_type(),
    ) {
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(of)), _) => {
            integer(of.is_signed)
        }
        // A column of nulls alone has no type.
        (_, Some(LogicalType::Unknown), _) => ColumnType::Ids(IdType::Text),
        (
            Physical::INT32 | Physical::INT64,
            None,
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64,
        ) => integer(true),
        (
            Physical::INT32 | Physical::INT64,
            None,
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64,
        ) => integer(false),
        (Physical::FLOAT | Physical::DOUBLE, ..) => ColumnType::Float,
        (Physical::BYTE_ARRAY, _, ConvertedType::DECIMAL | ConvertedType::BSON) => {
            ColumnType::Other
        }
        (
            Physical::BYTE_ARRAY,
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) | None,
            _,
        ) => ColumnType::Ids(IdType::Text),
        (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid) | None, ConvertedType::NONE)
            if column.type_length() == 16 =>
        {
            ColumnType::Ids(IdType::Uuid)
        }
        _ => ColumnType::Other,
    }
}

fn broken(path: &Path, error: impl fmt::Display) -> IngestError {
    IngestError::input(path, format!("it is not valid Parquet: {error}"))
}
